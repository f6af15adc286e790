#include "options/stream_options.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace kubebeast {
namespace {

using Flags = std::vector<std::uint8_t>;

ObservationRows Rows(const Flags& is_first, const Flags& terminated, const Flags& truncated) {
  ObservationRows rows;
  rows.rewards.resize(is_first.size());
  rows.is_first = is_first;
  rows.terminated = terminated;
  rows.truncated = truncated;
  return rows;
}

std::vector<std::pair<std::uint32_t, std::string>> Plain(const std::vector<EpisodeOptions>& sent) {
  std::vector<std::pair<std::uint32_t, std::string>> plain;
  for (const EpisodeOptions& entry : sent) plain.emplace_back(entry.env, *entry.options);
  return plain;
}

using Sent = std::vector<std::pair<std::uint32_t, std::string>>;

class StreamOptionsTest : public testing::Test {
 protected:
  std::shared_ptr<Stats> stats_ = std::make_shared<Stats>();
  OptionsQueue queue_{stats_};
  StreamOptions options_{queue_, *stats_, 3};
};

TEST_F(StreamOptionsTest, EachEnvironmentBeginsWithOptionsOfItsOwn) {
  ASSERT_TRUE(queue_.Push({"{\"n\":0}", "{\"n\":1}", "{\"n\":2}"}).ok());
  EXPECT_EQ(Plain(options_.Begin()), (Sent{{0, "{\"n\":0}"}, {1, "{\"n\":1}"}, {2, "{\"n\":2}"}}));
  EXPECT_EQ(options_.of(1), "{\"n\":1}");
  EXPECT_EQ(stats_->options_sent, 3);
  EXPECT_EQ(stats_->options_repeated, 0);
}

TEST_F(StreamOptionsTest, EnvironmentsBeyondTheQueueBeginWithTheNewestOptions) {
  ASSERT_TRUE(queue_.Push({"{\"n\":0}", "{\"n\":1}"}).ok());
  EXPECT_EQ(Plain(options_.Begin()), (Sent{{0, "{\"n\":0}"}, {1, "{\"n\":1}"}, {2, "{\"n\":1}"}}));
  EXPECT_EQ(stats_->options_repeated, 1);
}

TEST_F(StreamOptionsTest, NothingIsSentIfTheQueueNeverHadAny) {
  EXPECT_TRUE(options_.Begin().empty());
  EXPECT_EQ(options_.of(0), "");
  EXPECT_EQ(stats_->options_sent, 0);
}

TEST_F(StreamOptionsTest, FinalAndInterruptedRowsAreFollowedByFurtherOptions) {
  ASSERT_TRUE(queue_.Push({"{\"n\":0}", "{\"n\":0}", "{\"n\":0}", "{\"n\":1}", "{\"n\":2}"}).ok());
  options_.Begin();
  options_.Note(Rows({0, 0, 0}, {1, 0, 0}, {0, 0, 1}));
  EXPECT_EQ(options_.of(0), "{\"n\":0}") << "those of the episode that these rows end";
  EXPECT_EQ(Plain(options_.Next()), (Sent{{0, "{\"n\":1}"}, {2, "{\"n\":2}"}}));
  EXPECT_EQ(options_.of(0), "{\"n\":1}");
  options_.Note(Rows({1, 0, 1}, {0, 0, 0}, {0, 0, 0}));
  EXPECT_TRUE(options_.Next().empty());
}

TEST_F(StreamOptionsTest, AbsentRowsEndNoEpisode) {
  ASSERT_TRUE(queue_.Push({"{\"n\":0}", "{\"n\":0}", "{\"n\":0}", "{\"n\":1}"}).ok());
  options_.Begin();
  options_.Note(Rows({1, 0, 0}, {0, 0, 0}, {1, 0, 0}));
  EXPECT_TRUE(options_.Next().empty());
}

TEST_F(StreamOptionsTest, AnEnvironmentKeepsItsOptionsWhileTheQueueIsEmpty) {
  ASSERT_TRUE(queue_.Push({"{\"n\":0}", "{\"n\":1}", "{\"n\":2}"}).ok());
  options_.Begin();
  options_.Note(Rows({0, 0, 0}, {1, 1, 0}, {0, 0, 0}));
  EXPECT_TRUE(options_.Next().empty());
  EXPECT_EQ(options_.of(1), "{\"n\":1}");
  EXPECT_EQ(stats_->options_repeated, 2);
}

}  // namespace
}  // namespace kubebeast
