#include "door/tcp_opening.h"

namespace kubebeast {
namespace {

// RFC 9113, section 3.4.
constexpr std::string_view kHttp2Preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
static_assert(kHttp2Preface.size() == kOpeningBytes);
// A TLS record that holds a handshake (RFC 8446, section 5.1).
constexpr char kTlsHandshake = 22;

}  // namespace

TcpOpening OpeningOf(std::string_view first_bytes) {
  if (first_bytes.front() == kTlsHandshake) return TcpOpening::kTls;
  const std::string_view compared = first_bytes.substr(0, kOpeningBytes);
  return kHttp2Preface.starts_with(compared) ? TcpOpening::kHttp2 : TcpOpening::kOther;
}

}  // namespace kubebeast
