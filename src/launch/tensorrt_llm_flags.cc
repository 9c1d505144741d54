// Source: tensorrt_llm/commands/serve.py;
// https://nvidia.github.io/TensorRT-LLM/commands/trtllm-serve/trtllm-serve.html.
#include "launch/flags.h"

namespace ullage::launch {
namespace {

constexpr Flag kFlags[] = {
    {"--tp_size --tensor_parallel_size", Takes::value, Role::option, "--tp"},
    {"--pp_size --pipeline_parallel_size", Takes::value, Role::option, "--pp"},
    {"--ep_size --moe_expert_parallel_size", Takes::value, Role::option, "--ep"},
    {"--max_batch_size", Takes::value, Role::option, "--max_batch_size"},
    {"--max_num_tokens", Takes::value, Role::option, "--max_num_tokens"},
    {"--max_beam_width", Takes::value, Role::option, "--max_beam_width"},
    {"--max_input_len", Takes::value, Role::option, "--max_input_len"},
    {"--max_output_len", Takes::value, Role::option, "--max_output_len"},
    {"--tokens_per_block", Takes::value, Role::option, "--tokens_per_block"},
    {"--kv_cache_free_gpu_memory_fraction --free_gpu_memory_fraction --kv_cache_free_gpu_mem_fraction", Takes::value,
     Role::option, "--kv_cache_free_gpu_mem_fraction"},
    {"--kv_cache_dtype", Takes::value, Role::option, "--kv-cache-dtype"},
    {"--dtype", Takes::value, Role::option, "--dtype"},
    {"--quantization", Takes::value, Role::option, "--quantization"},
    {"--extra_llm_api_options --config", Takes::value, Role::translated},
};

constexpr std::string_view kIgnoredValues =
    "--host --port --tokenizer --custom_tokenizer --backend --custom_module_dirs --log_level --gpus_per_node "
    "--num_postprocess_workers --revision --reasoning_parser --tool_parser --metadata_server_config_file "
    "--server_role --otlp_traces_endpoint --disagg_cluster_uri --media_io_kwargs --chat_template";

constexpr std::string_view kIgnoredSwitches = "--trust_remote_code --fail_fast_on_attention_window_too_large --grpc";

constexpr std::string_view kUncountedValues =
    "--max_seq_len --context_parallel_size --cp_size --cluster_size --moe_cluster_parallel_size";

constexpr std::string_view kUncountedSwitches = "--enable_chunked_prefill --enable_attention_dp";

constexpr FlagTable kTable{
    kFlags, kIgnoredValues, kIgnoredSwitches, {}, kUncountedValues, kUncountedSwitches, false,
};

}  // namespace

const FlagTable& tensorrt_llm_flags() { return kTable; }

}  // namespace ullage::launch
