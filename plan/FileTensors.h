//===- FileTensors.h - Parameters and tensors of weights files ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A parameter is a tensor of its name in weights files, or some rows of one, which its name says:
// "qkv_proj.weight[16:24]" is rows 16 to 23 of "qkv_proj.weight". A model has all rows of such a
// tensor. So a weight that files have as one tensor can be several parameters, each with a sharding
// of its own.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_FILETENSORS_H
#define DTC_PLAN_FILETENSORS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtc {

/// Rows [begin, end) of a tensor of weights files.
struct FileRows {
  std::string_view tensor;
  int64_t begin = 0, end = 0;

  /// The name of the parameter.
  std::string name() const {
    return std::string(tensor) + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]";
  }
};

/// The rows that the name of a parameter stands for; nullopt if it is a tensor of its own.
std::optional<FileRows> fileRowsOf(std::string_view parameter);

/// The name of the tensor of weights files that has a parameter.
inline std::string fileTensorOf(std::string_view parameter) {
  std::optional<FileRows> rows = fileRowsOf(parameter);
  return std::string(rows ? rows->tensor : parameter);
}

} // namespace dtc

#endif // DTC_PLAN_FILETENSORS_H
