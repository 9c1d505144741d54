"""Inputs of vision-language models as their processors make them: one square image in each sequence.

A sequence is one token of text, the image's tokens, and text to its end. Pixels are in fp32 whatever the model's type.
Token ids, their kinds and the grids of patches hold real values, because the models read them back.
"""
import math

import torch

from known_values import know

QWEN = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe")
LLAVA = ("llava",)
VISION_LANGUAGE = QWEN + LLAVA


def resized(side, factor, least, most):
    """The side of a square image after smart_resize (image_processing_qwen2_vl.py)."""
    out = round(side / factor) * factor
    if out * out > most:
        return max(factor, math.floor(side / math.sqrt(side * side / most) / factor) * factor)
    if out * out < least:
        return math.ceil(side * math.sqrt(least / (side * side)) / factor) * factor
    return out


# Least and most pixels, of the preprocessor_config.json published with the weights.
BOUNDS = {"qwen2_vl": (56 * 56, 3584 * 3584), "qwen2_5_vl": (56 * 56, 3584 * 3584),
          "qwen3_vl": (256 * 256, 4096 * 4096), "qwen3_vl_moe": (256 * 256, 4096 * 4096)}


def tokens_of(config, o, image_tokens):
    """Ids of all sequences, and what each token is: text or image."""
    if o.seq_len < image_tokens + 1:
        raise ValueError(f"{o.seq_len} tokens hold no image of {image_tokens} and a token before it")
    kinds = [0] + [1] * image_tokens + [0] * (o.seq_len - image_tokens - 1)
    marker = config.image_token_id
    ids = [marker if kind else 1 for kind in kinds]
    return [ids] * o.micro_batch, [kinds] * o.micro_batch


def qwen_inputs(config, o, device):
    vision = config.vision_config
    least, most = BOUNDS[config.model_type]
    side = resized(o.image_size, vision.patch_size * vision.spatial_merge_size, least, o.image_max_pixels or most)
    patches = side // vision.patch_size
    width = vision.in_channels * vision.temporal_patch_size * vision.patch_size ** 2
    pixels = torch.rand(o.micro_batch * patches * patches, width, device=device)
    grid = know([[1, patches, patches]] * o.micro_batch, device)
    ids, kinds = tokens_of(config, o, (patches // vision.spatial_merge_size) ** 2)
    return {"input_ids": know(ids, device), "pixel_values": pixels, "image_grid_thw": grid,
            "mm_token_type_ids": know(kinds, device)}


def llava_inputs(config, o, device):
    vision = config.vision_config
    patches = (vision.image_size // vision.patch_size) ** 2
    if config.vision_feature_select_strategy == "full":
        patches += 1
    pixels = torch.rand(o.micro_batch, vision.num_channels, vision.image_size, vision.image_size, device=device)
    ids, _ = tokens_of(config, o, patches)
    return {"input_ids": know(ids, device), "pixel_values": pixels}


def vision_language_inputs(config, o, device):
    made = (qwen_inputs if config.model_type in QWEN else llava_inputs)(config, o, device)
    if o.loss != "none":
        made["labels"] = made["input_ids"]
    return made
