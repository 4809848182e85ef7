//===- EinsumTest.cpp - Contractions --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace dtc::runtime::test::einsumTest {
namespace {

using Sizes = std::map<char, int64_t>;

struct Terms {
  std::string lhs, rhs, out;
  std::string equation() const { return lhs + "," + rhs + "->" + out; }
};

Terms split(const std::string &equation) {
  size_t comma = equation.find(','), arrow = equation.find("->");
  return {equation.substr(0, comma), equation.substr(comma + 1, arrow - comma - 1),
          equation.substr(arrow + 2)};
}

Shape shapeOf(const std::string &term, const Sizes &sizes) {
  Shape shape;
  for (char letter : term)
    shape.push_back(sizes.at(letter));
  return shape;
}

/// One loop over all letters at once.
Values reference(const Terms &terms, const Sizes &sizes, const Values &lhs, const Values &rhs) {
  Values out(static_cast<size_t>(count(shapeOf(terms.out, sizes))), 0.0);
  int64_t total = 1;
  for (auto [letter, size] : sizes)
    total *= size;
  std::map<char, int64_t> index;
  auto position = [&](const std::string &term) {
    int64_t offset = 0;
    for (char letter : term)
      offset = offset * sizes.at(letter) + index[letter];
    return static_cast<size_t>(offset);
  };
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i;
    for (auto [letter, size] : sizes) {
      index[letter] = rest % size;
      rest /= size;
    }
    out[position(terms.out)] += lhs[position(terms.lhs)] * rhs[position(terms.rhs)];
  }
  return out;
}

/// The result of `call` on f64, given the elements or their magnitudes.
Values inDouble(KernelCall call, bool magnitudes) {
  for (HostTensor &input : call.inputs) {
    Values values = valuesOf(input);
    for (double &value : values)
      value = magnitudes ? std::fabs(value) : value;
    input = makeTensor(DType::F64, input.type.shape, values);
  }
  call.outputs[0].dtype = DType::F64;
  return valuesOf(call.run(1)[0]);
}

/// Checks an einsum of bf16 and of f16, with results of that type and of f32. Products of two
/// numbers of 16 bits are exact in f32, and each addition has an error of at most 2^-24 of the sum
/// of all magnitudes. The sum is then rounded once: the result is between the ends of that
/// interval, rounded.
void checkHalves(const std::string &equation, const Sizes &sizes, uint64_t seed) {
  Terms terms = split(equation);
  double additions = 1;
  for (auto [letter, size] : sizes)
    if (terms.out.find(letter) == std::string::npos)
      additions *= static_cast<double>(size);
  for (DType dtype : kHalfTypes) {
    Random random(seed);
    HostTensor lhs = random.floats(dtype, shapeOf(terms.lhs, sizes));
    HostTensor rhs = random.floats(dtype, shapeOf(terms.rhs, sizes));
    for (DType result : {dtype, DType::F32}) {
      TensorType type{result, shapeOf(terms.out, sizes)};
      KernelCall call{"einsum", {lhs, rhs}, {type}, {{"equation", equation}}};
      Values low = inDouble(call, false), high = low, magnitudes = inDouble(call, true);
      for (size_t i = 0; i < low.size(); ++i) {
        double error = additions * 0x1p-24 * magnitudes[i] * (1 + 0x1p-20);
        low[i] -= error;
        high[i] += error;
      }
      low = valuesOf(makeTensor(result, type.shape, low));
      high = valuesOf(makeTensor(result, type.shape, high));
      for (int threads : {1, 2, 3}) {
        HostTensor first = call.run(threads)[0];
        EXPECT_EQ(first.bytes, call.run(threads)[0].bytes) << "a rerun gives another result";
        Values found = valuesOf(first);
        for (size_t i = 0; i < found.size(); ++i)
          ASSERT_TRUE(found[i] >= low[i] && found[i] <= high[i])
              << equation << " " << lhs.type.str() << " " << rhs.type.str() << " -> " << type.str()
              << ", " << threads << " threads, element " << i << ": " << found[i] << ", expected "
              << low[i] << " to " << high[i];
      }
    }
  }
}

