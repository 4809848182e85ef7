//===- FaultInjection.cpp - Injection of failing system calls -------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//
//
// A library for LD_PRELOAD. Of the calls that FAULT_CALLS names ("rename,fsync"; "tmpfile" is an
// open with O_TMPFILE), those from number FAULT_FROM on, the first is 1, fail with the error number
// FAULT_ERRNO; or, if that is "kill", the process is killed before that call. FAULT_MARK is a file
// that is made when this happens.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

static std::string environment(const char *name) {
  const char *value = std::getenv(name);
  return value ? value : "";
}

/// 0 where the variable is no number.
static long numberOf(const char *name) {
  return std::strtol(environment(name).c_str(), nullptr, 10);
}

/// The error number with which this call is to fail, 0 if it is not.
static int faultOf(const char *call) {
  static std::atomic<long> calls = 0;
  if (("," + environment("FAULT_CALLS") + ",").find("," + std::string(call) + ",") ==
      std::string::npos)
    return 0;
  if (++calls < numberOf("FAULT_FROM"))
    return 0;
  close(open(environment("FAULT_MARK").c_str(), O_WRONLY | O_CREAT, 0600));
  if (environment("FAULT_ERRNO") == "kill")
    kill(getpid(), SIGKILL);
  return static_cast<int>(numberOf("FAULT_ERRNO"));
}

template <typename Function> static Function *real(Function *, const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

/// The body of a function that returns `failed` and sets errno.
#define FAIL_OR_CALL(name, failed, ...)                                                            \
  if (int code = faultOf(#name)) {                                                                 \
    errno = code;                                                                                  \
    return failed;                                                                                 \
  }                                                                                                \
  static auto *function = real(&name, #name);                                                      \
  return function(__VA_ARGS__)

extern "C" {

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) noexcept {
  if (int code = faultOf("pthread_create"))
    return code;
  static auto *function = real(&pthread_create, "pthread_create");
  return function(thread, attributes, start, argument);
}

int fallocate(int fd, int mode, off_t offset, off_t length) {
  FAIL_OR_CALL(fallocate, -1, fd, mode, offset, length);
}

/// Only those of files without a name count.
int open(const char *path, int flags, ...) {
  mode_t mode = 0;
  if (flags & (O_CREAT | O_TMPFILE)) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  if (int code = (flags & O_TMPFILE) == O_TMPFILE ? faultOf("tmpfile") : 0) {
    errno = code;
    return -1;
  }
  static auto *function =
      reinterpret_cast<int (*)(const char *, int, ...)>(dlsym(RTLD_NEXT, "open"));
  return function(path, flags, mode);
}

int fsync(int fd) { FAIL_OR_CALL(fsync, -1, fd); }

int linkat(int oldFd, const char *oldPath, int newFd, const char *newPath, int flags) noexcept {
  FAIL_OR_CALL(linkat, -1, oldFd, oldPath, newFd, newPath, flags);
}

int rename(const char *oldPath, const char *newPath) noexcept {
  FAIL_OR_CALL(rename, -1, oldPath, newPath);
}

int renameat2(int oldFd, const char *oldPath, int newFd, const char *newPath,
              unsigned flags) noexcept {
  FAIL_OR_CALL(renameat2, -1, oldFd, oldPath, newFd, newPath, flags);
}

int mkdir(const char *path, mode_t mode) noexcept { FAIL_OR_CALL(mkdir, -1, path, mode); }

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  FAIL_OR_CALL(pwrite, -1, fd, data, size, offset);
}

char *mkdtemp(char *pattern) noexcept { FAIL_OR_CALL(mkdtemp, nullptr, pattern); }

int unlinkat(int fd, const char *path, int flags) noexcept {
  FAIL_OR_CALL(unlinkat, -1, fd, path, flags);
}

} // extern "C"
