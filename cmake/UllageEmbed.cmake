# ullage_embed(TARGET NAME FILE): compiles the text file FILE (relative to the project's
# root) into module TARGET. Code reads it through
#     #include "data/NAME.h"
#     std::string_view text = ullage::data::NAME();
# A file that does not exist is left out, and so is its header; so is one of a module without sources.

set(ULLAGE_GENERATED ${CMAKE_BINARY_DIR}/generated)
set(ULLAGE_EMBED_SCRIPT ${CMAKE_CURRENT_LIST_DIR}/embed.cmake)

function(ullage_embed target name file)
  set(input ${PROJECT_SOURCE_DIR}/${file})
  if(NOT EXISTS ${input} OR NOT TARGET ullage_${target})
    return()
  endif()
  set(source ${ULLAGE_GENERATED}/data/${name}.cc)
  # The header depends on the name alone; written here, no target has to wait for it.
  file(CONFIGURE OUTPUT ${ULLAGE_GENERATED}/data/${name}.h @ONLY CONTENT [[
#pragma once

#include <string_view>

namespace ullage::data {

// The text of @file@, as it was when the library was built.
std::string_view @name@();

}  // namespace ullage::data
]])
  add_custom_command(
    OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -D NAME=${name} -D INPUT=${input} -D OUTPUT=${source}
            -P ${ULLAGE_EMBED_SCRIPT}
    DEPENDS ${input} ${ULLAGE_EMBED_SCRIPT}
    COMMENT "Embedding ${file}" VERBATIM)
  target_sources(ullage_${target} PRIVATE ${source})
  # Clang counts literals above 65,536 bytes among the pedantic warnings.
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -w
                              SKIP_UNITY_BUILD_INCLUSION ON SKIP_LINTING ON)
endfunction()
