// What is known about one prediction, as values: no text, no JSON. Renderers turn it into both.
//
// An absent optional means "not computed in this version", which JSON writes as null; it never means zero.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "memory/caching_allocator.h"
#include "memory/footprint.h"
#include "memory/timeline.h"
#include "report/messages.h"
#include "report/textbook.h"

namespace ullage::report {

struct ModelFacts {
  std::string name;
  std::string family;
  std::int64_t parameters = 0;  // distinct ones: tied parameters once
  std::int64_t trainable_parameters = 0;
  std::int64_t active_parameters = 0;  // those that take part for one token
  std::int64_t parameter_bytes = 0;    // elements times their size, without an allocator's rounding
};

// An empty name is a card without limit: no memory figures, no verdict.
struct DeviceFacts {
  std::string name;   // the catalogue's id
  std::string title;  // the product's name
  std::int64_t count = 1;
  std::optional<std::int64_t> memory_bytes;
  std::optional<std::int64_t> usable_bytes;
  std::optional<memory::Range> usable_range;
};

// One resolved option, under its name with underscores.
struct Setting {
  std::string name;
  std::variant<std::int64_t, double, bool, std::string> value;
};

// A moment of the step: the operator whose allocation led there. Without one, the moment before the first.
struct Moment {
  bool in_operator = false;
  memory::Phase phase = memory::Phase::other;
  std::string op;      // "mm"
  std::string module;  // "self_attn.q_proj"; may be empty
  std::optional<std::int64_t> layer;
};

struct Peak {
  std::int64_t allocated_bytes = 0;
  std::optional<std::int64_t> reserved_bytes;
  std::optional<std::int64_t> process_bytes;
  std::optional<memory::Range> reserved_range;
  std::optional<memory::Range> process_range;
  Moment at;
};

struct Why {
  Message rule;
  std::vector<std::pair<std::string, std::int64_t>> values;  // put into the rule; bytes unless the name says else
  std::string source;
};

struct ComponentLine {
  memory::Component component = memory::Component::unattributed;
  memory::Level level = memory::Level::allocated;
  std::int64_t bytes = 0;
  Why why;
};

struct PhaseLine {
  std::string name;  // "after_forward"
  std::int64_t allocated_bytes = 0;
  memory::ByComponent components{};
};

// Live blocks at the peak with the same purpose, name and layer.
struct PartLine {
  memory::Component component = memory::Component::unattributed;
  std::optional<std::int64_t> layer;
  std::string name;  // a parameter's name, or the module and the operator that made it
  std::int64_t bytes = 0;
  std::int64_t blocks = 0;
};

struct LayerLine {
  std::optional<std::int64_t> layer;  // absent: outside of layers
  std::int64_t bytes = 0;
};

struct Fit {
  std::optional<bool> fits;
  std::optional<bool> certain;
  std::optional<std::int64_t> headroom_bytes;          // usable less what the process needs
  std::optional<std::int64_t> headroom_at_most_bytes;  // usable less allocated: the rest comes on top
};

// The first allocation that the card has no memory for.
struct FullCardLine {
  std::string message;  // as PyTorch prints it
  Moment at;
  bool in_first_step = false;  // of the run, else in the step that is meant
  memory::OutOfMemory why;
};

// Floating-point operations of one step on one device, two for a multiply-accumulate.
struct Work {
  double forward_flops = 0;  // whole numbers, beyond 2^53 to 16 digits
  double backward_flops = 0;
  double recompute_flops = 0;
  double optimizer_flops = 0;
};

// Something else to run: it was run with `args` in place of the options of the same name.
struct AdviceLine {
  std::vector<std::string> args;
  std::int64_t saves_bytes = 0;  // of the process, or where there is none of the allocated bytes
  std::int64_t needs_bytes = 0;  // what is left of them
  std::optional<bool> fits;
  std::optional<double> step_time_ratio;  // to the step in question, both at the card's published rates
  Message text;
};

// Tensors in the host's memory; Python, libraries and CUDA's runtime come on top.
struct Host {
  std::int64_t peak_bytes = 0;
  std::optional<std::int64_t> pinned_bytes;     // of tensors that wait there, as the allocator of pinned memory rounds
  std::optional<std::int64_t> load_peak_bytes;  // until the weights have arrived on the card, where it was asked
  std::vector<Message> rules;
};

// One card of several, or the equal ones of a pipeline's stage.
struct RankLine {
  std::string name;        // "cuda:0", "pp0"
  std::int64_t count = 1;  // of GPUs
  std::string gpu;         // the catalogue's id; empty: a card without limit
  std::optional<std::int64_t> usable_bytes;
  Peak peak;
  std::vector<ComponentLine> components;
  Fit fit;
  std::vector<std::string> modules;  // that live there: "model.layers.0-39"
};

// What an engine that serves has beside its peak, on each card.
struct ServeFacts {
  std::int64_t weights_bytes = 0;  // with the model's buffers
  std::int64_t kv_bytes = 0;       // when all tokens are there
  std::int64_t kv_bytes_per_token = 0;
  std::int64_t kv_tokens = 0;              // of all sequences
  std::int64_t activation_peak_bytes = 0;  // at the peak, beside weights and cache
  std::optional<std::int64_t> context_bytes;
  // Of engines that share a card out when they start.
  std::optional<std::int64_t> weights_load_peak_bytes;
  std::optional<memory::Range> kv_range;
  std::optional<std::int64_t> kv_tokens_printed;  // as the engine's log has them
  std::optional<std::int64_t> kv_blocks;
  std::optional<std::int64_t> kv_block_size;  // tokens
  std::optional<double> max_concurrency;      // requests of the longest length at once
  std::optional<std::int64_t> non_torch_bytes;
  std::optional<std::int64_t> cuda_graph_bytes;
  std::optional<std::int64_t> cuda_graph_estimate_bytes;  // what the engine itself sets aside
  std::optional<memory::Range> activation_peak_range;
  std::optional<memory::Range> context_range;
  std::optional<memory::Range> non_torch_range;
  std::optional<memory::Range> cuda_graph_range;
};

// How the start of an engine ends that shares a card out: it has no timeline.
struct Startup {
  std::string engine;   // "vLLM"
  std::string version;  // "0.19.0"
  bool starts = true;
  Message outcome;                // the same in words, of a refusal its reason
  std::string refusal;            // the engine's own error; empty: it starts
  std::vector<std::string> log;   // lines that the engine prints about its cache
  std::vector<Message> capacity;  // what they mean
  struct Workload {
    std::int64_t input_tokens = 0;
    std::int64_t output_tokens = 0;
    std::int64_t blocks_per_request = 0;
    std::int64_t most_requests = 0;           // at once on one copy of the model
    std::optional<std::int64_t> concurrency;  // asked for
  };
  std::optional<Workload> workload;
  std::optional<std::int64_t> requested_bytes;  // of the card, for all that the engine counts
};

struct Prediction {
  std::string command;
  ModelFacts model;
  DeviceFacts device;
  std::vector<Setting> setup;
  Peak peak;
  std::vector<ComponentLine> components;  // at the peak; those at Level::allocated add up to peak.allocated_bytes
  std::vector<PhaseLine> phases;          // only those that the step reaches
  std::vector<PartLine> parts;            // at the peak, largest first; they add up to peak.allocated_bytes
  std::vector<LayerLine> layers;          // the same bytes by layer
  std::vector<RankLine> ranks;            // where there are several: what stands above is of the worst of them
  std::size_t worst_rank = 0;
  std::optional<std::int64_t> total_process_bytes;  // over all of them
  Fit fit;
  std::optional<FullCardLine> full;  // where fit.fits is false
  std::optional<ServeFacts> serve;   // of `serve`
  std::optional<Startup> startup;    // of an engine that shares a card out; phases, parts and layers are empty then
  std::optional<Host> host;          // where it was asked how the weights arrive, or something waits there
  Work work;
  std::optional<double> roofline_seconds;         // of the step at the card's published rates: for ratios only
  std::optional<std::vector<AdviceLine>> advice;  // where it was asked for, or the step does not fit
  std::vector<TextbookLine> textbook;             // where a bare size was asked for: what the formulas say of it
  std::vector<Message> assumptions;
  std::vector<Message> warnings;
};

// The component lines and totals as a footprint, for memory::adds_up.
memory::Footprint footprint_of(const Prediction& prediction);

}  // namespace ullage::report
