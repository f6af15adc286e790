#include "access/newcomers.h"

#include "absl/strings/str_replace.h"

namespace kubebeast {

void Newcomers::Add(const std::string& peer, Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (late_at_.size() < kMaxConnections) late_at_.insert_or_assign(peer, now + patience_);
}

void Newcomers::OnCall(const std::string& peer) {
  // gRPC 1.51 writes the brackets of an IPv6 address so.
  const std::string plain = absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}});
  const MutexLock lock(mutex_);
  late_at_.erase(plain);
}

std::vector<std::string> Newcomers::TakeLate(Clock::time_point now) {
  std::vector<std::string> late;
  const MutexLock lock(mutex_);
  std::erase_if(late_at_, [&](const auto& entry) {
    if (now < entry.second) return false;
    late.push_back(entry.first);
    return true;
  });
  return late;
}

}  // namespace kubebeast
