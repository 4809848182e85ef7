//===- FakeBackend.h - A few kernels for tests ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_FAKEBACKEND_H
#define DTC_TEST_LIB_PLANS_FAKEBACKEND_H

#include "runtime/backends/Kernel.h"

#include <memory>

namespace dtc::runtime::testing {

/// Enough of docs/kernels.md for the plans of these tests, in the simplest way that is right, for
/// f32 only, and what the CPU has for the scalars of a step state. Adds kernels that the contract
/// does not have: `test_throw` (no operands) throws on the device that is last on every axis,
/// `test_position` (-> i32[n]) writes the coordinates, and `test_sleep` (no operands) does so for
/// 50 milliseconds.
std::shared_ptr<const Backend> createFakeBackend();

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_FAKEBACKEND_H
