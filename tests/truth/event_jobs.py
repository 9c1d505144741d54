"""The jobs whose allocations are recorded: a small model of two layers and options of `ullage train`.

Those of Llama, Mistral, GPT-2 and torchvision stand here; each other family has its own in a family_*.py beside this.
"""
import glob
import importlib
import os

from jobs import Job, standard

LLAMA = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
         "tie_word_embeddings": False}
MISTRAL = {"model_type": "mistral", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
           "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "max_position_embeddings": 2048,
           "sliding_window": None, "tie_word_embeddings": False}
GPT2 = {"model_type": "gpt2", "n_embd": 256, "n_layer": 2, "n_head": 4, "n_positions": 1024, "vocab_size": 1000}

NORMAL = "--micro-batch 2 --seq-len 64"
ODD = "--micro-batch 3 --seq-len 33"
ONE = "--micro-batch 1 --seq-len 33"
FULL = "--recompute full"
REENTRANT = "--recompute full --recompute-reentrant"


ROPE = {
    "default": {"rope_type": "default"},
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 2.0},
    "llama3": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
               "original_max_position_embeddings": 512},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 512},
    "longrope": {"rope_type": "longrope", "factor": 32.0, "original_max_position_embeddings": 64,
                 "short_factor": [1.0] * 32, "long_factor": [2.0] * 32},
}


JOBS, CPU_JOBS = [], []


def add(base, name, args, kernels="cuda-traced", **changes):
    family = base["model_type"]
    jobs = CPU_JOBS if kernels == "cpu" else JOBS
    jobs.append(Job(f"{family}-{name}", {**base, **changes}, f"--kernels {kernels} {args}"))


def llama(name, args, **changes):
    add(LLAMA, name, args, **changes)


def mistral(name, args, **changes):
    add(MISTRAL, name, args, **changes)


def gpt2(name, args, **changes):
    add(GPT2, name, args, **changes)


# Llama: precision, attention and recompute, on even and odd shapes
llama("bf16-sdpa", f"{NORMAL} --precision bf16")
llama("fp32-eager", f"{NORMAL} --precision fp32 --attention eager")
llama("bf16-full", f"{NORMAL} --precision bf16 {FULL}")
llama("bf16-reentrant", f"{NORMAL} --precision bf16 {REENTRANT}")
llama("bf16-eager", f"{ODD} --precision bf16 --attention eager", vocab_size=1001)
llama("fp32-sdpa", f"{ODD} --precision fp32", vocab_size=1001)
llama("fp16-sdpa", f"{NORMAL} --precision fp16")
llama("fp16-eager", f"{ONE} --precision fp16 --attention eager")
llama("bf16-odd", f"{ODD} --precision bf16", vocab_size=1001)
llama("bf16-one-sequence", f"{ONE} --precision bf16", vocab_size=1001)
llama("bf16-one-token", "--micro-batch 1 --seq-len 1 --precision bf16")
llama("fp32-one-token-eager", "--micro-batch 2 --seq-len 1 --precision fp32 --attention eager")
llama("fp32-full", f"{ONE} --precision fp32 {FULL}", vocab_size=1001)
llama("fp32-full-eager", f"{NORMAL} --precision fp32 --attention eager {FULL}")
llama("fp32-reentrant", f"{ODD} --precision fp32 {REENTRANT}")
llama("bf16-full-eager", f"{ODD} --precision bf16 --attention eager {FULL}", vocab_size=1001)
llama("bf16-reentrant-eager", f"{ONE} --precision bf16 --attention eager {REENTRANT}")
llama("fp16-full", f"{ODD} --precision fp16 {FULL}")
llama("one-layer", f"{NORMAL} --precision bf16", num_hidden_layers=1)
llama("three-layers-full", f"{NORMAL} --precision bf16 {FULL}", num_hidden_layers=3)
llama("three-layers-fp32", f"{ONE} --precision fp32", num_hidden_layers=3)

