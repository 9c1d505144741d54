# Emscripten must not see /usr/include (its own C library differs from the host's),
# so the header-only libraries are linked one by one into the build tree.

set(ULLAGE_HOST_INCLUDE /usr/include CACHE PATH "Where the distribution keeps its headers")
set(stage ${CMAKE_BINARY_DIR}/staged)
file(MAKE_DIRECTORY ${stage})
foreach(name nlohmann fmt tl)
  if(NOT EXISTS ${ULLAGE_HOST_INCLUDE}/${name})
    message(FATAL_ERROR "${ULLAGE_HOST_INCLUDE}/${name} is missing; "
                        "install nlohmann-json3-dev, libfmt-dev and libexpected-dev")
  endif()
  file(CREATE_LINK ${ULLAGE_HOST_INCLUDE}/${name} ${stage}/${name} SYMBOLIC)
endforeach()

add_library(ullage_staged INTERFACE)
target_include_directories(ullage_staged SYSTEM INTERFACE ${stage})
set(ULLAGE_PUBLIC_LIBRARIES ullage_staged)
set(ULLAGE_FMT_INCLUDE ${stage})

file(STRINGS ${ULLAGE_HOST_INCLUDE}/fmt/core.h version REGEX "^#define FMT_VERSION [0-9]+")
string(REGEX MATCH "[0-9]+$" version "${version}")
math(EXPR fmt_VERSION "${version} / 10000")
