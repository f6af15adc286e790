# The Python module kubebeast_native._core.

find_package(Python REQUIRED COMPONENTS Interpreter Development.Module)
find_package(pybind11 CONFIG REQUIRED)

file(GLOB binding_sources CONFIGURE_DEPENDS src/bindings/*.cc)
pybind11_add_module(_core MODULE ${binding_sources})
target_include_directories(_core PRIVATE src/bindings)
target_link_libraries(_core PRIVATE kubebeast_core kubebeast_warnings)
if(UNIX AND NOT APPLE)
  # Only PyInit__core leaves the module: nothing of protobuf or of the generated code may interpose elsewhere.
  target_link_options(_core PRIVATE LINKER:--exclude-libs,ALL)
endif()
install(TARGETS _core LIBRARY DESTINATION kubebeast_native)