# Llama: optimizer, clipping, accumulation, which step
for impl in ("fused", "loop"):
    llama(f"adamw-{impl}", f"{NORMAL} --precision bf16 --optimizer adamw --optimizer-impl {impl}")
    llama(f"adamw-{impl}-fp32-full", f"{ODD} --precision fp32 --optimizer adamw --optimizer-impl {impl} {FULL}")
    llama(f"adamw-{impl}-first", f"{ONE} --precision bf16 --optimizer-impl {impl} --step first")
llama("adamw-first", f"{NORMAL} --precision bf16 --step first")
llama("adamw-first-fp32-eager", f"{ODD} --precision fp32 --attention eager --step first")
for impl in ("foreach", "fused", "loop"):
    llama(f"sgd-{impl}", f"{NORMAL} --precision bf16 --optimizer sgd --optimizer-impl {impl}")
    llama(f"sgd-momentum-{impl}", f"{NORMAL} --precision bf16 --optimizer sgd-momentum --optimizer-impl {impl}")
    llama(f"sgd-momentum-{impl}-first", f"{ODD} --precision fp32 --optimizer sgd-momentum --optimizer-impl {impl} --step first")
llama("sgd-fp32-first", f"{ODD} --precision fp32 --optimizer sgd --step first")
llama("no-optimizer", f"{NORMAL} --precision bf16 --optimizer none")
llama("no-optimizer-fp32-full", f"{ODD} --precision fp32 --optimizer none {FULL}")
llama("no-optimizer-first", f"{NORMAL} --precision bf16 --optimizer none --step first")
llama("no-optimizer-tied-accumulate", f"{NORMAL} --precision bf16 --optimizer none --grad-accum 2", tie_word_embeddings=True)
llama("clip", f"{NORMAL} --precision bf16 --clip-grad 1.0")
llama("clip-sgd-fp32", f"{ODD} --precision fp32 --optimizer sgd --clip-grad 1.0")
llama("clip-no-optimizer", f"{ONE} --precision fp16 --optimizer none --clip-grad 0.5")
llama("clip-fused-accumulate", f"{NORMAL} --precision bf16 --optimizer-impl fused --clip-grad 1.0 --grad-accum 2")
llama("accumulate-2", f"{NORMAL} --precision bf16 --grad-accum 2")
llama("accumulate-4-full", f"{ODD} --precision bf16 --grad-accum 4 {FULL}")
llama("accumulate-2-reentrant", f"{NORMAL} --precision bf16 --grad-accum 2 {REENTRANT}")
llama("accumulate-2-fp32-first", f"{ONE} --precision fp32 --grad-accum 2 --step first --optimizer sgd")
llama("accumulate-2-tied", f"{NORMAL} --precision bf16 --grad-accum 2", tie_word_embeddings=True)
llama("loss-none", f"{NORMAL} --precision bf16 --loss none")
llama("loss-none-fp32-full", f"{ODD} --precision fp32 --loss none {FULL}")
llama("loss-none-no-optimizer", f"{ONE} --precision bf16 --loss none --optimizer none")
llama("forward", f"{NORMAL} --precision bf16 --step forward --optimizer none")
llama("forward-fp32-eager", f"{ODD} --precision fp32 --attention eager --step forward --optimizer none")
llama("forward-full", f"{NORMAL} --precision bf16 --step forward --optimizer none {FULL}")

