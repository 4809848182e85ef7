//===- VendorLibraryTest.cpp - Libraries found at run time ----------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/backends/cuda/VendorLibrary.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::cuda;
using namespace dtc::runtime::testing;
namespace fs = std::filesystem;

namespace {

/// Sets a variable of the environment for a test.
class Variable {
public:
  Variable(const char *name, const std::string &value) : name(name) {
    if (const char *old = std::getenv(name))
      before = old;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before)
      setenv(name, before->c_str(), 1);
    else
      unsetenv(name);
  }

private:
  const char *name;
  std::optional<std::string> before;
};

} // namespace

TEST(VendorLibrary, FindsWhatTheLinkerFinds) {
  auto library = VendorLibrary::open("the C library", "libc.so.6", "none");
  ASSERT_OK(library);
  EXPECT_NE(library->path().find("libc.so.6"), std::string::npos);
  int (*absolute)(int) = nullptr;
  library->find(absolute, "abs");
  EXPECT_FALSE(library->missing());
  EXPECT_EQ(absolute(-3), 3);
  for (const char *name : {"cublasLtNoSuchFunction", "cublasLtNorThis", "abs"})
    library->find(absolute, name);
  ASSERT_TRUE(library->missing());
  EXPECT_NE(library->missing()->message.find("has no function 'cublasLtNoSuchFunction'"),
            std::string::npos);
}

TEST(VendorLibrary, NamesAllPlacesWhereItLooked) {
  Variable folders("DTC_CUDA_LIBRARIES", "/first:/second"), home("CUDA_HOME", "/third");
  auto library = VendorLibrary::open("cuBLASLt", "libno-such-library.so.13", "nvidia-cublas");
  for (const char *part : {"cuBLASLt is needed", "libno-such-library.so.13", "/first, /second",
                           "LD_LIBRARY_PATH", "/third/lib64", "nvidia-cublas"})
    EXPECT_ERROR(library, part);
}

TEST(VendorLibrary, LooksIntoWheels) {
  TempDir dir;
  fs::path lib = fs::path(dir.path("venv")) / "lib/python3.12/site-packages/nvidia/cu13/lib";
  fs::create_directories(lib);
  Variable environment("VIRTUAL_ENV", dir.path("venv"));
  std::vector<std::string> after = libraryFolders("").after;
  EXPECT_NE(std::find(after.begin(), after.end(), lib.string()), after.end());
}

TEST(VendorLibrary, LooksBesideThePackageOfPython) {
  TempDir dir;
  fs::path packages = dir.path("packages");
  std::string lib = packages / "nvidia/cudnn/lib";
  fs::create_directories(lib);
  fs::create_directories(packages / "nvidia/without");
  const fs::path before = fs::current_path();
  fs::current_path(packages);
  for (const char *file : {"dtc/_native.abi3.so", "dtc/bin/dtc-run"})
    EXPECT_EQ(wheelFoldersBeside(packages / file), std::vector<std::string>{lib}) << file;
  EXPECT_EQ(wheelFoldersBeside(packages / "other/folder/bin/dtc-run"), std::vector<std::string>());
  for (const char *unknown : {"", "dtc/bin/dtc-run"})
    EXPECT_EQ(wheelFoldersBeside(unknown), std::vector<std::string>()) << unknown;
  fs::current_path(before);
}

TEST(VendorLibrary, TakesThePackagesBesideItsOwnBeforeTheSystem) {
  TempDir dir;
  fs::path packages = dir.path("packages");
  std::string lib = packages / "nvidia/cudnn/lib";
  fs::create_directories(lib);
  Variable folders("DTC_CUDA_LIBRARIES", "/first");
  LibraryFolders found = libraryFolders(packages / "dtc/_native.abi3.so");
  EXPECT_EQ(found.before, (std::vector<std::string>{"/first", lib}));
  EXPECT_EQ(std::find(found.after.begin(), found.after.end(), lib), found.after.end());
}

TEST(VendorLibrary, SaysWhyAFileCannotBeOpened) {
  TempDir dir;
  dir.write("libbroken.so", "no library");
  Variable folders("DTC_CUDA_LIBRARIES", fs::path(dir.path("libbroken.so")).parent_path());
  EXPECT_ERROR(VendorLibrary::open("a library", "libbroken.so", "none"), "libbroken.so: ");
}
