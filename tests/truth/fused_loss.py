"""The operators of Liger's fused linear cross-entropy (ops/fused_linear_cross_entropy.py), its kernel left out: that works
in place on the logits of a chunk of rows."""
import types

import torch
import torch.nn.functional as F
from transformers.modeling_outputs import CausalLMOutputWithPast


def power_of_two(n):
    return 1 << (n - 1).bit_length()


class FusedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, targets):
        rows, hidden, vocab = *x.shape, weight.shape[0]
        chunk = power_of_two(-(-rows // -(-vocab // hidden)))
        x_gradient = torch.zeros_like(x)
        weight_gradient = torch.zeros_like(weight) if x.requires_grad and weight.requires_grad else None
        losses = torch.zeros(rows, dtype=torch.float32, device=x.device)
        mask = targets != -100
        mask.sum().item()
        for start in range(0, rows, chunk):
            part = x[start:start + chunk]
            logits = part @ weight.t()
            if x.requires_grad:
                x_gradient[start:start + chunk] = logits @ weight
            if weight_gradient is not None:
                weight_gradient += torch.mm(logits.t(), part).float()
        loss = torch.sum(losses)
        ctx.save_for_backward(x_gradient.detach(), weight_gradient.detach() if weight_gradient is not None else None)
        return loss

    @staticmethod
    def backward(ctx, gradient):
        x_gradient, weight_gradient = ctx.saved_tensors
        torch.ones_like(gradient)  # what it is compared with
        return x_gradient, weight_gradient, None


def forward(self, input_ids, labels, **more):
    """As Liger replaces it: the head is part of the loss."""
    outputs = self.model(input_ids=input_ids, use_cache=False)
    hidden = outputs[0]
    kept = hidden[:, slice(0, None), :]
    labels = F.pad(labels, (0, 1), value=-100)
    shifted = labels[..., 1:].contiguous()
    loss = FusedLoss.apply(kept.view(-1, kept.shape[-1]), self.lm_head.weight, shifted.view(-1))
    return CausalLMOutputWithPast(loss=loss, logits=None)


def fuse(model):
    model.forward = types.MethodType(forward, model)
    return model
