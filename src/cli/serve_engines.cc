#include "cli/serve_engines.h"

#include <fmt/core.h>

namespace ullage::cli {
namespace {

struct OwnOptions {
  std::string_view engine;
  std::string_view options;  // that no other engine has
};

constexpr OwnOptions kOwn[] = {
    {"transformers",
     "--batch --seq-len --new-tokens --device-map --attention --cache --cache-config --kernels --torch --transformers "
     "--alloc-conf"},
    {"vllm",
     "--engine-version --max-model-len --gpu-memory-utilization --kv-cache-memory-bytes --max-num-batched-tokens "
     "--max-num-seqs --kv-cache-dtype --block-size --enforce-eager --enable-prefix-caching --tensor-parallel-size "
     "--pipeline-parallel-size --data-parallel-size --enable-expert-parallel --decode-context-parallel-size "
     "--speculative-config --enable-lora --max-loras --max-lora-rank --cudagraph-capture-sizes --cpu-offload-gb --env "
     "--limit-mm-per-prompt --input-len --output-len --concurrency"},
};

}  // namespace

std::string engine_of(const Arguments& arguments) { return arguments.text("--engine", "transformers"); }

Expected<void> check_engine_options(const Arguments& arguments) {
  const std::string engine = engine_of(arguments);
  for (const OwnOptions& own : kOwn) {
    if (own.engine == engine) continue;
    std::string_view foreign;
    for_each_word(own.options, ' ', [&](std::string_view option) {
      if (foreign.empty() && arguments.has(option)) foreign = option;
    });
    if (foreign.empty()) continue;
    return fail(ErrorCode::invalid_argument, std::string(foreign),
                fmt::format("is an option of --engine {}, not of {}", own.engine, engine));
  }
  const std::string dtype = arguments.text("--dtype");
  if (engine == "transformers" && (dtype == "auto" || dtype == "float"))
    return fail(ErrorCode::invalid_argument, "--dtype",
                fmt::format("'{}' is vLLM's word; write bf16, fp16 or fp32", dtype));
  return {};
}

}  // namespace ullage::cli
