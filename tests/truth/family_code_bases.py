"""Jobs that run other code bases' modules."""
from jobs import Job

LLAMA = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048,
         "tie_word_embeddings": False}
GROUPED = LLAMA | {"num_key_value_heads": 2}
PHI = {"model_type": "phi", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 3,
       "num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048,
       "partial_rotary_factor": 0.5, "hidden_act": "gelu_new", "tie_word_embeddings": False}
NEOX = {"model_type": "gpt_neox", "hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 3,
        "num_attention_heads": 4, "vocab_size": 1000, "max_position_embeddings": 2048, "rotary_pct": 0.25,
        "hidden_act": "gelu", "use_parallel_residual": True, "tie_word_embeddings": False}
GEMMA = {"model_type": "gemma", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": 64, "vocab_size": 1000,
         "max_position_embeddings": 2048, "hidden_activation": "gelu_pytorch_tanh"}

CONFIGS, JOBS = {}, []


def litgpt(name, model, version, args):
    args = f"--kernels cuda-traced --modules litgpt --modules-version {version} {args}"
    JOBS.append(Job(f"litgpt-{name}-{version}", model, args))


CHUNKED = "--loss chunked"
LORA = f"{CHUNKED} --lora 8 --lora-targets q_proj,v_proj --lora-dropout 0.05 --precision bf16"
EVERYWHERE = (f"{CHUNKED} --lora 4 --lora-targets q_proj,k_proj,v_proj,o_proj,gate_proj,lm_head --lora-dropout 0.05 "
              "--precision bf16")
SHORT, LONG = "--micro-batch 3 --seq-len 33", "--micro-batch 1 --seq-len 300"
BOTH = "--micro-batch 2 --seq-len 160"
for version in ("2023-10", "0.4", "0.5"):
    for kind, model in {"llama": LLAMA, "phi": PHI, "neox": NEOX}.items():
        litgpt(f"{kind}-lora", model, version, f"{LORA} {LONG} --step first")
        litgpt(f"{kind}-all", model, version, f"{EVERYWHERE} {BOTH} --grad-accum 2")
    litgpt("grouped-lora", GROUPED, version, f"{LORA} {SHORT}")
    litgpt("grouped-full", GROUPED, version, f"--loss chunked --precision bf16 {BOTH} --grad-accum 2")
    litgpt("llama-full", LLAMA, version, f"--loss full --precision fp32 {SHORT}")
    litgpt("neox-amp", NEOX, version, f"{LORA.replace('bf16', 'amp-bf16')} {BOTH}")
    litgpt("phi-nf4", PHI, version, f"{LORA} {BOTH} --quantize-base nf4")
    litgpt("llama-nf4-dq", LLAMA, version, f"{LORA} {LONG} --quantize-base nf4-dq --step first")
    litgpt("grouped-recompute", GROUPED, version, f"--loss chunked --precision bf16 {BOTH} --recompute full")
for version in ("2023-10", "0.4"):
    ADAPTER = f"{CHUNKED} --precision bf16 --micro-batch 1 --seq-len 160 --step first"
    litgpt("llama-adapter", LLAMA, version, f"{ADAPTER} --tuner adapter")
    litgpt("neox-adapter-v2", NEOX, version, f"{ADAPTER} --tuner adapter-v2")
    litgpt("llama-adapter-v2-nf4", LLAMA, version, f"{ADAPTER} --tuner adapter-v2 --quantize-base nf4")
for version in ("0.4", "0.5"):
    litgpt("gemma-all", GEMMA, version, f"{EVERYWHERE} {BOTH}")


def of_code(code, version, always=""):
    """What adds a job of that code base."""
    def add(name, model, args):
        JOBS.append(Job(f"{code}-{name}", model, f"--kernels cuda-traced --modules {code} --modules-version {version} {always}{args}"))

    return add


