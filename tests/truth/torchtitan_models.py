"""torchtitan's Llama and its training step on fake tensors, on one device, as of version 0.2.2.

The source folder of that version stands in TORCHTITAN_SOURCE. What its modules import for other purposes is replaced by
empty modules.
"""
import importlib
import os
import sys
import types

import torch

from torchtune_models import Anything


def load():
    source = os.path.join(os.environ["TORCHTITAN_SOURCE"], "torchtitan")
    for name, folder in {"torchtitan": "", "torchtitan.models": "models", "torchtitan.models.llama3": "models/llama3",
                         "torchtitan.models.llama3.model": "models/llama3/model"}.items():
        package = types.ModuleType(name)
        package.__path__ = [os.path.join(source, folder)]
        sys.modules[name] = package
    for name in ("torchtitan.components", "torchtitan.components.tokenizer", "torchtitan.protocols",
                 "torchtitan.protocols.model", "torchtitan.protocols.train_spec", "torchtitan.config",
                 "torchtitan.tools", "torchtitan.tools.logging", "torchtitan.models.utils"):
        sys.modules[name] = Anything(name)
    protocols = sys.modules["torchtitan.protocols.model"]
    protocols.BaseModelArgs = type("BaseModelArgs", (), {})
    protocols.AttentionMasksType = object
    sys.modules["torchtitan.protocols.train_spec"].ModelProtocol = Protocol
    return importlib.import_module("torchtitan.models.llama3.model.model")


class Protocol(torch.nn.Module):
    def __init__(self, _):
        super().__init__()


def torchtitan_model(c, o, dtype):
    t = load()
    args = t.TransformerModelArgs(
        dim=c["hidden_size"], n_layers=c["num_hidden_layers"], n_heads=c["num_attention_heads"],
        n_kv_heads=c["num_key_value_heads"], vocab_size=c["vocab_size"], multiple_of=16, max_seq_len=o.seq_len)
    ordinary = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("cuda"):
            model = t.Transformer(args)
    finally:
        torch.set_default_dtype(ordinary)
    assert model.layers["0"].feed_forward.w1.out_features == c["intermediate_size"]
    if o.recompute == "full":  # _apply_full_ac
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
        for number, layer in model.layers.named_children():
            model.layers.register_module(number, checkpoint_wrapper(layer, preserve_rng_state=True, early_stop=True))
    return model


def cross_entropy_loss(pred, labels):
    return torch.nn.functional.cross_entropy(pred.flatten(0, 1).float(), labels.flatten(0, 1), reduction="sum",
                                             ignore_index=-100)


def clip(parameters, max_norm):
    """clip_grad_norm_ of torchtitan/distributed/utils.py."""
    grads = [p.grad for p in parameters if p.grad is not None]
    total_norm = torch.nn.utils.get_total_norm(grads, 2.0, False, True)
    torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, total_norm, True)
    return total_norm
