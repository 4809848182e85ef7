//===- TransferEnds.h - The two ends of each channel ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_PLAN_TRANSFERENDS_H
#define DTC_PLAN_TRANSFERENDS_H

#include "plan/plan.pb.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace dtc {

/// The transfers at both ends of a channel.
struct TransferEnds {
  size_t from = 0; // the programs
  size_t to = 0;
  uint32_t send = 0; // the transfer in the program that sends
  uint32_t receive = 0;
  uint64_t bytes = 0; // of one message
};

/// Bytes of one message of a transfer. In a buffer with slots a message is one copy.
uint64_t messageBytes(const plan::Program &program, const plan::Transfer &transfer);

/// The channels of a plan by number. An error if a channel lacks an end, or an instruction names a
/// transfer that does not exist; findPlanError() refuses such plans.
Expected<std::map<uint32_t, TransferEnds>> pairTransfers(const plan::Plan &plan);

} // namespace dtc

#endif // DTC_PLAN_TRANSFERENDS_H
