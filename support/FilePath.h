//===- FilePath.h - Resolution of file paths ------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_SUPPORT_FILEPATH_H
#define DTC_SUPPORT_FILEPATH_H

#include <string>

namespace dtc {

/// The absolute path, without symbolic links, of the file that opening `path` for writing would
/// open or make: a link to a missing file is followed too. `path` itself if that is unknown, as for
/// links that go in a circle.
std::string followLinks(const std::string &path);

} // namespace dtc

#endif // DTC_SUPPORT_FILEPATH_H
