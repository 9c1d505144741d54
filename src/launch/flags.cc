#include "launch/flags.h"

#include <algorithm>

#include "base/nearest.h"

namespace ullage::launch {
namespace {

const FlagTable& table_of(Engine engine) {
  switch (engine) {
    case Engine::vllm: return vllm_flags();
    case Engine::sglang: return sglang_flags();
    case Engine::tensorrt_llm: return tensorrt_llm_flags();
  }
  return vllm_flags();
}

template <class Visit>
void for_each_name(std::string_view list, Visit visit) {
  while (!list.empty()) {
    const std::size_t end = list.find(' ');
    if (end != 0) visit(list.substr(0, end));
    if (end == std::string_view::npos) return;
    list.remove_prefix(end + 1);
  }
}

struct Words {
  std::string_view FlagTable::*list;
  Takes takes;
  Role role;
};

constexpr Words kWords[] = {
    {&FlagTable::ignored_values, Takes::value, Role::ignored},
    {&FlagTable::ignored_switches, Takes::nothing, Role::ignored},
    {&FlagTable::ignored_lists, Takes::values, Role::ignored},
    {&FlagTable::uncounted_values, Takes::value, Role::uncounted},
    {&FlagTable::uncounted_switches, Takes::nothing, Role::uncounted},
};

// Calls visit(name, flag) for every name of every flag.
template <class Visit>
void for_each_flag(const FlagTable& table, Visit visit) {
  for (const Flag& flag : table.flags) {
    for_each_name(flag.names, [&](std::string_view name) { visit(name, flag); });
  }
  for (const Words& words : kWords) {
    for_each_name(table.*words.list, [&](std::string_view name) { visit(name, Flag{name, words.takes, words.role}); });
  }
}

char plain(char c) { return c == '_' ? '-' : c; }

// Whether `beginning` is how `name` begins, underscores and dashes taken for the same.
bool begins(std::string_view name, std::string_view beginning) {
  return beginning.size() <= name.size() && std::equal(beginning.begin(), beginning.end(), name.begin(),
                                                       [](char a, char b) { return plain(a) == plain(b); });
}

bool same(std::string_view a, std::string_view b) { return a.size() == b.size() && begins(a, b); }

FoundFlag found(const Flag& flag) { return {std::string(flag.name()), flag.takes, flag.role, flag.option, false}; }

std::optional<FoundFlag> find_exactly(const FlagTable& table, std::string_view written) {
  std::optional<FoundFlag> out;
  for_each_flag(table, [&](std::string_view name, const Flag& flag) {
    if (!out && same(name, written)) out = found(flag);
  });
  return out;
}

// "--no-enable-prefix-caching".
std::optional<FoundFlag> find_negated(const FlagTable& table, std::string_view written) {
  constexpr std::string_view kNo = "--no-";
  if (!begins(written, kNo)) return std::nullopt;
  auto out = find_exactly(table, "--" + std::string(written.substr(kNo.size())));
  if (!out || out->takes != Takes::nothing) return std::nullopt;
  out->off = true;
  return out;
}

std::optional<FoundFlag> find_abbreviated(const FlagTable& table, std::string_view written) {
  if (!table.abbreviates || written.size() < 4 || !written.starts_with("--")) return std::nullopt;
  std::optional<FoundFlag> out;
  bool several = false;
  for_each_flag(table, [&](std::string_view name, const Flag& flag) {
    if (!begins(name, written)) return;
    several = several || (out && out->name != flag.name());
    out = found(flag);
  });
  return several ? std::nullopt : out;
}

}  // namespace

std::string_view engine_word(Engine engine) {
  switch (engine) {
    case Engine::vllm: return "vllm";
    case Engine::sglang: return "sglang";
    case Engine::tensorrt_llm: return "tensorrt-llm";
  }
  return "vllm";
}

std::string_view engine_title(Engine engine) {
  switch (engine) {
    case Engine::vllm: return "vLLM";
    case Engine::sglang: return "SGLang";
    case Engine::tensorrt_llm: return "TensorRT-LLM";
  }
  return "vLLM";
}

std::optional<FoundFlag> find_flag(Engine engine, std::string_view written) {
  const FlagTable& table = table_of(engine);
  if (auto out = find_exactly(table, written)) return out;
  if (auto out = find_negated(table, written)) return out;
  return find_abbreviated(table, written);
}

std::string nearest_flag(Engine engine, std::string_view written) {
  constexpr std::size_t kFarthest = 3;  // letters
  std::string best;
  std::size_t least = std::min(kFarthest, written.size() / 4) + 1;
  std::string plain_written(written);
  std::transform(plain_written.begin(), plain_written.end(), plain_written.begin(), plain);
  for_each_flag(table_of(engine), [&](std::string_view name, const Flag& flag) {
    std::string plain_name(name);
    std::transform(plain_name.begin(), plain_name.end(), plain_name.begin(), plain);
    const std::size_t distance = edit_distance(plain_written, plain_name);
    if (distance >= least) return;
    least = distance;
    best = flag.name();
  });
  return best;
}

std::vector<std::string_view> flags_of(Engine engine, Role role) {
  std::vector<std::string_view> out;
  for_each_flag(table_of(engine), [&](std::string_view name, const Flag& flag) {
    if (flag.role == role && name == flag.name()) out.push_back(name);
  });
  return out;
}

}  // namespace ullage::launch
