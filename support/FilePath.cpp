//===- FilePath.cpp - Resolution of file paths ----------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/FilePath.h"

#include <filesystem>
#include <system_error>

namespace dtc {

std::string followLinks(const std::string &path) {
  namespace fs = std::filesystem;
  constexpr int mostLinks = 40; // as Linux
  fs::path current = path;
  for (int links = 0; links < mostLinks; ++links) {
    std::error_code code;
    // Without an absolute path, a missing file would not be found to be in the working folder.
    current = fs::weakly_canonical(fs::absolute(current, code), code);
    if (code)
      return path;
    // The rest of a path does not exist, or is a link to a file that does not.
    if (!fs::is_symlink(fs::symlink_status(current, code)))
      return current.string();
    fs::path target = fs::read_symlink(current, code);
    if (code)
      return path;
    current = current.parent_path() / target; // the target alone, if it is absolute
  }
  return path;
}

} // namespace dtc
