# Finds the distribution's Emscripten toolchain file wherever em++ is installed.

find_program(ULLAGE_EMXX em++ REQUIRED)
execute_process(COMMAND em-config EMSCRIPTEN_ROOT OUTPUT_VARIABLE emscripten_root
                OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
if(NOT status EQUAL 0 OR NOT EXISTS ${emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)
  set(emscripten_root /usr/share/emscripten)
endif()
include(${emscripten_root}/cmake/Modules/Platform/Emscripten.cmake)
