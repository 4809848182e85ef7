//===- mma.h - The stand-in's tensor cores -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_STANDIN_CUDA_INCLUDE_MMA_H
#define DTC_TEST_STANDIN_CUDA_INCLUDE_MMA_H

#include "test/standin/cuda/MatrixUnits.h"

#endif // DTC_TEST_STANDIN_CUDA_INCLUDE_MMA_H
