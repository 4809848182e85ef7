//===- FusedProductTest.cpp - Calls that are computed together ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/FusedCalls.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "support/Float16.h"
#include "test/lib/plans/Expect.h"
#include "test/standin/cuda/Standin.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <vector>

namespace dtc::runtime {

namespace {

using testing::check;
using testing::take;

constexpr size_t kPlaceBytes = 4096;

/// Calls, and the memory that their values have.
class Calls {
public:
  explicit Calls(std::vector<AxisCoordinate> mesh) : mesh(std::move(mesh)) {}

  /// A value of its own memory, or in that of another one.
  size_t value(const TensorType &type) {
    types.push_back(type);
    places.push_back(places.size());
    return types.size() - 1;
  }
  size_t valueAt(size_t other, const TensorType &type) {
    size_t added = value(type);
    places[added] = places[other];
    return added;
  }
  void call(const std::string &kernel, const std::vector<size_t> &inputs,
            const std::vector<size_t> &outputs, AttributeMap attributes = {}) {
    FusedCalls::Call made{{kernel, {}, {}, std::move(attributes), mesh}, {}, {}};
    for (size_t input : inputs) {
      made.signature.inputs.push_back(types[input]);
      made.inputs.push_back(numberOf(input));
    }
    for (size_t output : outputs) {
      made.signature.outputs.push_back(types[output]);
      made.outputs.push_back(numberOf(output));
      fused.values[made.outputs.back()].maker = fused.calls.size();
    }
    fused.calls.push_back(std::move(made));
  }
  void keep(size_t value) { fused.values[numbers.at(value)].isKept = true; }

  /// With the overlaps that follow from the places.
  FusedCalls get() const {
    FusedCalls result = fused;
    for (auto [made, number] : numbers)
      for (auto [before, other] : numbers)
        if (result.values[number].maker && !result.values[other].maker &&
            places[made] == places[before])
          result.overlaps.push_back(
              {other, number, types[made].numBytes() == types[before].numBytes()});
    return result;
  }

  std::vector<AxisCoordinate> mesh;
  std::vector<TensorType> types;
  std::vector<size_t> places;
  std::map<size_t, size_t> numbers; // of FusedCalls, by value

private:
  size_t numberOf(size_t value) {
    auto [number, isNew] = numbers.try_emplace(value, fused.values.size());
    if (isNew)
      fused.values.emplace_back();
    return number->second;
  }

  FusedCalls fused;
};

class FusedProduct : public ::testing::TestWithParam<DType> {
protected:
  FusedProduct() { standin::reset(); }
  ~FusedProduct() override { standin::reset(); }

  /// Random elements for what was there before.
  std::vector<std::byte> memoryOf(const Calls &calls) const {
    std::vector<std::byte> memory(calls.types.size() * kPlaceBytes);
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (size_t value = 0; value < calls.types.size(); ++value)
      for (int64_t i = 0; i < calls.types[value].numElements(); ++i) {
        float drawn = uniform(random);
        BFloat16 narrow(drawn);
        bool isNarrow = calls.types[value].dtype == DType::BF16;
        std::memcpy(memory.data() + calls.places[value] * kPlaceBytes +
                        static_cast<size_t>(i) * (isNarrow ? 2 : 4),
                    isNarrow ? static_cast<const void *>(&narrow) : &drawn, isNarrow ? 2 : 4);
      }
    return memory;
  }

  /// What is in the memory after the kernels with their operands; counts their launches.
  using Work = std::pair<const Kernel *, std::pair<std::vector<size_t>, std::vector<size_t>>>;
  std::vector<std::byte> run(const Calls &calls, const std::vector<Work> &work,
                             int64_t microbatch) {
    std::unique_ptr<Device> device = take(backend->openDevice(0));
    std::vector<std::byte> bytes = memoryOf(calls);
    size_t workspace = 256;
    for (const Work &each : work)
      workspace = std::max(workspace, each.first->workspaceBytes());
    auto staging = take(device->allocateStaging(bytes.size()));
    auto memory = take(device->allocate(bytes.size())), scratch = take(device->allocate(workspace));
    auto queue = take(device->openQueue(QueueKind::Compute));
    std::memcpy(staging->data(), bytes.data(), bytes.size());
    check(queue->copy(memory->data(), staging->data(), bytes.size()));
    uint64_t before = standin::counts().launches;
    std::vector<AxisCoordinate> position = calls.mesh;
    position[1].coordinate = microbatch;
    for (const auto &[kernel, operands] : work) {
      auto addresses = [&](const std::vector<size_t> &values) {
        std::vector<void *> result;
        for (size_t value : values)
          result.push_back(memory->data() + calls.places[value] * kPlaceBytes);
        return result;
      };
      std::vector<void *> inputs = addresses(operands.first), outputs = addresses(operands.second);
      check(queue->enqueue(*kernel, {inputs, outputs, position, scratch->data()}));
    }
    check(queue->copy(staging->data(), memory->data(), bytes.size()));
    check(queue->finish());
    launches = standin::counts().launches - before;
    std::memcpy(bytes.data(), staging->data(), bytes.size());
    return bytes;
  }

