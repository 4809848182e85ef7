//===- Fingerprint.h - Fingerprint of a data set --------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_FINGERPRINT_H
#define DTC_RUNTIME_DATA_FINGERPRINT_H

#include "support/InputFile.h"

#include <cstdint>
#include <span>
#include <string>

namespace dtc::runtime {

/// A short text by which a data set is known again: "u16-1115394-9ae16a3b2f90404f" is its format,
/// how many tokens or samples it has, and a hash. The hash covers the number of files, the size of
/// each in their order, and
///  * of a set of up to 64 MiB, every byte;
///  * of a larger one, about 1,024 blocks of 64 KiB: of each file the first, the last, and others
///  at
///    equal distances, in proportion to its size.
/// So a change in the middle of a large file that leaves its size may go unnoticed. Names, folders
/// and times of files are not covered: a data set may be moved. The hash is 64-bit FNV-1a, which
/// notices accidents, not intent.
/// The error begins with the path of the file that cannot be read.
Expected<std::string> fingerprintOf(const std::string &format, uint64_t count,
                                    std::span<const InputFile *const> files);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_FINGERPRINT_H
