// Calls to env-servers that listen.
#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "stream/pool_context.h"

namespace kubebeast {

// An env-server that listens.
struct Endpoint {
  std::string address;      // "host:port", "unix:/path"
  std::string server_name;  // in its certificate; empty: the host of `address`

  bool operator==(const Endpoint&) const = default;
};

// How a call ended: whether the env-server's Hello was accepted, and the status that it returned.
using OnCallEnd = std::function<void(bool accepted, const absl::Status& status)>;

// A connection of its own to the endpoint, made when it is needed.
std::shared_ptr<grpc::Channel> OpenChannel(const PoolContext& pool, const Endpoint& endpoint,
                                           const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Calls EnvServer.Play and makes a stream of the call; `peer` names it. on_end runs once, in a transport thread, when
// the call does not refer to the channel any more. Never blocks. authorization: the metadata of that name, if any.
void StartPlay(std::shared_ptr<PoolContext> pool, std::shared_ptr<grpc::Channel> channel, const std::string& peer,
               const std::optional<std::string>& authorization, OnCallEnd on_end);

}  // namespace kubebeast
