#include "model/tuning.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/lines.h"
#include "base/nearest.h"
#include "data/ia3_targets.h"
#include "data/lora_targets.h"
#include "model/config_fields.h"
#include "tensor/quantised.h"

namespace ullage::model {
namespace {

constexpr std::string_view kAllLinear = "all-linear";

// "self_attn.q_proj.weight" belongs to the module "self_attn.q_proj".
std::string_view module_of(std::string_view parameter) { return parameter.substr(0, parameter.rfind('.')); }

// Whether `name` is the last part, or parts, of the module's path.
bool is_called(std::string_view module, std::string_view name) {
  if (!module.ends_with(name)) return false;
  return module.size() == name.size() || module[module.size() - name.size() - 1] == '.';
}

// As PEFT compares modules_to_save: "norm" fits "input_layernorm".
bool ends_with(std::string_view module, std::string_view name) { return module.ends_with(name); }

// Whether `name` is a part, or parts, of the module's path anywhere.
bool lies_in(std::string_view module, std::string_view name) {
  for (std::size_t at = module.find(name); at != std::string_view::npos; at = module.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || module[at - 1] == '.') && (end == module.size() || module[end] == '.')) return true;
  }
  return false;
}

// Which of the asked-for names were met, so that one that fits nothing can be said.
class Wanted {
 public:
  Wanted(std::string_view option, const std::vector<std::string>& names)
      : option_(option), names_(names), met_(names.size(), false) {}

  template <class Fits>
  bool matches(std::string_view module, Fits fits) {
    bool any = false;
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (!fits(module, names_[i])) continue;
      met_[i] = true;
      any = true;
    }
    return any;
  }

  Expected<void> all_met(const std::vector<std::string_view>& known) const {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (met_[i]) continue;
      const std::string hint = did_you_mean(nearest_names(names_[i], known));
      std::string list;
      for (const std::string_view name : known) list += fmt::format("{}{}", list.empty() ? "" : ", ", name);
      return fail(
          ErrorCode::invalid_argument, std::string(option_),
          fmt::format("'{}' fits no module; {}", names_[i].substr(0, 60), hint.empty() ? "known are " + list : hint));
    }
    return {};
  }

 private:
  std::string_view option_;
  const std::vector<std::string>& names_;
  std::vector<bool> met_;
};

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

void add_once(std::vector<std::string_view>& list, std::string_view name) {
  if (std::find(list.begin(), list.end(), name) == list.end()) list.push_back(name);
}

constexpr std::size_t kFusedParts = 3;  // queries, keys, values

std::vector<AdapterPart> adapter_of_parts(const Parameter& weight, const Tuning& tuning) {
  Dimension changed;
  for (std::size_t i = 0; i < kFusedParts; ++i) {
    if ((tuning.parts >> i & 1) != 0) changed.parts.push_back(weight.dims[0].parts[i]);
  }
  const std::string module(module_of(weight.name));
  const auto count = static_cast<std::int64_t>(changed.parts.size());
  const Dimension ranks = axis(Axis::rank, count, tuning.rank);
  return {{{module + ".lora_A", {ranks, weight.dims[1]}, {}}, true},
          {{module + ".lora_B", {changed, axis(Axis::rank, tuning.rank)}, {}}, true}};
}

// The factors of a linear's update, [rank, in] and [out, rank], and DoRA's magnitude, [out]; or (IA)3's scale, [1, in]
// or [out, 1].
std::vector<AdapterPart> adapter_of(const Parameter& weight, const Tuning& tuning, bool scales_input) {
  const bool turned = weight.module == ModuleKind::conv1d;
  const Dimension& in = weight.dims[turned ? 0 : 1];
  const Dimension& out = weight.dims[turned ? 1 : 0];
  const Dimension rank = axis(Axis::rank, tuning.rank);
  const std::string module(module_of(weight.name));
  if (tuning.parts != 0 && out.parts.size() == kFusedParts) return adapter_of_parts(weight, tuning);
  std::vector<AdapterPart> parts;
  if (tuning.tuner == Tuner::ia3) {
    const Dimension one = axis(Axis::rank, 1);
    const std::vector<Dimension> dims = scales_input ? std::vector{one, in} : std::vector{out, one};
    parts.push_back({{module + ".ia3_l.default", dims, {}}, true});
    return parts;
  }
  parts.push_back({{module + ".lora_A.weight", {rank, in}, {}}, tuning.tuner != Tuner::lora_fa});
  parts.push_back({{module + ".lora_B.weight", {out, rank}, {}}, true});
  if (tuning.tuner == Tuner::dora) parts.push_back({{module + ".lora_magnitude_vector.weight", {out}, {}}, true});
  for (AdapterPart& part : parts) part.parameter.unused = weight.unused;
  return parts;
}

