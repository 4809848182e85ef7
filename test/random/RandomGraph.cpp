//===- RandomGraph.cpp - Small random models, meshes and shardings --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomGraph.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace dtc::test;

namespace {

using Shape = std::vector<int64_t>;

struct Axis {
  std::string name;
  int64_t size;
};

struct Value {
  std::string name;
  Shape shape;
  bool used = false;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : engine(seed) {}
  RandomGraph run();

private:
  int64_t pick(int64_t low, int64_t high) {
    return low + int64_t(engine() % uint64_t(high - low + 1));
  }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <typename T> const T &oneOf(const std::vector<T> &list) {
    return list[pick(0, list.size() - 1)];
  }

  static std::string type(const Shape &shape, const char *element = "f64");
  std::string sharding(const Shape &shape);
  Shape randomShape(int64_t rank);
  size_t argument(const Shape &shape);
  /// A value of that shape: an existing one where there is one, else a new argument.
  size_t valueOf(const Shape &shape);
  size_t anyValue(int64_t minRank, int64_t maxRank = 4);
  size_t append(const std::string &op, const Shape &shape);
  std::string use(size_t index) {
    values[index].used = true;
    return values[index].name;
  }

  void elementwise();
  void einsum();
  void reduce();
  void reshape();
  void transpose();
  void broadcast();
  void sliceOrPad();
  void concat();
  void norm();
  void softmax();
  void indexed();
  void attention();

  std::mt19937_64 engine;
  std::vector<Axis> axes;
  std::vector<Value> values;
  std::vector<std::string> argumentTexts[2]; // plain, sharded
  std::string body[2];
  int arguments = 0, results = 0;
};

} // namespace

std::string Generator::type(const Shape &shape, const char *element) {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += std::to_string(size) + "x";
  return text + element + ">";
}

std::string Generator::sharding(const Shape &shape) {
  std::vector<Axis> free = axes;
  std::shuffle(free.begin(), free.end(), engine);
  std::string text = "#dist.sharding<@mesh, [";
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    text += dim ? ", {" : "{";
    int64_t left = shape[dim];
    bool first = true;
    while (!free.empty() && chance(55) && left % free.back().size == 0) {
      text += std::string(first ? "" : ", ") + '"' + free.back().name + '"';
      left /= free.back().size;
      first = false;
      free.pop_back();
    }
    text += "}";
  }
  return text + "]>";
}

Shape Generator::randomShape(int64_t rank) {
  static const std::vector<int64_t> sizes = {2, 4, 4, 6, 8, 8, 12};
  Shape shape;
  for (int64_t dim = 0; dim < rank; ++dim)
    shape.push_back(oneOf(sizes));
  return shape;
}

size_t Generator::argument(const Shape &shape) {
  std::string name = "%a" + std::to_string(arguments++);
  std::string text = name + ": " + type(shape) + " {dtc.input = \"" + name.substr(1) + "\"";
  argumentTexts[0].push_back(text + "}");
  argumentTexts[1].push_back(text + (chance(75) ? ", dist.sharding = " + sharding(shape) : "") +
                             "}");
  values.push_back({name, shape});
  return values.size() - 1;
}

size_t Generator::valueOf(const Shape &shape) {
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
  return fitting.empty() ? argument(randomShape(pick(minRank, std::min<int64_t>(maxRank, 3))))
                         : oneOf(fitting);
}

/// `op` is the text with @ where the attribute dictionary goes.
size_t Generator::append(const std::string &op, const Shape &shape) {
  std::string name = "%" + std::to_string(results++);
  size_t at = op.find('@');
  std::string attribute = chance(15) ? " {dist.sharding = " + sharding(shape) + "}" : "";
  body[0] += "  " + name + " = " + op.substr(0, at) + op.substr(at + 1) + "\n";
  body[1] += "  " + name + " = " + op.substr(0, at) + attribute + op.substr(at + 1) + "\n";
  values.push_back({name, shape});
  return values.size() - 1;
}

