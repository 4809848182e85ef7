//===- ElementConversion.h - From a file's element types ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_ELEMENTCONVERSION_H
#define DTC_RUNTIME_DATA_ELEMENTCONVERSION_H

#include "support/Error.h"
#include "support/Tensor.h"

#include <cstddef>
#include <span>
#include <string>

namespace dtc::runtime {

/// Bytes of an element of a safetensors dtype ("F32", "BF16"), 0 if there is no such dtype.
size_t fileElementWidth(const std::string &fileDtype);

/// Converts little-endian elements of `fileDtype` to `dtype`; floats are rounded to the nearest,
/// ties to even. An error says which conversion there is not, or which value does not fit; `first`
/// is the number of the first element, for the message.
MaybeError convertElements(const std::string &fileDtype, std::span<const std::byte> source,
                           int64_t first, DType dtype, std::byte *out);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_ELEMENTCONVERSION_H
