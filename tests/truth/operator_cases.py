"""The operators to be measured: what each computes, and with which inputs.

A case names an operator, its attributes and its inputs; record_operators.py runs it for every subset of inputs that can
need a gradient and in every mode. Sizes are small and different from each other, so that bytes tell tensors apart.
"""
import math
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F

F32, BF16, F16, I64, BOOL = torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool

# batch, tokens, hidden, heads, key-value heads, head size, feed-forward, vocabulary
B, S, H, A, G, D, M, V = 2, 6, 32, 4, 2, 8, 40, 50


@dataclass
class In:
    """One input. order: the axes from slowest to fastest in memory when not row-major; expanded axes have stride 0.
    role: `activation` (the result of an earlier operator), `parameter` (a leaf) or `data` (never needs a gradient)."""
    shape: tuple
    dtype: torch.dtype = F32
    order: tuple = None
    expanded: tuple = ()
    role: str = "activation"

    def strides(self):
        strides, step = [0] * len(self.shape), 1
        for axis in reversed(self.order or range(len(self.shape))):
            if axis not in self.expanded:
                strides[axis] = step
                step *= self.shape[axis]
        return strides


def weight(*shape, dtype=F32):
    return In(shape, dtype, role="parameter")


def data(*shape, dtype=F32, **more):
    return In(shape, dtype, role="data", **more)


@dataclass
class Case:
    op: str
    inputs: list
    attrs: dict = field(default_factory=dict)


def causal_lm_loss(logits, labels):
    from transformers.loss.loss_utils import ForCausalLMLoss
    return ForCausalLMLoss(logits=logits, labels=labels, vocab_size=logits.shape[-1])


def llama_rms_norm(x, w):
    from transformers.models.llama.modeling_llama import LlamaRMSNorm
    norm = object.__new__(LlamaRMSNorm)
    norm.__dict__.update(weight=w, variance_epsilon=1e-6)
    return LlamaRMSNorm.forward(norm, x)


def gelu_new(x):
    from transformers.activations import NewGELUActivation
    return NewGELUActivation.forward(None, x)


def rotate_half(x):
    from transformers.models.llama.modeling_llama import rotate_half as published
    return published(x)


def rotary(q, k, cos, sin):
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
    return apply_rotary_pos_emb(q, k, cos, sin)


def repeat_kv(x, times):
    from transformers.models.llama.modeling_llama import repeat_kv as published
    return published(x, times)


def conv1d(x, w, b):
    """transformers' Conv1D, the linear layer of GPT-2."""
    return torch.addmm(b, x.view(-1, x.size(-1)), w).view(x.shape[:-1] + (w.size(-1),))


def attention(q, k, v, mask=None, **attrs):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **attrs)


def batch_norm(x, w, b, mean, var, training):
    return F.batch_norm(x, mean, var, w, b, training=training)


def add_in_place(x, y):
    x += y
    return x


def rows_by_host(x, rows):
    return x[torch.tensor(rows, device="cpu"), ...]


