//===- ControlFrame.cpp - Messages of the control connection --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlFrame.h"

#include <fmt/format.h>

namespace dtc::runtime {

static constexpr size_t kLengthBytes = 4, kHeadBytes = 6;

static void appendNumber(std::string &bytes, uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8)
    bytes.push_back(static_cast<char>(value >> shift & 0xff));
}

static uint32_t numberAt(const std::string &bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i)
    value |= static_cast<uint32_t>(static_cast<unsigned char>(bytes[at + i])) << (8 * i);
  return value;
}

std::string encode(const ControlFrame &frame) {
  std::string_view text = std::string_view(frame.text).substr(0, kControlTextBytes);
  std::string bytes;
  appendNumber(bytes, static_cast<uint32_t>(kHeadBytes + text.size()));
  bytes.push_back(static_cast<char>(frame.kind));
  bytes.push_back(frame.flag ? 1 : 0);
  appendNumber(bytes, static_cast<uint32_t>(frame.process));
  bytes += text;
  return bytes;
}

Expected<std::optional<ControlFrame>> takeFrame(std::string &received, size_t mostBytes) {
  if (received.size() < kLengthBytes)
    return std::optional<ControlFrame>();
  size_t length = numberAt(received, 0);
  if (length < kHeadBytes || length > mostBytes)
    return Error{
        fmt::format("a frame of {} bytes, expected {} to {}", length, kHeadBytes, mostBytes)};
  if (received.size() < kLengthBytes + length)
    return std::optional<ControlFrame>();
  auto kind = static_cast<uint8_t>(received[4]), flag = static_cast<uint8_t>(received[5]);
  if (kind < ControlFrame::Hello || kind > ControlFrame::Goodbye || flag > 1)
    return Error{fmt::format("a frame of kind {} with flag {}", kind, flag)};
  ControlFrame frame{static_cast<ControlFrame::Kind>(kind), flag == 1, numberAt(received, 6),
                     received.substr(kLengthBytes + kHeadBytes, length - kHeadBytes)};
  received.erase(0, kLengthBytes + length);
  return std::optional(std::move(frame));
}

bool equalSecrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size())
    return false;
  unsigned different = 0;
  for (size_t i = 0; i < a.size(); ++i)
    different |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return different == 0;
}

} // namespace dtc::runtime
