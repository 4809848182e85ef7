//===- TokenFile.h - Files that are one long sequence of tokens -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENFILE_H
#define DTC_RUNTIME_DATA_TOKENFILE_H

#include "runtime/support/InputFile.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace dtc::runtime {

/// A file of tokens: 16 bits each if it is named *.bin, with llm.c's header or (as nanoGPT writes
/// them) without one; of any other file each byte is a token.
class TokenFile {
public:
  /// The error begins with the path.
  static Expected<TokenFile> open(const std::string &path);

  const std::string &path() const { return file.path(); }
  /// At least one.
  uint64_t size() const { return tokenCount; }
  /// Reads the tokens from a position on, as many as `out` has, all of them below size(). The error
  /// begins with the path.
  MaybeError read(uint64_t position, std::span<int32_t> out) const;
  /// All tokens that the format can hold are below it.
  int64_t tokenLimit() const { return int64_t{1} << 8 * tokenBytes; }
  bool isText() const { return tokenBytes == 1; }
  /// "input.txt: 1115394 bytes of text".
  std::string describe() const;

private:
  explicit TokenFile(InputFile file) : file(std::move(file)) {}
  /// `header`: the first bytes of the file, zeros where it has fewer.
  MaybeError readLayout(const std::array<int32_t, 3> &header);

  InputFile file;
  const char *format = "bytes of text";
  size_t dataBegin = 0;  // bytes
  size_t tokenBytes = 1; // 1 or 2
  uint64_t tokenCount = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENFILE_H
