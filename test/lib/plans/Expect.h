//===- Expect.h - Checks of values that may be errors ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_EXPECT_H
#define DTC_TEST_LIB_PLANS_EXPECT_H

#include "support/Error.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <utility>

namespace dtc::runtime::testing {

inline std::string messageOf(const MaybeError &error) { return error ? error->message : ""; }
template <typename T> std::string messageOf(const Expected<T> &value) {
  return value ? "" : value.error().message;
}

/// The value, without which the test cannot go on.
template <typename T> T take(Expected<T> value) {
  if (!value) {
    ADD_FAILURE() << value.error().message;
    std::abort();
  }
  return std::move(*value);
}

inline void check(const MaybeError &error) {
  if (error)
    ADD_FAILURE() << error->message;
}

inline ::testing::AssertionResult contains(const std::string &text, const std::string &part) {
  if (text.find(part) != std::string::npos)
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not contain \"" << part << "\"";
}

} // namespace dtc::runtime::testing

/// The value is no error, or the error is shown.
#define EXPECT_OK(value) EXPECT_EQ(::dtc::runtime::testing::messageOf(value), "")
#define ASSERT_OK(value) ASSERT_EQ(::dtc::runtime::testing::messageOf(value), "")
/// The value is an error whose message contains `part`.
#define EXPECT_ERROR(value, part)                                                                  \
  EXPECT_TRUE(::dtc::runtime::testing::contains(::dtc::runtime::testing::messageOf(value), part))

#endif // DTC_TEST_LIB_PLANS_EXPECT_H
