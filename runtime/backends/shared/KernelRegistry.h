//===- KernelRegistry.h - The kernels of a backend by name ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_SHARED_KERNELREGISTRY_H
#define DTC_RUNTIME_BACKENDS_SHARED_KERNELREGISTRY_H

#include "calls/SignatureChecker.h"

#include <initializer_list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtc::runtime {

/// A row of docs/kernels.md, of a backend whose prepared calls are `K`s. `prepare` is called with
/// operands whose element counts and byte sizes fit an int64_t; it checks all else.
template <typename K> struct RegisteredKernel {
  const char *name;
  Expected<std::unique_ptr<K>> (*prepare)(const KernelSignature &signature);
};

/// Prepares a call by `make`, from what `check` finds in its signature: a row has
/// prepareBy<check, make>, whose `K` is that of the table.
template <auto check, auto make, typename K>
Expected<std::unique_ptr<K>> prepareBy(const KernelSignature &signature) {
  auto call = check(signature);
  if (!call)
    return call.error();
  return make(std::move(*call));
}

template <typename K> class KernelRegistry {
public:
  KernelRegistry(std::initializer_list<std::span<const RegisteredKernel<K>>> families) {
    for (std::span<const RegisteredKernel<K>> family : families)
      for (const RegisteredKernel<K> &kernel : family)
        kernels.emplace(kernel.name, kernel.prepare);
  }

  /// `unknown` is the error where there is no such kernel.
  Expected<std::unique_ptr<K>> prepare(const KernelSignature &signature,
                                       const Error &unknown) const {
    auto kernel = kernels.find(signature.kernel);
    if (kernel == kernels.end())
      return unknown;
    if (MaybeError error = checkOperandSizes(signature))
      return *error;
    return kernel->second(signature);
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto &[name, prepare] : kernels)
      names.emplace_back(name);
    return names;
  }

private:
  std::map<std::string_view, decltype(RegisteredKernel<K>::prepare)> kernels;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_BACKENDS_SHARED_KERNELREGISTRY_H
