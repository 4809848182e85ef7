//===- TokenFile.h - Files that are one long sequence of tokens -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_TOKENFILE_H
#define DTC_RUNTIME_DATA_TOKENFILE_H

#include "support/InputFile.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// A file of tokens, whose width its name tells: * *.bin: 16 bits each, as nanoGPT writes them, or
/// what llm.c's header says, 16 or 32; * *.u32: 32 bits each, for vocabularies of more than 65,536;
/// * any other file: each byte is a token. Tokens are unsigned and little-endian. A file that is of
/// another program by its first bytes (see FileFormat.h) is refused, whatever its name.
class TokenFile {
public:
  /// The error begins with the path.
  static Expected<TokenFile> open(const std::string &path);

  const std::string &path() const { return file.path(); }
  const InputFile &input() const { return file; }
  /// At least one.
  uint64_t size() const { return tokenCount; }
  /// Reads the tokens from a position on, as many as `out` has, all of them below size(). The error
  /// begins with the path.
  MaybeError read(uint64_t position, std::span<int32_t> out) const;
  /// The bits of a token in the file: 8, 16 or 32.
  int tokenBits() const { return static_cast<int>(8 * tokenBytes); }
  /// All tokens that the format can hold are below it.
  int64_t tokenLimit() const { return int64_t{1} << 8 * tokenBytes; }
  /// Finds out whether the numbers of a file without a header are wider than its name says: 32 or
  /// 64 bits in a file of 16, 64 bits in one of 32. `vocabulary` is how many tokens there are, 0 if
  /// that is not known. The error begins with the path.
  MaybeError checkWidth(int64_t vocabulary) const;
  bool isText() const { return tokenBytes == 1; }
  /// A note on a text that a person may not have meant as one: that it is JSON, or no text. Empty
  /// where there is nothing to say; it does not name the file.
  Expected<std::string> noteOnText() const;
  /// "16-bit tokens (llm.c)", "bytes of text".
  std::string_view formatName() const { return format; }

private:
  explicit TokenFile(InputFile file) : file(std::move(file)) {}
  /// `header`: the first bytes of the file, zeros where it has fewer.
  MaybeError readLayout(const std::array<int32_t, 3> &header);

  InputFile file;
  const char *format = "bytes of text";
  size_t dataBegin = 0;    // bytes
  size_t tokenBytes = 1;   // 1, 2 or 4
  bool mayBeWider = false; // the width of several bytes is told by the name alone
  uint64_t tokenCount = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_TOKENFILE_H
