// Bytes as a configuration, with one field set from the command line: parsed, changed, built and, where small, run.
//
// Input: an assignment ("hidden_size=64"), a line feed, and the configuration; without a line feed all is
// configuration.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/json.h"
#include "engines/pytorch/train.h"
#include "model/family.h"
#include "model/gguf_mix.h"
#include "model/limits.h"
#include "model/outline.h"
#include "model/quantisation.h"

namespace {

using namespace ullage;

void require(bool holds) {
  if (!holds) std::abort();
}

// Errors are one line that a terminal can show.
void check_error(const Error& error) {
  require(!error.message.empty());
  require(to_string(error).find('\n') == std::string::npos);
  require(to_string(error).size() < 1500);
}

engines::pytorch::TrainOptions options_of(const model::Architecture& architecture) {
  engines::pytorch::TrainOptions options;
  options.micro_batch = 2;
  options.seq_len = 3;
  options.image_size = 64;
  options.step = architecture.layer_count() % 2 == 0 ? engines::pytorch::Step::forward : engines::pytorch::Step::first;
  return options;
}

void run(const model::Architecture& architecture) {
  const engines::pytorch::TrainOptions options = options_of(architecture);
  if (!model::check_size(architecture, options.micro_batch, options.seq_len)) return;
  const auto done = engines::pytorch::run_train_step(architecture, options);
  if (!done) return check_error(done.error());
  std::int64_t live = 0;
  for (const memory::Block& block : done->timeline.blocks) {
    require(block.requested_bytes >= 0);
    live += block.requested_bytes;
  }
  require(live > 0);
}

void check_bytes(const model::Architecture& architecture, const model::Quantisation& quantisation) {
  for (const model::StoredWeight& weight : model::stored_weights(architecture, quantisation, DType::bf16))
    require(weight.bytes() >= 0 && weight.copies > 0);
}

// As every way of storing weights has them, the configuration's own among these.
void store(const Json& config, const model::Architecture& architecture) {
  for (const char* word : {"fp8-block", "int8", "nf4-dq", "awq", "gptq", "int4", "nvfp4", "mxfp4"})
    check_bytes(architecture, *model::quantisation_named(word));
  for (const char* mix : {"Q4_K_M", "IQ2_S", "IQ3_XS", "MXFP4_MOE"}) {
    const auto tensors = model::gguf_tensors(architecture, mix);
    if (!tensors) check_error(tensors.error());
  }
  const auto own = config.find("quantization_config");
  if (own == config.end()) return;
  const auto read = model::read_quantisation(JsonObject(*own, "quantization_config"));
  if (!read) check_error(read.error());
  else check_bytes(architecture, *read);
}

void outline(const Json& config) {
  const auto built = model::build_outline(config, "config.json");
  if (!built) return check_error(built.error());
  require(model::parameter_count(*built) >= 0);
  if (built->layer_count() <= 64 && built->parameters.size() <= 2000) store(config, *built);
}

void build(const Json& config, std::string_view path) {
  outline(config);
  const auto built = model::build_architecture(config, "config.json");
  if (!built) return check_error(built.error());
  model::reads_field(config, path);
  if (built->image.arch.empty()) {
    require(built->layer_count() > 0);
    require(model::parameter_count(*built) > 0);
  }
  if (built->layer_count() <= 64) run(*built);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string_view assignment;
  if (const std::size_t line = text.find('\n'); line != text.npos) {
    assignment = text.substr(0, line);
    text.remove_prefix(line + 1);
  }
  auto config = parse_json(text, "config.json");
  if (!config) {
    check_error(config.error());
    return 0;
  }
  if (!assignment.empty()) {
    if (const auto set = model::set_field(*config, assignment); !set) check_error(set.error());
  }
  build(*config, assignment.substr(0, assignment.find('=')));
  return 0;
}
