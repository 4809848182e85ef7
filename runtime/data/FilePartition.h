//===- FilePartition.h - Mapping of samples to files ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_FILEPARTITION_H
#define DTC_RUNTIME_DATA_FILEPARTITION_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// Numbers from 0 on that are divided among files, in their order.
class FilePartition {
public:
  /// Adds the next file, which has `count` numbers.
  void add(uint64_t count) { ends.push_back(total() + count); }
  uint64_t total() const { return ends.empty() ? 0 : ends.back(); }
  /// The first number of a file.
  uint64_t firstOf(size_t file) const { return file == 0 ? 0 : ends[file - 1]; }
  /// The file that has a number below total(), and how many of its numbers come before this one.
  std::pair<size_t, uint64_t> find(uint64_t number) const {
    auto file =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), number) - ends.begin());
    return {file, number - firstOf(file)};
  }

private:
  std::vector<uint64_t> ends;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_FILEPARTITION_H