torchtune = of_code("torchtune", "0.4")
TIED = GROUPED | {"tie_word_embeddings": True}
MOST = "--lora 8 --lora-targets q_proj,v_proj,o_proj,gate_proj,up_proj,down_proj"
torchtune("full", LLAMA, f"--precision bf16 {BOTH}")
torchtune("tied-chunked", TIED, f"--precision bf16 {BOTH} --loss chunked --optimizer-impl fused")
torchtune("tied-chunked-recompute", TIED, f"--precision bf16 {BOTH} --loss chunked --recompute full --grad-accum 2")
torchtune("grouped-fp32", GROUPED, f"--precision fp32 {SHORT} --loss full --step first")
torchtune("lora", GROUPED, f"--precision bf16 {BOTH} --loss chunked {MOST} --recompute full")
torchtune("lora-dropout", TIED, f"--precision bf16 {LONG} --loss full {MOST} --lora-dropout 0.1")
torchtune("in-backward", TIED, f"--precision bf16 {BOTH} --loss chunked --recompute full --optimizer-in-backward")
# Activations on the host; torchtune has it with checkpoints alone. Six layers: some leave before the pass turns.
DEEP = {"num_hidden_layers": 6}
AWAY = "--recompute full --offload activations"
torchtune("offload", LLAMA | DEEP, f"--precision bf16 {BOTH} {AWAY}")
torchtune("offload-tied-chunked", TIED | DEEP, f"--precision bf16 {BOTH} --loss chunked {AWAY} --grad-accum 2")
torchtune("offload-fp32-first", GROUPED | DEEP, f"--precision fp32 {SHORT} {AWAY} --step first")
torchtune("offload-in-backward", TIED | DEEP, f"--precision bf16 {BOTH} --loss chunked --optimizer-in-backward {AWAY}")
torchtune("offload-lora", GROUPED | DEEP, f"--precision bf16 {BOTH} --loss chunked {MOST} {AWAY}")
torchtune("offload-small", LLAMA, f"--precision bf16 --micro-batch 1 --seq-len 2 {AWAY}")

# torchao's NF4, whose scales are quantised, too, in blocks of 16384 weights.
EVEN = GROUPED | {"intermediate_size": 704}
torchtune("nf4", EVEN, f"--precision bf16 {BOTH} --loss chunked {MOST} --quantize-base nf4-dq")
torchtune("nf4-recompute", EVEN | DEEP, f"--precision bf16 {BOTH} --loss chunked {MOST} --quantize-base nf4-dq {AWAY}")
torchtune("nf4-some", EVEN, f"--precision fp32 {SHORT} --lora 4 --lora-targets q_proj,v_proj --quantize-base nf4-dq")

torchtitan = of_code("torchtitan", "0.2", "--loss full ")
USUAL = "--optimizer-impl fused --clip-grad 1.0"
torchtitan("amp", LLAMA, f"--precision amp-bf16 {BOTH} {USUAL}")
torchtitan("amp-grouped-recompute", GROUPED, f"--precision amp-bf16 {BOTH} {USUAL} --recompute full")
torchtitan("half", GROUPED, f"--precision bf16 {BOTH} {USUAL}")
torchtitan("half-recompute-accumulate", LLAMA, f"--precision bf16 {SHORT} {USUAL} --recompute full --grad-accum 2")
torchtitan("amp-accumulate-first", LLAMA, f"--precision amp-bf16 {SHORT} {USUAL} --grad-accum 3 --step first")
torchtitan("single", LLAMA, f"--precision fp32 {SHORT} {USUAL}")
torchtitan("single-grouped", GROUPED, f"--precision fp32 {SHORT} {USUAL} --recompute full")
torchtitan("forward", LLAMA, f"--precision amp-bf16 {LONG} --step forward --optimizer none")
torchtitan("foreach", LLAMA, f"--precision amp-bf16 {LONG} --optimizer-impl foreach")


llm_foundry = of_code("llm-foundry", "0.22")
ALIBI = {"model_type": "mpt", "d_model": 256, "n_heads": 4, "n_layers": 3, "max_seq_len": 512, "vocab_size": 1000}
LEARNED = {"model_type": "gpt2", "n_embd": 256, "n_layer": 3, "n_head": 4, "n_inner": 1024, "n_positions": 512,
           "vocab_size": 1000, "activation_function": "gelu", "attn_pdrop": 0.0, "embd_pdrop": 0.0, "resid_pdrop": 0.0}
