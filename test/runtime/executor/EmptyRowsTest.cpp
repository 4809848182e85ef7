//===- EmptyRowsTest.cpp - Tests of calls that leave out rows -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/executor/EmptyRows.h"

#include "plan/KernelTable.h"
#include "runtime/backends/cpu/CpuBackend.h"
#include "runtime/executor/Session.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/PlanBuilder.h"

#include <gtest/gtest.h>
#include <random>
#include <span>

namespace emptyRowsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;
namespace plan = dtc::plan;

namespace {

constexpr int64_t kMatrices = 2, kGroups = 3, kRows = 5, kDepth = 4, kWidth = 7;
const Shape kRowShape{kMatrices, kGroups, kRows};
const Shape kWide{kMatrices, kGroups, kRows, kWidth};

/// A CPU that counts the calls that leave out rows, or does not leave out any.
class CountingBackend final : public Backend {
public:
  CountingBackend(bool leavesOut, int threads)
      : cpu(createCpuBackend(threads)), leavesOut(leavesOut) {}
  std::string name() const override { return cpu->name(); }
  Expected<std::unique_ptr<Kernel>> prepare(const KernelSignature &signature) const override {
    return cpu->prepare(signature);
  }
  bool leavesOutRows() const override { return leavesOut; }
  std::unique_ptr<Kernel> prepareOfRows(const KernelSignature &signature, int64_t rows,
                                        int64_t rowsOfGroup) const override {
    std::unique_ptr<Kernel> kernel = cpu->prepareOfRows(signature, rows, rowsOfGroup);
    count += kernel != nullptr;
    return kernel;
  }
  Expected<std::unique_ptr<Device>> openDevice(int64_t index) const override {
    return cpu->openDevice(index);
  }

  mutable int count = 0;

private:
  std::unique_ptr<Backend> cpu;
  bool leavesOut;
};

/// Experts whose products `a` and `b` have the rows that `rows` has an index for.
struct RowsPlan : PlanBuilder {
  explicit RowsPlan(DType dtype = DType::F32) : dtype(dtype) {
    schedule(task("experts"));
    x = input("x", dtype, {kMatrices, kGroups, kRows, kDepth}, {{}, {}, {}, {}}).buffer();
    w = input("w", dtype, {kMatrices, kDepth, kWidth}, {{}, {}, {}}).buffer();
    rows = input("rows", DType::I32, kRowShape, {{}, {}, {}}).buffer();
    a = product(x, w, rows);
    b = product(x, w, rows);
  }
  uint32_t product(uint32_t of, uint32_t by, uint32_t indices) {
    return groupedProduct("xbck,xkn->xbcn", of, by, indices, kWide);
  }
  uint32_t groupedProduct(const std::string &equation, uint32_t lhs, uint32_t rhs, uint32_t indices,
                          const Shape &shape) {
    uint32_t out = buffer(dtype, shape);
    (*kernel("grouped_product", {lhs, rhs, indices}, {out}).mutable_attributes())["equation"] =
        stringAttribute(equation);
    return out;
  }
  /// A call of an elementwise kernel; the number of its instruction.
  int call(const std::string &name, const std::vector<uint32_t> &operands, uint32_t out) {
    plan::KernelCall &added = kernel(name, operands, {out});
    if (added.attributes().contains("approximate"))
      (*added.mutable_attributes())["approximate"] = stringAttribute("tanh");
    return program().tasks(0).instructions_size() - 1;
  }
  int call(const std::string &name, const std::vector<uint32_t> &operands) {
    return call(name, operands, buffer(dtype, kWide));
  }
  /// The last reader of the indices: the sum over the rows.
  void sum(uint32_t of) {
    groupedProduct("xbck,xbcn->xkn", x, of, rows, {kMatrices, kDepth, kWidth});
  }

