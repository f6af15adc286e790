# The library kubebeast_proto: messages and service stubs generated from the wire contract into the build folder.

set(KUBEBEAST_PROTO_DIR "${CMAKE_CURRENT_LIST_DIR}/../protos" CACHE PATH "The folder that holds kubebeast_protos/")

find_program(PROTOC protoc)
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin)
if(NOT PROTOC OR NOT GRPC_CPP_PLUGIN)
  message(FATAL_ERROR "protoc or grpc_cpp_plugin was not found. ${KUBEBEAST_INSTALL_HINT}")
endif()

set(proto_name kubebeast_protos/v1/actor_pool)
set(proto_file "${KUBEBEAST_PROTO_DIR}/${proto_name}.proto")
if(NOT EXISTS "${proto_file}")
  message(FATAL_ERROR "The wire contract ${proto_file} was not found. Build native/ inside a checkout of KubeBeast, or "
                      "set -DKUBEBEAST_PROTO_DIR to the folder that holds kubebeast_protos/.")
endif()

set(generated_dir "${CMAKE_CURRENT_BINARY_DIR}/generated")
file(MAKE_DIRECTORY "${generated_dir}")
set(generated_files)
foreach(suffix .pb.h .pb.cc .grpc.pb.h .grpc.pb.cc)
  list(APPEND generated_files "${generated_dir}/${proto_name}${suffix}")
endforeach()

add_custom_command(
  OUTPUT ${generated_files}
  COMMAND "${PROTOC}" "--proto_path=${KUBEBEAST_PROTO_DIR}" "--cpp_out=${generated_dir}" "--grpc_out=${generated_dir}"
          "--plugin=protoc-gen-grpc=${GRPC_CPP_PLUGIN}" "${proto_file}"
  DEPENDS "${proto_file}"
  COMMENT "Generating C++ stubs from ${proto_name}.proto"
  VERBATIM)

add_library(kubebeast_proto STATIC ${generated_files})
target_include_directories(kubebeast_proto SYSTEM PUBLIC "${generated_dir}")
target_link_libraries(kubebeast_proto PUBLIC kubebeast_grpc)
set_target_properties(kubebeast_proto PROPERTIES CXX_CLANG_TIDY "" COMPILE_WARNING_AS_ERROR OFF)