bool is_linear(const Parameter& parameter) {
  return parameter.module == ModuleKind::linear || parameter.module == ModuleKind::conv1d;
}

std::string_view family_of(std::string_view line) { return quoted_after(line, "{\"model_type\":\""); }

std::vector<std::string> modules_of(std::string_view table, std::string_view family, std::string_view key) {
  std::vector<std::string> out;
  const std::string_view line = find_sorted_line(table, family, family_of);
  const auto row = parse_json(line, "targets");
  if (line.empty() || !row) return out;
  for (const Json& target : row->value(std::string(key), Json::array())) out.push_back(target.get<std::string>());
  return out;
}

std::vector<std::string> ia3_modules(std::string_view family, std::string_view key) {
  return modules_of(data::ia3_targets(), family, key);
}

class Planner {
 public:
  Planner(const Architecture& architecture, const Tuning& tuning, const std::vector<std::string>& targets)
      : architecture_(architecture),
        tuning_(tuning),
        targets_("--lora-targets", targets),
        saved_("--modules-to-save", tuning.saved),
        frozen_("--freeze", tuning.frozen),
        all_linear_(targets.size() == 1 && targets.front() == kAllLinear) {
    if (tuning.tuner == Tuner::ia3) feedforward_ = ia3_modules(architecture.family, "feedforward");
  }

  Expected<TuningPlan> plan() {
    TuningPlan out;
    out.globals = roles(architecture_.parameters, "");
    for (std::size_t kind = 0; kind < architecture_.kinds.size(); ++kind) {
      out.kinds.push_back(roles(architecture_.kinds[kind].parameters, prefix_of(kind)));
    }
    if (error_) return tl::unexpected<Error>(*error_);
    out.adapted = tuning_.tuner != Tuner::none;
    out.base = tuning_.base;
    out.all_train = !out.adapted && tuning_.frozen.empty() && !tuning_.marked;
    if (adds_tokens(tuning_.tuner)) out.virtual_tokens = virtual_tokens();
    if (!all_linear_) {
      if (auto met = targets_.all_met(linears_); !met) return tl::unexpected<Error>(met.error());
    }
    if (auto met = saved_.all_met(modules_); !met) return tl::unexpected<Error>(met.error());
    if (auto met = frozen_.all_met(modules_); !met) return tl::unexpected<Error>(met.error());
    if (parameter_totals(architecture_, out).trainable == 0)
      return fail(ErrorCode::invalid_argument, "--freeze", "nothing is left to train; name fewer modules");
    return out;
  }

 private:
  bool is_target(const Parameter& parameter, std::string_view module) {
    if (tuning_.tuner == Tuner::none || adds_tokens(tuning_.tuner)) return false;
    const bool convolves = parameter.module == ModuleKind::convolution && !all_linear_;
    if (convolves && targets_.matches(module, is_called)) refuse_convolution(module);
    if (!is_linear(parameter)) return false;
    if (!module.ends_with("lm_head")) add_once(linears_, last_part(module));
    if (all_linear_) return &parameter != head();
    return targets_.matches(module, is_called);
  }

  bool scales_input(std::string_view module) const {
    return std::any_of(feedforward_.begin(), feedforward_.end(),
                       [&](const std::string& name) { return is_called(module, name); });
  }

  // What quantisation leaves out: the last layer, whatever it is for.
  const Parameter* last() const {
    const ParameterRef ref = architecture_.head.weight;
    return ref ? &architecture_.parameters[static_cast<std::size_t>(ref.index)] : nullptr;
  }

  // The output embeddings, which all-linear leaves out; a classifier is none.
  const Parameter* head() const { return architecture_.input == InputKind::images ? nullptr : last(); }

  // What stands in front of the names of a kind's modules; a star for the number of the layer.
  std::string prefix_of(std::size_t kind) const {
    const auto first = architecture_.layers.begin();
    const auto end = first + architecture_.encoder_layers;
    const bool encodes = std::find(first, end, static_cast<std::uint8_t>(kind)) != end;
    return (encodes ? architecture_.encoder_prefix : architecture_.layer_prefix) + "*.";
  }

  void refuse_convolution(std::string_view module) {
    if (!error_) {
      error_ = Error{ErrorCode::unsupported,
                     fmt::format("fits the convolution {} too, whose adapter is not in this "
                                 "version; name modules by more of their path",
                                 module),
                     "--lora-targets"};
    }
  }

  // PEFT's PromptEmbedding, [tokens, hidden], or PrefixEncoder, [tokens, 2 x layers x key and value width].
  Parameter virtual_tokens() const {
    const Dimension rows = axis(Axis::position, tuning_.virtual_tokens);
    const Attention& attention = architecture_.kinds[0].attention;
    const Dimension width =
        tuning_.tuner == Tuner::prompt
            ? axis(Axis::hidden, architecture_.hidden)
            : axis(Axis::kv_heads, 2 * architecture_.layer_count() * attention.kv_heads, attention.head_dim);
    return {"prompt_encoder.default.embedding.weight", {rows, width}, {}};
  }

