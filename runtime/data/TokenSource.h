//===- TokenSource.h - Batches from text and token files ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENSOURCE_H
#define DTC_RUNTIME_DATA_TOKENSOURCE_H

#include "runtime/data/DataSource.h"
#include "runtime/data/TokenFile.h"

#include <functional>

namespace dtc::runtime {

/// A file that is one long sequence of tokens. A sample is a window at a random place.
class TokenSource final : public DataSource {
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
  /// A batch whose sample i begins at positionOf(i).
  Expected<std::map<std::string, HostTensor>>
  batchAt(const std::function<uint64_t(int64_t)> &positionOf) const;
  TokenSource(TokenFile file, uint64_t seed) : file(std::move(file)), seed(seed) {}
  MaybeError bindInputs(std::vector<DataInput> inputs);
  /// Reads tokens from a position on, which must be below the input's limit.
  MaybeError readTokens(const DataInput &input, uint64_t position, std::span<int32_t> out) const;
  MaybeError checkLimit(const DataInput &input, uint64_t position,
                        std::span<const int32_t> values) const;

  TokenFile file;
  uint64_t seed;
  DataInput tokens;
  std::optional<DataInput> labels;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENSOURCE_H
