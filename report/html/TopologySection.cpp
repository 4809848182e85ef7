//===- TopologySection.cpp - Section on the devices and nodes -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "report/html/PageSections.h"
#include "support/LinkSpeed.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dtc {

namespace {

/// A node, one or more rows of devices in a box.
class NodeFigure {
public:
  NodeFigure(HtmlWriter &page, const PageInput &input) : page(page), input(input) {
    for (const MeshAxis &axis : input.topology.mesh().axes())
      if (!axis.temporal && axis.size > 1)
        ++lines;
    cellHeight = 24 + 16 * std::max(lines, 1);
  }

  /// The nodes to draw: the first ones, and the first of each further group.
  void write() {
    const Topology &topology = input.topology;
    std::vector<int64_t> firsts; // devices
    int64_t node = -1;
    const cluster::NodeKind *kind = nullptr;
    for (int64_t d = 0; d < topology.mesh().numDevices(); ++d) {
      if (topology.nodeOf(d) == node)
        continue;
      node = topology.nodeOf(d);
      if (firsts.size() < mostNodes || (&topology.nodeKindOf(d) != kind && firsts.size() < 12))
        firsts.push_back(d);
      kind = &topology.nodeKindOf(d);
    }
    double height = 0;
    for (int64_t first : firsts)
      height += heightOf(first) + gap;
    page.openPicture(
        kPictureWidth, height, "The devices of the mesh in their nodes",
        fmt::format("{} of {} nodes, each with its devices and their coordinates on the mesh",
                    firsts.size(), topology.numNodes()),
        "topology");
    double y = 0;
    for (int64_t first : firsts) {
      writeNode(first, y);
      y += heightOf(first) + gap;
    }
    page.close();
    if (auto left = topology.numNodes() - static_cast<int64_t>(firsts.size()); left > 0)
      page.element("p",
                   fmt::format("{} more nodes are not drawn; the devices go on through them in "
                               "the same order.",
                               withCommas(static_cast<double>(left))),
                   {{"class", "note"}});
  }

private:
  static constexpr size_t mostNodes = 4;
  static constexpr double gap = 12, label = 170, padding = 10, between = 8;
  static constexpr int64_t columns = 8, mostRows = 4;

  int64_t shownOf(int64_t first) const {
    return std::min(input.topology.nodeKindOf(first).devices(), columns * mostRows);
  }
  double heightOf(int64_t first) const {
    int64_t rows = (shownOf(first) + columns - 1) / columns;
    return 2 * padding + static_cast<double>(rows) * (cellHeight + between) - between;
  }

  void writeNode(int64_t first, double y) {
    const Topology &topology = input.topology;
    const cluster::NodeKind &node = topology.nodeKindOf(first);
    page.empty("rect", {{"class", "box"},
                        {"x", .5},
                        {"y", y + .5},
                        {"width", kPictureWidth - 1},
                        {"height", heightOf(first) - 1},
                        {"rx", 10}});
    auto line = [&](double dy, const char *style, const std::string &text) {
      page.element("text", shorten(text, 23), {{"class", style}, {"x", 16}, {"y", y + dy}});
    };
    line(26, "b", fmt::format("node {}", topology.nodeOf(first)));
    line(44, "f", node.name());
    line(61, "f", fmt::format("{} x {}", node.devices(), topology.deviceKindOf(first).name()));
    double width = (kPictureWidth - label - padding + between) / static_cast<double>(columns);
    for (int64_t i = 0; i < shownOf(first); ++i) {
      int64_t row = i / columns, column = i % columns;
      writeDevice(first, i, label + width * static_cast<double>(column),
                  y + padding + static_cast<double>(row) * (cellHeight + between), width - between);
    }
    if (int64_t more = node.devices() - shownOf(first); more > 0)
      line(78, "f", fmt::format("{} more not drawn", more));
  }

