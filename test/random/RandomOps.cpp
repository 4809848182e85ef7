//===- RandomOps.cpp - The ops of random graphs ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/Generator.h"

#include <algorithm>
#include <numeric>

using namespace dtc::test;

void Generator::elementwise() {
  size_t x = anyValue(0);
  Shape shape = values[x].shape;
  static const std::vector<std::string> unary = {"neg",  "tanh", "sigmoid", "relu",
                                                 "silu", "abs",  "gelu",    "softplus"};
  static const std::vector<std::string> binary = {"add", "sub",     "mul",    "add",
                                                  "mul", "maximum", "minimum"};
  if (chance(40)) {
    const std::string &op = oneOf(unary);
    append("dtc." + op + " " + (op == "gelu" ? "tanh " : "") + use(x) + "@ : " + type(shape),
           {shape});
  } else {
    size_t y = valueOf(shape);
    append("dtc." + oneOf(binary) + " " + use(x) + ", " + use(y) + "@ : " + type(shape), {shape});
  }
}

void Generator::select() {
  size_t x = anyValue(0);
  Shape shape = values[x].shape;
  size_t y = valueOf(shape), z = valueOf(shape);
  std::string mask = "%mask" + std::to_string(numbers);
  std::string compare =
      "  " + mask + " = dtc.compare gt " + use(x) + ", " + use(y) + " : " + type(shape) + "\n";
  body[0] += compare;
  body[1] += compare;
  append("dtc.select " + mask + ", " + use(y) + ", " + use(z) + "@ : " + type(shape), {shape});
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
    switch (pick(isBatch(size) ? 1 : 0, 2)) {
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
    int64_t size = randomSize();
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
         {outShape});
}

void Generator::reduce() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, dims, out;
  for (size_t dim = 0; dim < shape.size(); ++dim)
    if (!isBatch(shape[dim]) && chance(50))
      dims.push_back(dim);
    else
      out.push_back(shape[dim]);
  static const std::vector<std::string> kinds = {"sum", "sum", "max", "min"};
  append("dtc.reduce " + oneOf(kinds) + " " + use(x) + " dims [" + list(dims) + "]@ : (" +
             type(shape) + ") -> " + type(out),
         {out});
}

void Generator::reshape() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out;
  // Merge neighbours, then split at small divisors. The batch stays.
  int64_t merged = 1;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    merged *= shape[dim];
    bool last = dim + 1 == shape.size();
    if (isBatch(shape[dim])) {
      out.push_back(batch);
      merged = 1;
    } else if (last || isBatch(shape[dim + 1]) || chance(50)) {
      for (int64_t divisor : {2, 3, 4})
        if (out.size() < 3 && chance(40) && merged % divisor == 0 && merged > divisor) {
          out.push_back(divisor);
          merged /= divisor;
        }
      out.push_back(merged);
      merged = 1;
    }
  }
  // A merged dimension must not pass for the batch.
  if (batch &&
      std::count(out.begin(), out.end(), batch) != std::count(shape.begin(), shape.end(), batch))
    return;
  append("dtc.reshape " + use(x) + "@ : (" + type(shape) + ") -> " + type(out), {out});
}

void Generator::transpose() {
  size_t x = anyValue(2);
  Shape shape = values[x].shape, out, permutation(shape.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), engine);
  for (int64_t dim : permutation)
    out.push_back(shape[dim]);
  append("dtc.transpose " + use(x) + " permutation [" + list(permutation) + "]@ : (" + type(shape) +
             ") -> " + type(out),
         {out});
}

void Generator::broadcast() {
  size_t x = anyValue(0, 2);
  Shape shape = values[x].shape, dims, out;
  auto size = [&] {
    return batch && !hasBatch(shape) && !hasBatch(out) && chance(30) ? batch : randomSize();
  };
  for (int64_t kept : shape) {
    if (chance(40))
      out.push_back(size());
    dims.push_back(out.size());
    out.push_back(kept);
  }
  if (out.size() == shape.size())
    out.push_back(size());
  append("dtc.broadcast " + use(x) + " dims [" + list(dims) + "]@ : (" + type(shape) + ") -> " +
             type(out),
         {out});
}

void Generator::sliceOrPad() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, first, second, out;
  bool pad = chance(50);
  for (int64_t size : shape) {
    int64_t a = 0, b = pad ? 0 : size;
    if (!isBatch(size) && chance(50)) {
      a = pick(0, pad ? 2 : size / 2);
      b = pad ? pick(0, 2) : pick(1, size - a);
      if (isBatch(pad ? a + size + b : b)) {
        a = 0;
        b = pad ? 0 : size;
      }
    }
    first.push_back(a);
    second.push_back(b);
    out.push_back(pad ? a + size + b : b);
  }
  std::string types = "@ : (" + type(shape) + ") -> " + type(out);
  if (pad)
    append("dtc.pad " + use(x) + " low [" + list(first) + "] high [" + list(second) +
               "] value 0.0" + types,
           {out});
  else
    append("dtc.slice " + use(x) + " offsets [" + list(first) + "] sizes [" + list(second) + "]" +
               types,
           {out});
}

