// A stream of a peer with arbitrary behavior.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fake_transport.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "peer.h"
#include "script.h"
#include "spoil.h"
#include "stream/pool_context.h"

namespace kubebeast::fuzz {

// Dubious stream: it sends valid messages as changed by the script, and tracks the ones that the learner accepts.
class DubiousStream {
 public:
  explicit DubiousStream(std::shared_ptr<PoolContext> pool)
      : limits_(pool->options.wire), transport_(std::move(pool)) {}

  FakeTransport& transport() { return transport_; }

  void SayHello(const EnvSpec& spec, Script& script) {
    const std::uint32_t num_envs = 1 + static_cast<std::uint32_t>(script.Below(4));
    const auto compression = static_cast<Compression>(1 + script.Below(2));
    const bool takes_turns = num_envs > 1 && script.Below(4) == 0;
    Send(MakeHello(spec, num_envs, std::vector<Compression>(spec.observation.size(), compression), takes_turns),
         script);
  }

  void Step(Script& script) {
    if (peer_.has_value()) Send(peer_->NextStep(script), script);
  }

  void SayBye(Script& script) { Send(MakeBye(script), script); }

 private:
  static constexpr std::size_t kSliceSizes[] = {4096, 16, 1};

  void Send(const v1::ActRequest& request, Script& script) {
    const std::size_t slice_size = kSliceSizes[script.Below(std::size(kSliceSizes))];
    const std::string bytes = Spoil(request, script);
    if (transport_.Deliver(bytes, slice_size) && !transport_.finished()) Accepted(bytes);
  }

  void Accepted(const std::string& bytes) {
    if (!peer_.has_value()) {
      google::protobuf::io::ArrayInputStream input(bytes.data(), static_cast<int>(bytes.size()));
      peer_.emplace(*DecodeHello(&input, bytes.size(), limits_));
    } else if (v1::ActRequest request; request.ParseFromString(bytes) && request.has_observations()) {
      peer_->Advance(request.observations());
    }
  }

  const WireLimits limits_;
  FakeTransport transport_;
  std::optional<Peer> peer_;  // set by acceptance
};

}  // namespace kubebeast::fuzz