  void writeDevice(int64_t first, int64_t i, double x, double y, double width) {
    const Mesh &mesh = input.topology.mesh();
    int64_t device = first + i;
    bool isUsed = i < input.topology.devicesInNodeOf(first);
    std::string style = isUsed ? coordinateStyle(mesh.programOf(device)) : "free";
    page.empty("rect", {{"class", style},
                        {"x", x},
                        {"y", y},
                        {"width", width},
                        {"height", cellHeight},
                        {"rx", 6}});
    if (!isUsed) {
      page.element("text", "not used",
                   {{"class", "f s m"}, {"x", x + width / 2}, {"y", y + cellHeight / 2 + 4}});
      return;
    }
    page.element("text", fmt::format("device {}", device),
                 {{"class", "w ws"}, {"x", x + width / 2}, {"y", y + 16}});
    std::vector<int64_t> coordinates = mesh.coordinates(device);
    double below = y + 33;
    for (size_t a = 0; a < mesh.axes().size(); ++a) {
      const MeshAxis &axis = mesh.axes()[a];
      if (axis.temporal || axis.size == 1)
        continue;
      page.element("text", shorten(fmt::format("{}={}", axis.name, coordinates[a]), 15),
                   {{"class", "w b"}, {"x", x + width / 2}, {"y", below}});
      below += 16;
    }
  }

  /// Names come from files and may be longer than their box.
  static std::string shorten(std::string text, size_t most) {
    if (text.size() <= most)
      return text;
    size_t end = most - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80)
      --end; // not inside of a character
    text.resize(end);
    return text + "...";
  }

  HtmlWriter &page;
  const PageInput &input;
  int lines = 0;
  double cellHeight = 0;
};

/// The slowest of the groups over an axis.
GroupShape slowestOf(const Topology &topology, const plan::Axis &axis) {
  auto numPrograms = topology.mesh().pipelineAxis() ? topology.mesh().pipelineAxis()->size : 1;
  std::optional<GroupShape> slowest;
  auto take = [&](const GroupShape &shape) {
    if (!slowest || shape.nodes > slowest->nodes ||
        (shape.nodes == slowest->nodes && shape.linkBandwidth < slowest->linkBandwidth))
      slowest = shape;
  };
  if (axis.pipeline())
    for (int64_t p = 0; p + 1 < numPrograms; ++p)
      take(topology.slowestPair(p, p + 1));
  else
    for (int64_t p = 0; p < numPrograms; ++p)
      take(topology.slowestGroup(p, {axis.name()}));
  return slowest.value_or(GroupShape());
}

} // namespace

static std::string speedText(double bandwidth, double latency) {
  return fmt::format("{:.4g} GB/s, {:.3g} us", bandwidth / 1e9, latency * 1e6);
}

static void addAxes(HtmlWriter &page, const PageInput &input) {
  page.openTable("Axes of the mesh: where their groups lie, and the slowest group's speed in each "
                 "direction",
                 {"axis", "#size", "group", "inside a node", "between nodes"});
  for (const plan::Axis &axis : input.plan.axes()) {
    if (axis.temporal() || axis.size() == 1)
      continue;
    GroupShape shape = slowestOf(input.topology, axis);
    std::string name = axis.sub_axis_of().empty()
                           ? axis.name()
                           : fmt::format("{} (sub-axis of {})", axis.name(), axis.sub_axis_of());
    page.open("tr").element("th", name, {{"scope", "row"}}).number(std::to_string(axis.size()));
    std::string where =
        shape.nodes == 1 ? "inside a node"
                         : fmt::format("across {} nodes, {} in each", shape.nodes, shape.perNode);
    if (axis.pipeline())
      where = shape.nodes == 1 ? "neighbours in one node" : "neighbours in two nodes";
    page.element("td", where);
    page.element("td", shape.perNode > 1 || shape.nodes == 1
                           ? speedText(shape.linkBandwidth, shape.linkLatency)
                           : "-");
    page.element("td",
                 shape.nodes > 1
                     ? speedText(shape.networkBandwidth, shape.networkLatency) +
                           (shape.perNode > 1 ? fmt::format(", {} members", shape.perNode) : "")
                     : "-");
    page.close();
  }
  page.closeTable();
}

void addTopology(HtmlWriter &page, const PageInput &input) {
  openSection(page, "topology", "Devices");
  const Topology &topology = input.topology;
  int64_t all = countDevices(topology.cluster());
  page.element("p", fmt::format("The mesh takes {} of the {} devices of the cluster, in {} node{}. "
                                "Colours are coordinates on the pipeline axis.",
                                withCommas(static_cast<double>(topology.mesh().numDevices())),
                                withCommas(static_cast<double>(all)),
                                withCommas(static_cast<double>(topology.numNodes())),
                                topology.numNodes() == 1 ? "" : "s",
                                topology.mesh().pipelineAxis()
                                    ? " Colours are coordinates on the pipeline axis."
                                    : ""));
  NodeFigure(page, input).write();
  addAxes(page, input);
  page.close();
}

} // namespace dtc
