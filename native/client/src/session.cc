#include "session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "wire/learner_texts.h"

namespace kubebeast::client {
namespace {

constexpr std::uint32_t kFailedByeMinor = 1;

absl::Status ToAbsl(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

// Returns true for codes with which the learner refuses these environments for good.
bool IsFinal(absl::StatusCode code) {
  return code == absl::StatusCode::kFailedPrecondition || code == absl::StatusCode::kInvalidArgument ||
         code == absl::StatusCode::kUnauthenticated || code == absl::StatusCode::kPermissionDenied ||
         code == absl::StatusCode::kUnimplemented;
}

}  // namespace

Session::Session(const Settings& settings, std::unique_ptr<Call> call, Lockstep* lockstep, ActionMemory* actions)
    : settings_(settings),
      call_(std::move(call)),
      lockstep_(*lockstep),
      actions_(*actions),
      deadline_(Clock::now() + settings.welcome_timeout) {}

void Session::OnEvent(void* tag, bool ok) {
  switch (call_->Take(tag)) {
    case Call::Event::kStarted:
      OnStarted(ok);
      return;
    case Call::Event::kRead:
      OnRead(ok);
      return;
    case Call::Event::kWritten:
      OnWritten(ok);
      return;
    case Call::Event::kFinished:
      finished_ = true;
      return;
  }
}

void Session::OnStarted(bool ok) {
  if (finishing_) return;
  if (!ok) {
    finishing_ = true;
    call_->Finish();
    return;
  }
  writing_ = true;
  call_->Write(EncodeHello(settings_));
  Read();
}

void Session::OnWritten(bool ok) {
  writing_ = false;
  if (!ok || finishing_) return;  // if it failed, the read returns the reason
  if (bye_.has_value()) {
    writing_ = true;
    call_->WriteLast(*bye_);
    bye_.reset();
    return;
  }
  TrySend();
}

void Session::OnRead(bool ok) {
  reading_ = false;
  if (finishing_) return;
  if (!ok) {
    finishing_ = true;
    call_->Finish();
    return;
  }
  if (!ending_) {
    const auto response = DecodeResponse(call_->message(), &actions_);
    absl::Status status = response.status();
    if (status.ok()) {
      const auto* welcome = std::get_if<Welcome>(&*response);
      status = welcome != nullptr ? OnWelcome(*welcome) : OnActions(std::get<Actions>(*response));
    }
    if (!status.ok()) GiveUp(status);
  }
  if (finishing_) return;
  if (ending_) Read();
  TrySend();
}

void Session::Read() {
  if (!std::exchange(reading_, true)) call_->Read();
}

absl::Status Session::OnWelcome(const Welcome& welcome) {
  if (welcomed()) return absl::InvalidArgumentError("a second welcome");
  if (welcome.protocol_version != kProtocolVersion) {
    GiveUp(absl::FailedPreconditionError(
               absl::StrCat("welcome.protocol_version is ", welcome.protocol_version, ", expected ", kProtocolVersion)),
           true);
    return absl::OkStatus();
  }
  if (!settings_.run.empty() && welcome.run_id != settings_.run) {  // from a learner that ignores Hello.run
    GiveUp(absl::FailedPreconditionError(absl::StrCat("welcome.run_id is \"", absl::Utf8SafeCHexEscape(welcome.run_id),
                                                      "\", expected \"", settings_.run, "\"")),
           true);
    return absl::OkStatus();
  }
  if (absl::Status status = ValidateLogInfo(welcome.log_info); !status.ok()) return status;
  std::vector<Compression> chosen;
  for (std::size_t i = 0; i < welcome.compression.size() && i < settings_.offered.size(); ++i) {
    const auto choice = static_cast<Compression>(welcome.compression[i]);
    if (choice == settings_.offered[i] || choice == Compression::kNone) chosen.push_back(choice);
  }
  if (chosen.size() != settings_.offered.size() || chosen.size() != welcome.compression.size()) {
    return absl::InvalidArgumentError("welcome.compression is not what was offered");
  }
  lockstep_.BeginOptions(welcome.episode_options);
  run_id_ = welcome.run_id;
  learner_minor_ = welcome.protocol_minor;
  encoder_ = std::make_unique<ObservationsEncoder>(settings_.spec.observation, std::move(chosen), learner_minor_,
                                                   welcome.log_info);
  welcomed_at_ = Clock::now();
  deadline_ = Clock::time_point::max();
  return absl::OkStatus();
}

absl::Status Session::OnActions(const Actions& actions) {
  if (!awaiting_actions_) return absl::InvalidArgumentError("actions that answer nothing");
  if (actions.step != step_) {
    return absl::InvalidArgumentError(absl::StrCat("actions.step is ", actions.step, ", expected ", step_));
  }
  awaiting_actions_ = false;
  lockstep_.SetOptions(actions.episode_options);
  ++step_;
  traced_ = actions.traced;
  if (traced_) acted_at_ = Clock::now();
  lockstep_.MarkAnswered();
  return absl::OkStatus();
}

void Session::TrySend() {
  if (!welcomed() || awaiting_actions_ || writing_ || ending_ || finishing_ || !lockstep_.complete()) return;
  if (lockstep_.minor() > learner_minor_) {
    GiveUp(absl::FailedPreconditionError(absl::StrCat("the learner's protocol version ", kProtocolVersion, ".",
                                                      learner_minor_, " does not know these rows, which takes ",
                                                      kProtocolVersion, ".", lockstep_.minor())),
           true);
    return;
  }
  if (lockstep_.ignores_options()) {
    GiveUp(absl::FailedPreconditionError(
               "this run chooses the level of each episode (--curriculum), and the program does not take it: call "
               "NextOptions (kubebeast_next_options) before each Start, after the reply to the row before"),
           true);
    return;
  }
  writing_ = true;
  awaiting_actions_ = true;
  call_->Write(encoder_->Encode(step_, lockstep_.rows(), EnvMicroseconds()));
  // Read only now, so that gRPC's frames for it go out together with the step.
  Read();
  lockstep_.MarkSent();
}

std::uint64_t Session::EnvMicroseconds() const {
  if (!traced_) return 0;
  const auto passed = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - acted_at_);
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(passed.count()));
}