  /// The values by their numbers, those before and those that are made.
  static std::pair<std::vector<size_t>, std::vector<size_t>> operandsOf(const Calls &calls) {
    FusedCalls fused = calls.get();
    std::vector<size_t> byNumber(fused.values.size());
    for (auto [value, number] : calls.numbers)
      byNumber[number] = value;
    std::pair<std::vector<size_t>, std::vector<size_t>> operands;
    for (size_t i = 0; i < byNumber.size(); ++i)
      (fused.values[i].maker ? operands.second : operands.first).push_back(byNumber[i]);
    return operands;
  }

  std::vector<std::byte> runFused(const Calls &calls, int64_t microbatch = 0) {
    std::unique_ptr<Kernel> kernel = backend->prepareFused(calls.get());
    if (!kernel) {
      ADD_FAILURE() << "there is no kernel for the calls";
      return {};
    }
    return run(calls, {{kernel.get(), operandsOf(calls)}}, microbatch);
  }

  std::vector<std::byte> runOneByOne(const Calls &calls, int64_t microbatch = 0) {
    FusedCalls fused = calls.get();
    std::vector<size_t> byNumber(fused.values.size());
    for (auto [value, number] : calls.numbers)
      byNumber[number] = value;
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::vector<Work> work;
    for (const FusedCalls::Call &call : fused.calls) {
      kernels.push_back(take(backend->prepare(call.signature)));
      Work each{kernels.back().get(), {}};
      for (size_t number : call.inputs)
        each.second.first.push_back(byNumber[number]);
      for (size_t number : call.outputs)
        each.second.second.push_back(byNumber[number]);
      work.push_back(std::move(each));
    }
    return run(calls, work, microbatch);
  }

  static double elementOf(const Calls &calls, const std::vector<std::byte> &memory, size_t value,
                          int64_t i) {
    const std::byte *from = memory.data() + calls.places[value] * kPlaceBytes;
    if (calls.types[value].dtype == DType::BF16) {
      BFloat16 element;
      std::memcpy(&element, from + 2 * i, 2);
      return static_cast<float>(element);
    }
    float element;
    std::memcpy(&element, from + 4 * i, 4);
    return element;
  }

  /// One launch gives the kept values that the calls give one by one; without epilogues the bits.
  void expectEqual(Calls &calls, const std::vector<size_t> &kept, int64_t microbatch = 0) {
    for (size_t value : kept)
      calls.keep(value);
    std::vector<std::byte> single = runOneByOne(calls, microbatch);
    std::vector<std::byte> fused = runFused(calls, microbatch);
    ASSERT_EQ(fused.size(), single.size());
    EXPECT_EQ(launches, 1u);
    for (size_t value : kept) {
      bool isNarrow = calls.types[value].dtype == DType::BF16;
      for (int64_t i = 0; i < calls.types[value].numElements(); ++i) {
        double expected = elementOf(calls, single, value, i);
        ASSERT_NEAR(elementOf(calls, fused, value, i), expected,
                    (isNarrow ? 0x1p-6 : 1e-5) * std::max(1.0, std::abs(expected)))
            << "value " << value << ", element " << i;
      }
    }
    standin::Settings settings;
    settings.epilogues = false;
    standin::reset(settings);
    std::vector<std::byte> fallback = runFused(calls, microbatch);
    for (size_t value : kept)
      EXPECT_EQ(std::memcmp(fallback.data() + calls.places[value] * kPlaceBytes,
                            single.data() + calls.places[value] * kPlaceBytes,
                            calls.types[value].numBytes()),
                0)
          << value;
    standin::reset();
  }

