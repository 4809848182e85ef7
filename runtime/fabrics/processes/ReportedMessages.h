//===- ReportedMessages.h - A network whose failures go another way --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_REPORTEDMESSAGES_H
#define DTC_RUNTIME_FABRICS_PROCESSES_REPORTEDMESSAGES_H

#include "runtime/fabrics/processes/Messages.h"

#include <functional>
#include <memory>
#include <utility>

namespace dtc::runtime {

/// The messages of another network. An abort stops this process at once; the others hear of it from
/// the receiver of the report, since the network may be what has failed.
class ReportedMessages final : public Messages {
public:
  ReportedMessages(std::shared_ptr<Messages> messages, std::function<void(const Error &)> report)
      : messages(std::move(messages)), report(std::move(report)) {}

  int64_t process() const override { return messages->process(); }
  int64_t numProcesses() const override { return messages->numProcesses(); }
  int64_t processesOnHost() const override { return messages->processesOnHost(); }
  int64_t largestTag() const override { return messages->largestTag(); }
  std::unique_ptr<MessageBatch> openBatch() override { return messages->openBatch(); }

  void abort(const Error &reason) override {
    report(reason);
    messages->abortHere(reason);
  }
  void abortHere(const Error &reason) override { messages->abortHere(reason); }
  MaybeError failure() const override { return messages->failure(); }
  void onAbort(std::function<void(const Error &)> heard) override {
    messages->onAbort(std::move(heard));
  }

private:
  std::shared_ptr<Messages> messages;
  std::function<void(const Error &)> report;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_REPORTEDMESSAGES_H
