//===- ClusterReader.cpp - Clusters in files ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "simulator/cluster/ClusterReader.h"

#include "simulator/cluster/ClusterText.h"
#include "support/Format.h"
#include "support/MappedFile.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc {

/// Tables of all kernels and collectives take some hundred kilobytes.
static constexpr size_t kMaxClusterFileBytes = size_t{16} << 20;

Expected<cluster::Cluster> parseCluster(const std::string &text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos)
    return Error{"the text is empty; expected a cluster (docs/clusters.md)"};
  if (text.size() > kMaxClusterFileBytes)
    return Error{fmt::format("the text has {}, the largest cluster that is read has {}",
                             formatBytes(text.size()), formatBytes(kMaxClusterFileBytes))};
  Expected<cluster::Cluster> cluster =
      text[first] == '{' ? parseClusterJson(text) : parseClusterText(text);
  if (!cluster)
    return cluster;
  if (MaybeError error = checkCluster(*cluster))
    return *error;
  return cluster;
}

Expected<cluster::Cluster> readCluster(const std::string &path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  std::string text(reinterpret_cast<const char *>(file->bytes().data()),
                   std::min(file->bytes().size(), kMaxClusterFileBytes + 1));
  Expected<cluster::Cluster> cluster = parseCluster(text);
  if (!cluster)
    return cluster.error().inContext(path);
  return cluster;
}

} // namespace dtc
