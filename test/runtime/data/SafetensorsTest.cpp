//===- SafetensorsTest.cpp - Tests of safetensors files -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"

#include "runtime/data/ElementConversion.h"
#include "support/Float16.h"
#include "test/lib/Times.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>

namespace safetensorsTest {

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

/// The bytes of a file with that header.
static std::string fileOf(const std::string &header, const std::string &data) {
  uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char *>(&size), sizeof(size));
  return bytes + header + data;
}

template <typename T> static std::string bytesOf(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T)};
}

static std::string errorOf(const std::string &bytes) {
  TempDir dir;
  return messageOf(SafetensorsFile::open(dir.write("x.safetensors", bytes)));
}

TEST(Safetensors, ReadsWhatWasWritten) {
  TempDir dir;
  std::map<std::string, HostTensor> tensors;
  std::mt19937 random(1);
  for (auto &[name, type] : std::map<std::string, TensorType>{{"b", {DType::F32, {2, 3}}},
                                                              {"a", {DType::F64, {5}}},
                                                              {"scalar", {DType::I32, {}}},
                                                              {"mask", {DType::Bool, {3}}},
                                                              {"brain", {DType::BF16, {3, 5}}},
                                                              {"half", {DType::F16, {7}}},
                                                              {"none", {DType::F32, {0, 4}}}}) {
    HostTensor &tensor = tensors.emplace(name, type).first->second;
    for (std::byte &byte : tensor.bytes)
      byte = static_cast<std::byte>(type.dtype == DType::Bool ? random() % 2 : random());
  }
  ASSERT_OK(writeSafetensors(dir.path("x.safetensors"), tensors));
  auto file = SafetensorsFile::open(dir.path("x.safetensors"));
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), tensors.size());
  for (auto &[name, tensor] : tensors) {
    auto read = file->read(name, tensor.type.dtype);
    ASSERT_OK(read);
    EXPECT_EQ(read->type, tensor.type);
    EXPECT_EQ(read->bytes, tensor.bytes) << name;
  }
  EXPECT_ERROR(file->read("c", DType::F32), "x.safetensors: has no tensor \"c\"");
}

TEST(Safetensors, DataBeginAtAMultipleOfEight) {
  TempDir dir;
  for (const char *name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    ASSERT_OK(writeSafetensors(
        dir.path("x"),
        std::map<std::string, HostTensor>{{name, HostTensor(TensorType{DType::F32, {1}})}}));
    uint64_t header = 0;
    std::memcpy(&header, dir.read("x").data(), sizeof(header));
    EXPECT_EQ(header % 8, 0u);
    EXPECT_OK(SafetensorsFile::open(dir.path("x")));
  }
}

TEST(Safetensors, AWriteThatFailsLeavesNoFile) {
  TempDir dir;
  std::map<std::string, TensorType> types{{"a", {DType::F32, {2}}}};
  EXPECT_ERROR(
      writeSafetensors(dir.path("x"), types,
                       [](const std::string &) -> Expected<HostTensor> { return Error{"lost"}; }),
      "x: lost");
  EXPECT_ERROR(writeSafetensors(dir.path("x"), types,
                                [](const std::string &) -> Expected<HostTensor> {
                                  return HostTensor(TensorType{DType::F32, {3}});
                                }),
               "tensor \"a\" is f32[2], found f32[3]");
  EXPECT_EQ(dir.numFiles(), 0u);
}

TEST(Safetensors, ReadsAFileOfAnotherWriter) {
  TempDir dir;
  std::string path = dir.write(
      "x.safetensors", fileOf(R"({"__metadata__":{"format":"pt"},)"
                              R"("w":{"dtype":"F32","shape":[2,1],"data_offsets":[2,10]},)"
                              R"("b":{"data_offsets":[0,2],"dtype":"BF16","shape":[1]}}   )",
                              bytesOf<uint16_t>({0x3f80}) + bytesOf<float>({1.5f, -2})));
  auto file = SafetensorsFile::open(path);
  ASSERT_OK(file);
  EXPECT_EQ(*file->read("b", DType::F32)->as<float>(), 1);
  EXPECT_EQ(file->read("w", DType::F32)->as<float>()[1], -2); // lies at an odd address
  EXPECT_EQ(file->tensors().at("w").str(), "F32[2, 1]");
}

