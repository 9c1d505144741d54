#include "model/checkpoint/compare.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/bytes.h"

namespace ullage::model {
namespace {

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

template <std::size_t N>
bool contains_any(std::string_view text, const std::array<std::string_view, N>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) { return contains(text, part); });
}

template <std::size_t N>
bool ends_with_any(std::string_view text, const std::array<std::string_view, N>& endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
  });
}

// What quantisers store beside packed weights: fp8, compressed-tensors, MXFP4, GPTQ and AWQ, bitsandbytes.
constexpr std::array<std::string_view, 12> kScaleEndings{"_scale_inv",  "_scale",      "_scale_2", ".scale",
                                                         "_scales",     ".scales",     ".qzeros",  ".g_idx",
                                                         ".zero_point", "_zero_point", ".SCB",     ".weight_shape"};
constexpr std::array<std::string_view, 3> kScaleParts{".absmax", ".quant_map", ".quant_state"};
constexpr std::array<std::string_view, 4> kFrequencies{"rotary_emb.inv_freq", "rotary_pos_emb.inv_freq",
                                                       "rope_freqs.weight", "rope_factors_"};
constexpr std::array<std::string_view, 2> kMasks{".masked_bias", ".attention.bias"};
// Under which a module's weight is found in a packed form.
constexpr std::array<std::string_view, 3> kPacked{".qweight", ".weight_packed", "_blocks"};

bool is_scale(std::string_view name) { return ends_with_any(name, kScaleEndings) || contains_any(name, kScaleParts); }

// What loaders of transformers rename (conversion_mapping.py and base_model_prefix).
constexpr std::array<std::array<std::string_view, 2>, 8> kPrefixes{{{"", "model."},
                                                                    {"", "transformer."},
                                                                    {"", "bert."},
                                                                    {"", "vit."},
                                                                    {"model.", "model.language_model."},
                                                                    {"language_model.model.", "model.language_model."},
                                                                    {"visual.", "model.visual."},
                                                                    {"model.", ""}}};

std::string with_current_words(std::string name) {
  constexpr std::string_view kOld = ".block_sparse_moe.";
  if (const std::size_t at = name.find(kOld); at != std::string::npos) name.replace(at, kOld.size(), ".mlp.");
  return name;
}

class Comparison {
 public:
  Comparison(const Architecture& architecture, const Checkpoint& checkpoint)
      : architecture_(architecture), checkpoint_(checkpoint) {
    groups_.resize(static_cast<std::size_t>(Extra::other) + 1);
    for_each_parameter(architecture, [&](const Parameter& parameter, const std::string& name, int) {
      Wanted& wanted = wanted_[name];
      wanted = {&parameter, false};
      if (const std::size_t at = name.find(".experts."); at != std::string::npos)
        experts_[name.substr(0, at)].push_back(name);
    });
  }

