//===- PlaceInSums.cpp - Values in the bytes of sums that are free again --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/exec/PlaceInSums.h"

#include <map>

namespace dtc {

llvm::DenseMap<mlir::Operation *, PlaceInBuffer> placeInSums(const std::vector<FreedSum> &sums,
                                                             const std::vector<LateValue> &values) {
  llvm::DenseMap<mlir::Operation *, PlaceInBuffer> places;
  std::multimap<int64_t, PlaceInBuffer> rooms; // by the bytes that are left
  auto nextSum = sums.begin();
  for (const LateValue &value : values) {
    for (; nextSum != sums.end() && nextSum->last < value.first; ++nextSum)
      rooms.insert({nextSum->bytes, {nextSum->buffer, 0}});
    auto room = rooms.lower_bound(value.bytes);
    if (room == rooms.end())
      continue;
    auto [left, place] = *room;
    rooms.erase(room);
    places[value.buffer] = place;
    rooms.insert({left - value.bytes, {place.buffer, place.offset + value.bytes}});
  }
  return places;
}

} // namespace dtc
