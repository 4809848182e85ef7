//===- ElementConversion.cpp - From a file's element types ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/ElementConversion.h"

#include "support/Float16.h"

#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <map>
#include <utility>

namespace dtc::runtime {

size_t fileElementWidth(const std::string &fileDtype) {
  static const std::map<std::string, size_t> widths = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
      {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};
  auto it = widths.find(fileDtype);
  return it == widths.end() ? 0 : it->second;
}

namespace {

/// A file's elements may lie at any address.
template <typename T> T load(const std::byte *from) {
  T value;
  std::memcpy(&value, from, sizeof(T));
  return value;
}

template <typename Out, typename Stored, typename Convert>
void convertAll(std::span<const std::byte> source, std::byte *out, Convert convert) {
  Out *to = reinterpret_cast<Out *>(out);
  for (size_t i = 0; i < source.size() / sizeof(Stored); ++i)
    to[i] = static_cast<Out>(convert(load<Stored>(source.data() + i * sizeof(Stored))));
}

template <typename Out>
bool convertToFloat(const std::string &from, std::span<const std::byte> source, std::byte *out) {
  auto same = [](auto value) { return value; };
  if (from == "F32")
    convertAll<Out, float>(source, out, same);
  else if (from == "F64")
    convertAll<Out, double>(source, out, same);
  else if (from == "F16")
    convertAll<Out, Float16>(source, out, same);
  else if (from == "BF16")
    convertAll<Out, BFloat16>(source, out, same);
  else
    return false;
  return true;
}

template <typename Stored>
MaybeError convertToI32(std::span<const std::byte> source, int64_t first, std::byte *out) {
  int32_t *to = reinterpret_cast<int32_t *>(out);
  for (size_t i = 0; i < source.size() / sizeof(Stored); ++i) {
    Stored value = load<Stored>(source.data() + i * sizeof(Stored));
    if (!std::in_range<int32_t>(value))
      return Error{fmt::format("element {} is {}, which does not fit 32 bits",
                               first + static_cast<int64_t>(i), value)};
    // A negative value stays negative.
    to[i] = static_cast<int32_t>(value); // NOLINT(bugprone-signed-char-misuse)
  }
  return std::nullopt;
}

} // namespace

MaybeError convertElements(const std::string &fileDtype, std::span<const std::byte> source,
                           int64_t first, DType dtype, std::byte *out) {
  switch (dtype) {
  case DType::F32:
    if (convertToFloat<float>(fileDtype, source, out))
      return std::nullopt;
    break;
  case DType::F64:
    if (convertToFloat<double>(fileDtype, source, out))
      return std::nullopt;
    break;
  case DType::BF16:
    if (convertToFloat<BFloat16>(fileDtype, source, out))
      return std::nullopt;
    break;
  case DType::F16:
    if (convertToFloat<Float16>(fileDtype, source, out))
      return std::nullopt;
    break;
  case DType::I32:
    if (fileDtype == "I32")
      return convertToI32<int32_t>(source, first, out);
    if (fileDtype == "I64")
      return convertToI32<int64_t>(source, first, out);
    if (fileDtype == "U32")
      return convertToI32<uint32_t>(source, first, out);
    if (fileDtype == "U64")
      return convertToI32<uint64_t>(source, first, out);
    if (fileDtype == "I16")
      return convertToI32<int16_t>(source, first, out);
    if (fileDtype == "U16")
      return convertToI32<uint16_t>(source, first, out);
    if (fileDtype == "I8")
      return convertToI32<int8_t>(source, first, out);
    if (fileDtype == "U8")
      return convertToI32<uint8_t>(source, first, out);
    break;
  case DType::F8E4M3:
  case DType::F8E5M2:
    break;
  case DType::Bool:
    if (fileDtype == "BOOL") {
      convertAll<uint8_t, uint8_t>(source, out, [](uint8_t value) { return value != 0; });
      return std::nullopt;
    }
    break;
  }
  return Error{fmt::format("elements of type {} cannot be read as {}", fileDtype, name(dtype))};
}

} // namespace dtc::runtime
