//===- RandomGraph.cpp - Small random models, meshes and shardings --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomGraph.h"
#include "test/random/Generator.h"

#include <algorithm>

using namespace dtc::test;

bool Generator::hasBatch(const Shape &shape) const {
  return std::find(shape.begin(), shape.end(), batch) != shape.end();
}

std::string Generator::type(const Shape &shape, const char *element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string Generator::list(const Shape &numbers) {
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ", ") + std::to_string(number);
  return text;
}

std::string Generator::letters(const Shape &shape) {
  std::string text;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    text += char('a' + dim);
  return text;
}

/// Up to 16 devices on up to four axes; one of them may be temporal.
void Generator::makeMesh() {
  int64_t devices = 1, count = oneOf<int64_t>({1, 1, 2, 2, 2, 3, 3, 4});
  for (int64_t index = 0; index < count; ++index) {
    int64_t size = oneOf<int64_t>({2, 2, 2, 2, 3, 4, 5, 8});
    // Large meshes are rarer, as they take longer.
    if (devices * size > (chance(20) ? 16 : 8))
      size = devices * 2 <= 16 ? 2 : 1;
    devices *= size;
    axes.push_back({std::string(1, char('w' + index)), size});
  }
  std::vector<std::string> texts;
  for (const Axis &axis : axes)
    texts.push_back('"' + axis.name + "\"=" + std::to_string(axis.size));
  if (chance(25)) {
    batch = oneOf<int64_t>({13, 14, 16});
    int64_t microbatches = pick(2, 4);
    if (chance(50))
      batchAxes.push_back(oneOf(axes).name);
    batchAxes.push_back("time");
    texts.insert(texts.begin() + pick(0, texts.size()),
                 "\"time\"=" + std::to_string(microbatches) + " temporal");
  }
  graph.mesh = "dist.mesh @mesh <";
  for (size_t index = 0; index < texts.size(); ++index)
    graph.mesh += (index ? ", " : "") + texts[index];
  graph.mesh += ">\n";
}

std::string Generator::sharding(const Shape &shape) {
  std::vector<Axis> free = axes;
  if (hasBatch(shape))
    free.erase(std::remove_if(free.begin(), free.end(),
                              [&](const Axis &axis) { return axis.name == batchAxes.front(); }),
               free.end());
  std::shuffle(free.begin(), free.end(), engine);
  // Most dimensions divide, most others leave something for each device.
  bool mayPad = chance(60), mayBeEmpty = chance(10);
  bool open = chance(30), priorities = chance(20);
  std::string text = "#dist.sharding<@mesh, [";
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    std::string names;
    auto add = [&](const std::string &name) {
      names += (names.empty() ? "\"" : ", \"") + name + '"';
    };
    int64_t left = shape[dim];
    if (isBatch(left)) {
      for (const std::string &name : batchAxes)
        add(name);
    } else {
      while (!free.empty() && chance(55)) {
        int64_t size = free.back().size, block = (left + size - 1) / size;
        if (left % size != 0 && !(mayPad && (mayBeEmpty || block * (size - 1) < left)))
          break;
        add(free.back().name);
        left = block;
        free.pop_back();
      }
      if (open && chance(60))
        names += names.empty() ? "?" : ", ?";
    }
    text += (dim ? ", {" : "{") + names + "}";
    if (priorities && !isBatch(shape[dim]))
      text += oneOf<std::string>({"", "p0", "p1", "p2"});
  }
  return text + "]>";
}

std::string Generator::annotation(const Shape &shape) {
  return forPipeline ? logicalAxes(shape) : "dist.sharding = " + sharding(shape);
}

int64_t Generator::randomSize() {
  return chance(70) ? oneOf<int64_t>({2, 4, 4, 6, 8, 8, 12}) : pick(1, 11);
}

Generator::Shape Generator::randomShape(int64_t rank) {
  Shape shape;
  for (int64_t dim = 0; dim < rank; ++dim)
    shape.push_back(randomSize());
  if (batch && rank > 0 && chance(30))
    shape[pick(0, rank - 1)] = batch;
  return shape;
}

size_t Generator::argument(const Shape &shape, const char *element) {
  std::string name = "%a" + std::to_string(arguments.size());
  arguments.push_back(
      {name, type(shape, element), chance(75) || forPipeline ? annotation(shape) : "",
       (mixesSamples ? !isData(shape) : !hasBatch(shape)) && element == std::string("f64")});
  values.push_back({name, shape, /*used=*/false, arguments.back().mayBeParameter});
  return values.size() - 1;
}

