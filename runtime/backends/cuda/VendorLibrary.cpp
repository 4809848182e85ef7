//===- VendorLibrary.cpp - Libraries of CUDA, found at run time -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/VendorLibrary.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

namespace dtc::runtime::cuda {

namespace fs = std::filesystem;

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

static std::vector<std::string> splitAtColons(const std::string &text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    size_t colon = std::min(text.find(':', begin), text.size());
    if (colon > begin)
      parts.push_back(text.substr(begin, colon - begin));
    begin = colon + 1;
  }
  return parts;
}

/// The entries of `folder` whose names begin with `prefix`, in order.
static std::vector<fs::path> matching(const fs::path &folder, const std::string &prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder, error))
    if (entry.path().filename().string().starts_with(prefix))
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// The folders of libraries of the wheels nvidia-* among packages: nvidia/<package>/lib.
static void addWheelsOf(const fs::path &packages, std::vector<std::string> &folders) {
  for (const fs::path &wheel : matching(packages / "nvidia", ""))
    if (std::error_code error; fs::is_directory(wheel / "lib", error))
      folders.push_back(wheel / "lib");
}

static void addWheels(const fs::path &prefix, std::vector<std::string> &folders) {
  for (const fs::path &python : matching(prefix / "lib", "python3"))
    for (const char *packages : {"site-packages", "dist-packages"})
      addWheelsOf(python / packages, folders);
}

std::vector<std::string> wheelFoldersBeside(const std::string &file) {
  std::vector<std::string> folders;
  if (!fs::path(file).is_absolute())
    return folders; // the working directory is no place of packages
  fs::path packages = fs::path(file).parent_path();
  for (int i = 0; i < 2; ++i) {
    packages = packages.parent_path();
    addWheelsOf(packages, folders);
  }
  return folders;
}

/// The program, or the shared library that this function is in. Empty if it is not known.
static std::string ownFile() {
  Dl_info found;
  std::error_code error;
  if (dladdr(reinterpret_cast<const void *>(&ownFile), &found) == 0 || !found.dli_fname)
    return "";
  // The name of a program is how it was started.
  fs::path link = fs::read_symlink("/proc/self/exe", error);
  return fs::path(found.dli_fname).is_absolute() || error ? found.dli_fname : link.string();
}

LibraryFolders libraryFolders(const std::string &file) {
  LibraryFolders folders;
  folders.before = splitAtColons(environment("DTC_CUDA_LIBRARIES"));
  for (std::string &folder : wheelFoldersBeside(file))
    folders.before.push_back(std::move(folder));
  for (const char *name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment(name); !root.empty())
      folders.after.push_back(fs::path(root) / "lib64");
  folders.after.push_back("/usr/local/cuda/lib64");
  if (std::string root = environment("VIRTUAL_ENV"); !root.empty())
    addWheels(root, folders.after);
  for (const std::string &folder : splitAtColons(environment("PATH"))) {
    std::error_code error;
    if (!fs::exists(fs::path(folder) / "python3", error))
      continue;
    addWheels(fs::path(folder).parent_path(), folders.after);
    break;
  }
  if (std::string home = environment("HOME"); !home.empty())
    addWheels(fs::path(home) / ".local", folders.after);
  addWheels("/usr/local", folders.after);
  addWheels("/usr", folders.after);
  std::vector<std::string> distinct;
  for (std::string &folder : folders.after)
    if (std::find(distinct.begin(), distinct.end(), folder) == distinct.end())
      distinct.push_back(std::move(folder));
  folders.after = std::move(distinct);
  return folders;
}

Expected<VendorLibrary> VendorLibrary::open(const std::string &library, const std::string &file,
                                            const std::string &wheel) {
  LibraryFolders folders = libraryFolders(ownFile());
  std::vector<std::string> candidates, unusable;
  for (const std::string &folder : folders.before)
    candidates.push_back(fs::path(folder) / file);
  candidates.push_back(file);
  for (const std::string &folder : folders.after)
    candidates.push_back(fs::path(folder) / file);
  for (const std::string &candidate : candidates) {
    VendorLibrary result;
    result.handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    std::error_code error;
    if (result.handle) {
      link_map *map = nullptr;
      bool named = dlinfo(result.handle, RTLD_DI_LINKMAP, static_cast<void *>(&map)) == 0 && map &&
                   map->l_name;
      result.foundAt = named ? map->l_name : candidate;
      return result;
    }
    // A file that is there and cannot be opened is worth a word.
    if (const char *reason = dlerror(); reason && fs::exists(candidate, error))
      unusable.push_back(reason);
  }
  std::vector<std::string> places = folders.before;
  places.push_back("the folders of the dynamic linker (LD_LIBRARY_PATH, /etc/ld.so.conf)");
  places.insert(places.end(), folders.after.begin(), folders.after.end());
  std::string found = unusable.empty() ? "not found" : fmt::format("{}", fmt::join(unusable, "; "));
  return Error{fmt::format("{} is needed and cannot be opened: {}: {}; looked in: {}. Install the "
                           "CUDA toolkit or the Python package {}, or name its folder in "
                           "DTC_CUDA_LIBRARIES",
                           library, file, found, fmt::join(places, ", "), wheel)};
}

void *VendorLibrary::findAddress(const char *name) {
  void *address = dlsym(handle, name);
  if (!address && !firstMissing)
    firstMissing = Error{
        fmt::format("{} has no function '{}', expected a version that has it", foundAt, name)};
  return address;
}

} // namespace dtc::runtime::cuda
