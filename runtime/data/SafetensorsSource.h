//===- SafetensorsSource.h - Batches from named tensors -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H
#define DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H

#include "runtime/data/DataSource.h"
#include "runtime/data/Safetensors.h"

namespace dtc::runtime {

/// A file with a tensor for each input. The first dimension counts the samples; a sample of a batch
/// is the same row of all tensors.
class SafetensorsSource final : public DataSource {
public:
  static Expected<std::unique_ptr<DataSource>> open(const std::string &path,
                                                    std::vector<DataInput> inputs, uint64_t seed);

  Expected<std::map<std::string, HostTensor>> batch(int64_t step) const override;
  int64_t sequentialBatches() const override;
  Expected<std::map<std::string, HostTensor>> sequentialBatch(int64_t index) const override;
  MaybeError check(const Progress &progress) const override;
  Expected<std::string> fingerprint() const override;
  std::string describe() const override;

private:
  /// A batch whose sample i is row rowOf(i) of the file.
  Expected<std::map<std::string, HostTensor>>
  batchOf(const std::function<int64_t(int64_t)> &rowOf) const;
  SafetensorsSource(SafetensorsFile file, std::vector<DataInput> inputs, uint64_t seed)
      : file(std::move(file)), inputs(std::move(inputs)), seed(seed) {}
  MaybeError bindInputs();
  MaybeError checkIndices(const DataInput &input, int64_t row, const int32_t *values,
                          int64_t count) const;

  SafetensorsFile file;
  std::vector<DataInput> inputs;
  uint64_t seed;
  int64_t sampleCount = 0; // in the file
  int64_t batchSize = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_SAFETENSORSSOURCE_H
