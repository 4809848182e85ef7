//===- TokenFile.h - Files that are one long sequence of tokens -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENFILE_H
#define DTC_RUNTIME_DATA_TOKENFILE_H

#include "runtime/support/MappedFile.h"

#include <cstdint>
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
  /// The token at a position below size().
  int32_t operator[](uint64_t position) const;
  bool isText() const { return tokenBytes == 1; }
  /// "input.txt: 1115394 bytes of text".
  std::string describe() const;

private:
  explicit TokenFile(MappedFile file) : file(std::move(file)) {}
  MaybeError readLayout();

  MappedFile file;
  const char *format = "bytes of text";
  size_t dataBegin = 0;  // bytes
  size_t tokenBytes = 1; // 1 or 2
  uint64_t tokenCount = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENFILE_H
