//===- SourcePath.h - Files of the sources --------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_FILES_SOURCEPATH_H
#define DTC_TEST_LIB_FILES_SOURCEPATH_H

#include <string>
#include <string_view>

namespace dtc::test {

/// The absolute path of a file of the sources: sourcePath("docs/kernels.md").
std::string sourcePath(std::string_view path);

} // namespace dtc::test

#endif // DTC_TEST_LIB_FILES_SOURCEPATH_H
