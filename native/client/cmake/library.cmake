# The library itself, under its name in other projects: kubebeast::client.

add_library(kubebeast_client $<TARGET_OBJECTS:kubebeast_client_objects>)
add_library(kubebeast::client ALIAS kubebeast_client)
set_target_properties(kubebeast_client PROPERTIES EXPORT_NAME client VERSION ${PROJECT_VERSION} SOVERSION
                      ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(kubebeast_client PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(kubebeast_client PUBLIC cxx_std_20)
# An installed static library finds its dependencies in its package.
target_link_libraries(kubebeast_client PRIVATE $<BUILD_INTERFACE:kubebeast_client_objects>)
if(NOT BUILD_SHARED_LIBS)
  target_link_libraries(kubebeast_client INTERFACE $<INSTALL_INTERFACE:kubebeast_client_dependencies>)
elseif(NOT APPLE)
  # The library exports no symbols of gRPC, protobuf and abseil, not even those that are unique in a process.
  set(exports "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
  target_link_options(kubebeast_client PRIVATE "LINKER:--version-script=${exports}" LINKER:--gc-sections
                      LINKER:--no-undefined)
  set_target_properties(kubebeast_client PROPERTIES LINK_DEPENDS "${exports}")
endif()
