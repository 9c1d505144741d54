#include "engines/pytorch/code_base.h"

#include <utility>

namespace ullage::engines::pytorch {
namespace {

constexpr std::string_view kLitGpt = "github.com/Lightning-AI/litgpt: litgpt/{model,lora}.py, finetune/";

constexpr std::string_view kTorchtune = "github.com/pytorch/torchtune: torchtune/modules/, recipes/";

constexpr std::string_view kLlmFoundry =
    "github.com/mosaicml/llm-foundry: llmfoundry/models/; github.com/mosaicml/composer: composer/trainer/trainer.py";

constexpr std::string_view kTorchtitan =
    "github.com/pytorch/torchtitan: torchtitan/models/llama3/, torchtitan/train.py";

// Each code base from its oldest version to its newest.
constexpr Choices kChoices[] = {
    {.code = CodeBase::litgpt,
     .name = "litgpt",
     .version = "2023-10",
     .since = 202309,
     .source = kLitGpt,
     .lora_dropout = 0.05,
     .longest_first = true,
     .rms = RmsForm::own_type,
     .order = BranchOrder::attention_first,
     .qkv_by_group = true,
     .single_key_broadcasts = true,
     .pads_by_copy = true,
     .mean_keeps_input = true,
     .keeps_quantised_inputs = true},
    {.code = CodeBase::litgpt,
     .name = "litgpt",
     .version = "0.4",
     .since = 202311,
     .source = kLitGpt,
     .lora_dropout = 0.05,
     .global_batch = 16,
     .forgets_loss = true,
     .rms = RmsForm::products,
     .order = BranchOrder::feed_forward_first,
     .qkv_by_group = true,
     .counts_targets = true,
     .keeps_quantised_inputs = true},
    {.code = CodeBase::litgpt,
     .name = "litgpt",
     .version = "0.5",
     .since = 202501,
     .source = kLitGpt,
     .lora_dropout = 0.05,
     .global_batch = 16,
     .forgets_loss = true,
     .rms = RmsForm::products_weight,
     .order = BranchOrder::attention_bound,
     .clones_indices = true,
     .counts_targets = true},
    {.code = CodeBase::torchtune, .name = "torchtune", .version = "0.4", .since = 202411, .source = kTorchtune},
    {.code = CodeBase::torchtitan,
     .name = "torchtitan",
     .version = "0.2",
     .since = 202510,
     .source = kTorchtitan,
     .autocasts = true,
     .clips = true,
     .fuses = true},
    {.code = CodeBase::llm_foundry,
     .name = "llm-foundry",
     .version = "0.22",
     .since = 202507,
     .source = kLlmFoundry,
     .precision = "amp-bf16",
     .attention = "flash",
     .clips = true,
     .decoupled_decay = true},
};

}  // namespace

std::span<const Choices> all_choices() { return kChoices; }

const Choices* find_choices(std::string_view name, std::string_view version) {
  const Choices* found = nullptr;
  for (const Choices& row : kChoices) {
    if (row.name == name && (version.empty() || row.version == version)) found = &row;
  }
  return found;
}

const Choices* choices_of_date(std::string_view name, std::int32_t month) {
  const Choices* found = nullptr;
  for (const Choices& row : kChoices) {
    if (row.name == name && (found == nullptr || row.since <= month)) found = &row;
  }
  return found;
}

model::Architecture outline_of(const model::Architecture& from, std::string layer_prefix) {
  model::Architecture out;
  out.name = from.name;
  out.family = from.family;
  out.vocab = from.vocab;
  out.hidden = from.hidden;
  out.max_positions = from.max_positions;
  out.bounded_positions = true;  // their tables of positions end
  out.layer_prefix = std::move(layer_prefix);
  out.notes = from.notes;
  return out;
}

}  // namespace ullage::engines::pytorch