void Generator::concat() {
  size_t x = anyValue(1);
  Shape shape = values[x].shape, out = shape;
  int64_t dim = pick(0, shape.size() - 1);
  if (isBatch(shape[dim]) || isBatch(2 * shape[dim]))
    return;
  size_t y = valueOf(shape);
  out[dim] *= 2;
  append("dtc.concat " + use(x) + ", " + use(y) + " dim " + std::to_string(dim) + "@ : (" +
             type(shape) + ", " + type(shape) + ") -> " + type(out),
         {out});
}

void Generator::softmax() {
  size_t x = rows(1);
  Shape shape = values[x].shape;
  size_t rank = shape.size();
  bool mayBeCausal = rank >= 2 && shape[rank - 2] <= shape[rank - 1] && !isBatch(shape[rank - 2]);
  if (mayBeCausal && chance(50))
    append("dtc.softmax " + use(x) + " {causal = true, scale = 5.0e-1 : f64} : " + type(shape),
           {shape});
  else
    append("dtc.softmax " + use(x) + "@ : " + type(shape), {shape});
}

void Generator::layerNorm() {
  size_t x = rows(2);
  Shape shape = values[x].shape, weight = {shape.back()}, leading(shape.begin(), shape.end() - 1);
  size_t gamma = valueOf(weight), beta = valueOf(weight);
  append("dtc.layer_norm " + use(x) + ", " + use(gamma) + ", " + use(beta) +
             " {eps = 1.0e-1 : f64} : (" + type(shape) + ", " + type(weight) + ", " + type(weight) +
             ") -> (" + type(shape) + ", " + type(leading) + ", " + type(leading) + ")",
         {shape}, 3);
}

void Generator::rmsNorm() {
  size_t x = rows(2);
  Shape shape = values[x].shape, weight = {shape.back()}, leading(shape.begin(), shape.end() - 1);
  size_t gamma = valueOf(weight);
  append("dtc.rms_norm " + use(x) + ", " + use(gamma) + " {eps = 1.0e-1 : f64} : (" + type(shape) +
             ", " + type(weight) + ") -> (" + type(shape) + ", " + type(leading) + ")",
         {shape}, 2);
}

void Generator::indexed() {
  // Indices are an input of their own; random ones are in range.
  size_t x = anyValue(2, 3);
  Shape table = values[x].shape;
  if (table.size() != 2 || hasBatch(table)) {
    table = {randomSize(), randomSize()};
    x = valueOf(table);
  }
  Shape ids = randomShape(pick(1, 2)), out = ids;
  std::string indices = indexArgument(ids, table[0]);
  out.push_back(table[1]);
  append("dtc.embedding " + use(x) + ", " + indices + "@ : (" + type(table) + ", " +
             type(ids, "i32") + ") -> " + type(out),
         {out});
}

void Generator::embeddingOfSamples() {
  size_t x = anyValue(3, 4);
  if (isBatch(values[x].shape.end()[-2]))
    return;
  Shape table = values[x].shape, ids(table.begin(), table.end() - 2);
  if (ids.size() == 1 && chance(60))
    ids.insert(ids.begin(), batch && !hasBatch(table) && chance(30) ? batch : randomSize());
  ids.push_back(randomSize());
  Shape out = ids;
  out.push_back(table.back());
  std::string indices = indexArgument(ids, table.end()[-2]);
  append("dtc.embedding " + use(x) + ", " + indices + "@ : (" + type(table) + ", " +
             type(ids, "i32") + ") -> " + type(out),
         {out});
}

void Generator::embeddingGrad() {
  size_t x = anyValue(2);
  Shape dy = values[x].shape, ids(dy.begin(), dy.end() - 1), samples;
  // The dimensions before those of samples are summed, and so are the indices of a sample.
  if (isBatch(ids.back()))
    return;
  for (size_t dim = ids.size() - 1; dim-- > 0;) {
    if (chance(30) && !hasBatch(Shape(ids.begin(), ids.begin() + dim + 1)))
      break;
    samples.insert(samples.begin(), ids[dim]);
  }
  Shape out = samples;
  out.push_back(randomSize());
  std::string indices = indexArgument(ids, out.back());
  out.push_back(dy.back());
  append("dtc.embedding_grad " + indices + ", " + use(x) + "@ : (" + type(ids, "i32") + ", " +
             type(dy) + ") -> " + type(out),
         {out});
}

