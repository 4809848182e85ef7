//===- DeviceProgress.h - Progress of a device in its schedule ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_DEVICEPROGRESS_H
#define DTC_RUNTIME_EXECUTOR_DEVICEPROGRESS_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace dtc::runtime {

/// Where a device is in its schedule. The device's thread writes, any thread may read. Two plain
/// stores for each instruction: nothing here orders other memory.
class alignas(64) DeviceProgress {
public:
  struct Position {
    size_t entry = 0;       // of the schedule
    size_t instruction = 0; // of the program
  };

  void begin() { advanceTo(beforeSchedule); }
  void at(size_t entry, size_t instruction) {
    advanceTo(static_cast<uint64_t>(entry) << 32 | static_cast<uint64_t>(instruction));
  }
  void finish() { advanceTo(afterSchedule); }

  /// Grows with every step forward.
  uint64_t advances() const { return count.load(std::memory_order_relaxed); }
  bool hasFinished() const { return place.load(std::memory_order_relaxed) == afterSchedule; }
  /// The instruction that runs, if the device is in its schedule.
  std::optional<Position> position() const {
    uint64_t value = place.load(std::memory_order_relaxed);
    if (value == beforeSchedule || value == afterSchedule)
      return std::nullopt;
    return Position{value >> 32, value & UINT32_MAX};
  }

private:
  static constexpr uint64_t beforeSchedule = UINT64_MAX - 1;
  static constexpr uint64_t afterSchedule = UINT64_MAX;

  void advanceTo(uint64_t value) {
    place.store(value, std::memory_order_relaxed);
    count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> place = afterSchedule;
  std::atomic<uint64_t> count = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_DEVICEPROGRESS_H