void Generator::elementwise() {
  size_t x = anyValue(0);
  Shape shape = values[x].shape;
  static const std::vector<std::string> unary = {"neg", "tanh", "sigmoid", "relu", "silu", "abs"};
  static const std::vector<std::string> binary = {"add", "sub",     "mul",    "add",
                                                  "mul", "maximum", "minimum"};
  if (chance(40)) {
    append("dtc." + oneOf(unary) + " " + use(x) + "@ : " + type(shape), shape);
  } else {
    size_t y = valueOf(shape);
    append("dtc." + oneOf(binary) + " " + use(x) + ", " + use(y) + "@ : " + type(shape), shape);
  }
}

void Generator::einsum() {
  size_t x = anyValue(1, 3);
  Shape shape = values[x].shape;
  std::string lhs, rhs, out;
  Shape rhsShape, outShape;
  char next = 'a';
  std::vector<std::pair<char, int64_t>> rhsDims, outDims;
  for (int64_t size : shape) {
    char letter = next++;
    lhs += letter;
    switch (pick(0, 2)) {
    case 0: // contracted
      rhsDims.push_back({letter, size});
      break;
    case 1: // free
      outDims.push_back({letter, size});
      break;
    default: // batch
      rhsDims.push_back({letter, size});
      outDims.push_back({letter, size});
    }
  }
  for (int64_t extra = pick(0, 1); extra > 0; --extra) {
    char letter = next++;
    int64_t size = randomShape(1)[0];
    rhsDims.push_back({letter, size});
    outDims.push_back({letter, size});
  }
  std::shuffle(rhsDims.begin(), rhsDims.end(), engine);
  std::shuffle(outDims.begin(), outDims.end(), engine);
  for (auto [letter, size] : rhsDims) {
    rhs += letter;
    rhsShape.push_back(size);
  }
  for (auto [letter, size] : outDims) {
    out += letter;
    outShape.push_back(size);
  }
  size_t y = valueOf(rhsShape);
  append("dtc.einsum \"" + lhs + "," + rhs + "->" + out + "\" " + use(x) + ", " + use(y) + "@ : (" +
             type(shape) + ", " + type(rhsShape) + ") -> " + type(outShape),
         outShape);
}

void Generator::reduce() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out;
  std::string dims;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (chance(50))
      dims += (dims.empty() ? "" : ", ") + std::to_string(dim);
    else
      out.push_back(shape[dim]);
  static const std::vector<std::string> kinds = {"sum", "sum", "max", "min"};
  append("dtc.reduce " + oneOf(kinds) + " " + use(x) + " dims [" + dims + "]@ : (" + type(shape) +
             ") -> " + type(out),
         out);
}

void Generator::reshape() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out;
  // Merge neighbours, then split at small divisors.
  int64_t merged = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    merged *= shape[dim];
    if (chance(50) || dim + 1 == shape.size()) {
      for (int64_t divisor : {2, 3, 4})
        if (out.size() < 3 && chance(40) && merged % divisor == 0 && merged > divisor) {
          out.push_back(divisor);
          merged /= divisor;
        }
      out.push_back(merged);
      merged = 1;
    }
  }
  append("dtc.reshape " + use(x) + "@ : (" + type(shape) + ") -> " + type(out), out);
}

void Generator::transpose() {
  size_t x = anyValue(2);
  Shape shape = values[x].shape, out;
  std::vector<int64_t> permutation(shape.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), engine);
  std::string text;
  for (int64_t dim : permutation) {
    text += (text.empty() ? "" : ", ") + std::to_string(dim);
    out.push_back(shape[dim]);
  }
  append("dtc.transpose " + use(x) + " permutation [" + text + "]@ : (" + type(shape) + ") -> " +
             type(out),
         out);
}

void Generator::broadcast() {
  size_t x = anyValue(0, 2);
  Shape shape = values[x].shape, out;
  std::string dims;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (chance(40))
      out.push_back(randomShape(1)[0]);
    dims += (dims.empty() ? "" : ", ") + std::to_string(out.size());
    out.push_back(shape[dim]);
  }
  if (out.size() == shape.size())
    out.push_back(randomShape(1)[0]);
  append("dtc.broadcast " + use(x) + " dims [" + dims + "]@ : (" + type(shape) + ") -> " +
             type(out),
         out);
}

