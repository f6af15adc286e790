#include "access/offences.h"

#include <algorithm>

#include "absl/strings/str_replace.h"

namespace kubebeast {

void Offences::Add(const std::string& host, Clock::time_point now) {
  if (allowed_ == 0 || host.empty()) return;
  const MutexLock lock(mutex_);
  if (forgiven_at_.size() >= kMaxHosts && !forgiven_at_.contains(host)) DropForgiven(now);
  if (forgiven_at_.size() >= kMaxHosts && !forgiven_at_.contains(host)) return;
  Clock::time_point& forgiven_at = forgiven_at_[host];
  // Bounds the time after which a host is let in again, however many offenses it has had.
  const auto longest = forgiven_every_ * static_cast<std::int64_t>(2 * allowed_);
  forgiven_at = std::min(std::max(forgiven_at, now) + forgiven_every_, now + longest);
}

bool Offences::Has(const std::string& host, Clock::time_point now) {
  const MutexLock lock(mutex_);
  const auto entry = forgiven_at_.find(host);
  return entry != forgiven_at_.end() && entry->second > now;
}

bool Offences::Blocks(const std::string& host, Clock::time_point now) {
  if (allowed_ == 0 || host.empty()) return false;
  const MutexLock lock(mutex_);
  const auto entry = forgiven_at_.find(host);
  return entry != forgiven_at_.end() && entry->second - now > forgiven_every_ * static_cast<std::int64_t>(allowed_);
}

void Offences::DropForgiven(Clock::time_point now) {
  std::erase_if(forgiven_at_, [now](const auto& entry) { return entry.second <= now; });
}

std::string HostOfPeer(std::string_view peer) {
  if (!peer.starts_with("ipv4:") && !peer.starts_with("ipv6:")) return {};
  const std::string_view place = peer.substr(5);
  return absl::StrReplaceAll(std::string(place.substr(0, place.rfind(':'))),
                             {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}});
}

}  // namespace kubebeast