  bool hasKernel(const Calls &calls) const { return backend->prepareFused(calls.get()) != nullptr; }

  TensorType type(std::vector<int64_t> shape) const { return {GetParam(), std::move(shape)}; }
  static TensorType wide(std::vector<int64_t> shape) { return {DType::F32, std::move(shape)}; }

  const std::vector<AxisCoordinate> mesh = {{"dp", 2, 1}, {"micro", 3, 0, true}};
  std::unique_ptr<Backend> backend = createCudaBackend();
  uint64_t launches = 0;
};

const AttributeMap kAlongRows = {{"rhs_dims", std::vector<int64_t>{2}}};
const AttributeMap kTanh = {{"approximate", std::string("tanh")}};
AttributeMap equation(const std::string &text) { return {{"equation", text}}; }
AttributeMap sumOver(std::vector<int64_t> dims) {
  return {{"kind", std::string("sum")}, {"dims", std::move(dims)}};
}

/// x [2, 3, 8] times w [8, 16].
struct Forward {
  Calls calls;
  size_t x, w, product;
  Forward(const std::vector<AxisCoordinate> &mesh, DType dtype) : calls(mesh) {
    x = calls.value({dtype, {2, 3, 8}});
    w = calls.value({dtype, {8, 16}});
    product = calls.value({dtype, {2, 3, 16}});
    calls.call("einsum", {x, w}, {product}, equation("bsd,df->bsf"));
  }
};

TEST_P(FusedProduct, AddsABias) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  expectEqual(calls, {sum});
}

TEST_P(FusedProduct, AddsABiasAndAMatrixInWhosePlaceTheSumIs) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16})),
         residual = calls.value(type({2, 3, 16})),
         total = calls.valueAt(residual, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.call("add", {residual, sum}, {total});
  expectEqual(calls, {total});
}

TEST_P(FusedProduct, ComputesAGelu) {
  for (bool isKept : {false, true}) {
    Forward forward(mesh, GetParam());
    Calls &calls = forward.calls;
    size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.product, type({2, 3, 16})),
           gelu = calls.value(type({2, 3, 16}));
    calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
    calls.call("gelu", {sum}, {gelu}, kTanh);
    expectEqual(calls, isKept ? std::vector{sum, gelu} : std::vector{gelu});
  }
}

TEST_P(FusedProduct, ComputesTheGradientOfAGelu) {
  Calls calls(mesh);
  size_t dy = calls.value(type({2, 3, 8})), w = calls.value(type({16, 8})),
         x = calls.value(type({2, 3, 16})), product = calls.value(type({2, 3, 16})),
         dx = calls.valueAt(product, type({2, 3, 16}));
  calls.call("einsum", {dy, w}, {product}, equation("bsd,fd->bsf"));
  calls.call("gelu_grad", {x, product}, {dx}, kTanh);
  expectEqual(calls, {dx});
}

TEST_P(FusedProduct, SumsTheGradientOfABias) {
  // The gradient is the right or the left operand, and its sum comes before or after the product.
  for (bool isRight : {false, true}) {
    Calls calls(mesh);
    size_t x = calls.value(type({2, 3, 8})), dy = calls.value(type({2, 3, 2, 4})),
           dw = calls.value(
               wide(isRight ? std::vector<int64_t>{8, 2, 4} : std::vector<int64_t>{2, 4, 8})),
           db = calls.value(wide({2, 4}));
    if (isRight)
      calls.call("reduce", {dy}, {db}, sumOver({0, 1}));
    calls.call("einsum", {isRight ? x : dy, isRight ? dy : x}, {dw},
               equation(isRight ? "bsd,bshe->dhe" : "bshe,bsd->hed"));
    if (!isRight)
      calls.call("reduce", {dy}, {db}, sumOver({0, 1}));
    expectEqual(calls, {dw, db});
  }
}

TEST_P(FusedProduct, IsAddedFromTheSecondMicrobatchOn) {
  for (int64_t microbatch : {0, 2}) {
    Calls calls(mesh);
    size_t x = calls.value(type({6, 8})), dy = calls.value(type({6, 16})),
           dw = calls.value(wide({8, 16})), db = calls.value(wide({16})),
           sum = calls.value(wide({8, 16}));
    calls.call("einsum", {x, dy}, {dw}, equation("kd,kf->df"));
    calls.call("reduce", {dy}, {db}, sumOver({0}));
    calls.call("accumulate", {dw}, {sum}, {{"axis", std::string("micro")}});
    expectEqual(calls, {sum, db}, microbatch);
  }
}

