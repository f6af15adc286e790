#include "wire/log_info.h"

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

}  // namespace kubebeast