void Generator::sliceOrPad() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out;
  bool pad = chance(50);
  std::string first, second;
  for (int64_t size : shape) {
    int64_t a = 0, b = pad ? 0 : size;
    if (chance(50)) {
      a = pick(0, pad ? 2 : size / 2);
      b = pad ? pick(0, 2) : pick(1, size - a);
    }
    first += (first.empty() ? "" : ", ") + std::to_string(a);
    second += (second.empty() ? "" : ", ") + std::to_string(b);
    out.push_back(pad ? a + size + b : b);
  }
  if (pad)
    append("dtc.pad " + use(x) + " low [" + first + "] high [" + second + "] value 0.0@ : (" +
               type(shape) + ") -> " + type(out),
           out);
  else
    append("dtc.slice " + use(x) + " offsets [" + first + "] sizes [" + second + "]@ : (" +
               type(shape) + ") -> " + type(out),
           out);
}

void Generator::concat() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out = shape;
  size_t y = valueOf(shape);
  int64_t dim = pick(0, shape.size() - 1);
  out[dim] *= 2;
  append("dtc.concat " + use(x) + ", " + use(y) + " dim " + std::to_string(dim) + "@ : (" +
             type(shape) + ", " + type(shape) + ") -> " + type(out),
         out);
}

void Generator::softmax() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape;
  append("dtc.softmax " + use(x) + "@ : " + type(shape), shape);
}

void Generator::norm() {
  size_t x = anyValue(2);
  Shape shape = values[x].shape, weight = {shape.back()}, leading(shape.begin(), shape.end() - 1);
  size_t gamma = valueOf(weight), beta = valueOf(weight);
  // The op has several results, so it carries no sharding of its own.
  std::string name = "%" + std::to_string(results++);
  std::string text = "  " + name + ":3 = dtc.layer_norm " + use(x) + ", " + use(gamma) + ", " +
                     use(beta) + " {eps = 1.0e-5 : f64} : (" + type(shape) + ", " + type(weight) +
                     ", " + type(weight) + ") -> (" + type(shape) + ", " + type(leading) + ", " +
                     type(leading) + ")\n";
  body[0] += text;
  body[1] += text;
  values.push_back({name + "#0", shape});
}

void Generator::indexed() {
  // Indices are an input of their own; random ones are in range.
  size_t x = anyValue(2, 3);
  Shape table = values[x].shape;
  if (table.size() != 2)
    x = valueOf(table = {table[0], table[1]});
  Shape ids = randomShape(pick(1, 2)), out = ids;
  std::string name = "%a" + std::to_string(arguments++);
  std::string text = name + ": " + type(ids, "i32") + " {dtc.input = \"" + name.substr(1) + "\"";
  argumentTexts[0].push_back(text + "}");
  argumentTexts[1].push_back(text + (chance(75) ? ", dist.sharding = " + sharding(ids) : "") + "}");
  out.push_back(table[1]);
  append("dtc.embedding " + use(x) + ", " + name + "@ : (" + type(table) + ", " + type(ids, "i32") +
             ") -> " + type(out),
         out);
}

void Generator::attention() {
  int64_t b = pick(1, 2) * 2, s = 4, g = pick(1, 2) * 2, r = pick(1, 2), d = 4;
  Shape q = {b, s, g * r, d}, k = {b, s, g, d}, lse = {b, g * r, s};
  size_t x = valueOf(q), y = valueOf(k), z = valueOf(k);
  std::string name = "%" + std::to_string(results++);
  std::string text = "  " + name + ":2 = dtc.attention " + use(x) + ", " + use(y) + ", " + use(z) +
                     " {causal = true, scale = 5.0e-1 : f64} : (" + type(q) + ", " + type(k) +
                     ", " + type(k) + ") -> (" + type(q) + ", " + type(lse) + ")\n";
  body[0] += text;
  body[1] += text;
  values.push_back({name + "#0", q});
}

