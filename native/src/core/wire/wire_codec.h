// Codec for the messages of one stream (protos/kubebeast_protos/v1/actor_pool.proto), without the generated parser:
// leaf bytes go from the transport's slices into their final block in one copy, or are decompressed there.
// No input of a peer is trusted: every size, count and value is checked before memory is allocated for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "tensors/tensor_spec.h"
#include "wire/handshake_codec.h"
#include "wire/learner_texts.h"
#include "wire/observation_decoder.h"
#include "wire/observation_rows.h"
#include "wire/protocol.h"

namespace kubebeast {

struct Bye {
  enum class Reason : std::uint8_t { kUnspecified = 0, kShutdown = 1, kTerminated = 2, kEnvironmentFailed = 3 };
  Reason reason = Reason::kUnspecified;
  std::string detail;
};

using Request = std::variant<std::shared_ptr<const ObservationRows>, Bye>;

// Codec of the messages after the Hello. One per stream; not thread-safe.
class StreamCodec {
 public:
  StreamCodec(const Hello& hello, WireLimits limits);

  // Decodes one message of `size` bytes. Returns InvalidArgument for any violation of the contract: a wrong size, count
  // or step number, a flag or category out of range, a number that is not finite, a row that is not in the contract's
  // table, a compressed block that does not decompress to exactly its size.
  absl::StatusOr<Request> Decode(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size);

  // Returns the serialized ActResponse with the Actions of `step`. leaves[i] is [num_envs, *shape] of action leaf i,
  // contiguous. traced: requests env_us in the next Observations. episode_options: of environments that the next step
  // resets.
  std::string EncodeActions(std::uint64_t step, const std::vector<const std::uint8_t*>& leaves, bool traced = false,
                            const std::vector<EpisodeOptions>& episode_options = {}) const;

  // Returns the step number that the next Observations message must carry.
  std::uint64_t next_step() const { return expected_.step; }

 private:
  EnvSpec spec_;
  std::uint32_t num_envs_;
  std::vector<Compression> compression_;
  WireLimits limits_;
  ObservationExpectation expected_;
  std::string scratch_;  // holds a compressed leaf that spans slices
};

}  // namespace kubebeast