TEST_P(FusedProduct, ReadsSlicesWhereTheyAre) {
  Calls calls(mesh);
  size_t x = calls.value(type({2, 3, 8})), weights = calls.value(type({8, 3, 2, 8})),
         biases = calls.value(type({3, 2, 8})), w = calls.value(type({8, 1, 2, 8})),
         bias = calls.value(type({1, 2, 8})), product = calls.value(type({2, 3, 2, 8})),
         sum = calls.valueAt(product, type({2, 3, 2, 8}));
  calls.call("slice", {weights}, {w}, {{"offsets", std::vector<int64_t>{0, 1, 0, 0}}});
  calls.call("slice", {biases}, {bias}, {{"offsets", std::vector<int64_t>{2, 0, 0}}});
  calls.types[w] = type({8, 2, 8}); // a view
  calls.types[bias] = type({2, 8});
  calls.call("einsum", {x, w}, {product}, equation("bsd,dhe->bshe"));
  calls.call("add", {product, bias}, {sum}, {{"rhs_dims", std::vector<int64_t>{2, 3}}});
  expectEqual(calls, {sum});
}

INSTANTIATE_TEST_SUITE_P(Types, FusedProduct, ::testing::Values(DType::F32, DType::BF16),
                         [](const auto &info) { return std::string(name(info.param)); });

/// Calls that look alike and are something else.
class FusedProductRefuses : public FusedProduct {};
INSTANTIATE_TEST_SUITE_P(Types, FusedProductRefuses, ::testing::Values(DType::F32));

TEST_P(FusedProductRefuses, AProductThatIsReadElsewhere) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.value(type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.keep(sum);
  EXPECT_TRUE(hasKernel(calls));
  calls.keep(forward.product);
  EXPECT_FALSE(hasKernel(calls));
}

TEST_P(FusedProductRefuses, AResultInThePlaceOfAnOperand) {
  Forward forward(mesh, GetParam());
  Calls &calls = forward.calls;
  size_t bias = calls.value(type({16})), sum = calls.valueAt(forward.x, type({2, 3, 16}));
  calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  calls.keep(sum);
  EXPECT_FALSE(hasKernel(calls));
}

TEST_P(FusedProductRefuses, WhatIsNoEpilogue) {
  auto refuses = [&](const std::string &kernel, const TensorType &other, AttributeMap attributes,
                     bool isFirst = false) {
    Forward forward(mesh, GetParam());
    Calls &calls = forward.calls;
    size_t operand = calls.value(other), out = calls.value(type({2, 3, 16}));
    calls.call(kernel,
               isFirst ? std::vector{forward.product, operand}
                       : std::vector{operand, forward.product},
               {out}, std::move(attributes));
    calls.keep(out);
    return !hasKernel(calls);
  };
  // A column of its own, the middle dimension, another operation, GELU by erf.
  EXPECT_TRUE(refuses("add", type({2, 3}), {{"lhs_dims", std::vector<int64_t>{0, 1}}}));
  EXPECT_TRUE(refuses("add", type({3}), {{"lhs_dims", std::vector<int64_t>{1}}}));
  EXPECT_TRUE(refuses("mul", type({2, 3, 16}), {}));
  EXPECT_TRUE(refuses("gelu_grad", type({2, 3, 16}), {{"approximate", std::string("none")}}));
  // The product is what the GELU is of, not its gradient.
  EXPECT_TRUE(refuses("gelu_grad", type({2, 3, 16}), kTanh, /*isFirst=*/true));
  EXPECT_FALSE(refuses("gelu_grad", type({2, 3, 16}), kTanh));
}

