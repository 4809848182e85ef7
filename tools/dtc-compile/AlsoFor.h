//===- AlsoFor.h - Plans for fewer devices ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TOOLS_DTC_COMPILE_ALSOFOR_H
#define DTC_TOOLS_DTC_COMPILE_ALSOFOR_H

#include "compiler/driver/CompileOptions.h"
#include "support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc {

/// "devices=6,4": the numbers, as they are given.
Expected<std::vector<int64_t>> parseAlsoFor(const std::string &text);

/// The mesh with a smaller data axis, dp or else fsdp, so that it has `devices` devices. The error
/// names the possible numbers.
Expected<MeshSizes> meshForFewer(const MeshSizes &mesh, int64_t devices);

} // namespace dtc

#endif // DTC_TOOLS_DTC_COMPILE_ALSOFOR_H
