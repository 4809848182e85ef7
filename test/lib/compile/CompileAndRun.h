//===- CompileAndRun.h - Programs from text to tensors --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_COMPILE_COMPILEANDRUN_H
#define DTC_TEST_LIB_COMPILE_COMPILEANDRUN_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/import/ImportModel.h"
#include "runtime/executor/Session.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringRef.h"

#include <cmath>
#include <memory>
#include <string>

namespace dtc::test {

/// A context that has all of dtc's dialects and collects diagnostics.
class Compiler {
public:
  Compiler();
  ~Compiler();
  mlir::MLIRContext &context() { return *mlirContext; }
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &text);
  /// Imports a Hugging Face configuration file.
  mlir::OwningOpRef<mlir::ModuleOp> import(const std::string &configPath, int64_t batch,
                                           int64_t seq, ImportOptions options = {});
  /// Imports the text of a configuration, compiles it and opens a session on the CPU backend; null,
  /// with diagnostics(), if one of these fails.
  std::unique_ptr<runtime::Session> importAndOpen(const std::string &config, int64_t batch,
                                                  int64_t seq, const CompileOptions &options,
                                                  ImportOptions import = {}, int64_t batches = 1);
  /// Compiles a copy of the module and opens a session on the CPU backend; null, with
  /// diagnostics(), if that fails. A step of it has `batches` batches.
  std::unique_ptr<runtime::Session> open(mlir::ModuleOp module, const CompileOptions &options,
                                         int threadsPerDevice = 1, int64_t batches = 1);
  /// As importAndOpen(), but opens nothing: for plans of more memory than a test should take.
  std::shared_ptr<const plan::Plan> importAndCompile(const std::string &config, int64_t batch,
                                                     int64_t seq, const CompileOptions &options);
  const std::string &diagnostics() const { return messages; }
  /// Imports the text of a configuration; `path` is its file, for messages.
  mlir::OwningOpRef<mlir::ModuleOp> importText(llvm::StringRef config, const std::string &path,
                                               int64_t batch, int64_t seq,
                                               ImportOptions options = {});
  /// The plan of a copy of the module; null, with diagnostics(), if it does not compile.
  std::shared_ptr<plan::Plan> compileCopy(mlir::ModuleOp module, const CompileOptions &options);

private:
  std::string messages;
  std::unique_ptr<mlir::MLIRContext> mlirContext;
};

/// Makes f64 of all tensors of f32 in a model, so that a real error stands out from rounding.
void toDouble(mlir::ModuleOp module);

/// "dp=2,tp=2,pp=2 m=2" -> options with that mesh and that many microbatches. There may follow, in
/// any order, "zero=3", "sp" (sequence-parallel), "accumulate", "shard:batch=dp+tp", "bucket=4096"
/// (bytes), "recompute=full", "dtype=bf16", "grads=bf16" (their type while they are summed),
/// "optimizer=lion" and, of a pipeline, "schedule=zb-v", "chunks=2" and "stages=h.0|h.1-h.3"
/// (without spaces). A strategy that does not parse ends the program.
CompileOptions strategy(const std::string &text);

/// The product of the mesh's axes, and the size of one, 1 if it is not there.
int64_t devicesOf(const CompileOptions &options);
int64_t axisSize(const CompileOptions &options, llvm::StringRef axis);

/// max |a - b| / max(|a|, floor) in the sense of the whole tensor: the largest difference over the
/// largest magnitude.
double relativeDifference(const HostTensor &a, const HostTensor &b, double floor = 1e-8);

/// Element `index` of a tensor.
inline double element(const HostTensor &tensor, int64_t index = 0) {
  return elementAt(tensor, index);
}

/// Float tensors uniform in [-1, 1), integer ones in [0, limit), from `seed` and `name` alone.
HostTensor randomTensor(const TensorType &type, uint64_t seed, const std::string &name,
                        int64_t limit = 2);

/// Sets every data input of the session to random values.
MaybeError setRandomInputs(runtime::Session &session, uint64_t seed);

} // namespace dtc::test

#endif // DTC_TEST_LIB_COMPILE_COMPILEANDRUN_H
