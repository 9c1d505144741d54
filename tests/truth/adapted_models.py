"""Frozen models with what PEFT adds to them (PEFT's own classes; its source on PYTHONPATH)."""
import contextlib

import peft
import torch
from torch._subclasses.fake_tensor import FakeTensor


def names(text):
    return [name for name in text.split(",") if name]


def low_rank(model, o):
    causal = type(model).__name__.endswith("ForCausalLM") or hasattr(model, "lm_head")
    config = peft.LoraConfig(task_type="CAUSAL_LM" if causal else None, r=o.lora, lora_alpha=2 * o.lora, lora_dropout=o.lora_dropout,
                           target_modules="all-linear" if o.lora_targets == "all-linear" else names(o.lora_targets) or None,
                           modules_to_save=names(o.modules_to_save) or None, use_dora=o.tuner == "dora")
    if o.quantize_base in ("gptq", "awq"):
        from packed_models import lora_classes
        config._register_custom_module(lora_classes())
    return config


def copied(parameter, memo):
    memo[id(parameter)] = copy = torch.nn.Parameter(parameter.detach().clone(), parameter.requires_grad)
    return copy


@contextlib.contextmanager
def made_in_place(device, dtype):
    """Fake parameters can neither be moved nor copied: new ones are made where and in the type that they belong."""
    ordinary, move = torch.get_default_dtype(), torch.nn.Module.to
    torch.set_default_dtype(dtype)
    torch.nn.Module.to = lambda self, *_, **__: self
    FakeTensor.__deepcopy__ = copied
    try:
        with device:
            yield
    finally:
        torch.set_default_dtype(ordinary)
        torch.nn.Module.to = move
        del FakeTensor.__deepcopy__


def scaled(model, o):
    return peft.IA3Config(task_type="CAUSAL_LM", target_modules=names(o.lora_targets) or None)


def prompted(model, o):
    """Virtual tokens, as embeddings or as keys and values. PEFT makes them in torch's default type, fp32."""
    kind = peft.PromptTuningConfig if o.tuner == "prompt" else peft.PrefixTuningConfig
    return kind(task_type="CAUSAL_LM", num_virtual_tokens=o.virtual_tokens)


CONFIGS = {"ia3": scaled, "prompt": prompted, "prefix": prompted}


def adapted(model, o):
    """`model` with its weights frozen and adapters in the type asked for."""
    base = next(model.parameters())
    virtual = o.tuner in ("prompt", "prefix")
    with made_in_place(base.device, torch.float32 if o.quantize_base or virtual else base.dtype):
        made = peft.get_peft_model(model, CONFIGS.get(o.tuner, low_rank)(model, o),
                                   autocast_adapter_dtype=o.lora_dtype == "fp32")
    if virtual:  # numbered on the host
        made.prompt_tokens = {name: torch.arange(len(numbers)) for name, numbers in made.prompt_tokens.items()}
    if o.tuner == "lora-fa":  # peft.optimizers.create_lorafa_optimizer
        for name, parameter in made.named_parameters():
            if "lora_A" in name:
                parameter.requires_grad_(False)
    return made