void Generator::convolve() {
  size_t x = anyValue(3);
  Shape shape = values[x].shape;
  // The batch is the first dimension or none: what is summed, and what must stay whole, is not.
  for (size_t dim = 1; dim < shape.size(); ++dim)
    if (isBatch(shape[dim]))
      return;
  bool hasGroups = shape.size() == 4 && chance(40);
  size_t leading = hasGroups ? 3 : 2;
  Shape strides, padding, dilations;
  Shape weight =
      hasGroups ? Shape{shape[1], randomSize(), shape[2]} : Shape{randomSize(), shape[1]};
  Shape out(shape.begin(), shape.begin() + int64_t(leading) - 1);
  out.push_back(weight[leading - 2]);
  for (size_t dim = leading; dim < shape.size(); ++dim) {
    strides.push_back(pick(1, 2));
    padding.push_back(pick(0, 2));
    dilations.push_back(pick(1, 2));
    int64_t padded = shape[dim] + 2 * padding.back();
    weight.push_back(pick(1, std::min<int64_t>(3, (padded - 1) / dilations.back() + 1)));
    out.push_back((padded - (weight.back() - 1) * dilations.back() - 1) / strides.back() + 1);
    if (isBatch(out.back()))
      return;
  }
  size_t w = valueOf(weight);
  append("dtc.conv " + use(x) + ", " + use(w) + " strides [" + list(strides) + "] padding [" +
             list(padding) + "] dilations [" + list(dilations) + "]@ : (" + type(shape) + ", " +
             type(weight) + ") -> " + type(out),
         {out});
}

void Generator::maxPool() {
  size_t x = anyValue(2);
  Shape shape = values[x].shape, out = shape, window, strides, padding;
  for (size_t dim = shape.size() - 2; dim < shape.size(); ++dim) {
    if (isBatch(shape[dim]))
      return;
    window.push_back(pick(1, std::min<int64_t>(3, shape[dim])));
    strides.push_back(pick(1, 3));
    padding.push_back(pick(0, window.back() / 2));
    out[dim] = (shape[dim] + 2 * padding.back() - window.back()) / strides.back() + 1;
    if (isBatch(out[dim]))
      return;
  }
  append("dtc.max_pool " + use(x) + " window [" + list(window) + "] strides [" + list(strides) +
             "] padding [" + list(padding) + "] dilations [1, 1]@ : (" + type(shape) + ") -> " +
             type(out),
         {out});
}

void Generator::route() {
  // Which elements are the largest must not depend on rounding: they are those of an argument,
  // which are random numbers.
  std::vector<size_t> fitting;
  for (size_t i = 0; i < values.size(); ++i)
    if (const Value &value = values[i]; value.name.starts_with("%a") && !value.shape.empty() &&
                                        value.shape.size() <= 3 && !isBatch(value.shape.back()))
      fitting.push_back(i);
  size_t x = fitting.empty() || chance(30) ? argument(randomShape(pick(1, 3))) : oneOf(fitting);
  Shape shape = values[x].shape;
  if (isBatch(shape.back()))
    return;
  std::string mask = "%largest" + std::to_string(numbers);
  std::string text = "  " + mask + " = dtc.top_k " + use(x) +
                     " {k = " + std::to_string(pick(1, shape.back())) + "} : " + type(shape) + "\n";
  if (chance(40)) {
    size_t y = valueOf(shape), z = valueOf(shape);
    body[0] += text;
    body[1] += text;
    append("dtc.select " + mask + ", " + use(y) + ", " + use(z) + "@ : " + type(shape), {shape});
    return;
  }
  Shape places(shape.begin(), shape.end() - 1), table = shape;
  places.push_back(pick(1, shape.back()));
  table.push_back(randomSize());
  std::string rows = "%places" + std::to_string(numbers);
  text += "  " + rows + " = dtc.nonzero " + mask + " : " + type(shape, "i1") + " -> " +
          type(places, "i32") + "\n";
  size_t y = valueOf(table);
  body[0] += text;
  body[1] += text;
  Shape out = places;
  out.push_back(table.back());
  append("dtc.embedding " + use(y) + ", " + rows + "@ : (" + type(table) + ", " +
             type(places, "i32") + ") -> " + type(out),
         {out});
}

void Generator::crossEntropy() {
  size_t x = rows(2);
  Shape shape = values[x].shape, leading(shape.begin(), shape.end() - 1);
  std::string labels = indexArgument(leading, shape.back());
  append("dtc.cross_entropy " + use(x) + ", " + labels + " : (" + type(shape) + ", " +
             type(leading, "i32") + ") -> (" + type(leading) + ", " + type(leading) + ")",
         {leading, leading}, 2);
}

void Generator::attention() {
  int64_t b = batch ? batch : pick(1, 4), s = pick(3, 4), g = pick(1, 4), r = pick(1, 3), d = 4;
  Shape q = {b, s, g * r, d}, k = {b, s, g, d}, lse = {b, g * r, s};
  size_t x = valueOf(q), y = valueOf(k), z = valueOf(k);
  bool hasSegments = chance(40), isCausal = !hasSegments || chance(50);
  std::string segments = hasSegments ? " segments " + indexArgument({b, s}, 2) : "";
  append("dtc.attention " + use(x) + ", " + use(y) + ", " + use(z) + segments + " {causal = " +
             (isCausal ? "true" : "false") + ", scale = 5.0e-1 : f64} : (" + type(q) + ", " +
             type(k) + ", " + type(k) + (hasSegments ? ", " + type({b, s}, "i32") : "") + ") -> (" +
             type(q) + ", " + type(lse) + ")",
         {q}, 2);
}
