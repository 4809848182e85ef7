//===- Elastic.cpp - Plans for fewer devices -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "tools/dtc-run/Elastic.h"

#include "plan/PlanReader.h"
#include "plan/PlanTypes.h"
#include "runtime/data/DataSource.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace dtc {

using namespace dtc;
using namespace dtc::runtime;

/// "tokens i32[8, 16]": the same for all plans of a run.
static std::string batchOf(const plan::Plan &plan) {
  std::set<std::string> inputs;
  for (const DataInput &input : dataInputsOf(plan))
    inputs.insert(fmt::format("{} {}", input.name, input.type.str()));
  return fmt::format("{}", fmt::join(inputs, ", "));
}

Expected<std::vector<ElasticPlan>> findElasticPlans(const std::string &folder,
                                                    const std::string &planPath) {
  Expected<std::shared_ptr<const plan::Plan>> first = readPlan(planPath);
  if (!first)
    return first.error();
  int64_t devices = meshOf(**first).numDevices();
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  if (error)
    return Error{fmt::format("--elastic: {}: {}; expected a folder with plans for fewer devices",
                             folder, error.message())};
  std::vector<ElasticPlan> plans;
  for (const std::filesystem::directory_entry &entry : entries) {
    if (entry.path().extension() != ".plan")
      continue;
    Expected<std::shared_ptr<const plan::Plan>> plan = readPlan(entry.path());
    if (!plan)
      return plan.error().inContext("--elastic");
    if (batchOf(**plan) != batchOf(**first))
      return Error{fmt::format("--elastic: {} takes {} in a step, but {} takes {}; make all of "
                               "the same --batch and --seq",
                               entry.path().string(), batchOf(**plan), planPath, batchOf(**first))};
    if (int64_t count = meshOf(**plan).numDevices(); count < devices)
      plans.push_back({entry.path(), count});
  }
  if (plans.empty())
    return Error{
        fmt::format("--elastic: {} has no plan (*.plan) for fewer devices than the {} of {}",
                    folder, devices, planPath)};
  std::ranges::sort(plans, [](const ElasticPlan &a, const ElasticPlan &b) {
    return a.devices != b.devices ? a.devices > b.devices : a.path < b.path;
  });
  return plans;
}

std::string listDevices(const std::vector<ElasticPlan> &plans) {
  std::vector<int64_t> numbers;
  for (const ElasticPlan &plan : plans)
    numbers.push_back(plan.devices);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

std::optional<ElasticPlan> planFor(const std::vector<ElasticPlan> &plans, int64_t devices) {
  auto found =
      std::ranges::find_if(plans, [&](const ElasticPlan &plan) { return plan.devices <= devices; });
  return found == plans.end() ? std::nullopt : std::optional(*found);
}

} // namespace dtc
