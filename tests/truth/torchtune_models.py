"""torchtune's decoder and losses on fake tensors, as its single-device recipes of version 0.4 run them.

The source folder of its main branch at 1814feb17 stands in TORCHTUNE_SOURCE. What its modules import for other purposes
is replaced by empty modules. With --quantize-base, torchao/dtypes/nf4tensor.py of torchao 0.7 stands in TORCHAO_SOURCE.
"""
import contextlib
import importlib
import os
import sys
import types

import torch
from torch import nn


class Anything(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def load(quantised=False):
    source = os.path.join(os.environ["TORCHTUNE_SOURCE"], "torchtune")
    for name in [name for name in sys.modules if name.split(".")[0] in ("torchtune", "torchao")]:
        del sys.modules[name]  # of a job with other stand-ins
    for name, folder in {"torchtune": "", "torchtune.modules": "modules", "torchtune.modules.peft": "modules/peft",
                         "torchtune.modules.loss": "modules/loss", "torchtune.models": "models",
                         "torchtune.models.llama3_1": "models/llama3_1"}.items():
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(source, folder)]
        sys.modules[name] = package
    if quantised:
        nf4 = load_nf4()
    for name in (*(() if quantised else ("torchao", "torchao.dtypes", "torchao.dtypes.nf4tensor")), "torchtune.utils",
                 "torchtune.utils._import_guard", "torchtune.utils._logging", "torchtune.modules.low_precision",
                 "torchtune.modules.peft._utils", "torchtune.modules.kv_cache"):
        sys.modules[name] = Anything(name)
    sys.modules["torchtune.utils._import_guard"]._SUPPORTS_FLEX_ATTENTION = False
    sys.modules["torchtune.utils._logging"].get_logger = lambda *_: None
    sys.modules["torchtune.utils._logging"].log_once = lambda *_, **__: None
    sys.modules["torchtune.utils._logging"].deprecated = lambda *_, **__: lambda f: f
    sys.modules["torchtune.modules.peft"].AdapterModule = type("AdapterModule", (), {})
    part = lambda name: importlib.import_module(f"torchtune.{name}")
    modules = sys.modules["torchtune.modules"]
    attention = part("modules.attention")
    modules.MultiHeadAttention = attention.MultiHeadAttention
    return types.SimpleNamespace(nf4=nf4 if quantised else None, attention=attention, rms=part("modules.rms_norm"), mlp=part("modules.feed_forward"),
                                 transformer=part("modules.transformer"), tied=part("modules.tied_linear"),
                                 lora=part("modules.peft.lora"), rope=part("models.llama3_1._position_embeddings"),
                                 loss=part("modules.loss.ce_chunked_output_loss"))


def load_nf4():
    """torchao's NF4Tensor and torchtune's frozen linear around it, before load()."""
    source = os.path.join(os.environ["TORCHAO_SOURCE"], "torchao")
    for name, folder in {"torchao": "", "torchao.dtypes": "dtypes"}.items():
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [os.path.join(source, folder)]
    sys.modules["torchao.utils"] = types.ModuleType("torchao.utils")
    sys.modules["torchao.utils"].TORCH_VERSION_AT_LEAST_2_5 = True
    return importlib.import_module("torchao.dtypes.nf4tensor")


def inner_tensors(model):
    """What stands behind the quantised weights."""
    return [getattr(p, name) for p in model.parameters() if hasattr(p, "quantized_data")
            for name in ("quantized_data", "scaler_mean", "quantization_factor", "quantized_scalers", "nf4")]


OURS = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "output_proj", "gate_proj": "w1",
        "down_proj": "w2", "up_proj": "w3"}


class FakeRotations:
    """Scaled frequencies are made of numbers, which a fake tensor has not."""

    def __init__(self, rope):
        self.rope = rope

    def __enter__(self):
        self.scaling = self.rope.Llama3ScaledRoPE.apply_scaling
        self.rope.Llama3ScaledRoPE.apply_scaling = lambda _, freqs, *__: freqs

    def __exit__(self, *_):
        self.rope.Llama3ScaledRoPE.apply_scaling = self.scaling


def frozen_nf4(t, rows, columns):
    """FrozenNF4Linear, whose constructor swaps tensors behind Python's back: fake ones do not let it."""
    made = nn.Linear(rows, columns, bias=False)
    made.weight = nn.Parameter(t.nf4.to_nf4(made.weight), requires_grad=False)
    made.forward = lambda x: t.nf4.linear_nf4(input=x, weight=made.weight)
    return made


def layer_of(t, c, o, rope):
    hidden, heads = c["hidden_size"], c["num_attention_heads"]
    keys = c.get("num_key_value_heads", heads)
    head = hidden // heads
    adapted = {OURS[name] for name in o.lora_targets.split(",") if o.lora and name}
    bias = c["model_type"] == "qwen2"

    def linear(name, rows, columns, bias=False):
        quantised = bool(o.quantize_base)
        if name in adapted:
            return t.lora.LoRALinear(rows, columns, rank=o.lora, alpha=16, dropout=o.lora_dropout, use_bias=bias,
                                     quantize_base=quantised)
        return frozen_nf4(t, rows, columns) if quantised else nn.Linear(rows, columns, bias=bias)

    attention = t.attention.MultiHeadAttention(
        embed_dim=hidden, num_heads=heads, num_kv_heads=keys, head_dim=head, pos_embeddings=rope,
        q_proj=linear("q_proj", hidden, heads * head, bias), k_proj=linear("k_proj", hidden, keys * head, bias),
        v_proj=linear("v_proj", hidden, keys * head, bias), output_proj=linear("output_proj", heads * head, hidden),
        max_seq_len=c["max_position_embeddings"])
    ffn = c["intermediate_size"]
    mlp = t.mlp.FeedForward(gate_proj=linear("w1", hidden, ffn), down_proj=linear("w2", ffn, hidden),
                            up_proj=linear("w3", hidden, ffn))
    return t.transformer.TransformerSelfAttentionLayer(attn=attention, mlp=mlp, sa_norm=t.rms.RMSNorm(hidden),
                                                       mlp_norm=t.rms.RMSNorm(hidden))