OPERATORS = {
    "embedding": lambda ids, w, **a: F.embedding(ids, w, **a),
    "to": lambda x, dtype: x.to(getattr(torch, dtype)),
    "pow": lambda x, exponent: torch.pow(x, exponent),
    "mean": lambda x, dim, keepdim=False: x.mean(dim, keepdim=keepdim),
    "sum": lambda x, **a: x.sum(**a),
    "add_scalar": lambda x, value: x + value,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "div": lambda x, y: x / y,
    "div_scalar": lambda x, value: x / value,
    "mul": lambda x, y: x * y,
    "mul_scalar": lambda x, value: x * value,
    "rsqrt": torch.rsqrt,
    "sqrt": torch.sqrt,
    "neg": lambda x: -x,
    "cat": lambda *x, dim: torch.cat(x, dim),
    "slice": lambda x, dim, start, end: x[(slice(None),) * dim + (slice(start, end),)],
    "split": lambda x, size, dim: x.split(size, dim),
    "linear": lambda x, w, b=None: F.linear(x, w, b),
    "conv1d": conv1d,
    "addmm": lambda b, x, w: torch.addmm(b, x, w),
    "matmul": torch.matmul,
    "softmax": lambda x, dim, dtype=None: F.softmax(x, dim, dtype=dtype and getattr(torch, dtype)),
    "log_softmax": lambda x, dim, dtype=None: F.log_softmax(x, dim, dtype=dtype and getattr(torch, dtype)),
    "silu": F.silu, "relu": F.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid,
    "gelu": lambda x, approximate: F.gelu(x, approximate=approximate),
    "gelu_new": gelu_new,
    "layer_norm": lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    "rms_norm": lambda x, w: F.rms_norm(x, x.shape[-1:], w, 1e-6),
    "llama_rms_norm": llama_rms_norm,
    "rotate_half": rotate_half, "rotary": rotary, "repeat_kv": repeat_kv,
    "dropout": lambda x, p: F.dropout(x, p, training=True),
    "attention": attention,
    "nll_loss": lambda x, labels, **a: F.nll_loss(x, labels, **a),
    "cross_entropy": lambda x, labels, **a: F.cross_entropy(x, labels, **a),
    "causal_lm_loss": causal_lm_loss,
    "view": lambda x, shape: x.view(shape),
    "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, a, b: x.transpose(a, b),
    "permute": lambda x, order: x.permute(order),
    "unsqueeze": lambda x, dim: x.unsqueeze(dim),
    "flatten": lambda x, start: torch.flatten(x, start),
    "contiguous": lambda x: x.contiguous(),
    "clone": lambda x: x.clone(),
    "expand": lambda x, shape: x.expand(shape),
    "masked_fill": lambda x, mask, value: x.masked_fill(mask, value),
    "where": lambda mask, x, y: torch.where(mask, x, y),
    "conv2d": lambda x, w, b=None, **a: F.conv2d(x, w, b, **a),
    "batch_norm": batch_norm,
    "relu_in_place": lambda x: F.relu_(x),
    "relu6": lambda x: F.relu6(x),
    "relu6_in_place": lambda x: F.relu6(x, inplace=True),
    "max_pool2d": lambda x, **a: F.max_pool2d(x, **a),
    "avg_pool2d": lambda x, **a: F.avg_pool2d(x, **a),
    "adaptive_avg_pool2d": lambda x, size: F.adaptive_avg_pool2d(x, size),
    "add_in_place": add_in_place,
    "conv3d": lambda x, w, b=None: F.conv3d(x, w, b, stride=w.shape[2:]),
    "unbind": lambda x, dim: x.unbind(dim),
    "masked_scatter": lambda x, mask, source: x.masked_scatter(mask, source),
    "rows_by_host": rows_by_host,
}

FLOATS = (F32, BF16)
ALL_FLOATS = (F32, BF16, F16)
HEADS = (0, 2, 1, 3)  # [batch, heads, tokens, head size] lying in memory as [batch, tokens, heads, head size]


def elementwise():
    for t in ALL_FLOATS:
        x = In((B, S, H), t)
        turned = In((B, A, S, D), t, HEADS)
        yield from (Case("add_scalar", [x], {"value": 1e-6}), Case("mul_scalar", [x], {"value": 0.5}),
                    Case("div_scalar", [x], {"value": 8.0}), Case("mul_scalar", [turned], {"value": 0.5}))
        yield from (Case(op, [x]) for op in ("rsqrt", "sqrt", "neg", "silu", "relu", "tanh", "sigmoid", "gelu_new"))
        yield from (Case("gelu", [x], {"approximate": how}) for how in ("none", "tanh"))
        yield from (Case(op, [turned]) for op in ("neg", "rsqrt", "silu", "relu"))
        yield from (Case("pow", [x], {"exponent": e}) for e in (2, 3, 3.0))
        yield from (Case("dropout", [x], {"p": p}) for p in (0.0, 0.1))
        yield Case("dropout", [turned], {"p": 0.1})
    for source in ALL_FLOATS:
        for target in ("float32", "bfloat16", "float16"):
            yield Case("to", [In((B, S, H), source)], {"dtype": target})
    yield Case("to", [In((B, A, S, D), BF16, HEADS)], {"dtype": "float32"})
    yield Case("to", [In((B, G, S, D), F32, expanded=(0,))], {"dtype": "bfloat16"})
    yield Case("to", [data(B, S, dtype=I64)], {"dtype": "float32"})


