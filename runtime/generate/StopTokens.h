//===- StopTokens.h - The tokens that end a text of a model ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_GENERATE_STOPTOKENS_H
#define DTC_RUNTIME_GENERATE_STOPTOKENS_H

#include "support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The tokens that end a text, and the file that says so.
struct ModelStopTokens {
  std::string path; // empty: no file does
  std::vector<int32_t> tokens;
};

/// The eos_token_id, one token or several, of the generation_config.json in the folder that weights
/// come from, or else of its config.json. `weightsPath` is one of WeightsFileShards; a single
/// .safetensors file says nothing. The error names the file and the field.
Expected<ModelStopTokens> findStopTokens(const std::string &weightsPath);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_GENERATE_STOPTOKENS_H
