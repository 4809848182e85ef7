//===- PositionedFile.h - Files that are written in any order -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_POSITIONEDFILE_H
#define DTC_RUNTIME_CHECKPOINT_POSITIONEDFILE_H

#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace dtc::runtime {

/// A new file of a size that is known, written at any offsets, by one writer or several. All errors
/// begin with its path.
class PositionedFile {
public:
  PositionedFile(PositionedFile &&other) noexcept;
  PositionedFile &operator=(PositionedFile &&other) noexcept;
  PositionedFile(const PositionedFile &) = delete;
  PositionedFile &operator=(const PositionedFile &) = delete;
  ~PositionedFile();

  /// Makes the file, which must not exist, and takes the room for `bytes` on the disk.
  static Expected<PositionedFile> create(const std::string &path, uint64_t bytes);

  MaybeError write(uint64_t offset, std::span<const std::byte> bytes);
  /// Flushes to the disk and closes.
  MaybeError finish();

private:
  PositionedFile() = default;
  Error failure() const;

  std::string path;
  int fd = -1;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_POSITIONEDFILE_H
