# Language level, warnings, sanitizers: one interface target, ullage_compiler,
# for our own targets only. Nothing of it reaches those who use the installed package.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(ULLAGE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(ULLAGE_CCACHE_PROGRAM ccache)
  if(ULLAGE_CCACHE_PROGRAM)
    # Without the sloppiness it passes over every file that uses a precompiled header.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                    ${ULLAGE_CCACHE_PROGRAM})
  endif()
endif()

add_library(ullage_compiler INTERFACE)
target_compile_options(ullage_compiler INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees std::sort leave an array of a few elements, and at -O3 joined texts overlap; the sanitizers look at the
  # real thing.
  target_compile_options(ullage_compiler INTERFACE -Wno-array-bounds -Wno-restrict)
  # What stands in a precompiled header is no system header's any more: what GCC concludes of the flow through joined
  # texts is told, but stops nobody.
  foreach(flow stringop-overflow stringop-overread maybe-uninitialized nonnull free-nonheap-object dangling-pointer
               use-after-free alloc-size-larger-than=)
    target_compile_options(ullage_compiler INTERFACE -Wno-error=${flow})
  endforeach()
endif()
if(ULLAGE_WERROR)
  target_compile_options(ullage_compiler INTERFACE -Werror)
endif()

if(ULLAGE_SANITIZE)
  # Recovering would let a test pass that has just shown a fault.
  set(sanitize -fsanitize=${ULLAGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(ullage_compiler INTERFACE ${sanitize})
  target_link_options(ullage_compiler INTERFACE ${sanitize})
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Undefined behaviour is watched for in the library, not in its tests: with what fuzzing counts a third of the time
    # that compiling them takes.
    target_compile_options(ullage_compiler INTERFACE
      $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ULLAGE_FUZZED>>>:-fno-sanitize=fuzzer-no-link>
      $<$<BOOL:$<TARGET_PROPERTY:ULLAGE_IS_TEST>>:-fno-sanitize=undefined>)
  endif()
endif()

if(ULLAGE_COVERAGE)
  target_compile_options(ullage_compiler INTERFACE --coverage)
  target_link_options(ullage_compiler INTERFACE --coverage)
endif()

# Fat objects: the executable is linked with link-time optimisation while the
# tests and whoever uses the installed archive link the ordinary code, at once.
set(ULLAGE_LINK_LTO "")
if(ULLAGE_LTO AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(ULLAGE_COMPILE_LTO -flto=auto -ffat-lto-objects)
  set(ULLAGE_LINK_LTO -flto=auto)
  target_link_options(ullage_compiler INTERFACE $<$<NOT:$<BOOL:$<TARGET_PROPERTY:ULLAGE_LINKS_LTO>>>:-fno-lto>)
endif()

if(EMSCRIPTEN)
  # nlohmann's parser throws inside the file that calls it; without this a throw aborts.
  target_compile_options(ullage_compiler INTERFACE -fexceptions)
  target_link_options(ullage_compiler INTERFACE -fexceptions)
endif()
