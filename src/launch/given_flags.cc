#include "launch/given_flags.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

#include "base/json.h"
#include "launch/yaml.h"

namespace ullage::launch {
namespace {

bool is_flag(const std::string& word) {
  if (word.size() < 2 || word.front() != '-') return false;
  const char next = word[1];
  return std::isdigit(static_cast<unsigned char>(next)) == 0 && next != '.';
}

bool is_truth(std::string_view word) {
  return word == "true" || word == "True" || word == "TRUE" || word == "false" || word == "False" || word == "FALSE";
}

bool is_false(std::string_view word) { return word.starts_with('f') || word.starts_with('F') || word == "0"; }

class Parser {
 public:
  Parser(Engine engine, std::span<const std::string> words) : engine_(engine), words_(words) {}

  Expected<GivenFlags> run() {
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      if (word == "--") continue;
      if (!is_flag(word)) {
        out_.positionals.push_back(word);
        continue;
      }
      if (auto read = flag(word); !read) return tl::unexpected<Error>(read.error());
    }
    return std::move(out_);
  }

 private:
  Expected<void> flag(const std::string& word) {
    const std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    // "-O3" and "-O.mode=3" of vLLM.
    std::string path;
    if (engine_ == Engine::vllm && name.size() > 2 && name.starts_with("-O") && name[2] != '.') {
      value = name.substr(2);
      name = "-O";
    }
    if (const std::size_t dot = name.find('.'); engine_ == Engine::vllm && dot != std::string::npos) {
      path = name.substr(dot + 1);
      name.resize(dot);
      if (name == "-O") name = "-cc";
    }
    const auto found = find_flag(engine_, name);
    if (!found) return unknown(name, std::move(value));
    return take(*found, std::move(path), std::move(value));
  }

  Expected<void> take(const FoundFlag& found, std::string path, std::optional<std::string> value) {
    GivenFlag given{found, std::move(path), {}, {}};
    const Takes takes = given.path.empty() ? found.takes : Takes::value;
    const bool truth_follows = at_ < words_.size() && is_truth(words_[at_]);
    switch (takes) {
      case Takes::nothing:
        if (!value && truth_follows) value = words_[at_++];
        if (value && is_false(*value)) given.flag.off = !given.flag.off;
        break;
      case Takes::maybe:
        if (!value && at_ < words_.size() && !is_flag(words_[at_])) value = words_[at_++];
        given.value = value.value_or("");
        break;
      case Takes::value:
      case Takes::values:
        if (!value && at_ < words_.size() && !is_flag(words_[at_])) value = words_[at_++];
        if (!value) return fail(ErrorCode::invalid_argument, found.name, "needs a value");
        given.value = *value;
        break;
    }
    while (takes == Takes::values && at_ < words_.size() && !is_flag(words_[at_])) given.value += "," + words_[at_++];
    out_.flags.push_back(std::move(given));
    return {};
  }

  // What no flag has is taken for the nearest; its value is what follows, if that is no flag.
  Expected<void> unknown(const std::string& name, std::optional<std::string> value) {
    std::string nearest = nearest_flag(engine_, name);
    if (!nearest.empty()) {
      const auto meant = find_flag(engine_, nearest);
      const std::size_t before = out_.flags.size();
      if (auto taken = take(*meant, {}, std::move(value)); !taken) return taken;
      out_.unknown.push_back({name, out_.flags[before].value, std::move(nearest)});
      return {};
    }
    if (!value && at_ < words_.size() && !is_flag(words_[at_])) value = words_[at_++];
    out_.unknown.push_back({name, value.value_or(""), {}});
    return {};
  }

  Engine engine_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  GivenFlags out_;
};

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : dumped(value); }

// A flag's value from a file: lists become words for flags that take several, JSON for others.
std::string file_value(const Json& value, Takes takes) {
  if (!value.is_array() || takes != Takes::values) return text_of(value);
  std::string out;
  for (const Json& item : value) out += (out.empty() ? "" : ",") + text_of(item);
  return out;
}

bool gives(const GivenFlags& given, const std::string& name) {
  return std::any_of(given.flags.begin(), given.flags.end(), [&](const GivenFlag& flag) {
    return flag.from.empty() && flag.path.empty() && flag.flag.name == name;
  });
}

struct NestedKey {
  std::string_view path;
  std::string_view flag;
};

// Source: tensorrt_llm/llmapi/llm_args.py, and --help of trtllm-serve.
constexpr NestedKey kNested[] = {
    {"kv_cache_config.free_gpu_memory_fraction", "--kv_cache_free_gpu_memory_fraction"},
    {"kv_cache_config.dtype", "--kv_cache_dtype"},
    {"kv_cache_config.tokens_per_block", "--tokens_per_block"},
    {"kv_cache_dtype", "--kv_cache_dtype"},
    {"tensor_parallel_size", "--tp_size"},
    {"pipeline_parallel_size", "--pp_size"},
    {"moe_expert_parallel_size", "--ep_size"},
    {"max_batch_size", "--max_batch_size"},
    {"max_num_tokens", "--max_num_tokens"},
    {"max_seq_len", "--max_seq_len"},
    {"max_input_len", "--max_input_len"},
    {"max_beam_width", "--max_beam_width"},
    {"dtype", "--dtype"},
};

void add_nested(const Json& object, const std::string& prefix, const std::string& path, GivenFlags& given) {
  for (const auto& [key, value] : object.items()) {
    const std::string whole = prefix + key;
    if (value.is_null()) continue;
    const auto known = std::find_if(std::begin(kNested), std::end(kNested),
                                    [&](const NestedKey& nested) { return nested.path == whole; });
    if (known != std::end(kNested)) {
      const std::string flag(known->flag);
      std::erase_if(given.flags, [&](const GivenFlag& one) { return one.flag.name == flag; });
      given.flags.push_back({*find_flag(Engine::tensorrt_llm, flag), {}, text_of(value), path});
    } else if (value.is_object() && prefix.empty()) {
      add_nested(value, key + ".", path, given);
    } else {
      FoundFlag other{whole, Takes::value, Role::uncounted, {}, false};
      given.flags.push_back({std::move(other), {}, text_of(value), path});
    }
  }
}

}  // namespace

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Expected<GivenFlags> take_apart(Engine engine, std::span<const std::string> arguments) {
  return Parser(engine, arguments).run();
}

Expected<void> add_file(Engine engine, std::string_view text, const std::string& path, GivenFlags& given) {
  const auto file = parse_yaml(text, excerpt(path));
  if (!file) return tl::unexpected<Error>(file.error());
  if (file->is_null()) return {};
  if (!file->is_object())
    return fail(ErrorCode::malformed, excerpt(path), "expected flags and their values, one `name: value` a line");
  if (engine == Engine::tensorrt_llm) {
    add_nested(*file, {}, path, given);
    return {};
  }
  for (const auto& [key, value] : file->items()) {
    if (value.is_null()) continue;
    const std::string name = "--" + (key == "model_tag" ? std::string("model") : key);
    auto flag = find_flag(engine, name);
    if (!flag) {
      std::string nearest = nearest_flag(engine, name);
      given.unknown.push_back({name, text_of(value), nearest});
      if (nearest.empty()) continue;
      flag = find_flag(engine, nearest);
    }
    if (gives(given, flag->name)) continue;
    GivenFlag out{*flag, {}, {}, path};
    if (flag->takes != Takes::nothing) out.value = file_value(value, flag->takes);
    else if (value == false) out.flag.off = !out.flag.off;
    given.flags.push_back(std::move(out));
  }
  return {};
}

}  // namespace ullage::launch
