//===- CommandFilesTest.cpp - The files of one command --------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#include "support/CommandFiles.h"

#include "support/AtomicFile.h"
#include "test/lib/plans/Expect.h"
#include "test/lib/plans/TempDir.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace commandFilesTest {

using namespace dtc;
using namespace dtc::runtime::testing;
namespace fs = std::filesystem;

namespace {

class CommandFilesTest : public ::testing::Test {
protected:
  CommandFilesTest() {
    dir.write("in", "input");
    dir.write("other", "input"); // another file of the same content
    fs::create_symlink(dir.path("in"), dir.path("link"));
    fs::create_symlink("link", dir.path("link2"));
    fs::create_hard_link(dir.path("in"), dir.path("hard"));
    fs::create_directory(dir.path("folder"));
    fs::create_directory_symlink(dir.path("folder"), dir.path("linked"));
    fs::create_symlink(dir.path("folder/new"), dir.path("dangling"));
    fs::create_symlink(dir.path("circle"), dir.path("circle"));
  }

  std::string check(const std::vector<std::string> &inputs,
                    const std::vector<std::string> &outputs) {
    CommandFiles files;
    for (const std::string &name : inputs)
      files.reads("--in", name.empty() || name[0] == '/' ? name : dir.path(name));
    for (size_t i = 0; i < outputs.size(); ++i)
      files.writes("--out" + std::to_string(i),
                   outputs[i].empty() || outputs[i][0] == '/' ? outputs[i] : dir.path(outputs[i]));
    return messageOf(files.check());
  }

  TempDir dir;
};

} // namespace

TEST_F(CommandFilesTest, AnOutputIsNoInput) {
  for (const char *output : {"in", "./in", "folder/../in", "linked/../in", "link", "link2", "hard"})
    EXPECT_EQ(check({"other", "in"}, {output}),
              "--out0 " + dir.path(output) +
                  " would overwrite an input of the same command, --in " + dir.path("in") +
                  "; name another file");
  EXPECT_EQ(check({"in", "link", "in"}, {"other", "new", "folder/in"}), "");
}

TEST_F(CommandFilesTest, AnOutputIsNoOtherOutput) {
  EXPECT_EQ(check({}, {"x", "y", "./x"}),
            "--out2 " + dir.path("./x") + " would overwrite another output of the same command, " +
                "--out0 " + dir.path("x") + "; name another file");
  for (const char *output : {"in", "link", "link2", "hard", "./in"})
    EXPECT_TRUE(contains(check({}, {"in", output}), "--out1"));
  // Files that do not exist yet, in a folder that has two names, and in one that does not exist.
  EXPECT_TRUE(contains(check({}, {"folder/new", "linked/new"}), "another output"));
  EXPECT_TRUE(contains(check({}, {"no/a/new", "no/b/../a/new"}), "another output"));
  EXPECT_EQ(check({}, {"folder/new", "linked/newer", "no/new"}), "");
}

TEST_F(CommandFilesTest, ALinkToAFileThatThereIsNotLeadsThere) {
  EXPECT_TRUE(contains(check({}, {"dangling", "linked/new"}), "another output"));
  // As it does when it is written.
  ASSERT_OK(writeTextFile(dir.path("dangling"), "text"));
  EXPECT_EQ(dir.read("folder/new"), "text");
  EXPECT_TRUE(fs::is_symlink(dir.path("dangling")));
  EXPECT_TRUE(contains(check({"folder/new"}, {"dangling"}), "an input"));
  EXPECT_EQ(check({"in"}, {"circle", "new"}), "");
}

TEST_F(CommandFilesTest, PathsMayBeRelative) {
  fs::path before = fs::current_path();
  fs::current_path(dir.path("folder"));
  CommandFiles files;
  files.reads("the plan", "../in");
  files.writes("--save", "new");
  files.writes("--trace", dir.path("linked/./new"));
  MaybeError error = files.check();
  fs::current_path(before);
  EXPECT_ERROR(error, "--trace " + dir.path("linked/./new") +
                          " would overwrite another output of the same command, --save new");
}

TEST_F(CommandFilesTest, FoldersHaveTheirFiles) {
  CommandFiles files;
  files.reads("--cluster", dir.write("folder/index.html", ""));
  files.writesInto("--report", dir.path("linked"), "index.html");
  EXPECT_ERROR(files.check(), "--report " + dir.path("linked/index.html") +
                                  " would overwrite an input of the same command, --cluster");
  CommandFiles same;
  same.writes("-o", dir.path("page"));
  same.writesInto("--report", dir.path("page"), "index.html");
  EXPECT_ERROR(same.check(), "--report " + dir.path("page") + " would overwrite another output");
  CommandFiles none;
  none.writesInto("--report", "", "index.html");
  none.writes("-o", dir.path("index.html"));
  EXPECT_OK(none.check());
}

TEST_F(CommandFilesTest, AFolderThatIsReplacedHasNothingElse) {
  auto check = [&](const std::string &input, const std::string &output) {
    CommandFiles files;
    files.reads("--init", dir.path(input));
    files.writes("--save", dir.path(output));
    files.replacesFolder("--save-adapters", dir.path("linked"));
    return messageOf(files.check());
  };
  std::string start = "--save-adapters " + dir.path("linked") + " would overwrite ";
  EXPECT_TRUE(contains(check("folder/in", "new"), start + "an input of the same command, --init"));
  EXPECT_TRUE(contains(check("in", "folder/./a/b"), start + "another output of the same command"));
  EXPECT_TRUE(contains(check("in", "folder"), start + "another output of the same command"));
  EXPECT_EQ(check("in", "folder2"), "");
}

TEST_F(CommandFilesTest, NothingIsLostInDevicesAndPipes) {
  ASSERT_EQ(mkfifo(dir.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(check({"/dev/null", "pipe"}, {"/dev/null", "/dev/null", "pipe", "pipe", ""}), "");
}

} // namespace commandFilesTest
