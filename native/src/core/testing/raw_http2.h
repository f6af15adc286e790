// HTTP/2 frames as an attacker builds them (RFC 9113, section 4.1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kubebeast::http2 {

enum class Type : std::uint8_t {
  kData,
  kHeaders,
  kPriority,
  kReset,
  kSettings,
  kPush,
  kPing,
  kGoaway,
  kWindowUpdate,
  kContinuation
};
inline constexpr int kEndStream = 1;  // also the acknowledgement of SETTINGS and PING
inline constexpr int kEndHeaders = 4;

inline std::string Frame(Type type, int flags, std::uint32_t stream, std::string_view body = "") {
  const auto size = static_cast<std::uint32_t>(body.size());
  std::string frame;
  for (const int shift : {16, 8, 0}) frame.push_back(static_cast<char>(size >> static_cast<unsigned>(shift)));
  frame.push_back(static_cast<char>(type));
  frame.push_back(static_cast<char>(flags));
  for (const int shift : {24, 16, 8, 0}) frame.push_back(static_cast<char>(stream >> static_cast<unsigned>(shift)));
  return frame.append(body);
}

// Returns a block of literals without indexing (RFC 7541, section 6.2.2), each shorter than 127 bytes.
inline std::string Headers(std::string_view path, const std::vector<std::pair<std::string, std::string>>& more = {}) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {":method", "POST"}, {":scheme", "http"}, {":path", std::string(path)},
      {":authority", "x"}, {"te", "trailers"},  {"content-type", "application/grpc"}};
  fields.insert(fields.end(), more.begin(), more.end());
  std::string block;
  for (const auto& [name, value] : fields) {
    block.push_back('\0');
    for (const std::string& text : {name, value}) block.append(1, static_cast<char>(text.size())).append(text);
  }
  return block;
}

inline constexpr std::string_view kAct = "/kubebeast.v1.ActorPool/Act";
inline constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";

// Returns the preface, SETTINGS, and the acknowledgement of the other side's SETTINGS.
inline std::string Opening() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(Type::kSettings, 0, 0) + Frame(Type::kSettings, kEndStream, 0);
}

}  // namespace kubebeast::http2
