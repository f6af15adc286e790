#include "wire/log_info.h"

#include <gtest/gtest.h>

#include "absl/strings/match.h"

namespace kubebeast {
namespace {

TEST(LogInfoTest, KeysOfInfoAreFewShortPrintableAndDifferent) {
  EXPECT_TRUE(ValidateLogInfo({}).ok());
  EXPECT_TRUE(ValidateLogInfo({"success", std::string(100, 'x')}).ok());
  EXPECT_EQ(ValidateLogInfo(std::vector<std::string>(33, "x")).message(), "log_info: 33 keys, expected at most 32");
  for (const std::string& key : {std::string(), std::string(101, 'x'), std::string("a\n"), std::string("\xC3\xA4")}) {
    EXPECT_TRUE(absl::StrContains(ValidateLogInfo({key}).message(), "expected 1 to 100 printable ASCII")) << key;
  }
  EXPECT_EQ(ValidateLogInfo({"a", "b", "a"}).message(), "log_info: \"a\" is given twice");
}

}  // namespace
}  // namespace kubebeast
