# The Python module kubebeast_native._core.

find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(pybind11 CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS src/bindings/*.cc)
# Only the call of the client library, because its session is for other programs.
set(call_sources byte_stream.cc call.cc channel.cc)
list(TRANSFORM call_sources PREPEND client/src/)
pybind11_add_module(_core MODULE ${binding_sources} ${call_sources})
target_include_directories(_core PRIVATE src/bindings client/src)
target_link_libraries(_core PRIVATE kubebeast_core kubebeast_warnings)
# The module exports only PyInit__core. torch and grpcio contain their own gRPC, protobuf and abseil: all of them would
# share a symbol that two of them export, or a GNU_UNIQUE one (https://github.com/grpc/grpc/issues/35947).
if(APPLE)
  set(exports "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.txt")
  target_link_options(_core PRIVATE "LINKER:-exported_symbols_list,${exports}" LINKER:-dead_strip)
else()
  set(exports "${CMAKE_CURRENT_SOURCE_DIR}/cmake/exports.map")
  target_link_options(_core PRIVATE "LINKER:--version-script=${exports}" LINKER:--gc-sections)
endif()
set_target_properties(_core PROPERTIES LINK_DEPENDS "${exports}")
install(TARGETS _core LIBRARY DESTINATION kubebeast_native)
