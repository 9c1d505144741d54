"""LitGPT's own models and loss on fake tensors, as its fine-tuning scripts run them under Lightning Fabric.

The source folders stand in one folder each under LITGPT_SOURCES, named by version: 2023-10 (lit_gpt of 16 October 2023),
0.4 (litgpt 0.4.5) and 0.5 (litgpt 0.5.13). Of these only model.py, lora.py, config.py and one function of utils.py are
used; what they import for other purposes is replaced by empty modules.
"""
import ast
import importlib
import os
import sys
import types

import torch

from old_quantised_models import quantised_linears

PACKAGES = {"2023-10": "lit_gpt", "0.4": "litgpt", "0.5": "litgpt"}
DROPOUT = 0.05  # of the adapters, in all of its configurations


class Anything(types.ModuleType):
    """A module that has whatever is asked for, and it is false."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: False


def function_of(path, name, environment):
    tree = ast.parse(open(path).read())
    tree.body = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == name]
    for annotated in ast.walk(tree):
        if isinstance(annotated, ast.arg):
            annotated.annotation = None
    tree.body[0].returns = None
    exec(compile(tree, path, "exec"), environment)
    return environment[name]


class Source:
    def __init__(self, version):
        self.name = PACKAGES[version]
        folder = os.path.join(os.environ["LITGPT_SOURCES"], version, self.name)
        for loaded in [name for name in sys.modules if name.split(".")[0] == self.name]:
            del sys.modules[loaded]
        package = types.ModuleType(self.name)
        package.__path__ = [folder]
        sys.modules[self.name] = package
        for other in ("lightning_utilities", "lightning_utilities.core", "lightning_utilities.core.imports"):
            sys.modules.setdefault(other, Anything(other))
        for part in ("utils", "scripts", "scripts.convert_hf_checkpoint"):
            sys.modules[f"{self.name}.{part}"] = Anything(f"{self.name}.{part}")
        utils = os.path.join(folder, "utils.py")
        sys.modules[f"{self.name}.utils"].find_multiple = lambda n, k: -(-n // k) * k
        self.loss = function_of(utils, "chunked_cross_entropy", {"torch": torch})
        for part in ("model", "config", "lora", "adapter", "adapter_v2"):
            setattr(package, part, importlib.import_module(f"{self.name}.{part}"))
        self.package = package


def litgpt_fields(c):
    """A transformers configuration, a dictionary, in the words of LitGPT's Config."""
    family, heads = c["model_type"], c["num_attention_heads"]
    head = c.get("head_dim", c["hidden_size"] // heads)
    plain = family in ("phi", "gpt_neox", "falcon")
    part = {"phi": "partial_rotary_factor", "gpt_neox": "rotary_pct"}.get(family)
    fields = dict(n_embd=c["hidden_size"], n_head=heads, n_layer=c["num_hidden_layers"],
                  n_query_groups=1 if family == "falcon" else c.get("num_key_value_heads", heads),
                  padded_vocab_size=c["vocab_size"], vocab_size=c["vocab_size"],
                  block_size=c["max_position_embeddings"], intermediate_size=c["intermediate_size"],
                  rotary_percentage=c.get(part, 1.0), bias=family in ("phi", "gpt_neox"), lm_head_bias=family == "phi",
                  parallel_residual=plain, shared_attention_norm=family in ("phi", "falcon"),
                  norm_class_name="LayerNorm" if plain else "RMSNorm", mlp_class_name="GptNeoxMLP" if plain else "LLaMAMLP")
    if family == "gemma":
        fields |= dict(name="Gemma", mlp_class_name="GemmaMLP", scale_embeddings=True, gelu_approximate="tanh", head_size=head)
    return fields


SWITCHES = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "o_proj": "projection", "dense": "projection",
            "gate_proj": "mlp", "up_proj": "mlp", "down_proj": "mlp", "fc1": "mlp", "fc2": "mlp", "lm_head": "head"}


def module_of(source, o):
    """The module whose GPT is trained."""
    if o.tuner in ("adapter", "adapter-v2"):
        module = getattr(source.package, o.tuner.replace("-", "_"))
        # The cache of the prompt's keys and values is for inference: with it no second step could run.
        source.package.adapter.CausalSelfAttention.adapter_kv_cache = property(lambda _: None, lambda *_: None)
        module.CausalSelfAttention.adapter_kv_cache = property(lambda _: None, lambda *_: None)
        return module
    return source.package.lora if o.lora else source.package.model


