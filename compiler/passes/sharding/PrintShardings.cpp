//===- PrintShardings.cpp - The shardings of a function, as a table -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// Rows are text from the start: layers that are alike have equal rows, rows that are alike are
// counted. Every value is looked at once.
//
//===----------------------------------------------------------------------===//

#include "compiler/analysis/DescribeLocation.h"
#include "compiler/analysis/Layout.h"
#include "compiler/passes/CheckProgram.h"
#include "compiler/passes/Passes.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

#include <array>

namespace dtc {
#define GEN_PASS_DEF_PRINTSHARDINGSPASS
#include "compiler/passes/Passes.h.inc"
} // namespace dtc

using namespace mlir;
using namespace dtc;

namespace {

/// Rows of text under a heading, in groups by layer.
class Table {
public:
  static constexpr unsigned kColumns = 7;
  using Row = std::array<std::string, kColumns>;

  explicit Table(Row headings) : headings(std::move(headings)) {}

  /// Adds a row to the layer of `name`. Equal rows of a layer are one row, with their number.
  void add(const LayerName &name, const Row &row) {
    auto [it, fresh] = groups.try_emplace({name.prefix.str(), name.number});
    ++it->second[row];
  }
  bool empty() const { return groups.empty(); }
  void print(raw_ostream &os) const;

private:
  using Group = llvm::MapVector<Row, unsigned, std::map<Row, unsigned>>;
  using Key = std::pair<std::string, int64_t>;

  static bool alike(const Group &a, const Group &b) {
    return llvm::equal(a, b, [](const auto &x, const auto &y) {
      return x.first == y.first && x.second == y.second;
    });
  }

  Row headings;
  llvm::MapVector<Key, Group, std::map<Key, unsigned>> groups;
};

/// Bytes and elements of many tensors.
struct Total {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

class Printer {
public:
  Printer(func::FuncOp function, const LinkedMesh &mesh, raw_ostream &os)
      : function(function), mesh(mesh), os(os) {}
  void run();

private:
  void printMesh();
  void printParameters();
  void printOptimizerState();
  void printInputs();
  void printActivations();
  /// The columns that every kind of value has: shape, sharding, local shape, bytes, padding.
  std::array<std::string, 5> describe(Value value) const;
  uint64_t localBytes(Value value) const;
  void addTo(Total &total, Value value) const;
  void printTotal(StringRef what, const Total &total);
  Layout layoutOf(Value value) const { return getLayout(mesh, dist::getSharding(value)); }
  StringRef attributeOf(BlockArgument arg, StringRef key) {
    auto attr = function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), key);
    return attr ? attr.getValue() : StringRef();
  }

  func::FuncOp function;
  const LinkedMesh &mesh;
  raw_ostream &os;
};

} // namespace

/// 4x8xf32, as types have it; a scalar is f32.
static std::string shapeText(ArrayRef<int64_t> shape, Type element) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : shape)
    os << size << 'x';
  os << element;
  return text;
}

static std::string bytesText(uint64_t bytes) {
  std::string text = std::to_string(bytes) + " bytes";
  for (auto [unit, scale] : {std::pair("GiB", 30), std::pair("MiB", 20), std::pair("KiB", 10)})
    if (bytes >= uint64_t(1) << scale)
      return text + llvm::formatv(" ({0:F1} {1})", std::ldexp(double(bytes), -scale), unit).str();
  return text;
}

void Table::print(raw_ostream &os) const {
  std::array<size_t, kColumns> widths;
  for (unsigned i = 0; i < kColumns; ++i)
    widths[i] = headings[i].size();
  auto cell = [&](const Row &row, unsigned number, unsigned column) {
    if (column == 0 && number > 1)
      return llvm::formatv("{0} ({1})", row[0], number).str();
    return row[column];
  };
  for (const auto &[key, rows] : groups)
    for (const auto &[row, number] : rows)
      for (unsigned i = 0; i < kColumns; ++i)
        widths[i] = std::max(widths[i], cell(row, number, i).size());
  auto printRow = [&](const Row &row, unsigned number, unsigned indent) {
    std::string line(indent, ' ');
    for (unsigned i = 0; i < kColumns; ++i)
      if (widths[i])
        line += llvm::formatv("{0}{1}  ", cell(row, number, i),
                              std::string(widths[i] - cell(row, number, i).size(), ' '));
    os << StringRef(line).rtrim() << '\n';
  };
  printRow(headings, 1, 2);
  for (auto it = groups.begin(), end = groups.end(); it != end;) {
    const auto &[prefix, first] = it->first;
    auto last = it, next = std::next(it);
    while (next != end && next->first.first == prefix && !prefix.empty() &&
           next->first.second == last->first.second + 1 && alike(next->second, it->second))
      last = next++;
    if (prefix.empty())
      os << (groups.size() > 1 ? "outside layers\n" : "");
    else if (last == it)
      os << prefix << first << '\n';
    else
      os << prefix << first << " ... " << prefix << last->first.second << " alike\n";
    for (const auto &[row, number] : it->second)
      printRow(row, number, 2);
    it = next;
  }
}

