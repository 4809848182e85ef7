//===- Safetensors.cpp - Reading of safetensors files ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/Safetensors.h"

#include "runtime/data/ElementConversion.h"
#include "runtime/data/FileFormat.h"
#include "runtime/data/JsonMembers.h"
#include "support/CheckedMath.h"
#include "support/Format.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace dtc::runtime {

using Json = nlohmann::json;

/// The format's own limit.
static constexpr uint64_t kMaxHeaderBytes = 100'000'000;
/// The bytes of a tensor that are converted at once: few system calls, and little memory beside the
/// result.
static constexpr int64_t kMaxReadBytes = int64_t{1} << 20;

std::string SafetensorsEntry::str() const { return dtype + formatShape(shape); }

int64_t SafetensorsEntry::numElements() const { return checkedElements(shape).value_or(0); }

static Expected<SafetensorsEntry> parseEntry(const Json &json, size_t dataBytes) {
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets"))
    return Error{"expected an object with dtype, shape and data_offsets"};
  const Json &dtype = json["dtype"], &shape = json["shape"], &offsets = json["data_offsets"];
  auto isSize = [](const Json &value) {
    return value.is_number_unsigned() && value.get<uint64_t>() <= uint64_t{INT64_MAX};
  };
  if (!dtype.is_string())
    return Error{"dtype is not a string"};
  SafetensorsEntry entry;
  entry.dtype = dtype.get<std::string>();
  size_t width = fileElementWidth(entry.dtype);
  if (width == 0)
    return Error{fmt::format("unknown dtype \"{}\"", entry.dtype)};
  if (!shape.is_array() || !std::all_of(shape.begin(), shape.end(), isSize))
    return Error{"shape is not a list of sizes"};
  for (const Json &size : shape)
    entry.shape.push_back(size.get<int64_t>());
  if (!offsets.is_array() || offsets.size() != 2 || !isSize(offsets[0]) || !isSize(offsets[1]))
    return Error{"data_offsets is not a pair of sizes"};
  entry.begin = offsets[0].get<size_t>();
  entry.end = offsets[1].get<size_t>();
  if (entry.begin > entry.end || entry.end > dataBytes)
    return Error{fmt::format("data_offsets [{}, {}] reach beyond the {} bytes of data; the file is "
                             "truncated or damaged",
                             entry.begin, entry.end, dataBytes)};
  std::optional<int64_t> elements = checkedElements(entry.shape);
  std::optional<int64_t> bytes =
      elements ? checkedMul(*elements, static_cast<int64_t>(width)) : std::nullopt;
  if (!bytes || static_cast<size_t>(*bytes) != entry.end - entry.begin)
    return Error{fmt::format("{} does not take the {} bytes that data_offsets span", entry.str(),
                             entry.end - entry.begin)};
  return entry;
}

MaybeError SafetensorsFile::readHeader() {
  if (MaybeError error = refuseForeignFormat(file))
    return error;
  uint64_t headerBytes = 0;
  if (file.size() < sizeof(headerBytes))
    return Error{fmt::format("{}: is no safetensors file: it has {} bytes", path(), file.size())};
  if (MaybeError error = file.read(0, std::as_writable_bytes(std::span(&headerBytes, 1))))
    return error;
  if (headerBytes > kMaxHeaderBytes || headerBytes > file.size() - sizeof(headerBytes))
    return Error{fmt::format("{}: is no safetensors file, or truncated: its header claims {} "
                             "bytes, the file has {}",
                             path(), headerBytes, file.size())};
  std::string header(headerBytes, '\0');
  if (MaybeError error = file.read(sizeof(headerBytes), std::as_writable_bytes(std::span(header))))
    return error;
  dataBegin = sizeof(headerBytes) + headerBytes;
  if (MaybeError error = parseEntries(header, file.size() - dataBegin))
    return error->inContext(path());
  return std::nullopt;
}

