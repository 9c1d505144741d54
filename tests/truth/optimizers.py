"""The optimizers of `ullage train`: torch.optim's, Lion as timm writes it, 8-bit AdamW of bitsandbytes (on PYTHONPATH)."""
import torch

IMPLEMENTATIONS = {"foreach": {"foreach": True}, "fused": {"fused": True}, "loop": {"foreach": False}}


class Lion(torch.optim.Optimizer):
    """The operators of timm.optim.Lion (timm/optim/lion.py), in its order."""

    def __init__(self, parameters, foreach):
        super().__init__(parameters, {"foreach": foreach})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            trained = [p for p in group["params"] if p.grad is not None]
            for p in trained:
                if not self.state[p]:
                    self.state[p]["exp_avg"] = torch.zeros_like(p)
            gradients, averages = [p.grad for p in trained], [self.state[p]["exp_avg"] for p in trained]
            (self.lists if group["foreach"] else self.one_by_one)(trained, gradients, averages)

    @staticmethod
    def one_by_one(parameters, gradients, averages):
        for p, g, m in zip(parameters, gradients, averages):
            p.mul_(0.99)
            update = m.mul(0.9).add_(g, alpha=0.1).sign_()
            p.add_(update, alpha=-1e-4)
            m.lerp_(g, 0.01)

    @staticmethod
    def lists(parameters, gradients, averages):
        torch._foreach_mul_(parameters, 0.99)
        updates = torch._foreach_mul(averages, 0.9)
        torch._foreach_add_(updates, gradients, alpha=0.1)
        updates = [u.sign_() for u in updates]
        torch._foreach_add_(parameters, updates, alpha=-1e-4)
        torch._foreach_mul_(averages, 0.99)
        torch._foreach_add_(averages, gradients, alpha=0.01)


class Several:
    """Optimizers that share the parameters, stepped one after the other."""

    def __init__(self, parts):
        self.parts = parts

    @property
    def state(self):
        return {p: s for part in self.parts for p, s in part.state.items()}

    def step(self):
        for part in self.parts:
            part.step()

    def zero_grad(self):
        for part in self.parts:
            part.zero_grad()


def muon(named, how):
    """Muon for the matrices of the layers, AdamW for the rest."""
    in_layer = lambda name: any(part.isdigit() for part in name.split("."))
    matrices = [p for name, p in named if p.ndim == 2 and in_layer(name)]
    rest = [p for name, p in named if p.ndim != 2 or not in_layer(name)]
    parts = [torch.optim.Muon(matrices)] if matrices else []
    return Several(parts + ([torch.optim.AdamW(rest, foreach=True)] if rest else []))


def eight_bit(named, how, paged=False):
    import bitsandbytes
    bitsandbytes.functional.create_dynamic_map = lambda *_, **__: torch.empty(256, device="cpu")  # asks for numbers
    torch.cuda.synchronize = lambda *_: None
    kind = bitsandbytes.optim.PagedAdamW8bit if paged else bitsandbytes.optim.AdamW8bit
    return kind([p for _, p in named])


def torch_optimizer(name, **options):
    return lambda named, how: getattr(torch.optim, name)([p for _, p in named], **how, **options)


OPTIMIZERS = {
    "adamw": torch_optimizer("AdamW"),
    "adam": torch_optimizer("Adam"),
    "sgd": torch_optimizer("SGD", lr=0.01),
    "sgd-momentum": torch_optimizer("SGD", lr=0.01, momentum=0.9),
    "adagrad": torch_optimizer("Adagrad"),
    "rmsprop": torch_optimizer("RMSprop"),
    "adafactor": torch_optimizer("Adafactor"),
    "lion": lambda named, how: Lion([p for _, p in named], how["foreach"]),
    "muon": muon,
    "adamw-8bit": eight_bit,
    "none": lambda named, how: None,
}
WITHOUT_LISTS = ("adafactor", "muon", "adamw-8bit")  # which do not work on lists by themselves


def optimizer(named, o):
    """An optimizer for the (name, parameter) pairs that want gradients."""
    impl = o.optimizer_impl or ("loop" if o.optimizer in WITHOUT_LISTS else "foreach")
    return OPTIMIZERS[o.optimizer]([(name, p) for name, p in named if p.requires_grad], IMPLEMENTATIONS[impl])


def in_backward(named, o):
    """One optimizer for each parameter, which steps when the gradient is there."""
    parts = []
    for name, p in named:
        if not p.requires_grad:
            continue
        part = optimizer([(name, p)], o)
        parts.append(part)

        def update(_, part=part):
            part.step()
            part.zero_grad()

        p.register_post_accumulate_grad_hook(update)
    return Several(parts)
