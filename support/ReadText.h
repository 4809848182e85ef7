//===- ReadText.h - Texts from files, pipes and terminals -----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_READTEXT_H
#define DTC_SUPPORT_READTEXT_H

#include "support/Error.h"

#include <cstddef>
#include <string>

namespace dtc {

/// The most bytes to read from a file that is not regular, and so may have no end.
inline constexpr size_t kMaxStreamedBytes = size_t{256} << 20;

/// Reads a text to its end; "-" is the standard input. Pipes, sockets and terminals are read too,
/// to a limit. Other devices and folders are errors, and so is a named pipe that nobody writes to,
/// which would be waited for without end. The error names the path.
Expected<std::string> readText(const std::string &path);

} // namespace dtc

#endif // DTC_SUPPORT_READTEXT_H
