//===- MessageCollective.h - Collectives by messages -----------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_FABRICS_PROCESSES_MESSAGECOLLECTIVE_H
#define DTC_RUNTIME_FABRICS_PROCESSES_MESSAGECOLLECTIVE_H

#include "runtime/fabrics/processes/CollectiveParts.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace dtc::runtime {

/// The collectives of a group whose processes send each other messages.
class MessageCollective final : public CollectiveParts {
public:
  MessageCollective(Messages &messages, const ProcessGroup &group, int64_t tag);

private:
  /// Memory for messages of the processes.
  struct Staging {
    std::vector<std::byte> bytes;
    size_t stride = 0; // from one process to the next
  };
  /// A segment on its way.
  struct Exchange {
    Staging partial, received;
    std::unique_ptr<MessageBatch> batch; // last: its end cancels messages in their memory
  };

  MaybeError move() override;
  MaybeError reduce() override;
  MaybeError startExchange(size_t segment);
  MaybeError finishExchange(size_t segment);
  MaybeError spreadResults(size_t segment);
  void stagedParts(const Segment &segment, std::byte *staging, std::vector<MessagePart> &to) const;
  void shareReduced() const;

  int64_t tag;
  // State of the running call.
  bool everywhere = false;        // each process reduces everything
  bool direct = false;            // inputs are sent from where they are
  std::vector<Segments> segments; // of each process
  std::array<Exchange, 2> exchanges;
  std::unique_ptr<MessageBatch> batch;
  std::vector<MessagePart> parts;
};

} // namespace dtc::runtime

#endif // DTC_RUNTIME_FABRICS_PROCESSES_MESSAGECOLLECTIVE_H
