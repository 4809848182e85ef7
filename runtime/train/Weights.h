//===- Weights.h - Parameters from and to files ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_WEIGHTS_H
#define DTC_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/executor/Session.h"
#include "runtime/support/Error.h"

#include <functional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// Sets every parameter from safetensors files, and its master weights if it has them: these are
/// read, and the parameter is what they round to. Where several files have a parameter's tensor,
/// the last of them holds. A name that a file does not have is also looked for with a leading
/// "transformer." or "model." added or taken away, if only one tensor of the file fits; an
/// "lm_head.weight" that is in no file is the token embedding (tied weights). Adapters of which no
/// file has one keep their values. Returns notes for the user: tensors that were not used, names
/// that were not exact, adapters that were kept. The error names file and tensor.
Expected<std::vector<std::string>> loadWeights(Session &session,
                                               const std::vector<std::string> &paths);
inline Expected<std::vector<std::string>> loadWeights(Session &session, const std::string &path) {
  return loadWeights(session, std::vector<std::string>{path});
}

/// Writes every parameter, under its own name and with its file_shape: the master weights where it
/// has them. With `isSaved`, only those for whose names that is true.
MaybeError saveWeights(const Session &session, const std::string &path,
                       const std::function<bool(const std::string &)> &isSaved = nullptr);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_WEIGHTS_H
