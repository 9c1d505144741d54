#include "hub/settings.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/file.h"
#include "base/lines.h"

namespace ullage::hub {
namespace {

constexpr std::int64_t kMostTokenBytes = 4096;
constexpr int kLongestTimeout = 3600;

// The first of the variables that is set, or the fallback.
std::string first_of(const Environment& environment, std::initializer_list<const char*> names, std::string fallback) {
  for (const char* name : names) {
    if (std::string value = environment(name); !value.empty()) return value;
  }
  return fallback;
}

bool is_true(std::string_view value) {
  constexpr std::string_view kTrue[] = {"1", "on", "yes", "true"};
  return std::any_of(std::begin(kTrue), std::end(kTrue),
                     [&](std::string_view one) { return compare_ignoring_case(value, one) == 0; });
}

// A token is one word; a line end would end the header that carries it.
std::string cleaned(std::string token) {
  std::erase_if(token, [](char c) { return static_cast<unsigned char>(c) <= ' ' || c == 0x7F; });
  return token;
}

std::string token_of(const Environment& environment, const std::string& home) {
  if (is_true(environment("HF_HUB_DISABLE_IMPLICIT_TOKEN"))) return {};
  if (std::string given = first_of(environment, {"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"}, ""); !given.empty())
    return cleaned(std::move(given));
  const std::string path = first_of(environment, {"HF_TOKEN_PATH"}, home.empty() ? "" : home + "/token");
  if (path.empty()) return {};
  return cleaned(read_file(path, kMostTokenBytes).value_or(""));
}

std::string home_of(const Environment& environment) {
  const std::string user = environment("HOME");
  const std::string caches = first_of(environment, {"XDG_CACHE_HOME"}, user.empty() ? "" : user + "/.cache");
  std::string home = first_of(environment, {"HF_HOME"}, caches.empty() ? "" : caches + "/huggingface");
  if (home.starts_with("~/") && !user.empty()) home.replace(0, 1, user);
  return home;
}

int timeout_of(const Environment& environment, int fallback) {
  const std::string given = environment("HF_HUB_DOWNLOAD_TIMEOUT");
  int seconds = 0;
  std::from_chars(given.data(), given.data() + given.size(), seconds);
  return seconds > 0 ? std::min(seconds, kLongestTimeout) : fallback;
}

}  // namespace

Settings settings_of(const Environment& environment) {
  Settings out;
  out.endpoint = first_of(environment, {"HF_ENDPOINT"}, out.endpoint);
  while (out.endpoint.ends_with('/')) out.endpoint.pop_back();
  const std::string home = home_of(environment);
  out.token = token_of(environment, home);
  out.cache = first_of(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}, home.empty() ? "" : home + "/hub");
  if (!home.empty()) out.beginnings = home + "/ullage";
  out.offline = is_true(first_of(environment, {"HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"}, ""));
  out.timeout_seconds = timeout_of(environment, out.timeout_seconds);
  return out;
}

}  // namespace ullage::hub
