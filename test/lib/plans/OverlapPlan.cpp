//===- OverlapPlan.cpp - A plan with async collectives --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/lib/plans/PlanBuilder.h"
#include "test/lib/plans/TestPlans.h"

namespace dtc::runtime::testing {

namespace {

class OverlapPlanBuilder : public PlanBuilder {
public:
  OverlapPlanBuilder(bool overlap, int64_t a, int64_t b) : overlap(overlap) {
    axis("a", a);
    axis("b", b);
    plan::State &state = this->state("w", DType::F32, {8 * a * b, 4}, {{"a", "b"}, {}});
    state.mutable_init()->set_kind(plan::Init::NORMAL);
    state.mutable_init()->set_scale(0.5);
    uint32_t w = state.buffer();
    uint32_t square = local(8, 4), copy = local(8, 4), sum = local(8, 4), twice = local(8, 4);
    uint32_t all = local(8 * b, 4), more = local(8 * b, 4), product = local(8, 4);
    uint32_t part = local(8 / a, 4), left = local(8, 4), swapped = local(8, 4);
    uint32_t exchanged = local(8, 4), half = local(8, 4);
    for (int round = 0; round < 2; ++round) {
      schedule(task("overlap"));
      kernel("mul", {w, w}, {square});
      kernel("copy", {w}, {copy});
      bucket(plan::Collective::ALL_REDUCE, {"a"}, {{square, square}, {copy, sum}});
      uint32_t reduce = begin();
      kernel("add", {w, w}, {twice});
      bucket(plan::Collective::ALL_GATHER, {"b"}, {{twice, all}, {w, more}});
      uint32_t gather = begin();
      kernel("mul", {twice, copy}, {product}); // reads what is being gathered and reduced
      collective(plan::Collective::REDUCE_SCATTER, {"a"}, product, part);
      end(reduce);
      kernel("add", {square, sum}, {left});
      permute({"a", "b"}, {"b", "a"}, left, swapped);
      uint32_t permuted = begin();
      kernel("mul", {sum, sum}, {product});
      end(gather);
      collective(plan::Collective::ALL_TO_ALL, {"a"}, product, exchanged);
      end(permuted);
      // Small enough to stay finite for many steps.
      (*kernel("fill", {}, {half}).mutable_attributes())["value"] = floatAttribute(0.01);
      kernel("add", {swapped, exchanged}, {left});
      kernel("mul", {left, half}, {w});
    }
    output("all", DType::F32, {8 * b * a * b, 4}, {{"a", "b"}, {}}, all);
    output("more", DType::F32, {8 * b * a * b, 4}, {{"a", "b"}, {}}, more);
    output("part", DType::F32, {8 * b, 4}, {{"a", "b"}, {}}, part);
    output("swapped", DType::F32, {8 * a * b, 4}, {{"a", "b"}, {}}, swapped);
  }

private:
  uint32_t local(int64_t rows, int64_t columns) { return buffer(DType::F32, {rows, columns}); }
  uint32_t begin() { return overlap ? async() : 0; }
  void end(uint32_t collective) {
    if (overlap)
      wait(collective);
  }

  bool overlap;
};

} // namespace

std::shared_ptr<plan::Plan> overlapPlan(bool async, int64_t a, int64_t b) {
  return OverlapPlanBuilder(async, a, b).build();
}

} // namespace dtc::runtime::testing
