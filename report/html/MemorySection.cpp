//===- MemorySection.cpp - The memory of a step ---------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/MemoryTimeline.h"
#include "report/html/PageSections.h"
#include "support/Format.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>

namespace dtc {

namespace {

/// The curve of one stage.
class MemoryFigure {
public:
  MemoryFigure(const PageInput &input, size_t program)
      : input(input), program(program),
        memory(followMemory(input.plan, program, input.simulation.step.timeline,
                            input.simulation.stepSeconds, parts)),
        stage(input.simulation.stages[program]) {
    auto arena = static_cast<double>(std::max(stage.arenaBytes, memory.peak.total()));
    // The usable memory is drawn where that leaves the curve room.
    drawsLimit = stage.memoryBytes <= 2.5 * arena;
    highest = 1.08 * std::max({arena, drawsLimit ? stage.memoryBytes : 0, 1.0});
  }

  void write(HtmlWriter &page) const {
    page.openPicture(
        kPictureWidth, height + 34,
        fmt::format("Memory of {} over the step", stageName(input.simulation, program)),
        fmt::format("At most {} hold values that are needed", formatBytes(memory.peak.total())),
        "memory");
    constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double unit = 1;
    size_t power = 0;
    for (; highest >= 1024 * unit && power + 1 < std::size(units); ++power)
      unit *= 1024;
    for (double bytes : roundTicks(0, highest, unit, 6)) {
      page.empty("line", {{"class", "l"},
                          {"x1", left},
                          {"x2", left + width},
                          {"y1", yOf(bytes)},
                          {"y2", yOf(bytes)}});
      page.element("text", fmt::format("{:.4g} {}", bytes / unit, units[power]),
                   {{"class", "f s e"}, {"x", left - 10}, {"y", yOf(bytes) + 4}});
    }
    std::vector<double> below(parts, 0);
    for (size_t band = 0; band < kNumMemoryBands; ++band)
      writeBand(page, band, below);
    line(page, "bound", static_cast<double>(stage.arenaBytes),
         fmt::format("arena {}", formatBytes(stage.arenaBytes)));
    if (drawsLimit)
      line(page, "limit", stage.memoryBytes,
           fmt::format("usable {}", formatBytes(static_cast<uint64_t>(stage.memoryBytes))));
    double x = left + width * std::clamp(memory.peakSeconds / input.simulation.stepSeconds, 0., 1.);
    page.empty("circle", {{"class", "peak"},
                          {"cx", x},
                          {"cy", yOf(static_cast<double>(memory.peak.total()))},
                          {"r", 3.5},
                          {"data-bytes", memory.peak.total()}});
    addTimeAxis(page, 0, input.simulation.stepSeconds, left, width, height + 4);
    page.close();
  }

  /// A note about the parts that the figure does not show.
  std::string note() const {
    std::string text = fmt::format(
        "Most, {}, in task \"{}\"{}{}.", formatBytes(memory.peak.total()), memory.peakTask,
        input.simulation.microbatches > 1 ? fmt::format(" of microbatch {}", memory.peakMicrobatch)
                                          : "",
        memory.peakLocation.empty() ? "" : " at " + memory.peakLocation);
    if (!drawsLimit && stage.memoryBytes > 0)
      text += fmt::format(" The usable {} are far above the figure.",
                          formatBytes(static_cast<uint64_t>(stage.memoryBytes)));
    return text;
  }

private:
  static constexpr size_t parts = 500;
  static constexpr double left = 92, width = kPictureWidth - left - 12, height = 190, top = 14;

  double yOf(double bytes) const { return top + (height - top) * (1 - bytes / highest); }

  void line(HtmlWriter &page, const char *style, double bytes, const std::string &text) const {
    page.empty("line", {{"class", style},
                        {"x1", left},
                        {"x2", left + width},
                        {"y1", yOf(bytes)},
                        {"y2", yOf(bytes)}});
    page.element("text", text, {{"class", "s e"}, {"x", left + width}, {"y", yOf(bytes) - 4}});
  }

