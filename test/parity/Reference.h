//===- Reference.h - Reference data of parity tests -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_PARITY_REFERENCE_H
#define DTC_TEST_PARITY_REFERENCE_H

#include "compiler/driver/PassPipeline.h"
#include "compiler/import/ImportModel.h"
#include "runtime/executor/Session.h"
#include "support/Tensor.h"

#include <nlohmann/json.hpp>

#include <string>
#include <vector>

namespace dtc::test {

/// The bound that the project guarantees, relative to a tensor's largest element.
inline constexpr double kTolerance = 1e-4;

/// A folder below test/parity/data: a model ("gpt2") or a case of one, which has other settings
/// ("gpt2_small/lion"). README.md there lists the files. Files that a case lacks are its model's.
class Reference {
public:
  explicit Reference(const std::string &name);

  /// Whether the folder has the file itself.
  bool hasOwn(const std::string &file) const;
  std::string path(const std::string &file) const;
  nlohmann::json json(const std::string &file) const;
  bool hasTensor(const std::string &file, const std::string &name) const;
  HostTensor tensor(const std::string &file, const std::string &name,
                    DType dtype = DType::F32) const;
  /// The tensor of a parameter in a file with the names and shapes of weights files.
  HostTensor tensor(const std::string &file, const plan::State &parameter,
                    DType dtype = DType::F32) const;

  /// The content of expected.json; empty where neither the case nor its model has one.
  nlohmann::json expected;

  /// The tokens of a sequence; 0 of models that read images.
  int64_t sequence() const;
  /// The options for the importer in expected.json, but for the sizes of the batch.
  ImportOptions importOptions() const;
  /// The strategy's options with what expected.json asks the compiler for.
  CompileOptions compileOptions(const std::string &strategy) const;

  /// Sets the parameters to those of the file; it has these and no others.
  void setWeights(runtime::Session &session, const std::string &file) const;
  /// Sets the inputs of samples to batch number `index`, from 0, of the file.
  void setBatch(runtime::Session &session, const std::string &file, int64_t index) const;

private:
  std::string folder, model;
};

/// The names of all references that have the file themselves, in order.
std::vector<std::string> findReferences(const std::string &file);

} // namespace dtc::test

#endif // DTC_TEST_PARITY_REFERENCE_H
