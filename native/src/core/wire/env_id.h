// Notations of environment ids.
#pragma once

#include <initializer_list>
#include <string_view>

namespace kubebeast {

// Returns namespace, name and version of an id, without the module that registers it and the kind of its environments:
// "gymnasium:CartPole-v1", "vector/CartPole-v1" and "CartPole-v1" are the same environment. kubebeast_common.ids.env_id
// has the same kinds.
inline std::string_view PlainEnvId(std::string_view env_id) {
  if (const auto module = env_id.rfind(':'); module != std::string_view::npos) env_id.remove_prefix(module + 1);
  for (const std::string_view kind : {"vector/", "envpool/", "pettingzoo/", "dm_env/", "gym/"}) {
    if (env_id.substr(0, kind.size()) == kind) return env_id.substr(kind.size());
  }
  return env_id;
}

}  // namespace kubebeast
