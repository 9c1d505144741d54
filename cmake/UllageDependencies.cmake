# What the library uses of others, all of it header-only for us.

if(EMSCRIPTEN)
  include(UllageStageHeaders)
else()
  find_package(nlohmann_json 3.11 REQUIRED)
  find_package(fmt 9 REQUIRED)
  find_package(tl-expected REQUIRED)
  set(ULLAGE_PUBLIC_LIBRARIES nlohmann_json::nlohmann_json fmt::fmt-header-only tl::expected)
  if(NOT ULLAGE_CORE_ONLY)
    find_package(CLI11 REQUIRED)
  endif()
endif()