std::string Generator::indexArgument(const Shape &shape, int64_t limit) {
  std::string name = values[argument(shape, "i32")].name;
  values.pop_back(); // it is no float
  graph.indexLimits[name.substr(1)] = limit;
  return name;
}

size_t Generator::constant(const Shape &shape) {
  std::string name = "%" + std::to_string(numbers++),
              text = "  " + name + " = dtc.constant dense<" +
                     oneOf<std::string>({"0.0", "0.5", "1.0"}) + "> : " + type(shape) + "\n";
  body[0] += text;
  body[1] += text;
  values.push_back({name, shape});
  return values.size() - 1;
}

size_t Generator::valueOf(const Shape &shape) {
  if (mixesSamples && chance(20))
    return constant(shape);
  std::vector<size_t> fitting;
  for (size_t i = 0; i < values.size(); ++i)
    if (values[i].shape == shape)
      fitting.push_back(i);
  return fitting.empty() || chance(25) ? argument(shape) : oneOf(fitting);
}

size_t Generator::anyValue(int64_t minRank, int64_t maxRank) {
  std::vector<size_t> fitting;
  for (size_t i = 0; i < values.size(); ++i)
    if (int64_t rank = values[i].shape.size(); rank >= minRank && rank <= maxRank)
      fitting.push_back(i);
  // Layers: mostly of values that a microbatch has, and of those made last.
  if (forPipeline && chance(90))
    std::erase_if(fitting, [&](size_t i) { return !hasBatch(values[i].shape); });
  if (forPipeline && chance(60) && fitting.size() > 3)
    fitting.erase(fitting.begin(), fitting.end() - 3);
  return fitting.empty() ? argument(randomShape(pick(minRank, std::min<int64_t>(maxRank, 3))))
                         : oneOf(fitting);
}

size_t Generator::rows(int64_t minRank) {
  size_t index = anyValue(minRank);
  while (isBatch(values[index].shape.back()))
    index = argument(randomShape(pick(minRank, 3)));
  return index;
}

bool Generator::namesTrained(const std::string &op) const {
  return std::any_of(values.begin(), values.end(), [&](const Value &value) {
    auto isNamed = [&](const char *behind) { return op.find(value.name + behind) != op.npos; };
    return value.trains && (isNamed(",") || isNamed(" ") || isNamed("@"));
  });
}

void Generator::append(const std::string &op, const std::vector<Shape> &shapes,
                       int64_t numResults) {
  bool trains = namesTrained(op);
  std::string name = "%" + std::to_string(numbers++);
  std::string left = "  " + name + (numResults > 1 ? ":" + std::to_string(numResults) : "") + " = ";
  size_t at = op.find('@');
  if (at == std::string::npos) {
    body[0] += left + op + "\n";
    body[1] += left + op + "\n";
  } else {
    std::string attribute;
    if (!forPipeline && chance(15))
      attribute = " {" + annotation(shapes.front()) + "}";
    body[0] += left + op.substr(0, at) + op.substr(at + 1) + "\n";
    body[1] += left + op.substr(0, at) + attribute + op.substr(at + 1) + "\n";
  }
  for (size_t index = 0; index < shapes.size(); ++index) {
    // Keep the graph small.
    int64_t elements = 1;
    for (int64_t size : shapes[index])
      elements *= size;
    if (elements <= 4096 && shapes[index].size() <= 5)
      values.push_back({numResults > 1 ? name + "#" + std::to_string(index) : name, shapes[index],
                        /*used=*/false, trains});
  }
}

std::string Generator::signature(bool sharded, bool parameters) const {
  std::string text;
  for (const Argument &argument : arguments) {
    text += (text.empty() ? "" : ", ") + argument.name + ": " + argument.type + " {" +
            (parameters && argument.mayBeParameter ? "dtc.param" : "dtc.input") + " = \"" +
            argument.name.substr(1) + "\"";
    if (sharded && !argument.annotation.empty())
      text += ", " + argument.annotation;
    text += "}";
  }
  return text;
}

