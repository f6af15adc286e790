// Tests of a learner that breaks the contract.
#include <gtest/gtest.h>

#include <atomic>

#include "kubebeast/client.h"
#include "testing/fake_learner.h"

namespace kubebeast::client {
namespace {

// A violation by the learner. Each one ends its stream, and the next stream is played.
struct Breach {
  const char* name;
  void (*commit)(FakeStream& stream);
};

class BreachTest : public testing::TestWithParam<Breach> {};

TEST_P(BreachTest, EndsTheStreamAndTheNextOneIsPlayed) {
  std::atomic<int> num_streams = 0;
  const FakeLearner learner([&](FakeStream& stream) {
    if (num_streams++ == 0) {
      GetParam().commit(stream);
      while (stream.Read().has_value()) {
      }
      return grpc::Status::OK;  // not received: the client has ended the stream
    }
    stream.Welcome();
    stream.AnswerAll();
    return grpc::Status::OK;
  });
  Stream stream(SmallOptions(learner.address()));
  Environment env = stream.environment(0);
  Reply reply = env.Start(kNumbers).Wait(kPatience);
  for (int step = 0; step < 5 && (reply.ok() || reply.lost()); ++step) {
    reply = (reply.ok() ? env.Observe(kNumbers, 0) : env.Start(kNumbers)).Wait(kPatience);
  }
  EXPECT_TRUE(reply.ok() || reply.lost()) << reply.status.message;
  EXPECT_EQ(num_streams, 2);
}

v1::ActResponse NoPayload() { return {}; }

INSTANTIATE_TEST_SUITE_P(
    Learner, BreachTest,
    testing::Values(Breach{"NothingInAMessage", [](FakeStream& stream) { stream.Write(NoPayload()); }},
                    Breach{"ActionsBeforeTheWelcome", [](FakeStream& stream) { stream.Write(stream.Actions(0)); }},
                    Breach{"AKeyOfInfoWithALineBreak",
                           [](FakeStream& stream) { stream.Welcome(6, false, "run", {"a\nb"}); }},
                    Breach{"ASecondWelcome",
                           [](FakeStream& stream) {
                             stream.Welcome();
                             v1::ActResponse again;
                             again.mutable_welcome()->set_protocol_version(1);
                             stream.Read();
                             stream.Write(again);
                           }},
                    Breach{"ACompressionThatWasNotOffered",
                           [](FakeStream& stream) {
                             stream.Read();
                             v1::ActResponse welcome;
                             welcome.mutable_welcome()->set_protocol_version(1);
                             welcome.mutable_welcome()->add_compression(v1::COMPRESSION_LZ4);
                             stream.Write(welcome);
                           }},
                    Breach{"NoCompressionAtAll",
                           [](FakeStream& stream) {
                             stream.Read();
                             v1::ActResponse welcome;
                             welcome.mutable_welcome()->set_protocol_version(1);
                             stream.Write(welcome);
                           }},
                    Breach{"AnotherStep",
                           [](FakeStream& stream) {
                             stream.Welcome();
                             stream.Read();
                             stream.Write(stream.Actions(1));
                           }},
                    Breach{"ActionsTwice",
                           [](FakeStream& stream) {
                             stream.Welcome();
                             stream.Read();
                             stream.Write(stream.Actions(0));
                             stream.Write(stream.Actions(0));
                           }},
                    Breach{"ACategoryOutOfRange",
                           [](FakeStream& stream) {
                             stream.Welcome();
                             stream.Read();
                             stream.Write(stream.Actions(0, 4));
                           }}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kubebeast::client
