#!/usr/bin/env python3
"""Record how autograd adds and keeps gradients in a real step, with real CPU tensors: tests/data/lab/policies.jsonl.

Fake tensors make autograd careful (it adds out of place for any tensor subclass), so these facts are read from
torch.profiler's record of operators and of the CPU allocator. Each graph is built from operators whose own backward
formulas add nothing: every `add` seen during backward is the engine's.

A row: fact, graph (Python), tensor_bytes (size of the tensor in question), sums (the engine's additions in order: the
node whose result arrives as the second, its shape, and how: `in place` or `new tensor`), kept (for leaves: `stolen` when
.grad is the very tensor that arrived, `copied`), events (what the allocator did in backward: bytes, + or -, with the operator that was running), peak_bytes (most held in
backward above its start). Usage: record_policies.py > FILE
"""
import inspect
import json
import os

# One thread, so that the autograd engine's allocations fall in the order of its operators.
os.environ.setdefault("OMP_NUM_THREADS", "1")
import torch
import torch.nn.functional as F
from torch.profiler import ProfilerActivity, profile

N = 512
SMALLEST = 4096  # bytes; scalars that the profiler also sees are of no interest


def square():
    return torch.rand(N, N)


def leaf():
    return square().requires_grad_()


def inner(x):
    """The result of an operator that saves nothing, as an activation is."""
    return x * 2.0


FACTS = {}


def fact(f):
    FACTS[f.__name__] = f
    return f


@fact
def two_branches():
    a = inner(leaf())
    return [a.sin() + a.cos()]


@fact
def three_branches():
    a = inner(leaf())
    return [a.sin() + a.cos() + a.tanh()]


@fact
def residual_shortcut_first():
    a = inner(leaf())
    return [inner(a + a.sin())]


@fact
def residual_branch_first():
    a = inner(leaf())
    return [inner(a.sin() + a)]


@fact
def residual_of_two_operators():
    a = inner(leaf())
    return [inner(a + a.sin().cos())]


@fact
def residual_with_the_callers_gradient():
    a = inner(leaf())
    return [a + a.sin()]


@fact
def two_residuals():
    a = inner(leaf())
    b = a + a.sin()
    return [inner(b + b.cos())]


@fact
def first_gradient_is_expanded():
    a = inner(leaf())
    wave = a.sin()
    return [a.sum() + wave.sum()]


@fact
def first_gradient_is_a_transpose():
    a = inner(leaf())
    first = inner(a.sin())
    return [first + inner(a.t())]


@fact
def first_gradient_is_part_of_another():
    a = inner(leaf())
    wave = a.sin()
    return [inner(torch.cat([a, inner(square().requires_grad_())], 1)).sum() + wave.sum()]


@fact
def both_gradients_are_views():
    a = inner(leaf())
    return [inner(torch.cat([a, a], 1))]