# Llama: the configuration's options
llama("tied", f"{NORMAL} --precision bf16", tie_word_embeddings=True)
llama("tied-fp32-full", f"{ODD} --precision fp32 {FULL}", tie_word_embeddings=True, vocab_size=1001)
llama("attention-bias", f"{NORMAL} --precision bf16", attention_bias=True)
llama("attention-bias-fp32-eager-full", f"{ODD} --precision fp32 --attention eager {FULL}", attention_bias=True)
llama("mlp-bias", f"{NORMAL} --precision bf16", mlp_bias=True)
llama("both-biases-full", f"{ODD} --precision bf16 {FULL}", mlp_bias=True, attention_bias=True)
llama("both-biases-reentrant-fp32", f"{ONE} --precision fp32 {REENTRANT}", mlp_bias=True, attention_bias=True)
llama("all-heads", f"{NORMAL} --precision bf16", num_key_value_heads=4)
llama("all-heads-fp32-eager", f"{ODD} --precision fp32 --attention eager", num_key_value_heads=4)
llama("all-heads-fp32-sdpa", f"{NORMAL} --precision fp32", num_key_value_heads=4)
llama("all-heads-eager-full", f"{NORMAL} --precision bf16 --attention eager {FULL}", num_key_value_heads=4)
llama("one-kv-head", f"{NORMAL} --precision bf16", num_key_value_heads=1)
llama("one-kv-head-eager", f"{ODD} --precision bf16 --attention eager", num_key_value_heads=1)
llama("head-dim-32", f"{NORMAL} --precision bf16", head_dim=32)
llama("head-dim-128-eager-fp32", f"{ODD} --precision fp32 --attention eager", head_dim=128)
llama("head-dim-80-full", f"{ODD} --precision bf16 {FULL}", head_dim=80)
for act in ("gelu", "relu", "gelu_pytorch_tanh", "gelu_new"):
    llama(f"act-{act.replace('_', '-')}", f"{NORMAL} --precision bf16", hidden_act=act)
llama("act-gelu-fp32-full", f"{ODD} --precision fp32 {FULL}", hidden_act="gelu")
llama("act-relu-fp32-full", f"{ODD} --precision fp32 {FULL}", hidden_act="relu")
llama("attention-dropout", f"{NORMAL} --precision bf16", attention_dropout=0.1)
llama("attention-dropout-eager", f"{ODD} --precision bf16 --attention eager", attention_dropout=0.1)
llama("attention-dropout-fp32", f"{NORMAL} --precision fp32", attention_dropout=0.1)
llama("attention-dropout-eager-full", f"{NORMAL} --precision fp32 --attention eager {FULL}", attention_dropout=0.1)
llama("attention-dropout-full", f"{ODD} --precision bf16 {FULL}", attention_dropout=0.1)
llama("pretraining-tp", f"{NORMAL} --precision bf16", pretraining_tp=2)
for kind, scaling in ROPE.items():
    llama(f"rope-{kind}", f"{NORMAL} --precision bf16", rope_scaling=scaling)
llama("rope-linear-fp32-full", f"{ODD} --precision fp32 {FULL}", rope_scaling=ROPE["linear"])
llama("rope-llama3-fp32-eager", f"{ODD} --precision fp32 --attention eager", rope_scaling=ROPE["llama3"])
llama("rope-yarn-reentrant", f"{ODD} --precision bf16 {REENTRANT}", rope_scaling=ROPE["yarn"])
llama("rope-yarn-mscale", f"{NORMAL} --precision bf16",
      rope_scaling={**ROPE["yarn"], "attention_factor": 1.2})
llama("hidden-96", f"{ODD} --precision bf16", hidden_size=96, num_attention_heads=3, num_key_value_heads=3, intermediate_size=250,
      vocab_size=333)

# Mistral: the window set, unset, above and below the sequence
mistral("bf16-sdpa", f"{NORMAL} --precision bf16")
mistral("fp32-eager", f"{ODD} --precision fp32 --attention eager", vocab_size=1001)
mistral("bf16-full", f"{ODD} --precision bf16 {FULL}")
mistral("bf16-reentrant", f"{NORMAL} --precision bf16 {REENTRANT}")
mistral("window-above", f"{NORMAL} --precision bf16", sliding_window=128)
mistral("window-above-eager", f"{NORMAL} --precision bf16 --attention eager", sliding_window=128)
mistral("window-equal", f"{NORMAL} --precision bf16", sliding_window=64)
mistral("window-below", f"{NORMAL} --precision bf16", sliding_window=32)
mistral("window-below-fp32", f"{ODD} --precision fp32", sliding_window=16)
mistral("window-below-eager", f"{ODD} --precision bf16 --attention eager", sliding_window=16)
mistral("window-below-full", f"{NORMAL} --precision bf16 {FULL}", sliding_window=32)
mistral("window-below-reentrant-fp32", f"{ONE} --precision fp32 {REENTRANT}", sliding_window=16)
mistral("head-dim-32", f"{NORMAL} --precision bf16", head_dim=32)
mistral("tied-accumulate", f"{NORMAL} --precision bf16 --grad-accum 2", tie_word_embeddings=True)
mistral("all-heads-dropout", f"{NORMAL} --precision fp32 --attention eager", num_key_value_heads=4, attention_dropout=0.1)
mistral("sgd-momentum-clip", f"{ODD} --precision fp16 --optimizer sgd-momentum --clip-grad 1.0")
mistral("loss-none", f"{ODD} --precision fp32 --loss none")

