//===- TokenMasks.h - Masks of tokens beside the tokens -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Collators of transformers and Megatron write `attention_mask` and `loss_mask` beside tokens and
// labels: 1 for a token that counts, 0 for one that does not, in the shape of the labels.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENMASKS_H
#define DTC_RUNTIME_DATA_TOKENMASKS_H

#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"

#include <span>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The masks of a file that belong to an input, [samples, ...]: those of the names above that have
/// the shape of the input's tensor. None, if no element of the input can be ignored. A mask that is
/// one of the inputs says what the model makes of it.
std::vector<std::string> masksOf(const SafetensorsFile &file, const DataInput &input,
                                 std::span<const DataInput> inputs);

/// Writes the ignored index over elements [begin, begin + out.size()) of an input's tensor where
/// one of its masks is 0. The error names the file, the mask and the element if one is neither 0
/// nor 1.
MaybeError applyMasks(const SafetensorsFile &file, const DataInput &input,
                      std::span<const DataInput> inputs, int64_t begin, std::span<int32_t> out);

/// Whether a file that lacks the input has it as its attention_mask: the segments and positions of
/// a model that keeps documents apart (dtc-import --packed).
bool isFromAttentionMask(const SafetensorsFile &file, const DataInput &input);

/// Elements [begin, begin + out.size()) of that input: segments are 0, and -1 for masked tokens,
/// which no other token attends to; positions count all tokens of a sample, as transformers does.
MaybeError readFromAttentionMask(const SafetensorsFile &file, const DataInput &input, int64_t begin,
                                 std::span<int32_t> out);

/// The name of the mask of tokens that attention leaves out.
inline constexpr const char *kAttentionMask = "attention_mask";

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENMASKS_H
