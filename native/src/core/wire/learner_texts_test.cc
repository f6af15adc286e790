#include "wire/learner_texts.h"

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

TEST(LearnerTextsTest, OptionsAreABoundedObjectInPrintableAscii) {
  EXPECT_TRUE(ValidateOptions(R"({"rooms":3})").ok());
  EXPECT_TRUE(ValidateOptions("{}").ok());
  EXPECT_TRUE(ValidateOptions("{" + std::string(kMaxOptionsCharacters - 2, ' ') + "}").ok());
  EXPECT_EQ(ValidateOptions("{" + std::string(kMaxOptionsCharacters - 1, ' ') + "}").message(),
            "episode_options: 4097 characters, expected at most 4096");
  for (const std::string text : {"", "{", "[1]", "{\"a\":\"\n\"}", "{\"\xc3\xa4\":1}"}) {
    const absl::Status refused = ValidateOptions(text);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_NE(refused.message().find("expected a JSON object in printable ASCII"), absl::string_view::npos) << refused;
  }
}

}  // namespace
}  // namespace kubebeast
