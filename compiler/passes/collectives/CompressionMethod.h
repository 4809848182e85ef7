//===- CompressionMethod.h - How sums of gradients are compressed ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSIONMETHOD_H
#define DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSIONMETHOD_H

#include "support/EnumNames.h"

#include <array>
#include <cstdint>
#include <string>

namespace dtc {

/// The form in which a gradient travels: integers with a scale for each block of elements, the
/// largest elements of each block, or two factors of low rank.
enum class CompressionMethod : int { Int8 = 1, Int4 = 2, TopK = 3, PowerSgd = 4 };
template <> struct EnumNames<CompressionMethod> {
  static constexpr std::array list = {"int8", "int4", "topk", "powersgd"};
};

/// Whether elements travel as integers.
constexpr bool quantizes(CompressionMethod method) {
  return method == CompressionMethod::Int8 || method == CompressionMethod::Int4;
}

/// How an element becomes an integer.
enum class Rounding : int { Nearest = 1, Stochastic = 2 };
template <> struct EnumNames<Rounding> {
  static constexpr std::array list = {"nearest", "stochastic"};
};

/// The largest rank of factors: orthonormalization has ops for each column of a factor.
inline constexpr int64_t kMaxCompressionRank = 64;

/// The beginning of the names of states that are factors. A factor starts with numbers that are
/// even on [-1, 1): from zeros it would stay zero.
inline constexpr char kFactorStateName[] = "powersgd_factor";

/// The elements of a block where none are given.
constexpr int64_t defaultBlock(CompressionMethod method) {
  return method == CompressionMethod::TopK ? 1024 : 256;
}

/// How sums of gradients over an axis are compressed: the options of dtc-compress-gradients.
struct CompressionSettings {
  std::string axis;
  CompressionMethod method = CompressionMethod::Int8;
  Rounding rounding = Rounding::Nearest; ///< of integers
  int64_t block = 256;                   ///< elements of a block, of integers or of top-k
  double share = 0.01;                   ///< of the elements of a block that travel, of top-k
  int64_t rank = 4;                      ///< columns of the factors of PowerSGD
  bool feedback = false;
};

} // namespace dtc

#endif // DTC_COMPILER_PASSES_COLLECTIVES_COMPRESSIONMETHOD_H
