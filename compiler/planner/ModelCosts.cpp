//===- ModelCosts.cpp - Costs of the sections of a model ------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "compiler/planner/ModelCosts.h"

#include "compiler/analysis/ZeroSplit.h"

#include "llvm/ADT/STLExtras.h"

#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace dtc;

int64_t dtc::usedDevices(const cluster::Cluster &cluster, int64_t asked) {
  return asked > 0 ? asked : countDevices(cluster);
}

std::vector<const cluster::NodeKind *> dtc::kindsOfNodes(const cluster::Cluster &cluster,
                                                         int64_t devices) {
  std::vector<const cluster::NodeKind *> kinds;
  for (const UsedNodes &used : findUsedNodes(cluster, usedDevices(cluster, devices)))
    if (!llvm::is_contained(kinds, used.node))
      kinds.push_back(used.node);
  return kinds;
}

/// A parameter as ZeRO finds it; axes that split it are added to the mesh.
static ZeroTensor zeroTensor(const ParameterKind &kind, LinkedMesh &mesh, double weight) {
  ZeroTensor tensor{SmallVector<int64_t>(ArrayRef(kind.shape)),
                    Layout::replicated(int64_t(kind.shape.size())), weight};
  for (auto [dim, shards] : llvm::enumerate(kind.shards))
    if (shards > 1) {
      tensor.layout.dims[dim] = {unsigned(mesh.axes.size())};
      mesh.axes.push_back({"split", shards});
    }
  return tensor;
}

const SectionCost::Rest &SectionCost::restOf(int64_t devices) const {
  auto [it, fresh] = rests.try_emplace(devices);
  if (!fresh || devices == 1)
    return it->second;
  auto add = [](ParameterBytes &bytes, const ParameterKind &kind, double times) {
    bytes.parameters += times * kind.parameterBytes;
    bytes.states += times * kind.stateBytes;
    bytes.gradients += times * kind.gradientBytes;
  };
  LinkedMesh mesh;
  mesh.axes.push_back({"zero", devices});
  AxisList axes = {0};
  SmallVector<ZeroTensor> tensors;
  for (const auto &[kind, count] : parameters)
    tensors.push_back(zeroTensor(
        kind, mesh, double(count) * (kind.parameterBytes + kind.stateBytes + kind.gradientBytes)));
  if (std::optional<ZeroCut> cut = findZeroCut(mesh, tensors, axes))
    applyZeroCut(*cut, mesh, axes);
  for (const auto &[entry, tensor] : llvm::zip_equal(parameters, tensors)) {
    const auto &[kind, count] = entry;
    std::optional<Layout> split = splitForZero(mesh, tensor.shape, tensor.layout, axes,
                                               SmallVector<bool>(tensor.shape.size(), true));
    // The part of it on each device.
    double share = split ? double(localElements(mesh, tensor.shape, *split)) /
                               double(localElements(mesh, tensor.shape, tensor.layout))
                         : 1;
    add(it->second.beyond, kind, double(count) * (share - 1 / double(devices)));
    if (share == 1)
      add(it->second.whole, kind, double(count));
  }
  return it->second;
}

ParameterBytes SectionCost::underZero(int64_t devices) const {
  const ParameterBytes &beyond = restOf(devices).beyond;
  auto n = double(devices);
  return {parameterBytes / n + beyond.parameters, stateBytes / n + beyond.states,
          gradientBytes / n + beyond.gradients};
}

const SectionCost::Collectives &SectionCost::collectivesOf(int64_t bucketBytes) const {
  auto [it, fresh] = collectives.try_emplace(bucketBytes);
  if (!fresh)
    return it->second;
  const double bucket = std::max(double(bucketBytes), 1.0);
  auto countOf = [&](double ParameterKind::*field, double all) {
    double count = 0;
    for (const auto &[kind, number] : parameters)
      if (kind.*field >= bucket) {
        count += double(number);
        all -= double(number) * kind.*field;
      }
    return count + std::max(0.0, all) / bucket;
  };
  it->second = {countOf(&ParameterKind::parameterBytes, parameterBytes),
                countOf(&ParameterKind::gradientBytes, gradientBytes)};
  return it->second;
}

ModelCosts dtc::boundFewerSamples(ModelCosts costs, double share) {
  constexpr double kSampleError = 0.05;
  for (SectionCost *part : {&costs.before, &costs.layer, &costs.after, &costs.tied}) {
    part->forward *= share * (1 - kSampleError);
    part->backward *= share * (1 - kSampleError);
    for (double SectionCost::*bytes :
         {&SectionCost::keptBytes, &SectionCost::inputBytes, &SectionCost::transientBytes})
      part->*bytes *= share;
  }
  costs.boundaryBytes *= share;
  return costs;
}

double SectionCost::largestParameterBytes(int64_t count) const {
  std::vector<double> bytes;
  for (const auto &[kind, number] : parameters)
    bytes.insert(bytes.end(), size_t(std::min(number, count)), kind.parameterBytes);
  llvm::sort(bytes, std::greater<>());
  bytes.resize(std::min(bytes.size(), size_t(count)));
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}
