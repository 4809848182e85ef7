//===- PlanBuilder.h - Plans made by hand ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_PLANBUILDER_H
#define DTC_TEST_LIB_PLANS_PLANBUILDER_H

#include "plan/plan.pb.h"
#include "support/Tensor.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtc::runtime::testing {

using Shape = std::vector<int64_t>;
using Axes = std::vector<std::string>;
/// The axes that split each dimension.
using DimAxes = std::vector<Axes>;

/// Gives a call the attributes that its kernel requires, as 0, false or empty.
void addRequiredAttributes(plan::KernelCall &call);

/// Builds a plan of one program, or of several with a pipeline axis. Buffers lie one after the
/// other in the arena, and may be written several times.
class PlanBuilder {
public:
  PlanBuilder();

  void axis(const std::string &name, int64_t size, bool temporal = false);
  /// Gives the plan `size` programs.
  void pipelineAxis(const std::string &name, int64_t size);
  /// Further instructions go to that program; without a call, to the first.
  void inProgram(int index) { current = index; }
  uint32_t buffer(DType dtype, const Shape &shape,
                  plan::Buffer::Kind kind = plan::Buffer::ACTIVATION);
  /// A buffer with a copy for each of `slots` microbatches.
  uint32_t slotted(DType dtype, const Shape &shape, uint32_t slots,
                   plan::Buffer::Kind kind = plan::Buffer::ACTIVATION);
  /// A buffer in the bytes of another, with as many slots.
  uint32_t view(uint32_t of, DType dtype, const Shape &shape);

  /// A transfer of the program; its number.
  uint32_t transfer(plan::Transfer::Kind kind, uint32_t peer, uint32_t channel,
                    const std::vector<uint32_t> &buffers);

  /// Instructions go to the task that was begun last. The number of the new task.
  uint32_t task(const std::string &name, plan::Task::Kind kind = plan::Task::OTHER,
                uint32_t stage = 0);
  /// Required attributes of the kernel start as 0, false or empty.
  plan::KernelCall &kernel(const std::string &name, const std::vector<uint32_t> &inputs,
                           const std::vector<uint32_t> &outputs);
  /// A collective of one tensor.
  plan::CollectiveTensor &collective(plan::Collective::Kind kind, const Axes &axes, uint32_t input,
                                     uint32_t output);
  /// A collective of several tensors, each an input and an output.
  plan::Collective &bucket(plan::Collective::Kind kind, const Axes &axes,
                           const std::vector<std::pair<uint32_t, uint32_t>> &tensors);
  /// A permute of one tensor.
  plan::Collective &permute(const Axes &axes, const Axes &sourceAxes, uint32_t input,
                            uint32_t output);
  /// Makes the last instruction, a collective, async; its number in the task.
  uint32_t async();
  void wait(uint32_t instruction);
  void startTransfer(uint32_t transfer);
  void finishTransfer(uint32_t transfer);
  void schedule(uint32_t task, uint32_t microbatch = 0);

  /// Bindings get a new buffer of the shard's shape.
  plan::State &state(const std::string &name, DType dtype, const Shape &shape,
                     const DimAxes &sharding);
  plan::Input &input(const std::string &name, DType dtype, const Shape &shape,
                     const DimAxes &sharding);
  plan::Output &output(const std::string &name, DType dtype, const Shape &shape,
                       const DimAxes &sharding, uint32_t buffer);

  plan::Program &program() { return *plan.mutable_programs(current); }
  /// The shape of a shard, padding included. It has all microbatches.
  Shape localShape(const Shape &shape, const DimAxes &sharding) const;
  /// The plan, in which each value has a buffer of its own (see toSingleAssignment()) and the tasks
  /// of microbatches are a loop.
  std::shared_ptr<plan::Plan> build() const;

  plan::Plan plan;

private:
  plan::Task &lastTask();
  template <typename T>
  void bind(T &binding, const std::string &name, DType dtype, const Shape &shape,
            const DimAxes &sharding, uint32_t buffer);

  int current = 0; // program
};

plan::Attribute intAttribute(int64_t value);
plan::Attribute floatAttribute(double value);
plan::Attribute boolAttribute(bool value);
plan::Attribute stringAttribute(const std::string &value);
plan::Attribute intsAttribute(const std::vector<int64_t> &values);
plan::Attribute stringsAttribute(const std::vector<std::string> &values);

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_PLANBUILDER_H
