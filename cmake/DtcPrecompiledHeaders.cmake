# Precompiled headers. Most of the time of a build goes into parsing MLIR, Protobuf and fmt, so that
# headers that most files of a part include are parsed once. Every file still includes what it uses:
# -DDTC_PRECOMPILE=OFF builds without.

option(DTC_PRECOMPILE "Build with precompiled headers" ON)

# The compiler cache sees a precompiled header by its content.
if(CCACHE_PROGRAM AND DTC_PRECOMPILE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env ${DTC_CCACHE_SETTINGS}
      "CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime" "${CCACHE_PROGRAM}")
  set(DTC_PRECOMPILE_OPTIONS $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endif()

# dtc_add_precompiled_headers(name HEADERS <header>... [LINK library...] [DEPENDS target...] [OPTIONS option...]):
# `name` holds the headers for targets that compile with the same options.
function(dtc_add_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;DEPENDS;OPTIONS" ${ARGN})
  if(NOT DTC_PRECOMPILE)
    return()
  endif()
  add_library(${name} OBJECT "${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.cpp")
  # Without -fpch-preprocess: with it, the compiler cache would preprocess changed headers to a
  # reference to the precompiled header of their former state, and give the result of other changes.
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
  set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER
    "${PROJECT_SOURCE_DIR}/cmake/compile-header.sh;${CMAKE_CXX_COMPILER_LAUNCHER}")
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# dtc_use_precompiled_headers(target name)
function(dtc_use_precompiled_headers target name)
  if(TARGET ${name})
    target_precompile_headers(${target} REUSE_FROM ${name})
    target_compile_options(${target} PRIVATE ${DTC_PRECOMPILE_OPTIONS})
  endif()
endfunction()