  /// By the plan that is made of this.
  bool leavesOutRows(int instruction) const {
    std::shared_ptr<const plan::Plan> built = build();
    const plan::Program &program = built->programs(0);
    std::optional<RowIndices> found = EmptyRows(program).ofCall(program.tasks(0), instruction);
    if (found) {
      EXPECT_EQ(found->rows, kMatrices * kGroups * kRows);
      EXPECT_EQ(found->rowsOfGroup, kRows);
    }
    return found.has_value();
  }

  DType dtype;
  uint32_t x, w, rows, a, b;
};

/// Random rows, zeros where there is no index. Their numbers differ from group to group, or all
/// rows have an index.
struct Values {
  Values(uint32_t seed, DType dtype, bool arePositive, bool areAll = false) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> draw(arePositive ? 0.1f : -2.0f, 2.0f);
    rows = HostTensor(TensorType{DType::I32, kRowShape});
    std::vector<float> elements(static_cast<size_t>(kMatrices * kGroups * kRows * kDepth));
    for (int64_t group = 0; group < kMatrices * kGroups; ++group) {
      // Some groups are full, some are empty.
      int64_t used = areAll ? kRows : static_cast<int64_t>(random() % (kRows + 1));
      for (int64_t row = 0; row < kRows; ++row) {
        int64_t at = group * kRows + row;
        rows.as<int32_t>()[at] = row < used ? static_cast<int32_t>(row) : -1;
        for (int64_t k = 0; k < kDepth && row < used; ++k)
          elements[static_cast<size_t>(at * kDepth + k)] = draw(random);
      }
    }
    x = tensorOf(dtype, {kMatrices, kGroups, kRows, kDepth}, elements);
    std::vector<float> weights(static_cast<size_t>(kMatrices * kDepth * kWidth));
    for (float &each : weights)
      each = draw(random);
    w = tensorOf(dtype, {kMatrices, kDepth, kWidth}, weights);
  }
  static HostTensor tensorOf(DType dtype, const Shape &shape, const std::vector<float> &elements) {
    HostTensor tensor(TensorType{dtype, shape});
    for (size_t i = 0; i < elements.size(); ++i)
      setElement(tensor, static_cast<int64_t>(i), elements[i]);
    return tensor;
  }
  HostTensor x, w, rows;
};

/// The bytes of "out" after a step with each of `values`, and how many kernels leave out rows.
std::pair<std::vector<std::byte>, int> run(const RowsPlan &builder, std::span<const Values> values,
                                           bool leavesOut, int threads) {
  auto backend = std::make_shared<CountingBackend>(leavesOut, threads);
  auto session = take(Session::create(builder.build(), backend));
  for (const Values &each : values) {
    EXPECT_OK(session->setInput("x", each.x));
    EXPECT_OK(session->setInput("w", each.w));
    EXPECT_OK(session->setInput("rows", each.rows));
    EXPECT_OK(session->step());
  }
  return {take(session->getOutput("out")).bytes, backend->count};
}

} // namespace

TEST(EmptyRows, GiveTheSameBits) {
  const uint32_t seed = 20261201;
  int kernels = 0;
  for (const KernelInfo &info : allKernels()) {
    if (!info.keepsZeros)
      continue;
    ++kernels;
    for (DType dtype : {DType::F32, DType::F64, DType::BF16, DType::F16})
      for (bool isInPlace : {false, true}) {
        RowsPlan builder(dtype);
        uint32_t a = builder.a, out = builder.buffer(dtype, kWide);
        std::string name(info.name);
        std::vector<uint32_t> operands{a};
        if (info.inputs.least == 2)
          operands.push_back(builder.b);
        if (isInPlace && !info.inPlace.empty())
          out = builder.view(operands[static_cast<size_t>(info.inPlace[0].input)], dtype, kWide);
        builder.call(name, operands, out);
        builder.output("out", dtype, kWide, {{}, {}, {}, {}}, out);
        builder.sum(out);
        // The first step leaves numbers in the rows that are empty in the second one.
        bool arePositive = name == "sqrt";
        Values values[] = {{seed, dtype, arePositive, true},
                           {seed + static_cast<uint32_t>(kernels), dtype, arePositive}};
        auto [expected, none] = run(builder, values, false, 1);
        EXPECT_EQ(none, 0);
        for (int threads : {1, 3}) {
          auto [bytes, count] = run(builder, values, true, threads);
          EXPECT_EQ(count, 1) << name;
          EXPECT_EQ(bytes, expected)
              << name << " " << TensorType{dtype, kWide}.str() << ", seed " << seed;
        }
      }
  }
  EXPECT_EQ(kernels, 14);
}