TEST(Safetensors, RefusesHostileHeaders) {
  std::string tensor = R"("dtype":"F32","shape":[1],"data_offsets":[0,4])";
  std::string four(4, '\0');
  EXPECT_EQ(errorOf(fileOf("{\"a\":{" + tensor + "}}", four)), "");
  EXPECT_TRUE(contains(errorOf(""), "it has 0 bytes"));
  EXPECT_TRUE(contains(errorOf("abc"), "it has 3 bytes"));
  EXPECT_TRUE(contains(errorOf(std::string(8, '\xff')), "its header claims"));
  EXPECT_TRUE(contains(errorOf(std::string("\x10\0\0\0\0\0\0\0{}", 10)), "claims 16 bytes"));
  EXPECT_TRUE(contains(errorOf(fileOf("{]", "")), "is no JSON object"));
  EXPECT_TRUE(contains(errorOf(fileOf("[]", "")), "is no JSON object"));
  EXPECT_TRUE(contains(errorOf(fileOf("", "")), "is no JSON object"));
  EXPECT_TRUE(contains(errorOf(fileOf(std::string(100000, '['), "")), "no safetensors file"));
  EXPECT_TRUE(contains(errorOf(fileOf("{} {}", "")), "is no JSON object"));
  EXPECT_TRUE(contains(errorOf(fileOf("1", "")), "is no JSON object"));
  EXPECT_TRUE(contains(errorOf(fileOf("{\"a\":{" + tensor + "},\"a\":{" + tensor + "}}", four)),
                       "names \"a\" twice"));
  EXPECT_TRUE(contains(errorOf(fileOf("{\"a\":1}", "")), "tensor \"a\": expected an object"));
  EXPECT_TRUE(contains(errorOf(fileOf("{\"a\":{}}", "")), "expected an object with dtype"));
}

/// Checks that are not linear in the header, or do not stop at its first error, would take minutes
/// or gigabytes here.
TEST(Safetensors, LargeHeadersTakeLinearTimeAndLittleMemory) {
  double begin = dtc::test::cpuSeconds();
  std::string header = "{";
  for (int i = 0; i < 300'000; ++i)
    header += fmt::format(R"({}"t{}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})",
                          i == 0 ? "" : ",", i);
  TempDir dir;
  auto file = SafetensorsFile::open(dir.write("x.safetensors", fileOf(header + "}", "")));
  ASSERT_OK(file);
  EXPECT_EQ(file->tensors().size(), 300'000u);
  // The last one may be wrong.
  EXPECT_TRUE(contains(errorOf(fileOf(header + R"(,"t0":{"dtype":"F32","shape":[0],)"
                                               R"("data_offsets":[0,0]}})",
                                      "")),
                       "names \"t0\" twice"));
  std::string open(30'000'000, '['), objects;
  for (int i = 0; i < 5'000'000; ++i)
    objects += R"({"a":)";
  for (const std::string &deep : {"{\"a\":" + open, "{\"__metadata__\":" + open, objects})
    EXPECT_TRUE(contains(errorOf(fileOf(deep, "")), "the header is nested too deep"));
  std::string list = "[0";
  for (int i = 0; i < 10'000'000; ++i)
    list += ",0";
  EXPECT_TRUE(contains(errorOf(fileOf("{\"a\":{\"dtype\":\"F32\",\"shape\":" + list, "")),
                       "the header has more than 1024 values in \"a\""));
  EXPECT_LT(dtc::test::cpuSeconds() - begin, 60);
}

TEST(Safetensors, MetadataMayBeAnything) {
  std::string metadata = R"({"__metadata__":{"a":"b","a":"c","d":[1,{"e":null}],"f":"{}"},)";
  EXPECT_EQ(errorOf(fileOf(metadata + R"("a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                           std::string(4, '\0'))),
            "");
  EXPECT_TRUE(contains(errorOf(fileOf(R"({"a":{"dtype":"F32","dtype":"F32","shape":[1],)"
                                      R"("data_offsets":[0,4]}})",
                                      std::string(4, '\0'))),
                       "names \"dtype\" twice in \"a\""));
}

