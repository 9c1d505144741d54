"""llm-foundry's MPT, its loss and metrics, and Composer's training loop, on fake tensors and one device.

The source folders of llm-foundry (0.22, 8c8dd48f7), Composer (0.33, 640518880), flash-attention (2.8, 0251105a) and
einops (ccb89f2) stand in LLM_FOUNDRY_SOURCES. Real are MPT's classes, the language metrics, what HuggingFaceModel does
with them, DecoupledAdamW and DecoupledLionW, einops, flash-attn's bert_padding.py, its autograd functions and its own fake
kernels (flash_attn_interface.py), and its cross entropy's autograd function. Replaced: the registries by dictionaries,
torchmetrics' base class by one that keeps states and resets them, Triton's kernels by nothing, and all that belongs to
several devices, experts and logging.
"""
import ast
import contextlib
import importlib
import os
import sys

import torch

from torchtune_models import Anything

VERSION = "2.8.3"


class Registry(dict):
    def register(self, name, func):
        self[name] = func

    def register_class(self, name):
        return lambda made: self.setdefault(name, made)

    def get_all(self):
        return list(self)


class Metric(torch.nn.Module):
    """torchmetrics' states: reset() makes them anew from defaults on the host, where they are until they are moved."""

    def __init__(self, dist_sync_on_step=False):
        super().__init__()
        self.defaults, self.device = {}, torch.device("cpu")

    def add_state(self, name, default, dist_reduce_fx):
        self.defaults[name] = default
        setattr(self, name, default.detach().clone())

    def reset(self):
        for name, default in self.defaults.items():
            setattr(self, name, default.detach().clone().to(self.device))

    def move(self):
        self.device = torch.device("cuda")
        for name in self.defaults:
            setattr(self, name, getattr(self, name).to(self.device))


class Kernel:
    def __getitem__(self, grid):
        return lambda *_, **__: None


def package(name, folder=None, **members):
    module = Anything(name)
    module.__path__ = [folder] if folder else []
    module.__dict__.update(members)
    sys.modules[name] = module
    return module


def load_flash_attn(source):
    folder = os.path.join(source, "flash_attn")
    package("flash_attn", folder, __version__=VERSION)
    package("flash_attn.losses", os.path.join(folder, "losses"))
    package("flash_attn.ops", os.path.join(folder, "ops"))
    package("flash_attn.ops.triton", os.path.join(folder, "ops", "triton"))
    package("flash_attn.layers")
    package("flash_attn.layers.rotary", RotaryEmbedding=object)
    package("flash_attn_2_cuda")
    kernel = lambda *_, **__: lambda function: Kernel()
    package("triton.language", constexpr=int)
    package("triton", jit=lambda function: Kernel(), heuristics=kernel, cdiv=lambda a, b: -(-a // b),
            next_power_of_2=lambda n: 1 << (n - 1).bit_length(), language=sys.modules["triton.language"])
    torch.Tensor.data_ptr = lambda self: 0
    torch.cuda.device = lambda index: contextlib.nullcontext()
    for name in ("flash_attn_interface", "bert_padding", "losses.cross_entropy"):
        importlib.import_module(f"flash_attn.{name}")
    sys.modules["flash_attn"].__dict__.update(
        {name: sys.modules[f"flash_attn.{name}"] for name in ("flash_attn_interface", "bert_padding")})


def methods_of(path, owner, names):
    """Methods of a class, as functions, from its source."""
    tree = ast.parse(open(path).read())
    found = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == owner)
    tree.body = [n for n in found.body if isinstance(n, ast.FunctionDef) and n.name in names]
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef):
            node.returns = None
    made = {}
    exec(compile(tree, path, "exec"), made)
    return {name: made[name] for name in names}


def load_composer(source):
    package("torchmetrics", Metric=Metric)
    folder = os.path.join(source, "composer")
    package("composer", folder)
    package("composer.utils", dist=Anything("dist"))
    package("composer.optim", os.path.join(folder, "optim"))
    package("composer.metrics", os.path.join(folder, "metrics"))
    methods = methods_of(os.path.join(folder, "models", "huggingface.py"), "HuggingFaceModel",
                         ("eval_forward", "update_metric"))

    def keep(self, model, shift_labels, metrics, use_logits, **_):
        torch.nn.Module.__init__(self)
        self.model, self.shift_labels, self.use_logits = model, shift_labels, use_logits
        self.config, self.train_metrics = model.config, {name: metric for name, metric in enumerate(metrics)}

    package("composer.models", HuggingFaceModel=type("HuggingFaceModel", (torch.nn.Module,), {"__init__": keep, **methods}))
    sys.modules["torch.optim.optimizer"].required = object()  # no longer there
    return importlib.import_module("composer.metrics.nlp")


