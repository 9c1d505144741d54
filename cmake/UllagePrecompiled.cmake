# Headers that nearly every source includes, parsed once instead of 300 times: it halves a build. It also hides an
# include that a source forgets, so the presets of the portable core do without.

option(ULLAGE_PCH "Precompile the headers of others that nearly every source includes" ON)

if(ULLAGE_PCH AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The time of the header inside would make every build anew for ccache.
  target_compile_options(ullage_compiler INTERFACE "SHELL:-Xclang -fno-pch-timestamp")
endif()

set(ULLAGE_PCH_HEADERS <algorithm> <array> <charconv> <cmath> <cstdint> <functional> <map> <memory> <optional> <span>
                       <string> <string_view> <utility> <vector> <nlohmann/json.hpp> <tl/expected.hpp> <fmt/core.h>)

# ullage_precompile(TARGET OWNER [HEADERS]): TARGET uses what the object library OWNER has precompiled; OWNER itself
# precompiles. Both must be compiled with equal options.
function(ullage_precompile target owner)
  if(NOT ULLAGE_PCH)
    return()
  endif()
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${ULLAGE_PCH_HEADERS} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
