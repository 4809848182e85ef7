//===- DocumentFile.cpp - Document boundaries of token files --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/data/DocumentFile.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// Entries that are read at once, for a window and for the whole file.
static constexpr uint64_t kEntriesAtOnce = 512;
static constexpr uint64_t kEntriesCheckedAtOnce = uint64_t{1} << 16;

Expected<DocumentFile> DocumentFile::open(const std::string &tokensPath, uint64_t tokens) {
  Expected<InputFile> file = InputFile::open(tokensPath + ".documents");
  if (!file)
    return Error{file.error().message +
                 "; a packed model needs the positions of the documents, which dtc-data tokens "
                 "writes beside the tokens"};
  DocumentFile documents(std::move(*file), tokens);
  if (MaybeError error = documents.checkEnds())
    return error->inContext(documents.path());
  return documents;
}

MaybeError DocumentFile::checkEnds() const {
  if (file.size() < 2 * kBytes || file.size() % kBytes != 0)
    return Error{fmt::format("has {} bytes, expected 8 for each document and 8 more", file.size())};
  uint64_t first = 0, last = 0;
  if (MaybeError error = read(0, {&first, 1}))
    return error;
  if (MaybeError error = read(documents(), {&last, 1}))
    return error;
  if (first != 0 || last != tokens)
    return Error{fmt::format("has documents from token {} to {}, and the file of tokens has {}; "
                             "the two are not of one run of dtc-data",
                             first, last, tokens)};
  return std::nullopt;
}

MaybeError DocumentFile::read(uint64_t index, std::span<uint64_t> out) const {
  return file.read(index * kBytes, std::as_writable_bytes(out));
}

MaybeError DocumentFile::checkOrder(uint64_t before, uint64_t at) const {
  if (at >= before && at <= tokens)
    return std::nullopt;
  return Error{fmt::format("{}: has a document at token {} after one at {}, of {} tokens; "
                           "the file is damaged",
                           path(), at, before, tokens)};
}

MaybeError DocumentFile::check(const std::function<bool(uint64_t done)> &progress) const {
  std::vector<uint64_t> part;
  uint64_t before = 0, entries = documents() + 1;
  for (uint64_t index = 0; index < entries && progress(index); index += part.size()) {
    part.resize(std::min(kEntriesCheckedAtOnce, entries - index));
    if (MaybeError error = read(index, part))
      return error;
    for (uint64_t at : part) {
      if (MaybeError error = checkOrder(before, at))
        return error;
      before = at;
    }
  }
  return std::nullopt;
}

Expected<uint64_t> DocumentFile::findAfter(uint64_t position) const {
  uint64_t low = 0, high = documents();
  while (low < high) {
    uint64_t middle = low + (high - low) / 2, begin = 0;
    if (MaybeError error = read(middle, {&begin, 1}))
      return *error;
    if (begin > position)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

Expected<std::vector<uint64_t>> DocumentFile::beginsWithin(uint64_t begin, uint64_t end) const {
  std::vector<uint64_t> found;
  Expected<uint64_t> first = findAfter(begin);
  if (!first)
    return first.error();
  std::vector<uint64_t> part;
  uint64_t before = begin;
  for (uint64_t index = *first; index < documents(); index += part.size()) {
    part.resize(std::min(kEntriesAtOnce, documents() - index));
    if (MaybeError error = read(index, part))
      return *error;
    for (uint64_t at : part) {
      if (MaybeError error = checkOrder(before, at))
        return *error;
      if (at >= end)
        return found;
      if (at != before) // of documents without tokens, the last one begins there
        found.push_back(at);
      before = at;
    }
  }
  return found;
}

} // namespace dtc::runtime
