//===- ControlAddressTest.cpp - Tests of network addresses ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/ControlAddress.h"

#include <gtest/gtest.h>

namespace controlAddressTest {

using namespace dtc;
using namespace dtc::runtime;

TEST(ControlAddress, OfAnInterfaceOrANetwork) {
  for (const char *network : {"lo", "127.0.0.0/8", "127.0.0.1/32"}) {
    Expected<std::string> address = addressOfHost(network);
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_EQ(*address, "127.0.0.1") << network;
  }
}

TEST(ControlAddress, OfNone) {
  for (const char *network : {"eth", "127.0.0.0/33", "127.0.0.0/", "127.0.0.0/8x", "127.0.0.0/-1",
                              "128.0.0.0/32", "/8", "127.0.0/8", "::2/128"}) {
    Expected<std::string> address = addressOfHost(network);
    ASSERT_FALSE(address) << network << ": " << *address;
    EXPECT_TRUE(address.error().message.starts_with(std::string("this host has no address in ") +
                                                    network + "; expected an interface"))
        << address.error().message;
    EXPECT_NE(address.error().message.find("127.0.0.1 (lo)"), std::string::npos);
  }
}

/// A container may have no other than the loopback address.
TEST(ControlAddress, ThatOthersReach) {
  Expected<std::string> address = addressOfHost("");
  if (!address)
    GTEST_SKIP() << address.error().message;
  EXPECT_FALSE(address->starts_with("127.")) << *address;
  EXPECT_TRUE(addressOfHost(*address + (address->find(':') == std::string::npos ? "/32" : "/128")));
}

} // namespace controlAddressTest
