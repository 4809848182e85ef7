//===- RandomConstants.cpp - Small models that share constants ------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "test/random/RandomConstants.h"

#include <algorithm>
#include <iterator>
#include <random>

using namespace dtc::test;

namespace {

/// Writes a loss whose data and parameters are [N, N], so that each fits each.
class ConstantModel {
public:
  explicit ConstantModel(uint64_t seed) : engine(seed) { size = std::to_string(4 + 2 * pick(3)); }
  std::string write(unsigned kind);
  bool chance() { return pick(2) == 0; }
  int64_t pick(int64_t count) { return int64_t(engine() % uint64_t(count)); }

  using Kind = std::string (ConstantModel::*)();
  static const Kind kinds[];

private:
  /// Replaces N by the size.
  std::string sized(std::string text) const {
    for (size_t at = 0; (at = text.find('N', at)) != text.npos; at += size.size())
      text.replace(at, 1, size);
    return text;
  }
  /// Adds an op, in which @ is the type [N, N]; returns the name of its result.
  std::string op(std::string text) {
    for (size_t at = 0; (at = text.find('@')) != text.npos;)
      text.replace(at, 1, "tensor<NxNxf64>");
    std::string name = "%" + std::to_string(count++);
    body += "  " + name + " = " + sized(text) + "\n";
    return name;
  }
  std::string binary(const char *name, const std::string &a, const std::string &b) {
    return op(std::string("dtc.") + name + " " + a + ", " + b + " : @");
  }
  /// Adds a parameter once.
  std::string parameter(const std::string &name, const std::string &type,
                        const std::string &axes = "") {
    if (arguments.find("%" + name + ":") == arguments.npos)
      arguments += sized(", %" + name + ": " + type + " {dtc.param = \"" + name + "\"" +
                         (axes.empty() ? "" : ", dtc.axes = [" + axes + "]") + "}");
    return "%" + name;
  }
  /// The numbers of a dense constant, `make(i)` at i.
  template <typename Make> std::string dense(int64_t rank, Make make) {
    int64_t length = std::stoll(size), i = 0;
    auto row = [&] {
      std::string text;
      for (int64_t column = 0; column < length; ++column)
        text += (column ? ", " : "[") + make(i++);
      return text + "]";
    };
    if (rank == 1)
      return row();
    std::string text;
    for (int64_t r = 0; r < length; ++r)
      text += (r ? ", " : "[") + row();
    return text + "]";
  }
  std::string half() { return op("dtc.constant dense<0.5> : @"); }
  std::string ids() {
    return op("dtc.constant dense<" +
              dense(1, [](int64_t i) { return std::to_string((i * i + 1) % 3); }) +
              "> : tensor<Nxi32>");
  }
  std::string ones() { return op("dtc.constant dense<1.0> : tensor<Nxf64>"); }
  std::string broadcast(const std::string &value, bool toRows) {
    return op("dtc.broadcast " + value + " dims [" + (toRows ? "1" : "0") +
              "] : (tensor<Nxf64>) -> @");
  }
  std::string transposed(const std::string &value) {
    return op("dtc.transpose " + value + " permutation [1, 0] : (@) -> @");
  }

  // Values of [N, N] that depend on no data. A model asks for one several times, and CSE makes them
  // one.
  std::string splat() { return half(); }
  std::string denseConstant() {
    return op("dtc.constant dense<" +
              dense(2, [](int64_t i) { return "0." + std::to_string(i % 7 + 1); }) + "> : @");
  }
  std::string opOfConstants() {
    return binary("mul", op("dtc.tanh " + half() + " : @"), denseConstant());
  }
  std::string sumWithTransposed() {
    std::string value = denseConstant();
    return binary("add", value, transposed(value));
  }
  std::string productOfConstants() {
    std::string value = denseConstant();
    return op("dtc.einsum \"ij,kj->ik\" " + value + ", " + value + " : (@, @) -> @");
  }
  std::string broadcastOfParameter() { return broadcast(parameter("p", "tensor<Nxf64>"), true); }
  std::string broadcastOfScalar() {
    std::string half = op("dtc.constant dense<0.5> : tensor<f64>");
    std::string value =
        op("dtc.mul " + parameter("s", "tensor<f64>") + ", " + half + " : tensor<f64>");
    return op("dtc.broadcast " + value + " dims [] : (tensor<f64>) -> @");
  }
  std::string broadcastOfConstant() { return broadcast(ones(), chance()); }
  std::string outerProduct() {
    return op("dtc.einsum \"b,h->bh\" " + ones() + ", " + parameter("p", "tensor<Nxf64>") +
              " : (tensor<Nxf64>, tensor<Nxf64>) -> @");
  }
  std::string rowsOfTable() {
    return op("dtc.embedding " + parameter("t", "tensor<5xNxf64>", "\"\", \"wide\"") + ", " +
              ids() + " : (tensor<5xNxf64>, tensor<Nxi32>) -> @");
  }
  std::string reshapedConstant() {
    std::string value = op("dtc.constant dense<0.25> : tensor<Nx1xNxf64>");
    return op("dtc.reshape " + value + " : (tensor<Nx1xNxf64>) -> @");
  }
  std::string convertedConstant() {
    std::string value = op("dtc.constant dense<3> : tensor<NxNxi32>");
    return op("dtc.convert " + value + " : (tensor<NxNxi32>) -> @");
  }
  std::string mask() {
    if (arguments.find("%key") == arguments.npos)
      arguments += ", %key: tensor<2xi32> {dtc.scalar = \"random_key\"}";
    return op("dtc.dropout " + half() +
              ", %key {number = 3, rate = 2.5e-1} : (@, tensor<2xi32>) -> @");
  }

