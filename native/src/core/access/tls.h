// Who may talk to the pool and how it proves who it is: TLS, with files that may change while it runs.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace kubebeast {

// PEM files; all empty is no TLS. They are looked at again every `refresh`, and later handshakes use what they hold.
struct TlsOptions {
  std::string certificate;  // of the pool, with the chain up to its authority
  std::string key;
  std::string authorities;  // that a peer's certificate must descend from
  std::chrono::seconds refresh{10};

  bool enabled() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

// InvalidArgument names what is missing: certificate and key belong together, and one of the two sides needs them.
absl::Status ValidateTls(const TlsOptions& options, bool listens);

// To listen. With authorities the peer must present a certificate (mutual TLS).
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsOptions& options);

// To dial; the peer's certificate must bear the name that was dialled.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const TlsOptions& options);

}  // namespace kubebeast
