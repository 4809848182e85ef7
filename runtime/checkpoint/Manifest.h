//===- Manifest.h - The manifest of a checkpoint --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_MANIFEST_H
#define DTC_RUNTIME_CHECKPOINT_MANIFEST_H

#include "support/Error.h"
#include "support/Tensor.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace dtc::runtime {

/// Increment when an older reader could misread a checkpoint. Until version 2 the loss scale and
/// the counters of steps were in the manifest; they are tensors now.
inline constexpr int64_t kCheckpointVersion = 3;

/// The properties of a run that must not change unnoticed from one part of it to the next.
struct RunIdentity {
  uint64_t seed = 0;
  int64_t samples = 0;  // of a batch
  int64_t batches = 1;  // of a step
  int64_t sequence = 0; // tokens of a sample; 0 where the inputs are no tokens
  /// The optimizer's kernels with their settings, and the parameters that each updates.
  std::map<std::string, std::set<std::string>> optimizer = {};
  std::string data = {};     // the fingerprint of the data set; empty without one
  std::string model = {};    // a checksum of the names and shapes of the parameters, adapters aside
  std::string adapters = {}; // a checksum of those of the adapters; empty without any
  // Empty where the plan does not say it, and in a checkpoint of a dtc that did not save it:
  std::string operations = {};     // plan::Plan::model_fingerprint
  std::string updateSettings = {}; // plan::Plan::update_settings
};

/// Where a run is in its training. Beside the states, the step state among them, this is all that
/// the next step needs.
struct RunPosition {
  int64_t step = 0; // the last one that is done, skipped ones included
  int64_t skippedInARow = 0;
  int64_t lastFiniteStep = 0;
  int64_t nextBatch = 0; // the number of the first batch that no step has had, from 0
  /// The last step with an earlier schedule of outer steps: see OuterSteps::forgetUntil(). 0: none.
  int64_t outerForgotten = 0;
};

/// A box of a tensor that one writer has written, with the checksum of its elements in row-major
/// order. `shape` is that of the tensor or of a reshape of it.
struct CheckpointRegion {
  std::vector<int64_t> shape, offset, size;
  std::string checksum;

  bool operator==(const CheckpointRegion &) const = default;
};

struct CheckpointTensor {
  size_t file = 0; // in CheckpointManifest::files
  TensorType type;
  std::string parameter; // of optimizer state: the parameter that it belongs to; else empty
  bool isStepState = false;
  /// Disjoint, and together the whole tensor.
  std::vector<CheckpointRegion> regions;
};

struct CheckpointFile {
  std::string name;
  uint64_t bytes = 0;
  std::string headerChecksum; // of all bytes before the tensors
};

/// manifest.json.
struct CheckpointManifest {
  RunIdentity identity;
  RunPosition position;
  std::string learningRate; // the schedule, for people
  std::string model;        // for people
  std::string producer;     // "dtc 0.1.0"
  std::string planProducer; // "dtc-compile 0.1.0"
  uint32_t planVersion = 0;
  std::vector<CheckpointFile> files;
  std::map<std::string, CheckpointTensor> tensors;

  /// The bytes of all files but the manifest.
  uint64_t numBytes() const;
};

/// JSON with a checksum of itself.
std::string toJson(const CheckpointManifest &manifest);
/// The error says what is wrong with the text: damage, another format, another version.
Expected<CheckpointManifest> parseManifest(std::string_view text);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_MANIFEST_H
