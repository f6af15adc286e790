#include "player.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "open_call.h"

namespace kubebeast::client::internal {

Player::Parts::Parts(Settings checked)
    : settings(std::move(checked)),
      lockstep(settings.spec.observation, settings.num_envs, settings.count_episodes),
      actions(settings.spec.action, settings.num_envs),
      redial(settings) {}

Player::Player(const Options& options) : log_(options.log) {
  auto settings = CheckOptions(options);
  const MutexLock lock(mutex_);
  if (!settings.ok()) {
    final_ = {Code::kMisuse, std::string(settings.status().message())};
    return;
  }
  parts_ = std::make_unique<Parts>(*std::move(settings));
  if (!options.progress_thread) return;
  progress_ = std::thread([this] {
    const MutexLock lock(mutex_);
    MoveUntil({Goal::Kind::kEnd}, Clock::time_point::max());
  });
}

Player::~Player() {
  if (progress_.joinable()) progress_.join();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

Status Player::Post(std::uint32_t env, Row row, std::span<const Frame> frames, float reward) {
  const MutexLock lock(mutex_);
  if (!final_.ok()) return final_;
  Status status = parts_->lockstep.Post(env, row, frames, reward);
  if (status.ok() && parts_->session != nullptr) parts_->session->TrySend();
  return status;
}

Status Player::Report(std::uint32_t env, double episode_return, std::uint64_t length) {
  const MutexLock lock(mutex_);
  return final_.ok() ? parts_->lockstep.Report(env, episode_return, length) : final_;
}

Status Player::SetInfo(std::uint32_t env, std::string_view key, double value) {
  const MutexLock lock(mutex_);
  return final_.ok() ? parts_->lockstep.SetInfo(env, key, value) : final_;
}

std::string Player::NextOptions(std::uint32_t env) {
  const MutexLock lock(mutex_);
  return parts_ == nullptr ? "" : parts_->lockstep.TakeOptions(env);
}

Reply Player::Wait(std::uint32_t env, Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  MoveUntil({Goal::Kind::kReply, env}, deadline);
  if (!final_.ok()) return {final_, {}};
  switch (const Code code = parts_->lockstep.reply(env)) {
    case Code::kOk:
      return {{}, parts_->lockstep.acts(env) ? Action(parts_->actions.of(env)) : Action()};
    case Code::kPending:
      return {{code, connected() ? "" : why_not_}, {}};
    case Code::kLost:
      return {{code, parts_->lockstep.is_outdated(env) ? kOutdated : why_not_}, {}};
    default:
      return {{code, "the environment has given no row"}, {}};
  }
}

Status Player::WaitUntilConnected(Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  MoveUntil({Goal::Kind::kConnected}, deadline);
  if (!final_.ok() || connected()) return final_;
  return {Code::kPending, why_not_};
}

Status Player::status() {
  const MutexLock lock(mutex_);
  return final_;
}

Status Player::Close(Reason reason, std::string_view detail, Clock::time_point deadline) {
  const MutexLock lock(mutex_);
  if (parts_ == nullptr) return {};
  if (final_.ok()) {
    final_ = {Code::kClosed, "the stream was closed"};
    said_bye_ = connected();
    if (parts_->session != nullptr) parts_->session->SayBye(static_cast<std::uint8_t>(reason), detail);
    changed_.NotifyAll();
  }
  const bool in_time = MoveUntil({Goal::Kind::kNoCall}, deadline);
  if (!in_time) {
    parts_->session->Cancel();
    MoveUntil({Goal::Kind::kNoCall}, Clock::time_point::max());
  }
  if (in_time || !said_bye_) return {};
  return {Code::kPending, "the learner has not ended the stream: it may not know"};
}

bool Player::Reached(const Goal& goal) const {
  switch (goal.kind) {
    case Goal::Kind::kReply:
      return !final_.ok() || parts_->lockstep.reply(goal.env) != Code::kPending;
    case Goal::Kind::kConnected:
      return !final_.ok() || connected();
    case Goal::Kind::kNoCall:
      return parts_->session == nullptr;
    case Goal::Kind::kEnd:
      return !final_.ok() && parts_->session == nullptr;
  }
  return true;
}

bool Player::MoveUntil(const Goal& goal, Clock::time_point deadline) {
  while (!Reached(goal)) {
    if (moving_) {
      if (deadline <= Clock::now()) return false;
      changed_.WaitUntil(mutex_, deadline);
      continue;
    }
    moving_ = true;
    const bool moved = Move(deadline);
    WriteLog();
    moving_ = false;
    changed_.NotifyAll();
    if (!moved) return Reached(goal);
  }
  return true;
}

bool Player::Move(Clock::time_point deadline) {
  if (parts_->session != nullptr) return TakeEvent(deadline);
  const Clock::time_point now = Clock::now();
  if (parts_->redial.due() <= now) {
    Dial();
    return true;
  }
  if (deadline <= now) return false;
  changed_.WaitUntil(mutex_, std::min(deadline, parts_->redial.due()));
  return true;
}

bool Player::TakeEvent(Clock::time_point deadline) {
  const Clock::time_point until = std::min(deadline, parts_->session->deadline());
  mutex_.Unlock();
  void* tag = nullptr;
  bool ok = false;
  const auto next = queue_.AsyncNext(&tag, &ok, ToGrpc(until));
  mutex_.Lock();
  if (next == grpc::CompletionQueue::GOT_EVENT) {
    const bool was_connected = connected();
    parts_->session->OnEvent(tag, ok);
    if (connected() && !was_connected) Log(absl::StrCat("joined run ", parts_->session->run_id()));
    if (parts_->session->over()) EndSession();
    return true;
  }
  if (parts_->session->deadline() <= Clock::now()) {
    parts_->session->OnDeadline();
    return true;
  }
  return deadline > Clock::now();
}

void Player::Dial() {
  auto call = OpenCall(parts_->settings, &queue_);
  if (!call.ok()) {
    NoteEnd(call.status(), Clock::duration::zero());
    return;
  }
  parts_->session = std::make_unique<Session>(parts_->settings, *std::move(call), &parts_->lockstep, &parts_->actions);
}

void Player::EndSession() {
  const std::unique_ptr<Session> session = std::move(parts_->session);
  if (!final_.ok()) return;
  if (session->refused()) {
    final_ = {Code::kRefused, std::string(session->end().message())};
    Log(absl::StrCat("the learner at ", parts_->settings.address, " refuses this program: ", final_.message));
    return;
  }
  NoteEnd(session->end(), session->played());
}

void Player::NoteEnd(const absl::Status& end, Clock::duration played) {
  why_not_ = absl::StrCat(absl::StatusCodeToString(end.code()), ": ", end.message());
  if (std::string line = parts_->redial.NoteEnd(end, played); !line.empty()) Log(std::move(line));
  parts_->lockstep.MarkLost();
}

bool Player::connected() const { return parts_->session != nullptr && parts_->session->welcomed(); }

void Player::Log(std::string line) {
  if (log_) lines_.push_back(std::move(line));
}

void Player::WriteLog() {
  if (lines_.empty()) return;
  const std::vector<std::string> lines = std::exchange(lines_, {});
  mutex_.Unlock();
  for (const std::string& line : lines) log_(line);
  mutex_.Lock();
}

}  // namespace kubebeast::client::internal