uint64_t Printer::localBytes(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  uint64_t bytes = elementBytes(type);
  for (int64_t size : layoutOf(value).localShape(mesh, type.getShape()))
    bytes = llvm::SaturatingMultiply<uint64_t>(bytes, size);
  return bytes;
}

void Printer::addTo(Total &total, Value value) const {
  uint64_t elements = 1;
  for (int64_t size : cast<RankedTensorType>(value.getType()).getShape())
    elements = llvm::SaturatingMultiply<uint64_t>(elements, size);
  ++total.tensors;
  total.elements = llvm::SaturatingAdd(total.elements, elements);
  total.bytes = llvm::SaturatingAdd(total.bytes, localBytes(value));
}

void Printer::printTotal(StringRef what, const Total &total) {
  os << what << ": " << total.tensors << (total.tensors == 1 ? " tensor, " : " tensors, ")
     << total.elements << " elements, " << bytesText(total.bytes) << " on each device\n";
}

std::array<std::string, 5> Printer::describe(Value value) const {
  auto type = cast<RankedTensorType>(value.getType());
  Layout layout = layoutOf(value);
  SmallVector<int64_t> local = layout.localShape(mesh, type.getShape());
  SmallVector<std::string> padding;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    if (!mesh.divides(size, layout.dims[dim]))
      padding.push_back(("dim " + Twine(dim) + ": " + Twine(size) + " to " +
                         Twine(local[dim] * mesh.product(layout.dims[dim])))
                            .str());
  return {shapeText(type.getShape(), type.getElementType()), layout.str(mesh),
          shapeText(local, type.getElementType()), std::to_string(localBytes(value)),
          llvm::join(padding, ", ")};
}

void Printer::printMesh() {
  os << "@" << function.getName() << " on mesh ";
  int64_t devices = 1;
  bool temporal = false;
  llvm::interleaveComma(mesh.axes, os, [&](const LinkedAxis &axis) {
    os << axis.name << "=" << axis.size;
    if (!axis.subAxisOf.empty())
      os << " (of " << axis.subAxisOf << ")";
    if (axis.temporal)
      os << " (temporal)";
    else
      devices *= axis.size;
    temporal |= axis.temporal;
  });
  os << ": " << devices << (devices == 1 ? " device" : " devices");
  if (temporal)
    os << "; what " << mesh.axes[*mesh.temporalAxis()].name
       << " splits has the local shape of one microbatch";
  os << "\n";
}

void Printer::printParameters() {
  Table table({"parameter", "shape", "sharding", "local shape", "bytes", "padding", ""});
  Total total;
  for (BlockArgument arg : function.getArguments()) {
    StringRef name = attributeOf(arg, "dtc.param");
    if (name.empty())
      continue;
    auto [shape, sharding, local, bytes, padding] = describe(arg);
    LayerName layer(name);
    table.add(layer, {layer.rest.str(), shape, sharding, local, bytes, padding, ""});
    addTo(total, arg);
  }
  if (table.empty())
    return;
  os << "\n";
  table.print(os);
  printTotal("parameters", total);
}

void Printer::printOptimizerState() {
  llvm::StringMap<Layout> parameters;
  for (BlockArgument arg : function.getArguments())
    if (StringRef name = attributeOf(arg, "dtc.param"); !name.empty())
      parameters[name] = layoutOf(arg);
  Table table({"optimizer state", "of", "shape", "sharding", "local shape", "bytes", "padding"});
  Total total;
  uint64_t alike = 0;
  for (BlockArgument arg : function.getArguments()) {
    StringRef state = attributeOf(arg, "dtc.state"), of = attributeOf(arg, "dtc.state_of");
    if (state.empty())
      continue;
    addTo(total, arg);
    auto parameter = parameters.find(of);
    if (parameter != parameters.end() && parameter->second == layoutOf(arg)) {
      ++alike;
      continue;
    }
    auto [shape, sharding, local, bytes, padding] = describe(arg);
    LayerName layer(of);
    table.add(layer, {state.str(), layer.rest.str(), shape, sharding, local, bytes, padding});
  }
  if (total.tensors == 0)
    return;
  os << "\n";
  if (!table.empty())
    table.print(os);
  printTotal("optimizer state", total);
  os << "optimizer state: " << alike << " of " << total.tensors
     << " with the parameter's sharding\n";
}