RandomGraph Generator::run() {
  static const std::vector<std::vector<int64_t>> meshes = {{2},    {4},    {2, 2},   {3},
                                                           {2, 3}, {4, 2}, {2, 2, 2}};
  int64_t index = 0;
  RandomGraph graph;
  graph.mesh = "dist.mesh @mesh <";
  for (int64_t size : oneOf(meshes)) {
    axes.push_back({std::string(1, char('x' + index)), size});
    graph.mesh +=
        std::string(index++ ? ", " : "") + '"' + axes.back().name + "\"=" + std::to_string(size);
  }
  graph.mesh += ">\n";

  argument(randomShape(pick(2, 3)));
  argument(randomShape(2));
  using Step = void (Generator::*)();
  static const std::vector<Step> steps = {
      &Generator::elementwise, &Generator::elementwise, &Generator::einsum,   &Generator::einsum,
      &Generator::einsum,      &Generator::reduce,      &Generator::reshape,  &Generator::transpose,
      &Generator::broadcast,   &Generator::sliceOrPad,  &Generator::concat,   &Generator::norm,
      &Generator::softmax,     &Generator::indexed,     &Generator::attention};
  for (int64_t count = pick(4, 14); count > 0; --count) {
    (this->*oneOf(steps))();
    // Keep the graph small.
    int64_t elements = 1;
    for (int64_t size : values.back().shape)
      elements *= size;
    if (elements > 4096 || values.back().shape.size() > 5)
      values.pop_back();
  }

  std::string names, types, squares, total;
  auto addSquares = [&](const Value &value) {
    std::string letters,
        index =
            std::to_string(squares.empty() ? 0 : std::count(squares.begin(), squares.end(), '\n'));
    for (size_t dim = 0; dim < value.shape.size(); ++dim)
      letters += char('a' + dim);
    squares += "  %s" + index + " = dtc.einsum \"" + letters + "," + letters + "->\" " +
               value.name + ", " + value.name + " : (" + type(value.shape) + ", " +
               type(value.shape) + ") -> tensor<f64>\n";
    if (!total.empty())
      squares += "  %t" + index + " = dtc.add " + total + ", %s" + index + " : tensor<f64>\n";
    total = (total.empty() ? "%s" : "%t") + index;
  };
  for (const Value &value : values)
    if (!value.used && value.name[1] != 'a') {
      addSquares(value);
      names += (names.empty() ? "" : ", ") + value.name;
      types += (types.empty() ? "" : ", ") + type(value.shape);
      ++graph.numResults;
    }
  if (graph.numResults == 0) {
    names = values.front().name;
    types = type(values.front().shape);
    addSquares(values.front());
    graph.numResults = 1;
  }
  for (int sharded = 0; sharded < 2; ++sharded) {
    std::string text = "func.func @f(";
    for (size_t i = 0; i < argumentTexts[sharded].size(); ++i)
      text += (i ? ", " : "") + argumentTexts[sharded][i];
    text +=
        ") -> (" + types + ") {\n" + body[sharded] + "  return " + names + " : " + types + "\n}\n";
    (sharded ? graph.sharded : graph.plain) = text;

    text = "func.func @loss(";
    for (size_t i = 0; i < argumentTexts[sharded].size(); ++i) {
      std::string argument = argumentTexts[sharded][i];
      if (argument.find("f64> {") != std::string::npos)
        argument.replace(argument.find("dtc.input"), 9, "dtc.param");
      text += (i ? ", " : "") + argument;
    }
    text += ") -> tensor<f64> {\n" + body[sharded] + squares + "  return " + total +
            " : tensor<f64>\n}\n";
    (sharded ? graph.shardedLoss : graph.plainLoss) = text;
  }
  return graph;
}

RandomGraph dtc::test::makeRandomGraph(uint64_t seed) { return Generator(seed).run(); }
