#include "wire/learner_texts.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "wire/protocol.h"

namespace kubebeast {

absl::Status ValidateLogInfo(const std::vector<std::string>& log_info) {
  if (log_info.size() > kMaxLogInfo) {
    return absl::InvalidArgumentError(
        absl::StrCat("log_info: ", log_info.size(), " keys, expected at most ", kMaxLogInfo));
  }
  for (const std::string& key : log_info) {
    if (key.empty() || key.size() > kMaxInfoCharacters || !std::all_of(key.begin(), key.end(), absl::ascii_isprint)) {
      return absl::InvalidArgumentError(absl::StrCat("log_info: \"", absl::Utf8SafeCHexEscape(key),
                                                     "\", expected 1 to ", kMaxInfoCharacters,
                                                     " printable ASCII characters"));
    }
    if (std::count(log_info.begin(), log_info.end(), key) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("log_info: \"", key, "\" is given twice"));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateOptions(absl::string_view text) {
  if (text.size() > kMaxOptionsCharacters) {
    return absl::InvalidArgumentError(
        absl::StrCat("episode_options: ", text.size(), " characters, expected at most ", kMaxOptionsCharacters));
  }
  const bool is_object = text.size() >= 2 && text.front() == '{' && text.back() == '}';
  if (!is_object || !std::all_of(text.begin(), text.end(), absl::ascii_isprint)) {
    return absl::InvalidArgumentError(absl::StrCat("episode_options: \"", absl::Utf8SafeCHexEscape(text),
                                                   "\", expected a JSON object in printable ASCII characters"));
  }
  return absl::OkStatus();
}

}  // namespace kubebeast
