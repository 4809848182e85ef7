//===- Findings.cpp - First cause of the end of a run ---------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/control/Findings.h"

#include <algorithm>
#include <fmt/format.h>

namespace dtc::runtime {

/// Processes whose places a message lists.
static constexpr size_t kMostPlaces = 16;

bool Findings::isLost(int64_t process) const {
  return std::ranges::any_of(losses, [&](const Word &loss) { return loss.process == process; });
}

void Findings::lose(int64_t process, const std::string &how) {
  if (!isLost(process))
    losses.push_back({process, how, Clock::now()});
}

bool Findings::hasFailed(int64_t process) const {
  return std::ranges::any_of(failures,
                             [&](const Word &failure) { return failure.process == process; });
}

void Findings::fail(int64_t process, const std::string &text, int64_t point) {
  auto found = std::ranges::find(failures, process, &Word::process);
  if (found == failures.end())
    failures.push_back({process, text, Clock::now(), point});
  else if (text.find(found->text) != std::string::npos)
    found->text = text;
}

void Findings::setPlace(int64_t process, const std::string &text, Clock::time_point when) {
  places[process] = {text, when};
}

std::string Findings::name(int64_t process) const {
  return fmt::format("process {} on {}", process, hosts[static_cast<size_t>(process)]);
}

std::string Findings::describeLoss(const Word &loss) const {
  std::string text = fmt::format("{} was lost: {}", name(loss.process), loss.text);
  auto place = places.find(loss.process);
  if (place == places.end() || place->second.text.empty())
    return text;
  return text + fmt::format("; {:.1f} s before that it said: {}",
                            std::chrono::duration<double>(loss.when - place->second.when).count(),
                            place->second.text);
}

const Findings::Word &Findings::firstFailure() const {
  return *std::ranges::min_element(failures, {}, &Word::point); // the first of those that are equal
}

int64_t Findings::firstPoint() const { return firstFailure().point; }

std::string Findings::describeFailure() const {
  const Word &first = firstFailure();
  // Failures that the process that speaks for all has found itself need no name.
  if (std::ranges::any_of(failures, [&](const Word &failure) {
        return failure.process == 0 && failure.text == first.text;
      }))
    return first.text;
  return name(first.process) + ": " + first.text;
}

RunEnd Findings::decide() const {
  RunEnd end;
  end.hasLostProcess = !losses.empty();
  int64_t culprit = losses.empty() ? firstFailure().process : losses.front().process;
  end.reason = losses.empty() ? describeFailure() : describeLoss(losses.front());
  for (size_t i = 1; i < std::min(losses.size(), kMostPlaces); ++i)
    end.reason += "\n  " + describeLoss(losses[i]);
  size_t listed = 0;
  for (const auto &[process, place] : places) {
    if (process == culprit || (place.text.empty() && losses.empty()) || isLost(process))
      continue;
    if (++listed > kMostPlaces) {
      end.reason += "\n  and others";
      break;
    }
    end.reason +=
        fmt::format("\n  {}: {}", name(process), place.text.empty() ? "is in no step" : place.text);
  }
  return end;
}

} // namespace dtc::runtime
