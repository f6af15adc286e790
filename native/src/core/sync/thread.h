// Start of threads on machines that allow no more.
#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace kubebeast {

// Starts a thread. Returns Unavailable if the system allows no more of them, in which case std::thread throws.
inline absl::Status StartThread(std::thread& thread, std::function<void()> run) {
  try {
    thread = std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return absl::UnavailableError(absl::StrCat("cannot start a thread: ", error.code().message(),
                                               "; ulimit -u, kernel.pid_max or pids.max of the cgroup limits them"));
  }
  return absl::OkStatus();
}

}  // namespace kubebeast
