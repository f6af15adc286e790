// Fuzz target: the state machine of streams. One input is one life of a pool: dubious streams come and go beside an
// honest one, which must not be affected, and the learner does its work in any order.
#include <grpc/grpc.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "dubious_stream.h"
#include "honest_stream.h"
#include "learner.h"
#include "pool_model.h"
#include "script.h"
#include "spoil.h"
#include "stream/pool_context.h"

namespace kubebeast::fuzz {
namespace {

constexpr std::size_t kMaxOperations = 64;
constexpr std::size_t kMaxStreams = 6;
constexpr std::uint32_t kMaxEnvs = 12;
constexpr std::uint32_t kHonestEnvs = 2;
constexpr std::size_t kNumLogits = 3;
constexpr std::size_t kCoreStateSize = 2;

EnvSpec Spec() {
  return {.env_id = "Fuzz-v0",
          .observation = {{.path = "image", .dtype = DType::kUint8, .shape = {2, 3}, .frame_stack = 3},
                          {.path = "door", .dtype = DType::kBool},
                          {.path = "room", .dtype = DType::kInt16, .num_categories = 5}},
          .action = {{.path = "", .dtype = DType::kInt64}}};
}

PoolOptions Options(Script& script) {
  PoolOptions options;
  options.run_id = "fuzz";
  options.unroll_length = 1 + script.Below(4);
  options.batch_size = 1 + script.Below(3);
  options.max_queued_rollouts = options.batch_size + script.Below(4);
  const std::size_t choice = script.Below(6);
  options.min_partial_steps = 1 + choice % 3;
  options.keep_surplus = choice >= 3;
  options.episode_options = choice % 2 == 1;
  // With a timeout of 0 a batch is due as soon as a row waits: runs do not depend on the clock.
  options.inference = {.min_rows = 1, .max_rows = 1 + script.Below(8), .timeout = std::chrono::milliseconds(0)};
  options.max_streams = kMaxStreams;
  options.max_envs = kMaxEnvs;
  options.wire = {.max_message_bytes = 4096, .max_envs_per_stream = kMaxEnvs, .num_info = kNumInfo};
  return options;
}

class Life {
 public:
  explicit Life(Script script)
      : script_(script),
        pool_(std::make_shared<PoolContext>(Options(script_))),
        learner_(pool_),
        honest_(std::make_unique<HonestStream>(pool_, spec_, kHonestEnvs)) {
    if (script_.Below(4) > 0) Open();
    Check();
  }

  void Run() {
    for (std::size_t i = 0; i < kMaxOperations && !script_.done(); ++i) {
      Operate();
      Check();
    }
    if (!closed_) CheckHonestStream();
    TearDown();
    CheckEmptyPool(*pool_);
    Require(pool_.use_count() == 2, "only the learner refers to the pool");
  }

 private:
  // Operations with two cases are chosen more often.
  void Operate() {
    switch (script_.Below(18)) {
      case 0:
      case 1:
        if (dubious_.size() < 2 * kMaxStreams) dubious_.push_back(std::make_unique<DubiousStream>(pool_));
        return;
      case 2:
      case 3:
        return WithStream([this](DubiousStream& stream) { stream.SayHello(spec_, script_); });
      case 4:
        return WithStream([this](DubiousStream& stream) { stream.Step(script_); });
      case 5:
      case 6:
        return WithStream([this](DubiousStream& stream) { Exchange(stream); });
      case 7:
        return WithStream([this](DubiousStream& stream) { stream.SayBye(script_); });
      case 8:
        return WithStream([](DubiousStream& stream) { stream.transport().FailRead(); });
      case 9:
        return WithStream([this](DubiousStream& stream) { stream.transport().CompleteWrite(script_.Below(4) != 1); });
      case 10:
        return Release();
      case 11:
        return CheckDeadlines();
      case 12:
        return Open();
      case 13:
        learner_.TakeInference();
        return;
      case 14:
        return WithBatch([this](std::size_t i) { Answer(i); });
      case 15:
        if (script_.Below(2) == 0) return WithStream([this](DubiousStream& stream) { DropStep(stream); });
        return WithBatch([this](std::size_t i) { Drop(i); });
      case 16:
        learner_.TakeRollouts(static_cast<std::int64_t>(script_.Below(8)));
        return;
      default:
        return Lead();
    }
  }

  // Runs one of the learner's rare operations.
  void Lead() {
    const std::size_t choice = script_.Below(16);
    if (choice == 14) Drain();
    if (choice == 15) Close();
    if (choice < 14) learner_.Publish();
    if (choice < 7) Require(pool_->episode_options.Push({R"({"n":1})"}).ok(), "options are an object");
  }

  template <typename Action>
  void WithStream(Action action) {
    if (!dubious_.empty()) action(*dubious_[script_.Below(dubious_.size())]);
  }

