//===- DocumentFile.h - Document boundaries of token files ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_DOCUMENTFILE_H
#define DTC_RUNTIME_DATA_DOCUMENTFILE_H

#include "support/InputFile.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The file NAME.documents beside a token file NAME, as dtc-data writes it: of each document the
/// position of its first token, and at the end the number of all tokens, as unsigned 64-bit
/// little-endian numbers that do not decrease.
class DocumentFile {
public:
  /// Opens the file of a token file with `tokens` tokens. The error begins with the path.
  static Expected<DocumentFile> open(const std::string &tokensPath, uint64_t tokens);

  const std::string &path() const { return file.path(); }
  const InputFile &input() const { return file; }
  uint64_t documents() const { return file.size() / kBytes - 1; }

  /// The positions in (begin, end) at which a document begins, ascending, each once; end is at most
  /// the number of tokens. The error begins with the path.
  Expected<std::vector<uint64_t>> beginsWithin(uint64_t begin, uint64_t end) const;

  /// Looks at all positions, for what beginsWithin() would find wrong with any of them. It goes on
  /// while `progress`, which is told how many it has looked at, returns true. The error begins with
  /// the path.
  MaybeError check(const std::function<bool(uint64_t done)> &progress) const;

private:
  static constexpr uint64_t kBytes = sizeof(uint64_t);

  DocumentFile(InputFile file, uint64_t tokens) : file(std::move(file)), tokens(tokens) {}
  MaybeError checkEnds() const;
  MaybeError read(uint64_t index, std::span<uint64_t> out) const;
  /// Whether a document may begin at `at` after one at `before`.
  MaybeError checkOrder(uint64_t before, uint64_t at) const;
  /// The first entry above `position`; there is one unless the file is damaged.
  Expected<uint64_t> findAfter(uint64_t position) const;

  InputFile file;
  uint64_t tokens;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_DOCUMENTFILE_H
