//===- TimeGuard.h - Time limit for tests ---------------------------------===//
//
// Part of dtc, under the Apache License v2.0. See LICENSE.
//
//===----------------------------------------------------------------------===//

#ifndef DTC_TEST_LIB_PLANS_TIMEGUARD_H
#define DTC_TEST_LIB_PLANS_TIMEGUARD_H

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>

namespace dtc::runtime::testing {

/// Ends the process if it is not destroyed in time: a plan must never make the runtime hang.
class TimeGuard {
public:
  TimeGuard(std::chrono::seconds limit, std::string what)
      : thread([this, limit, what = std::move(what)] {
          std::unique_lock lock(mutex);
          if (!changed.wait_for(lock, limit, [&] { return done; })) {
            fprintf(stderr, "took more than %d seconds: %s\n", static_cast<int>(limit.count()),
                    what.c_str());
            abort();
          }
        }) {}
  ~TimeGuard() {
    {
      std::lock_guard lock(mutex);
      done = true;
    }
    changed.notify_all();
    thread.join();
  }

private:
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::thread thread; // last: it uses the others
};

} // namespace dtc::runtime::testing

#endif // DTC_TEST_LIB_PLANS_TIMEGUARD_H
