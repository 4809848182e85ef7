//===- FileTensors.h - Parameters and tensors of weights files ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A parameter is a tensor of its name in weights files, some rows of one, or several of them. Its
// name says so:
//  - "qkv_proj.weight[16:24]" is rows 16 to 23 of "qkv_proj.weight". A model has all rows of such a
//    tensor. So a weight that files have as one tensor can be several parameters, each with a
//    sharding of its own.
//  - "experts.gate_up_proj[:,0:20]" is elements 0 to 19 along the second dimension, as a slice of
//    NumPy is written.
//  - "experts[0:8].up_proj.weight" is a stack of the tensors "experts.0.up_proj.weight" to
//    "experts.7.up_proj.weight": element i of its first dimension is tensor i.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_FILETENSORS_H
#define DTC_PLAN_FILETENSORS_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dtc {

/// Rows [begin, end) of a tensor of weights files: the elements of that range along a dimension.
struct FileRows {
  std::string_view tensor;
  int64_t begin = 0, end = 0;
  int64_t dim = 0;

  /// The name of the parameter.
  std::string name() const {
    std::string places;
    for (int64_t before = 0; before < dim; ++before)
      places += ":,";
    return std::string(tensor) + "[" + places + std::to_string(begin) + ":" + std::to_string(end) +
           "]";
  }
};

/// Tensors [begin, end) of weights files, which differ in a number in their names.
struct FileStack {
  std::string before; ///< the number: "layers.3.mlp.experts"
  int64_t begin = 0, end = 0;
  std::string after; ///< the number: "up_proj.weight"

  /// The name of the parameter.
  std::string name() const {
    return before + "[" + std::to_string(begin) + ":" + std::to_string(end) + "]." + after;
  }
  /// The name of tensor `number`, from begin to end - 1.
  std::string tensor(int64_t number) const {
    return before + "." + std::to_string(number) + "." + after;
  }
};

/// The tensors that the name of a parameter stands for; nullopt if it is no stack.
std::optional<FileStack> fileStackOf(std::string_view parameter);

/// The rows that the name of a parameter stands for; nullopt if it is a tensor of its own.
std::optional<FileRows> fileRowsOf(std::string_view parameter);

/// The names of the tensors of weights files that have a parameter: those of a stack, otherwise
/// one.
std::vector<std::string> fileTensorNames(std::string_view parameter);

} // namespace dtc

#endif // DTC_PLAN_FILETENSORS_H