  std::vector<ParameterRole> roles(const std::vector<Parameter>& parameters, const std::string& prefix) {
    std::vector<ParameterRole> out(parameters.size());
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string_view module = module_of(parameters[i].name);
      add_once(modules_, last_part(module));
      ParameterRole& role = out[i];
      role.trains = tuning_.tuner == Tuner::none && !parameters[i].frozen &&
                    !frozen_.matches(prefix + std::string(module), lies_in);
      role.copied = saved_.matches(module, ends_with);
      role.quantised = tuning_.base != BaseFormat::plain && is_linear(parameters[i]) &&
                       (tuning_.head_too || &parameters[i] != last());
      out[i].beside_quantised =
          i > 0 && (out[i - 1].quantised || out[i - 1].beside_quantised) && module_of(parameters[i - 1].name) == module;
      if (!is_target(parameters[i], module)) continue;
      role.scales_input = scales_input(module);
      role.adapter = adapter_of(parameters[i], tuning_, role.scales_input);
      std::size_t last = i;
      while (last + 1 < parameters.size() && module_of(parameters[last + 1].name) == module) ++last;
      out[last].adapter_of = static_cast<std::int32_t>(i);
    }
    return out;
  }

  const Architecture& architecture_;
  const Tuning& tuning_;
  Wanted targets_, saved_, frozen_;
  bool all_linear_;
  std::optional<Error> error_;
  std::vector<std::string> feedforward_;
  std::vector<std::string_view> modules_;  // last parts of the names that there are
  std::vector<std::string_view> linears_;
};

bool is_packed(BaseFormat format) { return format == BaseFormat::gptq || format == BaseFormat::awq; }

struct Widths {
  std::int64_t out = 0;
  std::int64_t in = 0;
};

Widths widths_of(const Parameter& weight) {
  const bool turned = weight.module == ModuleKind::conv1d;
  return {weight.dims[turned ? 1 : 0].size(), weight.dims[turned ? 0 : 1].size()};
}

// Bytes of one quantised weight with its tables.
std::int64_t bytes_of(const Parameter& weight, BaseFormat format) {
  const Widths widths = widths_of(weight);
  if (is_packed(format)) return tensor::packed_bytes(widths.out, widths.in, format == BaseFormat::awq);
  if (format == BaseFormat::int8) return tensor::eight_bit_bytes(weight.elements(), widths.out);
  if (format == BaseFormat::nf4_torchao) return tensor::nf4_bytes(weight.elements());
  if (format == BaseFormat::fp8) return tensor::block_scaled_bytes(widths.out, widths.in);
  return tensor::four_bit_bytes(weight.elements(), format == BaseFormat::nf4_dq);
}

ParameterTotals totals_of(const std::vector<Parameter>& parameters, const std::vector<ParameterRole>& roles,
                          BaseFormat base) {
  ParameterTotals out;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::int64_t elements = parameters[i].elements();
    const bool own = !parameters[i].tied_to;
    if (own) out.parameters += elements;
    if (own && roles[i].trains) out.trainable += elements;
    if (own && roles[i].beside_quantised && base != BaseFormat::int8) out.cast_biases += elements;
    if (own && roles[i].quantised) {
      out.quantised += elements;
      out.quantised_bytes += bytes_of(parameters[i], base);
      if (base == BaseFormat::nf4_torchao) out.typed_scales += tensor::nf4_typed_elements(elements);
    }
    if (roles[i].copied) {
      out.parameters += elements;
      out.trainable += elements;
    }
    for (const AdapterPart& part : roles[i].adapter) {
      out.parameters += part.parameter.elements();
      out.in_adapters += part.parameter.elements();
      if (part.trains) out.trainable += part.parameter.elements();
    }
  }
  return out;
}

void add_parts(std::vector<Parameter>& parameters, const std::vector<ParameterRole>& roles) {
  for (const ParameterRole& role : roles) {
    for (const AdapterPart& part : role.adapter) parameters.push_back(part.parameter);
  }
  for (std::size_t i = 0; i < roles.size(); ++i) {
    if (roles[i].copied) parameters.push_back({parameters[i].name, parameters[i].dims, {}});
  }
}

// Everything trains, as it mostly does: no name needs to be looked at.
TuningPlan plan_all(const Architecture& architecture) {
  TuningPlan out;
  out.globals.resize(architecture.parameters.size());
  for (std::size_t i = 0; i < out.globals.size(); ++i) out.globals[i].trains = !architecture.parameters[i].frozen;
  for (const LayerKind& kind : architecture.kinds) out.kinds.emplace_back(kind.parameters.size());
  return out;
}

}  // namespace

