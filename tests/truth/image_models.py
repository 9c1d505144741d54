"""torchvision's classifiers: building one, its inputs, its loss, and counts of parameters and multiply-accumulates."""
import torch
import torch.nn.functional as F
import torchvision

from training_step import DTYPES

NAMES = ["alexnet", "vgg11", "vgg11_bn", "vgg13", "vgg13_bn", "vgg16", "vgg16_bn", "vgg19", "vgg19_bn", "resnet18", "resnet34",
         "resnet50", "resnet101", "resnet152", "densenet121", "mobilenet_v2"]
CLASSES = 1000


def image_model(name, o):
    """All in one dtype, running statistics too, as `.to(dtype)` makes it (which fake tensors do not allow)."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(DTYPES[o.precision])
    try:
        with torch.device("cuda"):
            return torchvision.models.get_model(name, weights=None).train()
    finally:
        torch.set_default_dtype(usual)


def image_inputs(o):
    images = torch.rand(o.micro_batch, 3, o.image_size, o.image_size, dtype=DTYPES[o.precision], device="cuda")
    labels = torch.randint(0, CLASSES, (o.micro_batch,), device="cuda")
    return {"images": images, "labels": labels}


def image_loss(model, inputs):
    out = model(inputs["images"])
    return out, F.cross_entropy(out, inputs["labels"])


def multiply_accumulates(model, size):
    """Of one image's forward pass, in convolutions and in linear layers: outputs times the inputs that each reads."""
    counts = {"convolutions": 0, "linear": 0}

    def convolution(module, _, out):
        height, width = module.kernel_size
        counts["convolutions"] += out.numel() * (module.in_channels // module.groups) * height * width

    def linear(module, _, out):
        counts["linear"] += out.numel() * module.in_features

    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.register_forward_hook(convolution)
        elif isinstance(module, torch.nn.Linear):
            module.register_forward_hook(linear)
    model(torch.empty(1, 3, size, size, device="meta"))
    return counts


def facts(name, size=224):
    with torch.device("meta"):
        model = torchvision.models.get_model(name, weights=None).eval()
    linear = sum(p.numel() for m in model.modules() if isinstance(m, torch.nn.Linear) for p in m.parameters())
    counts = multiply_accumulates(model, size)
    return {"name": name, "image_size": size, "parameters": sum(p.numel() for p in model.parameters()),
            "linear_parameters": linear, "buffers": sum(b.numel() for b in model.buffers()),
            "multiply_accumulates": sum(counts.values()), **{f"{k}_multiply_accumulates": v for k, v in counts.items()}}
