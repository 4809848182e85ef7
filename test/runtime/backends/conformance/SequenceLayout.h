//===- SequenceLayout.h - Attention on sequences that lie on devices ------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The calls on one device, and the whole sequence's results at its places.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_SEQUENCELAYOUT_H
#define DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_SEQUENCELAYOUT_H

#include "test/runtime/backends/conformance/KernelTest.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace dtc::runtime::test::sequence {

using Axes = std::vector<std::string>;
using Places = std::vector<int64_t>;

/// How the elements of a sequence lie on devices.
struct Layout {
  std::vector<int64_t> devices; ///< along each axis; none: all elements are on each device
  int64_t parts = 0;            ///< of the zigzag order; 0: the order of the sequence

  Axes axes() const {
    Axes names;
    for (size_t i = 0; i < devices.size(); ++i)
      names.emplace_back(1, static_cast<char>('a' + i));
    return names;
  }
  int64_t count() const {
    return std::accumulate(devices.begin(), devices.end(), int64_t{1}, std::multiplies<>());
  }
  std::string str() const {
    std::string text = std::to_string(parts) + " parts over";
    for (int64_t each : devices)
      text += " " + std::to_string(each);
    return text + " devices";
  }

  /// The coordinates of a device. The first axis splits nothing.
  std::vector<AxisCoordinate> position(int64_t device) const {
    std::vector<AxisCoordinate> mesh = {{"dp", 2, 1, false}};
    Axes names = axes();
    for (size_t i = 0; i < devices.size(); ++i)
      mesh.push_back({names[i], devices[i], 0, false});
    for (size_t i = devices.size(); i-- > 0; device /= devices[i])
      mesh[i + 1].coordinate = device % devices[i];
    return mesh;
  }
  /// The elements that a shard has room for.
  int64_t room(int64_t size) const { return (size + count() - 1) / count(); }
  /// The places of all elements, chunk by chunk.
  Places order(int64_t size) const {
    Places result(static_cast<size_t>(size));
    std::iota(result.begin(), result.end(), 0);
    if (parts == 0)
      return result;
    int64_t chunk = size / (2 * parts);
    auto to = result.begin();
    for (int64_t part = 0; part < parts; ++part)
      for (int64_t from : {part, 2 * parts - 1 - part}) {
        std::iota(to, to + chunk, from * chunk);
        to += chunk;
      }
    return result;
  }
  /// The places of the elements that exist in a device's shard, as docs/kernels.md says it.
  Places places(int64_t device, int64_t size) const {
    int64_t begin = 0, held = size, room = size;
    std::vector<AxisCoordinate> mesh = position(device);
    for (size_t i = 1; i < mesh.size(); ++i) {
      room = (room + mesh[i].size - 1) / mesh[i].size;
      begin += mesh[i].coordinate * room;
      held = std::clamp<int64_t>(held - mesh[i].coordinate * room, 0, room);
    }
    if (held == 0)
      return {};
    Places all = order(size);
    return {all.begin() + begin, all.begin() + begin + held};
  }
  void addTo(AttributeMap &attributes, int64_t size) const {
    if (!devices.empty()) {
      attributes["sequence"] = size;
      attributes["sequence_axes"] = axes();
    }
    if (parts != 0)
      attributes["zigzag"] = parts;
  }
};

/// The elements of a dimension at these places, and `padding` after them.
inline HostTensor take(const HostTensor &x, size_t dim, const Places &places, int64_t room,
                       double padding) {
  Shape shape = x.type.shape;
  int64_t size = shape[dim], outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != dim)
      (d < dim ? outer : inner) *= shape[d];
  shape[dim] = room;
  HostTensor part(TensorType{x.type.dtype, shape});
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t e = 0; e < room; ++e)
      for (int64_t i = 0; i < inner; ++i) {
        bool exists = e < static_cast<int64_t>(places.size());
        int64_t from = exists ? (o * size + places[static_cast<size_t>(e)]) * inner + i : 0;
        setElement(part, (o * room + e) * inner + i, exists ? elementAt(x, from) : padding);
      }
  return part;
}

/// Expects equal elements; each may be off by what expectKernel() allows.
inline void expectNear(const Values &found, const Values &expected, DType dtype, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 1;
  for (double value : expected)
    largest = std::max(largest, std::fabs(value));
  double bound = tolerance * largest * (dtype == DType::F32 ? std::exp2(29) : 1);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], bound) << "element " << i;
}

