// Sources: vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py of vLLM 0.6.4, 0.7.3, 0.9.0, 0.19 and 0.23;
// https://docs.vllm.ai/en/latest/cli/serve.html. Flags that a release dropped stay: commands outlive releases.
#include "launch/flags.h"

namespace ullage::launch {
namespace {

constexpr Flag kFlags[] = {
    {"--dtype", Takes::value, Role::option, "--dtype"},
    {"--quantization -q", Takes::value, Role::option, "--quantization"},
    {"--max-model-len", Takes::value, Role::translated},
    {"--gpu-memory-utilization", Takes::value, Role::option, "--gpu-memory-utilization"},
    {"--kv-cache-memory-bytes --kv-cache-memory", Takes::value, Role::option, "--kv-cache-memory-bytes"},
    {"--max-num-batched-tokens", Takes::value, Role::option, "--max-num-batched-tokens"},
    {"--max-num-seqs", Takes::value, Role::option, "--max-num-seqs"},
    {"--kv-cache-dtype", Takes::value, Role::option, "--kv-cache-dtype"},
    {"--block-size", Takes::value, Role::option, "--block-size"},
    {"--enforce-eager", Takes::nothing, Role::option, "--enforce-eager"},
    {"--enable-prefix-caching", Takes::nothing, Role::option, "--enable-prefix-caching"},
    {"--tensor-parallel-size -tp", Takes::value, Role::option, "--tensor-parallel-size"},
    {"--pipeline-parallel-size -pp", Takes::value, Role::option, "--pipeline-parallel-size"},
    {"--data-parallel-size -dp", Takes::value, Role::option, "--data-parallel-size"},
    {"--enable-expert-parallel -ep", Takes::nothing, Role::option, "--enable-expert-parallel"},
    {"--decode-context-parallel-size -dcp", Takes::value, Role::option, "--decode-context-parallel-size"},
    {"--speculative-config -sc", Takes::value, Role::option, "--speculative-config"},
    {"--enable-lora", Takes::nothing, Role::option, "--enable-lora"},
    {"--max-loras", Takes::value, Role::option, "--max-loras"},
    {"--max-lora-rank", Takes::value, Role::option, "--max-lora-rank"},
    {"--limit-mm-per-prompt", Takes::value, Role::translated},
    {"--cudagraph-capture-sizes --cuda-graph-sizes", Takes::values, Role::option, "--cudagraph-capture-sizes"},
    {"--cpu-offload-gb", Takes::value, Role::option, "--cpu-offload-gb"},
    {"--model", Takes::value, Role::translated},
    {"--config", Takes::value, Role::translated},
    {"--hf-overrides", Takes::value, Role::translated},
    {"--rope-scaling", Takes::value, Role::translated},
    {"--rope-theta", Takes::value, Role::translated},
    {"--compilation-config -cc", Takes::value, Role::translated},
    {"--optimization-level -O", Takes::value, Role::translated},
    {"--language-model-only", Takes::nothing, Role::translated},
    {"--speculative-model", Takes::value, Role::translated},
    {"--num-speculative-tokens", Takes::value, Role::translated},
    {"--spec-method", Takes::value, Role::translated},
    {"--spec-model", Takes::value, Role::translated},
    {"--spec-tokens", Takes::value, Role::translated},
};

constexpr std::string_view kIgnoredValues =
    "--host --port --uds --uvicorn-log-level --log-config-file --api-key --chat-template "
    "--chat-template-content-format --default-chat-template-kwargs --response-role --ssl-keyfile --ssl-certfile "
    "--ssl-ca-certs --ssl-cert-reqs --ssl-ciphers --root-path --middleware --tool-call-parser --tool-parser-plugin "
    "--tool-server --max-log-len --api-server-count -asc --h11-max-incomplete-event-size --h11-max-header-count "
    "--allowed-origins --allowed-methods --allowed-headers --task --runner --convert --tokenizer --tokenizer-mode "
    "--tokenizer-revision --revision --code-revision --seed --hf-config-path --hf-token --allowed-local-media-path "
    "--allowed-media-domains --max-logprobs --logprobs-mode --config-format --model-class-overrides --pooler-config "
    "--override-pooler-config --override-neuron-config --generation-config --override-generation-config --model-impl "
    "--io-processor-plugin --renderer-num-workers --load-format --download-dir --safetensors-load-strategy "
    "--safetensors-prefetch-num-threads --safetensors-prefetch-block-size --model-loader-extra-config "
    "--ignore-patterns --pt-load-map-location --attention-backend --attention-config -ac --mamba-backend "
    "--mamba-ssu-algorithm --mamba-cache-philox-rounds --reasoning-parser --reasoning-parser-plugin "
    "--reasoning-config --distributed-executor-backend --master-addr --master-port --nnodes -n --node-rank -r "
    "--distributed-timeout-seconds --cpu-distributed-timeout-seconds --dcp-comm-backend "
    "--dcp-kv-cache-interleave-size --cp-kv-cache-interleave-size --data-parallel-rank -dpn "
    "--data-parallel-start-rank -dpr --data-parallel-size-local -dpl --data-parallel-address -dpa "
    "--data-parallel-rpc-port -dpp --data-parallel-backend -dpb --all2all-backend --expert-placement-strategy "
    "--max-parallel-loading-workers --worker-cls --worker-extension-cls --fault-tolerance-config "
    "--prefix-caching-hash-algo --kv-events-config --swap-space --kv-offloading-size --kv-offloading-backend "
    "--media-io-kwargs --mm-processor-cache-gb --mm-processor-cache-type --mm-hasher-algorithm "
    "--mm-shm-cache-max-object-size-mb --mm-encoder-fp8-scale-path --mm-encoder-fp8-scale-save-path "
    "--mm-encoder-fp8-scale-save-margin --mm-tensor-ipc --mm-processor-device --default-mm-loras --max-cpu-loras "
    "--show-hidden-metrics-for-version --otlp-traces-endpoint --collect-detailed-traces "
    "--per-request-spec-decode-metrics --kv-cache-metrics-sample --jit-monitor-mode --max-num-queued-reqs "
    "--max-num-queued-tokens --long-prefill-token-threshold --max-num-partial-prefills --max-long-partial-prefills "
    "--scheduling-policy --scheduler-cls --watermark --prefill-schedule-interval --stream-interval "
    "--scheduler-delay-factor --preemption-mode --num-scheduler-steps --multi-step-stream-outputs "
    "--num-lookahead-slots --guided-decoding-backend --guided-decoding-config --structured-outputs-config "
    "--logits-processor-pattern --ir-op-priority --moe-backend --linear-backend --kernel-config --additional-config "
    "--profiler-config --performance-mode --weight-transfer-config --shutdown-timeout --gdn-prefill-backend "
    "--kda-prefill-backend --device --tokenizer-pool-size --tokenizer-pool-type --tokenizer-pool-extra-config "
    "--quantization-param-path --speculative-disable-by-batch-size --speculative-model-quantization "
    "--ngram-prompt-lookup-max --ngram-prompt-lookup-min --spec-decoding-acceptance-method "
    "--typical-acceptance-sampler-posterior-threshold --typical-acceptance-sampler-posterior-alpha "
    "--qlora-adapter-name-or-path --intial-incremental-detokenization-offset --use-tqdm-on-load";

constexpr std::string_view kIgnoredSwitches =
    "--trust-remote-code --headless --grpc --allow-credentials --enable-ssl-refresh --disable-uvicorn-access-log "
    "--return-tokens-as-token-ids --disable-frontend-multiprocessing --enable-request-id-headers "
    "--enable-auto-tool-choice --disable-fastapi-docs --enable-offline-docs --enable-prompt-tokens-details "
    "--enable-server-load-tracking --enable-force-include-usage --enable-tokenizer-info-endpoint --enable-log-outputs "
    "--enable-log-deltas --enable-log-requests --disable-log-requests --disable-log-stats --log-error-stack "
    "--trust-request-chat-template --tokens-only --aggregate-engine-logging --fail-on-environ-validation "
    "--allow-deprecated-quantization --enable-return-routed-experts --return-sampling-mask --use-fp64-gumbel "
    "--enable-trace-replay --disable-cascade-attn --skip-tokenizer-init --enable-prompt-embeds "
    "--enable-nccl-comm-suspend --enable-mamba-cache-stochastic-rounding --numa-bind --data-parallel-hybrid-lb -dph "
    "--data-parallel-external-lb -dpe --data-parallel-multi-port-external-lb -dpm --enable-batch-sharded-sampling "
    "--enable-ep-weight-filter --enable-elastic-ep --disable-nccl-for-dp-synchronization --ray-workers-use-nsight "
    "--enable-fault-tolerance --enable-mm-embeds --interleave-mm-strings --mm-device-do-normalize "
    "--enable-mixed-moe-lora-format --kv-cache-metrics --cudagraph-metrics --enable-layerwise-nvtx-tracing "
    "--enable-mfu-metrics --enable-logging-iteration-details --jit-monitor-verbose --enable-mm-processor-stats "
    "--disable-chunked-mm-input --scheduler-reserve-full-isl --async-scheduling --enable-flashinfer-autotune "
    "--enable-bf16x3-router-gemm --enable-reasoning --worker-use-ray --engine-use-ray "
    "--use-v2-block-manager --disable-mm-preprocessor-cache --disable-async-output-proc --calculate-kv-scales "
    "--speculative-disable-mqa-scorer --disable-logprobs-during-spec-decoding";

constexpr std::string_view kIgnoredLists =
    "--served-model-name --lora-modules --prompt-adapters --logits-processors --numa-bind-nodes --numa-bind-cpus "
    "--device-ids --disable-access-log-for-endpoints";

constexpr std::string_view kUncountedValues =
    "--num-gpu-blocks-override --max-cudagraph-capture-size --max-seq-len-to-capture --max-context-len-to-capture "
    "--prefill-context-parallel-size -pcp --mamba-cache-dtype --mamba-ssm-cache-dtype --mamba-block-size "
    "--mamba-cache-mode --prefix-match-unit --replayssm-buffer-len --kv-cache-dtype-skip-layers --offload-backend "
    "--offload-group-size --offload-num-in-group --offload-prefetch-step --cpu-offload-params --offload-params "
    "--eplb-config --ubatch-size --dbo-decode-token-threshold --dbo-prefill-token-threshold --lora-dtype "
    "--lora-extra-vocab-size --long-lora-scaling-factors --lora-target-modules --max-prompt-adapters "
    "--max-prompt-adapter-token --mm-processor-kwargs --mm-encoder-tp-mode --mm-encoder-attn-backend "
    "--mm-encoder-attn-dtype --mm-ipc-gpu-memory-gb --video-pruning-rate --video-pruning-method --kv-transfer-config "
    "--ec-transfer-config --ec-manager-config --engram-config --diffusion-config -dc --quantization-config "
    "--max-num-scheduled-tokens --speculative-draft-tensor-parallel-size --speculative-max-model-len "
    "--prefix-cache-retention-interval --image-input-type --image-feature-size --image-token-id --image-input-shape";

constexpr std::string_view kUncountedSwitches =
    "--disable-hybrid-kv-cache-manager --disable-sliding-window --fully-sharded-loras --kv-sharing-fast-prefill "
    "--enable-eplb --enable-dbo --enable-sleep-mode --enable-cumem-allocator --disable-custom-all-reduce "
    "--skip-mm-profiling --mm-encoder-only --enable-prompt-adapter --enable-lora-bias --dcp-q-replicate "
    "--use-replayssm --enable-tower-connector-lora --specialize-active-lora --enable-moe-shared-loras "
    "--enable-multimodal-encoder-data-parallel --enable-chunked-prefill";

constexpr FlagTable kTable{
    kFlags, kIgnoredValues, kIgnoredSwitches, kIgnoredLists, kUncountedValues, kUncountedSwitches, true,
};

}  // namespace

const FlagTable& vllm_flags() { return kTable; }

}  // namespace ullage::launch
