//===- ClientsFile.cpp - The clients of a run ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ClientsFile.h"

#include "runtime/data/DataFiles.h"
#include "runtime/train/clients.pb.h"
#include "simulator/cluster/ClusterText.h"
#include "support/ReadText.h"

#include <filesystem>
#include <fmt/format.h>
#include <set>

namespace dtc::runtime {

static Expected<clients::Clients> parse(const std::string &path) {
  Expected<std::string> text = readText(path);
  if (!text)
    return text.error();
  clients::Clients found;
  if (MaybeError error = parseMessageText(*text, "list of clients (docs/training.md)", found))
    return error->inContext(path);
  return found;
}

static Expected<ClientData> check(const clients::Client &client,
                                  const std::filesystem::path &folder) {
  if (client.data().empty())
    return Error{"has no data; name its files by data"};
  if (client.has_samples() && client.samples() <= 0)
    return Error{fmt::format("its samples are {}, expected more than 0, or none to count them",
                             client.samples())};
  std::vector<std::string> patterns;
  for (const std::string &pattern : client.data())
    patterns.push_back((folder / pattern).string());
  Expected<std::vector<std::string>> paths = findDataFiles(patterns);
  if (!paths)
    return paths.error();
  ClientData data{client.name(), std::move(*paths)};
  if (client.has_samples())
    data.samples = client.samples();
  return data;
}

Expected<std::vector<ClientData>> readClients(const std::string &path, size_t replicas) {
  Expected<clients::Clients> file = parse(path);
  if (!file)
    return file.error();
  std::vector<ClientData> result;
  std::set<std::string> names;
  std::filesystem::path folder = std::filesystem::path(path).parent_path();
  for (const clients::Client &client : file->clients()) {
    if (client.name().empty())
      return Error{fmt::format("{}: client {} has no name; give each a name of its own", path,
                               result.size() + 1)};
    if (!names.insert(client.name()).second)
      return Error{fmt::format("{}: two clients have the name \"{}\"; give each a name of its own",
                               path, client.name())};
    Expected<ClientData> checked = check(client, folder);
    if (!checked)
      return checked.error().inContext(fmt::format("{}: client \"{}\"", path, client.name()));
    result.push_back(std::move(*checked));
  }
  if (result.size() < replicas)
    return Error{fmt::format("{}: has {} client{}, but the plan has {} replicas, each of which "
                             "trains for another client; name more clients, or compile for fewer "
                             "devices along the outer axis",
                             path, result.size(), result.size() == 1 ? "" : "s", replicas)};
  return result;
}

} // namespace dtc::runtime
