// A stream that keeps the contract, beside others that do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fake_transport.h"
#include "kubebeast_protos/v1/actor_pool.pb.h"
#include "learner.h"
#include "peer.h"
#include "stream/pool_context.h"

namespace kubebeast::fuzz {

// Stream that requires that it is not ended, that every reply is the model's answer to its rows and that the model sees
// the frames that it sent.
class HonestStream {
 public:
  // Sends the Hello.
  HonestStream(std::shared_ptr<PoolContext> pool, const EnvSpec& spec, std::uint32_t num_envs);

  // Takes the reply, if there is one, and sends the next step if it is due.
  void Continue(const Learner& learner);
  // Checks the rows of this stream in a batch; returns false if it has none there.
  bool CheckRows(const InferenceBatch& batch) const;

  std::uint64_t num_answers() const { return num_answers_; }
  FakeTransport& transport() { return transport_; }

 private:
  void Step();
  void CheckActions(const v1::ActResponse& response, const Learner& learner);

  FakeTransport transport_;
  Peer peer_;
  std::vector<std::string> stacks_;  // [B]: the expected stacks of leaf 0 in the model's input
  std::uint64_t num_answers_ = 0;
  bool welcome_ = false;
  bool its_turn_ = false;
};

}  // namespace kubebeast::fuzz