def binary():
    for op in ("add", "sub", "mul", "div"):
        for t in FLOATS:
            x = In((B, S, H), t)
            turned = In((B, A, S, D), t, HEADS)
            yield Case(op, [x, In((B, S, H), t)])
            yield Case(op, [x, weight(H, dtype=t)])
            yield Case(op, [weight(H, dtype=t), x])
            yield Case(op, [x, In((B, S, 1), t)])
            yield Case(op, [turned, In((1, 1, S, D), t)])
            yield Case(op, [turned, data(B, 1, S, D, dtype=t)])
            yield Case(op, [turned, In((B, A, S, D), t)])
            yield Case(op, [In((B, A, S, D), t), turned])
            yield Case(op, [In((B, S, H), t, expanded=(0,)), In((B, S, H), t)])
        yield Case(op, [In((B, S, H), BF16), In((B, S, H), F32)])
        yield Case(op, [In((B, S, H), F32), In((B, S, H), BF16)])
        yield Case(op, [In((B, S, H), BF16), weight(H, dtype=F32)])
        yield Case(op, [In((B, S, H), F16), In((B, S, 1), F32)])
        yield Case(op, [In((B, A, S, S), BF16), data(1, 1, S, S, dtype=BF16)])
        yield Case(op, [In((B, S, H), BF16), In((), F32)])
    for t in FLOATS:
        yield Case("add_in_place", [In((B, S, H), t), In((B, S, H), t)])
        yield Case("add_in_place", [In((B, 3, 4, 4), t), In((B, 3, 4, 4), t)])
        yield Case("masked_fill", [In((B, A, S, S), t), data(1, 1, S, S, dtype=BOOL)], {"value": 0.0})
        yield Case("where", [data(1, 1, S, S, dtype=BOOL), In((B, A, S, S), t), In((), t)])
        yield Case("where", [data(B, S, H, dtype=BOOL), In((B, S, H), t), In((B, S, H), t)])
    yield Case("add_in_place", [In((B, S, H), F32), In((B, S, H), BF16)])


def reductions():
    for t in FLOATS:
        x = In((B, S, H), t)
        yield Case("mean", [x], {"dim": -1, "keepdim": True})
        yield Case("mean", [x], {"dim": -1})
        yield Case("sum", [x])
        yield Case("sum", [x], {"dim": -1})
        yield Case("sum", [x], {"dim": 1, "keepdim": True})
        for inner in ((B, S, H), (B, A, S, S)):
            yield Case("softmax", [In(inner, t)], {"dim": -1})
            yield Case("softmax", [In(inner, t)], {"dim": -1, "dtype": "float32"})
            yield Case("log_softmax", [In(inner, t)], {"dim": -1})
        yield Case("log_softmax", [In((B * S, V), t)], {"dim": 1, "dtype": "float32"})
        labels = data(B * S, dtype=I64)
        yield Case("nll_loss", [In((B * S, V), t), labels])
        yield Case("nll_loss", [In((B * S, V), t), labels], {"reduction": "sum"})
        yield Case("cross_entropy", [In((B * S, V), t), labels])
        yield Case("cross_entropy", [In((B * S, V), t), labels], {"reduction": "sum"})
        yield Case("cross_entropy", [In((B * S, V), t), labels], {"label_smoothing": 0.1})
        for batch, tokens in ((B, S), (1, S), (3, 1), (1, 1)):
            yield Case("causal_lm_loss", [In((batch, tokens, V), t), data(batch, tokens, dtype=I64)])
    yield Case("softmax", [In((B, A, S, S), F16)], {"dim": -1, "dtype": "float32"})
    yield Case("causal_lm_loss", [In((B, S, V), F16), data(B, S, dtype=I64)])