  /// The area of a band on top of those before it, whose heights are in `below`.
  void writeBand(HtmlWriter &page, size_t band, std::vector<double> &below) const {
    std::vector<double> above = below;
    bool isEmpty = true;
    for (size_t i = 0; i < parts; ++i) {
      above[i] += static_cast<double>(memory.parts[i][band]);
      isEmpty &= memory.parts[i][band] == 0;
    }
    if (isEmpty)
      return;
    std::string path;
    // Steps, along the upper edge and back along the lower one; a height that does not change has
    // no point.
    auto edge = [&](const std::vector<double> &heights, bool forward) {
      for (size_t k = 0; k < parts; ++k) {
        size_t i = forward ? k : parts - 1 - k;
        bool isFirst = k == 0;
        size_t before = forward ? i - 1 : i + 1;
        if (!isFirst && svgNumber(yOf(heights[i])) == svgNumber(yOf(heights[before])))
          continue;
        double x = left + width * static_cast<double>(forward ? i : i + 1) / parts;
        if (path.empty())
          path = fmt::format("M{} {}", svgNumber(x), svgNumber(yOf(heights[i])));
        else
          path += fmt::format("H{}V{}", svgNumber(x), svgNumber(yOf(heights[i])));
      }
      path += fmt::format("H{}", svgNumber(forward ? left + width : left));
    };
    edge(above, true);
    edge(below, false);
    page.open("path", {{"class", fmt::format("m{}", band)}, {"d", path + "Z"}});
    page.element("title", fmt::format("{}: {} at the fullest moment", memoryBandName(band),
                                      formatBytes(memory.peak[band])));
    page.close();
    below = std::move(above);
  }

  const PageInput &input;
  size_t program;
  MemoryTimeline memory;
  const StageSimulation &stage;
  double highest = 1;
  bool drawsLimit = false;
};

} // namespace

/// The stages to draw: all, or of many the first, the fullest, the last and some between them.
static std::vector<size_t> chooseStages(const Simulation &simulation) {
  constexpr size_t most = 6;
  size_t count = simulation.stages.size();
  std::vector<size_t> chosen;
  for (size_t i = 0; i < std::min(count, most); ++i)
    chosen.push_back(count <= most ? i : i * (count - 1) / (most - 1));
  auto fullest =
      std::max_element(simulation.stages.begin(), simulation.stages.end(),
                       [](const auto &a, const auto &b) { return a.arenaBytes < b.arenaBytes; });
  chosen.push_back(static_cast<size_t>(fullest - simulation.stages.begin()));
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

static void addPeaks(HtmlWriter &page, const Simulation &simulation) {
  openStageTable(page, simulation,
                 "The arena of a device at its fullest moment, as the compiler has planned it",
                 {"stage", "#parameters", "#masters", "#optimizer", "#gradients", "#activations",
                  "#other", "#arena", "#usable", "device"});
  for (size_t p = 0; p < simulation.stages.size(); ++p) {
    const StageSimulation &stage = simulation.stages[p];
    const PeakMemory &memory = stage.memory;
    page.open("tr").element("th", stageName(simulation, p), {{"scope", "row"}});
    for (uint64_t bytes :
         {memory.parameters, memory.masterWeights, memory.optimizerState, memory.gradients,
          memory.activations,
          memory.caches + memory.constants + memory.inputsAndOutputs + memory.other,
          stage.arenaBytes})
      page.number(formatBytes(bytes));
    page.number(formatBytes(static_cast<uint64_t>(std::clamp(stage.memoryBytes, 0.0, 1e19))));
    std::string kinds;
    for (const std::string &kind : stage.deviceKinds)
      kinds += (kinds.empty() ? "" : " and ") + kind;
    page.open("td").text(kinds);
    if (!stage.fits())
      page.element("span", ": does not fit", {{"class", "bad"}});
    page.close().close();
  }
  closeStageTable(page, simulation);
}

void addMemory(HtmlWriter &page, const PageInput &input) {
  const Simulation &simulation = input.simulation;
  openSection(page, "memory", "Memory");
  page.element("p",
               "The bytes of a device that hold values which are still needed, by what they are. "
               "The arena is what the plan sets aside; the dot is the fullest moment.");
  if (isDrawable(simulation)) {
    std::vector<LegendEntry> entries;
    for (size_t band = 0; band < kNumMemoryBands; ++band)
      entries.push_back({fmt::format("m{}", band), memoryBandName(band)});
    addLegend(page, entries);
    std::vector<size_t> drawn = chooseStages(simulation);
    for (size_t p : drawn) {
      MemoryFigure picture(input, p);
      page.element("h3", stageName(simulation, p));
      picture.write(page);
      page.element("p", picture.note(), {{"class", "note"}});
    }
    if (drawn.size() < simulation.stages.size())
      page.element(
          "p", fmt::format("{} of {} stages are drawn.", drawn.size(), simulation.stages.size()),
          {{"class", "note"}});
  }
  addPeaks(page, simulation);
  page.close();
}

} // namespace dtc