@fact
def slices_of_one_tensor():
    a = inner(leaf())
    return [inner(torch.cat([-a[:, N // 2:], a[:, :N // 2]], 1))]


@fact
def first_gradient_is_a_view():
    a = inner(leaf())
    return [inner(a.sin()) + inner(a.view(2, -1)).view(N, N)]


@fact
def second_gradient_is_a_view():
    a = inner(leaf())
    return [inner(a.view(2, -1)).view(N, N) + inner(a.sin())]


@fact
def first_gradient_was_viewed_and_viewed_back():
    a = inner(leaf())
    return [inner(a.sin()) + inner(a.view(2, -1).view(N, N))]


@fact
def first_gradient_is_cast():
    a = inner(leaf())
    return [inner(a.sin()) + inner(a.double()).float()]


@fact
def first_gradient_is_summed_to_shape():
    a = inner(leaf())
    wide = torch.rand(2, N, N)
    return [(wide * a).sum(0) + a.sin(), ]


@fact
def three_projections_of_one_input_in_three_dimensions():
    a = inner(torch.rand(2, N // 2, N).requires_grad_())
    return [F.linear(a, leaf()).sin() + F.linear(a, leaf()).sin() + F.linear(a, leaf()).sin()]


@fact
def three_projections_of_a_norm_of_a_residual():
    x = inner(torch.rand(2, N // 2, N).requires_grad_())
    a = x * x.pow(2).mean(-1, keepdim=True).rsqrt()
    mixed = F.linear(a, leaf()).sin() + F.linear(a, leaf()).sin() + F.linear(a, leaf()).sin()
    return [inner(x + F.linear(mixed, leaf()))]


@fact
def query_key_value_of_one_input():
    a = inner(leaf())
    return [(F.linear(a, leaf()) * F.linear(a, leaf())) * F.linear(a, leaf())]


@fact
def leaf_with_two_uses():
    w = leaf()
    return [F.linear(square(), w).sin() * F.linear(square(), w).cos()]


@fact
def tied_embedding():
    w = leaf()
    hidden = F.embedding(torch.arange(N).view(1, N), w)
    return [F.linear(hidden.tanh(), w).view(N, N)]


def keep(*leaves):
    """Leaves whose .grad is to be looked at."""
    keep.leaves = leaves
    return leaves


@fact
def leaf_gets_a_product():
    w, = keep(leaf())
    return [F.linear(square(), w)]


@fact
def leaf_gets_the_callers_gradient():
    x, = keep(leaf())
    return [x + square()]


@fact
def leaf_gets_an_expanded_gradient():
    x, = keep(leaf())
    return [x.sum()]


@fact
def leaf_gets_rows_of_another():
    x, _ = keep(leaf(), leaf())
    return [inner(torch.cat([x, _], 0))]


@fact
def leaf_gets_columns_of_another():
    x, _ = keep(leaf(), leaf())
    return [inner(torch.cat([x, _], 1))]


@fact
def leaf_gets_a_transpose():
    x, = keep(leaf())
    return [inner(x.t())]


@fact
def two_leaves_get_one_tensor():
    x, y = keep(leaf(), leaf())
    return [inner(x + y)]


@fact
def leaf_has_a_gradient_already():
    w, = keep(leaf())
    w.grad = square()
    return [F.linear(square(), w)]


@fact
def leaf_with_two_uses_has_a_gradient_already():
    w, = keep(leaf())
    w.grad = square()
    return [F.linear(square(), w).sin() * F.linear(square(), w).cos()]


@fact
def addmm_weight_with_two_uses():
    w = leaf()
    return [torch.addmm(torch.rand(N), square(), w).sin() * torch.addmm(torch.rand(N), square(), w).cos()]


def small_model(kind, **fields):
    import transformers
    config = transformers.AutoConfig.for_model(kind, **fields)
    config.use_cache = False
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager").train()
    tokens = torch.randint(0, config.vocab_size, (2, 64))
    return [model(input_ids=tokens, labels=tokens).loss]


@fact
def llama_fp32_eager_two_layers():
    return small_model("llama", hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, vocab_size=1000, tie_word_embeddings=False)


@fact
def llama_fp32_eager_two_layers_tied():
    return small_model("llama", hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=4,
                       num_key_value_heads=2, vocab_size=1000, tie_word_embeddings=True)


@fact
def llama_bf16_eager_two_layers():
    torch.set_default_dtype(torch.bfloat16)
    try:
        return small_model("llama", hidden_size=256, intermediate_size=688, num_hidden_layers=2, num_attention_heads=4,
                           num_key_value_heads=2, vocab_size=1000, tie_word_embeddings=False)
    finally:
        torch.set_default_dtype(torch.float32)


@fact
def gpt2_fp32_eager_two_layers():
    return small_model("gpt2", n_embd=256, n_layer=2, n_head=4, vocab_size=1000)


def classifier(name):
    import torchvision
    images, labels = torch.rand(2, 3, 64, 64), torch.zeros(2, dtype=torch.long)
    return [F.cross_entropy(torchvision.models.get_model(name, weights=None).train()(images), labels)]


@fact
def resnet18_fp32():
    return classifier("resnet18")


@fact
def resnet50_fp32():
    return classifier("resnet50")


@fact
def densenet121_fp32():
    return classifier("densenet121")


@fact
def mobilenet_v2_fp32():
    return classifier("mobilenet_v2")


MODELS = ("llama", "gpt2", "resnet", "densenet", "mobilenet")  # of these the sums alone

ENGINE = "autograd::engine::evaluate_function: "


def nested(p):
    """Each recorded event with the names of those around it, in order of time."""
    events = sorted(p.profiler.kineto_results.events(), key=lambda e: (e.start_ns(), -e.duration_ns()))
    stack = []
    for e in events:
        start, end = e.start_ns(), e.start_ns() + e.duration_ns()
        while stack and stack[-1][1] < end:
            stack.pop()
        yield e, [name for name, _ in stack]
        if e.name() != "[memory]":
            stack.append((e.name(), end))


def engine_sum(e, around):
    """What the engine adds: right under a node's evaluation, or a leaf's accumulator adding to what it has."""
    if e.name() not in ("aten::add", "aten::add_") or not around:
        return None
    if not around[-1].startswith(ENGINE) and not around[-1].endswith("AccumulateGrad"):
        return None
    source = next(name for name in reversed(around) if name.startswith(ENGINE)).removeprefix(ENGINE)
    return {"from": source.split("::")[-1], "shape": list(e.shapes()[0]),
            "how": "in place" if e.name() == "aten::add_" else "new tensor"}


def operator_of(around):
    return next((name for name in around if name.startswith("aten::")), "engine")


def source_of(graph):
    body = inspect.getsource(graph).split("\n")[2:]
    return "; ".join(line.strip() for line in body if line.strip())


def observe(graph):
    keep.leaves = ()
    outputs = graph()
    gradients = [torch.ones(t.shape, dtype=t.dtype) for t in outputs]
    held_before = [w.grad is not None for w in keep.leaves]
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, record_shapes=True) as p:
        torch.autograd.backward(outputs, gradients)
    sums, events, live, peak, copied = [], [], 0, 0, False
    for e, around in nested(p):
        found = engine_sum(e, around)
        if found:
            sums.append(found)
        copied |= e.name() == "aten::new_empty_strided"
        if e.name() == "[memory]" and abs(e.nbytes()) >= SMALLEST:
            events.append([e.nbytes(), operator_of(around)])
            live += e.nbytes()
            peak = max(peak, live)
    row = {"fact": graph.__name__, "graph": source_of(graph), "sums": sums}
    if keep.leaves and not any(held_before):
        row["kept"] = "copied" if copied else "stolen"
        row["grad_storage_bytes"] = [w.grad.untyped_storage().size() for w in keep.leaves]
        row["grad_strides"] = [list(w.grad.stride()) for w in keep.leaves]
    if not graph.__name__.startswith(MODELS):
        row = {**row, "tensor_bytes": 4 * N * N, "peak_bytes": peak, "events": events}
    return {**row, "torch": torch.__version__}


torch.set_num_threads(1)
for graph in FACTS.values():
    observe(graph)  # once to warm up: libraries allocate at their first use
    print(json.dumps(observe(graph)), flush=True)
