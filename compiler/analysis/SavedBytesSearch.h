//===- SavedBytesSearch.h - Search for the saved bytes of a device --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A device that keeps more for the backward pass recomputes less. Only the planned memory tells the
// size of the arena then, and no estimate comes close: recomputed values are there for a while too,
// so that the arena does not always grow with the saved bytes. This searches, with few plans, for
// the bound on the saved bytes that fits a limit and computes least.
//
// All bounds between the bytes that a plan keeps and the bound that it was made with lead to that
// plan, and no plan between two others recomputes less than the one that keeps more. So bounds are
// worth a try only in the gaps between known plans whose upper end computes enough less than the
// best that fits, up to the point where the saved bytes, with most of the other contents of an
// arena, reach the limit. Arenas are taken to change along a gap as straight lines do, one byte a
// byte where only one end is known: first comes the gap in which such a line crosses the limit,
// then the one that would have to leave the line least.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_ANALYSIS_SAVEDBYTESSEARCH_H
#define DTC_COMPILER_ANALYSIS_SAVEDBYTESSEARCH_H

#include <cstdint>
#include <optional>
#include <vector>

namespace dtc {

/// A bound that was tried for one device, and its result.
struct SavedBytesTrial {
  int64_t bound = 0;  ///< on the saved bytes
  int64_t kept = 0;   ///< saved bytes; above the bound only if nothing saves as little
  int64_t arena = 0;  ///< bytes that the device needs in all
  double seconds = 0; ///< of recomputation
};

class SavedBytesSearch {
public:
  /// `tolerance`: a gain of fewer seconds is not worth another trial, and one of five times as many
  /// is not where the best trial fills the limit but for a hundredth.
  SavedBytesSearch(int64_t limit, double tolerance) : limit(limit), tolerance(tolerance) {}

  /// Records a trial. Of two with the same saved bytes, the one with the larger arena counts.
  void add(SavedBytesTrial plan);

  /// The bound to try next, at first the highest one; nullopt where no gap is worth a trial.
  std::optional<int64_t> next() const;

  /// The trial that fits and recomputes least; null if none fits.
  const SavedBytesTrial *best() const;

  /// Whether nothing is likely to fit. By far, if even the trial that keeps least needs a tenth
  /// more than the limit: an arena that keeps more is seldom smaller than that one, and never was
  /// by as much. By less, if several trials that keep more need no less than that one.
  bool isHopeless() const;

private:
  bool fits(const SavedBytesTrial &plan) const { return plan.arena <= limit; }

  int64_t limit;
  double tolerance;
  std::vector<SavedBytesTrial> plans; ///< in the order of their saved bytes
};

} // namespace dtc

#endif // DTC_COMPILER_ANALYSIS_SAVEDBYTESSEARCH_H