  template <typename Action>
  void WithBatch(Action action) {
    if (learner_.num_taken() > 0) action(script_.Below(learner_.num_taken()));
  }

  // Runs one step of an env-server that waits for its replies, and the answer to it.
  void Exchange(DubiousStream& stream) {
    stream.transport().CompleteWrite(true);
    stream.Step(script_);
    AnswerAll();
  }

  // Does the same, but the learner drops the batch: only this stream's, as the others are answered before.
  void DropStep(DubiousStream& stream) {
    stream.transport().CompleteWrite(true);
    AnswerAll();
    stream.Step(script_);
    if (learner_.TakeInference()) Drop(learner_.num_taken() - 1);
  }

  // Sends the last event of a stream that has ended.
  void Release() {
    const std::size_t choice = script_.Byte();
    if (dubious_.empty()) return;
    const auto stream = dubious_.begin() + static_cast<std::ptrdiff_t>(choice % dubious_.size());
    if (!(*stream)->transport().finished()) return;
    (*stream)->transport().Done(choice >= 128);
    dubious_.erase(stream);
  }

  void CheckDeadlines() {
    for (const auto& stream : pool_->registry.streams()) stream->CheckDeadline(Clock::time_point::max());
  }

  void Open() {
    if (!pool_->registry.Open(pool_->options.unroll_length, kNumLogits, kCoreStateSize).ok()) return;
    for (const auto& stream : pool_->registry.streams()) stream->OnPoolOpen();
  }

  void Drain() {
    draining_ = true;
    pool_->registry.Drain(false);
  }

  void Close() {
    closed_ = draining_ = true;
    pool_->registry.Close();
    pool_->batcher.Close();
    pool_->rollouts.Close();
    pool_->episode_options.Close();
    for (const auto& stream : pool_->registry.streams()) stream->Close();
  }

  void Answer(std::size_t i) {
    if (!closed_) honest_->CheckRows(learner_.taken(i));
    learner_.Answer(i);
  }

  void AnswerAll() {
    while (learner_.TakeInference()) {
    }
    while (learner_.num_taken() > 0) Answer(0);
  }

  // Drops a batch, but answers it if it has rows of the honest stream, which the drop would end.
  void Drop(std::size_t i) {
    if (!closed_ && honest_->CheckRows(learner_.taken(i))) return Answer(i);
    learner_.Drop(i);
  }

  void Check() {
    if (!closed_) honest_->Continue(learner_);
    std::size_t num_streams = closed_ ? 0 : 1;
    std::size_t num_envs = closed_ ? 0 : kHonestEnvs;
    for (const auto& dubious : dubious_) {
      if (dubious->transport().finished() || !dubious->transport().stream().accepted()) continue;
      ++num_streams;
      num_envs += dubious->transport().stream().slots().size();
    }
    CheckPool(*pool_, num_streams, num_envs);
  }

  // Checks that the honest stream completes at least one more unroll, no matter how the others behaved.
  void CheckHonestStream() {
    Open();
    const std::uint64_t goal = honest_->num_answers() + pool_->options.unroll_length + 2;
    for (std::size_t i = 0; honest_->num_answers() < goal; ++i) {
      Require(i < 8 * kMaxEnvs, "an honest stream is not held back for ever");
      AnswerAll();
      learner_.TakeRollouts(0);
      Check();
      CheckDeadlines();  // ends silent streams: the honest one waits for their places
    }
  }

  void TearDown() {
    const bool close_first = script_.Below(2) == 1;
    const bool drop_first = script_.Below(2) == 1;
    if (close_first) Close();
    honest_->transport().FailRead();
    for (const auto& stream : dubious_) {
      stream->transport().FailRead();
      Require(stream->transport().finished(), "a stream ends with its peer");
    }
    if (drop_first) DropAll();
    honest_->transport().Done(script_.Below(2) == 1);
    honest_.reset();
    while (!dubious_.empty()) Release();
    DropAll();
    if (!draining_) CheckSlots();
    Close();
  }

  void DropAll() {
    while (learner_.num_taken() > 0) learner_.Drop(0);
  }

  // Checks that every slot is free: one stream can have them all.
  void CheckSlots() {
    HonestStream everything(pool_, spec_, kMaxEnvs);
    everything.transport().FailRead();
    everything.transport().Done(false);
  }

  Script script_;
  const EnvSpec spec_ = Spec();
  const std::shared_ptr<PoolContext> pool_;
  Learner learner_;
  std::unique_ptr<HonestStream> honest_;
  std::vector<std::unique_ptr<DubiousStream>> dubious_;
  bool draining_ = false;
  bool closed_ = false;
};

}  // namespace
}  // namespace kubebeast::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  grpc_init();
  kubebeast::fuzz::SilenceProtobuf();
  std::atexit(kubebeast::fuzz::CheckReached);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  kubebeast::fuzz::Life({data, size}).Run();
  return 0;
}
