//===- Mesh.h - Meshes of devices -----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_MESH_H
#define DTC_SUPPORT_MESH_H

#include "support/ShardExtent.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace dtc {

/// One axis of the mesh. A temporal axis counts microbatches and has no devices. Devices with
/// different coordinates on the pipeline axis run different programs. There is at most one such
/// axis.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool temporal = false;
  bool pipeline = false;
};

/// The devices of a plan. They are numbered row-major over the spatial axes in the order listed.
/// Functions that take axis names expect names of the mesh.
class Mesh {
public:
  Mesh() = default;
  /// The names are distinct, the sizes at least 1, and their product fits an int64_t.
  explicit Mesh(std::vector<MeshAxis> axes);

  const std::vector<MeshAxis> &axes() const { return meshAxes; }
  int64_t numDevices() const { return deviceCount; }
  /// The axis of that name, or null.
  const MeshAxis *find(const std::string &name) const;
  /// The pipeline axis, or null.
  const MeshAxis *pipelineAxis() const;
  /// The device's coordinate on the pipeline axis, which is the number of its program; 0 without
  /// such an axis.
  int64_t programOf(int64_t device) const;
  /// The coordinate on each axis; 0 on the temporal one.
  std::vector<int64_t> coordinates(int64_t device) const;

  /// The number of devices of a group that spans `axes`.
  int64_t groupSize(const std::vector<std::string> &axes) const;
  /// The device's place among the blocks that `axes` count, row-major in the order given.
  int64_t blockIndex(int64_t device, const std::vector<std::string> &axes) const;
  /// The device's block of a dimension of `size` elements that `axes` split, the first coarsest.
  ShardExtent shardExtent(int64_t device, const std::vector<std::string> &axes, int64_t size) const;
  /// The axes after the temporal one, which split the part that a microbatch has; none without it.
  std::vector<std::string> axesInsideMicrobatches(const std::vector<std::string> &axes) const;
  /// The devices that differ from `device` only on `axes`, in the order of their blockIndex.
  std::vector<int64_t> group(int64_t device, const std::vector<std::string> &axes) const;
  /// The device with the same coordinates on `axes` and 0 on all others: among the devices that
  /// hold replicas of a tensor that is split over `axes`, the first.
  int64_t firstReplica(int64_t device, const std::vector<std::string> &axes) const;

private:
  size_t indexOf(const std::string &name) const;

  std::vector<MeshAxis> meshAxes;
  std::vector<int64_t> strides; // in devices; 0 for the temporal axis
  int64_t deviceCount = 1;
};

} // namespace dtc

#endif // DTC_SUPPORT_MESH_H
