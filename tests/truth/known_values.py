"""Real values beside fake tensors, for code that reads numbers back: sizes of images, lengths of windows, masks.

A fake tensor that is known carries a real one on the CPU. What an operator makes of known tensors alone is known, too:
it runs on the real ones besides. So `.item()` and `.tolist()` answer what they would, and operators whose result's
size depends on values (nonzero, masked_select, unique_consecutive…) have a size. Everything else stays fake.
"""
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

MOST = 1 << 22  # elements that are worth knowing
MAKERS = ("arange", "zeros", "ones", "full", "linspace", "scalar_tensor")
SIZED_BY_VALUES = ("masked_select", "unique_consecutive", "nonzero", "repeat_interleave")


def know(values, device):
    """A fake tensor on `device` that is known to hold `values` (of lists or a real tensor)."""
    with _disable_current_modes():
        real = torch.as_tensor(values)
    made = torch.empty(real.shape, dtype=real.dtype, device=device)
    made.known = real
    return made


def value_of(x):
    """The real tensor behind one, or None."""
    return getattr(x, "known", None) if isinstance(x, FakeTensor) else x


def on_cpu(x):
    if isinstance(x, torch.Tensor):
        return value_of(x)
    return torch.device("cpu") if isinstance(x, torch.device) else x


def name_of(operator):
    return operator._schema.name.removeprefix("aten::")


def real_result(operator, args, kwargs):
    """What the operator makes of known values, or None."""
    tensors = [x for x in tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    if any(value_of(x) is None or x.numel() > MOST for x in tensors):
        return None
    if not tensors and name_of(operator) not in MAKERS:
        return None
    real_args, real_kwargs = tree_map(on_cpu, (args, kwargs))
    with _disable_current_modes(), torch.no_grad():
        return operator(*real_args, **real_kwargs)


def selected(args):
    """The count of masked_select's result, whose mask alone is known."""
    x, mask = args[0], value_of(args[1])
    if mask is None:
        return None
    with _disable_current_modes():
        return int(mask.sum()) * (x.numel() // mask.numel())


def tensor_of_numbers(data, *args, **kwargs):
    """torch.tensor, which reads numbers out of a list of tensors where no mode sees it."""
    if isinstance(data, list) and any(isinstance(x, FakeTensor) for x in data):
        data = [x.item() for x in data]
    return make_tensor(data, *args, **kwargs)


make_tensor, torch.tensor = torch.tensor, tensor_of_numbers


def numbers_of(index):
    """An index by truth values as the indices by number that the kernel takes it for."""
    if index is None or index.dtype is not torch.bool or value_of(index) is None:
        return [index]
    with _disable_current_modes():
        count = int(value_of(index).sum())
    return [torch.empty(count, dtype=torch.long, device=index.device) for _ in range(index.dim())]


class Values:
    """Runs operators for a dispatch mode."""

    def run(self, operator, args, kwargs):
        real = real_result(operator, args, kwargs)
        made = self._make(operator, args, kwargs, real)
        if real is not None:
            self._attach(made, real)
        elif operator._schema.is_mutable:
            for x in tree_leaves(args[:1]):
                if isinstance(x, FakeTensor):
                    x.known = None
        return made

    def number(self, tensor):
        real = value_of(tensor)
        if real is None:
            return None
        with _disable_current_modes():
            return real.item()

    def _make(self, operator, args, kwargs, real):
        device = next((x.device for x in tree_leaves(args) if isinstance(x, torch.Tensor)), None)
        if name_of(operator) in SIZED_BY_VALUES:
            if real is not None:
                leaves, spec = tree_flatten(real)
                return tree_unflatten([torch.empty_strided(r.shape, r.stride(), dtype=r.dtype, device=device)
                                       for r in leaves], spec)
            if name_of(operator) == "masked_select" and selected(args) is not None:
                return torch.empty(selected(args), dtype=args[0].dtype, device=device)
        if name_of(operator).startswith(("index", "_index_put_impl_")) and isinstance(args[1], (list, tuple)):
            args = (args[0], [n for x in args[1] for n in numbers_of(x)], *args[2:])
        return operator(*args, **kwargs)

    def _attach(self, made, real):
        for fake, value in zip(tree_leaves(made), tree_leaves(real)):
            if isinstance(fake, FakeTensor) and fake.numel() <= MOST:
                fake.known = value