# GPT-2
STILL = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
gpt2("bf16-sdpa", f"{NORMAL} --precision bf16")
gpt2("fp32-eager", f"{NORMAL} --precision fp32 --attention eager")
gpt2("fp32-sdpa", f"{ODD} --precision fp32", vocab_size=1001)
gpt2("bf16-eager", f"{ODD} --precision bf16 --attention eager", vocab_size=1001)
gpt2("fp16-sdpa", f"{ONE} --precision fp16")
gpt2("fp16-eager", f"{NORMAL} --precision fp16 --attention eager")
gpt2("bf16-full", f"{NORMAL} --precision bf16 {FULL}")
gpt2("bf16-reentrant", f"{NORMAL} --precision bf16 {REENTRANT}")
gpt2("fp32-full-eager", f"{ODD} --precision fp32 --attention eager {FULL}", vocab_size=1001)
gpt2("fp32-reentrant", f"{ODD} --precision fp32 {REENTRANT}")
gpt2("bf16-full-eager", f"{ONE} --precision bf16 --attention eager {FULL}")
gpt2("one-token", "--micro-batch 1 --seq-len 1 --precision bf16")
gpt2("still-bf16-sdpa", f"{NORMAL} --precision bf16", **STILL)
gpt2("still-fp32-eager", f"{ODD} --precision fp32 --attention eager", **STILL)
gpt2("still-bf16-full", f"{ODD} --precision bf16 {FULL}", **STILL)
gpt2("still-fp32-sdpa-reentrant", f"{NORMAL} --precision fp32 {REENTRANT}", **STILL)
gpt2("only-attention-dropout", f"{NORMAL} --precision bf16", resid_pdrop=0.0, embd_pdrop=0.0)
for act in ("gelu", "relu", "silu", "tanh"):
    gpt2(f"act-{act}", f"{NORMAL} --precision bf16", activation_function=act)
    gpt2(f"act-{act}-fp32-full", f"{ODD} --precision fp32 {FULL}", activation_function=act)
gpt2("act-gelu-pytorch-tanh", f"{NORMAL} --precision bf16", activation_function="gelu_pytorch_tanh")
gpt2("untied", f"{NORMAL} --precision bf16", tie_word_embeddings=False)
gpt2("untied-fp32-full", f"{ODD} --precision fp32 {FULL}", tie_word_embeddings=False)
gpt2("inner-300", f"{NORMAL} --precision bf16", n_inner=300)
gpt2("inner-2048-fp32", f"{ODD} --precision fp32 --attention eager", n_inner=2048)
gpt2("scale-by-layer", f"{NORMAL} --precision bf16", scale_attn_by_inverse_layer_idx=True)
gpt2("scale-by-layer-eager", f"{NORMAL} --precision fp32 --attention eager", scale_attn_by_inverse_layer_idx=True)
gpt2("unscaled-eager", f"{NORMAL} --precision bf16 --attention eager", scale_attn_weights=False)
gpt2("upcast-eager", f"{NORMAL} --precision bf16 --attention eager", reorder_and_upcast_attn=True)
gpt2("upcast-fp32-full-eager", f"{ODD} --precision fp32 --attention eager {FULL}", reorder_and_upcast_attn=True)
gpt2("upcast-sdpa", f"{ODD} --precision bf16", reorder_and_upcast_attn=True, scale_attn_by_inverse_layer_idx=True)
gpt2("adamw-fused", f"{NORMAL} --precision bf16 --optimizer-impl fused")
gpt2("adamw-loop-first", f"{ODD} --precision fp32 --optimizer-impl loop --step first")
gpt2("adamw-loop", f"{NORMAL} --precision bf16 --optimizer-impl loop")
gpt2("sgd", f"{NORMAL} --precision bf16 --optimizer sgd")
gpt2("sgd-momentum-fp32", f"{ODD} --precision fp32 --optimizer sgd-momentum --optimizer-impl loop")
gpt2("no-optimizer", f"{NORMAL} --precision bf16 --optimizer none")
gpt2("no-optimizer-untied-accumulate", f"{NORMAL} --precision bf16 --optimizer none --grad-accum 4", tie_word_embeddings=False)
gpt2("clip-accumulate", f"{NORMAL} --precision bf16 --clip-grad 1.0 --grad-accum 2")
gpt2("clip-loop-fp32", f"{ODD} --precision fp32 --clip-grad 1.0 --optimizer-impl loop")
gpt2("accumulate-2-reentrant", f"{ODD} --precision bf16 --grad-accum 2 {REENTRANT}")
gpt2("loss-none", f"{NORMAL} --precision bf16 --loss none")
gpt2("loss-none-fp32-full", f"{ODD} --precision fp32 --loss none {FULL}")
gpt2("forward", f"{NORMAL} --precision bf16 --step forward --optimizer none")
gpt2("forward-reentrant-eager", f"{NORMAL} --precision fp32 --attention eager --step forward --optimizer none {REENTRANT}")
gpt2("three-layers-full", f"{NORMAL} --precision bf16 {FULL}", n_layer=3)