TEST(EmptyRows, AreFollowedThroughCallsThatKeepZeros) {
  RowsPlan builder;
  uint32_t silu = builder.buffer(DType::F32, kWide), gated = builder.buffer(DType::F32, kWide);
  int first = builder.call("silu", {builder.a}, silu);
  int second = builder.call("mul", {silu, builder.b}, gated);
  // A weight of each row.
  uint32_t table = builder.buffer(DType::F32, {kGroups, kRows, 1});
  uint32_t weights = builder.buffer(DType::F32, {kMatrices, kGroups, kRows, 1});
  builder.kernel("fill", {}, {table});
  builder.kernel("embedding", {table, builder.rows}, {weights});
  uint32_t weighted = builder.buffer(DType::F32, kWide);
  int third = builder.call("mul", {gated, builder.view(weights, DType::F32, kRowShape)}, weighted);
  (*builder.program()
        .mutable_tasks(0)
        ->mutable_instructions(third)
        ->mutable_kernel()
        ->mutable_attributes())["rhs_dims"] = intsAttribute({0, 1, 2});
  builder.sum(weighted);
  for (int call : {first, second, third})
    EXPECT_TRUE(builder.leavesOutRows(call)) << call;
}

TEST(EmptyRows, NeedIndicesThatAreStillThere) {
  RowsPlan builder;
  builder.sum(builder.a);
  EXPECT_FALSE(builder.leavesOutRows(builder.call("silu", {builder.a})));
}

TEST(EmptyRows, AreThoseOfAllOperands) {
  RowsPlan builder;
  uint32_t others = builder.input("others", DType::I32, kRowShape, {{}, {}, {}}).buffer();
  uint32_t c = builder.product(builder.x, builder.w, others);
  uint32_t any = builder.input("any", DType::F32, kWide, {{}, {}, {}, {}}).buffer();
  int byOthers = builder.call("mul", {builder.a, c}), byAny = builder.call("add", {builder.a, any});
  int same = builder.call("add", {builder.a, builder.b});
  builder.sum(builder.a);
  builder.groupedProduct("xbck,xbcn->xkn", builder.x, c, others, {kMatrices, kDepth, kWidth});
  EXPECT_FALSE(builder.leavesOutRows(byOthers));
  EXPECT_FALSE(builder.leavesOutRows(byAny));
  EXPECT_TRUE(builder.leavesOutRows(same));
}

TEST(EmptyRows, AreOfRowsAndOfKernelsThatKeepZeros) {
  RowsPlan builder;
  uint32_t exp = builder.buffer(DType::F32, kWide);
  int calls[] = {builder.call("exp", {builder.a}, exp), builder.call("mul", {exp, builder.a}),
                 builder.call("neg", {builder.a})};
  // The sums over the rows have none.
  uint32_t sums = builder.groupedProduct("xbck,xbcn->xkn", builder.x, builder.a, builder.rows,
                                         {kMatrices, kDepth, kWidth});
  int ofSums =
      builder.call("silu", {sums}, builder.buffer(DType::F32, {kMatrices, kDepth, kWidth}));
  builder.sum(builder.a);
  for (int call : calls)
    EXPECT_FALSE(builder.leavesOutRows(call)) << call;
  EXPECT_FALSE(builder.leavesOutRows(ofSums));
}

} // namespace emptyRowsTest
