//===- RunTool.h - Tools as processes -------------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_RUNTOOL_H
#define DTC_TEST_LIB_PLANS_RUNTOOL_H

#include <fcntl.h>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace dtc::runtime::testing {

/// Starts a program whose output and errors go to files. Returns its process.
inline pid_t startTool(const std::string &program, std::vector<std::string> arguments,
                       const std::string &outPath, const std::string &errPath) {
  arguments.insert(arguments.begin(), program);
  pid_t child = fork();
  if (child != 0)
    return child;
  dup2(open(outPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 1);
  dup2(open(errPath.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), 2);
  std::vector<char *> argv;
  for (std::string &argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  _exit(127);
}

/// The exit status of a program in which a sanitizer has found an error (CMakePresets.json).
constexpr int kSanitizerStatus = 99;

/// The exit status; negative for a signal. What a sanitizer finds fails the test, also where the
/// tool is to fail.
inline int waitForTool(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == kSanitizerStatus)
      << "a sanitizer has found an error in the tool";
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_RUNTOOL_H
