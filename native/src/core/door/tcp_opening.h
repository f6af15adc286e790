// Protocol of a TCP connection, from its first bytes.
#pragma once

#include <cstdint>
#include <string_view>

namespace kubebeast {

enum class TcpOpening : std::uint8_t { kHttp2, kTls, kOther };

// Returns the protocol of the first bytes, of which there must be at least one; a part of the opening is enough.
TcpOpening OpeningOf(std::string_view first_bytes);

// Number of bytes that OpeningOf compares.
inline constexpr std::size_t kOpeningBytes = 24;

}  // namespace kubebeast
