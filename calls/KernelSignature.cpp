//===- KernelSignature.cpp - A kernel call as the plan states it ----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "calls/KernelSignature.h"

#include "plan/PlanTypes.h"
#include "plan/plan.pb.h"

namespace dtc {

static AttributeValue toAttributeValue(const plan::Attribute &attribute) {
  switch (attribute.value_case()) {
  case plan::Attribute::kI:
    return attribute.i();
  case plan::Attribute::kF:
    return attribute.f();
  case plan::Attribute::kS:
    return attribute.s();
  case plan::Attribute::kB:
    return attribute.b();
  case plan::Attribute::kInts:
    return toVector(attribute.ints().values());
  case plan::Attribute::kStrings:
    return toVector(attribute.strings().values());
  case plan::Attribute::kData:
    return RawBytes{attribute.data()};
  case plan::Attribute::VALUE_NOT_SET:
    break;
  }
  return int64_t{0};
}

KernelSignature signatureOf(const plan::Program &program, const plan::KernelCall &call,
                            std::span<const AxisCoordinate> axes) {
  KernelSignature signature{call.kernel(), {}, {}, {}, {axes.begin(), axes.end()}};
  auto typeOfBuffer = [&](uint32_t buffer) {
    return typeOf(program.buffers(static_cast<int>(buffer)));
  };
  for (uint32_t buffer : call.inputs())
    signature.inputs.push_back(typeOfBuffer(buffer));
  for (uint32_t buffer : call.outputs())
    signature.outputs.push_back(typeOfBuffer(buffer));
  for (const auto &[name, attribute] : call.attributes())
    signature.attributes.emplace(name, toAttributeValue(attribute));
  return signature;
}

} // namespace dtc
