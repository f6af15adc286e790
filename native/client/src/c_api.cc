// The functions of kubebeast_client.h: no exception leaves them.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kubebeast/client.h"
#include "kubebeast_client.h"

namespace client = kubebeast::client;

struct kubebeast_stream {
  explicit kubebeast_stream(const client::Options& options) : stream(options) {
    for (std::uint32_t env = 0; env < options.num_envs; ++env) envs.push_back(stream.environment(env));
  }

  client::Stream stream;
  std::vector<client::Environment> envs;
  std::vector<std::size_t> frame_bytes;  // per observation leaf
};

namespace {

constexpr std::size_t kItemBytes[] = {0, 1, 1, 2, 4, 8, 4, 8, 1};  // by dtype

// Size in programs that were compiled before `run` was added: the missing fields are zero.
constexpr std::size_t kSizeWithoutRun = offsetof(kubebeast_options, run);

std::string& Message() {
  thread_local std::string message;
  return message;
}

kubebeast_code Tell(kubebeast_code code, std::string message) {
  Message() = std::move(message);
  return code;
}

kubebeast_code Tell(const client::Status& status) {
  return Tell(static_cast<kubebeast_code>(status.code), status.message);
}

// Runs a body that may throw.
template <typename Body>
kubebeast_code Guarded(Body body) noexcept {
  try {
    Message().clear();
    return body();
  } catch (const std::exception& error) {
    return Tell(KUBEBEAST_INTERNAL, error.what());
  } catch (...) {
    return KUBEBEAST_INTERNAL;
  }
}

std::string Text(const char* text) { return text == nullptr ? "" : text; }

client::LeafSpec ToSpec(const kubebeast_leaf& leaf) {
  return {.path = Text(leaf.path),
          .dtype = static_cast<client::DType>(leaf.dtype),
          .shape = {leaf.shape, leaf.shape + (leaf.shape == nullptr ? 0 : leaf.num_dims)},
          .frame_stack = std::max(leaf.frame_stack, 1U),
          .num_categories = leaf.num_categories,
          .bounded = leaf.bounded != 0,
          .is_action_mask = leaf.is_action_mask != 0};
}

std::vector<client::LeafSpec> ToSpecs(const kubebeast_leaf* leaves, std::uint32_t count) {
  std::vector<client::LeafSpec> specs;
  for (std::uint32_t i = 0; leaves != nullptr && i < count; ++i) specs.push_back(ToSpec(leaves[i]));
  return specs;
}

client::Options ToOptions(const kubebeast_options& given) {
  client::Options options{
      .address = Text(given.address),
      .tls = {.authorities = Text(given.tls_authorities),
              .certificate = Text(given.tls_certificate),
              .key = Text(given.tls_key),
              .server_name = Text(given.tls_server_name)},
      .token_file = Text(given.token_file),
      .env_server_id = Text(given.env_server_id),
      .instance_id = Text(given.instance_id),
      .env_id = Text(given.env_id),
      .env_config = Text(given.env_config),
      .run = Text(given.run),
      .num_envs = std::max(given.num_envs, 1U),
      .observation = ToSpecs(given.observation, given.num_observation),
      .action = ToSpecs(given.action, given.num_action),
      .lz4 = given.no_lz4 == 0,
      .count_episodes = given.report_episodes == 0,
      .progress_thread = given.progress_thread != 0,
  };
  if (given.welcome_timeout_ms > 0) options.welcome_timeout = std::chrono::milliseconds(given.welcome_timeout_ms);
  if (given.log != nullptr) {
    options.log = [log = given.log, user = given.log_user](std::string_view line) {
      log(user, std::string(line).c_str());
    };
  }
  return options;
}

// Returns the bytes of one frame; the spec must be valid.
std::size_t FrameBytes(const client::LeafSpec& leaf) {
  std::size_t bytes = kItemBytes[static_cast<std::size_t>(leaf.dtype)];
  for (const std::int64_t dim : leaf.shape) bytes *= static_cast<std::size_t>(dim);
  return bytes;
}

// Calls give(environment, frames) if the arguments are valid.
template <typename Give>
kubebeast_code Post(kubebeast_stream* stream, std::uint32_t env, const void* const* leaves, Give give) {
  return Guarded([&] {
    if (stream == nullptr || leaves == nullptr) return Tell(KUBEBEAST_MISUSE, "stream or leaves is NULL");
    if (env >= stream->envs.size()) return Tell(KUBEBEAST_MISUSE, "env: there is none of this number");
    std::vector<client::Frame> frames;
    frames.reserve(stream->frame_bytes.size());
    for (std::size_t i = 0; i < stream->frame_bytes.size(); ++i) {
      if (leaves[i] == nullptr) return Tell(KUBEBEAST_MISUSE, "a leaf is NULL");
      frames.emplace_back(leaves[i], stream->frame_bytes[i]);
    }
    return Tell(give(stream->envs[env], client::Observation(std::span<const client::Frame>(frames))).status());
  });
}

template <typename Give>
kubebeast_code PostPlace(kubebeast_stream* stream, std::uint32_t env, Give give) {
  return Guarded([&] {
    if (stream == nullptr) return Tell(KUBEBEAST_MISUSE, "stream is NULL");
    if (env >= stream->envs.size()) return Tell(KUBEBEAST_MISUSE, "env: there is none of this number");
    return Tell(give(stream->envs[env]));
  });
}

}  // namespace