void Session::SayBye(std::uint8_t reason, std::string_view detail) {
  if (std::exchange(ending_, true)) return;
  if (!welcomed()) {
    Cancel();
    return;
  }
  const bool knows =
      reason != static_cast<std::uint8_t>(Reason::kEnvironmentFailed) || learner_minor_ >= kFailedByeMinor;
  const grpc::Slice bye = EncodeBye(knows ? reason : 0, detail);
  if (std::exchange(writing_, true)) {
    bye_ = bye;
  } else {
    call_->WriteLast(bye);
  }
  Read();
}

void Session::OnDeadline() {
  GiveUp(absl::DeadlineExceededError(absl::StrCat("no Welcome within ", settings_.welcome_timeout.count(), " ms")));
}

void Session::Cancel() { GiveUp(absl::CancelledError("closed")); }

void Session::GiveUp(const absl::Status& reason, bool refused) {
  deadline_ = Clock::time_point::max();
  if (!given_up_.has_value()) {
    given_up_ = reason;
    refused_ = refused;
  }
  call_->Cancel();
  if (!std::exchange(finishing_, true)) call_->Finish();
}

absl::Status Session::end() const { return given_up_.value_or(ToAbsl(call_->status())); }

bool Session::refused() const { return refused_ || (!given_up_.has_value() && IsFinal(end().code())); }

Clock::duration Session::played() const {
  return welcomed_at_.has_value() ? Clock::now() - *welcomed_at_ : Clock::duration::zero();
}

}  // namespace kubebeast::client
