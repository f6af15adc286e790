// Connections to a learner.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

namespace kubebeast::client {

// Contents of PEM files; empty for missing ones.
struct Pem {
  std::string authorities;
  std::string certificate;
  std::string key;
};

// Longest time for an attempt to connect, TLS included: an address that drops packets must not cost 20 s.
inline constexpr std::chrono::milliseconds kConnectTimeout{5'000};

// Returns true if a proxy may be of use to reach the address: not on this machine, nor for the name of a Service of
// Kubernetes, which no proxy outside the cluster knows and no no_proxy needs to list.
bool MayNeedProxy(absl::string_view address);

// Returns a channel that shares its connection with no other one; it connects with the first call. If `pem` is empty,
// it has no TLS. server_name: name in the learner's certificate; "": the dialed name. use_proxy: if true, gRPC connects
// through the HTTP proxy of grpc_proxy, https_proxy or http_proxy, unless no_proxy lists the host; the default is
// MayNeedProxy.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Pem& pem, const std::string& server_name,
                                           std::chrono::milliseconds connect_timeout = kConnectTimeout,
                                           std::optional<bool> use_proxy = std::nullopt);

}  // namespace kubebeast::client
