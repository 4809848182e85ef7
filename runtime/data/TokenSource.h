//===- TokenSource.h - Batches from text and token files ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENSOURCE_H
#define DTC_RUNTIME_DATA_TOKENSOURCE_H

#include "runtime/data/DataSource.h"
#include "runtime/data/DocumentFile.h"
#include "runtime/data/FilePartition.h"
#include "runtime/data/TokenFile.h"

namespace dtc::runtime {

/// Files that are long sequences of tokens. A sample is a window of one of them: the tokens of a
/// sequence, and the one after them. Where the plan has inputs for packed documents, those of a
/// window are told apart: its "segments" count its documents from 0, "positions" the tokens of each
/// from 0, and a token whose next one begins a document has the label that does not count. A
/// document that began before the window counts from there.
class TokenSource final : public DataSource {
public:
  static Expected<std::unique_ptr<DataSource>>
  open(const std::vector<std::string> &paths, std::vector<DataInput> inputs, DataOptions options);

  MaybeError check(const Progress &progress) const override;
  Expected<std::string> fingerprint() const override;
  std::string describe() const override;
  Expected<std::vector<std::string>> notes() const override;

private:
  TokenSource(std::vector<DataInput> inputs, DataOptions options)
      : DataSource(std::move(inputs), options) {}
  /// The error does not name a file.
  MaybeError checkInputs();
  MaybeError add(TokenFile file);
  MaybeError checkTokens(const TokenFile &file,
                         const std::function<bool(uint64_t done)> &report) const;

  uint64_t numSamples() const override { return places.total(); }
  uint64_t numDisjoint() const override { return windows.total(); }
  uint64_t disjointSample(uint64_t index) const override;
  MaybeError readSample(const DataInput &input, uint64_t sample, std::byte *out) const override;
  MaybeError readPacked(const DataInput &input, size_t file, uint64_t position,
                        std::span<int32_t> values) const;

  const DataInput *findInput(const char *name) const;
  bool isOutOfRange(uint32_t token) const;

  bool isPacked = false;
  std::vector<TokenFile> files;
  std::vector<DocumentFile> documents; // of each file, where documents are packed
  int64_t length = 0;                  // of a sequence
  FilePartition places;                // where a sequence can begin
  FilePartition windows; // sequences one after the other; only the token after one is in two
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENSOURCE_H