# Autocast: fp32 weights, products in half precision
AMP, AMP16 = "--precision amp-bf16", "--precision amp-fp16"
for family in (llama, mistral, gpt2):
    family("amp-bf16", f"{NORMAL} {AMP}")
    family("amp-fp16-eager", f"{ODD} {AMP16} --attention eager")
    family("amp-bf16-full", f"{ODD} {AMP} {FULL}")
    family("amp-bf16-reentrant", f"{ONE} {AMP} {REENTRANT}")
for family in (llama, gpt2):
    family("amp-fp16", f"{ONE} {AMP16}")
    family("amp-bf16-eager", f"{NORMAL} {AMP} --attention eager")
    family("amp-fp16-full-eager", f"{NORMAL} {AMP16} --attention eager {FULL}")
    family("amp-bf16-reentrant-eager", f"{ODD} {AMP} --attention eager {REENTRANT}")
    family("amp-bf16-first", f"{NORMAL} {AMP} --step first")
    family("amp-bf16-forward", f"{NORMAL} {AMP} --step forward --optimizer none")
    family("amp-bf16-forward-full", f"{ODD} {AMP} --step forward --optimizer none {FULL}")
    family("amp-fp16-forward-reentrant", f"{ODD} {AMP16} --step forward --optimizer none {REENTRANT}")
    family("amp-bf16-accumulate-2", f"{NORMAL} {AMP} --grad-accum 2")
    family("amp-bf16-accumulate-3-full", f"{ODD} {AMP} --grad-accum 3 {FULL} --optimizer sgd-momentum")
    family("amp-bf16-clip-fused", f"{NORMAL} {AMP} --clip-grad 1.0 --optimizer-impl fused")
    family("amp-fp16-loop-reentrant", f"{NORMAL} {AMP16} --optimizer-impl loop {REENTRANT}")
    family("amp-bf16-loss-none", f"{NORMAL} {AMP} --loss none")
    family("amp-bf16-loss-none-full", f"{ODD} {AMP} --loss none {FULL} --optimizer none")
    family("amp-bf16-one-token", f"--micro-batch 1 --seq-len 1 {AMP} --optimizer sgd")