def litgpt_config(source, version, fields, o):
    fields = litgpt_fields(fields)
    old = version == "2023-10"
    if old:
        fields = {{"norm_class_name": "_norm_class", "mlp_class_name": "_mlp_class"}.get(k, k): v
                  for k, v in fields.items()}
    if not o.lora:
        return module_of(source, o).Config(**fields)
    prefix = ("", "to_") if old else ("lora_", "lora_")
    fields |= {f"{prefix[0]}r": o.lora, f"{prefix[0]}alpha": 16, f"{prefix[0]}dropout": o.lora_dropout}
    fields |= {f"{prefix[1]}{SWITCHES.get(name, name)}": True for name in o.lora_targets.split(",") if name}
    return source.package.lora.Config(**fields)


def litgpt_model(version, fields, o, dtype):
    old = version == "2023-10"
    torch.mean, torch.Tensor.mean = (old_mean, old_mean) if old else (MEAN, TENSOR_MEAN)
    source = Source(version)
    ordinary = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"), quantised_linears(o.quantize_base, dtype, keeps_input=version != "0.5"):
            config = litgpt_config(source, version, fields, o)
            model = module_of(source, o).GPT(config)
    finally:
        torch.set_default_dtype(ordinary)
    if o.lora:
        source.package.lora.mark_only_lora_as_trainable(model)
    if o.tuner in ("adapter", "adapter-v2"):
        keep = module_of(source, o).adapter_filter
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(bool(keep(name, parameter)))
    model.max_seq_length = o.seq_len
    for module in model.modules():  # the scripts validate before they train, which makes these
        if not all(getattr(module, "enable_lora", [True])):
            getattr(module, "lora_ind", None)
    if o.recompute == "full":  # as Fabric's activation_checkpointing_policy does
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        blocks = model.transformer.h
        for i, block in enumerate(blocks):
            blocks[i] = checkpoint_wrapper(block)
    return model, source.loss


def litgpt_inputs(fields, o):
    shape = (o.micro_batch, o.seq_len)
    return {name: torch.randint(0, fields["vocab_size"], shape, device="cuda") for name in ("input_ids", "targets")}


class KeepingMean(torch.autograd.Function):
    """The mean as PyTorch 2.1, the one of 2023-10, took it: its input is kept (pytorch/pytorch#109876)."""

    @staticmethod
    def forward(ctx, x, dim, keepdim):
        ctx.save_for_backward(x)
        ctx.shape, ctx.dim, ctx.keepdim = x.shape, dim, keepdim
        return MEAN(x) if dim is None else MEAN(x, dim=dim, keepdim=keepdim)

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        if ctx.dim is not None and not ctx.keepdim:
            gradient = gradient.unsqueeze(ctx.dim)
        return gradient.expand(ctx.shape) / (x.numel() if ctx.dim is None else x.shape[ctx.dim]), None, None


MEAN, TENSOR_MEAN = torch.mean, torch.Tensor.mean


def old_mean(x, dim=None, keepdim=False):
    return KeepingMean.apply(x, dim, keepdim)


class Loop:
    """The body of fit(): what it binds stays bound until the next batch."""

    def __init__(self, model, loss, o, autocast):
        self.model, self.loss_of, self.o, self.autocast = model, loss, o, autocast
        self.longest_first = o.modules_version == "2023-10"

    def forward(self, inputs):
        o = self.o
        head = {"lm_head_chunk_size": 128} if (o.lora or o.tuner) and o.loss == "chunked" else {}
        with torch.autocast("cuda", dtype=self.autocast, enabled=self.autocast is not None):
            output = self.model(inputs["input_ids"], **head)
        # Fabric's convert_output
        output = [chunk.to(torch.float32) for chunk in output] if head else output.to(torch.float32)
        return output

    def loss_of_logits(self, logits, targets):
        if isinstance(logits, list):
            logits[-1] = logits[-1][..., :-1, :]
            return self.loss_of(logits, targets[..., 1:])
        return self.loss_of(logits[..., :-1, :], targets[..., 1:], chunk_size=128 if self.o.loss == "chunked" else 0)
