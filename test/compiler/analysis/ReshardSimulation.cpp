//===- ReshardSimulation.cpp - Reshards on the blocks of all devices ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/compiler/analysis/ReshardReference.h"

#include "llvm/Support/raw_ostream.h"

using namespace dtc;
using namespace dtc::testing;

namespace {

constexpr int64_t kPadding = INT64_MIN; ///< what has no value; so has a sum with it

/// A block, row-major.
struct Block {
  std::vector<int64_t> shape;
  std::vector<int64_t> cells;

  /// Elements [begin, begin + size) of dimension `dim`; elements that do not exist are padding.
  Block range(size_t dim, int64_t begin, int64_t size) const {
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < shape.size(); ++i)
      (i < dim ? outer : inner) *= i == dim ? 1 : shape[i];
    Block result{shape, {}};
    result.shape[dim] = size;
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t at = begin; at < begin + size; ++at)
        for (int64_t i = 0; i < inner; ++i)
          result.cells.push_back(at < shape[dim] ? cells[(o * shape[dim] + at) * inner + i]
                                                 : kPadding);
    return result;
  }

  static Block concatenate(const std::vector<Block> &parts, size_t dim) {
    Block result = parts.front();
    int64_t part = result.shape[dim];
    result = result.range(dim, 0, part * int64_t(parts.size()));
    int64_t inner = 1;
    for (size_t i = dim + 1; i < result.shape.size(); ++i)
      inner *= result.shape[i];
    for (size_t cell = 0; cell < result.cells.size(); ++cell) {
      int64_t i = int64_t(cell) % inner, rest = int64_t(cell) / inner;
      int64_t at = rest % result.shape[dim], o = rest / result.shape[dim];
      result.cells[cell] = parts[at / part].cells[(o * part + at % part) * inner + i];
    }
    return result;
  }

  static Block sum(const std::vector<Block> &parts) {
    Block result = parts.front();
    for (size_t part = 1; part < parts.size(); ++part)
      for (size_t cell = 0; cell < result.cells.size(); ++cell) {
        int64_t value = parts[part].cells[cell];
        bool padding = value == kPadding || result.cells[cell] == kPadding;
        result.cells[cell] = padding ? kPadding : result.cells[cell] + value;
      }
    return result;
  }
};

using Coordinates = std::vector<int64_t>; ///< for each axis of the mesh

class Simulation {
public:
  explicit Simulation(const ReshardCase &c) : c(c), mesh(c.mesh) {
    std::vector<unsigned> all;
    for (unsigned axis = 0; axis < mesh.axes.size(); ++axis)
      all.push_back(axis);
    allAxes.assign(all.begin(), all.end());
    for (int64_t device = 0; device < mesh.product(allAxes); ++device) {
      Coordinates start(mesh.axes.size());
      coordinates.push_back(withRank(start, allAxes, device));
      blocks.push_back(expected(c.from, coordinates.back()));
    }
  }

  std::string step(const ReshardStep &step);
  std::string check() const;

private:
  int64_t rank(const Coordinates &at, llvm::ArrayRef<unsigned> axes) const {
    int64_t result = 0;
    for (unsigned axis : axes)
      result = result * mesh.axes[axis].size + at[axis];
    return result;
  }
  Coordinates withRank(Coordinates at, llvm::ArrayRef<unsigned> axes, int64_t rank) const {
    for (unsigned axis : llvm::reverse(axes)) {
      at[axis] = rank % mesh.axes[axis].size;
      rank /= mesh.axes[axis].size;
    }
    return at;
  }
  size_t member(const Coordinates &at, llvm::ArrayRef<unsigned> axes, int64_t memberRank) const {
    return size_t(rank(withRank(at, axes, memberRank), allAxes));
  }
  int64_t element(llvm::ArrayRef<int64_t> index, const Layout &layout, const Coordinates &at) const;
  Block expected(const Layout &layout, const Coordinates &at) const;

  const ReshardCase &c;
  const LinkedMesh &mesh;
  AxisList allAxes;
  std::vector<Coordinates> coordinates;
  std::vector<Block> blocks;
};

} // namespace

/// The element at the global `index`: the sum, over those partial axes of the source that are not
/// partial in `layout`, of terms that are all different.
int64_t Simulation::element(llvm::ArrayRef<int64_t> index, const Layout &layout,
                            const Coordinates &at) const {
  AxisList summed;
  for (unsigned axis : c.from.partial)
    if (!layout.isPartialOver(axis))
      summed.push_back(axis);
  uint64_t id = 1;
  for (auto [i, size] : llvm::zip_equal(index, c.shape))
    id = id * uint64_t(size) + uint64_t(i);
  int64_t sum = 0;
  for (int64_t term = 0; term < mesh.product(summed); ++term) {
    uint64_t from = uint64_t(rank(withRank(at, summed, term), c.from.partial));
    sum += int64_t(((id * 64 + from) * 0x9e3779b97f4a7c15) >> 24);
  }
  return sum;
}

