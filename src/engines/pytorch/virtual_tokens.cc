#include "engines/pytorch/virtual_tokens.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Dims;
using t::Op;
using t::Tensor;

VirtualTokens::VirtualTokens(TransformersModules& modules, const model::Architecture& architecture,
                             const ModelState& state, const TrainOptions& options)
    : modules_(modules), architecture_(architecture), state_(state), options_(options), context_(modules.context()) {}

// Llama's model returns the cache that it was given, the others do only if they are asked to use one.
VirtualTokens::~VirtualTokens() {
  modules_.give_embeddings({});
  if (architecture_.family != "llama") modules_.drop_past();
}

model::Batch VirtualTokens::prepend(const model::Batch& batch) {
  const t::Scope named(context_, context_.intern("prompt_encoder.default"));
  model::Batch out = batch;
  if (options_.tuning.tuner == model::Tuner::prompt) add_prompt(out);
  else add_prefix();
  return out;
}

Tensor VirtualTokens::from_host() {
  return t::empty(context_, Op::cast, {options_.micro_batch, options_.tuning.virtual_tokens}, DType::i64);
}

// The virtual tokens' labels are such that no loss comes of them.
void VirtualTokens::add_prompt(model::Batch& batch) {
  const std::int64_t samples = options_.micro_batch;
  Tensor embeds = call([&](Tensor x) { return modules_.embedding(architecture_.embedding, x); }, batch.inputs);
  host_labels_ = from_host();
  batch.labels = t::cat({host_labels_, batch.labels}, 1);
  {
    Tensor numbers = from_host();
    numbers = t::slice(numbers, 0, 0, 1);
    Tensor one = t::embedding(state_.virtual_tokens(), std::move(numbers));
    prompts_ = t::repeat_first(std::move(one), samples);
  }
  prompts_ = t::to(prompts_, embeds.dtype());
  embeds = t::cat({prompts_, embeds}, 1);
  modules_.give_embeddings(std::move(embeds));
}

// [batch, tokens, 2 x layers x width] as one key and one value for each layer, [batch, heads, tokens, dim].
void VirtualTokens::add_prefix() {
  const model::Attention& attention = architecture_.kinds[0].attention;
  const std::int64_t layers = architecture_.layer_count();
  Tensor numbers = from_host();
  numbers = t::slice(numbers, 1, 0, options_.tuning.virtual_tokens);
  Tensor past = t::embedding(state_.virtual_tokens(), numbers);
  past = t::to(past, options_.dtype);
  const Dims sizes{options_.micro_batch, options_.tuning.virtual_tokens, 2 * layers, attention.kv_heads,
                   attention.head_dim};
  past = t::view(std::move(past), sizes);
  past = t::transpose(std::move(past), 0, 2);  // 2 x layers, tokens, batch, heads, dim
  past = t::transpose(std::move(past), 1, 2);
  past = t::transpose(std::move(past), 2, 3);
  std::vector<Tensor> parts = t::split(std::move(past), 2, 0);
  for (Tensor& part : parts) {
    Tensor key = t::select(part, 0, 0);
    Tensor value = t::select(part, 0, 1);
    key = t::cat({std::move(key)}, 2);
    value = t::cat({std::move(value)}, 2);
    modules_.add_past({std::move(key), std::move(value)});
    part.reset();
  }
}

Expected<void> check_virtual_tokens(const model::Architecture& architecture, const model::Tuning& tuning) {
  if (!adds_tokens(tuning.tuner)) return {};
  constexpr std::array kRecorded{"llama", "mistral", "qwen2", "qwen3"};
  const bool known = std::find(kRecorded.begin(), kRecorded.end(), architecture.family) != kRecorded.end();
  const bool slides = std::any_of(architecture.mask_windows.begin(), architecture.mask_windows.end(),
                                  [](const auto& window) { return window.has_value(); });
  if (known && !slides) return {};
  return fail(ErrorCode::unsupported, "--tuner",
              fmt::format("virtual tokens in front of {} {} are not in this version", architecture.family,
                          known ? "with a sliding window" : "models"));
}

}  // namespace ullage::engines::pytorch