MaybeError SafetensorsFile::parseEntries(std::string_view header, size_t dataBytes) {
  bool isOfTensor = false;
  auto add = [&](const std::string &name, const Json &value) -> MaybeError {
    Expected<SafetensorsEntry> entry = parseEntry(value, dataBytes);
    if (!entry) {
      isOfTensor = true;
      return entry.error().inContext(fmt::format("tensor \"{}\"", name));
    }
    if (!entries.emplace(name, std::move(*entry)).second)
      return Error{fmt::format("names \"{}\" twice", name)};
    return std::nullopt;
  };
  auto isTensor = [](std::string_view name) { return name != "__metadata__"; };
  if (MaybeError error = readJsonMembers(header, isTensor, add)) {
    if (isOfTensor)
      return error;
    return Error{"is no safetensors file, or damaged: the header " + error->message};
  }
  return checkCoverage(dataBytes);
}

MaybeError SafetensorsFile::checkCoverage(size_t dataBytes) const {
  std::vector<const std::pair<const std::string, SafetensorsEntry> *> sorted;
  for (const auto &entry : entries)
    sorted.push_back(&entry);
  std::sort(sorted.begin(), sorted.end(), [](const auto *a, const auto *b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  size_t position = 0;
  for (const auto *entry : sorted) {
    if (entry->second.begin != position)
      return Error{fmt::format("tensor \"{}\" begins at byte {} of the data; expected {}, without "
                               "a gap or an overlap",
                               entry->first, entry->second.begin, position)};
    position = entry->second.end;
  }
  if (position != dataBytes)
    return Error{fmt::format("the tensors take {} bytes, but the file holds {} bytes of data",
                             position, dataBytes)};
  return std::nullopt;
}

Expected<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  Expected<InputFile> file = InputFile::open(path);
  if (!file)
    return file.error();
  SafetensorsFile result(std::move(*file));
  if (MaybeError error = result.readHeader())
    return *error;
  return result;
}

MaybeError SafetensorsFile::read(const std::string &name, int64_t begin, int64_t count, DType dtype,
                                 std::byte *out) const {
  auto it = entries.find(name);
  if (it == entries.end())
    return Error{fmt::format("{}: has no tensor \"{}\"", path(), name)};
  const SafetensorsEntry &entry = it->second;
  if (begin < 0 || count < 0 || begin > entry.numElements() - count)
    return Error{fmt::format("{}: tensor \"{}\" has {} elements; elements {} to {} were asked for",
                             path(), name, entry.numElements(), begin, begin + count)};
  auto width = static_cast<int64_t>(fileElementWidth(entry.dtype));
  std::vector<std::byte> source(static_cast<size_t>(std::min(count * width, kMaxReadBytes)));
  int64_t done = 0;
  do {
    int64_t part = std::min(count - done, kMaxReadBytes / width);
    std::span<std::byte> bytes = std::span(source).first(static_cast<size_t>(part * width));
    uint64_t offset = dataBegin + entry.begin + static_cast<uint64_t>((begin + done) * width);
    if (MaybeError error = file.read(offset, bytes))
      return error;
    if (MaybeError error = convertElements(entry.dtype, bytes, begin + done, dtype,
                                           out + static_cast<size_t>(done) * byteWidth(dtype)))
      return error->inContext(fmt::format("{}: tensor \"{}\"", path(), name));
    done += part;
  } while (done < count);
  return std::nullopt;
}

Expected<HostTensor> SafetensorsFile::read(const std::string &name, DType dtype) const {
  auto it = entries.find(name);
  if (it == entries.end())
    return Error{fmt::format("{}: has no tensor \"{}\"", path(), name)};
  HostTensor tensor(TensorType{dtype, it->second.shape});
  if (MaybeError error = read(name, 0, it->second.numElements(), dtype, tensor.bytes.data()))
    return *error;
  return tensor;
}

} // namespace dtc::runtime
