//===- InputFile.h - Reading of files in parts ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_INPUTFILE_H
#define DTC_SUPPORT_INPUTFILE_H

#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dtc {

/// A regular file that stays open, and may be larger than memory. It is read and not mapped: a
/// mapping of a file that becomes shorter ends the process.
class InputFile {
public:
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&other) noexcept;
  InputFile(const InputFile &) = delete;
  InputFile &operator=(const InputFile &) = delete;
  ~InputFile();

  /// The error begins with the path.
  static Expected<InputFile> open(const std::string &path);

  const std::string &path() const { return filePath; }
  /// The bytes that it had when it was opened.
  uint64_t size() const { return bytes; }

  /// Reads the bytes from `offset` on until `out` is full; all of them lie below size(). An error
  /// begins with the path; one is that the file has become shorter since it was opened.
  MaybeError read(uint64_t offset, std::span<std::byte> out) const;

private:
  InputFile() = default;

  std::string filePath;
  uint64_t bytes = 0;
  int fd = -1;
};

} // namespace dtc

#endif // DTC_SUPPORT_INPUTFILE_H
