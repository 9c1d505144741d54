#include "cli/option_table.h"

namespace ullage::cli {
namespace {

using report::Text;

constexpr OptionSpec kCommon[] = {
    {"--json", "", Text::opt_json},
    {"--lang", "en|zh", Text::opt_lang, "en|zh"},
    {"--units", "GiB|GB|MiB|bytes", Text::opt_units, "GiB|GB|MiB|bytes"},
    {"--color", "auto|always|never", Text::opt_color, "auto|always|never"},
    {"--quiet", "", Text::opt_quiet},
    {"--verbose", "", Text::opt_verbose},
    {"--help", "", Text::opt_help},
};

constexpr std::string_view kOptimizers =
    "adamw|adam|sgd|sgd-momentum|adagrad|rmsprop|adafactor|lion|muon|adamw-8bit|paged-adamw-8bit|adamw-4bit|adamw-fp8|"
    "none";

// Those that a training step can have.
constexpr std::string_view kComponents =
    "parameters|gradients|optimizer|buffers|inputs|activations|temporaries|workspace|context|libraries|fragmentation|"
    "cached|unattributed";

constexpr std::string_view kServeComponents =
    "parameters|buffers|inputs|kv_cache|activations|temporaries|cuda_graphs|workspace|context|libraries|fragmentation|"
    "cached|unattributed";

constexpr OptionSpec kTrain[] = {
    {"--gpu", "GPU", Text::opt_gpu},
    {"--gpus", "N", Text::opt_gpus},
    {"--gpu-memory", "SIZE", Text::opt_gpu_memory},
    {"--used", "SIZE", Text::opt_used},
    {"--alloc-conf", "KEY:VALUE,…", Text::opt_alloc_conf},
    {"--micro-batch", "B|max", Text::opt_micro_batch},
    {"--seq-len", "S|max", Text::opt_seq_len},
    {"--image-size", "N", Text::opt_image_size},
    {"--image-max-pixels", "N", Text::opt_image_max_pixels},
    {"--grad-accum", "N", Text::opt_grad_accum},
    {"--global-batch", "G", Text::opt_global_batch},
    {"--step", "first|steady|forward", Text::opt_step, "first|steady|forward"},
    {"--precision", "fp32|bf16|fp16|amp-bf16|amp-fp16|pure-bf16", Text::opt_precision,
     "fp32|bf16|fp16|amp-bf16|amp-fp16|pure-bf16", "fp8"},
    {"--optimizer", kOptimizers, Text::opt_optimizer, kOptimizers},
    {"--optimizer-impl", "foreach|fused|loop", Text::opt_optimizer_impl, "foreach|fused|loop"},
    {"--optimizer-in-backward", "", Text::opt_optimizer_in_backward},
    {"--clip-grad", "X", Text::opt_clip_grad},
    {"--grad-scaler", "", Text::opt_grad_scaler},
    {"--trainer", "none|hf", Text::opt_trainer, "none|hf"},
    {"--attention", "sdpa|flash|eager", Text::opt_attention, "sdpa|flash|eager"},
    {"--recompute", "none|full", Text::opt_recompute, "none|full", "selective"},
    {"--recompute-reentrant", "", Text::opt_recompute_reentrant},
    {"--recompute-vision", "", Text::opt_recompute_vision},
    {"--offload", "activations", Text::opt_offload, "activations", "optimizer|parameters|gradients"},
    {"--loss", "full|chunked|fused|none", Text::opt_loss, "full|chunked|fused|none"},
    {"--compile", "", Text::opt_compile},
    {"--lora", "R", Text::opt_lora},
    {"--lora-targets", "a,b", Text::opt_lora_targets},
    {"--lora-dropout", "P", Text::opt_lora_dropout},
    {"--lora-dtype", "fp32|base", Text::opt_lora_dtype, "fp32|base"},
    {"--tuner", "lora|lora-fa|dora|ia3|prompt|prefix|adapter|adapter-v2", Text::opt_tuner,
     "lora|lora-fa|dora|ia3|prompt|prefix|adapter|adapter-v2"},
    {"--virtual-tokens", "N", Text::opt_virtual_tokens},
    {"--modules-to-save", "a,b", Text::opt_modules_to_save},
    {"--freeze", "a,b", Text::opt_freeze},
    {"--quantize-base", "nf4|nf4-dq|fp4|int8|gptq|awq", Text::opt_quantize_base, "nf4|nf4-dq|fp4|int8|gptq|awq"},
    {"--prepare-kbit", "", Text::opt_prepare_kbit},
    {"--kernels", "cuda|cuda-traced|cpu", Text::opt_kernels, "cuda|cuda-traced|cpu"},
    {"--engine", "pytorch", Text::opt_engine, "pytorch", "ddp|fsdp|deepspeed|megatron"},
    {"--modules", "transformers|litgpt|torchtune|torchtitan|llm-foundry", Text::opt_modules,
     "transformers|litgpt|torchtune|torchtitan|llm-foundry", "megatron"},
    {"--modules-version", "V", Text::opt_modules_version},
    {"--torch", "V", Text::opt_torch_release},
    {"--transformers", "V", Text::opt_loss_version},
    {"--load", "torch|safetensors|meta", Text::opt_load, "torch|safetensors|meta"},
    {"--set", "KEY=VALUE", Text::opt_set, "", "", true},
    {"--timeline", "FILE", Text::opt_timeline},
    {"--html", "FILE", Text::opt_html},
    {"--why", "[COMPONENT]", Text::opt_why, kComponents},
    {"--advise", "", Text::opt_advise},
    {"--sweep", "OPTION=A..B", Text::opt_sweep},
    {"--require-fit", "", Text::opt_require_fit},
};

constexpr std::string_view kTrainLater =
    "--engine-version --peft --nodes --interconnect --video-max-frames --weights-dtype "
    "--param-dtype "
    "--reduce-dtype --fp8-recipe --fp8-param-gather --use-precision-aware-optimizer "
    "--exp-avg-dtype --exp-avg-sq-dtype --recompute-layers --recompute-modules "
    "--cuda-graph-scope --zero --optimizer-offload-fraction --fsdp --no-reshard "
    "--gradient-as-bucket-view --tp --pp --vpp --cp --ep --etp --ulysses --sequence-parallel --distributed-optimizer "
    "--async-tp --decoder-first-pipeline-num-layers --decoder-last-pipeline-num-layers --moe-token-dispatcher-type";

constexpr OptionSpec kServe[] = {
    {"--engine", "transformers|vllm|sglang|tensorrt-llm|mindie|lmdeploy|tgi", Text::opt_serve_engine,
     "transformers|vllm|sglang|tensorrt-llm|mindie|lmdeploy|tgi", "llama.cpp|ollama"},
    {"--gpu", "GPU", Text::opt_gpu},
    {"--gpus", "N", Text::opt_serve_gpus},
    {"--interconnect", "pcie|nvlink", Text::opt_interconnect, "pcie|nvlink"},
    {"--gpu-memory", "SIZE", Text::opt_gpu_memory},
    {"--used", "SIZE", Text::opt_used},
    {"--alloc-conf", "KEY:VALUE,…", Text::opt_alloc_conf},
    {"--batch", "B", Text::opt_batch},
    {"--seq-len", "S", Text::opt_prompt},
    {"--new-tokens", "N", Text::opt_new_tokens},
    {"--dtype", "bf16|fp16|fp32", Text::opt_dtype, "bf16|fp16|fp32|bfloat16|float16|float32|half|auto|float"},
    {"--quantization", "FORMAT", Text::opt_serve_quantization},
    {"--device-map", "auto|balanced|balanced_low_0|sequential", Text::opt_device_map,
     "auto|balanced|balanced_low_0|sequential"},
    {"--attention", "sdpa|flash|eager", Text::opt_attention, "sdpa|flash|eager"},
    {"--cache", "dynamic|static|quantized|offloaded", Text::opt_cache, "dynamic|static|quantized|offloaded"},
    {"--cache-config", "JSON", Text::opt_cache_config},
    {"--kernels", "cuda|cuda-traced", Text::opt_kernels, "cuda|cuda-traced"},
    {"--torch", "V", Text::opt_torch},
    {"--transformers", "V", Text::opt_transformers},
    {"--engine-version", "V", Text::opt_engine_version},
    {"--max-model-len", "N|max", Text::opt_max_model_len},
    {"--gpu-memory-utilization", "F", Text::opt_gpu_memory_utilization},
    {"--kv-cache-memory-bytes", "N", Text::opt_kv_cache_memory_bytes},
    {"--max-num-batched-tokens", "N", Text::opt_max_num_batched_tokens},
    {"--max-num-seqs", "N", Text::opt_max_num_seqs},
    {"--kv-cache-dtype", "auto|fp8|…", Text::opt_vllm_kv_cache_dtype},
    {"--block-size", "N", Text::opt_vllm_block_size},
    {"--enforce-eager", "", Text::opt_enforce_eager},
    {"--enable-prefix-caching", "", Text::opt_enable_prefix_caching},
    {"--tensor-parallel-size", "N", Text::opt_tensor_parallel_size},
    {"--pipeline-parallel-size", "N", Text::opt_pipeline_parallel_size},
    {"--data-parallel-size", "N", Text::opt_data_parallel_size},
    {"--enable-expert-parallel", "", Text::opt_enable_expert_parallel},
    {"--decode-context-parallel-size", "N", Text::opt_decode_context_parallel_size},
    {"--speculative-config", "JSON", Text::opt_speculative_config},
    {"--enable-lora", "", Text::opt_enable_lora},
    {"--max-loras", "N", Text::opt_max_loras},
    {"--max-lora-rank", "R", Text::opt_max_lora_rank},
    {"--cudagraph-capture-sizes", "1,2,4,…", Text::opt_cudagraph_capture_sizes},
    {"--cpu-offload-gb", "X", Text::opt_cpu_offload_gb},
    {"--limit-mm-per-prompt", "JSON", Text::opt_limit_mm_per_prompt},
    {"--tp", "N", Text::opt_sglang_tp},
    {"--pp", "N", Text::opt_sglang_pp},
    {"--dp", "N", Text::opt_sglang_dp},
    {"--ep", "N", Text::opt_sglang_ep},
    {"--enable-dp-attention", "", Text::opt_sglang_enable_dp_attention},
    {"--context-length", "N", Text::opt_sglang_context_length},
    {"--mem-fraction-static", "F", Text::opt_sglang_mem_fraction_static},
    {"--chunked-prefill-size", "N", Text::opt_sglang_chunked_prefill_size},
    {"--max-prefill-tokens", "N", Text::opt_sglang_max_prefill_tokens},
    {"--max-running-requests", "N", Text::opt_sglang_max_running_requests},
    {"--max-total-tokens", "N", Text::opt_sglang_max_total_tokens},
    {"--cuda-graph-max-bs", "N", Text::opt_sglang_cuda_graph_max_bs},
    {"--disable-cuda-graph", "", Text::opt_sglang_disable_cuda_graph},
    {"--disable-radix-cache", "", Text::opt_sglang_disable_radix_cache},
    {"--page-size", "N", Text::opt_sglang_page_size},
    {"--attention-backend", "NAME", Text::opt_sglang_attention_backend},
    {"--swa-full-tokens-ratio", "F", Text::opt_sglang_swa_full_tokens_ratio},
    {"--mamba-full-memory-ratio", "F", Text::opt_sglang_mamba_full_memory_ratio},
    {"--max-mamba-cache-size", "N", Text::opt_sglang_max_mamba_cache_size},
    {"--speculative-algorithm", "NEXTN|EAGLE|NGRAM", Text::opt_sglang_speculative_algorithm},
    {"--speculative-num-steps", "N", Text::opt_sglang_speculative_num_steps},
    {"--speculative-eagle-topk", "N", Text::opt_sglang_speculative_eagle_topk},
    {"--speculative-num-draft-tokens", "N", Text::opt_sglang_speculative_num_draft_tokens},
    {"--kt-num-gpu-experts", "N", Text::opt_sglang_kt_num_gpu_experts},
    {"--env", "NAME=VALUE", Text::opt_env, "", "", true},
    {"--max_batch_size", "N", Text::opt_trt_max_batch_size},
    {"--max_input_len", "N", Text::opt_trt_max_input_len},
    {"--max_output_len", "N", Text::opt_trt_max_output_len},
    {"--max_num_tokens", "N", Text::opt_trt_max_num_tokens},
    {"--max_beam_width", "N", Text::opt_trt_max_beam_width},
    {"--tokens_per_block", "N", Text::opt_trt_tokens_per_block},
    {"--kv_cache_free_gpu_mem_fraction", "F", Text::opt_trt_fraction},
    {"--npu-mem-size", "GB", Text::opt_mindie_npu_mem_size},
    {"--cache-block-size", "N", Text::opt_mindie_cache_block_size},
    {"--max-seq-len", "N", Text::opt_mindie_max_seq_len},
    {"--max-input-token-len", "N", Text::opt_mindie_max_input_token_len},
    {"--max-iter-times", "N", Text::opt_mindie_max_iter_times},
    {"--max-prefill-batch-size", "N", Text::opt_mindie_max_prefill_batch_size},
    {"--world-size", "N", Text::opt_mindie_world_size},
    {"--backend", "turbomind|pytorch", Text::opt_lmdeploy_backend, "turbomind|pytorch", "cuda|rpc|vulkan|metal|cpu"},
    {"--cache-max-entry-count", "F", Text::opt_lmdeploy_cache_max_entry_count},
    {"--cache-block-seq-len", "N", Text::opt_lmdeploy_cache_block_seq_len},
    {"--session-len", "N", Text::opt_lmdeploy_session_len},
    {"--max-batch-size", "N", Text::opt_lmdeploy_max_batch_size},
    {"--max-prefill-token-num", "N", Text::opt_lmdeploy_max_prefill_token_num},
    {"--quant-policy", "0|4|8", Text::opt_lmdeploy_quant_policy},
    {"--num-shard", "N", Text::opt_tgi_num_shard},
    {"--quantize", "FORMAT", Text::opt_tgi_quantize},
    {"--max-input-tokens", "N", Text::opt_tgi_max_input_tokens},
    {"--max-batch-prefill-tokens", "N", Text::opt_tgi_max_batch_prefill_tokens},
    {"--max-batch-total-tokens", "N", Text::opt_tgi_max_batch_total_tokens},
    {"--cuda-memory-fraction", "F", Text::opt_tgi_cuda_memory_fraction},
    {"--input-len", "N", Text::opt_serve_input_len},
    {"--output-len", "N", Text::opt_serve_output_len},
    {"--concurrency", "N|max", Text::opt_concurrency},
    {"--set", "KEY=VALUE", Text::opt_set, "", "", true},
    {"--html", "FILE", Text::opt_html},
    {"--why", "[COMPONENT]", Text::opt_why, kServeComponents},
    {"--require-fit", "", Text::opt_require_fit},
};

// Those of other engines.
constexpr std::string_view kServeLater =
    "--sweep --timeline -c -b -ub -np -ngl -fa -ctk -ctv -sm -ts -mg "
    "-ot -dev --cpu-moe --n-cpu-moe -nkvo --swa-full --kv-unified --no-mmap --mmproj --no-mmproj-offload --spec-type "
    "--draft-max -md -ngld -mla -amb -fmoe --type --mmproj-type";

constexpr OptionSpec kInspect[] = {
    {"--dtype", "fp32|bf16|…", Text::opt_dtype},
    {"--seq-len", "S", Text::opt_inspect_seq_len},
    {"--image-size", "N", Text::opt_image_size},
    {"--tensor", "AxBxC", Text::opt_tensor},
    {"--checkpoint", "", Text::opt_checkpoint},
    {"--kv-cache-dtype", "fp8|q8_0|…", Text::opt_kv_cache_dtype},
    {"--quantization", "X", Text::opt_inspect_quantization},
    {"--set", "KEY=VALUE", Text::opt_set, "", "", true},
};

constexpr OptionSpec kCheck[] = {
    {"--gpu", "GPU", Text::opt_gpu},
    {"--gpus", "N", Text::opt_serve_gpus},
    {"--interconnect", "pcie|nvlink", Text::opt_interconnect, "pcie|nvlink"},
    {"--gpu-memory", "SIZE", Text::opt_gpu_memory},
    {"--used", "SIZE", Text::opt_used},
    {"--model", "MODEL", Text::opt_check_model},
    {"--engine-version", "V", Text::opt_check_engine_version},
    {"--input-len", "N", Text::opt_serve_input_len},
    {"--output-len", "N", Text::opt_serve_output_len},
    {"--concurrency", "N|max", Text::opt_concurrency},
    {"--set", "KEY=VALUE", Text::opt_set, "", "", true},
    {"--require-fit", "", Text::opt_require_fit},
};

constexpr OptionSpec kModels[] = {
    {"--model-type", "TYPE", Text::opt_model_type},
};

constexpr OptionSpec kGpus[] = {
    {"--vendor", "NAME", Text::opt_vendor},
    {"--architecture", "TEXT", Text::opt_architecture},
    {"--min-memory", "SIZE", Text::opt_min_memory},
    {"--max-memory", "SIZE", Text::opt_max_memory},
    {"--min-compute-capability", "X.Y", Text::opt_min_capability},
    {"--min-year", "YEAR", Text::opt_min_year},
    {"--bf16", "", Text::opt_bf16},
    {"--fp8", "", Text::opt_fp8},
    {"--nvlink", "", Text::opt_nvlink},
    {"--sort", "id|memory|usable|bandwidth|bf16|year|tdp", Text::opt_sort,
     "id|name|memory|usable|bandwidth|bf16|year|tdp"},
};

constexpr OptionSpec kValidate[] = {
    {"--where", "KEY=a,b", Text::opt_where, "", "", true},
    {"--confidence", "high,medium", Text::opt_confidence},
    {"--key", "PREFIX", Text::opt_key},
    {"--by", "modules,confidence", Text::opt_by},
    {"--with", "KEY=VALUE", Text::opt_with, "", "", true},
    {"--as-written", "", Text::opt_as_written},
    {"--rows", "N", Text::opt_rows},
};

constexpr OptionSpec kFit[] = {
    {"--gpu", "GPU,…", Text::opt_fit_gpu},
    {"--context", "N", Text::opt_fit_context},
    {"--dtype", "bf16|fp16|fp32", Text::opt_fit_dtype, "bf16|fp16|fp32"},
    {"--interconnect", "pcie|nvlink", Text::opt_interconnect, "pcie|nvlink"},
    {"--rows", "N", Text::opt_fit_rows},
};

constexpr OptionSpec kMfu[] = {
    {"--tflops", "X", Text::opt_tflops},
    {"--tokens-per-second", "X", Text::opt_tokens_per_second},
    {"--examples-per-second", "X", Text::opt_examples_per_second},
    {"--seq-len", "S", Text::opt_mfu_seq_len},
    {"--gpu", "GPU", Text::opt_mfu_gpu},
    {"--gpus", "N", Text::opt_gpus},
    {"--precision", "bf16|fp16|tf32|fp32|fp8", Text::opt_mfu_precision, "bf16|fp16|tf32|fp32|fp8"},
    {"--cores", "N", Text::opt_cores},
    {"--clock-ghz", "X", Text::opt_clock},
    {"--recompute", "none|selective|full", Text::opt_mfu_recompute, "none|selective|full"},
    {"--reference", "NAME|X", Text::opt_reference},
    {"--set", "KEY=VALUE", Text::opt_set, "", "", true},
};

constexpr OptionSpec kTextbook[] = {
    {"--dtype", "fp32|bf16|fp16|fp8|int8|int4", Text::opt_textbook_dtype, "fp32|bf16|fp16|fp8|int8|int4"},
    {"--quantization", "int8|fp8|int4|nf4", Text::opt_textbook_quantization, "int8|fp8|int4|nf4"},
    {"--gpu", "GPU", Text::opt_textbook_gpu},
    {"--gpus", "N", Text::opt_textbook_gpus},
    {"--micro-batch", "B", Text::opt_textbook_micro_batch},
    {"--seq-len", "S", Text::opt_textbook_seq_len},
    {"--layers", "L", Text::opt_layers},
    {"--hidden", "H", Text::opt_hidden},
    {"--heads", "A", Text::opt_heads},
    {"--ffn", "F", Text::opt_ffn},
    {"--lora", "R", Text::opt_textbook_lora},
    {"--matrix", "INxOUT", Text::opt_matrix},
    {"--bytes-per-token", "N", Text::opt_bytes_per_token},
    {"--cache-memory", "SIZE", Text::opt_cache_memory},
    {"--block-size", "N", Text::opt_block_size},
    {"--input-len", "N", Text::opt_input_len},
    {"--output-len", "N", Text::opt_output_len},
    {"--only", "NAME", Text::opt_only},
};

constexpr CommandSpec kCommands[] = {
    {"train", "MODEL", false, Text::cmd_train, kTrain, kTrainLater},
    {"serve", "MODEL", false, Text::cmd_serve, kServe, kServeLater},
    {"check", "-- COMMAND…", false, Text::cmd_check, kCheck, "", true},
    {"fit", "[MODEL,…]", false, Text::cmd_fit, kFit, ""},
    {"inspect", "[MODEL]", false, Text::cmd_inspect, kInspect, ""},
    {"models", "[TEXT]", false, Text::cmd_models, kModels, ""},
    {"gpus", "[TEXT]", false, Text::cmd_gpus, kGpus, ""},
    {"engines", "[TEXT]", false, Text::cmd_engines, {}, ""},
    {"validate", "CASES.jsonl", true, Text::cmd_validate, kValidate, ""},
    {"replay", "FILE.json", true, Text::cmd_replay, {}, ""},
    {"mfu", "[MODEL]", false, Text::cmd_mfu, kMfu, "--trace"},
    {"textbook", "[SIZE]", false, Text::cmd_textbook, kTextbook, ""},
};

}  // namespace

std::span<const OptionSpec> common_options() { return kCommon; }

std::span<const CommandSpec> commands() { return kCommands; }

const CommandSpec* find_command(std::string_view name) {
  for (const CommandSpec& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

bool has_word(std::string_view list, char separator, std::string_view word) {
  bool found = false;
  for_each_word(list, separator, [&](std::string_view one) { found = found || one == word; });
  return found;
}

}  // namespace ullage::cli
