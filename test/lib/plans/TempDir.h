//===- TempDir.h - A folder for one test ----------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_TEMPDIR_H
#define DTC_TEST_LIB_PLANS_TEMPDIR_H

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>

namespace dtc::runtime::testing {

/// A new folder, removed with everything in it at the end.
class TempDir {
public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "dtc-test-XXXXXX").string();
    folder = mkdtemp(pattern.data());
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TempDir(const TempDir &) = delete;
  TempDir &operator=(const TempDir &) = delete;

  std::string path(const std::string &name) const { return folder + "/" + name; }

  /// Writes a file and returns its path.
  std::string write(const std::string &name, std::string_view content) const {
    // A new file: some file systems wait for the disk when one is emptied and written again.
    std::error_code ignored;
    std::filesystem::remove(path(name), ignored);
    std::ofstream(path(name), std::ios::binary) << content;
    return path(name);
  }

  std::string read(const std::string &name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t numFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

private:
  std::string folder;
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_TEMPDIR_H