def products():
    for t in FLOATS:
        w, b = weight(M, H, dtype=t), weight(M, dtype=t)
        for x in (In((B, S, H), t), In((B * S, H), t), In((B, S, H), t, (1, 0, 2)), In((B, S, H), t, (0, 2, 1)),
                  In((1, 1, H), t), In((1, S, H), t)):
            yield Case("linear", [x, w])
            yield Case("linear", [x, w, b])
        yield Case("linear", [In((B, S, A * D), t), In((V, A * D), t)])
        yield Case("conv1d", [In((B, S, H), t), weight(H, M, dtype=t), b])
        yield Case("addmm", [b, In((B * S, H), t), weight(H, M, dtype=t)])
        q, turned_q = In((B, A, S, D), t), In((B, A, S, D), t, HEADS)
        k_turned = In((B, A, D, S), t, (0, 1, 3, 2))
        k_from_projection = In((B, A, D, S), t, (0, 3, 1, 2))
        yield from (Case("matmul", [x, k]) for x in (q, turned_q) for k in (k_turned, k_from_projection, In((B, A, D, S), t)))
        scores = In((B, A, S, S), t)
        yield from (Case("matmul", [scores, v]) for v in (In((B, A, S, D), t), turned_q, In((B, A, S, D), t, expanded=(1,))))
        yield Case("matmul", [In((S, H), t), In((H, M), t)])
        yield Case("matmul", [In((B, S, H), t), In((H, M), t)])
        yield Case("matmul", [In((B, S, H), t), In((B, H, M), t)])
        yield Case("matmul", [In((1, D // 2, 1), t), In((1, 1, S), t)])
        yield Case("matmul", [In((1, 1, S, D), t), In((1, 1, D, S), t)])
        yield Case("embedding", [data(B, S, dtype=I64), weight(V, H, dtype=t)])
        yield Case("embedding", [data(B, S, dtype=I64), weight(V, H, dtype=t)], {"padding_idx": 0})
        yield Case("embedding", [data(1, S, dtype=I64), weight(V, H, dtype=t)])
    yield Case("linear", [In((B, S, H), F16), weight(M, H, dtype=F16)])
    yield Case("linear", [In((B, S, H), F16), weight(M, H, dtype=F16), weight(M, dtype=F16)])
    yield Case("linear", [In((B, S, H), BF16), weight(M, H, dtype=F32), weight(M, dtype=F32)])


def norms():
    for t in ALL_FLOATS:
        x, w, b = In((B, S, H), t), weight(H, dtype=t), weight(H, dtype=t)
        yield Case("layer_norm", [x, w, b])
        yield Case("rms_norm", [x, w])
        yield Case("llama_rms_norm", [x, w])
    yield Case("llama_rms_norm", [In((B, S, H), BF16), weight(H, dtype=F32)])
    yield Case("layer_norm", [In((B, S, H), BF16, (1, 0, 2)), weight(H, dtype=BF16), weight(H, dtype=BF16)])


def attentions():
    for t in ALL_FLOATS:
        for order in (HEADS, None):
            q, k, v = (In((B, n, S, D), t, order) for n in (A, A, A))
            few_k, few_v = (In((B, G, S, D), t, order) for _ in range(2))
            yield Case("attention", [q, k, v])
            yield Case("attention", [q, k, v], {"is_causal": True})
            yield Case("attention", [q, few_k, few_v], {"is_causal": True, "enable_gqa": True})
            yield Case("attention", [q, k, v], {"is_causal": True, "dropout_p": 0.1})
            yield Case("attention", [q, k, v, data(B, 1, S, S, dtype=BOOL)])
            yield Case("attention", [q, few_k, few_v, data(B, 1, S, S, dtype=BOOL, expanded=(0,))], {"enable_gqa": True})
            yield Case("attention", [q, k, v, data(B, 1, S, S, dtype=t)])
        yield Case("attention", [In((B, A, S, D), t), In((B, A, S, D), t), In((B, A, S, D), t, HEADS)], {"is_causal": True})
        yield Case("attention", [In((B, A, 1, D), t), In((B, A, 1, D), t), In((B, A, 1, D), t)], {"is_causal": True})
        q, k = In((B, A, S, D), t, HEADS), In((B, G, S, D), t, HEADS)
        cos = data(1, S, D, dtype=t)
        yield Case("rotary", [q, k, cos, cos])
        yield Case("rotate_half", [q])
        yield Case("repeat_kv", [k], {"times": 2})
        yield Case("repeat_kv", [k], {"times": 1})
    yield Case("rotary", [In((B, A, S, D), BF16, HEADS), In((B, G, S, D), BF16, HEADS), data(1, S, D), data(1, S, D)])


def shapes():
    for t in FLOATS:
        x, turned = In((B, S, H), t), In((B, A, S, D), t, HEADS)
        yield from (Case("view", [x], {"shape": s}) for s in ([B, S, A, D], [B * S, H]))
        yield Case("transpose", [In((B, S, A, D), t)], {"a": 1, "b": 2})
        yield Case("reshape", [In((B, S, A, D), t)], {"shape": [B, S, H]})
        yield Case("reshape", [In((B, S, A, D), t, (0, 2, 1, 3))], {"shape": [B, S, H]})
        yield Case("reshape", [turned], {"shape": [B, A * S, D]})
        yield Case("permute", [In((B, S, A, D), t)], {"order": [0, 2, 1, 3]})
        yield Case("unsqueeze", [x], {"dim": 1})
        yield Case("flatten", [In((B, 3, 4, 4), t)], {"start": 1})
        yield from (Case(op, [y]) for op in ("contiguous", "clone") for y in (x, turned, In((B, S, H), t, expanded=(0,))))
        yield Case("expand", [In((1, S, D), t)], {"shape": [B, S, D]})
        yield Case("expand", [In((B, G, 1, S, D), t)], {"shape": [B, G, 2, S, D]})
        yield Case("cat", [In((B, S, D), t), In((B, S, D), t)], {"dim": -1})
        yield Case("cat", [In((B, S, D), t), In((B, S, M), t)], {"dim": -1})
        yield Case("cat", [In((B, A, S, D), t, HEADS), In((B, A, S, D), t, HEADS)], {"dim": -1})
        yield Case("cat", [In((B, 3, 4, 4), t), In((B, 5, 4, 4), t), In((B, 2, 4, 4), t)], {"dim": 1})
        yield Case("slice", [x], {"dim": 2, "start": 0, "end": H // 2})
        yield Case("slice", [x], {"dim": 2, "start": H // 2, "end": H})
        yield Case("slice", [turned], {"dim": 3, "start": D // 2, "end": D})
        yield Case("slice", [x], {"dim": 1, "start": 0, "end": S})
        yield Case("split", [In((B, S, 3 * H), t)], {"size": H, "dim": 2})
        yield Case("split", [In((B, S, 3 * H), t)], {"size": H, "dim": -1})
    yield Case("cat", [In((B, S, D), BF16), In((B, S, D), F32)], {"dim": -1})


def images():
    for t in FLOATS:
        x = In((B, 6, 12, 12), t)
        no_grad_x = data(B, 6, 12, 12, dtype=t)
        for w, attrs in (((8, 6, 3, 3), {}), ((8, 6, 3, 3), {"stride": 2, "padding": 1}), ((8, 6, 1, 1), {}),
                         ((8, 6, 1, 1), {"stride": 2}), ((6, 1, 3, 3), {"groups": 6, "padding": 1}),
                         ((8, 3, 3, 3), {"groups": 2, "padding": 1, "stride": 2}), ((8, 6, 5, 5), {"padding": 2})):
            yield Case("conv2d", [x, weight(*w, dtype=t)], attrs)
            yield Case("conv2d", [x, weight(*w, dtype=t), weight(w[0], dtype=t)], attrs)
        yield Case("conv2d", [no_grad_x, weight(8, 6, 3, 3, dtype=t), weight(8, dtype=t)], {"padding": 1})
        channels = [weight(6, dtype=t), weight(6, dtype=t)]
        buffers = [data(6, dtype=t), data(6, dtype=t)]
        yield from (Case("batch_norm", [x, *channels, *buffers], {"training": mode}) for mode in (True, False))
        yield from (Case(op, [x]) for op in ("relu_in_place", "relu6", "relu6_in_place"))
        for attrs in ({"kernel_size": 2, "stride": 2}, {"kernel_size": 3, "stride": 2}, {"kernel_size": 3, "stride": 2, "padding": 1}):
            yield Case("max_pool2d", [x], attrs)
        yield Case("avg_pool2d", [x], {"kernel_size": 2, "stride": 2})
        yield from (Case("adaptive_avg_pool2d", [x], {"size": size}) for size in ([1, 1], [6, 6], [12, 12], [7, 7]))
        yield Case("adaptive_avg_pool2d", [In((B, 6, 7, 7), t)], {"size": [7, 7]})
        yield Case("adaptive_avg_pool2d", [In((B, 6, 1, 1), t)], {"size": [1, 1]})
        yield Case("adaptive_avg_pool2d", [In((B, 6, 5, 5), t)], {"size": [7, 7]})


def vision():
    for t in FLOATS:
        kernel = (3, 2, 4, 4)
        for x in (data(6, *kernel, dtype=t), In((6, *kernel), t)):
            yield Case("conv3d", [x, weight(8, *kernel, dtype=t)])
            yield Case("conv3d", [x, weight(8, *kernel, dtype=t), weight(8, dtype=t)])
        yield Case("unbind", [In((3, S, A, D), t)], {"dim": 0})
        yield Case("unbind", [In((3, S, A, D), t, (1, 0, 2, 3))], {"dim": 0})
        yield Case("masked_scatter", [In((B, S, H), t), data(B, S, 1, dtype=BOOL), In((5, H), t)])
        yield Case("rows_by_host", [In((S, A, D), t)], {"rows": [3, 0, 5, 1, 4, 2]})
        yield Case("rows_by_host", [In((S, H), t)], {"rows": [3, 0, 5, 1, 4, 2]})


GROUPS = {f.__name__: f for f in (elementwise, binary, reductions, products, norms, attentions, shapes, images, vision)}