TEST(Safetensors, RefusesHostileTensors) {
  auto error = [](const std::string &dtype, const std::string &shape, const std::string &offsets,
                  size_t bytes) {
    return errorOf(fileOf("{\"a\":{\"dtype\":" + dtype + ",\"shape\":" + shape +
                              ",\"data_offsets\":" + offsets + "}}",
                          std::string(bytes, '\0')));
  };
  EXPECT_EQ(error("\"F32\"", "[2]", "[0,8]", 8), "");
  EXPECT_TRUE(contains(error("3", "[2]", "[0,8]", 8), "dtype is not a string"));
  EXPECT_TRUE(contains(error("\"Q9\"", "[2]", "[0,8]", 8), "unknown dtype \"Q9\""));
  EXPECT_TRUE(contains(error("\"F32\"", "2", "[0,8]", 8), "shape is not a list of sizes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[-2]", "[0,8]", 8), "shape is not a list of sizes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2.0]", "[0,8]", 8), "shape is not a list of sizes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[18446744073709551615]", "[0,8]", 8), "list of sizes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[0]", 8), "data_offsets is not a pair"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[0,-8]", 8), "data_offsets is not a pair"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[8,0]", 8), "reach beyond the 8 bytes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[0,8]", 7), "reach beyond the 7 bytes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[3]", "[0,8]", 8), "F32[3] does not take the 8 bytes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[4611686018427387904,4]", "[0,0]", 0), "does not take"));
  EXPECT_TRUE(contains(error("\"F32\"", "[4611686018427387904,4,0]", "[0,0]", 0), "does not take"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[0,8]", 12), "but the file holds 12 bytes"));
  EXPECT_TRUE(contains(error("\"F32\"", "[2]", "[4,12]", 12), "begins at byte 4"));
}

TEST(Safetensors, RefusesOverlap) {
  std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  EXPECT_TRUE(contains(errorOf(fileOf(header, std::string(12, '\0'))),
                       "tensor \"b\" begins at byte 4 of the data; expected 8"));
}

TEST(Safetensors, DamagedFilesGiveAnErrorOrATensor) {
  TempDir dir;
  ASSERT_OK(writeSafetensors(dir.path("x"), std::map<std::string, HostTensor>{
                                                {"a", HostTensor(TensorType{DType::F32, {3}})},
                                                {"b", HostTensor(TensorType{DType::I32, {2}})}}));
  std::string original = dir.read("x");
  std::mt19937_64 random(7);
  for (int i = 0; i < 2000; ++i) {
    std::string bytes = original;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    if (random() % 8 == 0)
      bytes.resize(random() % bytes.size());
    auto file = SafetensorsFile::open(dir.write("y", bytes));
    if (!file)
      continue;
    for (auto &[name, entry] : file->tensors()) {
      (void)file->read(name, DType::F32);
      (void)file->read(name, DType::I32);
    }
  }
}

template <typename In, typename Out>
static std::string convert(const std::string &from, const std::vector<In> &values, DType to,
                           std::vector<Out> &result) {
  result.resize(values.size());
  return messageOf(convertElements(from, std::as_bytes(std::span(values)), 100, to,
                                   reinterpret_cast<std::byte *>(result.data())));
}

TEST(ElementConversion, IntegersAreCheckedForTheirRange) {
  std::vector<int32_t> ints;
  EXPECT_EQ(convert<int64_t>("I64", {-5, INT32_MAX}, DType::I32, ints), "");
  EXPECT_EQ(ints, (std::vector<int32_t>{-5, INT32_MAX}));
  EXPECT_EQ(convert<int64_t>("I64", {0, int64_t{1} << 31}, DType::I32, ints),
            "element 101 is 2147483648, which does not fit 32 bits");
  EXPECT_EQ(convert<uint32_t>("U32", {UINT32_MAX}, DType::I32, ints),
            "element 100 is 4294967295, which does not fit 32 bits");
  EXPECT_EQ(convert<uint8_t>("U8", {255}, DType::I32, ints), "");
  EXPECT_EQ(convert<int8_t>("I8", {-1}, DType::I32, ints), "");
  EXPECT_EQ(ints, std::vector<int32_t>{-1});
}

TEST(ElementConversion, FloatsWidenAndNarrow) {
  std::vector<float> floats;
  std::vector<double> doubles;
  EXPECT_EQ(convert<double>("F64", {0.1}, DType::F32, floats), "");
  EXPECT_EQ(floats, std::vector<float>{0.1f});
  EXPECT_EQ(convert<uint16_t>("F16", {0x3c00}, DType::F64, doubles), "");
  EXPECT_EQ(doubles, std::vector<double>{1});
}

static std::vector<uint16_t> bitsOf(const std::vector<BFloat16> &values) {
  std::vector<uint16_t> bits;
  for (BFloat16 value : values)
    bits.push_back(value.bits);
  return bits;
}
static std::vector<uint16_t> bitsOf(const std::vector<Float16> &values) {
  std::vector<uint16_t> bits;
  for (Float16 value : values)
    bits.push_back(value.bits);
  return bits;
}

TEST(ElementConversion, SixteenBits) {
  std::vector<float> floats;
  EXPECT_EQ(convert<uint16_t>("F16", {0x3c00, 0x7bff, 0x0001}, DType::F32, floats), "");
  EXPECT_EQ(floats, (std::vector<float>{1, 65504, 0x1p-24f}));
  EXPECT_EQ(convert<uint16_t>("BF16", {0x3f80, 0xc040}, DType::F32, floats), "");
  EXPECT_EQ(floats, (std::vector<float>{1, -3}));
  using Bits = std::vector<uint16_t>;
  std::vector<BFloat16> brains;
  std::vector<Float16> halves;
  // The last: right above the point halfway between neighbours, which f32 would round to it.
  EXPECT_EQ(convert<double>("F64", {1, 1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-50}, DType::BF16, brains), "");
  EXPECT_EQ(bitsOf(brains), (Bits{0x3f80, 0x3f80, 0x3f81}));
  EXPECT_EQ(convert<double>("F64", {1, 1 + 0x1p-11, 1 + 0x1p-11 + 0x1p-50}, DType::F16, halves),
            "");
  EXPECT_EQ(bitsOf(halves), (Bits{0x3c00, 0x3c00, 0x3c01}));
  EXPECT_EQ(convert<float>("F32", {3, 1e38f}, DType::BF16, brains), "");
  EXPECT_EQ(bitsOf(brains), (Bits{0x4040, 0x7e96}));
  EXPECT_EQ(convert<float>("F32", {3, 1e38f}, DType::F16, halves), "");
  EXPECT_EQ(bitsOf(halves), (Bits{0x4200, 0x7c00}));
  EXPECT_EQ(convert<uint16_t>("BF16", {0x4040, 0x7f7f}, DType::F16, halves), "");
  EXPECT_EQ(bitsOf(halves), (Bits{0x4200, 0x7c00}));
  EXPECT_EQ(convert<uint16_t>("F16", {0x4200, 0x0001}, DType::BF16, brains), "");
  EXPECT_EQ(bitsOf(brains), (Bits{0x4040, 0x3380}));
  EXPECT_EQ(convert<int32_t>("I32", {1}, DType::BF16, brains),
            "elements of type I32 cannot be read as bf16");
}

TEST(ElementConversion, RefusesWhatIsNotSafe) {
  std::vector<int32_t> ints(4);
  std::vector<float> floats(4);
  std::vector<uint8_t> bools(4);
  EXPECT_EQ(convert<float>("F32", {1}, DType::I32, ints),
            "elements of type F32 cannot be read as i32");
  EXPECT_EQ(convert<int64_t>("I64", {1}, DType::F32, floats),
            "elements of type I64 cannot be read as f32");
  EXPECT_EQ(convert<uint8_t>("U8", {1}, DType::Bool, bools),
            "elements of type U8 cannot be read as bool");
  EXPECT_EQ(convert<uint8_t>("BOOL", {0, 1, 7}, DType::Bool, bools), "");
  EXPECT_EQ(bools, (std::vector<uint8_t>{0, 1, 1}));
}

} // namespace safetensorsTest
