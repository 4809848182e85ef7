//===- Median.h - Median --------------------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_BENCHMARKS_MEDIAN_H
#define DTC_BENCHMARKS_MEDIAN_H

#include <algorithm>
#include <vector>

namespace dtc::benchmarks {

/// The median; the mean of the middle two of an even count, 0 of none.
inline double median(std::vector<double> values) {
  if (values.empty())
    return 0;
  std::sort(values.begin(), values.end());
  size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

} // namespace dtc::benchmarks

#endif // DTC_BENCHMARKS_MEDIAN_H
