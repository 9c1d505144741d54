// Whose module code a step runs. transformers' families are written out one by one; other code bases have one decoder
// for all models, and what distinguishes them, and their versions, is a row of choices.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/architecture.h"

namespace ullage::engines::pytorch {

enum class CodeBase : std::uint8_t { litgpt, torchtune, torchtitan, llm_foundry };

// How a root-mean-square norm is computed.
enum class RmsForm : std::uint8_t {
  own_type,         // mean(x * x) and all else in the input's type
  products,         // in fp32 by x * x, back to the input's type, times the weight
  products_weight,  // in fp32 by x * x, times the weight in fp32, then back
};

// In which order a layer's parallel branches are added to what came in.
enum class BranchOrder : std::uint8_t {
  attention_first,  // (x + attention), held while the feed-forward runs
  feed_forward_first,
  attention_bound,  // the same sum, but bound to a name
};

struct Choices {
  CodeBase code = CodeBase::litgpt;
  std::string_view name;
  std::string_view version;
  std::int32_t since = 0;  // year and month from which people ran it: 202310
  std::string_view source;
  std::string_view precision = "bf16";  // where nothing is said, as the next three
  std::string_view attention = "sdpa";
  double lora_dropout = 0;
  std::int64_t global_batch = 0;  // samples of a step; 0: as many as the micro-batch
  bool forgets_loss = false;      // the loop makes a number of the loss
  bool longest_first = false;     // the longest batch is the first one, so the ones before a step are no concern
  RmsForm rms = RmsForm::products;
  BranchOrder order = BranchOrder::feed_forward_first;
  bool qkv_by_group = false;            // rows of the fused projection: group by group; else queries, keys, values
  bool single_key_broadcasts = false;   // one key head for all queries is left as it is
  bool pads_by_copy = false;            // updates of chosen parts of qkv: copied into zeros out of place
  bool clones_indices = false;          // of those parts' rows, which are a buffer, for every product
  bool counts_targets = false;          // the mean loss: a sum over the number of targets that count
  bool autocasts = false;               // half precision is autocast over weights of that type
  bool clips = false;                   // gradients' norm is clipped to 1, unless one says else
  bool fuses = false;                   // the optimizer is fused, unless one says else
  bool decoupled_decay = false;         // its own AdamW and Lion: one parameter at a time, step counters on the card
  bool mean_keeps_input = false;        // its PyTorch, 2.1, keeps what a mean is taken of (pytorch/pytorch#109876)
  bool keeps_quantised_inputs = false;  // its bitsandbytes keeps what a four-bit product was given
};

std::span<const Choices> all_choices();
// The row of that code base and version ("": the newest); nullptr: there is none.
const Choices* find_choices(std::string_view name, std::string_view version);
// The newest version that people could run in that month (202310).
const Choices* choices_of_date(std::string_view name, std::int32_t month);

// What every code base takes over from a model's architecture: sizes and notes, no parameters.
model::Architecture outline_of(const model::Architecture& from, std::string layer_prefix);

}  // namespace ullage::engines::pytorch
