//===- Processes.cpp - The processes of a run ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/Processes.h"

#include "runtime/fabrics/local/LocalFabric.h"
#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/ProcessFabric.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>
#include <vector>

namespace dtc::runtime {

std::string hostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "an unknown host";
}

Expected<bool> Processes::any(bool holds) const {
  if (!areSeveral())
    return holds;
  Expected<int64_t> agreed = agree(*messages, ReductionKind::Max, holds ? 1 : 0);
  if (!agreed)
    return agreed.error();
  return *agreed != 0;
}

Expected<std::vector<double>> Processes::inFirst(double value) const {
  return areSeveral() ? gather(*messages, value)
                      : Expected<std::vector<double>>(std::vector{value});
}

Expected<std::string> Processes::ofFirst(std::string bytes) const {
  return areSeveral() ? broadcast(*messages, 0, std::move(bytes))
                      : Expected<std::string>(std::move(bytes));
}

Expected<std::vector<std::string>> Processes::all(const std::string &own) const {
  if (!areSeveral())
    return std::vector{own};
  std::vector<std::string> values;
  for (int64_t process = 0; process < count(); ++process) {
    Expected<std::string> value = broadcast(*messages, process, own);
    if (!value)
      return value.error();
    values.push_back(std::move(*value));
  }
  return values;
}

MaybeError Processes::inFirst(const std::function<MaybeError()> &work) const {
  if (!areSeveral())
    return work();
  MaybeError error = isFirst() ? work() : std::nullopt;
  Expected<std::string> outcome = ofFirst(error ? "x" + error->message : "");
  if (!outcome)
    return error ? *error : outcome.error();
  return outcome->empty() ? MaybeError() : MaybeError(Error{outcome->substr(1)});
}

Expected<std::string> Processes::differing(const std::string &value) const {
  Expected<std::vector<std::string>> values = all(value);
  if (!values)
    return values.error();
  Expected<std::vector<std::string>> hosts = all(hostName());
  if (!hosts)
    return hosts.error();
  std::vector<std::string> others;
  for (size_t process = 1; process < values->size(); ++process)
    if ((*values)[process] != values->front())
      others.push_back(fmt::format("process {} on {}", process, (*hosts)[process]));
  return fmt::format("{}", fmt::join(others, ", "));
}

Expected<std::shared_ptr<Fabric>> Processes::openFabric(const Mesh &mesh) const {
  return areSeveral() ? openProcessFabric(mesh, messages, sharing) : openLocalFabric(mesh);
}

void Processes::abort(const Error &error) const {
  if (areSeveral())
    messages->abort(error);
}

} // namespace dtc::runtime
