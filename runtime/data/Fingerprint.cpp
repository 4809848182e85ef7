//===- Fingerprint.cpp - Fingerprint of a data set ------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Fingerprint.h"

#include "support/Philox.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

static constexpr uint64_t kBlockBytes = uint64_t{64} << 10;
static constexpr uint64_t kBlocksOfSet = 1024;

/// Appends the hashes of `blocks` blocks of the file, or of all of it where they are as many.
static MaybeError hashBlocks(const InputFile &file, uint64_t blocks, std::string &hashes) {
  uint64_t all = (file.size() + kBlockBytes - 1) / kBlockBytes;
  bool isWhole = blocks >= all;
  std::string block;
  for (uint64_t index = 0; index < std::min(blocks, all); ++index) {
    uint64_t begin = index * kBlockBytes;
    if (!isWhole)
      begin = static_cast<uint64_t>(static_cast<unsigned __int128>(file.size() - kBlockBytes) *
                                    index / (blocks - 1));
    block.resize(std::min(kBlockBytes, file.size() - begin));
    if (MaybeError error = file.read(begin, std::as_writable_bytes(std::span(block))))
      return error;
    hashes += fmt::format("{:016x}", fnv1a(block));
  }
  return std::nullopt;
}

Expected<std::string> fingerprintOf(const std::string &format, uint64_t count,
                                    std::span<const InputFile *const> files) {
  uint64_t bytes = 0;
  for (const InputFile *file : files)
    bytes += file->size();
  std::string hashes;
  for (const InputFile *file : files) {
    hashes += fmt::format("{}:", file->size());
    auto share = static_cast<uint64_t>(
        (static_cast<unsigned __int128>(kBlocksOfSet) * file->size() + bytes - 1) /
        std::max<uint64_t>(bytes, 1));
    if (MaybeError error = hashBlocks(*file, std::max<uint64_t>(share, 2), hashes))
      return *error;
  }
  return fmt::format("{}-{}-{:016x}", format, count, fnv1a(hashes));
}

} // namespace dtc::runtime
