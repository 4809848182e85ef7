//===- LinkCheck.cpp - How fast processes exchange messages ----------------===//
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

namespace dtc::runtime {

using Clock = std::chrono::steady_clock;

static constexpr int64_t kPingTag = kAgreementTags, kReduceTag = kAgreementTags + 1;
/// How much slower than the median a slow link is.
static constexpr double kSlow = 2;
static constexpr size_t kSmallBytes = 8;
static constexpr size_t kMostSlow = 32; // that are listed

static double medianOf(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

namespace {

/// Messages that go from one process to another and back.
class PingPong {
public:
  PingPong(Messages &messages, int64_t first, int64_t second)
      : batch(messages.openBatch()), isFirst(messages.process() == first),
        other(isFirst ? second : first) {}

  /// The median seconds of one way.
  Expected<double> measure(size_t bytes, int rounds) {
    std::vector<std::byte> memory(bytes);
    MessagePart part{memory.data(), bytes};
    std::vector<double> seconds;
    // The first round is not counted: buffers grow, and memory is touched for the first time.
    for (int round = 0; round <= rounds; ++round) {
      Clock::time_point begin = Clock::now();
      for (bool sends : {isFirst, !isFirst})
        if (MaybeError error = go(sends, part))
          return *error;
      if (round > 0)
        seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count() / 2);
    }
    return medianOf(std::move(seconds));
  }

private:
  MaybeError go(bool sends, const MessagePart &part) {
    MaybeError error = sends ? batch->send(other, kPingTag, {&part, 1})
                             : batch->receive(other, kPingTag, {&part, 1});
    return error ? error : batch->wait();
  }

  std::unique_ptr<MessageBatch> batch;
  bool isFirst;
  int64_t other;
};

Expected<LinkTime> measureLink(Messages &messages, LinkTime link, const LinkCheckOptions &options) {
  std::array<double, 2> seconds = {};
  if (messages.process() == link.first || messages.process() == link.second) {
    PingPong game(messages, link.first, link.second);
    Expected<double> small = game.measure(kSmallBytes, options.latencyRounds);
    Expected<double> large =
        small ? game.measure(options.bytes, options.bandwidthRounds) : small.error();
    if (!large)
      return large.error();
    seconds = {*small, *large};
  }
  // The others wait meanwhile, and hear of it.
  std::string bytes(sizeof(seconds), '\0');
  std::memcpy(bytes.data(), seconds.data(), bytes.size());
  Expected<std::string> told = broadcast(messages, link.first, std::move(bytes));
  if (!told)
    return told.error();
  std::memcpy(seconds.data(), told->data(), sizeof(seconds));
  link.latency = seconds[0];
  link.bandwidth = static_cast<double>(options.bytes) / seconds[1];
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
  for (int round = 0; round <= options.bandwidthRounds; ++round) {
    if (Expected<int64_t> met = agree(messages, Reduction::Max, 0); !met)
      return met.error();
    Clock::time_point begin = Clock::now();
    if (MaybeError error = collective.run({&spec, 1}, {&own, 1}))
      return *error;
    if (round > 0)
      seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  if (output.back() != static_cast<float>(messages.numProcesses()))
    return Error{fmt::format("an all-reduce of {} ones has given {}", messages.numProcesses(),
                             output.back())};
  Expected<int64_t> longest =
      agree(messages, Reduction::Max, static_cast<int64_t>(medianOf(seconds) * 1e9));
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

std::string formatLinks(const LinkTimes &times, const std::vector<std::string> &hosts) {
  std::vector<double> latencies, bandwidths;
  for (const LinkTime &link : times.links) {
    latencies.push_back(link.latency);
    bandwidths.push_back(link.bandwidth);
  }
  double latency = medianOf(latencies), bandwidth = medianOf(bandwidths);
  std::string text =
      fmt::format("{} link{} between {} processes, median: {:.1f} us, {}/s\n", times.links.size(),
                  times.links.size() == 1 ? "" : "s", hosts.size(), latency * 1e6,
                  formatBytes(static_cast<uint64_t>(bandwidth)));
  size_t slow = 0;
  for (const LinkTime &link : times.links) {
    bool isSlow = link.latency > kSlow * latency || link.bandwidth * kSlow < bandwidth;
    if (isSlow && ++slow <= kMostSlow)
      text += fmt::format("slow: {}\n", formatLink(link, hosts));
  }
  if (slow > kMostSlow)
    text += fmt::format("slow: and {} more\n", slow - kMostSlow);
  if (slow == 0)
    text += fmt::format("no link is more than {:g} times slower than the median\n", kSlow);
  return text +
         fmt::format("all-reduce of {}: {:.1f} ms, {}/s\n", formatBytes(times.allReduceBytes),
                     times.allReduceSeconds * 1e3,
                     formatBytes(static_cast<uint64_t>(static_cast<double>(times.allReduceBytes) /
                                                       times.allReduceSeconds)));
}

} // namespace dtc::runtime
