#!/usr/bin/env python3
"""Write tests/data/lab/torchvision-state.jsonl: what torchvision's classifiers consist of, one network of each kind:
names and shapes of parameters (in the order of registration) and of buffers, and the smallest image, in pixels of a side,
that one and two images to a batch may have in training. Usage: record_torchvision_state.py > FILE"""
import json

import torch
import torchvision

NAMES = ["alexnet", "vgg16_bn", "resnet18", "resnet50", "densenet121", "mobilenet_v2"]


def shapes(tensors):
    return {name: list(tensor.shape) for name, tensor in tensors}


def trains(model, batch, size):
    try:
        model(torch.empty(batch, 3, size, size, device="meta"))
        return True
    except (RuntimeError, ValueError):
        return False


def smallest(model, batch):
    return next(size for size in range(1, 1000) if trains(model, batch, size))


for name in NAMES:
    with torch.device("meta"):
        model = torchvision.models.get_model(name, weights=None).train()
    print(json.dumps({"name": name, "torchvision": torchvision.__version__, "smallest": [smallest(model, n) for n in (1, 2)],
                      "parameters": shapes(model.named_parameters()), "buffers": shapes(model.named_buffers())},
                     separators=(",", ":")))
