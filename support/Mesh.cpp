//===- Mesh.cpp - Meshes of devices ---------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/Mesh.h"

#include <algorithm>
#include <cassert>

namespace dtc {

Mesh::Mesh(std::vector<MeshAxis> axes) : meshAxes(std::move(axes)), strides(meshAxes.size(), 0) {
  for (size_t i = meshAxes.size(); i-- > 0;) {
    if (meshAxes[i].temporal)
      continue;
    strides[i] = deviceCount;
    deviceCount *= meshAxes[i].size;
  }
}

const MeshAxis *Mesh::find(const std::string &name) const {
  auto it = std::find_if(meshAxes.begin(), meshAxes.end(),
                         [&](const MeshAxis &axis) { return axis.name == name; });
  return it == meshAxes.end() ? nullptr : &*it;
}

size_t Mesh::indexOf(const std::string &name) const {
  const MeshAxis *axis = find(name);
  assert(axis && "an axis of the mesh");
  return static_cast<size_t>(axis - meshAxes.data());
}

const MeshAxis *Mesh::pipelineAxis() const {
  auto it = std::find_if(meshAxes.begin(), meshAxes.end(),
                         [](const MeshAxis &axis) { return axis.pipeline; });
  return it == meshAxes.end() ? nullptr : &*it;
}

int64_t Mesh::programOf(int64_t device) const {
  const MeshAxis *axis = pipelineAxis();
  return axis ? blockIndex(device, {axis->name}) : 0;
}

std::vector<int64_t> Mesh::coordinates(int64_t device) const {
  std::vector<int64_t> result(meshAxes.size(), 0);
  for (size_t i = 0; i < meshAxes.size(); ++i)
    if (!meshAxes[i].temporal)
      result[i] = device / strides[i] % meshAxes[i].size;
  return result;
}

int64_t Mesh::groupSize(const std::vector<std::string> &axes) const {
  int64_t size = 1;
  for (const std::string &axis : axes)
    size *= meshAxes[indexOf(axis)].size;
  return size;
}

int64_t Mesh::blockIndex(int64_t device, const std::vector<std::string> &axes) const {
  std::vector<int64_t> position = coordinates(device);
  int64_t index = 0;
  for (const std::string &axis : axes) {
    size_t i = indexOf(axis);
    index = index * meshAxes[i].size + position[i];
  }
  return index;
}

ShardExtent Mesh::shardExtent(int64_t device, const std::vector<std::string> &axes,
                              int64_t size) const {
  std::vector<int64_t> position = coordinates(device);
  ShardExtent extent = ShardExtent::whole(size);
  for (const std::string &axis : axes) {
    size_t i = indexOf(axis);
    extent = extent.part(meshAxes[i].size, position[i]);
  }
  return extent;
}

std::vector<std::string> Mesh::axesInsideMicrobatches(const std::vector<std::string> &axes) const {
  auto isTemporal = [&](const std::string &axis) { return meshAxes[indexOf(axis)].temporal; };
  auto found = std::find_if(axes.begin(), axes.end(), isTemporal);
  return found == axes.end() ? std::vector<std::string>() : std::vector(found + 1, axes.end());
}

std::vector<int64_t> Mesh::group(int64_t device, const std::vector<std::string> &axes) const {
  std::vector<int64_t> position = coordinates(device);
  int64_t first = device;
  for (const std::string &axis : axes) {
    size_t i = indexOf(axis);
    first -= position[i] * strides[i];
  }
  std::vector<int64_t> members{first};
  for (const std::string &axis : axes) {
    size_t i = indexOf(axis);
    std::vector<int64_t> next;
    next.reserve(members.size() * static_cast<size_t>(meshAxes[i].size));
    for (int64_t member : members)
      for (int64_t c = 0; c < meshAxes[i].size; ++c)
        next.push_back(member + c * strides[i]);
    members = std::move(next);
  }
  return members;
}

int64_t Mesh::firstReplica(int64_t device, const std::vector<std::string> &axes) const {
  std::vector<int64_t> position = coordinates(device);
  int64_t first = 0;
  for (const std::string &axis : axes) {
    size_t i = indexOf(axis);
    first += position[i] * strides[i];
  }
  return first;
}

} // namespace dtc
