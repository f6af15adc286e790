// Messages to the learner: ActRequest, written without the generated classes, as a process may hold only one copy of
// them.
#pragma once

#include <grpcpp/support/slice.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep.h"
#include "settings.h"
#include "wire/protocol.h"

namespace kubebeast::client {

grpc::Slice EncodeHello(const Settings& settings);

// detail: cut off after 200 characters.
grpc::Slice EncodeBye(std::uint8_t reason, std::string_view detail);

// Encoder of the steps of one stream, each straight into the slice that gRPC sends. Not thread-safe.
class ObservationsEncoder {
 public:
  // compression: one entry per leaf. learner_minor and log_info: those of the Welcome.
  ObservationsEncoder(const std::vector<kubebeast::LeafSpec>& leaves, std::vector<Compression> compression,
                      std::uint64_t learner_minor = kProtocolMinor, std::vector<std::string> log_info = {});

  // env_us: 0 if not requested.
  grpc::Slice Encode(std::uint64_t step, const StepRows& rows, std::uint64_t env_us);

 private:
  // One leaf as sent: `size` bytes at `data`; null if frames are gathered straight into the slice.
  struct Payload {
    const std::uint8_t* data;
    std::size_t size;
  };
  // Encodes all fields but the leaves: a few bytes per environment.
  std::string EncodeFlags(std::uint64_t step, const StepRows& rows, std::uint64_t env_us) const;
  std::string EncodeEpisode(const Episode& episode) const;
  Payload Prepare(std::size_t leaf, const StepRows& rows, std::size_t num_first);
  std::uint8_t* Gather(std::size_t leaf, const StepRows& rows, std::uint8_t* to) const;

  const std::vector<kubebeast::LeafSpec> leaves_;
  const std::vector<Compression> compression_;
  const bool knows_info_;  // whether the learner knows Episode.info and Episode.exact_return
  const std::vector<std::string> log_info_;
  std::vector<Payload> payloads_;                  // leaves of the step
  std::vector<std::uint8_t> stacks_;               // gathered frames, before compression
  std::vector<std::vector<std::uint8_t>> blocks_;  // per leaf: the compressed frames
};

}  // namespace kubebeast::client
