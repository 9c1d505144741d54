#include "cli/serve_engines.h"

#include <fmt/core.h>

namespace ullage::cli {
namespace {

struct OwnOptions {
  std::string_view engine;
  std::string_view options;  // those that not every engine has
};

constexpr OwnOptions kOwn[] = {
    {"transformers",
     "--batch --seq-len --new-tokens --device-map --attention --cache --cache-config --kernels --torch --transformers "
     "--alloc-conf --quantization"},
    {"vllm",
     "--engine-version --max-model-len --gpu-memory-utilization --kv-cache-memory-bytes --max-num-batched-tokens "
     "--max-num-seqs --kv-cache-dtype --block-size --enforce-eager --enable-prefix-caching --tensor-parallel-size "
     "--pipeline-parallel-size --data-parallel-size --enable-expert-parallel --decode-context-parallel-size "
     "--speculative-config --enable-lora --max-loras --max-lora-rank --cudagraph-capture-sizes --cpu-offload-gb --env "
     "--limit-mm-per-prompt --input-len --output-len --concurrency --quantization"},
    {"sglang",
     "--engine-version --tp --pp --dp --ep --context-length --mem-fraction-static --chunked-prefill-size "
     "--max-prefill-tokens --max-running-requests --max-total-tokens --cuda-graph-max-bs --kv-cache-dtype --page-size "
     "--enable-dp-attention --attention-backend --speculative-algorithm --speculative-num-steps "
     "--speculative-eagle-topk --speculative-num-draft-tokens --kt-num-gpu-experts --swa-full-tokens-ratio "
     "--mamba-full-memory-ratio --max-mamba-cache-size --disable-radix-cache --disable-cuda-graph --cpu-offload-gb "
     "--input-len --output-len --concurrency --quantization"},
    {"tensorrt-llm",
     "--engine-version --tp --pp --ep --quantization --max_batch_size --max_input_len --max_output_len "
     "--max_num_tokens --max_beam_width --tokens_per_block --kv_cache_free_gpu_mem_fraction --kv-cache-dtype "
     "--input-len --output-len --concurrency"},
    {"mindie",
     "--engine-version --npu-mem-size --cache-block-size --max-seq-len --max-input-token-len --max-iter-times "
     "--max-prefill-batch-size --world-size --quantization --input-len --output-len --concurrency"},
    {"lmdeploy",
     "--engine-version --tp --backend --cache-max-entry-count --cache-block-seq-len --session-len --max-batch-size "
     "--max-prefill-token-num --quant-policy --quantization --input-len --output-len --concurrency"},
    {"tgi",
     "--engine-version --num-shard --quantize --max-input-tokens --max-total-tokens --max-batch-prefill-tokens "
     "--max-batch-total-tokens --cuda-memory-fraction --kv-cache-dtype --input-len --output-len --concurrency"},
};

bool has_word(std::string_view list, std::string_view word) {
  bool found = false;
  for_each_word(list, ' ', [&](std::string_view each) { found = found || each == word; });
  return found;
}

std::string_view options_of(std::string_view engine) {
  for (const OwnOptions& own : kOwn) {
    if (own.engine == engine) return own.options;
  }
  return {};
}

}  // namespace

std::string engine_of(const Arguments& arguments) { return arguments.text("--engine", "transformers"); }

Expected<void> check_engine_options(const Arguments& arguments) {
  const std::string engine = engine_of(arguments);
  const std::string_view taken = options_of(engine);
  for (const OwnOptions& own : kOwn) {
    std::string_view foreign;
    for_each_word(own.options, ' ', [&](std::string_view option) {
      if (foreign.empty() && arguments.has(option) && !has_word(taken, option)) foreign = option;
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
