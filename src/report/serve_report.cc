#include "report/serve_report.h"

#include <algorithm>
#include <array>

#include "memory/attribution.h"
#include "report/train_report.h"

namespace ullage::report {
namespace {

using memory::Component;

std::int64_t part(const memory::Moment& moment, Component component) {
  return moment.by_component[static_cast<std::size_t>(component)];
}

// Shown even where they are zero.
bool belongs(const ComponentLine& line) {
  return line.bytes != 0 || (line.component != Component::gradients && line.component != Component::optimizer);
}

std::vector<PhaseLine> phases_of(const ServeQuestion& question) {
  const engines::transformers::ServeRun& served = question.served;
  const memory::Timeline& timeline = served.run.timeline;
  const std::array asked{served.run.before_step, served.after_prefill, served.after_decode};
  const memory::Sweep sweep = memory::sweep(timeline, asked);
  std::vector<PhaseLine> out;
  const auto add = [&](const char* name, const memory::Moment& moment) {
    out.push_back({name, moment.bytes, moment.by_component});
  };
  add("before_prefill", sweep.at[0]);
  add("prefill_peak", sweep.highest[1]);
  add("after_prefill", sweep.at[1]);
  if (question.options.new_tokens == 1) return out;
  add("decode_peak", memory::peak_between(timeline, served.after_prefill, served.run.after_forward));
  add("after_decode", sweep.at[2]);
  return out;
}

std::optional<std::int64_t> context_bytes(const Prediction& prediction) {
  const auto at = std::find_if(prediction.components.begin(), prediction.components.end(),
                               [](const ComponentLine& line) { return line.component == Component::context; });
  if (at == prediction.components.end()) return std::nullopt;
  return at->bytes;
}

ServeFacts facts_of(const ServeQuestion& question, const Prediction& prediction) {
  const engines::transformers::ServeRun& served = question.served;
  const memory::Timeline& timeline = served.run.timeline;
  const memory::Moment loaded = memory::moment_at(timeline, served.run.before_step);
  const memory::Moment decoded = memory::moment_at(timeline, served.after_decode);
  const memory::Moment peak = memory::peak_between(timeline, served.run.before_step, served.run.after_forward);
  ServeFacts out;
  out.weights_bytes = part(loaded, Component::parameters) + part(loaded, Component::buffers);
  out.kv_bytes = part(decoded, Component::kv_cache);
  out.kv_bytes_per_token = engines::transformers::kept_bytes_per_token(question.architecture, question.options);
  out.kv_tokens = question.options.batch * question.options.cached_tokens();
  out.activation_peak_bytes = peak.bytes - out.weights_bytes - part(peak, Component::kv_cache);
  out.context_bytes = context_bytes(prediction);
  return out;
}

void add_engine_assumptions(const engines::transformers::ServeOptions& options, std::vector<Message>& out) {
  using engines::transformers::CacheBackend;
  using engines::transformers::CacheKind;
  if (options.weights == model::BaseFormat::fp8) out.push_back({Text::assume_fp8_blocks, {}});
  if (options.cache == CacheKind::offloaded) out.push_back({Text::assume_offloaded_cache, {}});
  if (options.cache != CacheKind::quantised) return;
  const bool quanto = options.quantised_cache.backend == CacheBackend::quanto;
  out.push_back({quanto ? Text::assume_quanto_cache : Text::assume_hqq_cache,
                 {{"bits", options.quantised_cache.bits}, {"group", options.quantised_cache.group}}});
}

bool is_of_training(const Message& message) {
  return message.key == Text::assume_repeated || message.key == Text::assume_eager;
}

}  // namespace

Prediction serve_report(const ServeQuestion& question) {
  const engines::pytorch::TrainOptions options = engines::transformers::module_options(question.options);
  TrainQuestion step{question.architecture, options, question.served.run, question.gpu};
  step.allocator = question.allocator;
  step.used_bytes = question.used_bytes;
  Prediction out = train_report(step);
  out.command = "serve";
  out.phases = phases_of(question);
  out.components.erase(
      std::remove_if(out.components.begin(), out.components.end(), [](const auto& line) { return !belongs(line); }),
      out.components.end());
  out.serve = facts_of(question, out);
  auto& assumptions = out.assumptions;
  assumptions.erase(std::remove_if(assumptions.begin(), assumptions.end(), is_of_training), assumptions.end());
  assumptions.insert(assumptions.begin(), {{Text::assume_generated_once, {}}, {Text::assume_generation, {}}});
  add_engine_assumptions(question.options, assumptions);
  if (question.served.jumped) assumptions.push_back({Text::assume_jumped, {}});
  return out;
}

}  // namespace ullage::report
