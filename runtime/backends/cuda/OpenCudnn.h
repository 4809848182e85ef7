//===- OpenCudnn.h - cuDNN, loaded at run time ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_BACKENDS_CUDA_OPENCUDNN_H
#define DTC_RUNTIME_BACKENDS_CUDA_OPENCUDNN_H

#include "support/Error.h"

#include <string>

namespace dtc::runtime::cuda {

/// Loads the library, whose functions may be called from then on, and gives its path. The error
/// says which file was looked for and where, or which function it lacks.
Expected<std::string> openCudnn();

} // namespace dtc::runtime::cuda

#endif // DTC_RUNTIME_BACKENDS_CUDA_OPENCUDNN_H
