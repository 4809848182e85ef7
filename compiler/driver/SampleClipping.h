//===- SampleClipping.h - The option --dp-sgd -----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_DRIVER_SAMPLECLIPPING_H
#define DTC_COMPILER_DRIVER_SAMPLECLIPPING_H

#include "compiler/driver/OptionTable.h"
#include "support/Error.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringRef.h"

#include <optional>

namespace dtc {

/// How the gradients of samples are clipped (Abadi et al. 2016, algorithm 1).
struct SampleClipping {
  double clip = 0;  ///< the largest norm of the gradient of a sample, above 0
  double noise = 0; ///< the standard deviation of the noise of their sum, in units of `clip`
};

/// Reads "clip=1.0,noise=1.1". The error names the expected text in place of the wrong part,
/// without the name of the option.
Expected<SampleClipping> parseSampleClipping(llvm::StringRef text);

/// The settings of options that are in order; none where samples are not clipped.
std::optional<SampleClipping> sampleClippingOf(const CompileOptions &options);

/// The error of options that a step which clips the gradients of samples cannot have.
MaybeError findSampleClippingConflict(const CompileOptions &options, OptionSpelling spelling,
                                      MeshSource source);

/// The microbatches of a step that clips the gradients of samples: with them each device has one
/// sample at a time. 1 where the model does not say what its batch is.
int64_t microbatchesOfSamples(mlir::ModuleOp model, const CompileOptions &options);

} // namespace dtc

#endif // DTC_COMPILER_DRIVER_SAMPLECLIPPING_H
