"""Follows the storages of one device: each operator's new ones, and by weak reference when each dies."""
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from known_values import Values

SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "b8",
         "uint64": "u64", "float64": "f64"}
BLOCK = 512  # bytes; PyTorch's caching allocator rounds each request up to this


def describe(tensor):
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{SHORT.get(dtype, dtype)}[{','.join(map(str, tensor.shape))}]"


def in_blocks(size):
    return -(-size // BLOCK) * BLOCK


def stand_in_number(tensor):
    """`.item()` of a fake tensor: False, 1 or 1.0, with which no test in a training step fires."""
    if tensor.dtype is torch.bool:
        return False
    return 1.0 if tensor.dtype.is_floating_point else 1


class StorageWatch(TorchDispatchMode):
    """`live`: bytes held now, `live_blocks`: with each storage rounded up to an allocator block.

    With `knows_values` numbers that code reads back are real where they can be known (known_values.py).
    on_new(size, live, operator, tensor) and on_dead(size, live) are called for storages that are not empty.
    """

    def __init__(self, on_new=None, on_dead=None, device="cuda", knows_values=False):
        super().__init__()
        self.values = Values() if knows_values else None
        self.device, self.on_new, self.on_dead = device, on_new, on_dead
        self.live = self.live_blocks = self.peak = self.peak_blocks = 0
        self.offloaded = 0  # told by who takes tensors to the host
        self._alive = {}

    def restart_peak(self):
        self.peak, self.peak_blocks = self.live, self.live_blocks

    def take_in(self, tensor, operator=""):
        if tensor.device.type != self.device:
            return
        storage = tensor.untyped_storage()
        key, size = storage._cdata, storage.size()
        if key in self._alive or size == 0:
            return
        self.live += size
        self.live_blocks += in_blocks(size)
        self.peak = max(self.peak, self.live)
        self.peak_blocks = max(self.peak_blocks, self.live_blocks)
        if self.on_new:
            self.on_new(size, self.live, operator, tensor)
        self._alive[key] = weakref.ref(storage, lambda _: self._let_go(key, size))

    def _let_go(self, key, size):
        self._alive.pop(key, None)
        self.live -= size
        self.live_blocks -= in_blocks(size)
        if self.on_dead:
            self.on_dead(size, self.live)

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if operator is torch.ops.aten._local_scalar_dense.default:
            number = self.values.number(args[0]) if self.values else None
            return stand_in_number(args[0]) if number is None else number
        result = self.values.run(operator, args, kwargs or {}) if self.values else operator(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.take_in(leaf, str(operator))
        return result
