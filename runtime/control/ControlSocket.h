//===- ControlSocket.h - One end of a control connection -------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_CONTROL_CONTROLSOCKET_H
#define DTC_RUNTIME_CONTROL_CONTROLSOCKET_H

#include "runtime/control/ControlFrame.h"
#include "support/Error.h"

#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace dtc::runtime {

/// A file that is closed with the object.
class OwnedFile {
public:
  OwnedFile() = default;
  explicit OwnedFile(int file) : file(file) {}
  OwnedFile(OwnedFile &&other) noexcept : file(std::exchange(other.file, -1)) {}
  OwnedFile &operator=(OwnedFile &&other) noexcept {
    std::swap(file, other.file);
    return *this;
  }
  ~OwnedFile();

  int get() const { return file; }
  explicit operator bool() const { return file >= 0; }

private:
  int file = -1;
};

/// A listening socket and its "address port", the port being one that is free.
struct ControlListener {
  OwnedFile file;
  std::string endpoint;

  static Expected<ControlListener> open(const std::string &address);
  /// The next connection that has been made, without waiting.
  OwnedFile accept() const;
};

/// A connection that never blocks. Not thread-safe.
class ControlSocket {
public:
  using Clock = std::chrono::steady_clock;

  explicit ControlSocket(OwnedFile file);
  /// Begins to connect to "address port".
  static Expected<ControlSocket> connect(const std::string &endpoint);

  int file() const { return handle.get(); }
  bool hasOutput() const { return !output.empty(); }
  void send(const ControlFrame &frame) { output += encode(frame); }
  /// Writes what can be written. False if the connection is broken.
  bool flush();
  /// Reads all that has come. False if the other end has closed it, or it is broken; what came
  /// before can still be taken.
  bool receive();
  /// Whether flush() or receive() has found that nobody listens at the other end.
  bool wasRefused() const { return refused; }
  /// As the function of that name, of what has been received.
  Expected<std::optional<ControlFrame>> takeFrame(size_t mostBytes) {
    return runtime::takeFrame(input, mostBytes);
  }

private:
  OwnedFile handle;
  std::string input, output;
  bool refused = false;
};

/// 32 bytes from the system's random generator.
Expected<std::string> randomSecret();

} // namespace dtc::runtime

#endif // DTC_RUNTIME_CONTROL_CONTROLSOCKET_H
