//===- GaussianNoise.cpp - Normal noise on a device -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/passes/privacy/GaussianNoise.h"

#include "dialects/dist/DistCompressionOps.h"
#include "dialects/dtc/DtcOps.h"
#include "support/Philox.h"

#include <cmath>
#include <numbers>

using namespace mlir;
using namespace dtc;

namespace {

/// Builds elementwise ops on the elements of one shard.
class NormalBuilder {
public:
  NormalBuilder(OpBuilder &builder, Location loc, RankedTensorType type)
      : builder(builder), loc(loc), type(type) {}

  Value uniform(Value key, StringRef name, int draw, const ShardPlace &place);
  Value cosineOfTurns(Value turns);
  Value constant(double value) {
    Value scalar =
        ConstantOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), value);
    return type.getRank() == 0
               ? scalar
               : BroadcastOp::create(builder, loc, type, scalar, ArrayRef<int64_t>());
  }
  Value add(Value a, Value b) { return AddOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return SubOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return MulOp::create(builder, loc, a, b); }

  OpBuilder &builder;
  Location loc;
  RankedTensorType type;
};

} // namespace

/// Values that are evenly distributed on [0, 1), multiples of 2^-24. Draws of other numbers are
/// independent.
Value NormalBuilder::uniform(Value key, StringRef name, int draw, const ShardPlace &place) {
  auto number = int64_t(uint32_t(fnv1a((name + ".sample_noise." + Twine(draw)).str())));
  const bool isScalar = type.getRank() == 0;
  SmallVector<int64_t> local(type.getShape()), shape(place.shape);
  ArrayAttr sharding = place.sharding;
  if (isScalar) {
    local = shape = {1};
    sharding = builder.getStrArrayAttr({""});
  }
  Value numbers = dist::RandomUniformOp::create(builder, loc,
                                                RankedTensorType::get(local, builder.getF32Type()),
                                                key, number, ArrayRef<int64_t>(shape), sharding);
  if (!type.getElementType().isF32())
    numbers = ConvertOp::create(builder, loc, numbers, type.getElementType());
  return isScalar ? Value(ReshapeOp::create(builder, loc, type, numbers)) : numbers;
}

/// cos(2 pi t) for t in [-1/2, 1/2], to 1e-11 where types are exact enough: the series of the
/// cosine of a quarter of the angle, and cos(2 x) = 2 cos(x)^2 - 1 twice.
Value NormalBuilder::cosineOfTurns(Value turns) {
  constexpr int kTerms = 7;
  const double scale = std::numbers::pi / 2;
  Value square = mul(turns, turns);
  Value cosine;
  for (int term = kTerms - 1; term >= 0; --term) {
    double coefficient =
        (term % 2 == 0 ? 1 : -1) * std::pow(scale, 2 * term) / std::tgamma(2.0 * term + 1);
    cosine = cosine ? add(mul(cosine, square), constant(coefficient)) : constant(coefficient);
  }
  for (int doubled = 0; doubled < 2; ++doubled)
    cosine = sub(mul(constant(2), mul(cosine, cosine)), constant(1));
  return cosine;
}

Value dtc::drawNormal(OpBuilder &builder, Location loc, RankedTensorType type, Value key,
                      StringRef name, const ShardPlace &place) {
  NormalBuilder build(builder, loc, type);
  // On (0, 1], with 48 random bits, so that the tail of the distribution is not cut at 5.8.
  Value coarse = build.sub(build.constant(1), build.uniform(key, name, 0, place));
  Value fine = build.mul(build.constant(std::ldexp(1, -24)), build.uniform(key, name, 1, place));
  Value logarithm = LogOp::create(builder, loc, build.sub(coarse, fine));
  Value radius = SqrtOp::create(builder, loc, build.mul(build.constant(-2), logarithm));
  // Half a turn does not change the distribution.
  Value turns = build.sub(build.uniform(key, name, 2, place), build.constant(0.5));
  return build.mul(radius, build.cosineOfTurns(turns));
}
