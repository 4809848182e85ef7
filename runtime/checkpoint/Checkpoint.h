//===- Checkpoint.h - Reading a checkpoint --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKPOINT_H
#define DTC_RUNTIME_CHECKPOINT_CHECKPOINT_H

#include "runtime/checkpoint/Manifest.h"
#include "runtime/data/Safetensors.h"
#include "support/Error.h"
#include "support/Tensor.h"

#include <string>
#include <vector>

namespace dtc::runtime {

inline constexpr const char *kManifestName = "manifest.json";

/// A checkpoint that is open: its manifest has been read, and its files have the sizes, headers and
/// tensors that the manifest names. All errors begin with the path of the folder or of a file in
/// it, and say what is damaged or missing.
class Checkpoint {
public:
  static Expected<Checkpoint> open(const std::string &folder);

  const std::string &path() const { return folder; }
  const CheckpointManifest &manifest() const { return content; }

  /// A whole tensor in the element type of the file. An error if it is not what was written.
  Expected<HostTensor> read(const std::string &name) const;
  /// Reads all tensors.
  MaybeError verify() const;

private:
  Checkpoint(std::string folder, CheckpointManifest content)
      : folder(std::move(folder)), content(std::move(content)) {}
  MaybeError openFile(const CheckpointFile &file);

  std::string folder;
  CheckpointManifest content;
  std::vector<SafetensorsFile> files;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKPOINT_H
