#include "stream/pool_context.h"

#include "absl/strings/str_cat.h"

namespace kubebeast {
namespace {

void AddRepeated(PoolContext& pool, StreamEvent event) {
  const std::string what = absl::StrCat(HostOfPeer(event.peer), " ", event.reason);
  const std::size_t count = pool.repetitions.Count(what, Clock::now());
  if (count == 0) return;
  if (count > 1) absl::StrAppend(&event.detail, " (", count, " times since the last line about it)");
  pool.events.Add(std::move(event));
}

}  // namespace

void PoolContext::AddOffence(const std::string& peer) {
  const Clock::time_point now = Clock::now();
  offences.Add(HostOfPeer(peer), now);
  if (!HostOfPeer(peer).empty()) all_offences.Add("all", now);
  door.ChargeRefusal(peer);
}

bool PoolContext::Blocks(const std::string& peer) {
  const Clock::time_point now = Clock::now();
  return offences.Blocks(HostOfPeer(peer), now) || all_offences.Blocks("all", now);
}

void PoolContext::AddRefusal(const std::string& peer, const absl::Status& status) {
  if (absl::IsUnauthenticated(status)) AddOffence(peer);
  events.Add({.kind = StreamEvent::Kind::kRefused,
              .peer = peer,
              .reason = absl::StatusCodeToString(status.code()),
              .detail = std::string(status.message())});
}

void PoolContext::AddRefusedConnection(const std::string& peer, const ConnectionRefusal& refusal) {
  const bool is_rare = refusal.offends == Offends::kNever || (refusal.offends == Offends::kBeyondARate &&
                                                              short_connections.Take(HostOfPeer(peer), Clock::now()));
  if (!is_rare) AddOffence(peer);
  if (refusal != connection_refusal::kClosed) {
    AddRepeated(*this, {.kind = StreamEvent::Kind::kConnectionRefused,
                        .peer = peer,
                        .reason = std::string(refusal.name),
                        .detail = std::string(refusal.explanation)});
  }
  ++(*stats.*refusal.counter);  // last: a reader of the count finds the event
}

void PoolContext::AddAcceptFailure(const absl::Status& status) {
  AddRepeated(*this, {.kind = StreamEvent::Kind::kAcceptFailed,
                      .reason = absl::StatusCodeToString(status.code()),
                      .detail = std::string(status.message())});
}

}  // namespace kubebeast