namespace {

// Codes fill whole integers, and groups whole inputs.
Expected<void> check_packed(const std::vector<Parameter>& parameters, const std::vector<ParameterRole>& roles,
                            BaseFormat base) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!roles[i].quantised) continue;
    if (base == BaseFormat::nf4_torchao) {
      if (parameters[i].elements() % tensor::kNF4Period == 0) continue;
      return fail(ErrorCode::invalid_argument, "--quantize-base",
                  fmt::format("{} has {} elements, no multiple of the {} that torchao's NF4 needs; leave it out",
                              parameters[i].name, parameters[i].elements(), tensor::kNF4Period));
    }
    const Widths widths = widths_of(parameters[i]);
    if (widths.in % tensor::kPackedGroup == 0 && widths.out % tensor::kPackedCodes == 0) continue;
    return fail(ErrorCode::invalid_argument, "--quantize-base",
                fmt::format("{} is {} x {}, which groups of {} by {} do not fill; use another format",
                            parameters[i].name, widths.out, widths.in, tensor::kPackedGroup, tensor::kPackedCodes));
  }
  return {};
}

Expected<TuningPlan> check_packed(const Architecture& architecture, TuningPlan plan) {
  if (!is_packed(plan.base) && plan.base != BaseFormat::nf4_torchao) return plan;
  auto checked = check_packed(architecture.parameters, plan.globals, plan.base);
  for (std::size_t i = 0; checked && i < plan.kinds.size(); ++i)
    checked = check_packed(architecture.kinds[i].parameters, plan.kinds[i], plan.base);
  if (!checked) return tl::unexpected<Error>(checked.error());
  return plan;
}

}  // namespace

Expected<TuningPlan> plan_tuning(const Architecture& architecture, const Tuning& tuning) {
  const bool plain = tuning.base == BaseFormat::plain;
  if (tuning.tuner == Tuner::none && tuning.frozen.empty() && !tuning.marked && plain) return plan_all(architecture);
  std::vector<std::string> targets = tuning.targets;
  if (targets.empty()) targets = default_targets(architecture.family, tuning.tuner);
  if (targets.empty() && tuning.tuner != Tuner::none && !adds_tokens(tuning.tuner)) {
    return fail(ErrorCode::invalid_argument, "--lora-targets",
                fmt::format("PEFT knows no targets for {}; name some, or all-linear", architecture.family));
  }
  return Planner(architecture, tuning, targets).plan().and_then([&](TuningPlan plan) {
    return check_packed(architecture, std::move(plan));
  });
}

ParameterTotals parameter_totals(const Architecture& architecture, const TuningPlan& plan) {
  ParameterTotals out = totals_of(architecture.parameters, plan.globals, plan.base);
  std::vector<ParameterTotals> by_kind;
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) {
    by_kind.push_back(totals_of(architecture.kinds[i].parameters, plan.kinds[i], plan.base));
  }
  for (const std::uint8_t kind : architecture.layers) {
    out.parameters += by_kind[kind].parameters;
    out.trainable += by_kind[kind].trainable;
    out.in_adapters += by_kind[kind].in_adapters;
    out.quantised += by_kind[kind].quantised;
    out.quantised_bytes += by_kind[kind].quantised_bytes;
    out.typed_scales += by_kind[kind].typed_scales;
    out.cast_biases += by_kind[kind].cast_biases;
  }
  if (plan.virtual_tokens) {
    const std::int64_t elements = plan.virtual_tokens->elements();
    out.parameters += elements;
    out.trainable += elements;
    out.in_adapters += elements;
  }
  return out;
}

Architecture with_added_parameters(const Architecture& architecture, const TuningPlan& plan) {
  Architecture out = architecture;
  add_parts(out.parameters, plan.globals);
  for (std::size_t i = 0; i < plan.kinds.size(); ++i) add_parts(out.kinds[i].parameters, plan.kinds[i]);
  if (plan.virtual_tokens) out.parameters.push_back(*plan.virtual_tokens);
  return out;
}

std::int64_t trained_tensors(const std::vector<ParameterRole>& kind) {
  std::int64_t out = 0;
  for (const ParameterRole& role : kind) {
    out += (role.trains ? 1 : 0) + (role.copied ? 1 : 0);
    for (const AdapterPart& part : role.adapter) out += part.trains ? 1 : 0;
  }
  return out;
}

std::vector<std::string> default_lora_targets(std::string_view family) {
  return modules_of(data::lora_targets(), family, "targets");
}

std::vector<std::string> default_targets(std::string_view family, Tuner tuner) {
  if (has_rank(tuner)) return default_lora_targets(family);
  return tuner == Tuner::ia3 ? ia3_modules(family, "targets") : std::vector<std::string>{};
}

}  // namespace ullage::model