void checkEinsum(const std::string &equation, const Sizes &allSizes, uint64_t seed) {
  SCOPED_TRACE(equation);
  Terms terms = split(equation);
  Sizes sizes;
  for (auto [letter, size] : allSizes)
    if (equation.find(letter) != std::string::npos)
      sizes[letter] = size;
  for (DType dtype : kFloatTypes) {
    Random random(seed);
    HostTensor lhs = random.floats(dtype, shapeOf(terms.lhs, sizes));
    HostTensor rhs = random.floats(dtype, shapeOf(terms.rhs, sizes));
    expectKernel({"einsum",
                  {lhs, rhs},
                  {TensorType{dtype, shapeOf(terms.out, sizes)}},
                  {{"equation", equation}}},
                 {reference(terms, sizes, valuesOf(lhs), valuesOf(rhs))}, 1e-14);
  }
  checkHalves(equation, sizes, seed);
}

TEST(Einsum, Matrices) {
  Sizes sizes{{'m', 37}, {'n', 29}, {'k', 41}};
  for (const char *equation : {"mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn", "mk,kn->nm",
                               "mk,nk->nm", "km,kn->nm", "km,nk->nm"})
    checkEinsum(equation, sizes, 10);
}

TEST(Einsum, ModelEquations) {
  Sizes sizes{{'b', 3}, {'s', 10}, {'t', 11}, {'d', 24}, {'f', 17}, {'h', 4}, {'e', 6}, {'c', 3}};
  for (const char *equation :
       {"bsd,df->bsf", "bsf,df->bsd", "bsd,bsf->df", "bsd,fd->bsf", "bsd,dhe->bshe",
        "bshe,dhe->bsd", "bsd,bshe->dhe", "bsd,dhe->bhse", "bhse,dhe->bsd", "bshe,bthe->bhst",
        "bhst,bthe->bshe", "bhst,bshe->bthe", "bsd,dche->cbshe", "cbshe,dche->bsd",
        "bsd,cbshe->dche", "bshe,hed->bsd", "sbd,df->bsf", "bds,df->bsf"})
    checkEinsum(equation, sizes, 11);
}

TEST(Einsum, VectorsAndScalars) {
  Sizes sizes{{'a', 33}, {'b', 45}, {'c', 7}};
  checkEinsum(",->", sizes, 12);
  checkEinsum("a,->a", sizes, 12);
  checkEinsum(",ab->ba", sizes, 12);
  checkEinsum("a,a->a", sizes, 12);
  checkEinsum("a,a->", sizes, 12);
  checkEinsum("a,b->ab", sizes, 12);
  checkEinsum("a,b->ba", sizes, 12);
  checkEinsum("ab,b->a", sizes, 12);
  checkEinsum("ab,a->b", sizes, 12);
  checkEinsum("b,ab->a", sizes, 12);
  checkEinsum("a,ab->b", sizes, 12);
  checkEinsum("ab,ab->ab", sizes, 12);
  checkEinsum("ab,ba->ab", sizes, 12);
  checkEinsum("ab,ab->", sizes, 12);
  checkEinsum("ab,ba->", sizes, 12);
  checkEinsum("ab,ab->a", sizes, 12);
  checkEinsum("ab,ab->b", sizes, 12);
  checkEinsum("abc,abc->ac", sizes, 12);
  checkEinsum("abc,cab->b", sizes, 12);
  checkEinsum("abc,b->abc", sizes, 12);
  checkEinsum("abc,ab->abc", sizes, 12);
  checkEinsum("abc,ab->c", sizes, 12);
}

TEST(Einsum, SizesOfOneAndZero) {
  for (const char *equation : {"bsd,df->bsf", "bsd,bsf->df", "bsd,bsd->", "bsf,bsd->bfsd"})
    for (char letter : {'b', 's', 'd', 'f'})
      for (int64_t size : {0, 1}) {
        Sizes sizes{{'b', 5}, {'s', 6}, {'d', 7}, {'f', 8}};
        sizes[letter] = size;
        checkEinsum(equation, sizes, 13);
      }
}

