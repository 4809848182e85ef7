//===- RandomReshards.cpp - Random programs of reshards -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/reshard/RandomReshards.h"

#include <algorithm>
#include <random>

using namespace dtc::test;

namespace {

constexpr int kValues = 8;

using Shape = std::vector<int64_t>;

struct Axis {
  std::string name;
  int64_t size;
};

/// The axes of each dimension, by index.
using Dims = std::vector<std::vector<size_t>>;

class Generator {
public:
  explicit Generator(uint64_t seed) : engine(seed * 2654435761u + 1) {}
  ReshardProgram run();

private:
  size_t below(size_t count) { return engine() % count; }
  bool chance(unsigned percent) { return below(100) < percent; }
  int64_t of(std::initializer_list<int64_t> list) { return list.begin()[below(list.size())]; }

  void makeMesh();
  Dims distribute(std::vector<size_t> free, size_t rank, unsigned percent);
  std::vector<size_t> unused(const Dims &dims) const;
  std::string text(const Dims &dims) const;
  void makeValue();
  std::string sum(const ReshardedValue &value, const std::string &number,
                  const std::string &current, const Shape &whole);
  std::string type(const Shape &shape) const;

  std::mt19937_64 engine;
  std::vector<Axis> axes;
  ReshardProgram program;
  std::string arguments, body, returned, types;
  const char *element = "f32";
};

} // namespace

/// Up to 16 devices on up to four axes.
void Generator::makeMesh() {
  int64_t devices = 1;
  size_t count = 1 + below(4);
  for (size_t index = 0; index < count; ++index) {
    int64_t size = of({1, 2, 2, 2, 2, 3, 3, 4, 4, 5, 6, 8});
    if (devices * size > 16)
      size = devices * 2 <= 16 ? 2 : 1;
    devices *= size;
    axes.push_back({std::string(1, char('w' + index)), size});
  }
  program.text = "dist.mesh @mesh <";
  for (const Axis &axis : axes) {
    program.text +=
        (&axis == &axes.front() ? "\"" : ", \"") + axis.name + "\"=" + std::to_string(axis.size);
    // The cheapest steps depend on the links.
    if (chance(30))
      program.text += chance(50) ? " link 1.0e+11 1.0e-06" : " link 1.0e+9 1.0e-04";
  }
  program.text += ">\n";
}

/// Puts each of `free` with that chance at the end of a dimension.
Dims Generator::distribute(std::vector<size_t> free, size_t rank, unsigned percent) {
  std::shuffle(free.begin(), free.end(), engine);
  Dims dims(rank);
  for (size_t axis : free)
    if (rank && chance(percent))
      dims[below(rank)].push_back(axis);
  return dims;
}

std::vector<size_t> Generator::unused(const Dims &dims) const {
  std::vector<size_t> free;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (std::none_of(dims.begin(), dims.end(), [&](const std::vector<size_t> &dim) {
          return std::count(dim.begin(), dim.end(), axis);
        }))
      free.push_back(axis);
  return free;
}

std::string Generator::text(const Dims &dims) const {
  std::string result = "<@mesh, [";
  for (size_t dim = 0; dim < dims.size(); ++dim) {
    result += dim ? ", {" : "{";
    for (size_t index = 0; index < dims[dim].size(); ++index)
      result += (index ? ", \"" : "\"") + axes[dims[dim][index]].name + '"';
    result += "}";
  }
  return result + "]>";
}

std::string Generator::type(const Shape &shape) const {
  std::string result = "tensor<";
  for (int64_t size : shape)
    result += std::to_string(size) + "x";
  return result + element + ">";
}

/// The op that sums the data up; the name of its result.
std::string Generator::sum(const ReshardedValue &value, const std::string &number,
                           const std::string &current, const Shape &whole) {
  size_t rank = value.shape.size();
  if (value.source == Source::Weighted) {
    std::string letters = std::string("bcde").substr(0, rank);
    body += "  %part" + number + " = dtc.einsum \"a" + letters + ",a->" + letters + "\" " +
            current + ", %" + value.weights + " : (" + type(whole) + ", " + type(value.summed) +
            ") -> " + type(value.shape) + "\n";
    return "%part" + number;
  }
  if (value.source != Source::Complete) {
    const char *kind = value.source == Source::Sum   ? "sum"
                       : value.source == Source::Max ? "max"
                                                     : "min";
    body += "  %part" + number + " = dtc.reduce " + kind + " " + current + " dims [" +
            (value.summed.size() > 1 ? "0, 1" : "0") + "] : (" + type(whole) + ") -> " +
            type(value.shape) + "\n";
    return "%part" + number;
  }
  return current;
}

