"""Models whose linear layers have bitsandbytes' weights of four or eight bits (its source on PYTHONPATH)."""
import bitsandbytes
import torch
from bitsandbytes import functional
from transformers.pytorch_utils import Conv1D

functional.create_dynamic_map = lambda *_, **__: torch.empty(256, device="cpu")  # asks its tensors for numbers


class FourBit(bitsandbytes.nn.Linear4bit):
    """Linear4bit over a fake weight: its constructor would ask for a real one."""

    def __init__(self, weight, bias, kind, compute):
        torch.nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        packed, state = functional.quantize_4bit(weight, blocksize=64, compress_statistics=kind.endswith("-dq"),
                                                 quant_type=kind.removesuffix("-dq"))
        self.weight = torch.nn.Parameter(packed, requires_grad=False)
        self.weight.quant_state, self.weight.quant_type = state, state.quant_type
        self.weight.compress_statistics = state.nested
        self.bias, self.compute_dtype, self.compute_type_is_set = bias, compute, True
        self.support_avx512bf16_for_cpu = False

    def tensors(self):
        state = self.weight.quant_state
        nested = [state.offset, state.state2.absmax, state.state2.code] if state.nested else []
        return [state.absmax, state.code, *nested]


class EightBit(bitsandbytes.nn.Linear8bitLt):
    def __init__(self, weight, bias):
        torch.nn.Module.__init__(self)
        self.out_features, self.in_features = weight.shape
        codes, scales, _ = functional.int8_vectorwise_quant(weight.to(torch.float16))
        self.weight = torch.nn.Parameter(codes, requires_grad=False)
        self.weight.CB, self.weight.SCB, self.index = None, None, None
        self.bias, self.state = bias, bitsandbytes.MatmulLtState()
        self.state.CB, self.state.SCB = codes, scales
        self.state.threshold, self.state.has_fp16_weights = 0.0, False  # which features are outliers, only data knows

    def tensors(self):
        return [self.state.SCB]


def quantise(model, kind, compute, prepare):
    """Replaces every linear layer but the head, and prepares the rest as PEFT does if asked."""
    for name, module in list(model.named_modules()):
        if not isinstance(module, (torch.nn.Linear, Conv1D)) or name == "lm_head":
            continue
        weight = module.weight.detach()
        if prepare:  # under autocast the rest is fp32, but the weights were loaded in its type
            weight = weight.to(compute)
        weight = weight.T.contiguous() if isinstance(module, Conv1D) else weight
        made = EightBit(weight, module.bias) if kind == "int8" else FourBit(weight, module.bias, kind, compute)
        model.set_submodule(name, made)
    model.is_loaded_in_4bit, model.is_loaded_in_8bit = kind != "int8", kind == "int8"
    model.requires_grad_(False)
    if prepare:
        for module in model.modules():
            for name, p in list(module._parameters.items()):
                if p is not None and p.dtype in (torch.float16, torch.bfloat16):
                    module._parameters[name] = torch.nn.Parameter(p.detach().to(torch.float32), requires_grad=False)
        model.tie_weights()


def quantised_tensors(model):
    return [t for module in model.modules() if isinstance(module, (FourBit, EightBit)) for t in module.tensors()]
