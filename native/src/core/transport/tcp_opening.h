// What a TCP connection begins with.
#pragma once

#include <cstdint>
#include <string_view>

namespace kubebeast {

enum class TcpOpening : std::uint8_t { kHttp2, kTls, kOther };

// From the first bytes, one at least: as far as they go they must agree.
TcpOpening OpeningOf(std::string_view first_bytes);

// As many bytes as OpeningOf looks at.
inline constexpr std::size_t kOpeningBytes = 24;

}  // namespace kubebeast
