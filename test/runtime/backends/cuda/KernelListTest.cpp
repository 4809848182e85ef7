//===- KernelListTest.cpp - The kernels that docs/kernels.md lists --------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "plan/KernelTable.h"
#include "runtime/backends/cuda/CudaBackend.h"
#include "test/lib/files/SourcePath.h"

#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <set>
#include <string>

using namespace dtc::runtime;

/// The names in backquotes between the two texts.
static std::set<std::string> namesBetween(const std::string &text, const std::string &begin,
                                          const std::string &end) {
  std::set<std::string> names;
  size_t first = text.find(begin), last = text.find(end, first);
  EXPECT_NE(first, std::string::npos) << "docs/kernels.md lacks: " << begin;
  EXPECT_NE(last, std::string::npos) << "docs/kernels.md lacks: " << end;
  while (last != std::string::npos && (first = text.find('`', first)) < last) {
    size_t close = text.find('`', first + 1);
    names.insert(text.substr(first + 1, close - first - 1));
    first = close + 1;
  }
  return names;
}

TEST(CudaKernelList, IsThatOfTheDocumentation) {
  std::ifstream file(dtc::test::sourcePath("docs/kernels.md"));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::set<std::string> missing = namesBetween(text, "has all but these:", "\n\n");

  std::set<std::string> expected;
  std::vector<std::string> present = cudaKernelNames();
  for (const KernelInfo &kernel : allKernels())
    expected.emplace(kernel.name);
  for (const std::string &name : present)
    EXPECT_EQ(expected.erase(name), 1u) << name << " is no kernel of plan/KernelTable.cpp";
  EXPECT_EQ(missing, expected);
}

TEST(CudaKernelList, OtherKernelsAreErrorsThatNameThem) {
  Expected<std::unique_ptr<Kernel>> kernel =
      createCudaBackend()->prepare({"attention", {}, {}, {}, {}});
  ASSERT_FALSE(kernel);
  EXPECT_NE(kernel.error().message.find("the cuda backend has no kernel 'attention'"),
            std::string::npos)
      << kernel.error().message;
}
