//===- Weights.h - Reading parameters -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_WEIGHTS_H
#define DTC_RUNTIME_TRAIN_WEIGHTS_H

#include "runtime/data/WeightsFileShards.h"
#include "runtime/executor/Session.h"
#include "support/Error.h"

#include <string>
#include <vector>

namespace dtc::runtime {

/// Sets every parameter from safetensors files, and its master weights if it has them: these are
/// read, and rounded to the parameter. A path is one of those of WeightsFileShards.
/// Where several have a parameter's tensor, the last of them holds. A name that a file does not
/// have is also looked for with a leading "transformer." or "model." added or taken away, if only
/// one tensor of the file fits; an "lm_head.weight" that is in no file is the token embedding (tied
/// weights). Adapters keep their values if no file has any of them. Returns notes for the user:
/// tensors that were not used, names that were not exact, adapters that were kept or multiplied.
/// The error names file and tensor.
///
/// Where PEFT's adapter_config.json multiplies an adapter by another number than the plan does,
/// the values for its lora_B are multiplied by the ratio, so that the adapter adds the same to its
/// layer. A file of adapters with some that the model lacks is an error, unless
/// `allowUnusedAdapters`.
Expected<std::vector<std::string>> loadWeights(Session &session,
                                               const std::vector<std::string> &paths,
                                               bool allowUnusedAdapters = false);
inline Expected<std::vector<std::string>> loadWeights(Session &session, const std::string &path) {
  return loadWeights(session, std::vector<std::string>{path});
}
/// The same from weights that are open, or in memory.
Expected<std::vector<std::string>> loadWeights(Session &session, WeightsFileShards weights);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_WEIGHTS_H
