#include "report/cache_facts.h"

#include <array>

#include "base/bytes.h"

namespace ullage::report {
namespace {

using model::CacheLine;
using model::RecurrentKind;
using model::TokenCacheKind;

struct KindName {
  std::string_view name;
  Text text;
};

// In the order of the enumerations.
constexpr std::array kTokenKinds{KindName{"keys_values", Text::cache_keys_values},
                                 KindName{"latent", Text::cache_latent}, KindName{"indexer", Text::cache_indexer},
                                 KindName{"cross", Text::cache_cross}};
constexpr std::array kStateKinds{KindName{"linear_attention", Text::cache_linear_attention},
                                 KindName{"gated_delta_net", Text::cache_gated_delta_net},
                                 KindName{"mamba", Text::cache_mamba},
                                 KindName{"mamba2", Text::cache_mamba2},
                                 KindName{"rwkv", Text::cache_rwkv},
                                 KindName{"short_convolution", Text::cache_short_convolution}};

const KindName& name_of(const CacheLine& line) {
  return line.tokens ? kTokenKinds[static_cast<std::size_t>(line.tokens->kind)]
                     : kStateKinds[static_cast<std::size_t>(line.state->kind)];
}

// Over the line's layers.
std::int64_t token_bytes(const CacheLine& line, const model::CacheTypes& types) {
  return multiply_saturated(line.layers, model::entry_bytes(*line.tokens, types)) / line.tokens->tokens_per_entry;
}

std::int64_t all_state_bytes(const CacheLine& line, const model::CacheTypes& types) {
  return multiply_saturated(line.layers, model::state_bytes(*line.state, types));
}

Json line_json(const CacheLine& line, const model::CacheTypes& types) {
  Json out = {{"kind", name_of(line).name}, {"layers", line.layers}};
  if (line.state) {
    out["state_bytes"] = all_state_bytes(line, types);
    return out;
  }
  const model::TokenCache& cache = *line.tokens;
  out["heads"] = cache.heads;
  out["key_dim"] = cache.key_dim;
  out["value_dim"] = cache.value_dim;
  out["window"] = cache.window ? Json(*cache.window) : Json(nullptr);
  out["bytes_per_token"] = token_bytes(line, types);
  return out;
}

Message describe(const CacheLine& line, const model::CacheTypes& types) {
  const Text kind = name_of(line).text;
  if (line.state)
    return {Text::inspect_cache_state,
            {{"layers", line.layers}, {"kind", kind}, {"bytes", Bytes{all_state_bytes(line, types)}}}};
  Message out{Text::inspect_cache_tokens,
              {{"layers", line.layers}, {"kind", kind}, {"bytes", Bytes{token_bytes(line, types)}}}};
  if (!line.tokens->window) return out;
  out.key = Text::inspect_cache_window;
  out.values.push_back({"window", *line.tokens->window});
  return out;
}

}  // namespace

CacheFacts cache_facts(const model::Architecture& architecture, const model::CacheTypes& types) {
  return {types, model::cache_lines(architecture), model::cache_bytes(architecture, types, 0, 0)};
}

Json cache_json(const CacheFacts& facts) {
  if (facts.lines.empty()) return nullptr;
  Json kinds = Json::array();
  for (const CacheLine& line : facts.lines) kinds.push_back(line_json(line, facts.types));
  return {{"dtype", facts.types.keys.name},
          {"bytes_per_token", facts.bytes.per_token},
          {"bytes_per_token_beyond_windows", facts.bytes.per_later_token},
          {"state_bytes_per_sequence", facts.bytes.state},
          {"kinds", std::move(kinds)}};
}

void write_cache(TextPage& page, const CacheFacts& facts) {
  if (facts.lines.empty()) return;
  page.heading(Text::inspect_cache);
  for (const CacheLine& line : facts.lines) page.line("  " + page.say(describe(line, facts.types)));
  const Text sum = facts.bytes.state > 0 ? Text::inspect_cache_sum_state : Text::inspect_cache_sum;
  page.line("  " + page.say(Message{sum,
                                    {{"bytes", Bytes{facts.bytes.per_token}},
                                     {"exact", Count{facts.bytes.per_token}},
                                     {"type", std::string(facts.types.keys.name)},
                                     {"state", Bytes{facts.bytes.state}}}}));
}

}  // namespace ullage::report
