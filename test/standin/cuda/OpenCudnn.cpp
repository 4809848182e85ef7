//===- OpenCudnn.cpp - The stand-in's cuDNN for the backend ---------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// In place of the file of the same name in runtime/backends/cuda, which loads the library.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/OpenCudnn.h"

namespace dtc::runtime::cuda {

Expected<std::string> openCudnn() { return std::string("the stand-in"); }

} // namespace dtc::runtime::cuda
