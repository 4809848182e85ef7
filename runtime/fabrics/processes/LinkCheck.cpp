//===- LinkCheck.cpp - Measurement of links -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/fabrics/processes/LinkCheck.h"

#include "runtime/fabrics/processes/Agreement.h"
#include "runtime/fabrics/processes/ProcessCollective.h"
#include "support/Format.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <thread>

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;

static constexpr int64_t kPingTag = kAgreementTags, kReduceTag = kAgreementTags + 1;
/// How much slower than the median a slow link is.
static constexpr double kSlow = 2;
static constexpr size_t kProbeBytes = 8;
static constexpr size_t kMostSlow = 32; // that are listed

/// The median; of an even number of values the lower one of the two in the middle.
static double medianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// As many rounds as wanted, or fewer that take about a second.
static int roundsInTime(int wanted, double seconds) {
  return std::clamp(static_cast<int>(1 / std::max(seconds, 1e-9)), 1, wanted);
}

namespace {

/// The messages of two processes that measure the link between them.
class LinkGame {
public:
  LinkGame(Messages &messages, int64_t first, int64_t second)
      : batch(messages.openBatch()), isFirst(messages.process() == first),
        other(isFirst ? second : first) {}

  /// The median seconds of one way: a message goes to the other and back.
  Expected<double> latency(int rounds) {
    std::vector<double> seconds;
    // The first round is not counted: connections and buffers may be made in it.
    for (int round = 0; round <= rounds; ++round) {
      Clock::time_point begin = Clock::now();
      if (MaybeError error = pass(isFirst, small, 1))
        return *error;
      if (MaybeError error = pass(!isFirst, small, 1))
        return *error;
      if (round > 0)
        seconds.push_back(secondsSince(begin) / 2);
    }
    return medianOf(std::move(seconds));
  }

