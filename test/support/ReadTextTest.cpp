//===- ReadTextTest.cpp - Texts from files, pipes and terminals -----------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/ReadText.h"

#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace readTextTest {

using namespace dtc;
using namespace dtc::runtime::testing;

TEST(ReadText, FilesAreReadWhole) {
  TempDir dir;
  std::string large(300'000, 'x');
  large[123'456] = '\0';
  for (const std::string &content : {std::string(), std::string("a\nb"), large}) {
    auto text = readText(dir.write("f", content));
    ASSERT_OK(text);
    EXPECT_EQ(*text, content);
  }
}

TEST(ReadText, PipesAreReadToTheirEnd) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::string content(1'000'000, 'y'); // more than a pipe holds
  std::thread writer([&] {
    // The reader is waiting by then.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (size_t done = 0; done < content.size();)
      done += static_cast<size_t>(
          std::max<ssize_t>(write(ends[1], content.data() + done, content.size() - done), 0));
    close(ends[1]);
  });
  auto text = readText(fmt::format("/dev/fd/{}", ends[0]));
  writer.join();
  close(ends[0]);
  ASSERT_OK(text);
  EXPECT_EQ(*text, content);
}

TEST(ReadText, APipeWithoutAnEndIsRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::thread writer([&] {
    std::string part(1 << 20, 'y');
    for (size_t i = 0; i <= kMaxStreamedBytes >> 20; ++i)
      for (size_t done = 0; done < part.size();) {
        ssize_t count = write(ends[1], part.data() + done, part.size() - done);
        if (count < 0)
          return;
        done += static_cast<size_t>(count);
      }
  });
  EXPECT_ERROR(readText(fmt::format("/dev/fd/{}", ends[0])),
               "a pipe may have 256.0 MiB, and it has more; write it to a file");
  // The rest that the writer has left.
  std::string rest(1 << 20, 0);
  std::thread drain([&] {
    while (read(ends[0], rest.data(), rest.size()) > 0)
      ;
  });
  writer.join();
  close(ends[1]);
  drain.join();
  close(ends[0]);
}

TEST(ReadText, WhatWouldBeReadWithoutEndIsRefused) {
  TempDir dir;
  EXPECT_ERROR(readText("/dev/zero"), "cannot read /dev/zero: it is a device; expected a file or a "
                                      "pipe");
  EXPECT_ERROR(readText("/dev/null"), "cannot read /dev/null: it is a device");
  EXPECT_ERROR(readText(dir.path("")), ": Is a directory");
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_ERROR(readText(dir.path("pipe")), "pipe: nobody writes to the pipe");
  EXPECT_ERROR(readText(dir.path("none")), "none: No such file or directory");
}

} // namespace readTextTest
