//===- KernelCases.cpp - Calls of kernels as plans have them --------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/calibrate/KernelCases.h"

#include "plan/KernelTable.h"
#include "runtime/calibrate/OperandTypes.h"
#include "support/QuantizedBlocks.h"

#include <algorithm>
#include <string_view>

namespace dtc::runtime {

using Calls = std::vector<KernelSignature>;
using Ints = std::vector<int64_t>;

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

static Calls unary(const char *name, const TensorType &x) { return {{name, {x}, {x}, {}, {}}}; }

static Calls binary(const char *name, const TensorType &x) { return {{name, {x, x}, {x}, {}, {}}}; }

/// Residuals, and biases.
static Calls add(const char *name, const TensorType &x) {
  TensorType bias = like(x, {widthOf(x)});
  return {{name, {x, x}, {x}, {}, {}}, {name, {x, bias}, {x}, {{"rhs_dims", Ints{1}}}, {}}};
}

/// The maximum of each row, as in a softmax that lies on several devices.
static Calls subtract(const char *name, const TensorType &x) {
  TensorType ofRows = like(x, {rowsOf(x)});
  return {{name, {x, x}, {x}, {}, {}}, {name, {x, ofRows}, {x}, {{"rhs_dims", Ints{0}}}, {}}};
}

static Calls gelu(const char *name, const TensorType &x) {
  return {{name, {x}, {x}, {{"approximate", "tanh"}}, {}}};
}

static Calls geluGrad(const char *name, const TensorType &x) {
  return {{name, {x, x}, {x}, {{"approximate", "tanh"}}, {}}};
}

static Calls compare(const char *name, const TensorType &x) {
  return {{name, {x, x}, {{DType::Bool, x.shape}}, {{"predicate", "lt"}}, {}}};
}

static Calls select(const char *name, const TensorType &x) {
  return {{name, {{DType::Bool, x.shape}, x, x}, {x}, {}, {}}};
}

/// Conversions from and to the type of master weights.
static Calls convert(const char *name, const TensorType &x) {
  DType to = x.dtype == DType::F32 ? DType::BF16 : DType::F32;
  return {{name, {x}, {{to, x.shape}}, {}, {}}};
}

static Calls dropout(const char *name, const TensorType &x) {
  return {{name,
           {x, {DType::I32, {2}}},
           {x},
           {{"rate", 0.1},
            {"op", int64_t{1}},
            {"shape", x.shape},
            {"sharding", std::vector<std::string>(2)}},
           {}}};
}

/// A number for each element.
static Calls uniform(const char *name, const TensorType &x) {
  return {{name,
           {{DType::I32, {2}}},
           {{DType::F32, x.shape}},
           {{"op", int64_t{1}}, {"shape", x.shape}, {"sharding", std::vector<std::string>(2)}},
           {}}};
}

/// p, g and the moments; the learning rate and other scalars; whether to apply the update.
static Calls optimizer(const char *name, const TensorType &x, size_t moments, size_t scalars,
                       AttributeMap attributes) {
  KernelSignature call{name, {}, {}, std::move(attributes), {}};
  call.inputs.assign(2 + moments, x);
  call.inputs.insert(call.inputs.end(), scalars, like(x, {}));
  call.inputs.push_back({DType::Bool, {}});
  call.outputs.assign(1 + moments, x);
  return {call};
}

static Calls adam(const char *name, const TensorType &x) {
  return optimizer(name, x, 2, 3,
                   {{"beta1", 0.9}, {"beta2", 0.95}, {"eps", 1e-8}, {"weight_decay", 0.1}});
}

static Calls sgd(const char *name, const TensorType &x) {
  return optimizer(name, x, 1, 2, {{"momentum", 0.9}, {"weight_decay", 0.1}});
}

static Calls lion(const char *name, const TensorType &x) {
  return optimizer(name, x, 1, 2, {{"beta1", 0.9}, {"beta2", 0.99}, {"weight_decay", 0.1}});
}

/// A microbatch that is not the first.
static Calls accumulate(const char *name, const TensorType &x) {
  return {{name, {x}, {x}, {{"axis", "micro"}}, {{"micro", 4, 1, true}}}};
}

std::span<const KernelCase> elementwiseCases() {
  static constexpr KernelCase cases[] = {
      {"neg", unary},
      {"abs", unary},
      {"exp", unary},
      {"log", unary},
      {"sqrt", unary},
      {"rsqrt", unary},
      {"tanh", unary},
      {"sigmoid", unary},
      {"softplus", unary},
      {"relu", unary, true, false},
      {"silu", unary, true, false},
      {"gelu", gelu, true, false},
      {"gelu_grad", geluGrad, true},
      {"silu_grad", binary, true},
      {"add", add, true},
      {"sub", subtract},
      {"mul", binary, true},
      {"div", binary},
      {"maximum", binary},
      {"minimum", binary},
      {"compare", compare},
      {"select", select},
      {"convert", convert, true},
      {"dropout", dropout, true},
      {"random_uniform", uniform, false, false},
      {"accumulate", accumulate},
      {"adamw", adam},
      {"adam", adam},
      {"sgd", sgd},
      {"lion", lion},
  };
  return cases;
}

//===----------------------------------------------------------------------===//
// Moving data
//===----------------------------------------------------------------------===//

static Calls fill(const char *name, const TensorType &x) {
  return {{name, {}, {x}, {{"value", 1.5}}, {}}};
}

static Calls broadcast(const char *name, const TensorType &x) {
  return {{name, {like(x, {widthOf(x)})}, {x}, {{"dims", Ints{1}}}, {}}};
}

/// A matrix, and heads before positions.
static Calls transpose(const char *name, const TensorType &x) {
  int64_t rows = rowsOf(x), width = widthOf(x);
  return {{name, {x}, {like(x, {width, rows})}, {{"permutation", Ints{1, 0}}}, {}},
          {name,
           {like(x, {rows, 4, width / 4})},
           {like(x, {4, rows, width / 4})},
           {{"permutation", Ints{1, 0, 2}}},
           {}}};
}

/// Queries, keys or values of parameters that hold all three.
static Calls slice(const char *name, const TensorType &x) {
  int64_t rows = rowsOf(x), width = widthOf(x);
  return {{name,
           {like(x, {rows, 3, width})},
           {like(x, {rows, 1, width})},
           {{"offsets", Ints{0, 1, 0}}},
           {}}};
}

static Calls concat(const char *name, const TensorType &x) {
  int64_t rows = rowsOf(x), width = widthOf(x);
  TensorType part = like(x, {rows, 1, width});
  return {{name, {part, part, part}, {like(x, {rows, 3, width})}, {{"dim", int64_t{1}}}, {}}};
}

/// Puts the rows into zigzag order, as sequences are: in twice as many chunks as parts.
static Calls zigzag(const char *name, const TensorType &x) {
  TensorType chunks = like(x, {8, rowsOf(x), widthOf(x)});
  return {{name,
           {chunks},
           {chunks},
           {{"dim", int64_t{0}}, {"parts", int64_t{4}}, {"inverse", false}},
           {}}};
}

static Calls pad(const char *name, const TensorType &x) {
  TensorType padded = like(x, {2 * rowsOf(x), widthOf(x)});
  return {{name, {x}, {padded}, {{"low", Ints{0, 0}}, {"value", 0.0}}, {}}};
}

/// Gradients of biases.
static Calls reduce(const char *name, const TensorType &x) {
  return {
      {name, {x}, {{wideType(x.dtype), {widthOf(x)}}}, {{"kind", "sum"}, {"dims", Ints{0}}}, {}}};
}

/// The last of four blocks.
static const std::vector<AxisCoordinate> kLastBlock = {{"part", 4, 3, false}};

static Calls shardSlice(const char *name, const TensorType &x) {
  return {{name,
           {like(x, {4 * rowsOf(x), widthOf(x)})},
           {x},
           {{"dim", int64_t{0}}, {"axes", std::vector<std::string>{"part"}}},
           kLastBlock}};
}

static Calls maskPadding(const char *name, const TensorType &x) {
  return {{name,
           {x},
           {x},
           {{"dim", int64_t{1}},
            {"axes", std::vector<std::string>{"part"}},
            {"size", 4 * widthOf(x) - 1},
            {"value", "zero"}},
           kLastBlock}};
}

/// Gradients as integers of 8 bits, in the usual blocks or those of a row.
static Ints blockAttributes(const TensorType &x) {
  int64_t block = std::min<int64_t>(widthOf(x), 256);
  QuantizedBlocks blocks{.bits = 8, .block = block, .parts = 1, .elements = x.numElements()};
  return {block, blocks.rows(), blocks.words()};
}

static Calls quantizeBlocks(const char *name, const TensorType &x) {
  Ints sizes = blockAttributes(x);
  TensorType floats{wideType(x.dtype), x.shape}, words{DType::I32, {sizes[1], sizes[2]}};
  bool isBack = std::string_view(name) == "dequantize_blocks";
  return {{name,
           {isBack ? words : floats},
           {isBack ? floats : words},
           {{"bits", int64_t{8}}, {"block", sizes[0]}, {"dim", int64_t{0}}, {"parts", int64_t{1}}},
           {}}};
}

/// The positions of a sequence in these caches: the kernels touch just one of them.
static constexpr int64_t kMovedPositions = 4;

/// A token for each sequence, into a cache and out of it.
static Calls cacheUpdate(const char *name, const TensorType &x) {
  TensorType cache = like(x, {rowsOf(x), kMovedPositions, widthOf(x)}),
             row = like(x, {rowsOf(x), 1, widthOf(x)});
  return {{name, {cache, row, {DType::I32, {rowsOf(x)}}}, {cache}, {}, {}}};
}

static Calls selectRow(const char *name, const TensorType &x) {
  TensorType from = like(x, {rowsOf(x), kMovedPositions, widthOf(x)}),
             row = like(x, {rowsOf(x), 1, widthOf(x)});
  return {{name, {from, {DType::I32, {rowsOf(x)}}}, {row}, {}, {}}};
}

std::span<const KernelCase> movementCases() {
  static constexpr KernelCase cases[] = {
      {"fill", fill},
      {"copy", unary, true},
      {"broadcast", broadcast, true},
      {"transpose", transpose, true},
      {"slice", slice, true},
      {"pad", pad, true},
      {"concat", concat, true},
      {"reduce", reduce, true},
      {"shard_slice", shardSlice, true},
      {"mask_padding", maskPadding},
      {"quantize_blocks", quantizeBlocks, false, false},
      {"dequantize_blocks", quantizeBlocks, false, false},
      {"cache_update", cacheUpdate, false, true, kMovedPositions},
      {"select_row", selectRow, false, true, kMovedPositions},
      {"zigzag", zigzag, true},
  };
  return cases;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

std::vector<KernelCase> kernelCases() {
  std::vector<KernelCase> all;
  for (std::span<const KernelCase> cases : {elementwiseCases(), movementCases(), fusedCases()})
    all.insert(all.end(), cases.begin(), cases.end());
  return all;
}

double meanBytes(const std::vector<KernelSignature> &calls) {
  double bytes = 0;
  for (const KernelSignature &call : calls)
    bytes += static_cast<double>(kernelBytes(call.kernel, call.inputs, call.outputs));
  return bytes / static_cast<double>(calls.size());
}

std::vector<KernelSignature> callsOfSize(const KernelCase &kernel, DType dtype, int64_t bytes) {
  constexpr int64_t usualWidth = 512, leastWidth = 16;
  auto bytesOf = [&](int64_t rows, int64_t width) {
    return meanBytes(kernel.calls(kernel.name, {dtype, {rows, width}}));
  };
  int64_t width = usualWidth;
  while (width > leastWidth && bytesOf(1, width) > static_cast<double>(bytes))
    width /= 2;
  // Some operands, such as tables, do not grow with the rows.
  double one = bytesOf(1, width), ofRow = bytesOf(2, width) - one;
  auto rows = static_cast<int64_t>((static_cast<double>(bytes) - one) / ofRow);
  return kernel.calls(kernel.name, {dtype, {1 + std::max<int64_t>(0, rows), width}});
}

} // namespace dtc::runtime