def torchtune_model(t, c, o, dtype):
    ordinary = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"), FakeRotations(t.rope):
            hidden, vocab = c["hidden_size"], c["vocab_size"]
            rope = t.rope.Llama3ScaledRoPE(dim=hidden // c["num_attention_heads"],
                                           max_seq_len=c["max_position_embeddings"])
            layers = nn.ModuleList(layer_of(t, c, o, rope) for _ in range(c["num_hidden_layers"]))
            tokens = nn.Embedding(vocab, hidden)
            tied = c.get("tie_word_embeddings", False)
            output = t.tied.TiedLinear(tokens) if tied else nn.Linear(hidden, vocab, bias=False)
            model = t.transformer.TransformerDecoder(
                tok_embeddings=tokens, layers=layers, max_seq_len=c["max_position_embeddings"],
                num_heads=c["num_attention_heads"], head_dim=hidden // c["num_attention_heads"],
                norm=t.rms.RMSNorm(hidden), output=output)
    finally:
        torch.set_default_dtype(ordinary)
    if o.lora:
        for name, parameter in model.named_parameters():
            parameter.requires_grad_("lora_" in name)
    if o.compile:  # each layer; checkpoints are laid around what was compiled
        from compiled_models import compile_module
        for i, layer in enumerate(model.layers):
            model.layers[i] = compile_module(layer)
            model.layers[i].caches_are_enabled = layer.caches_are_enabled
    if o.recompute == "full":
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy
        policy = ModuleWrapPolicy({type(layer) for layer in model.layers})
        apply_activation_checkpointing(model, auto_wrap_policy=policy)
    return model


class NoStream:
    """Streams and events order what runs on a card; nothing runs here."""

    def __getattr__(self, name):
        return lambda *_: self


def offloading(model):
    """get_act_offloading_ctx_manager, without streams, pinned memory and the processor's state."""
    sys.modules["psutil"] = Anything("psutil")
    sys.modules["torchao"].__version__ = "0.7"
    if not hasattr(sys.modules["torchao.dtypes.nf4tensor"], "to_nf4"):
        sys.modules["torchao.dtypes.nf4tensor"].NF4Tensor = type("NF4Tensor", (), {})
    sys.modules["torchtune.modules"].TiedLinear = sys.modules["torchtune.modules.tied_linear"].TiedLinear
    sys.modules["torchtune.utils"].get_logger = lambda *_: None
    folder = types.ModuleType("torchtune.training")
    folder.__path__ = [os.path.join(os.environ["TORCHTUNE_SOURCE"], "torchtune/training")]
    sys.modules["torchtune.training"] = folder
    torch.cuda.default_stream = torch.cuda.Stream = NoStream
    torch.cuda.stream = lambda _: contextlib.nullcontext()
    torch.Tensor.record_stream = lambda *_: None
    found = importlib.import_module("torchtune.training._activation_offloading")
    made = found.get_act_offloading_ctx_manager(model, True)
    made.use_pin_memory = False
    return made


class Recipe:
    """The parts of train() and _loss_step() of full_finetune_single_device.py and its LoRA sister."""

    def __init__(self, c, o, dtype):
        t = load(bool(o.quantize_base))
        self.model = torchtune_model(t, c, o, dtype)
        self.loss_of = t.loss.CEWithChunkedOutputLoss() if o.loss == "chunked" else nn.CrossEntropyLoss()
        if o.loss == "chunked":
            self.model.set_num_output_chunks(self.loss_of.num_output_chunks)
        if o.compile:
            from compiled_models import compile_function
            if o.loss == "chunked":
                self.loss_of.compute_cross_entropy = compile_function(self.loss_of.compute_cross_entropy)
            elif o.lora:  # full_finetune_single_device.py drops what compile_loss returns
                loss = self.loss_of
                self.loss_of = compile_function(lambda logits, labels: loss(logits, labels))
        self.ignored = torch.full((o.micro_batch, 1), -100, device="cuda")
        self.activations = offloading(self.model) if o.offload else contextlib.nullcontext()

    def offloaded(self):
        tracker = getattr(self.activations, "tracker", {})
        return sum(t.numel() * t.element_size() for t, moved in tracker.values() if moved)

    def loss_step(self, batch):
        labels = batch.pop("labels")
        with self.activations:
            logits = self.model(**batch)
        labels = torch.hstack((labels[..., 1:], self.ignored[: labels.shape[0]]))
        if not isinstance(logits, list):
            labels = labels.reshape(-1)
            logits = logits.reshape(-1, logits.size(-1))
        loss = self.loss_of(logits, labels)
        del logits
        return loss
