#!/usr/bin/env python3
"""Write tests/data/lab/torchvision.json: parameters and multiply-accumulates of torchvision's classifiers, counted from
the modules themselves (convolutions and linear layers; one image of 224 by 224). Usage: record_torchvision.py > FILE"""
import json

import torch
import torchvision

from image_models import NAMES, facts

print(json.dumps({"torch": torch.__version__, "torchvision": torchvision.__version__,
                  "models": [facts(name) for name in NAMES]}, indent=1))
