//===- Checksum.cpp - Checksums of bytes ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/Checksum.h"

#include <fmt/format.h>
#include <new>
#include <xxhash.h>

namespace dtc::runtime {

struct Checksum::State {
  XXH3_state_t *xxh = XXH3_createState();

  ~State() { XXH3_freeState(xxh); }
};

Checksum::Checksum() : state(std::make_unique<State>()) {
  if (!state->xxh)
    throw std::bad_alloc();
  XXH3_128bits_reset(state->xxh);
}

Checksum::~Checksum() = default;

static std::string format(XXH128_hash_t hash) {
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state->xxh, bytes.data(), bytes.size());
}

std::string Checksum::str() const { return format(XXH3_128bits_digest(state->xxh)); }

std::string checksumOf(std::span<const std::byte> bytes) {
  return format(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string checksumOf(std::string_view text) {
  return checksumOf(std::as_bytes(std::span(text.data(), text.size())));
}

} // namespace dtc::runtime
