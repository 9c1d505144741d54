#include "engines/vllm/checks.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>

namespace ullage::engines::vllm {
namespace {

constexpr std::int64_t kLargestCapture = 1 << 16;

tl::unexpected<Error> refuse(std::string_view flag, std::string message) {
  return fail(ErrorCode::invalid_argument, std::string(flag), std::move(message));
}

const Json* object_at(const Json& json, const char* key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(key);
  return found != json.end() && found->is_object() ? &*found : nullptr;
}

std::string text_at(const Json& json, const char* key) {
  if (!json.is_object()) return {};
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

double number_at(const Json& json, const char* key, double otherwise) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<double>() : otherwise;
}

// How positions are stretched: of the text model, of its layers that see everything.
const Json* stretching(const Json& config) {
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* form = object_at(config, key);
    if (form == nullptr) continue;
    const Json* full = object_at(*form, "full_attention");
    return full != nullptr ? full : form;
  }
  const Json* text = object_at(config, "text_config");
  return text != nullptr ? stretching(*text) : nullptr;
}

bool counts_as_stretched(const std::string& type) {
  for (const char* word : {"su", "longrope", "llama3", "mrope", "default"}) {
    if (type == word) return false;
  }
  return !type.empty();
}

std::int64_t positive_at(const Json& config, const char* key) {
  if (!config.is_object()) return 0;
  const auto found = config.find(key);
  const bool counts = found != config.end() && found->is_number_integer();
  return counts ? std::max<std::int64_t>(0, found->get<std::int64_t>()) : 0;
}

// Whether the file itself says how long a sequence may be; what a class takes for those that do not is not known here.
bool says_length(const Json& config) {
  for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length",
                          "max_sequence_length", "max_seq_length", "seq_len"}) {
    if (positive_at(config, key) > 0) return true;
  }
  const Json* text = object_at(config, "text_config");
  return text != nullptr && says_length(*text);
}

}  // namespace

std::int64_t derived_length(const model::Architecture& architecture, const Json& config) {
  const std::int64_t positions = architecture.max_positions;
  const Json* form = stretching(config);
  const bool gemma3 = text_at(config, "model_type").find("gemma3") != std::string::npos;
  if (form == nullptr || gemma3 || positions <= 0) return positions;
  const std::string rope_type = text_at(*form, "rope_type");
  const std::string type = rope_type.empty() ? text_at(*form, "type") : rope_type;
  if (!counts_as_stretched(type)) return positions;
  constexpr double kMost = 1 << 20;
  const double factor = std::clamp(number_at(*form, "factor", 1), 0.0, kMost);
  double from = static_cast<double>(positions);
  if (type == "yarn") from = number_at(*form, "original_max_position_embeddings", from);
  return static_cast<std::int64_t>(from * factor);
}

Expected<void> check_length(const model::Architecture& architecture, const Json& config, std::int64_t max_model_len,
                            bool allows_long) {
  const std::int64_t derived = derived_length(architecture, config);
  if (derived <= 0 || max_model_len <= derived || allows_long || !says_length(config)) return {};
  if (max_model_len <= positive_at(config, "model_max_length")) return {};
  return refuse("--max-model-len",
                fmt::format("vLLM refuses to start: User-specified max_model_len ({}) is greater than the derived "
                            "max_model_len ({}) in model's config.json; lower it, or --env "
                            "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
                            max_model_len, derived));
}

bool has_drafting_layers(const Json& config) {
  for (const char* key : {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers", "mtp_num_layers"}) {
    if (positive_at(config, key) > 0) return true;
  }
  const Json* text = object_at(config, "text_config");
  // Their drafting layer is part of the family, whatever the file says.
  return text_at(config, "model_type") == "qwen3_next" || (text != nullptr && has_drafting_layers(*text));
}

FirstEngine first_engine(Version release, const model::Architecture& architecture, const hardware::Gpu* card,
                         bool env_asks) {
  if (release < kV1) return FirstEngine::by_release;
  if (release >= kWithoutV0) return FirstEngine::no;
  if (env_asks) return FirstEngine::by_env;
  constexpr hardware::ComputeCapability kAmpere{8, 0};
  if (card != nullptr && card->compute_capability && *card->compute_capability < kAmpere) return FirstEngine::by_card;
  constexpr Version kHybridModels{0, 9, 2};
  const bool crosses =
      std::any_of(architecture.kinds.begin(), architecture.kinds.end(), [](const model::LayerKind& kind) {
        const auto caches = model::token_caches(kind);
        return std::any_of(caches.begin(), caches.end(),
                           [](const model::TokenCache& cache) { return cache.kind == model::TokenCacheKind::cross; });
      });
  const bool recurs = std::any_of(architecture.kinds.begin(), architecture.kinds.end(),
                                  [](const model::LayerKind& kind) { return kind.recurrent.has_value(); });
  return crosses || (recurs && release < kHybridModels) ? FirstEngine::by_model : FirstEngine::no;
}

Expected<std::vector<std::int64_t>> read_capture_sizes(const std::string& text, std::int64_t most_tokens) {
  constexpr std::string_view kFlag = "--cudagraph-capture-sizes";
  const auto nonsense = [&] {
    return refuse(kFlag, fmt::format("'{}' is no list of batch sizes from 1 to {}; write 1,2,4,8", text.substr(0, 40),
                                     kLargestCapture));
  };
  std::string_view rest = text;
  const auto skip = [&](std::string_view letters) {
    const std::size_t begin = rest.find_first_not_of(letters);
    rest = begin == std::string_view::npos ? std::string_view() : rest.substr(begin);
  };
  skip(" ");
  const bool bracket = rest.starts_with('[');
  if (bracket) {
    if (const std::size_t end = rest.find_last_not_of(' '); rest[end] != ']') return nonsense();
    rest = rest.substr(1, rest.rfind(']') - 1);
  }
  std::vector<std::int64_t> out;
  for (skip(" "); !rest.empty(); skip(" ,")) {
    std::int64_t size = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc{} || size < 1 || size > kLargestCapture) return nonsense();
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (!rest.empty() && rest.front() != ' ' && rest.front() != ',') return nonsense();
    out.push_back(size);
  }
  if (out.empty()) return nonsense();
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  out.erase(std::upper_bound(out.begin(), out.end(), most_tokens), out.end());
  if (!out.empty()) return out;
  return refuse(kFlag, fmt::format("no size is within the {} tokens of one step; give smaller ones, or "
                                   "--enforce-eager for no graphs",
                                   most_tokens));
}

