# Finds the system libraries, which are never built here. Defines kubebeast_grpc and kubebeast_lz4.

set(KUBEBEAST_INSTALL_HINT
    "Install the C++ dependencies:\n"
    "  Debian, Ubuntu:  apt-get install libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler liblz4-dev\n"
    "  macOS:           brew install grpc protobuf lz4\n"
    "  conda:           conda install -c conda-forge libgrpc libprotobuf libabseil lz4-c")
list(JOIN KUBEBEAST_INSTALL_HINT "" KUBEBEAST_INSTALL_HINT)

find_package(Threads REQUIRED)
find_package(PkgConfig QUIET)

# protobuf 22 and newer list their absl dependencies only in their package file. Older ones have only CMake's module.
find_package(Protobuf CONFIG QUIET)
if(NOT Protobuf_FOUND)
  find_package(Protobuf MODULE QUIET)
endif()
find_package(absl CONFIG QUIET)
if(NOT Protobuf_FOUND OR NOT absl_FOUND)
  message(FATAL_ERROR "protobuf or abseil was not found. ${KUBEBEAST_INSTALL_HINT}")
endif()

add_library(kubebeast_grpc INTERFACE)
find_package(gRPC CONFIG QUIET)
if(gRPC_FOUND)
  target_link_libraries(kubebeast_grpc INTERFACE gRPC::grpc++ protobuf::libprotobuf Threads::Threads)
elseif(PKG_CONFIG_FOUND)
  pkg_check_modules(GRPCPP IMPORTED_TARGET grpc++ protobuf)
  if(GRPCPP_FOUND)
    target_link_libraries(kubebeast_grpc INTERFACE PkgConfig::GRPCPP Threads::Threads)
  endif()
endif()
if(NOT gRPC_FOUND AND NOT GRPCPP_FOUND)
  message(FATAL_ERROR "gRPC C++ was not found. ${KUBEBEAST_INSTALL_HINT}")
endif()

find_path(LZ4_INCLUDE_DIR lz4.h)
find_library(LZ4_LIBRARY lz4)
if(NOT LZ4_INCLUDE_DIR OR NOT LZ4_LIBRARY)
  message(FATAL_ERROR "lz4 was not found. ${KUBEBEAST_INSTALL_HINT}")
endif()
add_library(kubebeast_lz4 INTERFACE)
target_include_directories(kubebeast_lz4 SYSTEM INTERFACE ${LZ4_INCLUDE_DIR})
target_link_libraries(kubebeast_lz4 INTERFACE ${LZ4_LIBRARY})

if(KUBEBEAST_BUILD_TESTS)
  find_package(GTest QUIET)
  if(NOT GTest_FOUND)
    message(FATAL_ERROR "GoogleTest was not found: apt-get install libgtest-dev, brew install googletest, "
                        "or conda install -c conda-forge gtest; or configure with -DKUBEBEAST_BUILD_TESTS=OFF.")
  endif()
endif()
