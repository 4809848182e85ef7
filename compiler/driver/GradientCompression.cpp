//===- GradientCompression.cpp - The option --compress --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/driver/GradientCompression.h"

#include "support/MeshAxes.h"
#include "support/QuantizedBlocks.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <fmt/format.h>

using namespace dtc;
using llvm::StringRef;

/// The axes of data parallelism, "dp, fsdp".
static std::vector<std::string> dataAxes() {
  std::vector<std::string> names;
  for (const MeshAxisInfo &axis : meshAxes())
    if (axis.splitsBatchOfExperts)
      names.emplace_back(axis.name);
  return names;
}

/// Reads a setting such as "block=64".
static MaybeError parseSetting(StringRef text, GradientCompression &compression) {
  auto [key, value] = text.split('=');
  if (key == "block") {
    if (!value.getAsInteger(10, compression.block) && compression.block >= 1 &&
        compression.block <= kMaxQuantizedBlock)
      return std::nullopt;
    return Error{fmt::format("block is \"{}\", expected a number of elements from 1 to {}",
                             value.str(), kMaxQuantizedBlock)};
  }
  if (key == "feedback") {
    compression.feedback = value == "on";
    if (value == "on" || value == "off")
      return std::nullopt;
    return Error{fmt::format("feedback is \"{}\", expected on or off", value.str())};
  }
  return Error{fmt::format("\"{}\" is no setting, expected block=N or feedback=on", text.str())};
}

Expected<GradientCompression> dtc::parseGradientCompression(StringRef text) {
  auto [target, settings] = text.split(':');
  auto [axis, method] = target.split('=');
  GradientCompression compression{.axis = axis.str()};
  if (!llvm::is_contained(dataAxes(), axis))
    return Error{fmt::format("\"{}\" is no axis of data parallelism, expected one of {}",
                             axis.str(), llvm::join(dataAxes(), ", "))};
  if (method == "int8" || method == "int4")
    compression.bits = method == "int8" ? 8 : 4;
  else
    return Error{fmt::format("the method is \"{}\", expected one of int8, int4", method.str())};
  if (target.size() == text.size())
    return compression;
  llvm::SmallVector<StringRef> parts;
  settings.split(parts, ',');
  for (StringRef part : parts)
    if (MaybeError error = parseSetting(part, compression))
      return *error;
  return compression;
}
