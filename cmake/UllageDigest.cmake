# The one program that every compiler builds: it prints a digest of the timeline of every
# family, and ./test compares what the builds of different compilers print.

set(digest ${PROJECT_SOURCE_DIR}/tests/compilers/timeline_digest.cc)
if(EXISTS ${digest} AND TARGET ullage)
  add_executable(timeline_digest ${digest})
  target_link_libraries(timeline_digest PRIVATE ullage::ullage ullage_fmt ullage_compiler)
  set_target_properties(timeline_digest PROPERTIES
                        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(EMSCRIPTEN)
    target_link_options(timeline_digest PRIVATE -sALLOW_MEMORY_GROWTH=1 -sEXIT_RUNTIME=1)
  endif()
endif()