kubebeast_code kubebeast_open(const kubebeast_options* options, kubebeast_stream** stream) {
  return Guarded([&] {
    if (options == nullptr || stream == nullptr) return Tell(KUBEBEAST_MISUSE, "options or stream is NULL");
    *stream = nullptr;
    const std::size_t size = options->struct_size;
    if (size != sizeof(kubebeast_options) && size != kSizeWithoutRun) {
      return Tell(KUBEBEAST_MISUSE, "options.struct_size is not sizeof(kubebeast_options): zeros first, then the size");
    }
    kubebeast_options given{};
    std::memcpy(&given, options, size);
    const client::Options checked = ToOptions(given);
    auto made = std::make_unique<kubebeast_stream>(checked);
    const client::Status status = made->stream.status();
    if (!status.ok()) return Tell(status);
    for (const client::LeafSpec& leaf : checked.observation) made->frame_bytes.push_back(FrameBytes(leaf));
    *stream = made.release();
    return Tell(status);
  });
}

kubebeast_code kubebeast_wait_until_connected(kubebeast_stream* stream, uint32_t timeout_ms) {
  return Guarded([&] {
    if (stream == nullptr) return Tell(KUBEBEAST_MISUSE, "stream is NULL");
    return Tell(stream->stream.WaitUntilConnected(std::chrono::milliseconds(timeout_ms)));
  });
}

kubebeast_code kubebeast_start(kubebeast_stream* stream, uint32_t env, const void* const* leaves) {
  return Post(stream, env, leaves, [](client::Environment& environment, const client::Observation& observation) {
    return environment.Start(observation);
  });
}

kubebeast_code kubebeast_observe(kubebeast_stream* stream, uint32_t env, const void* const* leaves, float reward) {
  return Post(stream, env, leaves, [&](client::Environment& environment, const client::Observation& observation) {
    return environment.Observe(observation, reward);
  });
}

kubebeast_code kubebeast_end(kubebeast_stream* stream, uint32_t env, const void* const* leaves, float reward,
                             int32_t ending) {
  if (ending < KUBEBEAST_TERMINATED || ending > KUBEBEAST_BOTH) {
    return Guarded([] { return Tell(KUBEBEAST_MISUSE, "ending is none of those there are"); });
  }
  return Post(stream, env, leaves, [&](client::Environment& environment, const client::Observation& observation) {
    return environment.End(observation, reward, static_cast<client::Ending>(ending));
  });
}

kubebeast_code kubebeast_interrupt(kubebeast_stream* stream, uint32_t env) {
  return PostPlace(stream, env, [](client::Environment& environment) { return environment.Interrupt().status(); });
}

kubebeast_code kubebeast_absent(kubebeast_stream* stream, uint32_t env) {
  return PostPlace(stream, env, [](client::Environment& environment) { return environment.Absent().status(); });
}

kubebeast_code kubebeast_report_episode(kubebeast_stream* stream, uint32_t env, float episode_return, uint64_t length) {
  return PostPlace(stream, env,
                   [&](client::Environment& environment) { return environment.ReportEpisode(episode_return, length); });
}

kubebeast_code kubebeast_set_info(kubebeast_stream* stream, uint32_t env, const char* key, double value) {
  return PostPlace(stream, env, [&](client::Environment& environment) {
    if (key == nullptr) return client::Status{client::Code::kMisuse, "key is NULL"};
    return environment.SetInfo(key, value);
  });
}

const char* kubebeast_next_options(kubebeast_stream* stream, uint32_t env) {
  thread_local std::string options;
  const kubebeast_code code = PostPlace(stream, env, [&](client::Environment& environment) {
    options = environment.NextOptions();
    return client::Status{};
  });
  return code == KUBEBEAST_OK ? options.c_str() : nullptr;
}

kubebeast_code kubebeast_wait(kubebeast_stream* stream, uint32_t env, uint32_t timeout_ms, void* const* leaves) {
  return PostPlace(stream, env, [&](client::Environment& environment) {
    const auto deadline = timeout_ms == 0 ? client::Clock::time_point::min()
                                          : client::Clock::now() + std::chrono::milliseconds(timeout_ms);
    const client::Reply reply = environment.Wait(deadline);
    for (std::size_t i = 0; leaves != nullptr && i < reply.action.num_leaves(); ++i) {
      const auto bytes = reply.action.bytes(i);
      if (!bytes.empty()) std::memcpy(leaves[i], bytes.data(), bytes.size());
    }
    return reply.status;
  });
}

kubebeast_code kubebeast_close(kubebeast_stream* stream, int32_t reason, const char* detail, uint32_t timeout_ms) {
  return Guarded([&] {
    if (stream == nullptr) return Tell(KUBEBEAST_MISUSE, "stream is NULL");
    if (reason < KUBEBEAST_SHUTDOWN || reason > KUBEBEAST_ENVIRONMENT_FAILED) {
      return Tell(KUBEBEAST_MISUSE, "reason is none of those there are");
    }
    return Tell(
        stream->stream.Close(static_cast<client::Reason>(reason), Text(detail), std::chrono::milliseconds(timeout_ms)));
  });
}

void kubebeast_free(kubebeast_stream* stream) { delete stream; }  // NOLINT(misc-const-correctness): a handle

const char* kubebeast_code_name(kubebeast_code code) {
  if (code == KUBEBEAST_INTERNAL) return "internal";
  return client::CodeName(static_cast<client::Code>(code));
}

const char* kubebeast_message(void) { return Message().c_str(); }