/// A random equation with up to two letters of each group in random order.
TEST(Einsum, RandomEquations) {
  std::mt19937_64 engine(14);
  for (int round = 0; round < 150; ++round) {
    std::array<std::string, 3> terms;
    Sizes sizes;
    char letter = 'a';
    for (size_t absent = 0; absent < 4; ++absent) // the term that a group is not in; 3: batch
      for (uint64_t n = engine() % 3; n > 0; --n, ++letter) {
        sizes[letter] = 1 + static_cast<int64_t>(engine() % 6);
        for (size_t term = 0; term < 3; ++term)
          if (term != absent)
            terms[term] += letter;
      }
    for (std::string &term : terms)
      std::shuffle(term.begin(), term.end(), engine);
    checkEinsum(Terms{terms[0], terms[1], terms[2]}.equation(), sizes,
                static_cast<uint64_t>(round));
  }
}

TEST(Einsum, LongSumsAreAccurate) {
  // A running sum in f32 would be off by far more than this.
  Random random(15);
  HostTensor x = random.floats(DType::F32, {1000, 1003}, 0.5, 1);
  double sum = 0;
  for (double value : valuesOf(x))
    sum += value * value;
  HostTensor result =
      KernelCall{"einsum", {x, x}, {TensorType{DType::F32, {}}}, {{"equation", "ab,ab->"}}}.run(
          2)[0];
  EXPECT_NEAR(valuesOf(result)[0] / sum, 1, 1e-6);
}

TEST(Einsum, LargeMatrices) {
  // Large enough for the GEMM to use several threads and blocks; f64 is the reference.
  struct Case {
    const char *equation;
    Shape lhs, rhs, out;
  };
  for (const Case &c : {Case{"bsd,df->bsf", {2, 67, 300}, {300, 513}, {2, 67, 513}},
                        Case{"bsf,df->bsd", {2, 67, 513}, {300, 513}, {2, 67, 300}},
                        Case{"bsd,bsf->df", {2, 67, 300}, {2, 67, 513}, {300, 513}},
                        Case{"bshe,bthe->bhst", {2, 90, 3, 40}, {2, 95, 3, 40}, {2, 3, 90, 95}}}) {
    Random random(16);
    HostTensor lhs = random.floats(DType::F32, c.lhs), rhs = random.floats(DType::F32, c.rhs);
    auto call = [&](DType dtype) {
      return KernelCall{
          "einsum",
          {makeTensor(dtype, c.lhs, valuesOf(lhs)), makeTensor(dtype, c.rhs, valuesOf(rhs))},
          {TensorType{dtype, c.out}},
          {{"equation", c.equation}}};
    };
    expectKernel(call(DType::F32), {valuesOf(call(DType::F64).run(2)[0])}, 1e-14);
  }
}

TEST(Einsum, LargeMatricesOfHalves) {
  // All transposes, sizes that no tile divides, and more than a block that is widened.
  Sizes sizes{{'m', 133}, {'n', 201}, {'k', 77}};
  for (const char *equation : {"mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->mn", "mk,kn->nm",
                               "mk,nk->nm", "km,kn->nm", "km,nk->nm"})
    checkHalves(equation, sizes, 17);
  checkHalves("mk,kn->mn", {{'m', 520}, {'n', 530}, {'k', 1030}}, 18);
  checkHalves("mk,nk->mn", {{'m', 1}, {'n', 700}, {'k', 600}}, 18);
  checkHalves("mk,kn->mn", {{'m', 700}, {'n', 1}, {'k', 600}}, 18);
  checkHalves("mk,kn->mn", {{'m', 300}, {'n', 300}, {'k', 1}}, 18);
  Sizes heads{{'b', 2}, {'s', 67}, {'t', 70}, {'h', 3}, {'e', 24}, {'d', 72}};
  for (const char *equation : {"bshe,bthe->bhst", "bhst,bthe->bshe", "bsd,dhe->bshe",
                               "bshe,dhe->bsd", "bsd,bshe->dhe", "bsd,dhe->hbse"}) {
    Sizes used;
    for (auto [letter, size] : heads)
      if (std::string(equation).find(letter) != std::string::npos)
        used[letter] = size;
    checkHalves(equation, used, 19);
  }
}

