//===- DataFiles.h - The files of a data set ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_RUNTIME_DATA_DATAFILES_H
#define DTC_RUNTIME_DATA_DATAFILES_H

#include "support/Error.h"

#include <cstddef>
#include <string>
#include <vector>

namespace dtc::runtime {

/// The files that names and patterns stand for, sorted by path, byte by byte, so that neither the
/// order of `patterns` nor that of a folder shows. A pattern is one of a shell (glob(7)): "*", "?",
/// "[...]". The name of an existing file means that file, whatever characters it has; one without
/// these characters is taken as it is, and need not be there. An error names a pattern without a
/// match, and names a file that is there twice, by one path or two.
Expected<std::vector<std::string>> findDataFiles(const std::vector<std::string> &patterns);

/// Makes sure that the process may have `count` more files open: raises its own limit where that is
/// too low. The error names the limit and says how to raise it.
MaybeError allowOpenFiles(size_t count);

} // namespace dtc::runtime

#endif // DTC_RUNTIME_DATA_DATAFILES_H