def load():
    sources = os.environ["LLM_FOUNDRY_SOURCES"]
    if sources not in sys.path:
        sys.path.append(sources)
    if "llmfoundry" in sys.modules:
        return sys.modules["llmfoundry.models.mpt.modeling_mpt"]
    package("tabulate", tabulate=lambda *_, **__: "")
    load_flash_attn(sources)
    nlp = load_composer(sources)
    folder = os.path.join(sources, "llmfoundry")
    for name in ("", ".models", ".models.layers", ".models.utils", ".models.mpt", ".optim", ".metrics"):
        package(f"llmfoundry{name}", os.path.join(folder, *name.split(".")))
    names = ("norms", "fcs", "ffns", "ffns_with_norm", "ffns_with_megablocks", "attention_classes",
             "attention_implementations", "param_init_fns", "module_init_fns")
    package("llmfoundry.layers_registry", **{name: Registry() for name in names})
    construct = lambda name, registry, kwargs, **_: registry[name](**kwargs)
    package("llmfoundry.utils")
    package("llmfoundry.utils.registry_utils", construct_from_registry=construct)
    package("llmfoundry.utils.warnings")
    accuracy = importlib.import_module("llmfoundry.metrics.token_acc").TokenAccuracy
    known = {"language_cross_entropy": nlp.LanguageCrossEntropy, "language_perplexity": nlp.LanguagePerplexity,
             "token_accuracy": accuracy}
    sys.modules["llmfoundry.metrics"].__dict__.update(DEFAULT_CAUSAL_LM_TRAIN_METRICS=list(known),
                                                      DEFAULT_CAUSAL_LM_EVAL_METRICS=[])
    package("llmfoundry.utils.builders", build_metric=lambda name, _: known[name]())
    for part in ("attention", "ffn", "norm", "fc", "blocks"):
        importlib.import_module(f"llmfoundry.models.layers.{part}")
    return importlib.import_module("llmfoundry.models.mpt.modeling_mpt")


def mpt_fields(c):
    """A transformers configuration, MPT's or GPT-2's, in the words of llm-foundry's MPTConfig."""
    if c["model_type"] == "mpt":
        attn = c.get("attn_config", {})
        return dict(d_model=c["d_model"], n_heads=c["n_heads"], n_layers=c["n_layers"], max_seq_len=c["max_seq_len"],
                    vocab_size=c["vocab_size"], no_bias=True, tie_word_embeddings=c.get("tie_word_embeddings", True),
                    resid_pdrop=attn.get("attn_pdrop", 0.0),
                    attn_config={"alibi": True, "attn_pdrop": attn.get("attn_pdrop", 0.0), "clip_qkv": attn.get("clip_qkv")})
    return dict(d_model=c["n_embd"], n_heads=c["n_head"], n_layers=c["n_layer"], max_seq_len=c["n_positions"],
                vocab_size=c["vocab_size"], expansion_ratio=c["n_inner"] // c["n_embd"], resid_pdrop=c["resid_pdrop"],
                emb_pdrop=c["embd_pdrop"], attn_config={"attn_pdrop": c["attn_pdrop"]},
                tie_word_embeddings=c.get("tie_word_embeddings", True))


def llm_foundry_model(c, o):
    mpt = load()
    fields = mpt_fields(c)
    mpt.MPTModel.param_init_fn = lambda self, module: None  # weights have no values here
    mpt.MPTModel.apply = lambda self, function: self
    with torch.device("cuda"):
        made = mpt.ComposerMPTCausalLM(init_device="cuda", loss_fn="fused_crossentropy", pad_token_id=None, **fields)
    made.train()
    if o.recompute == "full":  # apply_activation_checkpointing of Composer's FSDP
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        blocks = made.model.transformer.blocks
        for i, block in enumerate(blocks):
            blocks[i] = checkpoint_wrapper(block)
    return made


def decoupled(model, o):
    """Composer's DecoupledAdamW or llm-foundry's DecoupledLionW."""
    if o.optimizer == "none":
        return None
    if o.optimizer == "lion":
        return importlib.import_module("llmfoundry.optim.lion").DecoupledLionW(model.parameters())
    return importlib.import_module("composer.optim.decoupled_weight_decay").DecoupledAdamW(model.parameters(), weight_decay=0.0)


def host_batch(c, o):
    """As the collator for language modelling makes it of tokens that were read: on the host, labels a copy."""
    tokens = torch.zeros((o.micro_batch, o.seq_len), dtype=torch.long)
    return {"input_ids": tokens, "labels": tokens.clone()}