/// A few rows or columns with a large matrix, in all orders, of sizes that no block divides.
TEST(Einsum, FewRows) {
  const std::array<int64_t, 2> large[] = {{1091, 61}, {67, 1033}, {1100, 64}};
  const char *equations[] = {"mk,kn->mn", "mk,nk->mn", "km,kn->mn", "km,nk->nm"};
  for (int64_t few = 1; few <= 5; ++few)
    for (size_t i = 0; i < std::size(equations); ++i) {
      auto [many, depth] = large[(i + static_cast<size_t>(few)) % std::size(large)];
      Sizes sizes{{'m', few}, {'n', many}, {'k', depth}};
      checkEinsum(equations[i], sizes, 20);
      std::swap(sizes['m'], sizes['n']);
      checkEinsum(equations[i], sizes, 21);
    }
}

TEST(Einsum, RandomProductsOfHalves) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 engine(seed);
    auto shuffled = [&](std::string letters) {
      std::shuffle(letters.begin(), letters.end(), engine);
      return letters;
    };
    std::string batch = seed % 3 == 0 ? "b" : "";
    Terms terms{shuffled(batch + "mk"), shuffled(batch + "kn"), shuffled(batch + "mn")};
    Sizes sizes;
    for (char letter : batch + "mnk")
      sizes[letter] = 1 + static_cast<int64_t>(engine() % (letter == 'b' ? 4 : 130));
    checkHalves(terms.equation(), sizes, seed);
  }
}

TEST(Einsum, Refuses) {
  TensorType a{DType::F32, {2, 3}}, b{DType::F32, {3, 4}}, c{DType::F32, {2, 4}};
  auto refuse = [&](const std::string &equation, const std::string &message) {
    expectRefused({"einsum", {a, b}, {c}, {{"equation", equation}}, {}}, message);
  };
  refuse("ab,bc->acd", "attribute 'equation' is \"ab,bc->acd\", expected an equation");
  for (const char *text : {"", ",", "->", "ab,bc", "ab->ac", "aab,bc->ac", "ab,cd->ac", "aB,Bc->ac",
                           "ab,bc,cd->ad", "ab->bc,ac", "ab,bc->ac ", "ab, bc->ac", "...b,bc->ac"})
    refuse(text, "attribute 'equation'");
  refuse("abd,bcd->ac", "kernel 'einsum': input 0 is f32[2,3], expected the sizes of \"abd\"");
  refuse("ab,cb->ac", "input 1 is f32[3,4], expected the sizes of \"cb\"");
  refuse("ab,bc->ca", "output 0 is f32[2,4], expected the sizes of \"ca\"");
  expectRefused({"einsum", {a, {DType::F64, {3, 4}}}, {c}, {{"equation", "ab,bc->ac"}}, {}},
                "input 1 is f64[3,4], expected f32[3,4]");
  TensorType half{DType::BF16, {2, 3}}, other{DType::BF16, {3, 4}};
  for (DType dtype : {DType::F16, DType::F64})
    expectRefused({"einsum", {half, other}, {{dtype, {2, 4}}}, {{"equation", "ab,bc->ac"}}, {}},
                  "expected bf16[2,4]");
  expectRefused({"einsum", {half, b}, {c}, {{"equation", "ab,bc->ac"}}, {}},
                "input 1 is f32[3,4], expected bf16[3,4]");
  expectRefused({"einsum", {a, b}, {c}, {}, {}}, "attribute 'equation' is missing");
  expectRefused({"einsum", {a}, {c}, {{"equation", "ab,bc->ac"}}, {}}, "has 1 inputs, expected 2");
}

} // namespace
} // namespace dtc::runtime::test::einsumTest
