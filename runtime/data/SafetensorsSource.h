//===- SafetensorsSource.h - Batches from named tensors -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H
#define DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H

#include "runtime/data/DataSource.h"
#include "runtime/data/FilePartition.h"
#include "runtime/data/Safetensors.h"

namespace dtc::runtime {

/// Files with a tensor for each input. The first dimension counts the samples; a sample of a batch
/// is the same row of all tensors of a file. Labels do not count where a mask beside them is 0; see
/// TokenMasks.h.
class SafetensorsSource final : public DataSource {
public:
  static Expected<std::unique_ptr<DataSource>>
  open(const std::vector<std::string> &paths, std::vector<DataInput> inputs, DataOptions options);

  MaybeError check(const Progress &progress) const override;
  Expected<std::string> fingerprint() const override;
  std::string describe() const override;
  Expected<std::vector<std::string>> notes() const override;

private:
  SafetensorsSource(std::vector<DataInput> inputs, DataOptions options)
      : DataSource(std::move(inputs), options) {}
  /// These errors do not name the file.
  MaybeError checkInputs();
  Expected<int64_t> samplesOf(const SafetensorsFile &file) const;
  MaybeError checkTensor(const SafetensorsFile &file, const DataInput &input) const;

  MaybeError readRows(const SafetensorsFile &file, const DataInput &input, int64_t row,
                      int64_t rows, std::byte *out) const;
  MaybeError checkRows(const SafetensorsFile &file, const DataInput &input,
                       const std::function<bool(uint64_t)> &goesOn) const;
  MaybeError checkIndices(const SafetensorsFile &file, const DataInput &input, int64_t row,
                          const int32_t *values, int64_t count) const;

  std::string listFiles() const;
  std::optional<std::string> describeMasks() const;

  uint64_t numSamples() const override { return samples.total(); }
  uint64_t numDisjoint() const override { return samples.total(); }
  uint64_t disjointSample(uint64_t index) const override { return index; }
  MaybeError readSample(const DataInput &input, uint64_t sample, std::byte *out) const override;

  std::vector<SafetensorsFile> files;
  FilePartition samples;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H