  /// Bytes a second in the slower one of both directions. `latency` is that of the first process.
  Expected<double> bandwidth(size_t bytes, int rounds, double latency) {
    large.resize(bytes);
    double slower = 0; // seconds of a byte
    for (bool sends : {isFirst, !isFirst}) {
      // Buffers grow, and memory is touched for the first time.
      Expected<double> first = burst(sends);
      if (!first)
        return first;
      Expected<int> agreed = tell(roundsInTime(rounds, *first));
      if (!agreed)
        return agreed.error();
      std::vector<double> seconds;
      for (int round = 0; round < *agreed; ++round) {
        Expected<double> taken = burst(sends);
        if (!taken)
          return taken;
        seconds.push_back(*taken);
      }
      // The first byte and the answer are on their way meanwhile.
      double median = medianOf(std::move(seconds));
      double moving = std::max(median - 2 * latency, median / 2);
      slower = std::max(slower, moving / static_cast<double>(kBurst * bytes));
    }
    return 1 / slower;
  }

private:
  static double secondsSince(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  /// Sends messages to one of the two, one after the other, all under way at once.
  MaybeError pass(bool sends, std::vector<std::byte> &memory, int count) {
    MessagePart part{memory.data(), memory.size()};
    for (int message = 0; message < count; ++message)
      if (MaybeError error = sends ? batch->send(other, kPingTag, {&part, 1})
                                   : batch->receive(other, kPingTag, {&part, 1}))
        return error;
    // Not MessageBatch::wait(), whose sleep would be part of the latency.
    while (true) {
      Expected<bool> done = batch->isDone();
      if (!done)
        return done.error();
      if (*done)
        return std::nullopt;
      std::this_thread::sleep_for(std::chrono::microseconds(10));
    }
  }

  /// The seconds until large messages have been answered.
  Expected<double> burst(bool sends) {
    Clock::time_point begin = Clock::now();
    if (MaybeError error = pass(sends, large, kBurst))
      return *error;
    if (MaybeError error = pass(!sends, small, 1))
      return *error;
    return secondsSince(begin);
  }

  /// The number that the first process has.
  Expected<int> tell(int number) {
    std::memcpy(small.data(), &number, sizeof(number));
    if (MaybeError error = pass(isFirst, small, 1))
      return *error;
    std::memcpy(&number, small.data(), sizeof(number));
    return number;
  }

  static constexpr int kBurst = 2;

  std::unique_ptr<MessageBatch> batch;
  bool isFirst;
  int64_t other;
  std::vector<std::byte> small = std::vector<std::byte>(kProbeBytes), large;
};

Expected<LinkTime> measureLink(Messages &messages, LinkTime link, const LinkCheckOptions &options) {
  std::array<double, 2> found = {};
  if (messages.process() == link.first || messages.process() == link.second) {
    LinkGame game(messages, link.first, link.second);
    Expected<double> latency = game.latency(options.latencyRounds);
    Expected<double> bandwidth =
        latency ? game.bandwidth(options.bytes, options.bandwidthRounds, *latency)
                : latency.error();
    if (!bandwidth)
      return bandwidth.error();
    found = {*latency, *bandwidth};
  }
  // The others wait meanwhile, and hear of it.
  std::string bytes(sizeof(found), '\0');
  std::memcpy(bytes.data(), found.data(), bytes.size());
  Expected<std::string> told = broadcast(messages, link.first, std::move(bytes));
  if (!told)
    return told.error();
  std::memcpy(found.data(), told->data(), sizeof(found));
  link.latency = found[0];
  link.bandwidth = found[1];
  return link;
}

Expected<double> measureAllReduce(Messages &messages, const LinkCheckOptions &options) {
  auto count = static_cast<int64_t>(options.allReduceBytes / sizeof(float));
  std::vector<int64_t> members(static_cast<size_t>(messages.numProcesses()));
  std::iota(members.begin(), members.end(), int64_t{0});
  ProcessCollective collective(
      messages,
      ProcessGroup(
          members, [](int64_t device) { return device; }, messages.process()),
      kReduceTag);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::AllReduce;
  spec.input = {DType::F32, {count}};
  spec.members = messages.numProcesses();
  std::vector<float> input(static_cast<size_t>(count), 1), output(input.size());
  CollectiveOperands operands{input.data(), output.data()};
  std::span<const CollectiveOperands> own(&operands, 1);
  std::vector<double> seconds;
  int rounds = options.bandwidthRounds;
  // The first round is not counted.
  for (int round = 0; round <= rounds; ++round) {
    if (Expected<int64_t> met = agree(messages, ReductionKind::Max, 0); !met)
      return met.error();
    Clock::time_point begin = Clock::now();
    if (MaybeError error = collective.run({&spec, 1}, {&own, 1}))
      return *error;
    double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    if (round > 0) {
      seconds.push_back(taken);
      continue;
    }
    Expected<int64_t> fewest = agree(messages, ReductionKind::Min, roundsInTime(rounds, taken));
    if (!fewest)
      return fewest.error();
    rounds = static_cast<int>(*fewest);
  }
  if (output.back() != static_cast<float>(messages.numProcesses()))
    return Error{fmt::format("an all-reduce of {} ones has given {}", messages.numProcesses(),
                             output.back())};
  Expected<int64_t> longest =
      agree(messages, ReductionKind::Max, static_cast<int64_t>(medianOf(seconds) * 1e9));
  return longest ? Expected<double>(static_cast<double>(*longest) * 1e-9) : longest.error();
}

} // namespace

Expected<LinkTimes> measureLinks(const std::shared_ptr<Messages> &messages,
                                 const LinkCheckOptions &options) {
  LinkTimes times;
  times.allReduceBytes = options.allReduceBytes;
  for (int64_t second = 1; second < messages->numProcesses(); ++second)
    for (int64_t first = 0; first < second; ++first) {
      Expected<LinkTime> link = measureLink(*messages, {first, second, 0, 0}, options);
      if (!link)
        return link.error();
      times.links.push_back(*link);
    }
  Expected<double> allReduce = measureAllReduce(*messages, options);
  if (!allReduce)
    return allReduce.error();
  times.allReduceSeconds = *allReduce;
  return times;
}

static std::string formatLink(const LinkTime &link, const std::vector<std::string> &hosts) {
  return fmt::format("process {} on {} and process {} on {}: {:.1f} us, {}/s", link.first,
                     hosts[static_cast<size_t>(link.first)], link.second,
                     hosts[static_cast<size_t>(link.second)], link.latency * 1e6,
                     formatBytes(static_cast<uint64_t>(link.bandwidth)));
}

/// Links that should be alike: how fast they are, and those that are slow.
static std::string formatAlike(const std::vector<LinkTime> &links, const std::string &what,
                               const std::vector<std::string> &hosts) {
  if (links.empty())
    return "";
  // If half of the links are slow, as with one slow host of four, the other half is the measure.
  std::vector<double> latencies, periods;
  for (const LinkTime &link : links) {
    latencies.push_back(link.latency);
    periods.push_back(1 / link.bandwidth);
  }
  double latency = medianOf(latencies), bandwidth = 1 / medianOf(periods);
  std::string text = fmt::format("{} link{} {}, median: {:.1f} us, {}/s\n", links.size(),
                                 links.size() == 1 ? "" : "s", what, latency * 1e6,
                                 formatBytes(static_cast<uint64_t>(bandwidth)));
  size_t slow = 0;
  for (const LinkTime &link : links) {
    bool isSlow = link.latency > kSlow * latency || link.bandwidth * kSlow < bandwidth;
    if (isSlow && ++slow <= kMostSlow)
      text += fmt::format("slow: {}\n", formatLink(link, hosts));
  }
  if (slow > kMostSlow)
    text += fmt::format("slow: and {} more\n", slow - kMostSlow);
  if (slow == 0)
    text += fmt::format("no link is more than {:g} times slower than the median\n", kSlow);
  return text;
}

std::string formatLinks(const LinkTimes &times, const std::vector<std::string> &hosts) {
  std::vector<LinkTime> inHosts, between;
  for (const LinkTime &link : times.links) {
    bool isInHost =
        hosts[static_cast<size_t>(link.first)] == hosts[static_cast<size_t>(link.second)];
    (isInHost ? inHosts : between).push_back(link);
  }
  bool areAlike = inHosts.empty() || between.empty();
  std::string text =
      areAlike
          ? formatAlike(times.links, fmt::format("between {} processes", hosts.size()), hosts)
          : formatAlike(inHosts, "in hosts", hosts) + formatAlike(between, "between hosts", hosts);
  return text +
         fmt::format("all-reduce of {}: {:.1f} ms, {}/s\n", formatBytes(times.allReduceBytes),
                     times.allReduceSeconds * 1e3,
                     formatBytes(static_cast<uint64_t>(static_cast<double>(times.allReduceBytes) /
                                                       times.allReduceSeconds)));
}

} // namespace dtc::runtime
