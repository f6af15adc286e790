#include "channel.h"

#include <array>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "sync/deadlock_detection.h"
#include "wire/protocol.h"

namespace kubebeast::client {
namespace {

std::shared_ptr<grpc::ChannelCredentials> MakeCredentials(const Pem& pem) {
  if (pem.authorities.empty() && pem.certificate.empty()) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({pem.authorities, pem.key, pem.certificate});
}

// Returns true if only this machine can reach the address.
bool IsLocal(absl::string_view address) {
  constexpr std::array kPrefixes = {"unix:", "127.", "localhost:", "[::1]:"};
  for (const char* prefix : kPrefixes) {
    if (absl::StartsWith(address, prefix)) return true;
  }
  return false;
}

}  // namespace

bool MayNeedProxy(absl::string_view address) {
  const absl::string_view host = absl::StripSuffix(address.substr(0, address.rfind(':')), ".");
  return !IsLocal(address) && !absl::EndsWithIgnoreCase(host, ".svc") &&
         !absl::EndsWithIgnoreCase(host, ".svc.cluster.local");
}

std::shared_ptr<grpc::Channel> OpenChannel(const std::string& address, const Pem& pem, const std::string& server_name,
                                           std::chrono::milliseconds connect_timeout, std::optional<bool> use_proxy) {
  SkipDeadlockDetection();
  const int max_bytes = static_cast<int>(WireLimits().max_message_bytes);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, static_cast<int>(connect_timeout.count()));
  // A stream is never repeated as it was; the support for that costs time in every step.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(max_bytes);
  arguments.SetMaxSendMessageSize(max_bytes);
  // Inflating takes up to that limit for a few kilobytes.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  // More than the 10 s that the learner requires between pings.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 20'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 10'000);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, use_proxy.value_or(MayNeedProxy(address)) ? 1 : 0);
  if (!server_name.empty()) arguments.SetSslTargetNameOverride(server_name);
  return grpc::CreateCustomChannel(address, MakeCredentials(pem), arguments);
}

}  // namespace kubebeast::client