TEST_P(FusedProductRefuses, SumsOverOtherDimensions) {
  for (const std::vector<int64_t> &dims : {std::vector<int64_t>{0}, {1, 2}, {0, 1, 2}}) {
    Calls calls(mesh);
    size_t x = calls.value(type({2, 16, 8})), dy = calls.value(type({2, 16, 16})),
           dw = calls.value(type({8, 16})),
           db = calls.value(type(dims.size() == 1   ? std::vector<int64_t>{16, 16}
                                 : dims.size() == 2 ? std::vector<int64_t>{2}
                                                    : std::vector<int64_t>{}));
    calls.call("reduce", {dy}, {db}, sumOver(dims));
    calls.call("einsum", {x, dy}, {dw}, equation("bsd,bsf->df"));
    calls.keep(dw);
    calls.keep(db);
    EXPECT_FALSE(hasKernel(calls)) << dims.size();
  }
}

TEST_P(FusedProductRefuses, OtherProducts) {
  TensorType square = type({4, 4}), row = type({4});
  auto isFused = [&](const std::string &text, const TensorType &out) {
    Calls calls(mesh);
    size_t a = calls.value(square), b = calls.value(square), c = calls.value(out),
           sum = calls.value(out);
    calls.call("einsum", {a, b}, {c}, equation(text));
    calls.call("accumulate", {c}, {sum}, {{"axis", std::string("micro")}});
    calls.keep(sum);
    return hasKernel(calls);
  };
  EXPECT_TRUE(isFused("ij,jk->ik", square));
  // Elements, and dots.
  EXPECT_FALSE(isFused("ij,ij->ij", square));
  EXPECT_FALSE(isFused("ij,ij->i", row));
  // A bias in f64.
  Forward forward(mesh, DType::F64);
  size_t bias = forward.calls.value({DType::F64, {16}}),
         sum = forward.calls.value({DType::F64, {2, 3, 16}});
  forward.calls.call("add", {forward.product, bias}, {sum}, kAlongRows);
  forward.calls.keep(sum);
  EXPECT_FALSE(hasKernel(forward.calls));
}

/// The gradient of a norm, and what is added to it.
class FusedNormGrad : public FusedProduct {
protected:
  /// `sumAt` gives the value in whose place the sum is.
  Calls make(bool hasMean, size_t sumAt) {
    Calls calls(mesh);
    size_t x = calls.value(type({5, 24})), gamma = calls.value(type({24})),
           rstd = calls.value(wide({5})), dy = calls.value(type({5, 24})),
           other = calls.value(type({5, 24})), mean = calls.value(wide({5})),
           dx = calls.value(type({5, 24})), dgamma = calls.value(wide({24})),
           dbeta = calls.value(wide({24}));
    size_t sum = calls.valueAt(sumAt, type({5, 24}));
    if (hasMean)
      calls.call("layer_norm_grad", {x, gamma, mean, rstd, dy}, {dx, dgamma, dbeta});
    else
      calls.call("rms_norm_grad", {x, gamma, rstd, dy}, {dx, dgamma});
    calls.call("add", {other, dx}, {sum});
    calls.keep(dgamma);
    if (hasMean)
      calls.keep(dbeta);
    calls.keep(sum);
    return calls;
  }
  static constexpr size_t kX = 0, kDy = 3, kOther = 4, kDx = 6, kDgamma = 7, kDbeta = 8, kSum = 9;
};
INSTANTIATE_TEST_SUITE_P(Types, FusedNormGrad, ::testing::Values(DType::F32, DType::BF16),
                         [](const auto &info) { return std::string(name(info.param)); });

TEST_P(FusedNormGrad, HasTheBitsOfTheCalls) {
  for (bool hasMean : {false, true})
    for (size_t sumAt : {kOther, kDx}) {
      Calls calls = make(hasMean, sumAt);
      std::vector<std::byte> single = runOneByOne(calls), fused = runFused(calls);
      ASSERT_EQ(fused.size(), single.size());
      for (size_t value : {kDgamma, kSum, hasMean ? kDbeta : kSum})
        EXPECT_EQ(std::memcmp(fused.data() + calls.places[value] * kPlaceBytes,
                              single.data() + calls.places[value] * kPlaceBytes,
                              calls.types[value].numBytes()),
                  0)
            << value;
    }
}

TEST_P(FusedNormGrad, RefusesASumWhereTheGradientReads) {
  EXPECT_FALSE(hasKernel(make(true, kX)));
  EXPECT_FALSE(hasKernel(make(true, kDy)));
  Calls calls = make(true, kOther);
  EXPECT_TRUE(hasKernel(calls));
  calls.keep(kDx);
  EXPECT_FALSE(hasKernel(calls));
}

} // namespace

} // namespace dtc::runtime
