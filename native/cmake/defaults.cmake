# Compiler settings of all targets.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# All symbols are hidden, because other extensions in the process (torch, grpcio) contain their own protobuf.
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Compiled files contain no path of a clone: __FILE__ and debug information are relative to the repository.
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH native_dir)
cmake_path(GET native_dir PARENT_PATH repository_dir)
add_compile_options(-ffile-prefix-map=${repository_dir}=.)

# Warnings become errors in the presets (CMAKE_COMPILE_WARNING_AS_ERROR), not in installations with a newer compiler.
# An omitted designated initializer takes the default of its member, on purpose. Only clang checks locks.
add_library(kubebeast_warnings INTERFACE)
target_compile_options(kubebeast_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
                       $<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:-Wthread-safety>)
