#include <gtest/gtest.h>

#include <cstring>
#include <future>
#include <string>

#include "kubebeast_client.h"
#include "testing/fake_learner.h"
#include "testing/play_in_c.h"

namespace kubebeast::client {
namespace {

TEST(CApiTest, AProgramInCPlaysToItsPlannedEnd) {
  std::promise<std::vector<v1::Observations>> played;
  std::promise<std::optional<v1::Bye>> said;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome(7, false, "run", {"depth", "steps"}, {"{\"n\":0}"});
    played.set_value(stream.Answer(6, 3));
    said.set_value(stream.AnswerAll());
    return grpc::Status::OK;
  });
  EXPECT_EQ(play_in_c(learner.address().c_str(), 5), 15);
  const auto steps = played.get_future().get();
  ASSERT_EQ(steps.size(), 6U);
  ASSERT_EQ(steps.back().episodes_size(), 1);
  EXPECT_EQ(steps.back().episodes(0).episode_return(), 5);
  ASSERT_EQ(steps.back().episodes(0).info_size(), 2);
  EXPECT_EQ(steps.back().episodes(0).info(1), 5);
  const auto bye = said.get_future().get();
  ASSERT_TRUE(bye.has_value());
  EXPECT_EQ(bye->reason(), v1::Bye::REASON_TERMINATED);
  EXPECT_EQ(bye->detail(), "done");
}

TEST(CApiTest, AProgramThatIgnoresTheOptionsOfEpisodesIsRefused) {
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome(7, false, "run", {}, {"{\"n\":0}"});
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  kubebeast_leaf leaf;
  std::memset(&leaf, 0, sizeof(leaf));
  leaf.dtype = KUBEBEAST_FLOAT32;
  kubebeast_options options;
  std::memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.address = learner.address().c_str();
  options.observation = options.action = &leaf;
  options.num_observation = options.num_action = 1;
  kubebeast_stream* stream = nullptr;
  ASSERT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_OK) << kubebeast_message();
  const float number = 1;
  const void* leaves[] = {&number};
  EXPECT_EQ(kubebeast_start(stream, 0, leaves), KUBEBEAST_OK);
  EXPECT_EQ(kubebeast_wait(stream, 0, 60'000, nullptr), KUBEBEAST_REFUSED);
  EXPECT_NE(std::string(kubebeast_message()).find("kubebeast_next_options"), std::string::npos) << kubebeast_message();
  kubebeast_free(stream);
}

TEST(CApiTest, MisuseIsACodeAndAText) {
  kubebeast_stream* stream = nullptr;
  EXPECT_EQ(kubebeast_open(nullptr, &stream), KUBEBEAST_MISUSE);
  kubebeast_options options;
  std::memset(&options, 0, sizeof(options));
  EXPECT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_MISUSE);
  EXPECT_NE(std::string(kubebeast_message()).find("struct_size"), std::string::npos);
  options.struct_size = sizeof(options);
  EXPECT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_MISUSE);
  EXPECT_STREQ(kubebeast_message(), "address is empty");
  EXPECT_EQ(stream, nullptr);
  EXPECT_EQ(kubebeast_start(nullptr, 0, nullptr), KUBEBEAST_MISUSE);
  EXPECT_EQ(kubebeast_wait(nullptr, 0, 0, nullptr), KUBEBEAST_MISUSE);
  EXPECT_EQ(kubebeast_set_info(nullptr, 0, "depth", 1), KUBEBEAST_MISUSE);
  EXPECT_EQ(kubebeast_close(nullptr, KUBEBEAST_SHUTDOWN, nullptr, 0), KUBEBEAST_MISUSE);
  kubebeast_free(nullptr);
}

TEST(CApiTest, OptionsOfAProgramThatWasCompiledBeforeTheRunHaveNone) {
  kubebeast_leaf leaf;
  std::memset(&leaf, 0, sizeof(leaf));
  leaf.dtype = KUBEBEAST_FLOAT32;
  kubebeast_options options;
  std::memset(&options, 0, sizeof(options));
  options.struct_size = offsetof(kubebeast_options, run);
  const std::string too_long(254, 'r');
  options.run = too_long.c_str();
  options.address = "unix:/nobody-listens-here";
  options.observation = options.action = &leaf;
  options.num_observation = options.num_action = 1;
  kubebeast_stream* stream = nullptr;
  EXPECT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_OK) << kubebeast_message();
  kubebeast_free(stream);
  options.struct_size = sizeof(options);
  EXPECT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_MISUSE);
  EXPECT_STREQ(kubebeast_message(), "run: 254 bytes, at most 253");
}

TEST(CApiTest, EveryCodeHasAName) {
  EXPECT_STREQ(kubebeast_code_name(KUBEBEAST_OK), "ok");
  EXPECT_STREQ(kubebeast_code_name(KUBEBEAST_CLOSED), "closed");
  EXPECT_STREQ(kubebeast_code_name(KUBEBEAST_INTERNAL), "internal");
  EXPECT_STREQ(kubebeast_code_name(99), "unknown");
}

TEST(CApiTest, ASecondEnvironmentThatIsNoneIsMisuse) {
  kubebeast_leaf leaf;
  std::memset(&leaf, 0, sizeof(leaf));
  leaf.dtype = KUBEBEAST_FLOAT32;
  kubebeast_options options;
  std::memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.address = "unix:/nobody-listens-here";
  options.observation = options.action = &leaf;
  options.num_observation = options.num_action = 1;
  kubebeast_stream* stream = nullptr;
  ASSERT_EQ(kubebeast_open(&options, &stream), KUBEBEAST_OK) << kubebeast_message();
  const float number = 1;
  const void* leaves[] = {&number};
  EXPECT_EQ(kubebeast_start(stream, 1, leaves), KUBEBEAST_MISUSE);
  EXPECT_EQ(kubebeast_end(stream, 0, leaves, 0, 9), KUBEBEAST_MISUSE);
  EXPECT_EQ(kubebeast_start(stream, 0, leaves), KUBEBEAST_OK);
  EXPECT_EQ(kubebeast_observe(stream, 0, leaves, 0), KUBEBEAST_PENDING);
  EXPECT_EQ(kubebeast_wait(stream, 0, 0, nullptr), KUBEBEAST_PENDING);
  EXPECT_EQ(kubebeast_close(stream, KUBEBEAST_SHUTDOWN, nullptr, 60'000), KUBEBEAST_OK);
  EXPECT_EQ(kubebeast_start(stream, 0, leaves), KUBEBEAST_CLOSED);
  kubebeast_free(stream);
}

}  // namespace
}  // namespace kubebeast::client
