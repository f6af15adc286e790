# Compiles through ccache (https://ccache.dev) if it is installed, so that another build folder, or another clone,
# reuses files that the same compiler has compiled from the same sources.
#
# The environment variable CHECKS_CACHE names the folder that contains the cache; by default it is ccache's own. If that
# folder is not writable, everything is recompiled.

function(use_ccache)
  find_program(CCACHE ccache)
  if(NOT CCACHE OR CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  cmake_path(GET PROJECT_SOURCE_DIR PARENT_PATH root)
  # Paths below the base are hashed as relative ones. The compiler is identified by its contents, not by the time of its
  # installation. Precompiled headers need this sloppiness (ccache's manual, "Precompiled headers").
  set(settings CCACHE_BASEDIR=${root} CCACHE_NOHASHDIR=1 CCACHE_COMPILERCHECK=content
               CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime CCACHE_MAXSIZE=2G)
  if(DEFINED ENV{CHECKS_CACHE})
    set(folder "$ENV{CHECKS_CACHE}/ccache")
    execute_process(COMMAND sh -c "mkdir -p \"$1\" && test -w \"$1\"" sh "${folder}" RESULT_VARIABLE status ERROR_QUIET)
    if(NOT status EQUAL 0)
      message(STATUS "Compiling without ccache: ${folder} cannot be written")
      return()
    endif()
    list(APPEND settings "CCACHE_DIR=${folder}")
  endif()
  set(launcher "${CMAKE_COMMAND}" -E env ${settings} "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}" PARENT_SCOPE)
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}" PARENT_SCOPE)
endfunction()

use_ccache()
