# Files that `cmake --install` provides to other projects: headers, the library, a CMake package and a pkg-config file.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kubebeast_client")
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(TARGETS kubebeast_client EXPORT kubebeast_client-targets)
install(EXPORT kubebeast_client-targets NAMESPACE kubebeast:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/kubebeast_client-config.cmake.in kubebeast_client-config.cmake
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file(kubebeast_client-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kubebeast_client-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/kubebeast_client-config-version.cmake"
        DESTINATION "${package_dir}")
if(NOT BUILD_SHARED_LIBS)
  install(FILES "${native}/cmake/dependencies.cmake" DESTINATION "${package_dir}")
endif()

# For a static library, `pkg-config --static` names its dependencies.
configure_file(cmake/kubebeast_client.pc.in kubebeast_client.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kubebeast_client.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