  Difference compare() {
    for (const StoredTensor& tensor : checkpoint_.tensors) take(tensor);
    Difference out;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      groups_[i].what = static_cast<Extra>(i);
      if (groups_[i].tensors > 0) out.only_stored.push_back(std::move(groups_[i]));
    }
    out.other_shape = std::move(other_shape_);
    if (checkpoint_.format == CheckpointFormat::gguf) return out;
    for_each_parameter(architecture_, [&](const Parameter& parameter, const std::string& name, int) {
      if (!parameter.tied_to && !wanted_[name].found) out.only_in_model.push_back(name);
    });
    return out;
  }

 private:
  struct Wanted {
    const Parameter* parameter = nullptr;
    bool found = false;
  };

  void take(const StoredTensor& tensor) {
    if (checkpoint_.format == CheckpointFormat::gguf) {
      const Extra what = kind_of(tensor.name);
      if (what != Extra::other) add(what, tensor);
      return;
    }
    if (is_scale(tensor.name)) return add(Extra::scales, tensor);
    if (found(tensor)) return;
    add(kind_of(tensor.name), tensor);
  }

  void add(Extra what, const StoredTensor& tensor) {
    TensorGroup& group = groups_[static_cast<std::size_t>(what)];
    if (group.tensors++ == 0) group.example = tensor.name;
    group.elements = add_saturated(group.elements, tensor.elements);
    group.bytes = add_saturated(group.bytes, tensor.bytes);
  }

  bool found(const StoredTensor& tensor) {
    const std::string name = with_current_words(tensor.name);
    if (found_as(name, tensor)) return true;
    for (const auto& [stored, model] : kPrefixes) {
      if (name.starts_with(stored) && found_as(std::string(model) + name.substr(stored.size()), tensor)) return true;
    }
    return false;
  }

  bool found_as(const std::string& name, const StoredTensor& tensor) {
    if (Wanted* wanted = find(name)) {
      if (wanted->parameter->tied_to) return false;  // an extra: the head again
      wanted->found = true;
      if (wanted->parameter->elements() != tensor.elements) other_shape_.push_back(name);
      return true;
    }
    return found_packed(name) || found_expert(name);
  }

  Wanted* find(const std::string& name) {
    const auto at = wanted_.find(name);
    return at == wanted_.end() ? nullptr : &at->second;
  }

  bool found_packed(const std::string& name) {
    for (const std::string_view ending : kPacked) {
      if (name.size() <= ending.size() || std::string_view(name).substr(name.size() - ending.size()) != ending)
        continue;
      const std::string module = name.substr(0, name.size() - ending.size());
      Wanted* wanted = find(ending == "_blocks" ? module : module + ".weight");
      if (wanted != nullptr) wanted->found = true;
      return wanted != nullptr;
    }
    return false;
  }

  // "….experts.17.up_proj.weight" is a part of what the model has stacked.
  bool found_expert(const std::string& name) {
    const std::size_t at = name.find(".experts.");
    if (at == std::string::npos) return false;
    const auto stacked = experts_.find(name.substr(0, at));
    if (stacked == experts_.end()) return false;
    for (const std::string& parameter : stacked->second) find(parameter)->found = true;
    return true;
  }

  Extra kind_of(const std::string& name) const {
    if (contains_any(name, kFrequencies)) return Extra::frequencies;
    if (name.find("nextn.") != std::string::npos || is_predictor(name)) return Extra::predictors;
    if (checkpoint_.format == CheckpointFormat::gguf)
      return name.find("exp_probs_b") != std::string::npos ? Extra::buffers : Extra::other;
    if (is_buffer(name)) return Extra::buffers;
    if (ends_with_any(name, kMasks)) return Extra::masks;
    return name == "lm_head.weight" ? Extra::tied_head : Extra::other;
  }

  // Layers behind the last, or those of a part named for them.
  bool is_predictor(const std::string& name) const {
    if (name.starts_with("mtp.") || name.starts_with("model.mtp")) return true;
    const bool gguf = checkpoint_.format == CheckpointFormat::gguf;
    const std::string prefix = gguf ? "blk." : architecture_.layer_prefix;
    if (prefix.empty() || !name.starts_with(prefix)) return false;
    std::int64_t layer = 0;
    const char* begin = name.data() + prefix.size();
    const auto read = std::from_chars(begin, name.data() + name.size(), layer);
    return read.ec == std::errc{} && layer >= architecture_.layer_count() - architecture_.encoder_layers;
  }

  bool is_buffer(const std::string& name) const {
    const auto is = [&](const Buffer& buffer) {
      return buffer.persistent && (name == buffer.name ||
                                   ends_with_any(name, std::array<std::string_view, 1>{std::string_view(buffer.name)}));
    };
    if (std::any_of(architecture_.buffers.begin(), architecture_.buffers.end(), is)) return true;
    return std::any_of(architecture_.kinds.begin(), architecture_.kinds.end(), [&](const LayerKind& kind) {
      return std::any_of(kind.buffers.begin(), kind.buffers.end(), is);
    });
  }

  const Architecture& architecture_;
  const Checkpoint& checkpoint_;
  std::unordered_map<std::string, Wanted> wanted_;
  std::unordered_map<std::string, std::vector<std::string>> experts_;  // stacked parameters by what is in front
  std::vector<TensorGroup> groups_;
  std::vector<std::string> other_shape_;
};

}  // namespace

Difference compare(const Architecture& architecture, const Checkpoint& checkpoint) {
  return Comparison(architecture, checkpoint).compare();
}

StoredPart part_of(std::string_view name) {
  constexpr std::array<std::string_view, 2> kExperts{"expert", "_exps"};
  constexpr std::array<std::string_view, 3> kNorms{"norm", ".ln_", "ln_f"};
  constexpr std::array<std::string_view, 4> kHead{"lm_head", "embed_out", "output_layer", "score."};
  constexpr std::array<std::string_view, 7> kEmbeddings{"embed_tokens", "token_embd", "embeddings", ".wte.",
                                                        ".wpe.",        "wte.",       "embed_in"};
  constexpr std::array<std::string_view, 3> kAttention{"attn", "attention", "self_att"};
  constexpr std::array<std::string_view, 6> kFeedForward{"mlp",   "ffn",  "feed_forward", "block_sparse_moe",
                                                         ".fc1.", ".fc2."};
  if (is_scale(name)) return StoredPart::scales;
  if (contains_any(name, kNorms)) return StoredPart::norms;
  if (contains_any(name, kHead) || name.starts_with("output.")) return StoredPart::head;
  if (contains_any(name, kExperts)) return StoredPart::experts;
  if (contains_any(name, kEmbeddings)) return StoredPart::embeddings;
  if (contains_any(name, kFrequencies)) return StoredPart::other;
  if (contains_any(name, kAttention)) return StoredPart::attention;
  return contains_any(name, kFeedForward) ? StoredPart::feed_forward : StoredPart::other;
}

}  // namespace ullage::model
