//===- Launch.h - Launches of kernels ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// The arguments of a launch are copied as bytes, as CUDA does it. Of each kernel only the call with
// its arguments is made from a template: the backend has hundreds of kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_LAUNCH_H
#define DTC_TEST_STANDIN_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace dtc::standin {

/// An argument of a kernel as its launch gives it.
struct LaunchArgument {
  const void *value;
  size_t bytes;
  bool isPointer;
};

/// A kernel with its arguments and the shape of its grid.
struct Launch {
  /// Address of the kernel, from which its name is found.
  const void *kernel = nullptr;
  dim3 grid, block;
  /// Bytes of shared memory beside the kernel's variables.
  size_t sharedBytes = 0;
  /// Calls the kernel with the arguments that lie at these addresses.
  void (*call)(const void *kernel, void *const *arguments) = nullptr;
  std::vector<void *> arguments;
  /// The memory of the arguments.
  std::shared_ptr<std::max_align_t[]> memory;
  /// The arguments that are pointers.
  std::vector<const void *> pointers;

  /// Executes the thread that the variables threadIdx and blockIdx name.
  void thread() const { call(kernel, arguments.data()); }
};

/// Checks the shape and the pointers, copies the arguments and enqueues.
cudaError_t enqueueLaunch(const cudaLaunchConfig_t *config, const void *kernel,
                          void (*call)(const void *kernel, void *const *arguments),
                          std::initializer_list<LaunchArgument> arguments);

template <typename... Parameters, size_t... I>
void callKernel(void (*kernel)(Parameters...), void *const *arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_cvref_t<Parameters> *>(arguments[I])...);
}

template <typename... Parameters>
cudaError_t launch(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                   const std::remove_cvref_t<Parameters> &...arguments) {
  static_assert((true && ... && std::is_trivially_copyable_v<std::remove_cvref_t<Parameters>>));
  static_assert((true && ... && (alignof(Parameters) <= alignof(std::max_align_t))));
  auto call = [](const void *address, void *const *at) {
    callKernel(reinterpret_cast<void (*)(Parameters...)>(const_cast<void *>(address)), at,
               std::index_sequence_for<Parameters...>());
  };
  return enqueueLaunch(config, reinterpret_cast<const void *>(kernel), call,
                       {{&arguments, sizeof(arguments), std::is_pointer_v<Parameters>}...});
}

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_LAUNCH_H