namespace {

// One matrix of a layer or outside, and the rows and columns that a rank has of it.
class BlockChecker {
 public:
  BlockChecker(const Options& options, const model::Quantisation& quantisation)
      : options_(options), quantisation_(quantisation) {}

  Expected<void> check(const model::Parameter& parameter, const std::string& module, bool of_experts) const {
    const model::WeightScheme* scheme = scheme_of(module);
    if (scheme == nullptr || scheme->block_rows <= 0 || parameter.dims.size() < 2) return {};
    // Sparse attention's keys and weights are whole on every rank.
    if (module.find("indexer") != std::string::npos) return {};
    const std::size_t rows = parameter.dims.size() - 2;
    const bool mixture = of_experts && parameter.dims.size() == 3;
    if (!mixture && parameter.module != model::ModuleKind::linear) return {};
    if (mixture && options_.enable_expert_parallel) return {};
    return check_side(parameter.dims[rows], scheme->block_rows, mixture, true).and_then([&] {
      return check_side(parameter.dims[rows + 1], scheme->block_columns, mixture, false);
    });
  }

 private:
  const model::WeightScheme* scheme_of(const std::string& module) const {
    if (quantisation_.ignored.names(module)) return nullptr;
    for (const auto& rule : quantisation_.rules) {
      if (rule.targets.patterns.empty() || rule.targets.names(module)) return &rule.scheme;
    }
    return nullptr;
  }

  // Rows that are cut, or that several matrices share, and columns that are cut.
  Expected<void> check_side(const model::Dimension& dim, std::int64_t block, bool mixture, bool output) const {
    const std::int64_t tp = mixture ? options_.expert_ranks() : options_.tensor_parallel_size;
    for (const model::AxisPart& part : dim.parts) {
      const bool heads = part.axis == model::Axis::heads || part.axis == model::Axis::kv_heads;
      if (tp == 1 || !(heads || part.axis == model::Axis::ffn)) continue;
      const std::int64_t whole = part.count * part.unit;
      const std::int64_t own = heads ? std::max<std::int64_t>(1, part.count / tp) * part.unit : whole / tp;
      if (own % block == 0 && (heads || whole % tp == 0)) continue;
      return refuse("--tensor-parallel-size", words(own, block, mixture, output));
    }
    return {};
  }

  static std::string words(std::int64_t own, std::int64_t block, bool mixture, bool output) {
    const std::string_view side =
        mixture ? (output ? "The output_size of gate's and up's weight" : "The input_size of down's weight")
                : (output ? "Weight output_partition_size" : "Weight input_size_per_partition");
    return fmt::format(
        "vLLM refuses to start: {} = {} is not divisible by weight quantization {} = {}; take fewer "
        "ranks{}",
        side, own, output ? "block_n" : "block_k", block, mixture ? " or --enable-expert-parallel" : "");
  }

  const Options& options_;
  const model::Quantisation& quantisation_;
};

std::string module_of(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  return parameter.substr(0, dot);
}

}  // namespace

Expected<void> check_blocks(const model::Architecture& architecture, const Options& options,
                            const model::Quantisation& quantisation) {
  const BlockChecker checker(options, quantisation);
  for (std::int64_t layer = architecture.encoder_layers; layer < architecture.layer_count(); ++layer) {
    const model::LayerKind& kind = architecture.kind_of(layer);
    const bool mixture = kind.mixture.experts.count > 0;
    for (const model::Parameter& parameter : kind.parameters) {
      const std::string name = architecture.layer_prefix + std::to_string(layer) + "." + parameter.name;
      if (auto checked = checker.check(parameter, module_of(name), mixture); !checked) return checked;
    }
  }
  return {};
}

}  // namespace ullage::engines::vllm
