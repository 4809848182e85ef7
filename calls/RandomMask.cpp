//===- RandomMask.cpp - Random masks --------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/RandomMask.h"

#include "calls/AxisExtent.h"
#include "support/CheckedMath.h"
#include "support/Format.h"

#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace dtc {

MaskWords::MaskWords(double rate, uint32_t op) : op(op) {
  // At most 2^32, which no word reaches.
  auto threshold = static_cast<uint64_t>(std::llround(rate * 0x1p32));
  limit = static_cast<uint32_t>(std::max<uint64_t>(threshold, 1) - 1);
  all = threshold == 0 ? 0x01010101 : 0;
}

RandomMask::RandomMask(double rate, uint32_t op, std::span<const int64_t> local,
                       std::span<const int64_t> shape,
                       std::vector<std::vector<std::string>> sharding)
    : share(rate), words(rate, op), nest(local, {denseStrides(shape)}) {
  std::vector<int64_t> strides = denseStrides(shape);
  for (size_t dim = 0; dim < sharding.size(); ++dim)
    if (!sharding[dim].empty())
      splitDims.push_back({shape[dim], strides[dim], std::move(sharding[dim])});
}

LocalMask RandomMask::at(std::span<const AxisCoordinate> position, const int32_t *key) const {
  LocalMask local{words, &nest, 0};
  local.words.seed = static_cast<uint32_t>(key[0]);
  local.words.iteration = static_cast<uint32_t>(key[1]);
  for (const AxisCoordinate &axis : position)
    local.words.iteration += static_cast<uint32_t>(axis.repetition);
  for (const SplitDim &dim : splitDims)
    local.origin += extentAt(position, dim.axes, dim.size).offset * dim.stride;
  return local;
}

/// "dp,micro" as its words; none for "".
static std::vector<std::string> splitAtCommas(const std::string &text) {
  std::vector<std::string> words;
  if (text.empty())
    return words;
  for (size_t begin = 0; begin <= text.size();) {
    size_t comma = std::min(text.find(',', begin), text.size());
    words.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return words;
}

/// The number of blocks that `axes` count; none if they are not distinct axes of the mesh. `seen`
/// has the axes of the dimensions before.
static std::optional<int64_t> countBlocks(const std::vector<AxisCoordinate> &mesh,
                                          const std::vector<std::string> &axes,
                                          std::set<std::string> &seen) {
  std::optional<int64_t> blocks = 1;
  for (const std::string &name : axes) {
    const AxisCoordinate *axis = findAxis(mesh, name);
    if (!axis || axis->size < 1 || !seen.insert(name).second)
      return std::nullopt;
    blocks = checkedMul(*blocks, axis->size);
    if (!blocks)
      return std::nullopt;
  }
  return blocks;
}

RandomMask checkRandomMask(SignatureChecker &check, const KernelSignature &signature,
                           const std::string &rateName, size_t keyIndex,
                           std::span<const int64_t> local) {
  check.expectInput(keyIndex, TensorType{DType::I32, {2}});
  double rate = rateName.empty() ? 0 : check.floatAttribute(rateName);
  if (!(rate >= 0 && rate < 1))
    check.failAttribute(rateName, fmt::format("{}", rate), "a number from 0 to less than 1");
  int64_t op = check.intAttribute("op");
  if (op < 0 || op > std::numeric_limits<uint32_t>::max())
    check.failAttribute("op", fmt::format("{}", op), "a number that fits an unsigned 32-bit word");
  std::vector<int64_t> shape = check.intsAttribute("shape");
  std::vector<std::string> sharding = check.stringsAttribute("sharding");
  if (check.failed())
    return {};
  if (shape.size() != local.size())
    check.failAttribute("shape", formatShape(shape),
                        fmt::format("{} dimensions, as the masked tensor has", local.size()));
  if (sharding.size() != local.size())
    check.failAttribute("sharding", fmt::format("a list of {} entries", sharding.size()),
                        fmt::format("one for each of {} dimensions", local.size()));
  if (check.failed())
    return {};

  std::vector<std::vector<std::string>> axes;
  std::vector<int64_t> padded;
  std::set<std::string> seen;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    axes.push_back(splitAtCommas(sharding[dim]));
    std::optional<int64_t> blocks = countBlocks(signature.mesh, axes.back(), seen);
    if (!blocks) {
      check.failAttribute("sharding", fmt::format("\"{}\" for dimension {}", sharding[dim], dim),
                          "axes of the mesh with commas between them, none of them twice");
      return {};
    }
    if (shape[dim] < 0 || !paddedShardsFit(shape[dim], *blocks) ||
        paddedShardSize(shape[dim], *blocks) != local[dim]) {
      check.failAttribute("shape", formatShape(shape),
                          fmt::format("a shape whose dimension {}, in {} blocks, rounded up, has "
                                      "the {} elements of the masked tensor",
                                      dim, *blocks, local[dim]));
      return {};
    }
    padded.push_back(paddedShardSize(shape[dim], *blocks) * *blocks);
  }
  // No element of a block, padding included, has a larger index.
  std::optional<int64_t> elements = checkedElements(padded);
  if (!elements || *elements > int64_t{1} << 62) {
    check.failAttribute("shape", formatShape(shape),
                        "a shape of at most 2^62 elements, its padding included");
    return {};
  }
  return RandomMask(rate, static_cast<uint32_t>(op), local, shape, std::move(axes));
}

} // namespace dtc
