// Checked options of a stream.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kubebeast/client.h"
#include "tensors/tensor_spec.h"
#include "wire/protocol.h"

namespace kubebeast::client {

struct Settings {
  std::string address;
  TlsFiles tls;
  std::string token_file;
  std::string env_server_id;
  std::string instance_id;
  std::string run;  // if empty, any
  EnvSpec spec;
  std::uint32_t num_envs = 1;
  std::vector<Compression> offered;  // one entry per observation leaf
  std::chrono::milliseconds welcome_timeout{};
  std::chrono::milliseconds first_backoff{};
  std::chrono::milliseconds longest_backoff{};
  bool count_episodes = true;
};

// Returns InvalidArgument with the option and the value if an option is invalid.
absl::StatusOr<Settings> CheckOptions(const Options& options);

}  // namespace kubebeast::client
