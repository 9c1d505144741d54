// Source: python/sglang/srt/server_args.py of 2026-07; https://docs.sglang.io/advanced_features/server_arguments.html.
#include "launch/flags.h"

namespace ullage::launch {
namespace {

constexpr Flag kFlags[] = {
    {"--tensor-parallel-size --tp-size --tp", Takes::value, Role::option, "--tp"},
    {"--pipeline-parallel-size --pp-size --pp", Takes::value, Role::option, "--pp"},
    {"--data-parallel-size --dp-size --dp", Takes::value, Role::option, "--dp"},
    {"--expert-parallel-size --ep-size --ep", Takes::value, Role::option, "--ep"},
    {"--dtype", Takes::value, Role::option, "--dtype"},
    {"--quantization", Takes::value, Role::option, "--quantization"},
    {"--context-length", Takes::value, Role::option, "--context-length"},
    {"--mem-fraction-static", Takes::value, Role::option, "--mem-fraction-static"},
    {"--chunked-prefill-size", Takes::value, Role::option, "--chunked-prefill-size"},
    {"--max-running-requests", Takes::value, Role::option, "--max-running-requests"},
    {"--max-total-tokens", Takes::value, Role::option, "--max-total-tokens"},
    {"--cuda-graph-max-bs", Takes::value, Role::option, "--cuda-graph-max-bs"},
    {"--cuda-graph-bs", Takes::values, Role::uncounted, {}},
    {"--piecewise-cuda-graph-tokens", Takes::values, Role::uncounted, {}},
    {"--kv-cache-dtype", Takes::value, Role::option, "--kv-cache-dtype"},
    {"--page-size", Takes::value, Role::option, "--page-size"},
    {"--enable-dp-attention", Takes::nothing, Role::option, "--enable-dp-attention"},
    {"--attention-backend", Takes::value, Role::option, "--attention-backend"},
    {"--speculative-algorithm --speculative-algo", Takes::value, Role::option, "--speculative-algorithm"},
    {"--kt-num-gpu-experts", Takes::value, Role::option, "--kt-num-gpu-experts"},
    {"--max-prefill-tokens", Takes::value, Role::option, "--max-prefill-tokens"},
    {"--swa-full-tokens-ratio", Takes::value, Role::option, "--swa-full-tokens-ratio"},
    {"--mamba-full-memory-ratio", Takes::value, Role::option, "--mamba-full-memory-ratio"},
    {"--max-mamba-cache-size", Takes::value, Role::option, "--max-mamba-cache-size"},
    {"--speculative-num-steps", Takes::value, Role::option, "--speculative-num-steps"},
    {"--speculative-eagle-topk", Takes::value, Role::option, "--speculative-eagle-topk"},
    {"--speculative-num-draft-tokens", Takes::value, Role::option, "--speculative-num-draft-tokens"},
    {"--cpu-offload-gb", Takes::value, Role::option, "--cpu-offload-gb"},
    {"--disable-cuda-graph", Takes::nothing, Role::option, "--disable-cuda-graph"},
    {"--disable-radix-cache", Takes::nothing, Role::option, "--disable-radix-cache"},
    {"--model-path --model", Takes::value, Role::translated},
    {"--config", Takes::value, Role::translated},
    {"--json-model-override-args", Takes::value, Role::translated},
};

constexpr std::string_view kIgnoredValues =
    "--host --port --tokenizer-path --tokenizer-mode --tokenizer-worker-num --load-format --model-loader-extra-config "
    "--revision --model-impl --fastapi-root-path --warmups --nccl-port --quantization-param-path "
    "--modelopt-checkpoint-restore-path --modelopt-checkpoint-save-path --modelopt-export-path --rl-quant-profile "
    "--max-queued-requests --schedule-policy --priority-scheduling-preemption-threshold --schedule-conservativeness "
    "--radix-eviction-policy --prefill-delayer-max-delay-passes --prefill-delayer-token-usage-low-watermark --device "
    "--stream-interval --random-seed --constrained-json-whitespace-pattern --watchdog-timeout --soft-watchdog-timeout "
    "--dist-timeout --download-dir --model-checksum --base-gpu-id --gpu-id-step --log-level --log-level-http "
    "--log-requests-level --log-requests-format --crash-dump-folder --tokenizer-metrics-custom-labels-header "
    "--gc-warning-threshold-secs --decode-log-interval --kv-events-config --otlp-traces-endpoint "
    "--export-metrics-to-file-dir --api-key --admin-api-key --served-model-name --weight-version --chat-template "
    "--hf-chat-template-name --completion-template --file-storage-path --reasoning-parser --tool-call-parser "
    "--tool-server --sampling-defaults --load-balance-method --dist-init-addr --nccl-init-addr --nnodes --node-rank "
    "--preferred-sampling-params --lora-eviction-policy --lora-backend --decode-attention-backend "
    "--prefill-attention-backend --sampling-backend --grammar-backend --mm-attention-backend --fp8-gemm-backend "
    "--fp8-gemm-runner-backend --fp4-gemm-runner-backend --nsa-prefill-backend --nsa-decode-backend --mamba-backend "
    "--speculative-draft-model-revision --speculative-draft-load-format --speculative-accept-threshold-single "
    "--speculative-accept-threshold-acc --speculative-token-map --speculative-attention-mode "
    "--speculative-draft-attention-backend --speculative-moe-runner-backend --speculative-moe-a2a-backend "
    "--speculative-ngram-min-match-window-size --speculative-ngram-max-match-window-size "
    "--speculative-ngram-min-bfs-breadth --speculative-ngram-max-bfs-breadth --speculative-ngram-match-type "
    "--speculative-ngram-branch-length --speculative-ngram-capacity --moe-runner-backend "
    "--flashinfer-mxfp4-moe-precision --deepep-mode --ep-dispatch-algorithm --init-expert-location --eplb-algorithm "
    "--eplb-rebalance-num-iterations --eplb-rebalance-layers-per-chunk --eplb-min-rebalancing-utilization-threshold "
    "--expert-distribution-recorder-mode --expert-distribution-recorder-buffer-size --deepep-config "
    "--elastic-ep-backend --mooncake-ib-device --mamba-scheduler-strategy --mamba-track-interval "
    "--linear-attn-backend --linear-attn-decode-backend --linear-attn-prefill-backend --hicache-ratio --hicache-size "
    "--hicache-write-policy --hicache-io-backend --hicache-mem-layout --hicache-storage-backend "
    "--hicache-storage-prefetch-policy --hicache-storage-backend-extra-config --kt-weight-path --kt-method "
    "--kt-amx-weight-path --kt-amx-method --kt-cpuinfer --kt-threadpool-count --kt-max-deferred-experts-per-token "
    "--kt-gpu-prefill-token-threshold --kt-expert-placement-strategy --piecewise-cuda-graph-compiler "
    "--triton-attention-num-kv-splits --triton-attention-split-tile-size --num-continuous-decode-steps "
    "--scheduler-recv-interval --disaggregation-transfer-backend --disaggregation-bootstrap-port "
    "--disaggregation-decode-tp --disaggregation-decode-dp --disaggregation-prefill-pp --disaggregation-ib-device "
    "--disaggregation-decode-polling-interval --mm-max-concurrent-calls --mm-per-request-timeout --mm-process-config "
    "--tbo-token-distribution-threshold";

constexpr std::string_view kIgnoredSwitches =
    "--trust-remote-code --skip-tokenizer-init --is-embedding --grpc-mode --skip-server-warmup --quantize-and-serve "
    "--enable-priority-scheduling --abort-on-priority-when-disabled --schedule-low-priority-values-first "
    "--enable-prefill-delayer --stream-output --constrained-json-disable-any-whitespace --sleep-on-idle "
    "--log-requests --show-time-cost --enable-metrics --enable-metrics-for-all-schedulers --collect-tokens-histogram "
    "--enable-request-time-stats-logging --enable-trace --export-metrics-to-file --enable-cache-report "
    "--enable-hierarchical-cache --enable-lmcache --enable-tokenizer-batch-encode --disable-tokenizer-batch-decode "
    "--disable-outlines-disk-cache --disable-disk-cache --disable-overlap-schedule --enable-nan-detection "
    "--enable-p2p-check --triton-attention-reduce-in-fp32 --delete-ckpt-after-loading --allow-auto-truncate "
    "--enable-custom-logit-processor --flashinfer-mla-disable-ragged --disable-shared-experts-fusion "
    "--disable-chunked-prefix-cache --disable-fast-image-processor --enable-return-routed-experts "
    "--enable-deterministic-inference --enable-dynamic-batch-tokenizer --enable-profile-cuda-graph "
    "--disable-flashinfer-autotune --enable-flashinfer-allreduce-fusion --enable-aiter-allreduce-fusion "
    "--enable-fused-qk-norm-rope --enable-layerwise-nvtx-marker --weight-loader-disable-mmap "
    "--enable-expert-distribution-metrics --enable-mixed-chunk";

constexpr std::string_view kIgnoredLists =
    "--log-requests-target --lora-paths --prompt-tokens-buckets --generation-tokens-buckets --extra-metric-labels "
    "--bucket-time-to-first-token --bucket-inter-token-latency --bucket-e2e-request-latency --numa-node "
    "--custom-weight-loader --encoder-urls";

constexpr std::string_view kUncountedValues =
    "--prefill-max-requests --pp-max-micro-batch-size --pp-async-batch-depth --attn-cp-size --moe-dp-size "
    "--max-lora-rank --lora-target-modules --max-loaded-loras --max-loras-per-batch --max-lora-chunk-size "
    "--speculative-draft-model-path --speculative-draft-model --speculative-draft-model-quantization "
    "--moe-a2a-backend --ep-num-redundant-experts --moe-dense-tp-size --mamba-ssm-dtype --kt-gpu-experts-ratio "
    "--offload-group-size --offload-num-in-group --offload-prefetch-step --offload-mode "
    "--torch-compile-max-bs --piecewise-cuda-graph-max-tokens --torchao-config "
    "--disaggregation-mode --num-reserved-decode-tokens --ds-channel-config-path --ds-heavy-channel-num "
    "--ds-heavy-token-num --ds-heavy-channel-type --ds-sparse-decode-threshold --dllm-algorithm --sm-group-num "
    "--limit-mm-data-per-request";

constexpr std::string_view kUncountedSwitches =
    "--enable-fp32-lm-head --enable-multimodal --enable-dynamic-chunking --disable-hybrid-swa-memory --enable-lora "
    "--enable-multi-layer-eagle --enable-eplb --enable-double-sparsity --disable-cuda-graph-padding "
    "--enable-cudagraph-gc --enable-nccl-nvls --enable-symm-mem --disable-custom-all-reduce --enable-mscclpp "
    "--enable-torch-symm-mem --enable-dp-lm-head --enable-two-batch-overlap --enable-single-batch-overlap "
    "--enable-torch-compile --enable-piecewise-cuda-graph --enable-memory-saver --enable-weights-cpu-backup "
    "--keep-mm-feature-on-device --enable-return-hidden-states --enable-attn-tp-input-scattered "
    "--enable-nsa-prefill-context-parallel --encoder-only --language-only --enable-pdmux --mm-enable-dp-encoder "
    "--enable-mm-global-cache --enable-deepep-moe --enable-ep-moe";

constexpr FlagTable kTable{
    kFlags, kIgnoredValues, kIgnoredSwitches, kIgnoredLists, kUncountedValues, kUncountedSwitches, true,
};

}  // namespace

const FlagTable& sglang_flags() { return kTable; }

}  // namespace ullage::launch
