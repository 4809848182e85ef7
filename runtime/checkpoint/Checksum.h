//===- Checksum.h - Checksums of bytes ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CHECKPOINT_CHECKSUM_H
#define DTC_RUNTIME_CHECKPOINT_CHECKSUM_H

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// XXH3 with 128 bits (https://github.com/Cyan4973/xxHash) of bytes that come in parts. It tells
/// damage, and is no defence against an attacker.
class Checksum {
public:
  Checksum();
  Checksum(Checksum &&) noexcept = default;
  ~Checksum();

  void update(std::span<const std::byte> bytes);
  /// 32 hexadecimal digits, the upper half first.
  std::string str() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

std::string checksumOf(std::span<const std::byte> bytes);
std::string checksumOf(std::string_view text);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CHECKPOINT_CHECKSUM_H