Block Simulation::expected(const Layout &layout, const Coordinates &at) const {
  Block block;
  std::vector<int64_t> begin, end;
  int64_t count = 1;
  for (auto [size, axes] : llvm::zip_equal(c.shape, layout.dims)) {
    int64_t first = 0, last = size, length = size;
    for (unsigned axis : axes) {
      length = (length + mesh.axes[axis].size - 1) / mesh.axes[axis].size;
      first += at[axis] * length;
      last = std::min(last, first + length);
    }
    begin.push_back(first);
    end.push_back(last);
    block.shape.push_back(length);
    count *= length;
  }
  for (int64_t cell = 0; cell < count; ++cell) {
    std::vector<int64_t> index(block.shape.size());
    bool exists = true;
    int64_t rest = cell;
    for (size_t dim = block.shape.size(); dim-- > 0; rest /= block.shape[dim]) {
      index[dim] = begin[dim] + rest % block.shape[dim];
      exists &= index[dim] < end[dim];
    }
    block.cells.push_back(exists ? element(index, layout, at) : kPadding);
  }
  return block;
}

std::string Simulation::step(const ReshardStep &step) {
  if (step.collective)
    for (unsigned axis : step.axes)
      if (mesh.isTemporal(axis))
        return "a collective over a temporal axis";
  int64_t group = mesh.product(step.axes);
  std::vector<Block> next;
  for (const Coordinates &at : coordinates) {
    int64_t own = rank(at, step.axes);
    std::vector<Block> inputs;
    for (int64_t r = 0; r < group; ++r)
      inputs.push_back(blocks[member(at, step.axes, r)]);
    auto part = [&](const Block &whole, size_t dim) {
      return whole.range(dim, 0, step.splitSize * group)
          .range(dim, own * step.splitSize, step.splitSize);
    };
    if (!step.collective) {
      next.push_back(part(inputs[own], step.dim));
      continue;
    }
    switch (*step.collective) {
    case CollectiveKind::AllReduce:
      next.push_back(Block::sum(inputs));
      break;
    case CollectiveKind::ReduceScatter:
      next.push_back(part(Block::sum(inputs), step.dim));
      break;
    case CollectiveKind::AllGather:
      next.push_back(Block::concatenate(inputs, step.dim).range(step.dim, 0, step.gatheredSize));
      break;
    case CollectiveKind::AllToAll:
      for (Block &input : inputs)
        input = part(input, step.splitDim);
      next.push_back(Block::concatenate(inputs, step.dim).range(step.dim, 0, step.gatheredSize));
      break;
    case CollectiveKind::Permute: {
      AxisList axes = step.axes, sources = step.sourceAxes;
      llvm::sort(axes);
      llvm::sort(sources);
      if (axes != sources)
        return "a permute's axes and source axes are not the same";
      next.push_back(inputs[rank(at, step.sourceAxes)]);
      break;
    }
    }
  }
  blocks = std::move(next);
  return "";
}

std::string Simulation::check() const {
  for (size_t device = 0; device < blocks.size(); ++device) {
    Block target = expected(c.to, coordinates[device]);
    std::string name = "device " + std::to_string(device);
    if (blocks[device].shape != target.shape)
      return name + " has a block of another shape";
    for (size_t cell = 0; cell < target.cells.size(); ++cell)
      if (target.cells[cell] != kPadding && blocks[device].cells[cell] != target.cells[cell])
        return name + " has a wrong element " + std::to_string(cell);
  }
  return "";
}

std::string dtc::testing::simulate(const ReshardCase &c, llvm::ArrayRef<ReshardStep> steps) {
  Simulation simulation(c);
  for (const ReshardStep &step : steps)
    if (std::string error = simulation.step(step); !error.empty())
      return error;
  return simulation.check();
}

std::string ReshardCase::str() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const LinkedAxis &axis : mesh.axes)
    os << axis.name << "=" << axis.size << (axis.temporal ? " temporal, " : ", ");
  os << elementBytes << " bytes x ";
  llvm::interleave(shape, os, "x");
  os << ": " << from.str(mesh) << " -> " << to.str(mesh);
  return text;
}
