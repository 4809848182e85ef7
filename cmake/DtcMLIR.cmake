# Finds MLIR and defines the helpers that the dialects and the compiler build with.

find_package(MLIR REQUIRED CONFIG)
message(STATUS "Using MLIR ${LLVM_PACKAGE_VERSION} from ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(LLVM_TOOLS_BINARY_DIR "${LLVM_TOOLS_BINARY_DIR}" CACHE PATH "where lit, FileCheck and not are")

# A library of the compiler side: no RTTI and no exceptions, as LLVM itself is built.
function(dtc_add_mlir_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${name} PRIVATE -fno-rtti -Wall -Wno-unused-parameter)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} MLIR LLVM)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# Runs mlir-tblgen over a .td file: dtc_tablegen(File.td out.inc -gen-op-decls ...) may be repeated; then
# add_public_tablegen_target(Name) makes a target of all of them.
macro(dtc_tablegen td out)
  set(LLVM_TARGET_DEFINITIONS ${td})
  mlir_tablegen(${out} ${ARGN} -I "${CMAKE_SOURCE_DIR}")
endmacro()

# Writes reference documentation from TableGen to docs/generated of the build: dtc_tablegen_doc(Name File.td -gen-...).
# `ninja docs` makes all of it.
add_custom_target(docs)
function(dtc_tablegen_doc name td)
  set(out "${PROJECT_BINARY_DIR}/docs/generated/${name}.md")
  add_custom_command(
    OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/docs/generated"
    COMMAND mlir-tblgen ${ARGN} -I "${PROJECT_SOURCE_DIR}" -I "${MLIR_INCLUDE_DIRS}" "${CMAKE_CURRENT_SOURCE_DIR}/${td}"
            -o "${out}"
    DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${td}"
    VERBATIM)
  add_custom_target(doc-${name} DEPENDS "${out}")
  add_dependencies(docs doc-${name})
endfunction()