LOOP = "--attention flash --optimizer-impl loop --clip-grad 1.0"
llm_foundry("alibi", ALIBI, f"--precision amp-bf16 {BOTH} {LOOP}")
llm_foundry("alibi-recompute", ALIBI, f"--precision amp-bf16 {SHORT} {LOOP} --recompute full")
llm_foundry("alibi-clipped", ALIBI | {"attn_config": {"clip_qkv": 6.0}}, f"--precision amp-bf16 {BOTH} {LOOP}")
llm_foundry("alibi-dropout", ALIBI | {"attn_config": {"attn_pdrop": 0.1}}, f"--precision amp-bf16 {SHORT} {LOOP}")
llm_foundry("alibi-six-heads", ALIBI | {"d_model": 384, "n_heads": 6}, f"--precision amp-bf16 {BOTH} {LOOP} --step first")
llm_foundry("alibi-untied", ALIBI | {"tie_word_embeddings": False}, f"--precision amp-bf16 {LONG} {LOOP}")
llm_foundry("learned", LEARNED, f"--precision amp-bf16 {BOTH} {LOOP}")
llm_foundry("learned-first", LEARNED, f"--precision amp-bf16 {SHORT} {LOOP} --step first")
llm_foundry("learned-recompute-accumulate", LEARNED, f"--precision amp-bf16 {BOTH} {LOOP} --recompute full --grad-accum 2")
llm_foundry("learned-accumulate", LEARNED, f"--precision amp-bf16 {SHORT} {LOOP} --grad-accum 3")
llm_foundry("learned-dropout", LEARNED | {"resid_pdrop": 0.1, "embd_pdrop": 0.1}, f"--precision amp-bf16 {BOTH} {LOOP}")
llm_foundry("learned-forward", LEARNED, f"--precision amp-bf16 {LONG} --attention flash --step forward --optimizer none")
llm_foundry("learned-lion", LEARNED, f"--precision amp-bf16 {BOTH} {LOOP} --optimizer lion")
llm_foundry("learned-lion-first", LEARNED, f"--precision amp-bf16 {SHORT} {LOOP} --optimizer lion --step first")

# Compiled: tokens outweigh the weights, as in a step that is worth compiling.
MANY = "--micro-batch 2 --seq-len 512 --precision bf16 --compile"
torchtune("compiled", LLAMA, f"{MANY} --loss full")
torchtune("compiled-grouped", GROUPED, f"{MANY} --loss full --step first")
torchtune("compiled-chunked", TIED, f"{MANY} --loss chunked --optimizer-impl fused")
torchtune("compiled-recompute", TIED, f"{MANY} --loss chunked --recompute full --grad-accum 2")
torchtune("compiled-fp32", GROUPED, f"{MANY.replace('bf16', 'fp32')} --loss full")
torchtune("compiled-in-backward", TIED, f"{MANY} --loss chunked --recompute full --optimizer-in-backward")
torchtune("compiled-lora", GROUPED, f"{MANY} --loss chunked {MOST}")
torchtune("compiled-lora-full", GROUPED, f"{MANY} --loss full {MOST}")
torchtune("compiled-lora-recompute", GROUPED, f"{MANY} --loss chunked {MOST} --recompute full")
torchtune("compiled-lora-dropout", GROUPED, f"{MANY} --loss chunked {MOST} --lora-dropout 0.1")
torchtune("compiled-biased", GROUPED | {"model_type": "qwen2"}, f"{MANY} --loss chunked --recompute full")
torchtune("compiled-offload", TIED | DEEP, f"{MANY} --loss chunked --optimizer-in-backward {AWAY}")
torchtune("compiled-offload-lora", GROUPED | DEEP, f"{MANY} --loss chunked {MOST} {AWAY}")
torchtune("compiled-nf4", EVEN, f"{MANY} --loss chunked {MOST} --recompute full --quantize-base nf4-dq")
torchtune("compiled-short", GROUPED, f"--compile --precision bf16 {SHORT} --loss full")
# The shapes of a published measurement, with two of its layers.
LARGE = {"model_type": "llama", "hidden_size": 3072, "intermediate_size": 8192, "num_attention_heads": 24,
         "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072, "tie_word_embeddings": True,
         "num_hidden_layers": 2}
PACKED = "--micro-batch 2 --seq-len 4096 --precision bf16 --optimizer-impl fused --compile --loss chunked"
torchtune("compiled-large", LARGE, PACKED)
torchtune("compiled-large-recompute", LARGE, f"{PACKED} --recompute full")
torchtune("compiled-large-lora", LARGE, f"{PACKED} --recompute full {MOST.replace('8', '64', 1)}")
