//===- CheckpointListing.cpp - Listing of a folder of checkpoints ---------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/CheckpointListing.h"

#include "runtime/checkpoint/CheckpointFolder.h"
#include "support/Format.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

Expected<std::string> listCheckpoints(const std::string &folder, bool asJson) {
  Expected<std::vector<int64_t>> steps = checkpointSteps(folder);
  if (!steps)
    return steps.error();
  if (steps->empty())
    return Error{fmt::format("{}: has no checkpoints; expected a folder that dtc-run --checkpoint "
                             "has written",
                             folder)};
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string table = fmt::format("{:>10} {:>8} {:>12}  {}\n", "step", "tensors", "bytes", "state");
  for (int64_t step : *steps) {
    std::string path = folder + "/" + checkpointName(step);
    Expected<Checkpoint> checkpoint = Checkpoint::open(path);
    MaybeError error = checkpoint ? checkpoint->verify() : checkpoint.error();
    nlohmann::ordered_json entry = {{"step", step}, {"path", path}, {"verified", !error}};
    std::string tensors = "-", bytes = "-";
    if (checkpoint) {
      const CheckpointManifest &manifest = checkpoint->manifest();
      tensors = fmt::format("{}", manifest.tensors.size());
      bytes = formatBytes(manifest.numBytes());
      entry["tensors"] = manifest.tensors.size();
      entry["bytes"] = manifest.numBytes();
      entry["model"] = manifest.model;
    }
    if (error)
      entry["error"] = error->message;
    table += fmt::format("{:>10} {:>8} {:>12}  {}\n", step, tensors, bytes,
                         error ? "refused: " + error->message : "verified");
    list.push_back(std::move(entry));
  }
  if (!asJson)
    return table;
  return nlohmann::ordered_json{{"checkpoints", list}}.dump(
             2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

} // namespace dtc::runtime
