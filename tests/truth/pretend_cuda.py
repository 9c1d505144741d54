"""Makes a PyTorch without CUDA accept fake tensors on device "cuda", so that it chooses CUDA's operators.

Call `restart_with_stub()` first thing in a script, then `install()` before transformers builds a model.
Real with it: which operator runs, what it returns and saves (dropout's Boolean mask, norm statistics in
fp32, flash attention's logsumexp and random state), autocast's lists for CUDA. Not real: what kernels use
inside, and sums of gradients, which autograd makes out of place for any tensor subclass.
"""
import ctypes
import glob
import os
import sys

STUB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libpretend_cuda.so")
CUDA, META, KINDS = 1, 14, 21  # c10::DeviceType


def restart_with_stub():
    """The stub has to be in front of libtorch, which only a new process can have."""
    if STUB not in os.environ.get("LD_PRELOAD", ""):
        os.environ["LD_PRELOAD"] = STUB
        os.execv(sys.executable, [sys.executable, *sys.argv])


def register_guard():
    c10 = ctypes.CDLL(os.path.basename(min(glob.glob("/usr/lib/*/libc10.so.2.*"))))
    guards = (ctypes.c_void_p * KINDS).in_dll(c10, "_ZN3c104impl26device_guard_impl_registryE")
    make = ctypes.CDLL(STUB).pretend_guard
    make.restype, make.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    functions_of_meta_guard = ctypes.c_void_p.from_address(guards[META]).value
    guards[CUDA] = make(functions_of_meta_guard)


def answer_as_a_gpu(torch):
    import torch.cuda.amp.common
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda *_, **__: True
    torch.cuda.get_device_capability = lambda *_, **__: (9, 0)
    keep_whole(torch)
    # Batch norm by PyTorch's own kernel: the stub says yes to every library there is, also to AMD's. cuDNN's
    # returns tensors of the same sizes.
    torch.backends.cudnn.enabled = False


def keep_whole(torch):
    """Operators that are one kernel on a GPU and would be taken apart for want of it."""
    on_cuda = torch.library.Library("aten", "IMPL")
    on_cuda.impl("silu_backward", lambda gradient, x: torch.empty_like(x), "CUDA")
    for name in ("_fused_rms_norm", "_fused_rms_norm_backward"):  # fake tensors find their results by themselves
        on_cuda.impl(name, lambda *_: None, "CUDA")
    shapes = torch.library.Library("aten", "IMPL")
    for name in ("_fused_sgd_", "_fused_adagrad_"):  # lack a shape rule; work in place
        shapes.impl(name, lambda *_, **__: None, "Meta")
    for name in ("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"):  # in place, without a shape rule
        shapes.impl(name, lambda first, *_, **__: first if isinstance(first, torch.Tensor) else None, "Meta")
    # Gradients of a step that means something are finite; a fake tensor's number would say that they are not.
    torch.amp.GradScaler._maybe_opt_step = lambda self, optimizer, state, *a, **k: optimizer.step(*a, **k)
    keep_whole.registered = on_cuda, shapes  # registrations end with the objects


def choose_attention_kernel(torch):
    """Flash for half precision without a mask and with equal head sizes, otherwise memory-efficient attention,
    which knows no groups, so keys and values are repeated for it. PyTorch's own choice asks for more than this."""
    aten = torch.ops.aten

    def cast_for_autocast(*tensors):
        if not torch.is_autocast_enabled("cuda"):
            return tensors
        target = torch.get_autocast_dtype("cuda")
        # The dispatcher's wrapper evaluates its arguments from the last to the first.
        return tuple(t.to(target) for t in tensors[::-1])[::-1]

    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        query, key, value = cast_for_autocast(query, key, value)
        with torch.autocast("cuda", enabled=False):
            half = query.dtype in (torch.bfloat16, torch.float16)
            if half and attn_mask is None and query.shape[-1] == value.shape[-1]:
                return aten._scaled_dot_product_flash_attention(query, key, value, dropout_p, is_causal, False,
                                                                scale=scale)[0]
            if enable_gqa:
                groups = query.shape[1] // key.shape[1]
                key = key.repeat_interleave(groups, 1)
                value = value.repeat_interleave(groups, 1)
            return aten._scaled_dot_product_efficient_attention(query, key, value, attn_mask, True, dropout_p,
                                                                is_causal, scale=scale)[0]

    torch.nn.functional.scaled_dot_product_attention = attention


def skip_masks_as_outside_a_trace():
    """transformers takes a fake tensor for a trace and then builds masks that a real step does without."""
    import transformers.masking_utils as masks
    masks.is_tracing = lambda *_: False
    masks.find_packed_sequence_indices = lambda *_: None


def install(with_transformers=True):
    import torch
    register_guard()
    answer_as_a_gpu(torch)
    choose_attention_kernel(torch)
    if with_transformers:
        skip_masks_as_outside_a_trace()
