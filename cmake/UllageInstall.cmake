# Binary, archive, headers and the CMake package `ullage` (target ullage::ullage).

include(CMakePackageConfigHelpers)

if(NOT TARGET ullage)
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/ullage)

if(TARGET ullage_program)
  install(TARGETS ullage_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS ullage EXPORT ullage ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ullage
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY ${ULLAGE_GENERATED}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ullage
        FILES_MATCHING PATTERN "*.h")
install(EXPORT ullage NAMESPACE ullage:: FILE ullageTargets.cmake DESTINATION ${package_dir})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/ullageConfig.cmake.in
  ${CMAKE_BINARY_DIR}/ullageConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ullageConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/ullageConfig.cmake ${CMAKE_BINARY_DIR}/ullageConfigVersion.cmake
        DESTINATION ${package_dir})
