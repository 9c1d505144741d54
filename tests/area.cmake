# ullage_test_area(AREA): the executable AREA_tests from tests/AREA/*.cc, one entry for ctest,
# and an entry for every tests/AREA/*_test.py. A test finds its files below ULLAGE_TEST_DATA,
# the project's root in ULLAGE_SOURCE_DIR and the built program in ULLAGE_BINARY (definitions
# in C++, environment variables in Python).
function(ullage_test_area area)
  ullage_python_tests(${area})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${area}/*.cc)
  file(GLOB shared CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/support/*.cc)
  list(FILTER sources EXCLUDE REGEX "/compilers/timeline_digest\\.cc$")
  if(NOT sources OR NOT TARGET ullage)
    return()
  endif()
  if(shared AND NOT TARGET ullage_test_support)
    # Objects, taken as such below: linked as a library it would name the project's library a second time, and without
    # optimisation at link time GCC's linker then takes members that hold code for it twice.
    add_library(ullage_test_support OBJECT ${shared})
    ullage_test_settings(ullage_test_support)
    ullage_precompile(ullage_test_support ullage_test_support <gtest/gtest.h>)
  endif()
  add_executable(${area}_tests ${sources})
  ullage_test_settings(${area}_tests)
  if(TARGET ullage_test_support)
    ullage_precompile(${area}_tests ullage_test_support)
  endif()
  target_link_libraries(${area}_tests PRIVATE GTest::gtest_main)
  if(TARGET ullage_test_support)
    target_sources(${area}_tests PRIVATE $<TARGET_OBJECTS:ullage_test_support>)
  endif()
  ullage_add_test(${area} ${area}_tests)
  if(TARGET ullage_program)
    add_dependencies(${area}_tests ullage_program)
  endif()
endfunction()

# The longest run in parts, and before the others, so that the last one does not run alone.
function(ullage_add_test name program)
  set(parts_of_cli 4)
  set(parts_of_engines 2)
  if(NOT parts_of_${name})
    add_test(NAME ${name} COMMAND ${program})
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
    return()
  endif()
  math(EXPR last "${parts_of_${name}} - 1")
  foreach(part RANGE ${last})
    add_test(NAME ${name}_${part} COMMAND ${program})
    set_tests_properties(${name}_${part} PROPERTIES TIMEOUT 1200 COST 100
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${parts_of_${name}};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()

function(ullage_test_settings target)
  set_target_properties(${target} PROPERTIES ULLAGE_IS_TEST ON)
  target_link_libraries(${target} PRIVATE ullage::ullage ullage_fmt ullage_compiler GTest::gtest)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Of joined texts in a precompiled header's std::string GCC 12 believes that they overflow.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow>)
  target_compile_definitions(${target} PRIVATE
    ULLAGE_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
    ULLAGE_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data"
    ULLAGE_BINARY="${CMAKE_BINARY_DIR}/bin/ullage")
  target_link_libraries(${target} PRIVATE rapidcheck)
endfunction()

function(ullage_python_tests area)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${area}/*_test.py)
  foreach(script IN LISTS scripts)
    get_filename_component(name ${script} NAME_WE)
    string(REGEX REPLACE "_test$" "" name ${name})
    add_test(NAME ${area}_${name} COMMAND ${ULLAGE_PYTHON} -B ${script})
    set_tests_properties(${area}_${name} PROPERTIES TIMEOUT 1200 ENVIRONMENT
      "ULLAGE_SOURCE_DIR=${PROJECT_SOURCE_DIR};ULLAGE_TEST_DATA=${PROJECT_SOURCE_DIR}/tests/data;ULLAGE_BINARY=${CMAKE_BINARY_DIR}/bin/ullage;ULLAGE_SANITIZE=${ULLAGE_SANITIZE}")
  endforeach()
endfunction()
