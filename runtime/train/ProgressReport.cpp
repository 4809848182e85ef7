//===- ProgressReport.cpp - Progress lines of a run -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ProgressReport.h"

#include "support/Format.h"
#include "support/Print.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace dtc::runtime {

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

ProgressReport::ProgressReport(std::FILE *out, int64_t totalSteps, int64_t logEvery,
                               std::string unit, int64_t firstStep, std::optional<bool> terminal)
    : out(out), totalSteps(totalSteps), firstStep(firstStep),
      logEvery(std::max<int64_t>(logEvery, 1)), unit(std::move(unit)) {
  int fd = fileno(out);
  isTerminal = terminal.value_or(fd >= 0 && isatty(fd));
}

/// The columns of the terminal; many if it does not say.
static size_t terminalWidth(std::FILE *out) {
  winsize size = {};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
    return SIZE_MAX;
  return size.ws_col;
}

static std::string formatRate(double rate) {
  if (rate >= 1e6)
    return fmt::format("{:.2f}M", rate / 1e6);
  if (rate >= 1e4)
    return fmt::format("{:.1f}k", rate / 1e3);
  return fmt::format("{:.0f}", rate);
}

std::string ProgressReport::lineFor(const StepMetrics &metrics) const {
  std::string line = fmt::format("step {}/{}", metrics.step, totalSteps);
  if (metrics.loss)
    line += fmt::format("  loss {:.6f}", *metrics.loss);
  if (metrics.gradNorm)
    line += fmt::format("  grad norm {:.4f}", *metrics.gradNorm);
  if (metrics.learningRate)
    line += fmt::format("  lr {:.2e}", *metrics.learningRate);
  if (metrics.lossScale)
    line += fmt::format("  loss scale {:g}", *metrics.lossScale);
  if (metrics.skippedSteps > 0)
    line += fmt::format("  skipped {}", metrics.skippedSteps);
  line += fmt::format("  {} {}/s  {}", formatRate(metrics.tokensPerSecond), unit,
                      formatBytes(metrics.peakBytes));
  double left = static_cast<double>(totalSteps - metrics.step) * smoothedSeconds;
  return line + "  eta " + formatSeconds(left);
}

void ProgressReport::evaluation(const StepMetrics &metrics) {
  finish();
  printTo(out, "step {}/{}  eval loss {:.6f}\n", metrics.step, totalSteps, *metrics.evalLoss);
  std::fflush(out);
}

void ProgressReport::step(const StepMetrics &metrics) {
  // The first step touches all memory for the first time, so it should count for little.
  smoothedSeconds = metrics.step <= firstStep + 1 ? metrics.seconds
                                                  : 0.9 * smoothedSeconds + 0.1 * metrics.seconds;
  if (!isTerminal) {
    if (metrics.step == firstStep || metrics.step == totalSteps || metrics.step % logEvery == 0) {
      printTo(out, "{}\n", lineFor(metrics));
      std::fflush(out);
    }
    return;
  }
  lastLine = lineFor(metrics);
  auto now = std::chrono::steady_clock::now();
  if (lineIsOpen && now - lastShown < std::chrono::milliseconds(100))
    return;
  // A line that wraps cannot be overwritten.
  printTo(out, "\r\x1b[K{}", lastLine.substr(0, terminalWidth(out) - 1));
  std::fflush(out);
  lineIsOpen = true;
  lastShown = now;
}

void ProgressReport::finish() {
  if (!lineIsOpen)
    return;
  printTo(out, "\r\x1b[K{}\n", lastLine);
  std::fflush(out);
  lineIsOpen = false;
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

std::string formatProfile(const std::vector<ProfileEntry> &profile) {
  double total = 0;
  size_t width = 10;
  for (const ProfileEntry &entry : profile) {
    total += entry.seconds;
    width = std::max(width, entry.name.size());
  }
  std::string table = fmt::format("{:<{}} {:>10} {:>12} {:>7} {:>10}\n", "kernel", width, "calls",
                                  "ms", "share", "GFLOP/s");
  for (const ProfileEntry &entry : profile) {
    std::string speed = entry.flops > 0 && entry.seconds > 0
                            ? fmt::format("{:.2f}", entry.flops / entry.seconds * 1e-9)
                            : "";
    table +=
        fmt::format("{:<{}} {:>10} {:>12.3f} {:>6.1f}% {:>10}\n", entry.name, width, entry.calls,
                    entry.seconds * 1e3, total > 0 ? 100 * entry.seconds / total : 0, speed);
  }
  return table;
}

std::string formatTracedCommunication(const std::vector<CommunicationTime> &times) {
  if (times.empty())
    return "";
  std::string table = fmt::format("{:<16} {:>7} {:>14} {:>10} {:>7}\n", "in these steps", "calls",
                                  "ms for others", "ms moving", "hidden");
  for (const CommunicationTime &time : times)
    table += fmt::format("{:<16} {:>7} {:>14.3f} {:>10.3f} {:>6.1f}%\n", time.name, time.calls,
                         (time.seconds - time.movingSeconds) * 1e3, time.movingSeconds * 1e3,
                         100 * time.hiddenShare());
  return table;
}

std::string formatMeasuredCollectives(const MeasuredCollectives &time) {
  if (time.seconds <= 0)
    return "";
  return fmt::format("collectives: {:.3f} s, {:.0f}% overlapped with computation\n", time.seconds,
                     100 * time.hiddenShare());
}

std::string formatTransferTime(const TransferTime &time) {
  if (time.calls == 0)
    return "";
  return fmt::format("transfers: {:.3f} s, {:.0f}% overlapped with computation; devices waited "
                     "{:.3f} s for them\n",
                     time.seconds, 100 * time.hiddenShare(), time.waitedSeconds);
}

std::string formatPipelineTime(const PipelineTime &time, std::optional<double> predictedShare) {
  if (time.deviceSeconds <= 0)
    return "";
  std::string text = fmt::format("pipeline bubble: {:.1f}% measured", 100 * time.bubbleShare());
  if (predictedShare)
    text += fmt::format(", {:.1f}% predicted", 100 * *predictedShare);
  return text + "\n";
}

std::string formatTensor(const std::string &name, const HostTensor &tensor) {
  constexpr int64_t shown = 8;
  int64_t count = tensor.type.numElements();
  std::string text = fmt::format("{}: {}", name, tensor.type.str());
  if (tensor.type.rank() == 0)
    return text + fmt::format(" = {:.9g}", elementAt(tensor, 0));
  text += " = [";
  for (int64_t i = 0; i < std::min(count, shown); ++i)
    text += fmt::format("{}{:.9g}", i ? ", " : "", elementAt(tensor, i));
  if (count <= shown)
    return text + "]";
  double low = elementAt(tensor, 0), high = low, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = elementAt(tensor, i);
    low = std::min(low, value);
    high = std::max(high, value);
    sum += value;
  }
  return text + fmt::format(", ...]  min {:.6g}  max {:.6g}  mean {:.6g}", low, high,
                            sum / static_cast<double>(count));
}

} // namespace dtc::runtime
