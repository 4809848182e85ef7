//===- RepeatedLayers.h - Removal of repeated layers ----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_COMPILER_PLANNER_REPEATEDLAYERS_H
#define DTC_COMPILER_PLANNER_REPEATEDLAYERS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>

namespace dtc {

/// A model in which all layers but a few are taken out, because they repeat the others. Of layers
/// before the repeated ones that are unlike them, as the layers without experts that DeepSeek's
/// models begin with, it says nothing: they count as repeated ones.
struct ReducedModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string prefix;     ///< of the layers' names: "h."; empty where nothing is taken out
  int64_t layers = 0;     ///< that the model has
  int64_t keptLayers = 0; ///< that are left: numbers 0 to keptLayers - 1
};

/// Takes metrics out of a copy of the model, and all layers but `kept`, if it has more than these
/// and all of them, or all but at most an eighth of them at the beginning, are alike; those that
/// stay are numbered from 0. Layers are those that locations name (see LayerName), numbered from 0,
/// each in one piece; alike are those that are made of the same ops with the same attributes, but
/// for windows and rotary positions, on the same types, where a layer uses what the layer before it
/// makes in the same places as that uses what comes before it, and no other layer's values; their
/// parameters alike but for their names. What is outside of layers uses values of the last one
/// alone. Else the copy is whole.
ReducedModel removeRepeatedLayers(mlir::ModuleOp model, int64_t kept);

} // namespace dtc

#endif // DTC_COMPILER_PLANNER_REPEATEDLAYERS_H
