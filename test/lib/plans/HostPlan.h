//===- HostPlan.h - A plan that uses the memory of the host ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_HOSTPLAN_H
#define DTC_TEST_LIB_PLANS_HOSTPLAN_H

#include "test/lib/plans/PlanBuilder.h"

#include <string>
#include <utility>
#include <vector>

namespace dtc::runtime::testing {

/// A parameter p, whose gradient g goes to the host, where the moment m is; the host adds both to
/// the parameter's copy, which comes back.
struct HostPlan : PlanBuilder {
  HostPlan() {
    axis("a", 2);
    p = state("p", DType::F32, {16}, {{}}).buffer();
    m = state("m", DType::F32, {16}, {{}}).buffer();
    g = buffer(DType::F32, {16});
    hostG = buffer(DType::F32, {16});
    hostP = buffer(DType::F32, {16});
    sum = buffer(DType::F32, {16});
    back = buffer(DType::F32, {16});
    // The device's buffers, then the host's: the offsets of both memories count from 0.
    uint64_t offset = 0;
    for (uint32_t each : {m, hostG, hostP, sum})
      moveToHost(each, std::exchange(offset, offset + 64));
    program().set_host_arena_bytes(offset);
    task("t");
    kernel("copy", {p}, {g});
    gradient = start("copy", {g}, {hostG});
    parameter = start("copy", {p}, {hostP});
    update = start("add", {hostP, hostG}, {sum}, {parameter});
    result = start("copy", {sum}, {back}, {update});
    schedule(0);
  }

  void moveToHost(uint32_t buffer, uint64_t offset) {
    plan::Buffer &moved = *program().mutable_buffers(static_cast<int>(buffer));
    moved.set_memory(plan::Buffer::HOST);
    moved.set_offset(offset);
  }
  plan::Instruction &instruction(uint32_t number) {
    return *program().mutable_tasks(0)->mutable_instructions(static_cast<int>(number));
  }
  /// An async call that comes after others; its number.
  uint32_t start(const std::string &name, const std::vector<uint32_t> &inputs,
                 const std::vector<uint32_t> &outputs, const std::vector<uint32_t> &after = {}) {
    kernel(name, inputs, outputs).set_async(true);
    auto number = static_cast<uint32_t>(program().tasks(0).instructions_size() - 1);
    for (uint32_t before : after)
      instruction(number).add_after(before);
    return number;
  }
  void waitForAll() {
    for (uint32_t each : {gradient, parameter, update, result})
      wait(each);
  }

  uint32_t p, m, g, hostG, hostP, sum, back;
  uint32_t gradient, parameter, update, result;
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_HOSTPLAN_H
