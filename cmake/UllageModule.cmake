# A module is a folder of src/: an object library ullage_<name> of every .cc file below it.
# All objects together are the static library ullage.

# ullage_module(NAME [DEPS module…] [LIBRARIES target…])
# DEPS are the modules it may use directly; one that this build does not have is passed over.
# Sources named *_native.cc need an operating system (mapped files, threads) and stay out of
# the portable core, which is told by the definition ULLAGE_CORE_ONLY.
#
# Modules that read what others wrote are compiled with what fuzzing counts; it would cost the rest a quarter of their
# compile time.
set(ULLAGE_FUZZED_MODULES base model evidence hub launch)

function(ullage_module name)
  cmake_parse_arguments(PARSE_ARGV 1 module "" "" "DEPS;LIBRARIES")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/src/cli/main\\.cc$")
  if(ULLAGE_CORE_ONLY)
    list(FILTER sources EXCLUDE REGEX "_native\\.cc$")
  endif()
  if(NOT sources)
    return()
  endif()
  add_library(ullage_${name} OBJECT ${sources})
  target_include_directories(ullage_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${ULLAGE_GENERATED})
  target_link_libraries(ullage_${name} PUBLIC ${ULLAGE_PUBLIC_LIBRARIES}
                                       PRIVATE ullage_fmt ullage_compiler ${module_LIBRARIES})
  target_compile_options(ullage_${name} PRIVATE ${ULLAGE_COMPILE_LTO})
  if(ULLAGE_CORE_ONLY)
    target_compile_definitions(ullage_${name} PUBLIC ULLAGE_CORE_ONLY=1)
  endif()
  # A header is precompiled once for each set of options.
  set(owner ullage_base)
  if(name IN_LIST ULLAGE_FUZZED_MODULES)
    set_target_properties(ullage_${name} PROPERTIES ULLAGE_FUZZED ON)
  elseif(ULLAGE_SANITIZE MATCHES "fuzzer")
    set(owner ullage_memory)
  endif()
  ullage_precompile(ullage_${name} ${owner})
  foreach(dep IN LISTS module_DEPS)
    if(TARGET ullage_${dep})
      target_link_libraries(ullage_${name} PUBLIC ullage_${dep})
    endif()
  endforeach()
endfunction()

function(ullage_add_modules)
  foreach(name IN LISTS ARGN)
    if(EXISTS ${PROJECT_SOURCE_DIR}/src/${name}/CMakeLists.txt)
      add_subdirectory(${PROJECT_SOURCE_DIR}/src/${name} ${CMAKE_BINARY_DIR}/src/${name})
    endif()
  endforeach()
endfunction()

function(ullage_add_library)
  set(objects)
  foreach(name IN LISTS ULLAGE_MODULES)
    if(TARGET ullage_${name})
      list(APPEND objects $<TARGET_OBJECTS:ullage_${name}>)
    endif()
  endforeach()
  if(NOT objects)
    message(WARNING "src/ holds no module yet; nothing to build")
    return()
  endif()
  add_library(ullage STATIC ${objects} ${ULLAGE_FMT_DEFINITIONS})
  target_link_libraries(ullage PRIVATE $<BUILD_INTERFACE:ullage_fmt> $<BUILD_INTERFACE:ullage_compiler>)
  target_compile_options(ullage PRIVATE -w ${ULLAGE_COMPILE_LTO})
  add_library(ullage::ullage ALIAS ullage)
  set_target_properties(ullage PROPERTIES LINKER_LANGUAGE CXX)
  target_compile_features(ullage PUBLIC cxx_std_20)
  target_include_directories(ullage PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src> $<BUILD_INTERFACE:${ULLAGE_GENERATED}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/ullage>)
  target_link_libraries(ullage PUBLIC ${ULLAGE_PUBLIC_LIBRARIES})
  if(TARGET ullage_launch)
    target_link_libraries(ullage PRIVATE ${YAML_LIBRARY})
  endif()
  if(ULLAGE_CORE_ONLY)
    target_compile_definitions(ullage PUBLIC ULLAGE_CORE_ONLY=1)
  endif()
endfunction()

function(ullage_add_executable)
  if(NOT EXISTS ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
    return()
  endif()
  add_executable(ullage_program ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
  set_target_properties(ullage_program PROPERTIES OUTPUT_NAME ullage ULLAGE_LINKS_LTO ON
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  target_compile_options(ullage_program PRIVATE ${ULLAGE_COMPILE_LTO})
  target_link_options(ullage_program PRIVATE ${ULLAGE_LINK_LTO})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT ULLAGE_SANITIZE)
    # Binding libstdc++'s symbols at start takes longer than answering most questions.
    target_link_options(ullage_program PRIVATE -static-libstdc++ -static-libgcc)
  endif()
  target_link_libraries(ullage_program PRIVATE ullage::ullage ullage_fmt ullage_compiler)
endfunction()
