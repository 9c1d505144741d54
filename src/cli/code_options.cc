#include "cli/code_options.h"

#include <fmt/core.h>

#include <array>
#include <string>

namespace ullage::cli {
namespace {

using engines::pytorch::Choices;

std::string versions_of(std::string_view name) {
  std::string list;
  for (const Choices& row : engines::pytorch::all_choices()) {
    if (row.name == name) list += fmt::format("{}{}", list.empty() ? "" : ", ", row.version);
  }
  return list;
}

// What another code base does by itself, or not at all.
Expected<void> check_known(const Arguments& arguments, std::string_view code) {
  constexpr std::array kOfTransformers{"--transformers", "--recompute-reentrant", "--lora-dtype",
                                       "--prepare-kbit", "--modules-to-save",     "--freeze",
                                       "--grad-scaler"};
  for (const std::string_view option : kOfTransformers) {
    if (arguments.has(option))
      return fail(ErrorCode::unsupported, std::string(option),
                  fmt::format("not in this version with --modules {}", code));
  }
  const std::string tuner = arguments.text("--tuner", "lora");
  if (tuner == "dora" || tuner == "lora-fa")
    return fail(ErrorCode::unsupported, "--tuner",
                fmt::format("{} is not in this version with --modules {}", tuner, code));
  if (code != "llm-foundry" && arguments.text("--attention", "sdpa") != "sdpa")
    return fail(ErrorCode::invalid_argument, "--attention", fmt::format("{} has sdpa alone; leave it out", code));
  const std::string loss = arguments.text("--loss", "full");
  if (loss != "full" && loss != "chunked")
    return fail(ErrorCode::unsupported, "--loss",
                fmt::format("{} is not in this version with --modules {}", loss, code));
  if (arguments.text("--kernels") == "cpu")
    return fail(ErrorCode::unsupported, "--kernels", fmt::format("cpu is not in this version with --modules {}", code));
  return {};
}

// It has weights in fp32 or bf16, autocast in bf16, one loss and no adapters.
Expected<void> check_torchtitan(const Arguments& arguments) {
  for (const std::string_view option : {"--lora", "--lora-targets", "--lora-dropout", "--tuner", "--quantize-base"}) {
    if (arguments.has(option))
      return fail(ErrorCode::invalid_argument, std::string(option), "torchtitan trains all weights; leave it out");
  }
  const std::string precision = arguments.text("--precision", "bf16");
  if (precision != "fp32" && precision != "bf16" && precision != "amp-bf16")
    return fail(ErrorCode::invalid_argument, "--precision",
                "torchtitan has fp32, amp-bf16 (weights in fp32) and bf16 (autocast over weights in bf16)");
  if (arguments.text("--loss", "full") != "full")
    return fail(ErrorCode::unsupported, "--loss", "torchtitan 0.2 has the full loss alone; leave it out");
  return {};
}

// Its MPT on one device: weights in fp32 under autocast in bf16, flash-attn's kernels, all weights trained.
Expected<void> check_llm_foundry(const Arguments& arguments) {
  for (const std::string_view option : {"--lora", "--lora-targets", "--lora-dropout", "--tuner", "--quantize-base"}) {
    if (arguments.has(option)) return not_in_this_version(std::string(option), "with --modules llm-foundry");
  }
  if (arguments.text("--precision", "amp-bf16") != "amp-bf16")
    return fail(ErrorCode::unsupported, "--precision",
                "llm-foundry's amp_bf16 alone is in this version: weights in fp32 under autocast; use amp-bf16");
  if (arguments.text("--attention", "flash") != "flash")
    return fail(ErrorCode::unsupported, "--attention",
                "llm-foundry's attn_impl flash alone is in this version; leave it out");
  if (arguments.text("--loss", "full") != "full")
    return fail(ErrorCode::unsupported, "--loss", "llm-foundry has one loss, of all logits at once; leave it out");
  const std::string optimizer = arguments.text("--optimizer", "adamw");
  if (optimizer != "adamw" && optimizer != "lion" && optimizer != "none")
    return fail(ErrorCode::unsupported, "--optimizer",
                "llm-foundry's decoupled AdamW and Lion are in this version; use adamw, lion or none");
  if (arguments.has("--optimizer-in-backward"))
    return fail(ErrorCode::invalid_argument, "--optimizer-in-backward", "Composer has no such loop; leave it out");
  if (arguments.text("--optimizer-impl", "loop") != "loop")
    return fail(ErrorCode::invalid_argument, "--optimizer-impl",
                "llm-foundry's optimizers take one parameter after the other; leave it out");
  return {};
}

}  // namespace

Expected<const Choices*> code_of(const Arguments& arguments, const model::Architecture& architecture) {
  const std::string name = arguments.text("--modules", "transformers");
  const std::string version = arguments.text("--modules-version");
  if (name == "transformers") {
    if (arguments.has("--modules-version"))
      return fail(ErrorCode::invalid_argument, "--modules-version", "belongs to other code bases; use --transformers");
    if (arguments.has("--compile")) return not_in_this_version("--compile", "without --modules torchtune");
    if (arguments.has("--offload")) return not_in_this_version("--offload", "without --modules torchtune");
    if (arguments.text("--loss") == "chunked")
      return fail(ErrorCode::unsupported, "--loss",
                  "transformers has no chunked loss; use fused, Liger's, which takes some tokens at a time");
    return nullptr;
  }
  if (!architecture.image.arch.empty()) {
    return fail(ErrorCode::invalid_argument, "--modules",
                fmt::format("{} is torchvision's; leave this option out", architecture.name));
  }
  const Choices* found = engines::pytorch::find_choices(name, version);
  if (found == nullptr) {
    return fail(
        ErrorCode::unsupported, "--modules-version",
        fmt::format("'{}' of {} is not in this version; known are {}", version.substr(0, 40), name, versions_of(name)));
  }
  if (found->code == engines::pytorch::CodeBase::torchtitan) {
    if (auto known = check_torchtitan(arguments); !known) return tl::unexpected<Error>(known.error());
  }
  if (found->code == engines::pytorch::CodeBase::llm_foundry) {
    if (auto known = check_llm_foundry(arguments); !known) return tl::unexpected<Error>(known.error());
  }
  if (found->code != engines::pytorch::CodeBase::torchtune) {
    if (arguments.has("--compile")) return not_in_this_version("--compile", "without --modules torchtune");
    if (arguments.has("--offload")) return not_in_this_version("--offload", "without --modules torchtune");
  } else {
    if (arguments.has("--offload") && arguments.text("--recompute", "none") != "full")
      return fail(ErrorCode::invalid_argument, "--offload",
                  "torchtune's recipes take activations to the host with checkpoints alone; add --recompute full");
    if (arguments.text("--quantize-base", "nf4-dq") != "nf4-dq")
      return fail(ErrorCode::invalid_argument, "--quantize-base",
                  "torchtune's adapters have torchao's NF4, whose scales are quantised, too: nf4-dq");
    if (arguments.text("--precision").starts_with("amp-"))
      return fail(ErrorCode::invalid_argument, "--precision", "torchtune's recipes have no autocast; use bf16 or fp32");
  }
  if (auto known = check_known(arguments, name); !known) return tl::unexpected<Error>(known.error());
  return found;
}

// Source: llm-foundry 0.22, llmfoundry/models/layers/attention.py and models/utils/config_defaults.py.
Expected<void> check_attention_of(const Choices* code, const Json& config) {
  if (code == nullptr || code->code != engines::pytorch::CodeBase::llm_foundry) return {};
  const auto found = config.find("attn_config");
  if (found == config.end() || !found->is_object()) return {};
  const auto is_on = [&](const char* field, bool otherwise) {
    const auto at = found->find(field);
    return at == found->end() || !at->is_boolean() ? otherwise : at->get<bool>();
  };
  std::string_view field;
  if (!is_on("alibi", true)) field = "alibi";
  for (const char* other : {"rope", "qk_ln", "qk_gn"}) {
    if (is_on(other, false)) field = other;
  }
  if (field.empty()) return {};
  return fail(ErrorCode::unsupported, fmt::format("attn_config.{}", field),
              fmt::format("of llm-foundry's MPT is not in this version; set it to {}", field == "alibi"));
}

}  // namespace ullage::cli
