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
///
/// Where the file system allows it, whole blocks go to the disk from where they lie (O_DIRECT),
/// without a copy in the OS page cache, which takes the processor longer than the disk: those whose
/// address is congruent to their offset modulo kBlockBytes.
class PositionedFile {
public:
  static constexpr uint64_t kBlockBytes = 4096;

  PositionedFile(PositionedFile &&other) noexcept;
  PositionedFile &operator=(PositionedFile &&other) noexcept;
  PositionedFile(const PositionedFile &) = delete;
  PositionedFile &operator=(const PositionedFile &) = delete;
  ~PositionedFile();

  /// Makes the file, which must not exist, and takes the room for `bytes` on the disk.
  static Expected<PositionedFile> create(const std::string &path, uint64_t bytes);

  /// Opens a file that create() has made, in this or another process.
  static Expected<PositionedFile> open(const std::string &path);

  MaybeError write(uint64_t offset, std::span<const std::byte> bytes);
  /// Flushes to the disk and closes.
  MaybeError finish();

private:
  /// The first of some bytes, which one call writes.
  struct Part {
    bool direct = false;
    size_t bytes = 0;
  };

  PositionedFile() = default;
  Part nextPart(uint64_t offset, std::span<const std::byte> bytes) const;
  void stopDirect();
  Error failure() const;

  std::string path;
  int fd = -1;
  int directFd = -1; ///< of the same file with O_DIRECT; -1: there is none
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_POSITIONEDFILE_H