void Generator::makeValue() {
  std::string number = std::to_string(program.values.size());
  ReshardedValue value;
  element = chance(25) ? "f64" : "f32";
  value.f64 = element == std::string("f64");
  value.input = "x" + number;
  value.source = Source(chance(50) ? 0 : of({1, 1, 1, 2, 3, 4, 4}));

  size_t rank = chance(5) ? 0 : 1 + below(4);
  for (size_t dim = 0; dim < rank; ++dim)
    value.shape.push_back(chance(50) ? of({2, 4, 4, rank < 3 ? 16 : 8})
                                     : 1 + below(rank < 3 ? 19 : 9));
  if (value.source != Source::Complete)
    for (size_t count = value.source == Source::Weighted ? 1 : 1 + below(2); count > 0; --count)
      value.summed.push_back(of({1, 2, 3, 4, 4, 5, 7, 8}));

  // Axes that split the summed dimension are the partial axes of the sum.
  std::vector<size_t> all(axes.size());
  for (size_t axis = 0; axis < all.size(); ++axis)
    all[axis] = axis;
  Dims sums = distribute(all, value.summed.size(), 50);
  Dims from = distribute(unused(sums), rank, 70), to;
  if (chance(25)) {
    // A permutation: other axes in the same places.
    to = from;
    std::shuffle(to.begin(), to.end(), engine);
    for (std::vector<size_t> &dim : to)
      std::shuffle(dim.begin(), dim.end(), engine);
  } else {
    to = distribute(all, rank, 60);
  }
  Dims witness = to;
  for (size_t axis : unused(to))
    if (rank)
      witness[below(rank)].push_back(axis);

  Shape whole = value.summed;
  whole.insert(whole.end(), value.shape.begin(), value.shape.end());
  Dims input = sums;
  input.insert(input.end(), from.begin(), from.end());
  auto argument = [&](const std::string &name, const Shape &shape, const std::string &sharding) {
    arguments += (arguments.empty() ? "%" : ", %") + name + ": " + type(shape) +
                 " {dtc.input = \"" + name + "\"" + sharding + "}";
  };
  std::string current = "%x" + number;
  auto constrain = [&](const std::string &name, const Shape &shape, const Dims &layout) {
    body += "  %" + name + " = dist.constrain " + current + " to " + text(layout) + " : " +
            type(shape) + "\n";
    current = "%" + name;
  };
  // The data come as they are to lie, or are constrained to it.
  bool written = chance(50);
  argument(value.input, whole, written ? ", dist.sharding = #dist.sharding" + text(input) : "");
  if (!written)
    constrain("from" + number, whole, input);
  if (value.source == Source::Weighted) {
    value.weights = "w" + number;
    argument(value.weights, value.summed, ", dist.sharding = #dist.sharding" + text(sums));
  }
  current = sum(value, number, current, whole);
  constrain("to" + number, value.shape, to);
  value.result = "to" + number;
  returned += (returned.empty() ? "" : ", ") + current;
  types += (types.empty() ? "" : ", ") + type(value.shape) + " {dtc.output = \"" + value.result +
           "\", dist.sharding = #dist.sharding" + text(to) + "}";
  constrain("witness" + number, value.shape, witness);
  value.witness = "witness" + number;
  returned += ", " + current;
  types += ", " + type(value.shape) + " {dtc.output = \"" + value.witness + "\"}";
  program.values.push_back(value);
}

ReshardProgram Generator::run() {
  makeMesh();
  std::string returnTypes;
  for (int index = 0; index < kValues; ++index) {
    makeValue();
    for (int twice = 0; twice < 2; ++twice)
      returnTypes += (returnTypes.empty() ? "" : ", ") + type(program.values.back().shape);
  }
  program.text += "func.func @f(" + arguments + ") -> (" + types + ") {\n" + body + "  return " +
                  returned + " : " + returnTypes + "\n}\n";
  return std::move(program);
}

ReshardProgram dtc::test::makeReshardProgram(uint64_t seed) { return Generator(seed).run(); }
