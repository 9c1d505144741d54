// Training a part of a network, or what adapters add to it: which parameters train and what each module is given. Works
// on names and axes, never on a family. Names and behaviour are those of PEFT (src/peft/tuners).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "model/architecture.h"

namespace ullage::model {

enum class Tuner : std::uint8_t {
  none,
  lora,
  lora_fa,  // the first factor is frozen
  dora,     // the update is split into a direction and a trained magnitude
  ia3,      // results, and what a feed-forward's last product reads, are scaled
  prompt,   // embeddings of virtual tokens stand in front of the sequence
  prefix,   // keys and values of virtual tokens stand in front of every layer's
};

constexpr bool has_rank(Tuner tuner) { return tuner == Tuner::lora || tuner == Tuner::lora_fa || tuner == Tuner::dora; }
constexpr bool adds_tokens(Tuner tuner) { return tuner == Tuner::prompt || tuner == Tuner::prefix; }

// The form that a frozen model's linear layers are kept in; all but the head's.
enum class BaseFormat : std::uint8_t {
  plain,
  nf4,
  nf4_dq,  // the maxima of the blocks are quantised, too
  fp4,
  int8,  // LLM.int8()
  gptq,  // four bits, groups of 128 along the input
  awq,   // the same, packed along the output
  nf4_torchao,
  fp8,  // blocks of 128 x 128 with a scale each, as transformers keeps them; for inference alone
};

inline constexpr std::uint8_t kQueryPart = 1;
inline constexpr std::uint8_t kKeyPart = 2;
inline constexpr std::uint8_t kValuePart = 4;

// Names of modules are the last parts of their path, as in PEFT's target_modules: "q_proj", "mlp.up_proj".
struct Tuning {
  Tuner tuner = Tuner::none;  // other than none: all parameters that the model came with are frozen
  std::int64_t rank = 0;
  std::int64_t virtual_tokens = 0;
  std::vector<std::string> targets;  // empty: PEFT's own for the family; "all-linear": all but the head
  std::vector<std::string> saved;    // modules of which a copy is trained in their place
  std::vector<std::string> frozen;   // modules, or their parents, that are not trained (without a tuner)
  BaseFormat base = BaseFormat::plain;
  bool prepared = false;  // what is not quantised is cast to fp32 (prepare_model_for_kbit_training)
  bool head_too = false;  // the head is quantised as well
  bool marked = false;    // the architecture itself says of each parameter whether it trains
  // Of projections that are fused from queries, keys and values, which parts an adapter changes (kQueryPart…): these
  // share a factor A, [parts x rank, in], and a factor B of their rows. 0: adapters know nothing of parts.
  std::uint8_t parts = 0;
};

struct AdapterPart {
  Parameter parameter;
  bool trains = true;
};

// What happens to one parameter.
struct ParameterRole {
  bool trains = true;
  bool quantised = false;
  bool beside_quantised = false;           // a bias of such a weight's module
  bool copied = false;                     // frozen; a trained copy takes its place
  std::vector<AdapterPart> adapter;        // of a weight: the factors A and B, and DoRA's magnitude; or (IA)3's scale
  bool scales_input = false;               // that scale is for what goes in
  std::optional<std::int32_t> adapter_of;  // behind this parameter the adapter of that one is registered
};

// By parameter, in the order of the architecture's lists.
struct TuningPlan {
  std::vector<ParameterRole> globals;
  std::vector<std::vector<ParameterRole>> kinds;
  std::optional<Parameter> virtual_tokens;  // the table of virtual tokens, registered behind the model, in fp32
  bool adapted = false;                     // there are adapters
  bool all_train = true;                    // every parameter does
  BaseFormat base = BaseFormat::plain;
};

// Fails where a name fits no module, or where nothing is left to train.
Expected<TuningPlan> plan_tuning(const Architecture& architecture, const Tuning& tuning);

struct ParameterTotals {
  std::int64_t parameters = 0;  // distinct ones, adapters and copies among them
  std::int64_t trainable = 0;
  std::int64_t in_adapters = 0;      // which may have a type of their own
  std::int64_t quantised = 0;        // elements of quantised weights
  std::int64_t quantised_bytes = 0;  // what they and their tables take
  std::int64_t typed_scales = 0;     // elements of their tables that have the model's type, beside those bytes
  std::int64_t cast_biases = 0;      // elements beside four-bit weights, which are cast to what those compute in
};
ParameterTotals parameter_totals(const Architecture& architecture, const TuningPlan& plan);

// The architecture with what the plan adds as further parameters, for what asks about sizes only.
Architecture with_added_parameters(const Architecture& architecture, const TuningPlan& plan);

// How many tensors of one layer of a kind train.
std::int64_t trained_tensors(const std::vector<ParameterRole>& kind);

// PEFT's default targets (data/lora_targets.jsonl); empty: it knows none for the family.
std::vector<std::string> default_lora_targets(std::string_view family);

// The same for a tuner; none for those that add tokens.
std::vector<std::string> default_targets(std::string_view family, Tuner tuner);

}  // namespace ullage::model
