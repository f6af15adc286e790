// TLS credentials of the pool, from files that may change while it runs.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>

#include <chrono>
#include <memory>
#include <string>

#include "absl/status/status.h"

namespace kubebeast {

// PEM files; if all are empty, there is no TLS. They are read again every `refresh`, for later handshakes.
struct TlsOptions {
  std::string certificate;  // the pool's, with the chain up to its authority
  std::string key;
  std::string authorities;  // a peer's certificate must descend from one of them
  std::chrono::seconds refresh{10};

  bool enabled() const { return !certificate.empty() || !key.empty() || !authorities.empty(); }
};

// Returns InvalidArgument with the bad option: certificate and key require each other; a listener needs both.
absl::Status ValidateTls(const TlsOptions& options, bool listens);

// Returns credentials to listen with. With authorities the peer must present a certificate (mutual TLS).
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const TlsOptions& options);

// Returns credentials to dial with; the peer's certificate must bear the dialed name.
std::shared_ptr<grpc::ChannelCredentials> MakeChannelCredentials(const TlsOptions& options);

}  // namespace kubebeast
