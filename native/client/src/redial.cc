#include "redial.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace kubebeast::client {
namespace {

using std::chrono::milliseconds;

constexpr unsigned kMaxDoublings = 10;
// A stream that was played for this time makes the next wait a short one; a Welcome alone does not.
constexpr std::chrono::seconds kSteady{5};
// This many equal failures in a row are no accident.
constexpr unsigned kHintAfter = 3;

std::string Text(const absl::Status& status) {
  return absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
}

}  // namespace

std::string Redial::NoteEnd(const absl::Status& end, Clock::duration played) {
  if (played >= kSteady) num_delays_ = 0;
  due_ = Clock::now() + NextDelay();
  const std::string reason = Text(end);
  if (played == Clock::duration::zero()) return NoteFailure(reason);
  num_failures_ = 0;
  num_hints_ = 0;
  return absl::StrCat("lost the learner at ", settings_.address, ": ", reason);
}

std::string Redial::NoteFailure(const std::string& reason) {
  const absl::string_view hint = HintFor(settings_.tls, reason);
  num_hints_ = hint == hint_ ? num_hints_ + 1 : 1;
  hint_ = hint;
  ++num_failures_;
  if (!hint.empty() && num_hints_ == kHintAfter) {
    return absl::StrCat("the learner at ", settings_.address, " does not let this program in: it ", hint, " (", reason,
                        ")");
  }
  // Powers of two only: a long wait stays a short log.
  if (!std::has_single_bit(num_failures_)) return "";
  return absl::StrCat("waiting for the learner at ", settings_.address, ": ", reason);
}

Clock::duration Redial::NextDelay() {
  const unsigned doublings = std::min(num_delays_++, kMaxDoublings);
  const milliseconds ceiling = std::min(settings_.longest_backoff, settings_.first_backoff * (1U << doublings));
  return milliseconds(std::uniform_int_distribution<std::int64_t>(ceiling.count() / 2, ceiling.count())(random_));
}

absl::string_view HintFor(const TlsFiles& tls, absl::string_view reason) {
  const auto says = [reason](std::initializer_list<absl::string_view> spellings) {
    return std::any_of(spellings.begin(), spellings.end(),
                       [reason](absl::string_view spelling) { return absl::StrContains(reason, spelling); });
  };
  // Texts of OpenSSL and BoringSSL.
  if (says({"certificate verify failed", "CERTIFICATE_VERIFY_FAILED"})) {
    return "has a certificate of no authority in tls.authorities";
  }
  if (says({"is not in peer certificate", "Hostname Verification Check failed"})) {
    return "has a certificate for another name than the dialed one, which tls.server_name can replace";
  }
  if (says({"wrong version number", "WRONG_VERSION_NUMBER"})) {
    return "seems to have no TLS: give it a certificate and a key, or leave tls.authorities empty";
  }
  if (!says({"Socket closed", "Connection reset by peer", "Broken pipe"})) return "";
  if (tls.authorities.empty()) {
    return "closes connections at once: probably it demands TLS, so give tls.authorities";
  }
  if (tls.certificate.empty()) {
    return "closes connections at once: probably it demands a certificate, so give tls.certificate and tls.key";
  }
  return "closes connections at once: probably it does not trust the authority of tls.certificate";
}

}  // namespace kubebeast::client
