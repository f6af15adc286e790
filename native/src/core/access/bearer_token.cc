#include "access/bearer_token.h"

#include <algorithm>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace kubebeast {
namespace {

constexpr absl::string_view kScheme = "Bearer";
constexpr std::size_t kMaxFileBytes = std::size_t{64} << 10U;

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  // read() sets badbit for a directory; a stream iterator would throw.
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    return absl::UnavailableError(absl::StrCat("the token file ", path, " cannot be read"));
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path) {
  const auto text = ReadFile(path);
  if (!text.ok()) return text.status();
  std::vector<std::string> tokens;
  for (const absl::string_view line : absl::StrSplit(*text, '\n')) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    // gRPC aborts the process on metadata with any other character.
    if (!std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
      return absl::UnavailableError(
          absl::StrCat("the token file ", path, " holds a character that is not visible ASCII"));
    }
    if (!token.empty()) tokens.emplace_back(token);
  }
  if (tokens.empty()) return absl::UnavailableError(absl::StrCat("the token file ", path, " holds no token"));
  return tokens;
}

// Compares strings of the same length in a time that does not depend on their contents.
bool EqualInConstantTime(absl::string_view left, absl::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  }
  return difference == 0;
}

}  // namespace

absl::Status BearerToken::Check(const std::optional<std::string>& authorization) const {
  if (!enabled()) return absl::OkStatus();
  if (!authorization.has_value()) return absl::UnauthenticatedError("the bearer token is missing");
  const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(*authorization, absl::MaxSplits(' ', 1));
  if (!absl::EqualsIgnoreCase(words.first, kScheme) || words.second.empty()) {
    return absl::UnauthenticatedError("the bearer token is missing");
  }
  const auto tokens = ReadTokens(path_);
  // A peer must not learn the path of the token file.
  if (!tokens.ok()) return absl::UnavailableError("the learner cannot check tokens at the moment");
  bool known = false;
  for (const std::string& token : *tokens) known |= EqualInConstantTime(words.second, token);
  return known ? absl::OkStatus() : absl::UnauthenticatedError("the bearer token is wrong");
}

absl::StatusOr<std::string> BearerToken::Authorization() const {
  const auto tokens = ReadTokens(path_);
  if (!tokens.ok()) return tokens.status();
  return absl::StrCat(kScheme, " ", tokens->front());
}

}  // namespace kubebeast
