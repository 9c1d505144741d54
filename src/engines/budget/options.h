// What decides memory in the engines that share a card out by one rule: as resolved for a release.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"
#include "engines/vllm/version.h"
#include "model/cache.h"

namespace ullage::engines::budget {

// A release as its numbers, which all engines write alike.
using vllm::to_string;
using vllm::Version;

enum class Engine : std::uint8_t { tensorrt_llm, mindie, lmdeploy, tgi };

inline constexpr Engine kEngines[] = {Engine::tensorrt_llm, Engine::mindie, Engine::lmdeploy, Engine::tgi};

// "tensorrt-llm", as the command line calls it, and "TensorRT-LLM".
std::string_view name_of(Engine engine);
std::string_view title_of(Engine engine);
std::optional<Engine> engine_named(std::string_view name);

// The newest release whose rules were read, and the oldest.
Version newest(Engine engine);
Version oldest(Engine engine);

struct Options {
  Engine engine = Engine::tensorrt_llm;
  Version version;
  DType dtype = DType::f16;
  model::CacheType cache;        // of keys and values
  std::int64_t scale_bytes = 0;  // of a head's key, or value, of one token: what quantises it
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  bool expert_parallel = false;
  std::int64_t input_tokens = 0;    // of the longest request
  std::int64_t output_tokens = 0;   // the most that it is given
  std::int64_t longest = 0;         // both together, as the engine limits it
  std::int64_t prefill_tokens = 0;  // put in by the largest step
  std::int64_t max_batch = 0;       // requests of one step
  std::int64_t beams = 1;
  std::int64_t block_size = 0;  // tokens
  double fraction = 0;
  std::optional<std::int64_t> pool_bytes;  // given, in place of the fraction
  std::optional<std::int64_t> most_tokens;
  std::optional<std::int64_t> blocks;  // given, in place of both
  bool pytorch = false;                // LMDeploy's other engine
  bool contiguous = false;             // no pages: room for the largest batch of longest requests
  bool length_given = false;           // by whoever asks, not the engine's default

  std::int64_t gpus() const { return tensor_parallel * pipeline_parallel; }
};

}  // namespace ullage::engines::budget
