//===- RandomMaskTest.cpp - Tests of random masks -------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cpu/MaskStretches.h"

#include "runtime/backends/cpu/Simd.h"
#include "support/ShardExtent.h"
#include "test/runtime/backends/conformance/KernelTest.h"
#include "test/runtime/backends/conformance/MaskReference.h"

#include <cmath>
#include <limits>

namespace dtc::runtime::test::randomMaskTest {
namespace {

using namespace cpu;

std::vector<uint8_t> stretch(const MaskWords &words, int64_t first, int64_t count) {
  std::vector<uint8_t> result(static_cast<size_t>(count));
  uint8_t *to = result.data();
  simd([=] {
    KeepBuffer buffer;
    std::copy_n(keepsOf(words, first, count, buffer), count, to);
  });
  return result;
}

TEST(RandomMask, StretchesAreThoseOfPhilox) {
  std::mt19937_64 engine(90);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed 90");
    double rates[] = {0.1, 0.5, 0.9, 0x1p-32, 1 - 0x1p-32};
    double rate = rates[engine() % 5];
    MaskWords words(rate, static_cast<uint32_t>(engine()));
    words.seed = static_cast<uint32_t>(engine());
    words.iteration = static_cast<uint32_t>(engine());
    // Near a carry of the low word of the counter, and anywhere.
    int64_t first = round % 2 ? (int64_t{1} << 34) - static_cast<int64_t>(engine() % 900)
                              : static_cast<int64_t>(engine() >> 2);
    int64_t count = 1 + static_cast<int64_t>(engine() % KeepBuffer::capacity);
    std::vector<uint8_t> found = stretch(words, first, count);
    for (int64_t i = 0; i < count; ++i)
      ASSERT_EQ(
          found[static_cast<size_t>(i)],
          maskKeeps(rate, words.seed, words.op, words.iteration, static_cast<uint64_t>(first + i)))
          << "element " << first + i << " at rate " << rate;
  }
}

TEST(RandomMask, EndsOfTheRange) {
  // 0 keeps everything; what rounds to 2^32 keeps nothing.
  for (uint8_t keep : stretch(MaskWords(0, 1), 3, 1000))
    EXPECT_EQ(keep, 1);
  for (uint8_t keep : stretch(MaskWords(1 - 0x1p-40, 1), 3, 1000))
    EXPECT_EQ(keep, 0);
  EXPECT_EQ(MaskWords(0.25, 1).limit, 0x3FFFFFFFu);
}

TEST(RandomMask, ShareOfZeros) {
  for (double rate : {0.05, 0.1, 0.5, 0.8})
    for (uint32_t op : {0u, 7u}) {
      MaskWords words(rate, op);
      words.seed = 42;
      int64_t total = 1 << 20, zeros = 0;
      for (int64_t first = 0; first < total; first += KeepBuffer::capacity)
        for (uint8_t keep : stretch(words, first, KeepBuffer::capacity))
          zeros += keep == 0;
      double deviation = std::sqrt(static_cast<double>(total) * rate * (1 - rate));
      EXPECT_NEAR(static_cast<double>(zeros), rate * static_cast<double>(total), 4 * deviation);
    }
}

/// The mask of a block in the order of its elements, in pieces of `piece`.
std::vector<uint8_t> blockMask(const RandomMask &mask, const std::vector<AxisCoordinate> &position,
                               const int32_t *key, int64_t elements, int64_t piece) {
  std::vector<uint8_t> result(static_cast<size_t>(elements), 77);
  uint8_t *to = result.data();
  LocalMask local = mask.at(position, key);
  for (int64_t begin = 0; begin < elements; begin += piece) {
    int64_t end = std::min(elements, begin + piece);
    simd([=] {
      KeepBuffer buffer;
      forKeeps(local, begin, end, buffer, [=](int64_t element, int64_t count, const uint8_t *keep) {
        std::copy_n(keep, count, to + element);
      });
    });
  }
  return result;
}

TEST(RandomMask, BlocksArePartsOfTheWhole) {
  struct Case {
    Shape shape;
    std::vector<std::string> sharding;
  };
  const int32_t key[] = {-5, 17};
  constexpr uint32_t op = 3;
  for (const Case &c :
       {Case{{}, {}}, Case{{3000}, {""}}, Case{{3001}, {"a"}}, Case{{7, 6}, {"a", "b"}},
        Case{{7, 5}, {"b,a", "t"}}, Case{{4, 3, 6}, {"", "", "b"}}, Case{{4, 3, 6}, {"", "b", ""}},
        Case{{5, 1, 9, 2}, {"a,b,t", "", "", ""}}, Case{{4, 3}, {"a", "b"}},
        Case{{2, 0, 4}, {"a", "b", ""}}, Case{{5, 1200, 2}, {"b", "a", ""}}})
    for (int64_t at = 0; at < 12; ++at) {
      std::vector<AxisCoordinate> mesh = {
          {"a", 2, at % 2, false}, {"t", 2, at / 2 % 2, true}, {"b", 3, at / 4, false}};
      std::vector<std::vector<std::string>> axes;
      std::vector<ShardExtent> extents;
      Shape local;
      for (size_t dim = 0; dim < c.shape.size(); ++dim) {
        axes.emplace_back();
        ShardExtent extent = ShardExtent::whole(c.shape[dim]);
        for (char letter : c.sharding[dim])
          if (letter != ',') {
            axes.back().push_back(std::string(1, letter));
            for (const AxisCoordinate &axis : mesh)
              if (axis.name == axes.back().back())
                extent = extent.part(axis.size, axis.coordinate);
          }
        extents.push_back(extent);
        local.push_back(extent.room);
      }
      RandomMask mask(0.4, op, local, c.shape, axes);
      for (int64_t piece : {1, 5, 10000}) {
        std::vector<uint8_t> found = blockMask(mask, mesh, key, count(local), piece);
        for (int64_t element = 0; element < count(local); ++element) {
          int64_t rest = element, whole = 0, stride = 1;
          bool exists = true;
          for (size_t dim = local.size(); dim-- > 0; rest /= local[dim]) {
            int64_t index = rest % local[dim];
            exists &= index < extents[dim].count;
            whole += (extents[dim].offset + index) * stride;
            stride *= c.shape[dim];
          }
          if (exists) {
            ASSERT_EQ(
                found[static_cast<size_t>(element)],
                maskKeeps(0.4, static_cast<uint32_t>(-5), op, 17, static_cast<uint64_t>(whole)))
                << TensorType{DType::Bool, c.shape}.str() << " at " << at << " element " << element;
          }
        }
      }
    }
}

MaybeError checkAttributes(const Shape &local, const AttributeMap &attributes,
                           const TensorType &key = {DType::I32, {2}}) {
  KernelSignature signature{"dropout",
                            {{DType::F32, local}, key},
                            {},
                            attributes,
                            {{"a", 2, 0, false}, {"b", 3, 0, false}}};
  SignatureChecker check(signature);
  checkRandomMask(check, signature, "rate", 1, local);
  return check.finish();
}

TEST(RandomMask, Refuses) {
  using Ints = std::vector<int64_t>;
  using Words = std::vector<std::string>;
  AttributeMap good{
      {"rate", 0.1}, {"op", int64_t{5}}, {"shape", Ints{4, 7}}, {"sharding", Words{"a", "b"}}};
  EXPECT_FALSE(checkAttributes({2, 3}, good));
  auto refuse = [&](const std::string &name, const AttributeValue &value,
                    const std::string &message) {
    AttributeMap bad = good;
    bad[name] = value;
    MaybeError error = checkAttributes({2, 3}, bad);
    ASSERT_TRUE(error) << "expected the error: " << message;
    EXPECT_NE(error->message.find(message), std::string::npos) << error->message;
  };
  for (double rate : {1.0, -0.1, std::nan(""), std::numeric_limits<double>::infinity()})
    refuse("rate", rate, "attribute 'rate' is");
  refuse("op", int64_t{-1}, "attribute 'op' is -1, expected a number that fits");
  refuse("op", int64_t{1} << 32, "attribute 'op' is 4294967296");
  refuse("shape", Ints{4}, "attribute 'shape' is [4], expected 2 dimensions");
  refuse("shape", Ints{5, 7}, "attribute 'shape' is [5, 7], expected a shape whose dimension 0");
  refuse("shape", Ints{4, -7}, "attribute 'shape' is [4, -7]");
  refuse("sharding", Words{"a"}, "a list of 1 entries, expected one for each of 2");
  for (const char *text : {"c", "a,a", "a,", ",", "b", " a"})
    refuse("sharding", Words{text, "b"}, "axes of the mesh with commas between them");
  int64_t large = int64_t{1} << 31;
  good["shape"] = Ints{2 * large, 3 * large};
  MaybeError error = checkAttributes({large, large}, good);
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("at most 2^62 elements"), std::string::npos) << error->message;
  good["shape"] = Ints{4, 7};
  error = checkAttributes({2, 3}, good, {DType::I32, {3}});
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("input 1 is i32[3], expected i32[2]"), std::string::npos);
}

} // namespace
} // namespace dtc::runtime::test::randomMaskTest
