//===- Weights.h - Parameters from and to files ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_WEIGHTS_H
#define DTC_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/executor/Session.h"
#include "runtime/support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// Sets every parameter from a safetensors file, and its master weights if it has them: these are
/// read, and the parameter is what they round to. A name that the file does not have is also looked
/// for with a leading "transformer." or "model." added or taken away, if only one tensor of the
/// file fits; a missing "lm_head.weight" is the token embedding (tied weights). Returns notes for
/// the user: tensors that were not used, names that were not exact. The error names file and
/// tensor.
Expected<std::vector<std::string>> loadWeights(Session &session, const std::string &path);

/// Writes every parameter, under its own name and with its file_shape: the master weights where it
/// has them.
MaybeError saveWeights(const Session &session, const std::string &path);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_WEIGHTS_H
