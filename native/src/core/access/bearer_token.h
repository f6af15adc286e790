// Shared secret that the dialing side of a call presents.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kubebeast {

// The tokens of a file, one per line: any of them is accepted, and the first one is sent. The file is read again for
// every call, so a token can be rotated in place: add the new line, change the peers, remove the old line. Thread-safe.
class BearerToken {
 public:
  // path: the token file; if empty, enabled() is false and every call is accepted.
  explicit BearerToken(std::string path) : path_(std::move(path)) {}

  bool enabled() const { return !path_.empty(); }

  // authorization: the value of the metadata entry of that name, if any. Returns Unauthenticated unless it is `Bearer
  // <token>` (RFC 6750, section 2.1), and Unavailable if the file cannot be used. The messages contain no token.
  absl::Status Check(const std::optional<std::string>& authorization) const;

  // Returns the value of the metadata entry `authorization` to send, or Unavailable if the file cannot be used.
  absl::StatusOr<std::string> Authorization() const;

 private:
  const std::string path_;
};

}  // namespace kubebeast
