//===- TensorBoardFile.h - Metrics for TensorBoard -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_METRICS_TENSORBOARDFILE_H
#define DTC_RUNTIME_METRICS_TENSORBOARDFILE_H

#include "runtime/metrics/MetricsSink.h"
#include "support/LockedFile.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace dtc::tensorboard {
class Event;
} // namespace dtc::tensorboard

namespace dtc::runtime {

/// The cyclic redundancy check of 32 bits with Castagnoli's polynomial (RFC 3720, section 12.1).
uint32_t crc32c(std::string_view bytes);

/// An event file for TensorBoard: the events as records of TensorFlow's TFRecord format (length,
/// its masked check, bytes, their masked check). Each run adds a file to its folder; TensorBoard
/// shows what the last run said of a step.
class TensorBoardFile final : public MetricsSink {
public:
  /// Makes the folder where it is missing. The error begins with its path.
  static Expected<std::unique_ptr<TensorBoardFile>> open(const std::string &folder);

  MaybeError begin(int64_t step) override;
  MaybeError write(const StepMetrics &metrics) override;

private:
  explicit TensorBoardFile(LockedFile file) : file(std::move(file)) {}
  MaybeError append(tensorboard::Event &event);

  LockedFile file;
  bool hasBegun = false;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_METRICS_TENSORBOARDFILE_H
