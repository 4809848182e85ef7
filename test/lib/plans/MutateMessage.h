//===- MutateMessage.h - Random changes of a message ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_MUTATEMESSAGE_H
#define DTC_TEST_LIB_PLANS_MUTATEMESSAGE_H

#include <google/protobuf/message.h>
#include <random>

namespace dtc::runtime::testing {

/// Changes one randomly chosen field of a message or of the messages in it: another number (often
/// one at an edge), a flipped truth, an element removed, repeated or exchanged with another.
void mutateMessage(google::protobuf::Message &message, std::mt19937_64 &random);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_MUTATEMESSAGE_H
