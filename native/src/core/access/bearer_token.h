// A shared secret that whoever dials presents.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kubebeast {

// The tokens of a file, one a line: any is accepted, the first one is sent. The file is read again for every call, so a
// token is changed in place: add the new line, change the peers, remove the old line. Thread-safe.
class BearerToken {
 public:
  // path: empty accepts every call and sends nothing.
  explicit BearerToken(std::string path) : path_(std::move(path)) {}

  bool enabled() const { return !path_.empty(); }

  // authorization: the value of the metadata of that name, if any. Unauthenticated unless it is `Bearer <token>` (RFC
  // 6750, section 2.1); Unavailable when the file cannot be used. The texts hold no token.
  absl::Status Check(const std::optional<std::string>& authorization) const;

  // The value of the metadata `authorization` to send. Unavailable when the file cannot be used.
  absl::StatusOr<std::string> Authorization() const;

 private:
  const std::string path_;
};

}  // namespace kubebeast
