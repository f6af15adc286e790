// A connection to a learner.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <string>

namespace kubebeast::client {

// The texts of PEM files; "" where there is none.
struct Pem {
  std::string authorities;
  std::string certificate;
  std::string key;
};

// Longest that a try to connect may take, TLS included: an address that swallows packets must not cost 20 s.
inline constexpr std::chrono::milliseconds kConnectTimeout{5'000};

// A channel that shares its connection with no other one; it connects with the first call. Without TLS where `pem` is
// empty. server_name: what the learner's certificate is for; "": the dialed name.
std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Pem& pem, const std::string& server_name,
                                           std::chrono::milliseconds connect_timeout = kConnectTimeout);

}  // namespace kubebeast::client
