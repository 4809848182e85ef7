//===- ControlFrame.h - Messages of the control connection ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_CONTROLFRAME_H
#define DTC_RUNTIME_CONTROL_CONTROLFRAME_H

#include "support/Error.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace dtc::runtime {

/// A frame on the control connection. On the wire: the bytes that follow (32 bits), the kind (8), a
/// flag (8), the process (32), the point (32), all little endian, then the text.
struct ControlFrame {
  enum Kind : uint8_t {
    Hello = 1,    // the first one of a connection: `process` is who connects, the text the secret
    Heartbeat,    // the text is the sender's current work
    Report,       // `process` has failed, or is lost (flag); the text is how
    StateRequest, // asks for a State at once
    State,        // as Heartbeat
    End,          // the run ends; the text is the reason, the flag says that a process was lost
    Goodbye       // the sender ends in good order
  };

  Kind kind = Heartbeat;
  bool flag = false;
  int64_t process = 0;
  std::string text = {};
  int64_t point = 0; // of a Report: see Findings::fail()
};

/// Most bytes of a text; longer ones are cut.
inline constexpr size_t kControlTextBytes = 32 << 10;
/// Most bytes of a first frame, from a peer that is not known yet.
inline constexpr size_t kControlHelloBytes = 256;

std::string encode(const ControlFrame &frame);

/// Takes the first frame out of what was received; none if it is not whole yet. An error if the
/// bytes are no frame, or one with more than `mostBytes`.
Expected<std::optional<ControlFrame>> takeFrame(std::string &received, size_t mostBytes);

/// Takes as long for any two of the same length.
bool equalSecrets(std::string_view a, std::string_view b);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_CONTROLFRAME_H
