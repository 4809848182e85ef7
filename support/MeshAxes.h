//===- MeshAxes.h - The mesh axes of parallel training --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// One table of the names that --mesh gives axes a meaning by: what devices along an axis split. A
// mesh may have other axes as well; they split what --shard says.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_MESHAXES_H
#define DTC_SUPPORT_MESHAXES_H

#include <span>
#include <string_view>

namespace dtc {

inline constexpr const char *kPipelineAxis = "pp";
inline constexpr const char *kDataAxis = "dp";
/// A data axis inside a node, over which ZeRO splits.
inline constexpr const char *kShardedDataAxis = "fsdp";
/// Experts; for all else it is a data axis.
inline constexpr const char *kExpertAxis = "ep";
/// Positions of a sequence.
inline constexpr const char *kContextAxis = "cp";
inline constexpr const char *kTensorAxis = "tp";
/// The logical axis that kContextAxis splits.
inline constexpr const char *kSequenceAxisName = "seq";
/// The temporal axis, which --microbatches makes.
inline constexpr const char *kMicrobatchAxis = "micro";

struct MeshAxisInfo {
  std::string_view name;
  /// Its devices have different samples.
  bool splitsBatch = false;
  /// Its devices have different samples also inside experts.
  bool splitsBatchOfExperts = false;
  /// The logical axes that it splits unless --shard says otherwise (docs/model-ir.md).
  std::span<const char *const> splits = {};
};

/// All axes of devices, from the outermost of a cluster to the innermost, whose devices send each
/// other most.
std::span<const MeshAxisInfo> meshAxes();

/// The logical axes that tensor parallelism splits.
std::span<const char *const> tensorAxisNames();

/// Whether the devices along an axis have different samples.
bool splitsBatch(std::string_view axis);

} // namespace dtc

#endif // DTC_SUPPORT_MESHAXES_H
