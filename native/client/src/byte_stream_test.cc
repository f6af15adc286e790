// Tests of the call of a session that is implemented elsewhere.
#include "byte_stream.h"

#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "channel.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

using Received = ByteStream::Received;

grpc::Slice Text(const v1::ActRequest& request) { return {request.SerializeAsString()}; }

v1::ActRequest MakeBye(const std::string& detail) {
  v1::ActRequest request;
  request.mutable_bye()->set_detail(detail);
  return request;
}

std::unique_ptr<ByteStream> Open(const std::string& address) {
  return std::make_unique<ByteStream>(OpenChannel(address, {}, ""), std::nullopt);
}

Received Await(ByteStream& stream) { return stream.Receive(Clock::now() + kPatience); }

v1::ActResponse Message(ByteStream& stream) {
  grpc::Slice whole;
  v1::ActResponse response;
  EXPECT_TRUE(stream.message()->DumpToSingleSlice(&whole).ok());
  EXPECT_TRUE(response.ParseFromArray(whole.begin(), static_cast<int>(whole.size())));
  return response;
}

TEST(ByteStreamTest, MessagesArriveInOrderAndWhatFollowsTheLastIsDropped) {
  std::promise<std::string> said;
  const FakeLearner learner([&](FakeStream& stream) {
    std::string details;
    while (const auto request = stream.Read()) details += request->bye().detail();
    said.set_value(details);
    return grpc::Status::OK;
  });
  const auto stream = Open(learner.address());
  for (const char* detail : {"a", "b", "c"}) stream->Send(Text(MakeBye(detail)));
  stream->Send(Text(MakeBye("d")), true);
  stream->Send(Text(MakeBye("e")));
  EXPECT_EQ(Await(*stream), Received::kEnd);
  EXPECT_TRUE(stream->status().ok());
  EXPECT_EQ(said.get_future().get(), "abcd");
  EXPECT_EQ(Await(*stream), Received::kEnd);
}

TEST(ByteStreamTest, AnAnswerComesToWhoeverReceives) {
  const FakeLearner learner([](FakeStream& stream) {
    stream.Welcome();
    stream.AnswerAll();
    return grpc::Status(grpc::StatusCode::OUT_OF_RANGE, "the run is over");
  });
  const auto stream = Open(learner.address());
  v1::ActRequest request;
  request.mutable_hello()->set_num_envs(1);
  stream->Send(Text(request));
  ASSERT_EQ(Await(*stream), Received::kMessage);
  EXPECT_TRUE(Message(*stream).has_welcome());
  for (std::uint64_t step = 0; step < 3; ++step) {
    request.mutable_observations()->set_step(step);
    stream->Send(Text(request));
    ASSERT_EQ(Await(*stream), Received::kMessage);
    EXPECT_EQ(Message(*stream).actions().step(), step);
  }
  stream->Send(Text(MakeBye("")), true);
  EXPECT_EQ(Await(*stream), Received::kEnd);
  EXPECT_EQ(stream->status().error_code(), grpc::StatusCode::OUT_OF_RANGE);
  EXPECT_EQ(stream->status().error_message(), "the run is over");
}

TEST(ByteStreamTest, ADeadlineEndsTheWaitAndNotTheCall) {
  std::promise<void> may_welcome;
  const FakeLearner learner([&](FakeStream& stream) {
    may_welcome.get_future().wait();
    stream.Welcome();
    return grpc::Status::OK;
  });
  const auto stream = Open(learner.address());
  v1::ActRequest hello;
  hello.mutable_hello()->set_num_envs(1);
  stream->Send(Text(hello));
  EXPECT_EQ(stream->Receive(Clock::now()), Received::kNothing);
  EXPECT_EQ(stream->Receive(Clock::now() + std::chrono::milliseconds(5)), Received::kNothing);
  may_welcome.set_value();
  EXPECT_EQ(Await(*stream), Received::kMessage);
  EXPECT_EQ(Await(*stream), Received::kEnd);
}

TEST(ByteStreamTest, AnotherThreadMaySendAndCancelWhileOneReceives) {
  std::promise<void> has_said;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.AnswerAll();
    has_said.set_value();
    stream.Read();
    return grpc::Status::OK;
  });
  const auto stream = Open(learner.address());
  std::thread receiver([&] { EXPECT_EQ(Await(*stream), Received::kEnd); });
  stream->Send(Text(MakeBye("")));
  has_said.get_future().wait();
  stream->Cancel();
  receiver.join();
  EXPECT_EQ(stream->status().error_code(), grpc::StatusCode::CANCELLED);
}

TEST(ByteStreamTest, OneThatIsNotTakenFromEndsAtOnce) {
  std::promise<bool> was_cancelled;
  const FakeLearner learner([&](FakeStream& stream) {
    stream.Welcome();
    stream.Read();
    was_cancelled.set_value(stream.context().IsCancelled());
    return grpc::Status::OK;
  });
  auto stream = Open(learner.address());
  v1::ActRequest hello;
  hello.mutable_hello()->set_num_envs(1);
  stream->Send(Text(hello));
  ASSERT_EQ(Await(*stream), Received::kMessage);
  stream.reset();
  EXPECT_TRUE(was_cancelled.get_future().get());
}

TEST(ByteStreamTest, NobodyAtTheAddressIsAnEnd) {
  const auto stream = Open("unix:/nobody/listens");
  stream->Send(Text(MakeBye("")));
  EXPECT_EQ(Await(*stream), Received::kEnd);
  EXPECT_EQ(stream->status().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace kubebeast::client
