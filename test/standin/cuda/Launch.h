//===- Launch.h - Launches of kernels ------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_LAUNCH_H
#define DTC_TEST_STANDIN_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace dtc::standin {

/// A kernel with its arguments and the shape of its grid.
struct Launch {
  /// Address of the kernel, from which its name is found.
  const void *kernel = nullptr;
  dim3 grid, block;
  /// Bytes of shared memory beside the kernel's variables.
  size_t sharedBytes = 0;
  /// Executes the thread that the variables threadIdx and blockIdx name.
  std::function<void()> thread;
  /// The arguments that are pointers.
  std::vector<const void *> pointers;
};

/// Checks the shape and the pointers and enqueues.
cudaError_t enqueueLaunch(const cudaLaunchConfig_t *config, Launch launch);

template <typename... Parameters>
cudaError_t launch(const cudaLaunchConfig_t *config, void (*kernel)(Parameters...),
                   std::tuple<Parameters...> arguments) {
  Launch launch;
  launch.kernel = reinterpret_cast<const void *>(kernel);
  std::apply(
      [&](const auto &...argument) {
        [[maybe_unused]] auto note = [&](const auto &value) {
          if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>)
            launch.pointers.push_back(
                const_cast<const void *>(static_cast<const volatile void *>(value)));
        };
        (note(argument), ...);
      },
      arguments);
  launch.thread = [kernel, arguments = std::move(arguments)] { std::apply(kernel, arguments); };
  return enqueueLaunch(config, std::move(launch));
}

} // namespace dtc::standin

#endif // DTC_TEST_STANDIN_CUDA_LAUNCH_H
