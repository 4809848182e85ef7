//===- Bindings.h - States, inputs and outputs of programs ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_EXECUTOR_BINDINGS_H
#define DTC_RUNTIME_EXECUTOR_BINDINGS_H

#include "plan/PlanTypes.h"
#include "runtime/executor/ShardRegion.h"
#include "support/Error.h"
#include "support/Mesh.h"
#include "support/Tensor.h"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>
#include <string>

namespace dtc::runtime {

/// The binding of that name among those of a program, or null.
template <typename Bindings> auto findByName(const Bindings &bindings, const std::string &name) {
  auto it = std::find_if(bindings.begin(), bindings.end(),
                         [&](const auto &binding) { return binding.name() == name; });
  return it == bindings.end() ? nullptr : &*it;
}

/// The part of a state, an input or an output that a device has.
template <typename T> ShardRegion regionOf(const Mesh &mesh, const T &binding, int64_t device) {
  return ShardRegion::of(mesh, binding.sharding(), toVector(binding.shape()), device);
}

/// `value` has the type and, which only its maker can get wrong, as many bytes as that needs.
inline MaybeError checkType(const char *what, const std::string &name, const HostTensor &value,
                            const TensorType &expected) {
  if (value.type != expected)
    return Error{
        fmt::format("{} \"{}\" is {}, found {}", what, name, expected.str(), value.type.str())};
  assert(value.bytes.size() == expected.numBytes() && "a tensor has the bytes of its type");
  return std::nullopt;
}

} // namespace dtc::runtime

#endif // DTC_RUNTIME_EXECUTOR_BINDINGS_H
