"""torch.compile on fake tensors: AOTAutograd traces and partitions a module, inductor lowers and schedules both graphs as
for an H100, and the wrappers that it writes run as they are. Their kernels do nothing; the wrappers make, reuse and drop
the buffers, which is all that memory is made of. Dynamo is left out: the modules compiled here make one graph each.

Needs neither Triton nor a compiler, for no kernel is built.
"""
import os
import types

os.environ["TORCHINDUCTOR_FORCE_DISABLE_CACHES"] = "1"

import torch
import torch._dynamo.device_interface as device_interface
import torch._dynamo.utils
import torch._inductor.config as config
import torch._inductor.scheduler
import torch._inductor.utils
import torch.utils._triton
from torch._guards import detect_fake_mode
from torch._functorch.aot_autograd import aot_function, aot_module
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._inductor.codecache import PyCodeCache
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.fx_passes.joint_graph import joint_graph_passes
from torch._inductor.virtualized import V

H100 = types.SimpleNamespace(
    name="NVIDIA H100 80GB HBM3", major=9, minor=0, multi_processor_count=132, warp_size=32,
    regs_per_multiprocessor=65536, max_threads_per_multi_processor=2048, max_threads_per_block=1024,
    total_memory=80 << 30, gcnArchName="", shared_memory_per_block_optin=232448, shared_memory_per_block=49152,
    L2_cache_size=50 << 20)


def answer_as_a_gpu():
    config.compile_threads = 1
    config.joint_graph_constant_folding = False  # would run operators outside of the fake mode
    config.shape_padding = False  # measures on the card whether padded products would be faster
    torch._dynamo.utils.assert_no_fake_params_or_buffers = lambda _: None
    torch.cuda.get_device_properties = lambda *_: H100
    torch.cuda.current_device = lambda: 0
    torch.cuda.synchronize = lambda *_: None
    torch.cuda.set_device = lambda *_: None
    torch.cuda._DeviceGuard = Nothing
    cuda = device_interface.get_interface_for_device("cuda")
    for owner in (cuda, cuda.Worker):
        owner.get_device_properties = staticmethod(lambda *_: H100)
        owner.current_device = staticmethod(lambda: 0)
    cuda.get_compute_capability = staticmethod(lambda *_: 90)
    cuda.is_available = staticmethod(lambda: True)
    cuda.is_triton_capable = staticmethod(lambda *_: True)
    cuda.raise_if_triton_unavailable = staticmethod(lambda *_: None)
    for module in (torch.utils._triton, torch._inductor.utils, torch._inductor.scheduler):
        module.has_triton = lambda *_: True
    torch.utils._triton.triton_hash_with_backend = lambda *_: "none"
    PyCodeCache.write = classmethod(remember)
    PyCodeCache.load_by_key_path = classmethod(load)


class Nothing:
    """A context that nothing happens in, and a generated kernel."""

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def run(self, *_, **__):
        pass


class Kernels:
    def triton(self, *_, **__):
        return Nothing()


def new_buffer(size, stride, dtype):
    return torch.empty_strided(size, stride, dtype=dtype, device="cuda")


def same_buffer(tensor, size, stride, offset=0):
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


SOURCES = {}
GUARDS = "torch._C._dynamo.guards."
REPLACED = {
    "import triton\nimport triton.language as tl\n": "",
    "from torch._inductor.runtime.triton_heuristics import start_graph, end_graph": "",
    "from torch._C import _cuda_getCurrentRawStream as get_raw_stream": "get_raw_stream = int",
    "from torch._C._dynamo.guards import copy_if_misaligned": "copy_if_misaligned = lambda tensor: tensor",
    "async_compile = AsyncCompile()": "async_compile = Kernels()",
    "async_compile.wait(globals())": "",
    f"assert_size_stride = {GUARDS}assert_size_stride": "assert_size_stride = unchecked",
    f"assert_size_stride_grouped = {GUARDS}assert_size_stride_grouped": "assert_size_stride_grouped = unchecked",
    f"assert_alignment = {GUARDS}assert_alignment": "assert_alignment = unchecked",
    f"empty_strided_cuda = {GUARDS}_empty_strided_cuda": "empty_strided_cuda = new_buffer",
    f"reinterpret_tensor = {GUARDS}_reinterpret_tensor": "reinterpret_tensor = same_buffer",
}


def remember(_, source, *__, **___):
    key = str(len(SOURCES))
    SOURCES[key] = source
    return key, os.devnull


def load(_, key, __, linemap=None, attrs=None, **___):
    source = SOURCES[key]
    for theirs, ours in REPLACED.items():
        source = source.replace(theirs, ours)
    wrapper = types.ModuleType(f"wrapper_{key}")
    wrapper.__file__ = os.devnull
    wrapper.__dict__.update(Kernels=Kernels, new_buffer=new_buffer, same_buffer=same_buffer, unchecked=lambda *_: None)
    if os.environ.get("SHOW_WRAPPERS"):
        print(source)
    exec(compile(source, wrapper.__name__, "exec"), wrapper.__dict__)
    wrapper.__dict__.update(attrs or {})
    return wrapper


def partition(graph, inputs, **options):
    with V.set_fake_mode(detect_fake_mode(inputs)):
        joint_graph_passes(graph)
    return min_cut_rematerialization_partition(graph, inputs, compiler="inductor", **options)


def how():
    return {"fw_compiler": lambda graph, inputs: compile_fx_inner(graph, inputs, is_backward=False),
            "bw_compiler": lambda graph, inputs: compile_fx_inner(graph, inputs, is_backward=True),
            "inference_compiler": lambda graph, inputs: compile_fx_inner(graph, inputs, is_inference=True),
            "partition_fn": partition, "decompositions": select_decomp_table()}


def compile_module(module):
    return aot_module(module, **how())


def compile_function(function):
    return aot_function(function, **how())


answer_as_a_gpu()
