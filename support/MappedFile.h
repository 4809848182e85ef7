//===- MappedFile.h - A file's bytes --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_MAPPEDFILE_H
#define DTC_SUPPORT_MAPPEDFILE_H

#include "support/Error.h"

#include <cstddef>
#include <span>
#include <string>

namespace dtc {

/// A regular file mapped for reading. The file must not shrink while it is mapped.
class MappedFile {
public:
  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  /// Maps the file; an empty file gives an empty span. The error begins with the path.
  static Expected<MappedFile> open(const std::string &path);

  std::span<const std::byte> bytes() const { return {begin, length}; }
  const std::string &path() const { return filePath; }

private:
  MappedFile() = default;

  std::string filePath;
  const std::byte *begin = nullptr;
  size_t length = 0;
};

} // namespace dtc

#endif // DTC_SUPPORT_MAPPEDFILE_H