llama("amp-bf16-three-layers-full", f"{NORMAL} {AMP} {FULL}", num_hidden_layers=3)
llama("amp-bf16-tied-accumulate", f"{NORMAL} {AMP} --grad-accum 2", tie_word_embeddings=True)
llama("amp-bf16-biases", f"{NORMAL} {AMP}", mlp_bias=True, attention_bias=True)
llama("amp-bf16-biases-full", f"{ODD} {AMP} {FULL}", mlp_bias=True, attention_bias=True)
llama("amp-fp16-biases-reentrant", f"{ONE} {AMP16} {REENTRANT}", mlp_bias=True, attention_bias=True)
llama("amp-bf16-all-heads-dropout", f"{ODD} {AMP}", num_key_value_heads=4, attention_dropout=0.1)
llama("amp-bf16-dropout-eager", f"{NORMAL} {AMP} --attention eager", attention_dropout=0.1)
llama("amp-bf16-rope-dynamic", f"{NORMAL} {AMP}", rope_scaling=ROPE["dynamic"])
llama("amp-bf16-rope-longrope-full", f"{NORMAL} {AMP} {FULL}", rope_scaling=ROPE["longrope"])
for act in ("gelu", "relu", "gelu_new"):
    llama(f"amp-bf16-act-{act.replace('_', '-')}", f"{NORMAL} {AMP}", hidden_act=act)
mistral("amp-bf16-window-below", f"{NORMAL} {AMP}", sliding_window=32)
mistral("amp-fp16-window-below-eager", f"{ODD} {AMP16} --attention eager", sliding_window=16)
mistral("amp-bf16-window-below-full", f"{ODD} {AMP} {FULL}", sliding_window=16)
mistral("amp-bf16-window-below-reentrant", f"{NORMAL} {AMP} {REENTRANT}", sliding_window=32)
gpt2("amp-bf16-still", f"{NORMAL} {AMP}", **STILL)
gpt2("amp-bf16-still-full", f"{ODD} {AMP} {FULL}", **STILL)
gpt2("amp-bf16-untied", f"{NORMAL} {AMP}", tie_word_embeddings=False)
gpt2("amp-bf16-upcast-eager", f"{NORMAL} {AMP} --attention eager", reorder_and_upcast_attn=True)
gpt2("amp-fp16-upcast-full-eager", f"{ODD} {AMP16} --attention eager {FULL}", reorder_and_upcast_attn=True)
for act in ("gelu", "relu", "silu", "tanh"):
    gpt2(f"amp-bf16-act-{act}", f"{NORMAL} {AMP}", activation_function=act)

# The gradient scaler
SCALED = f"{AMP16} --grad-scaler"
for impl in ("foreach", "fused", "loop"):
    llama(f"scaler-adamw-{impl}", f"{NORMAL} {SCALED} --optimizer-impl {impl}")
    llama(f"scaler-adamw-{impl}-clip-first", f"{ODD} {SCALED} --optimizer-impl {impl} --clip-grad 1.0 --step first")
    llama(f"scaler-sgd-{impl}", f"{ONE} {SCALED} --optimizer sgd --optimizer-impl {impl}")
llama("scaler-sgd-momentum-fused-clip-full", f"{NORMAL} {SCALED} --optimizer sgd-momentum --optimizer-impl fused --clip-grad 1.0 {FULL}")
llama("scaler-accumulate-3-first", f"{NORMAL} {SCALED} --grad-accum 3 --step first")
llama("scaler-no-optimizer-clip", f"{NORMAL} {SCALED} --optimizer none --clip-grad 1.0")
llama("scaler-loss-none-reentrant", f"{ODD} {SCALED} --loss none {REENTRANT}")
gpt2("scaler-accumulate-2-clip", f"{NORMAL} {SCALED} --grad-accum 2 --clip-grad 1.0")

# torchvision's classifiers: two images, labels, cross entropy
def classic(model, args, suffix):
    JOBS.append(Job(f"{model.replace('_', '-')}-{suffix}", model, f"--kernels cuda-traced --micro-batch 2 {args}"))


for name in ("alexnet", "vgg11", "vgg16", "vgg16_bn", "resnet18", "resnet50", "densenet121", "mobilenet_v2"):
    classic(name, "--image-size 224 --precision fp32 --optimizer sgd-momentum", "fp32")
    classic(name, "--image-size 160 --precision bf16 --optimizer adamw --optimizer-impl fused", "bf16-160")
