//===- SimulationPage.cpp - HTML reports of simulations -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/SimulationPage.h"

#include "plan/PlanTypes.h"
#include "report/html/PageSections.h"
#include "report/html/PageStyle.h"
#include "support/AtomicFile.h"

#include <filesystem>
#include <fmt/format.h>
#include <system_error>

namespace dtc {

Expected<std::string> simulationToHtml(const plan::Plan &plan, const cluster::Cluster &cluster,
                                       const Simulation &simulation,
                                       const SimulationPageOptions &options) {
  Expected<Topology> topology = Topology::create(cluster, meshOf(plan));
  if (!topology)
    return topology.error();
  PageInput input{plan, *topology, simulation, options};
  HtmlWriter page;
  page.open("html", {{"lang", "en"}}).open("head");
  page.empty("meta", {{"charset", "utf-8"}});
  page.empty("meta", {{"name", "viewport"}, {"content", "width=device-width, initial-scale=1"}});
  page.element("title", fmt::format("{} on {}", simulation.model, simulation.cluster));
  page.open("style").constant(kPageStyle).constant(taskStyleRules()).close().close();
  page.open("body");
  addHeadline(page, input);
  page.open("main");
  addStrategy(page, input);
  addTopology(page, input);
  addStep(page, input);
  addTimes(page, input);
  addMemory(page, input);
  addCommunication(page, input);
  addAlternatives(page, input);
  addCosts(page, input);
  page.close();
  page.open("footer")
      .text(fmt::format("Simulated from the plan ({}, version {}) and the description of the "
                        "cluster; nothing here was measured on it.",
                        plan.producer(), plan.version()))
      .close();
  page.open("script").constant(kPageScript).close();
  page.close().close();
  return page.take();
}

MaybeError writePage(const std::string &folder, const std::string &page) {
  std::error_code failure;
  if (std::filesystem::exists(folder, failure) && !std::filesystem::is_directory(folder, failure))
    return Error{fmt::format("{}: is no folder; name one for the report's index.html", folder)};
  std::filesystem::create_directories(folder, failure);
  if (failure)
    return Error{fmt::format("{}: cannot make the folder: {}; name one that can be written", folder,
                             failure.message())};
  Expected<AtomicFile> file =
      AtomicFile::create((std::filesystem::path(folder) / kPageFileName).string());
  if (!file)
    return file.error();
  if (MaybeError error = file->write(page))
    return error;
  return file->commit();
}

} // namespace dtc
