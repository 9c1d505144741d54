# What the library uses of others: headers, and libyaml outside of the portable core.

if(EMSCRIPTEN)
  include(UllageStageHeaders)
else()
  find_package(nlohmann_json 3.11 REQUIRED)
  find_package(tl-expected REQUIRED)
  find_package(fmt 9 REQUIRED)
  set(ULLAGE_PUBLIC_LIBRARIES nlohmann_json::nlohmann_json tl::expected)
  get_target_property(ULLAGE_FMT_INCLUDE fmt::fmt-header-only INTERFACE_INCLUDE_DIRECTORIES)
  if(NOT ULLAGE_CORE_ONLY)
    find_package(CLI11 REQUIRED)
    find_path(CURL_INCLUDE_DIR curl/curl.h REQUIRED)
    # The archive first: one library less to load when the program starts.
    find_path(YAML_INCLUDE_DIR yaml.h REQUIRED)
    find_library(YAML_LIBRARY NAMES libyaml.a yaml REQUIRED)
  endif()
endif()

# fmt is used inside of sources only, never in our headers. Version 9 (Debian 12, Ubuntu 24.04)
# is compiled once; which templates another version wants is not known here, so that one is
# header-only, which takes longer.
add_library(ullage_fmt INTERFACE)
target_include_directories(ullage_fmt SYSTEM INTERFACE ${ULLAGE_FMT_INCLUDE})
set(ULLAGE_FMT_DEFINITIONS "")
if(fmt_VERSION VERSION_GREATER_EQUAL 10)
  target_compile_definitions(ullage_fmt INTERFACE FMT_HEADER_ONLY=1)
else()
  set(ULLAGE_FMT_DEFINITIONS ${CMAKE_CURRENT_LIST_DIR}/fmt_definitions.cc)
endif()
