# Libraries of the parts that know no MLIR.

# GCC 12 warns of overlapping copies inside its own std::string.
set(DTC_WARNINGS -Wall -Wextra -Wno-unused-parameter $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)

# dtc_add_library(name [OPTIMIZED] sources... LINK libraries...): OPTIMIZED for code whose speed
# matters (cmake/DtcBuildCost.cmake).
function(dtc_add_library name)
  cmake_parse_arguments(ARG "OPTIMIZED" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${DTC_WARNINGS})
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt)
  if(ARG_OPTIMIZED)
    dtc_optimize(${name})
    dtc_use_precompiled_headers(${name} DtcOptimizedPlanHeaders)
  else()
    dtc_use_precompiled_headers(${name} DtcPlanHeaders)
  endif()
endfunction()

# The messages of a .proto file in a library of their own. Its header lies at the path of the source below the root of
# the build, so that an include names that path.
function(dtc_add_proto_library name proto)
  cmake_path(REMOVE_EXTENSION proto OUTPUT_VARIABLE base)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE folder)
  set(generated "${PROJECT_BINARY_DIR}/${folder}/${base}.pb.cc" "${PROJECT_BINARY_DIR}/${folder}/${base}.pb.h")
  add_custom_command(
    OUTPUT ${generated}
    COMMAND protobuf::protoc "--proto_path=${PROJECT_SOURCE_DIR}" "--cpp_out=${PROJECT_BINARY_DIR}"
            "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${proto}"
    COMMENT "Generating ${folder}/${base}.pb.h"
    VERBATIM)
  add_library(${name} STATIC ${generated})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()