classic("alexnet", "--image-size 224 --precision fp16 --optimizer sgd --step first", "fp16-first")
classic("alexnet", "--image-size 224 --precision fp32 --optimizer none --grad-accum 2", "fp32-accumulate")
classic("resnet18", "--image-size 97 --precision fp32 --optimizer adamw --clip-grad 1.0", "fp32-97-clip")
classic("resnet18", "--image-size 224 --precision bf16 --optimizer none --step forward", "bf16-forward")
classic("resnet18", "--image-size 64 --precision bf16 --optimizer sgd-momentum --step first --grad-accum 2", "bf16-64-first")
classic("mobilenet_v2", "--image-size 224 --precision fp32 --optimizer none --step forward", "fp32-forward")
classic("vgg11_bn", "--image-size 64 --precision fp32 --optimizer adamw", "fp32-64")
for name in ("alexnet", "vgg11_bn", "resnet18", "resnet50", "densenet121", "mobilenet_v2"):
    classic(name, "--image-size 128 --precision amp-bf16 --optimizer sgd-momentum", "amp-bf16")
classic("resnet18", "--image-size 97 --precision amp-fp16 --optimizer adamw --clip-grad 1.0", "amp-fp16-97-clip")
classic("vgg11", "--image-size 64 --precision amp-fp16 --optimizer none --grad-accum 2", "amp-fp16-accumulate")
classic("resnet18", "--image-size 64 --precision amp-bf16 --optimizer adamw --step first", "amp-bf16-first")
classic("mobilenet_v2", "--image-size 64 --precision amp-bf16 --optimizer none --step forward", "amp-bf16-forward")

# The CPU's operators (attention, dropout's mask, norm statistics and mixed types are not as on CUDA)
for precision, recompute in (("bf16", ""), ("fp32", FULL), ("bf16", FULL), ("fp32", REENTRANT)):
    suffix = f"{precision}{'-reentrant' if 'reentrant' in recompute else '-full' if recompute else ''}"
    for base in (LLAMA, GPT2):
        add(base, suffix, f"{NORMAL} --precision {precision} {recompute}".strip(), kernels="cpu")
add(LLAMA, "bf16-eager", f"{ODD} --precision bf16 --attention eager", kernels="cpu", vocab_size=1001)
add(LLAMA, "attention-dropout", f"{NORMAL} --precision bf16", kernels="cpu", attention_dropout=0.1)
add(LLAMA, "adamw-fused-clip", f"{NORMAL} --precision fp32 --optimizer-impl fused --clip-grad 1.0", kernels="cpu")
add(LLAMA, "sgd-momentum-accumulate", f"{ODD} --precision bf16 --optimizer sgd-momentum --grad-accum 2", kernels="cpu")
add(GPT2, "still-fp32", f"{NORMAL} --precision fp32 --optimizer none", kernels="cpu", **STILL)
add(MISTRAL, "window-below", f"{NORMAL} --precision bf16 --optimizer sgd", kernels="cpu", sliding_window=32)
for base in (LLAMA, GPT2):
    add(base, "amp-bf16", f"{NORMAL} {AMP}", kernels="cpu")
    add(base, "amp-bf16-full", f"{ODD} {AMP} {FULL}", kernels="cpu")
    add(base, "amp-bf16-eager", f"{NORMAL} {AMP} --attention eager", kernels="cpu")
add(LLAMA, "amp-bf16-reentrant", f"{ONE} {AMP} {REENTRANT}", kernels="cpu")
add(LLAMA, "amp-bf16-biases-loss-none", f"{NORMAL} {AMP} --loss none", kernels="cpu", mlp_bias=True, attention_bias=True)

# Each family_*.py has CONFIGS (name: configuration, for the standard jobs), and may have JOBS of its own and WITHOUT
# (name: the standard jobs that the lab refuses, with the reason in a comment). Each jobs_*.py has jobs(add) for what
# is the same in every family: add(base, name, args, **changes of the configuration).
HERE = os.path.dirname(os.path.abspath(__file__))
for path in sorted(glob.glob(os.path.join(HERE, "jobs_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3]).jobs(add, LLAMA, GPT2)
for path in sorted(glob.glob(os.path.join(HERE, "family_*.py"))):
    family = importlib.import_module(os.path.basename(path)[:-3])
    for name, config in family.CONFIGS.items():
        JOBS += standard(name, config, getattr(family, "WITHOUT", {}).get(name, ()))
    JOBS += getattr(family, "JOBS", [])
