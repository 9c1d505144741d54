"""Linear layers as bitsandbytes 0.41 to 0.49 made them of four bits, quantised by Fabric when they are built.

Two things differ from later versions: each product dequantises its weight first, to half precision, which is then cast;
and until 0.43.3 its node keeps what was multiplied.
"""
import contextlib

import torch
from bitsandbytes import functional

functional.create_dynamic_map = lambda *_, **__: torch.empty(256, device="cpu")  # asks its tensors for numbers


def dequantise(packed, state):
    """functional.dequantize_4bit before 0.44: maxima first, then one kernel into an empty tensor."""
    if state.nested:
        maxima = torch.empty(state.absmax.shape, dtype=torch.float32, device="cuda")
        maxima += state.offset
    return torch.empty(state.shape, dtype=state.dtype, device="cuda")


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, packed, bias, state, keeps_input):
        output = torch.nn.functional.linear(x, dequantise(packed, state).to(x.dtype), bias)
        ctx.state, ctx.kept = state, (x if keeps_input else None, packed)
        return output

    @staticmethod
    def backward(ctx, gradient):
        _, packed = ctx.kept
        return torch.matmul(gradient, dequantise(packed, ctx.state).to(gradient.dtype)), None, None, None, None


@contextlib.contextmanager
def tables_in_fp32():
    """Weights are quantised again when they are loaded, outside of the context that builds the model."""
    ordinary = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    yield
    torch.set_default_dtype(ordinary)


@contextlib.contextmanager
def quantised_linears(kind, compute, keeps_input):
    """Puts such layers in the place of torch.nn.Linear; without a kind it does nothing."""
    if not kind:
        yield
        return

    class FourBit(torch.nn.Module):
        def __init__(self, in_features, out_features, bias=True, **_):
            super().__init__()
            weight = torch.empty(out_features, in_features, dtype=torch.half)
            with tables_in_fp32():
                packed, state = functional.quantize_4bit(weight, blocksize=64, quant_type=kind.removesuffix("-dq"),
                                                         compress_statistics=kind.endswith("-dq"))
            self.in_features, self.out_features = in_features, out_features
            self.weight = torch.nn.Parameter(packed, requires_grad=False)
            self.weight.quant_state = state
            self.bias = torch.nn.Parameter(torch.empty(out_features)) if bias else None

        def forward(self, x):
            given = x.dtype
            x = x.to(compute)
            bias = None if self.bias is None else self.bias.to(compute)
            return Product.apply(x, self.weight, bias, self.weight.quant_state, keeps_input).to(given)

        def tensors(self):
            state = self.weight.quant_state
            nested = [state.offset, state.state2.absmax, state.state2.code] if state.nested else []
            return [state.absmax, state.code, *nested]

    linear, torch.nn.Linear = torch.nn.Linear, FourBit
    try:
        yield
    finally:
        torch.nn.Linear = linear


def quantised_tensors(model):
    return [t for module in model.modules() if hasattr(module, "tensors") for t in module.tensors()]
