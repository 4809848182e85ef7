//===- MutatePlan.cpp - Random mutation of plans --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/MutatePlan.h"

#include "plan/PlanReader.h"
#include "test/lib/plans/MutateMessage.h"

namespace dtc::runtime::testing {

std::string mutateBytes(std::string bytes, std::mt19937_64 &random) {
  for (uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    size_t at = random() % bytes.size();
    switch (random() % 8) {
    case 0:
      bytes.erase(at, 1);
      break;
    case 1:
      bytes.insert(at, 1, static_cast<char>(random()));
      break;
    case 2:
    case 3:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random() % 8));
      break;
    default:
      bytes[at] = static_cast<char>(random());
      break;
    }
    if (random() % 64 == 0)
      bytes.resize(at + 1);
  }
  return bytes;
}

std::string mutateFields(plan::Plan plan, std::mt19937_64 &random) {
  for (uint64_t changes = 1 + random() % 2; changes > 0; --changes)
    mutateMessage(plan, random);
  return serializePlan(plan);
}

} // namespace dtc::runtime::testing
