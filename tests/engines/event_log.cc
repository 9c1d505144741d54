#include "event_log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "engines/pytorch/loss_version.h"

namespace ullage::testing {
namespace {

using namespace engines::pytorch;

template <class T>
T pick(const std::map<std::string, T>& names, const std::string& name) {
  const auto found = names.find(name);
  if (found == names.end()) ADD_FAILURE() << "unknown value in a recorded log: " << name;
  return found == names.end() ? T{} : found->second;
}

void read_precision(TrainOptions& o, const std::string& name) {
  const bool autocast = name.starts_with("amp-");
  const DType dtype = *parse_dtype(autocast ? name.substr(4) : name == "pure-bf16" ? "bf16" : name);
  o.dtype = autocast ? DType::f32 : dtype;
  if (autocast) o.autocast = dtype;
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

// Options about what is trained; false: this is none of them.
bool read_tuning(TrainOptions& o, const std::string& key, const std::string& value) {
  if (key == "--tuner" && value.starts_with("adapter")) {
    o.llama_adapter = value == "adapter" ? 1 : 2;
    return true;
  }
  const std::map<std::string, model::Tuner> tuners{{"lora", model::Tuner::lora},     {"lora-fa", model::Tuner::lora_fa},
                                                   {"dora", model::Tuner::dora},     {"ia3", model::Tuner::ia3},
                                                   {"prompt", model::Tuner::prompt}, {"prefix", model::Tuner::prefix}};
  if (key == "--lora") {
    o.tuning.rank = std::stoll(value);
    if (o.tuning.tuner == model::Tuner::none) o.tuning.tuner = model::Tuner::lora;
  } else if (key == "--virtual-tokens") {
    o.tuning.virtual_tokens = std::stoll(value);
  } else if (key == "--lora-targets") {
    o.tuning.targets = words(value);
  } else if (key == "--lora-dropout") {
    o.lora_dropout = std::stod(value);
  } else if (key == "--lora-dtype") {
    o.lora_in_fp32 = value == "fp32";
  } else if (key == "--tuner") {
    o.tuning.tuner = pick(tuners, value);
  } else if (key == "--modules-to-save") {
    o.tuning.saved = words(value);
  } else if (key == "--quantize-base") {
    const std::map<std::string, model::BaseFormat> formats{
        {"nf4", model::BaseFormat::nf4},   {"nf4-dq", model::BaseFormat::nf4_dq}, {"fp4", model::BaseFormat::fp4},
        {"int8", model::BaseFormat::int8}, {"gptq", model::BaseFormat::gptq},     {"awq", model::BaseFormat::awq}};
    o.tuning.base = pick(formats, value);
  } else if (key == "--freeze") {
    o.tuning.frozen = words(value);
  } else {
    return false;
  }
  return true;
}

// `model` comes before its options in a log.
TrainOptions read_options(const std::string& line, const std::string& model) {
  TrainOptions o;
  std::istringstream in(line);
  std::string key;
  std::string value;
  const std::map<std::string, Kernels> kernels{
      {"cuda", Kernels::cuda}, {"cuda-traced", Kernels::cuda_traced}, {"cpu", Kernels::cpu}};
  const std::map<std::string, Optimizer> optimizers{{"adamw", Optimizer::adamw},
                                                    {"adam", Optimizer::adam},
                                                    {"adagrad", Optimizer::adagrad},
                                                    {"rmsprop", Optimizer::rmsprop},
                                                    {"adafactor", Optimizer::adafactor},
                                                    {"lion", Optimizer::lion},
                                                    {"muon", Optimizer::muon},
                                                    {"adamw-8bit", Optimizer::adamw_8bit},
                                                    {"sgd", Optimizer::sgd},
                                                    {"sgd-momentum", Optimizer::sgd_momentum},
                                                    {"none", Optimizer::none}};
  const std::map<std::string, OptimizerImpl> impls{
      {"foreach", OptimizerImpl::foreach}, {"fused", OptimizerImpl::fused}, {"loop", OptimizerImpl::loop}};
  const std::map<std::string, AttentionImpl> attentions{
      {"sdpa", AttentionImpl::sdpa}, {"eager", AttentionImpl::eager}, {"flash", AttentionImpl::flash}};
  const std::map<std::string, Step> steps{{"first", Step::first}, {"steady", Step::steady}, {"forward", Step::forward}};
  const std::map<std::string, Loss> losses{
      {"full", Loss::full}, {"chunked", Loss::chunked}, {"fused", Loss::fused}, {"none", Loss::none}};
  const std::map<std::string, bool TrainOptions::*> flags{
      {"--compile", &TrainOptions::compile},
      {"--recompute-reentrant", &TrainOptions::recompute_reentrant},
      {"--optimizer-in-backward", &TrainOptions::optimizer_in_backward},
      {"--recompute-vision", &TrainOptions::recompute_vision},
      {"--grad-scaler", &TrainOptions::grad_scaler}};
  std::string code;
  std::string transformers(kTransformers);
  bool impl_given = false;
  while (in >> key) {
    if (const auto flag = flags.find(key); flag != flags.end()) {
      o.*flag->second = true;
      continue;
    }
    if (key == "--prepare-kbit") {
      o.tuning.prepared = true;
      continue;
    }
    in >> value;
    if (read_tuning(o, key, value)) continue;
    if (key == "--kernels") o.kernels = pick(kernels, value);
    else if (key == "--micro-batch") o.micro_batch = std::stoll(value);
    else if (key == "--seq-len") o.seq_len = std::stoll(value);
    else if (key == "--image-size") o.image_size = std::stoll(value);
    else if (key == "--image-max-pixels") o.image_max_pixels = std::stoll(value);
    else if (key == "--grad-accum") o.grad_accum = std::stoll(value);
    else if (key == "--precision") read_precision(o, value);
    else if (key == "--attention") o.attention = pick(attentions, value);
    else if (key == "--optimizer") o.optimizer = pick(optimizers, value);
    else if (key == "--optimizer-impl") impl_given = true, o.optimizer_impl = pick(impls, value);
    else if (key == "--recompute") o.recompute = value == "full" ? Recompute::full : Recompute::none;
    else if (key == "--loss") o.loss = pick(losses, value);
    else if (key == "--modules") code = value;
    else if (key == "--modules-version") o.code = find_choices(code, value);
    else if (key == "--step") o.step = pick(steps, value);
    else if (key == "--transformers") transformers = value;
    else if (key == "--trainer") o.hf_trainer = value == "hf";
    else if (key == "--offload") o.offload_activations = value == "activations";
    else if (key == "--clip-grad") o.clip_grad = std::stod(value);
    else ADD_FAILURE() << "unknown option in a recorded log: " << key;
  }
  const bool half = line.find("--precision bf16") != std::string::npos;
  if ((o.hf_trainer || (o.code != nullptr && o.code->autocasts)) && half) o.autocast = o.dtype;
  if (!impl_given) o.optimizer_impl = usual_impl(o.optimizer);
  if (transformers != kTransformers) {
    const std::string family = (*parse_json(model, "model"))["model_type"].get<std::string>();
    o.loss_form = *loss_form_of(family, *parse_version(transformers));
  }
  return o;
}

AttentionImpl attention_named(const std::string& name) {
  if (name == "flash") return AttentionImpl::flash;
  return name == "eager" ? AttentionImpl::eager : AttentionImpl::sdpa;
}

engines::transformers::CacheKind cache_named(const std::string& name) {
  using engines::transformers::CacheKind;
  if (name == "static") return CacheKind::fixed;
  if (name == "offloaded") return CacheKind::offloaded;
  return name == "quantized" ? CacheKind::quantised : CacheKind::dynamic;
}

engines::transformers::QuantisedCache read_quantised_cache(const std::string& line) {
  const Json form = *parse_json(line, "--cache-config");
  engines::transformers::QuantisedCache out;
  if (form.value("backend", "quanto") == "hqq") out.backend = engines::transformers::CacheBackend::hqq;
  out.bits = form.value("nbits", out.bits);
  out.axis_key = form.value("axis_key", out.axis_key);
  out.axis_value = form.value("axis_value", out.axis_value);
  out.group = form.value("q_group_size", out.group);
  out.residual_length = form.value("residual_length", out.residual_length);
  return out;
}

// Options of `ullage serve`.
engines::transformers::ServeOptions read_serving(const std::string& line) {
  engines::transformers::ServeOptions o;
  o.kernels = Kernels::cuda_traced;
  std::istringstream in(line);
  std::string key;
  std::string value;
  while (in >> key >> value) {
    if (key == "--batch") o.batch = std::stoll(value);
    else if (key == "--seq-len") o.seq_len = std::stoll(value);
    else if (key == "--new-tokens") o.new_tokens = std::stoll(value);
    else if (key == "--dtype") o.dtype = *parse_dtype(value);
    else if (key == "--attention") o.attention = attention_named(value);
    else if (key == "--cache") o.cache = cache_named(value);
    else if (key == "--cache-config") o.quantised_cache = read_quantised_cache(value);
    else ADD_FAILURE() << "unknown option in a recorded log: " << key;
  }
  return o;
}

void read_header(EventLog& log, const std::string& line) {
  std::istringstream in(line);
  std::string hash;
  std::string key;
  in >> hash >> key;
  std::string rest;
  std::getline(in >> std::ws, rest);
  if (key == "model") log.model = rest;
  const bool generates = rest.starts_with("--batch ");
  if (key == "args" && generates) log.serving = read_serving(rest);
  if (key == "args" && !generates) log.options = read_options(rest, log.model);
  if (key == "peak") log.peak = std::stoll(rest);
  if (key == "peak_blocks") log.peak_blocks = std::stoll(rest);
  if (key == "offloaded") log.offloaded = std::stoll(rest);
}

}  // namespace

EventLog read_event_log(const std::string& path) {
  EventLog log;
  std::ifstream file(path);
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    std::istringstream in(line);
    char kind = 0;
    in >> kind;
    if (kind == '#') {
      read_header(log, line);
    } else if (kind == '@') {
      PhaseLine phase;
      in >> phase.name >> phase.live >> phase.parameters >> phase.gradients >> phase.optimizer;
      log.phases.push_back(phase);
    } else if (kind == '+') {
      Allocation allocation;
      in >> allocation.bytes >> allocation.live_bytes;
      std::getline(in >> std::ws, allocation.what);
      allocation.line = number;
      log.allocations.push_back(allocation);
    }
  }
  return log;
}

std::string test_name(std::string text) {
  for (char& c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return text;
}

std::vector<std::string> event_log_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ULLAGE_TEST_DATA "/" + folder)) {
    if (entry.path().extension() == ".events") names.push_back(folder + "/" + entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ullage::testing
