// Codec of the messages that open and end a stream, by the generated parser: they are small, and come once per stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "tensors/tensor_spec.h"
#include "wire/learner_texts.h"
#include "wire/protocol.h"

namespace kubebeast {

// A checked kubebeast.v1.Hello.
struct Hello {
  std::string env_server_id;
  std::string instance_id;
  std::uint32_t num_envs = 0;
  EnvSpec spec;
  std::vector<Compression> compression;  // of each observation leaf: what the learner chooses of the offer
  std::uint32_t protocol_minor = 0;
  std::string run;               // the run that the env-server serves; if empty, any
  std::uint32_t num_agents = 1;  // rows of one environment
  bool takes_turns = false;      // rows may be waiting
};

// Decodes the first message of a stream. Returns InvalidArgument if it is not a Hello, malformed or over a limit, and
// FailedPrecondition for another major protocol version. The text contains the field and the value.
absl::StatusOr<Hello> DecodeHello(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size,
                                  const WireLimits& limits);

// Returns FailedPrecondition if the env-server serves another run than `run_id`; the text contains both.
absl::Status CheckRun(const Hello& hello, const std::string& run_id);

// Returns the bytes of the peer's longest step message in transit: twice its rows, for small frames and TLS records.
std::uint64_t MaxStepBytes(const Hello& hello, const WireLimits& limits);

// Returns the serialized ActResponse with a Welcome.
std::string EncodeWelcome(std::string_view run_id, const std::vector<Compression>& compression,
                          const std::vector<std::string>& log_info,
                          const std::vector<EpisodeOptions>& episode_options = {});

// Returns the serialized ActResponse with an End of that status, which must not be OK.
std::string EncodeEnd(const absl::Status& status);

}  // namespace kubebeast
