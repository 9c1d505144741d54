"""Models whose linear layers are packed into four bits by GPTQ or AWQ, multiplied by PyTorch's own operators.

The operators of GPTQModel's TorchLinear (nn_modules/qlinear/__init__.py, dequantize_weight; torch.py) and AwqTorchLinear
(torch_awq.py; quantization/awq/utils/packing_utils.py), groups of 128. PEFT's classes for both are PEFT's.
"""
import torch
from transformers.pytorch_utils import Conv1D

GROUP, PACKED, HIGHEST = 128, 8, 15  # codes of a group, and of an int32


class Packed(torch.nn.Module):
    def __init__(self, width, out, bias, device, dtype):
        super().__init__()
        self.in_features, self.out_features, self.bias = width, out, None
        self.groups, self.device = -(-width // GROUP), device
        if bias:
            del self.bias
            self.buffer("bias", out, dtype=dtype)

    def buffer(self, name, *shape, dtype=torch.int32):
        self.register_buffer(name, torch.zeros(shape, dtype=dtype, device=self.device))


class Gptq(Packed):
    def __init__(self, width, out, bias, device, compute):
        super().__init__(width, out, bias, device, torch.float16)
        self.buffer("qweight", width // PACKED, out)
        self.buffer("qzeros", self.groups, out // PACKED)
        self.buffer("scales", self.groups, out, dtype=torch.float16)
        self.buffer("g_idx", width)
        self.buffer("wf_unsqueeze_zero", 1, 1, PACKED)
        self.buffer("wf_unsqueeze_neg_one", 1, PACKED, 1)

    def dequantised(self):
        zeros = torch.bitwise_right_shift(self.qzeros.unsqueeze(2).expand(-1, -1, PACKED),
                                          self.wf_unsqueeze_zero).to(torch.int8)
        zeros = torch.bitwise_and(zeros, HIGHEST).reshape(self.scales.shape)
        weight = torch.bitwise_and(torch.bitwise_right_shift(self.qweight.unsqueeze(1).expand(-1, PACKED, -1),
                                                             self.wf_unsqueeze_neg_one).to(torch.int8), HIGHEST)
        weight = weight.reshape(weight.shape[0] * weight.shape[1], weight.shape[2])
        weights = self.scales[self.g_idx.long()] * (weight - zeros[self.g_idx.long()])
        return weights

    def forward(self, x):
        shape = x.shape[:-1] + (self.out_features,)
        x = x.reshape(-1, x.shape[-1])
        weights = self.dequantised()
        if weights.dtype != x.dtype:
            weights = weights.to(x.dtype)
        out = torch.matmul(x, weights).reshape(shape)
        if self.bias is not None:
            bias = self.bias
            if bias.dtype != out.dtype:
                bias = bias.to(out.dtype)
            out.add_(bias)
        return out


def unpacked(packed):
    shifts = torch.arange(0, 32, 4, device=packed.device)
    whole = torch.bitwise_right_shift(packed[:, :, None], shifts[None, None, :]).to(torch.int8)
    return whole.view(whole.shape[0], -1)


def in_order(weight, zeros):
    """What the caller binds stays alive meanwhile."""
    order = torch.arange(weight.shape[-1], dtype=torch.int32, device=weight.device)
    order = order.view(-1, PACKED)
    order = order[:, torch.empty(PACKED, dtype=torch.long, device="cpu")]  # a list of the host
    order = order.view(-1)
    zeros = zeros[:, order]
    weight = weight[:, order]
    return weight, zeros


class Awq(Packed):
    def __init__(self, width, out, bias, device, compute):
        super().__init__(width, out, bias, device, compute)
        self.buffer("qweight", width, out // PACKED)
        self.buffer("qzeros", self.groups, out // PACKED)
        self.buffer("scales", self.groups, out, dtype=compute)

    def dequantised(self):
        weight, zeros = unpacked(self.qweight), unpacked(self.qzeros)
        weight, zeros = in_order(weight, zeros)
        weight = torch.bitwise_and(weight, HIGHEST)
        zeros = torch.bitwise_and(zeros, HIGHEST)
        scales = self.scales.repeat_interleave(GROUP, dim=0)
        zeros = zeros.repeat_interleave(GROUP, dim=0)
        weight = (weight - zeros) * scales
        return weight

    def forward(self, x):
        given = x.dtype
        compute = given if given in (torch.float16, torch.bfloat16) else torch.float16
        shape = x.shape[:-1] + (self.out_features,)
        flat = x.reshape(-1, x.shape[-1])
        if flat.dtype != compute:
            flat = flat.to(compute)
        if self.scales.dtype != compute:  # for good
            self.scales = self.scales.to(compute)
        if self.bias is not None and self.bias.dtype != compute:
            self.bias = self.bias.to(compute)
        weight = self.dequantised()
        out = torch.matmul(flat, weight)
        if self.bias is not None:
            out = out + self.bias
        if out.dtype != given:
            out = out.to(given)
        out = out.reshape(shape)
        return out


KINDS = {"gptq": Gptq, "awq": Awq}


def pack(model, kind, compute):
    """Replaces every linear layer but the head by a packed one."""
    for name, module in list(model.named_modules()):
        if not isinstance(module, (torch.nn.Linear, Conv1D)) or name == "lm_head":
            continue
        width, out = module.weight.shape[::-1] if isinstance(module, torch.nn.Linear) else module.weight.shape
        model.set_submodule(name, KINDS[kind](width, out, module.bias is not None, module.weight.device, compute))
    model.requires_grad_(False)


def lora_classes():
    from peft.tuners.lora.awq import AwqLoraLinear
    from peft.tuners.lora.gptq import GPTQLoraLinear
    return {Gptq: GPTQLoraLinear, Awq: AwqLoraLinear}


def packed_tensors(model):
    return [t for module in model.modules() if isinstance(module, Packed) for t in module.buffers()]
