//===- Print.h - Printing to closed streams -------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_PRINT_H
#define DTC_SUPPORT_PRINT_H

#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace dtc {

/// Prints as fmt::print does, but throws nothing where a stream cannot be written, as to a terminal
/// that was closed: std::ferror tells.
template <typename... Args>
void printTo(std::FILE *to, fmt::format_string<Args...> format, Args &&...args) {
  std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), to);
}

} // namespace dtc

#endif // DTC_SUPPORT_PRINT_H