  /// Uses a value that depends on no data, of the kind, with `x`.
  std::string with(const std::string &x, unsigned kind);

  std::mt19937_64 engine;
  std::string size, arguments, body;
  int64_t count = 0;
};

} // namespace

const ConstantModel::Kind ConstantModel::kinds[] = {
    &ConstantModel::splat,
    &ConstantModel::denseConstant,
    &ConstantModel::opOfConstants,
    &ConstantModel::sumWithTransposed,
    &ConstantModel::productOfConstants,
    &ConstantModel::broadcastOfParameter,
    &ConstantModel::broadcastOfScalar,
    &ConstantModel::broadcastOfConstant,
    &ConstantModel::outerProduct,
    &ConstantModel::rowsOfTable,
    &ConstantModel::reshapedConstant,
    &ConstantModel::convertedConstant,
    &ConstantModel::mask,
};

const unsigned dtc::test::kNumConstantKinds = std::size(ConstantModel::kinds);

std::string ConstantModel::with(const std::string &x, unsigned kind) {
  std::string value = (this->*kinds[kind])();
  switch (pick(6)) {
  case 0: { // zeros of a select
    std::string positive = op("dtc.compare gt " + x + ", " + value + " : @");
    return op("dtc.select " + positive + ", " + x + ", " + value + " : @");
  }
  case 1: { // ids of rows
    std::string picked =
        op("dtc.pick " + x + ", " + ids() + " : (@, tensor<Nxi32>) -> tensor<Nxf64>");
    return binary("add", binary("mul", x, value), broadcast(picked, /*toRows=*/false));
  }
  case 2: { // a vector of ones
    std::string scaled = op("dtc.einsum \"bi,i->b\" " + x + ", " + ones() +
                            " : (@, tensor<Nxf64>) -> tensor<Nxf64>");
    return binary("sub", value, broadcast(scaled, /*toRows=*/false));
  }
  case 3:
    return op("dtc.einsum \"bi,b->bi\" " + binary("add", x, value) + ", " + ones() +
              " : (@, tensor<Nxf64>) -> @");
  case 4:
    return binary("maximum", value, x);
  default:
    return binary(chance() ? "mul" : "add", value, x);
  }
}

std::string ConstantModel::write(unsigned kind) {
  std::string x = "%x", w = parameter("w", "tensor<NxNxf64>", "\"\", \"wide\"");
  for (int64_t layer = 0, layers = 1 + pick(2); layer < layers; ++layer) {
    x = with(x, kind);
    for (int64_t uses = 1 + pick(2); uses > 0; --uses)
      w = with(chance() ? transposed(w) : w, kind);
    x = op("dtc.tanh " + op("dtc.einsum \"bi,ij->bj\" " + x + ", " + w + " : (@, @) -> @") +
           " : @");
    if (chance())
      x = with(x, kind);
  }
  std::string loss = op("dtc.einsum \"bj,bj->\" " + x + ", " + x + " : (@, @) -> tensor<f64>");
  return sized("func.func @loss(%x: tensor<NxNxf64> {dtc.input = \"x\", dtc.axes = [\"batch\", "
               "\"\"]}") +
         arguments + ") -> tensor<f64> {\n" + body + "  return " + loss + " : tensor<f64>\n}\n";
}

RandomModel dtc::test::makeConstantModel(unsigned kind, uint64_t seed) {
  ConstantModel writer(seed * kNumConstantKinds + kind);
  RandomModel model;
  model.loss = writer.write(kind);
  std::vector<std::string> strategies = {
      "m=2",
      "m=4 accumulate",
      "m=3 recompute=full",
      "dp=2 m=2",
      "dp=2 m=2 zero=1 accumulate",
      "dp=2 m=2 zero=2",
      "dp=2 m=2 zero=3 recompute=selective",
      "tp=2 shard:wide=tp m=2",
      "tp=2 shard:wide=tp m=4 accumulate",
      "dp=2,tp=2 shard:wide=tp m=2 zero=1",
      "pp=2 m=2",
      "pp=2 m=4 schedule=gpipe recompute=full",
      "pp=2 m=3 schedule=zb-h1 accumulate",
      "dp=2,pp=2 m=2 zero=2",
  };
  while (model.strategies.size() < 4) {
    const std::string &text = strategies[writer.pick(int64_t(strategies.size()))];
    if (!std::count(model.strategies.begin(), model.strategies.end(), text))
      model.strategies.push_back(text);
  }
  return model;
}
