// Another limit on the file descriptors of this process, for tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>

namespace kubebeast {

// The limit until the end of the object, at most the hard limit.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t count) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    const rlimit other{std::min(count, before_.rlim_max), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &other), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace kubebeast
