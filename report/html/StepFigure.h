//===- StepFigure.h - Figures of a step -----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_REPORT_HTML_STEPFIGURE_H
#define DTC_REPORT_HTML_STEPFIGURE_H

#include "report/html/PageSections.h"

#include <string>
#include <vector>

namespace dtc {

/// A part of a step that is drawn.
struct StepWindow {
  std::string what; ///< "The begin"; empty where it is the whole step
  double start = 0, end = 0;

  double seconds() const { return end - start; }
  bool shows(double from, double to) const { return to >= start && from <= end && to > from; }
};

/// Draws the tasks, the collectives and the transfers of a step, a row for each coordinate on the
/// pipeline axis. The size of an HTML report is limited: of a step with too many tasks and
/// transfers, its begin, a part of its middle and its end are drawn. Collectives that would be less
/// than a pixel apart are drawn as one, and none where these are too many still.
class StepFigure {
public:
  static constexpr size_t mostShapes = 6000;      ///< tasks and transfers
  static constexpr size_t mostCollectives = 4000; ///< after joining

  explicit StepFigure(const PageInput &input);

  const std::vector<StepWindow> &windows() const { return parts; }
  /// Whether the simulation kept their times.
  bool knowsCollectives() const;
  bool drawsCollectives() const { return hasCollectives; }
  void write(HtmlWriter &page, const StepWindow &window) const;

private:
  /// Collectives over the same axes that are drawn as one.
  struct Bar {
    double start = 0, end = 0;
    uint32_t axes = 0;
    size_t count = 0;
    size_t execution = 0;
    uint32_t instruction = 0;
  };

  void chooseWindows();
  std::vector<Bar> barsOf(const StepWindow &window, size_t program) const;
  void writeTask(HtmlWriter &page, const StepWindow &window, size_t program,
                 const TaskInterval &interval, const std::vector<uint32_t> &stages) const;
  void writeBar(HtmlWriter &page, const StepWindow &window, size_t program, const Bar &bar) const;
  void writeTransfers(HtmlWriter &page, const StepWindow &window) const;

  double xOf(const StepWindow &window, double time) const;
  double yOf(size_t program) const;
  double pixelSeconds(const StepWindow &window) const;
  bool isSmall() const;
  double taskHeight() const { return isSmall() ? 11 : 30; }
  double barHeight() const { return !hasCollectives ? 0 : isSmall() ? 4 : 9; }
  double rowHeight() const { return taskHeight() + barHeight() + (isSmall() ? 4 : 18); }
  double bottom() const { return yOf(timeline.programs.size()); }

  const PageInput &input;
  const Timeline &timeline;
  std::vector<StepWindow> parts;
  bool hasCollectives = false;
};

} // namespace dtc

#endif // DTC_REPORT_HTML_STEPFIGURE_H