void Printer::printInputs() {
  Table table({"input", "shape", "sharding", "local shape", "bytes", "padding", ""});
  for (BlockArgument arg : function.getArguments()) {
    StringRef name = attributeOf(arg, "dtc.input");
    for (StringRef other : {"dtc.scalar", "dtc.cache", "dtc.step_state"})
      if (name.empty())
        name = attributeOf(arg, other);
    // An argument that is neither belongs to a function that is no model.
    std::string other = llvm::formatv("argument {0}", arg.getArgNumber());
    if (name.empty() && attributeOf(arg, "dtc.param").empty() &&
        attributeOf(arg, "dtc.state").empty())
      name = other;
    if (name.empty())
      continue;
    auto [shape, sharding, local, bytes, padding] = describe(arg);
    table.add(LayerName(""), {name.str(), shape, sharding, local, bytes, padding, ""});
  }
  if (table.empty())
    return;
  os << "\n";
  table.print(os);
}

/// The name that the user gave the place of an op, or its line where there is none.
static std::string placeOf(Location loc) {
  std::string name, line;
  loc->walk([&](Location part) {
    if (auto named = dyn_cast<NameLoc>(part); named && name.empty())
      name = named.getName().str();
    if (auto file = dyn_cast<FileLineColLoc>(part); file && line.empty())
      line = llvm::formatv("line {0}", file.getLine()).str();
    return WalkResult::advance();
  });
  return name.empty() ? line : name;
}

void Printer::printActivations() {
  // The new values of states are no activations; they are in the tables above.
  llvm::DenseSet<Value> updates;
  for (OpOperand &operand : function.front().getTerminator()->getOpOperands()) {
    if (!function.getResultAttr(operand.getOperandNumber(), "dtc.updates"))
      continue;
    Value value = operand.get();
    while (updates.insert(value).second)
      if (auto reshard = value.getDefiningOp<dist::ReshardOp>())
        value = reshard.getInput();
  }
  Table table({"activation", "in", "shape", "sharding", "local shape", "bytes", "padding"});
  for (Operation &op : function.front().without_terminator())
    for (OpResult result : op.getResults()) {
      if (updates.contains(result))
        continue;
      std::string name = op.getName().getStringRef().str(), place = placeOf(op.getLoc());
      if (op.getNumResults() > 1)
        name += llvm::formatv("#{0}", result.getResultNumber());
      auto [shape, sharding, local, bytes, padding] = describe(result);
      LayerName layer(place);
      table.add(layer, {name, layer.rest.str(), shape, sharding, local, bytes, padding});
    }
  if (table.empty())
    return;
  os << "\n";
  table.print(os);
}

void Printer::run() {
  printMesh();
  printParameters();
  printOptimizerState();
  printInputs();
  printActivations();
}

namespace {
struct PrintShardingsPass : dtc::impl::PrintShardingsPassBase<PrintShardingsPass> {
  using Base::Base;

  void runOnOperation() override {
    bool any = false;
    auto print = [&](func::FuncOp function, const LinkedMesh &mesh) -> LogicalResult {
      for (unsigned index = 0; index < function.getNumArguments(); ++index)
        if (function.getArgAttr(index, "dtc.global_shape"))
          return function.emitOpError() << "is partitioned already; run dtc-print-shardings before "
                                           "dtc-spmd-partition";
      if (failed(checkProgram(function, mesh.name)) || failed(checkShardings(function)))
        return failure();
      llvm::outs() << (any ? "\n" : "");
      Printer(function, mesh, llvm::outs()).run();
      any = true;
      return success();
    };
    if (failed(forEachFunction(getOperation(), print)))
      return signalPassFailure();
    if (!any) {
      getOperation().emitError() << "the module has no function with a body; give a model";
      return signalPassFailure();
    }
    llvm::outs().flush();
    markAllAnalysesPreserved();
  }
};
} // namespace
