// Messages of one stream to rows and back (protos/kubebeast_protos/v1/actor_pool.proto), without the generated parser:
// leaf bytes go from the transport's slices into their final block in one copy, or are decompressed there.
// Nothing a peer sends is trusted: every size, count and value is checked before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream.h"
#include "wire/tensor_spec.h"

namespace kubebeast {

inline constexpr std::uint32_t kProtocolVersion = 1;
inline constexpr std::uint32_t kProtocolMinor = 3;
// From this minor version on a peer knows Actions.traced and answers with Observations.env_us.
inline constexpr std::uint32_t kTracedMinor = 2;

// Values equal kubebeast.v1.Compression.
enum class Compression : std::uint8_t { kNone = 1, kLz4 = 2 };

// What a receiver accepts from a peer.
struct WireLimits {
  std::size_t max_message_bytes = std::size_t{64} << 20U;
  std::uint32_t max_envs_per_stream = 1024;
};

// A checked kubebeast.v1.Hello.
struct Hello {
  std::string env_server_id;
  std::string instance_id;
  std::uint32_t num_envs = 0;
  EnvSpec spec;
  std::vector<Compression> offered;  // one entry an observation leaf
  std::uint32_t protocol_minor = 0;
};

struct EpisodeEnd {
  std::uint32_t env = 0;
  float episode_return = 0;
  std::uint64_t length = 0;
};

// One vector step, decoded. Immutable once decoded and shared by everything that refers to its frames: a rollout keeps
// pointers into it until the rollout has been copied into a training batch.
class ObservationRows {
 public:
  std::uint64_t step = 0;
  std::vector<float> rewards;             // [B]
  std::vector<std::uint8_t> terminated;   // [B], 0 or 1
  std::vector<std::uint8_t> truncated;    // [B], 0 or 1
  std::vector<std::uint8_t> is_first;     // [B], 0 or 1
  std::vector<std::uint8_t> interrupted;  // [B], 0 or 1: the row only keeps its place
  std::vector<EpisodeEnd> episodes;
  std::uint64_t env_us = 0;  // the environments computed; 0: it does not say

  std::uint32_t num_envs() const { return static_cast<std::uint32_t>(rewards.size()); }
  // The frames of environment `env` in this message, oldest first: frame_stack of them where is_first, else one.
  const std::uint8_t* frames(std::size_t leaf, std::uint32_t env) const {
    return leaves[leaf].data.get() + leaves[leaf].offsets[env];
  }

  struct Leaf {
    std::unique_ptr<std::uint8_t[]> data;
    std::vector<std::size_t> offsets;  // [B], bytes
  };
  std::vector<Leaf> leaves;
};

struct Bye {
  enum class Reason : std::uint8_t { kUnspecified = 0, kShutdown = 1, kTerminated = 2, kEnvironmentFailed = 3 };
  Reason reason = Reason::kUnspecified;
  std::string detail;
};

using Request = std::variant<std::shared_ptr<const ObservationRows>, Bye>;

// Reads the first message of a stream. InvalidArgument: not a Hello, malformed, over a limit. FailedPrecondition: other
// major protocol version. The text names the field and the value.
absl::StatusOr<Hello> DecodeHello(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size,
                                  const WireLimits& limits);

// Chooses what the peer must use: LZ4 where it is offered for a leaf, NONE elsewhere.
std::vector<Compression> ChooseCompression(const Hello& hello);

// The serialized ActResponse with a Welcome.
std::string EncodeWelcome(std::string_view run_id, const std::vector<Compression>& compression);

// The serialized ActResponse with an End of that status, which is not OK.
std::string EncodeEnd(const absl::Status& status);

// What the history of a stream demands of its next Observations message.
struct ObservationExpectation {
  std::uint64_t step = 0;
  std::vector<std::uint8_t> is_first;  // [B]: exactly the rows after a final row, and every row of step 0
};

// Decodes the messages that follow the Hello. One per stream; not thread-safe.
class StreamCodec {
 public:
  // compression: one entry an observation leaf.
  StreamCodec(const EnvSpec& spec, std::uint32_t num_envs, std::vector<Compression> compression, WireLimits limits);

  // Decodes one message of `size` bytes. InvalidArgument on anything the contract forbids: a wrong size, count or step
  // number, a flag or category out of range, a number that is not finite, a row that is not in the contract's table, a
  // compressed block that does not decompress to exactly its size.
  absl::StatusOr<Request> Decode(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size);

  // The serialized ActResponse with the Actions of `step`. leaves[i] is [num_envs, *shape] of action leaf i,
  // contiguous. traced: asks for env_us in the next Observations.
  std::string EncodeActions(std::uint64_t step, const std::vector<const std::uint8_t*>& leaves,
                            bool traced = false) const;

  // The step number that the next Observations message must carry.
  std::uint64_t next_step() const { return expected_.step; }

 private:
  absl::StatusOr<Request> DecodeStep(google::protobuf::io::CodedInputStream* in);
  void Advance(const ObservationRows& rows);

  EnvSpec spec_;
  std::uint32_t num_envs_;
  std::vector<Compression> compression_;
  WireLimits limits_;
  ObservationExpectation expected_;
  std::string scratch_;  // a compressed leaf that spans slices
};

}  // namespace kubebeast