/// Chooses what @f returns: each value that nothing uses, without the batch where microbatches
/// divide that.
void Generator::finish() {
  for (const Value &value : values)
    if (!value.used && value.name[1] != 'a')
      ends.push_back(value);
  if (ends.empty())
    ends.push_back(values.front());
  // A loss depends on a parameter.
  if (std::none_of(ends.begin(), ends.end(), [](const Value &value) { return value.trains; })) {
    Shape shape = {batch == 4 ? 5 : 4};
    append("dtc.tanh " + use(argument(shape)) + "@ : " + type(shape), {shape});
    ends.push_back(values.back());
  }
  for (const Value &value : ends) {
    if (!batch || !hasBatch(value.shape)) {
      results.push_back(value);
      continue;
    }
    Shape dims, left;
    for (size_t dim = 0; dim < value.shape.size(); ++dim)
      if (isBatch(value.shape[dim]))
        dims.push_back(dim);
      else
        left.push_back(value.shape[dim]);
    Value sum{"%sum" + std::to_string(results.size()), left};
    std::string op = "  " + sum.name + " = dtc.reduce sum " + value.name + " dims [" + list(dims) +
                     "]@ : (" + type(value.shape) + ") -> " + type(left) + "\n";
    std::string attribute = chance(30) ? " {" + annotation(left) + "}" : "";
    size_t at = op.find('@');
    sums[0] += op.substr(0, at) + op.substr(at + 1);
    sums[1] += op.substr(0, at) + attribute + op.substr(at + 1);
    if (chance(50)) {
      // After the last microbatch; with a value of before, where there is one.
      Value late{"%late" + std::to_string(results.size()), left};
      std::string other = sum.name;
      for (const Value &early : values)
        if (early.shape == left && chance(50))
          other = early.name;
      std::string text =
          "  " + late.name + " = dtc.mul " + sum.name + ", " + other + " : " + type(left) + "\n";
      sums[0] += text;
      sums[1] += text;
      sum = late;
    }
    results.push_back(sum);
  }
  graph.numResults = results.size();
}

void Generator::makeFunctions() {
  std::string names, types, squares, total;
  for (const Value &value : results) {
    names += (names.empty() ? "" : ", ") + value.name;
    types += (types.empty() ? "" : ", ") + type(value.shape);
  }
  for (size_t index = 0; index < ends.size(); ++index) {
    const Value &value = ends[index];
    std::string number = std::to_string(index), all = letters(value.shape);
    squares += "  %s" + number + " = dtc.einsum \"" + all + "," + all + "->\" " + value.name +
               ", " + value.name + " : (" + type(value.shape) + ", " + type(value.shape) +
               ") -> tensor<f64>\n";
    if (!total.empty())
      squares += "  %t" + number + " = dtc.add " + total + ", %s" + number + " : tensor<f64>\n";
    total = (total.empty() ? "%s" : "%t") + number;
  }
  for (bool sharded : {false, true}) {
    (sharded ? graph.sharded : graph.plain) =
        "func.func @f(" + signature(sharded, false) + ") -> (" + types + ") {\n" + body[sharded] +
        sums[sharded] + "  return " + names + " : " + types + "\n}\n";
    (sharded ? graph.shardedLoss : graph.plainLoss) =
        "func.func @loss(" + signature(sharded, true) + ") -> tensor<f64> {\n" + body[sharded] +
        squares + "  return " + total + " : tensor<f64>\n}\n";
  }
}

const std::vector<Generator::Step> &Generator::allSteps() {
  static const std::vector<Step> steps = {
      &Generator::elementwise, &Generator::elementwise,   &Generator::select,
      &Generator::einsum,      &Generator::einsum,        &Generator::einsum,
      &Generator::reduce,      &Generator::reshape,       &Generator::transpose,
      &Generator::broadcast,   &Generator::sliceOrPad,    &Generator::concat,
      &Generator::layerNorm,   &Generator::rmsNorm,       &Generator::softmax,
      &Generator::indexed,     &Generator::crossEntropy,  &Generator::attention,
      &Generator::route,       &Generator::embeddingGrad, &Generator::embeddingOfSamples,
      &Generator::convolve,    &Generator::maxPool};
  return steps;
}

RandomGraph Generator::run() {
  makeMesh();
  argument(randomShape(pick(2, 3)));
  argument(randomShape(2));
  if (batch)
    argument({batch, randomSize()});
  for (int64_t count = pick(4, 14); count > 0; --count)
    (this->*oneOf(allSteps()))();
  finish();
  makeFunctions();
  graph.zero = pick(0, 3);
  while (graph.zeroAxes.empty())
    for (const Axis &axis : axes)
      if (chance(50))
        graph.zeroAxes.push_back(axis.name);
  return graph;
}

RandomGraph dtc::test::makeRandomGraph(uint64_t seed) { return Generator(seed).run(); }
