#include "bearer_token.h"

#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace kubebeast {
namespace {

constexpr absl::string_view kScheme = "Bearer ";

absl::StatusOr<std::vector<std::string>> ReadTokens(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.good()) return absl::UnavailableError(absl::StrCat("the token file ", path, " cannot be read"));
  std::vector<std::string> tokens;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    const absl::string_view token = absl::StripAsciiWhitespace(line);
    if (!token.empty()) tokens.emplace_back(token);
  }
  if (tokens.empty()) return absl::UnavailableError(absl::StrCat("the token file ", path, " holds no token"));
  return tokens;
}

// Takes as long for a wrong guess as for a right one of the same length.
bool EqualInConstantTime(absl::string_view left, absl::string_view right) {
  if (left.size() != right.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(right[i]);
  }
  return difference == 0;
}

}  // namespace

absl::Status BearerToken::Check(const std::multimap<grpc::string_ref, grpc::string_ref>& metadata) const {
  if (!enabled()) return absl::OkStatus();
  const auto entry = metadata.find("authorization");
  if (entry == metadata.end()) return absl::UnauthenticatedError("the bearer token is missing");
  const absl::string_view value(entry->second.data(), entry->second.size());
  const auto tokens = ReadTokens(path_);
  // A peer may not learn where the learner keeps its files.
  if (!tokens.ok()) return absl::UnavailableError("the learner cannot check tokens at the moment");
  bool known = false;
  for (const std::string& token : *tokens) known |= EqualInConstantTime(value, absl::StrCat(kScheme, token));
  return known ? absl::OkStatus() : absl::UnauthenticatedError("the bearer token is wrong");
}

absl::StatusOr<std::string> BearerToken::Authorization() const {
  const auto tokens = ReadTokens(path_);
  if (!tokens.ok()) return tokens.status();
  return absl::StrCat(kScheme, tokens->front());
}

}  // namespace kubebeast
