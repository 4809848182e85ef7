//===- Error.h - Errors as values -----------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_ERROR_H
#define DTC_SUPPORT_ERROR_H

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace dtc {

/// An error in words for the user: what was found, what was expected, where, and what to do. The
/// text carries no "error: " prefix; the tool that prints it adds one.
struct Error {
  std::string message;

  /// Prepends the place where the error was met ("plan.bin: ", "instruction 12: ").
  Error inContext(const std::string &place) const { return Error{place + ": " + message}; }
};

/// A value, or the reason why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state(std::move(value)) {}
  Expected(Error error) : state(std::move(error)) {}

  explicit operator bool() const { return std::holds_alternative<T>(state); }
  T &operator*() { return std::get<T>(state); }
  const T &operator*() const { return std::get<T>(state); }
  T *operator->() { return &std::get<T>(state); }
  const T *operator->() const { return &std::get<T>(state); }
  const Error &error() const { return std::get<Error>(state); }

private:
  std::variant<T, Error> state;
};

/// No value means success. A class of its own, because a caller that drops one is told so only for
/// a type that says it must not be dropped.
class [[nodiscard]] MaybeError : public std::optional<Error> {
public:
  using std::optional<Error>::optional;
};

} // namespace dtc

#endif // DTC_SUPPORT_ERROR_H
