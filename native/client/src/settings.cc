#include "settings.h"

#include <unistd.h>

#include <algorithm>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace kubebeast::client {
namespace {

// Leaves of fewer bytes are not worth compressing.
constexpr std::size_t kLz4MinBytes = 1024;

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

std::vector<kubebeast::LeafSpec> ToCore(const std::vector<LeafSpec>& leaves) {
  std::vector<kubebeast::LeafSpec> result;
  for (const LeafSpec& leaf : leaves) {
    result.push_back({.path = leaf.path,
                      .dtype = static_cast<kubebeast::DType>(leaf.dtype),
                      .shape = leaf.shape,
                      .frame_stack = std::max(leaf.frame_stack, 1U),
                      .num_categories = leaf.num_categories,
                      .bounded = leaf.bounded,
                      .is_action_mask = leaf.is_action_mask});
  }
  return result;
}

std::string HostName() {
  char name[kMaxIdCharacters + 1] = {};
  return gethostname(name, kMaxIdCharacters) == 0 && name[0] != '\0' ? name : "env-server";
}

std::string RandomId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(random(), absl::kZeroPad8));
  return id;
}

absl::Status CheckText(absl::string_view name, const std::string& text, std::size_t max_characters) {
  if (text.size() > max_characters) {
    return Invalid(name, ": ", text.size(), " characters, at most ", max_characters);
  }
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isprint)) {
    return Invalid(name, ": holds a character that is not printable ASCII");
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(const Settings& settings) {
  absl::Status status = CheckText("env_server_id", settings.env_server_id, kMaxIdCharacters);
  if (status.ok()) status = CheckText("instance_id", settings.instance_id, kMaxIdCharacters);
  if (status.ok()) status = CheckText("env_id", settings.spec.env_id, kMaxIdCharacters);
  if (status.ok()) status = CheckText("env_config", settings.spec.env_config, kMaxEnvConfigCharacters);
  if (status.ok() && settings.run.size() > kMaxRunBytes) {
    return Invalid("run: ", settings.run.size(), " bytes, at most ", kMaxRunBytes);
  }
  return status;
}

absl::Status CheckSizes(const Settings& settings) {
  const WireLimits limits;
  if (settings.num_envs == 0) return Invalid("num_envs is 0, expected at least 1");
  return ValidateEnvSpec(settings.spec, limits.max_message_bytes / settings.num_envs);
}

}  // namespace

absl::StatusOr<Settings> CheckOptions(const Options& options) {
  if (options.address.empty()) return Invalid("address is empty");
  if (options.tls.certificate.empty() != options.tls.key.empty()) {
    return Invalid("tls.certificate and tls.key belong together: one of them is empty");
  }
  if (options.welcome_timeout <= options.welcome_timeout.zero()) {
    return Invalid("welcome_timeout is ", options.welcome_timeout.count(), " ms, expected more than 0");
  }
  if (options.first_backoff.count() < 1 || options.longest_backoff < options.first_backoff) {
    return Invalid("first_backoff is ", options.first_backoff.count(), " ms and longest_backoff ",
                   options.longest_backoff.count(), " ms, expected at least 1, and the longest not below the first");
  }
  Settings settings{
      .address = options.address,
      .tls = options.tls,
      .token_file = options.token_file,
      .env_server_id = options.env_server_id.empty() ? HostName() : options.env_server_id,
      .instance_id = options.instance_id.empty() ? RandomId() : options.instance_id,
      .run = options.run,
      .spec = {.env_id = options.env_id,
               .env_config = options.env_config,
               .observation = ToCore(options.observation),
               .action = ToCore(options.action)},
      .num_envs = options.num_envs,
      .offered = {},
      .welcome_timeout = options.welcome_timeout,
      .first_backoff = options.first_backoff,
      .longest_backoff = options.longest_backoff,
      .count_episodes = options.count_episodes,
  };
  absl::Status status = CheckTexts(settings);
  if (status.ok()) status = CheckSizes(settings);
  if (!status.ok()) return status;
  for (const auto& leaf : settings.spec.observation) {
    const bool worthwhile = leaf.dtype == kubebeast::DType::kUint8 && leaf.frame_bytes() >= kLz4MinBytes;
    settings.offered.push_back(options.lz4 && worthwhile ? Compression::kLz4 : Compression::kNone);
  }
  return settings;
}

}  // namespace kubebeast::client
