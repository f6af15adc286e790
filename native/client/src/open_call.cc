#include "open_call.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "access/bearer_token.h"
#include "channel.h"

namespace kubebeast::client {
namespace {

absl::StatusOr<std::string> ReadText(absl::string_view option, const std::string& path) {
  if (path.empty()) return std::string();
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || text.empty()) {
    return absl::UnavailableError(absl::StrCat(option, " = ", path, " cannot be read, or is empty"));
  }
  return text;
}

absl::StatusOr<Pem> ReadPem(const TlsFiles& tls) {
  auto authorities = ReadText("tls.authorities", tls.authorities);
  if (!authorities.ok()) return authorities.status();
  auto certificate = ReadText("tls.certificate", tls.certificate);
  if (!certificate.ok()) return certificate.status();
  auto key = ReadText("tls.key", tls.key);
  if (!key.ok()) return key.status();
  return Pem{*std::move(authorities), *std::move(certificate), *std::move(key)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Call>> OpenCall(const Settings& settings, grpc::CompletionQueue* queue) {
  std::optional<std::string> authorization;
  if (const BearerToken token(settings.token_file); token.enabled()) {
    auto value = token.Authorization();
    if (!value.ok()) return value.status();
    authorization = *std::move(value);
  }
  const auto pem = ReadPem(settings.tls);
  if (!pem.ok()) return pem.status();
  return std::make_unique<Call>(OpenChannel(settings.address, *pem, settings.tls.server_name), authorization, queue);
}

}  // namespace kubebeast::client
