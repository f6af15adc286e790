// The messages that open and end a stream, by the generated parser: small ones, once a stream.
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
#include "wire/protocol.h"

namespace kubebeast {

// A checked kubebeast.v1.Hello.
struct Hello {
  std::string env_server_id;
  std::string instance_id;
  std::uint32_t num_envs = 0;
  EnvSpec spec;
  std::vector<Compression> offered;  // one entry an observation leaf: LZ4 where the peer offers it
  std::uint32_t protocol_minor = 0;
};

// Reads the first message of a stream. InvalidArgument: not a Hello, malformed, over a limit. FailedPrecondition: other
// major protocol version. The text names the field and the value.
absl::StatusOr<Hello> DecodeHello(google::protobuf::io::ZeroCopyInputStream* input, std::size_t size,
                                  const WireLimits& limits);

// The serialized ActResponse with a Welcome.
std::string EncodeWelcome(std::string_view run_id, const std::vector<Compression>& compression);

// The serialized ActResponse with an End of that status, which is not OK.
std::string EncodeEnd(const absl::Status& status);

}  // namespace kubebeast
