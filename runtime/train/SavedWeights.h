//===- SavedWeights.h - Writing parameters --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_TRAIN_SAVEDWEIGHTS_H
#define DTC_RUNTIME_TRAIN_SAVEDWEIGHTS_H

#include "plan/PlanFileTensors.h"
#include "runtime/data/Safetensors.h"
#include "runtime/executor/Session.h"
#include "support/AtomicFile.h"
#include "support/Error.h"

#include <map>
#include <optional>
#include <string>

namespace dtc::runtime {

/// The master weights of the parameters that have them, by the parameter's name.
std::map<std::string, const plan::State *> mastersOf(const plan::Plan &plan);

enum class SavedContent {
  All,
  Adapters, ///< these alone
  Merged    ///< all but adapters, which are added to the weights that they belong to
};

/// The contents of a file of weights: every parameter of a plan, under its own name and with its
/// file_shape, or with the others that are parts of one tensor as that; the master weights where it
/// has them.
class SavedWeights {
public:
  /// The plan must stay. Of merged weights checkMerging() has no error.
  explicit SavedWeights(const plan::Plan &plan, SavedContent content = SavedContent::All);

  /// Why a plan's weights cannot be merged.
  static MaybeError checkMerging(const plan::Plan &plan);

  /// The tensors of the file.
  const std::map<std::string, TensorType> &tensorTypes() const { return types; }
  /// The value of one of them in a session of the plan.
  Expected<HostTensor> read(const Session &session, const std::string &name) const {
    return valueOf(session, name);
  }

  /// The size of the file.
  uint64_t numBytes() const { return writer.numBytes(); }
  /// Writes the values of a session of the plan, and does not commit the file.
  MaybeError write(const Session &session, AtomicFile &file) const;
  /// Takes part in write() of another process.
  MaybeError gather(const Session &session) const;
  /// The first value that is not finite: "tensor \"w\" has nan at element 3"; nullopt if there is
  /// none.
  Expected<std::optional<std::string>> findNonfinite(const Session &session) const;

private:
  const plan::State &valuesOf(const plan::State &parameter) const;
  TensorType typeOf(const FileTensor &tensor) const;
  std::map<std::string, TensorType> typesOf(SavedContent content) const;
  /// The tensor of the plan's parameters, and that of the file.
  Expected<HostTensor> parameterOf(const Session &session, const std::string &name) const;
  /// A tensor of a stack.
  Expected<HostTensor> elementOf(const Session &session, const FileTensor &tensor) const;
  Expected<HostTensor> valueOf(const Session &session, const std::string &name) const;
  void forgetStacks() const;

  const plan::Plan *plan;
  SavedContent content;
  std::map<std::string, const plan::State *> masters; // by parameter
  std::map<std::string, FileTensor> tensors;          // of the plan
  std::map<std::string, TensorType> types;            // of the file
  SafetensorsWriter writer;
  /// The stacks of one layer: each is gathered once for all of its tensors, which in the order of
  /// their names take turns with those of the layer's other stacks.
  mutable std::map<std::string, HostTensor> stacks; // by parameter
  mutable std::string layerOfStacks;
};

/// Writes a file of weights whole or not at all.
MaybeError saveWeights(const Session &session, const std::string &path,
                       SavedContent content = SavedContent::All);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_TRAIN_SAVEDWEIGHTS_H
