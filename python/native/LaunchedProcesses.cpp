//===- LaunchedProcesses.cpp - The processes that a launcher has started --===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "python/native/LaunchedProcesses.h"

#include "runtime/checkpoint/Checksum.h"
#include "tools/dtc-run/Launchers.h"
#include "tools/dtc-run/RunMembership.h"

#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <sstream>
#include <utility>
#include <vector>

using namespace dtc;
using namespace dtc::python;
using namespace dtc::runtime;

/// How long the processes may take to meet: each compiles the plan before.
static constexpr std::chrono::minutes kStartTimeout{10};

namespace {

/// The one membership of this process.
struct Joined {
  std::mutex mutex;
  std::unique_ptr<RunMembership> membership; // null: not joined, or one process
  std::shared_ptr<RunWatch> watch = std::make_shared<RunWatch>();
  bool hasLeft = false;
};

} // namespace

/// Is not destroyed at the end of the process: threads of a failed session may still be there.
static Joined &joined() {
  static auto *only = new Joined;
  return *only;
}

Expected<JoinedProcesses> dtc::python::joinProcesses() {
  if (MaybeError error = checkVariables())
    return *error;
  if (launchedProcesses() == 1)
    return JoinedProcesses();
  Joined &own = joined();
  std::lock_guard lock(own.mutex);
  if (own.hasLeft)
    return Error{"the interpreter ends, and this process has left the others"};
  if (!own.membership) {
    auto started =
        RunMembership::join(ControlOptions(), kStartTimeout,
                            {[watch = own.watch] { return watch->describe(); },
                             [](int64_t, const RunEnd &) { return std::function<void()>(); }});
    if (!started)
      return started.error();
    own.membership = std::move(*started);
  }
  JoinedProcesses result;
  result.processes = own.membership->processes();
  result.watch = own.watch;
  result.fail = [membership = own.membership.get()](const Error &error) {
    membership->fail(error);
  };
  return result;
}

/// The name of the call of a process that has done its work.
static constexpr const char *kEnd = "the end of the program";
/// The call in which the processes compare what dtc.compile() was given.
static constexpr const char *kCompile = "compile";

void dtc::python::leaveProcesses(const std::string &error) {
  Joined &own = joined();
  std::lock_guard lock(own.mutex);
  own.hasLeft = true;
  if (own.membership) {
    if (!error.empty())
      own.membership->fail(Error{error});
    // Another process may wait for this one in a call.
    JoinedProcesses all;
    all.processes = own.membership->processes();
    if (MaybeError differs = all.agree(kEnd, std::nullopt))
      own.membership->fail(*differs);
  }
  own.membership.reset();
}

//===----------------------------------------------------------------------===//
// Agreement
//===----------------------------------------------------------------------===//

static std::string verbOf(const std::string &call) {
  return call == kEnd ? "has come to " + call : "calls " + call;
}

/// Names the difference between the processes. Each has said the same lines with values of its own.
static std::string differenceOf(const std::vector<std::string> &said) {
  auto linesOf = [](const std::string &text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
      lines.push_back(line);
    return lines;
  };
  std::vector<std::string> first = linesOf(said.front());
  for (size_t process = 1; process < said.size(); ++process) {
    std::vector<std::string> other = linesOf(said[process]);
    if (other.front() != first.front())
      return fmt::format(
          "process 0 {}, and process {} {}; all processes make the same calls in the "
          "same order, those that save and load included",
          verbOf(first.front()), process, verbOf(other.front()));
    for (size_t line = 1; line < first.size(); ++line)
      if (line >= other.size() || other[line] != first[line])
        return fmt::format("{}: process {} has another {} than process 0; {}", first.front(),
                           process, first[line].substr(0, first[line].rfind('=')),
                           first.front() == kCompile
                               ? "give dtc.compile() the same arguments in all processes"
                               : "give all processes the same, such as the whole batch of all "
                                 "devices, and seed them alike");
  }
  return first.front() + ": the processes differ";
}

/// The error of some process; else an error if what they give differs; and else none.
static MaybeError explainDifference(const Processes &processes, const std::string &own) {
  Expected<std::vector<std::string>> said = processes.all(own);
  if (!said)
    return said.error();
  for (size_t process = 0; process < said->size(); ++process)
    if (const std::string &text = (*said)[process]; text.starts_with('!'))
      return Error{text == own ? text.substr(1)
                               : fmt::format("process {}: {}", process, text.substr(1))};
  return Error{differenceOf(*said)};
}

MaybeError JoinedProcesses::agree(const std::string &call, const MaybeError &error,
                                  const Alike &alike) const {
  if (!processes.areSeveral())
    return error;
  std::string own = call;
  for (const auto &[name, value] : alike)
    own += fmt::format("\n{}={}", name, value);
  if (error)
    own = "!" + error->message;
  Expected<std::string> first = processes.ofFirst(checksumOf(own));
  if (!first)
    return first.error();
  Expected<bool> differ = processes.any(error.has_value() || *first != checksumOf(own));
  if (!differ)
    return differ.error();
  return *differ ? explainDifference(processes, own) : std::nullopt;
}

MaybeError JoinedProcesses::failTogether(const Error &error) const {
  processes.abort(error);
  return error;
}
