//===- FlightRing.h - Last communications of a device ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_FLIGHTRING_H
#define DTC_RUNTIME_EXECUTOR_FLIGHTRING_H

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace dtc::runtime {

/// The last instructions of a device that communicate: collectives, transfers, and waits for them.
/// The device's thread writes, any thread may read; a record that is being overwritten is left out,
/// by its number, as in a sequence lock (Boehm 2012, "Can seqlocks get along with programming
/// language memory models?").
class FlightRing {
public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kRecords = 64;

  struct Record {
    uint64_t step = 0;      // from 1
    size_t entry = 0;       // of the schedule
    size_t instruction = 0; // of the program
    Clock::time_point begin;
    std::optional<Clock::time_point> end; // none: it has not ended, or has failed
  };

  void begin(uint64_t step, size_t entry, size_t instruction) {
    uint64_t number = count.load(std::memory_order_relaxed) + 1;
    Slot &slot = slots[number % kRecords];
    slot.number.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    slot.step.store(step, std::memory_order_relaxed);
    slot.place.store(static_cast<uint64_t>(entry) << 32 | instruction, std::memory_order_relaxed);
    slot.begin.store(now(), std::memory_order_relaxed);
    slot.end.store(0, std::memory_order_relaxed);
    slot.number.store(number, std::memory_order_release);
    count.store(number, std::memory_order_release);
  }
  /// Notes the end of the operation that was begun last.
  void end() {
    slots[count.load(std::memory_order_relaxed) % kRecords].end.store(now(),
                                                                      std::memory_order_relaxed);
  }

  /// The oldest first.
  std::vector<Record> last() const {
    std::vector<Record> records;
    uint64_t newest = count.load(std::memory_order_acquire);
    for (uint64_t number = newest - std::min<uint64_t>(newest, kRecords) + 1; number <= newest;
         ++number) {
      const Slot &slot = slots[number % kRecords];
      if (slot.number.load(std::memory_order_acquire) != number)
        continue;
      uint64_t place = slot.place.load(std::memory_order_relaxed);
      Record record{slot.step.load(std::memory_order_relaxed), place >> 32, place & UINT32_MAX,
                    pointAt(slot.begin.load(std::memory_order_relaxed)), std::nullopt};
      if (Clock::rep end = slot.end.load(std::memory_order_relaxed))
        record.end = pointAt(end);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (slot.number.load(std::memory_order_relaxed) == number)
        records.push_back(record);
    }
    return records;
  }

private:
  struct Slot {
    std::atomic<uint64_t> number = 0; // from 1; 0: it is being written
    std::atomic<uint64_t> step = 0, place = 0;
    std::atomic<Clock::rep> begin = 0, end = 0;
  };
  static Clock::rep now() { return Clock::now().time_since_epoch().count(); }
  static Clock::time_point pointAt(Clock::rep ticks) {
    return Clock::time_point(Clock::duration(ticks));
  }

  std::array<Slot, kRecords> slots;
  std::atomic<uint64_t> count = 0;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_FLIGHTRING_H