/// Expects that the elements of a shard that exist are those of the whole result.
inline void expectPlaces(const HostTensor &shard, const HostTensor &whole, size_t dim,
                         const Places &places, double tolerance) {
  auto held = static_cast<int64_t>(places.size());
  Places first(places.size());
  std::iota(first.begin(), first.end(), 0);
  expectNear(valuesOf(take(shard, dim, first, held, 0)),
             valuesOf(take(whole, dim, places, held, 0)), whole.type.dtype, tolerance);
}

inline void add(Values &sum, const HostTensor &part) {
  Values values = valuesOf(part);
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += values[i];
}

struct Case {
  int64_t b, s, t, h, g, d;
  bool causal;
  int64_t window = 0;
  double softcap = 0;
  std::vector<int64_t> lengths = {}; ///< of segments, over and over; empty: there are none
  double dropout = 0;

  AttributeMap attributes(const Layout &layout) const {
    AttributeMap result{{"causal", causal}, {"scale", 0.6}};
    if (window)
      result["window"] = window;
    if (softcap != 0)
      result["softcap"] = softcap;
    if (dropout != 0) {
      std::string axes;
      for (const std::string &name : layout.axes())
        axes += (axes.empty() ? "" : ",") + name;
      result["dropout"] = dropout;
      result["op"] = int64_t{3};
      result["shape"] = Shape{b, h, s, t};
      result["sharding"] = std::vector<std::string>{"", "", axes, ""};
    }
    layout.addTo(result, s);
    return result;
  }
  /// The numbers of segments; each batch element begins with another of the lengths.
  HostTensor segments() const {
    HostTensor result(TensorType{DType::I32, {b, t}});
    for (int64_t element = 0; element < b; ++element) {
      auto number = static_cast<size_t>(element);
      int64_t end = lengths[number % lengths.size()];
      for (int64_t j = 0; j < t; ++j) {
        if (j == end)
          end += lengths[++number % lengths.size()];
        setElement(result, element * t + j, static_cast<double>(number % 3) - 1);
      }
    }
    return result;
  }
};

/// The operands of attention and of its gradient, in the order of the sequence.
struct Operands {
  HostTensor q, k, v, dout;
  std::vector<HostTensor> optional; ///< the segments and the key of dropout

  Operands(const Case &c, DType dtype, Random &random)
      : q(random.floats(dtype, {c.b, c.s, c.h, c.d}, -2, 2)),
        k(random.floats(dtype, {c.b, c.t, c.g, c.d}, -2, 2)),
        v(random.floats(dtype, {c.b, c.t, c.g, c.d})),
        dout(random.floats(dtype, {c.b, c.s, c.h, c.d})) {
    if (!c.lengths.empty())
      optional.push_back(c.segments());
    if (c.dropout != 0)
      optional.push_back(makeTensor(DType::I32, {2}, {-5, 4}));
  }
};

/// Attention on a device. The contents of the padding of queries have no meaning.
inline KernelCall attentionOn(const Case &c, const Operands &x, const Layout &layout,
                              int64_t device, double padding) {
  int64_t room = layout.room(c.s);
  HostTensor q = take(x.q, 1, layout.places(device, c.s), room, padding);
  KernelCall call{"attention",
                  {q, x.k, x.v},
                  {q.type, TensorType{wideType(q.type.dtype), {c.b, c.h, room}}},
                  c.attributes(layout),
                  layout.position(device)};
  call.inputs.insert(call.inputs.end(), x.optional.begin(), x.optional.end());
  return call;
}

/// Its gradient, given the results on the whole sequence. Padding is zeros, as dk and dv are sums
/// over the queries.
inline KernelCall gradientOn(const Case &c, const Operands &x,
                             const std::vector<HostTensor> &results, const Layout &layout,
                             int64_t device) {
  int64_t room = layout.room(c.s);
  Places places = layout.places(device, c.s);
  auto part = [&](const HostTensor &whole, size_t dim) {
    return take(whole, dim, places, room, 0);
  };
  HostTensor q = part(x.q, 1);
  KernelCall call{"attention_grad",
                  {q, x.k, x.v, part(results[0], 1), part(results[1], 2), part(x.dout, 1)},
                  {q.type, x.k.type, x.v.type},
                  c.attributes(layout),
                  layout.position(device)};
  call.inputs.insert(call.inputs.end(), x.optional.begin(), x.optional.end());
  return call;
}

} // namespace dtc::runtime::test::sequence

#endif // DTC_TEST_RUNTIME_BACKENDS_CONFORMANCE_SEQUENCELAYOUT_H
