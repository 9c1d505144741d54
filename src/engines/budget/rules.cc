#include "engines/budget/rules.h"

#include <fmt/core.h>

#include "data/engines_lmdeploy.h"
#include "data/engines_mindie.h"
#include "data/engines_tensorrt_llm.h"
#include "data/engines_tgi.h"

namespace ullage::engines::budget {
namespace {

struct Known {
  std::string_view name;
  std::string_view title;
  Version oldest;
  Version newest;
  std::string_view (*rows)();
};

constexpr Known kKnown[] = {
    {"tensorrt-llm", "TensorRT-LLM", {0, 5, 0}, {1, 2, 0}, data::engines_tensorrt_llm},
    {"mindie", "MindIE", {1, 0, 0}, {2, 1, 0}, data::engines_mindie},
    {"lmdeploy", "LMDeploy", {0, 2, 0}, {0, 16, 0}, data::engines_lmdeploy},
    {"tgi", "TGI", {1, 0, 0}, {3, 3, 7}, data::engines_tgi},
};

const Known& known(Engine engine) { return kKnown[static_cast<std::size_t>(engine)]; }

}  // namespace

std::string_view name_of(Engine engine) { return known(engine).name; }
std::string_view title_of(Engine engine) { return known(engine).title; }
Version newest(Engine engine) { return known(engine).newest; }
Version oldest(Engine engine) { return known(engine).oldest; }

std::optional<Engine> engine_named(std::string_view name) {
  for (const Engine engine : kEngines) {
    if (name_of(engine) == name) return engine;
  }
  return std::nullopt;
}

Rule rule(Engine engine, Version version, std::string_view item, const hardware::Gpu* gpu) {
  vllm::Surroundings around;
  around.version = version;
  around.gpu = gpu;
  return vllm::parse_rule(known(engine).rows(), item, around).value_or(Rule{});
}

Rule rule(const Options& options, std::string_view item, const hardware::Gpu* gpu) {
  return rule(options.engine, options.version, item, gpu);
}

std::vector<Rule> rules(Engine engine) { return vllm::parse_rules(known(engine).rows()).value_or(std::vector<Rule>{}); }

Expected<Version> parse_version(Engine engine, std::string_view text, std::string_view where) {
  auto read = vllm::parse_version(text, where);
  if (!read) {
    return fail(ErrorCode::invalid_argument, std::string(where),
                fmt::format("'{}' is no release of {}; write one such as {}", text.substr(0, 40), title_of(engine),
                            to_string(newest(engine))));
  }
  if (*read >= oldest(engine)) return read;
  return fail(ErrorCode::unsupported, std::string(where),
              fmt::format("{} is not in this version, whose rules of {} begin at {}", to_string(*read),
                          title_of(engine), to_string(oldest(engine))));
}

}  // namespace ullage::engines::budget
