# Finds MLIR and defines the helpers that the dialects and the compiler build with.

find_package(MLIR REQUIRED CONFIG)
message(STATUS "Using MLIR ${LLVM_PACKAGE_VERSION} from ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
set(LLVM_TOOLS_BINARY_DIR "${LLVM_TOOLS_BINARY_DIR}" CACHE PATH "where lit, FileCheck and not are")

# Headers that the dialects include, and those that the compiler includes.
set(DTC_MLIR_HEADERS
  <mlir/Dialect/Func/IR/FuncOps.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/DialectImplementation.h>
  <mlir/IR/Matchers.h> <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h> <mlir/IR/TypeUtilities.h>
  <mlir/Interfaces/InferTypeOpInterface.h> <mlir/Interfaces/SideEffectInterfaces.h> <llvm/ADT/SetVector.h>
  <llvm/ADT/StringExtras.h> <llvm/ADT/StringMap.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/FormatVariadic.h> <algorithm>
  <cmath> <functional> <map> <numeric> <optional> <set> <string> <vector>)
set(DTC_COMPILER_HEADERS
  ${DTC_MLIR_HEADERS} <compiler/passes/Passes.h> <mlir/IR/IRMapping.h> <llvm/ADT/MapVector.h> <fmt/format.h>)
function(dtc_add_mlir_headers name)
  dtc_add_precompiled_headers(${name} ${ARGN} OPTIONS -fno-rtti)
  if(TARGET ${name})
    target_include_directories(${name} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
    target_compile_definitions(${name} PRIVATE ${LLVM_DEFINITIONS_LIST})
  endif()
endfunction()

# A library of the compiler side: no RTTI, as LLVM itself is built. PRECOMPILED names the headers that it uses
# (DtcCompilerHeaders if nothing is given).
function(dtc_add_mlir_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_include_directories(${name} SYSTEM PUBLIC ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
  target_compile_definitions(${name} PUBLIC ${LLVM_DEFINITIONS_LIST})
  target_compile_options(${name} PUBLIC -fno-rtti PRIVATE -Wall -Wno-unused-parameter)
  # Precompiled headers are used only where the macros that they have seen are the same: those of fmt everywhere.
  target_link_libraries(${name} PUBLIC ${ARG_LINK} fmt::fmt MLIR LLVM)
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED DtcCompilerHeaders)
  endif()
  dtc_use_precompiled_headers(${name} ${ARG_PRECOMPILED})
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
  # The file includes others of its folder.
  file(GLOB_RECURSE included CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.td")
  add_custom_command(
    OUTPUT "${out}"
    COMMAND "${CMAKE_COMMAND}" -E make_directory "${PROJECT_BINARY_DIR}/docs/generated"
    COMMAND mlir-tblgen ${ARGN} -I "${PROJECT_SOURCE_DIR}" -I "${MLIR_INCLUDE_DIRS}" "${CMAKE_CURRENT_SOURCE_DIR}/${td}"
            -o "${out}"
    DEPENDS ${included}
    VERBATIM)
  add_custom_target(doc-${name} DEPENDS "${out}")
  add_dependencies(docs doc-${name})
endfunction()
