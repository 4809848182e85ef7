//===- PositionedFileTest.cpp - Files that are written in any order -------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "runtime/checkpoint/PositionedFile.h"

#include "support/Memory.h"
#include "test/lib/RandomCases.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>

namespace positionedFileTest {

using namespace dtc::test;
using namespace dtc;
using namespace dtc::runtime;
using namespace dtc::runtime::testing;

TEST(PositionedFile, PartsInAnyOrderMakeTheFile) {
  // Parts of all sizes, some with the alignment that goes past the system's page cache and some
  // without, which share blocks with each other.
  TempDir dir;
  forEachRandomCase(20, [&](uint64_t seed) {
    std::mt19937_64 random(seed);
    uint64_t size = random() % (size_t{1} << 20);
    PageMemory memory = std::move(*PageMemory::allocate(size + 2 * PositionedFile::kBlockBytes));
    std::byte *data = memory.data() + (random() % 2 ? 0 : random() % 4096);
    for (uint64_t i = 0; i < size; ++i)
      data[i] = static_cast<std::byte>(random());
    std::vector<uint64_t> cuts = {0, size};
    for (uint64_t i = random() % 30; i > 0; --i)
      cuts.push_back(random() % (size + 1));
    std::sort(cuts.begin(), cuts.end());
    std::vector<size_t> order;
    for (size_t i = 1; i < cuts.size(); ++i)
      order.push_back(i);
    std::shuffle(order.begin(), order.end(), random);
    std::string path = "file" + std::to_string(seed);
    auto file = PositionedFile::create(dir.path(path), size);
    ASSERT_OK(file);
    for (size_t i : order)
      ASSERT_OK(file->write(cuts[i - 1], {data + cuts[i - 1], cuts[i] - cuts[i - 1]}));
    ASSERT_OK(file->finish());
    EXPECT_TRUE(dir.read(path) == std::string(reinterpret_cast<char *>(data), size));
  });
}

TEST(PositionedFile, ErrorsNameTheFile) {
  TempDir dir;
  EXPECT_ERROR(PositionedFile::create(dir.path("no/file"), 10), "no/file: cannot write: No such");
  dir.write("there", "text");
  EXPECT_ERROR(PositionedFile::create(dir.path("there"), 10), "there: cannot write: File exists");
  EXPECT_EQ(dir.read("there"), "text");
}

} // namespace positionedFileTest
