//===- TensorBoardFile.cpp - Metrics for TensorBoard -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/metrics/TensorBoardFile.h"

#include "runtime/metrics/tensorboard.pb.h"

#include <array>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace dtc::runtime {

/// The remainders of all bytes.
static constexpr std::array<uint32_t, 256> kRemainders = [] {
  std::array<uint32_t, 256> remainders = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t remainder = byte;
    for (int bit = 0; bit < 8; ++bit)
      remainder = (remainder >> 1) ^ (remainder & 1 ? 0x82F63B78u : 0u);
    remainders[byte] = remainder;
  }
  return remainders;
}();

uint32_t crc32c(std::string_view bytes) {
  uint32_t remainder = ~0u;
  for (char byte : bytes)
    remainder =
        (remainder >> 8) ^ kRemainders[(remainder ^ static_cast<unsigned char>(byte)) & 0xFF];
  return ~remainder;
}

/// The lowest byte first.
template <typename T> static std::string littleEndian(T number) {
  std::string bytes;
  for (size_t i = 0; i < sizeof(T); ++i)
    bytes += static_cast<char>(number >> (8 * i));
  return bytes;
}

/// The check of bytes that hold checks themselves, as TFRecord has it.
static std::string maskedCheck(std::string_view bytes) {
  uint32_t check = crc32c(bytes);
  return littleEndian<uint32_t>(((check >> 15) | (check << 17)) + 0xA282EAD8u);
}

static double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Expected<std::unique_ptr<TensorBoardFile>> TensorBoardFile::open(const std::string &folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code)
    return Error{fmt::format("{}: cannot make the folder: {}", folder, code.message())};
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  // TensorBoard reads the files of a folder in the order of their names.
  Expected<LockedFile> file =
      LockedFile::open(fmt::format("{}/events.out.tfevents.{:010}.{}.{:07}", folder,
                                   static_cast<int64_t>(now()), host, getpid()));
  if (!file)
    return file.error();
  return std::unique_ptr<TensorBoardFile>(new TensorBoardFile(std::move(*file)));
}

MaybeError TensorBoardFile::append(tensorboard::Event &event) {
  event.set_wall_time(now());
  std::string bytes = event.SerializeAsString();
  std::string length = littleEndian<uint64_t>(bytes.size());
  return file.write(length + maskedCheck(length) + bytes + maskedCheck(bytes));
}

MaybeError TensorBoardFile::begin(int64_t step) {
  if (std::exchange(hasBegun, true))
    return std::nullopt;
  tensorboard::Event version;
  version.set_file_version("brain.Event:2");
  if (MaybeError error = append(version))
    return error;
  tensorboard::Event start;
  start.set_step(step + 1);
  start.mutable_session_log()->set_status(tensorboard::SessionLog::START);
  return append(start);
}

MaybeError TensorBoardFile::write(const StepMetrics &metrics) {
  tensorboard::Event event;
  event.set_step(metrics.step);
  for (const Metric &metric : allMetrics())
    if (std::optional<double> number = metric.of(metrics)) {
      tensorboard::Summary::Value &value = *event.mutable_summary()->add_value();
      value.set_tag(metric.tag);
      value.set_simple_value(static_cast<float>(*number));
    }
  for (const ModelMetric &metric : metrics.ofModel)
    if (metric.isScalar) {
      tensorboard::Summary::Value &value = *event.mutable_summary()->add_value();
      value.set_tag("model/" + metric.name + (metric.of.empty() ? "" : "/" + metric.of));
      value.set_simple_value(static_cast<float>(metric.elements.front()));
    }
  return append(event);
}

} // namespace dtc::runtime
