//===- TokenSource.h - Batches from text and token files ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENSOURCE_H
#define DTC_RUNTIME_DATA_TOKENSOURCE_H

#include "runtime/data/DataSource.h"
#include "runtime/support/MappedFile.h"

namespace dtc::runtime {

/// A file that is one long sequence of tokens. A sample is a window at a random place.
class TokenSource final : public DataSource {
public:
  static Expected<std::unique_ptr<DataSource>> open(const std::string &path,
                                                    std::vector<DataInput> inputs, uint64_t seed);

  Expected<std::map<std::string, HostTensor>> batch(int64_t step) const override;
  std::string describe() const override;

private:
  TokenSource(MappedFile file, uint64_t seed) : file(std::move(file)), seed(seed) {}
  MaybeError readLayout();
  MaybeError bindInputs(std::vector<DataInput> inputs);
  int32_t tokenAt(uint64_t position) const;
  /// Copies tokens [position, position + count) to `out`, after a check against the input's limit.
  MaybeError copyTokens(const DataInput &input, uint64_t position, int64_t count,
                        int32_t *out) const;

  MappedFile file;
  uint64_t seed;
  const char *format = "bytes of text";
  size_t dataBegin = 0;  // bytes
  size_t tokenBytes = 1; // 1 or 2
  uint64_t tokenCount = 0;
  DataInput tokens;
  std::optional<DataInput> labels;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENSOURCE_H
