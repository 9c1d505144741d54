"""Writes what transformers' cache holds behind a forward pass, layer by layer, on the meta device.

    python3 record_caches.py --models models > caches.jsonl

models/ORG__NAME.json is a config.json. Of each model that transformers knows a line: name, model type and the layers,
equal ones that follow each other once: [count, {"keys": shape, "values": shape, "indexer_keys": shape,
"conv_states": shape, "recurrent_states": shape + dtype, "window": tokens}]. One sequence of SEQ tokens in bf16, so that
what grows with tokens has SEQ in its shape. An encoder-decoder's cross attention is "cross": shapes.
"""

import argparse
import json
import pathlib
import sys

import torch
import transformers

SEQ = 7
NOT_SHAPE = ("quantization_config", "auto_map", "torch_dtype", "dtype", "transformers_version")


def model_class(config):
    for auto in (transformers.AutoModelForSpeechSeq2Seq, transformers.AutoModelForSeq2SeqLM,
                 transformers.AutoModelForCausalLM, transformers.AutoModelForImageTextToText):
        if type(config) in auto._model_mapping.keys():
            return auto
    return None


def shapes(layer):
    out = {}
    for name in ("keys", "values", "indexer_keys", "conv_states", "recurrent_states"):
        tensor = getattr(layer, name, None)
        if tensor is not None and tensor.numel():
            out[name] = [*tensor.shape] + ([str(tensor.dtype)] if name == "recurrent_states" else [])
    if getattr(layer, "sliding_window", None):
        out["window"] = layer.sliding_window
    return out


def run(model, config):
    text = config.get_text_config(decoder=True)
    ids = torch.zeros(1, SEQ, dtype=torch.long, device="meta")
    if config.model_type == "whisper":
        features = torch.zeros(1, config.num_mel_bins, 2 * config.max_source_positions, dtype=torch.bfloat16, device="meta")
        return model(input_features=features, decoder_input_ids=ids, use_cache=True)
    if config.is_encoder_decoder:
        return model(input_ids=ids, decoder_input_ids=ids, use_cache=True)
    cache = transformers.DynamicCache(config=text)
    return model(input_ids=ids, past_key_values=cache, use_cache=True)


def groups(layers):
    out = []
    for layer in layers:
        if out and out[-1][1] == layer:
            out[-1][0] += 1
        else:
            out.append([1, layer])
    return out


def record(file):
    fields = {k: v for k, v in json.loads(file.read_text()).items() if not k.startswith("_") and k not in NOT_SHAPE}
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    auto = model_class(config)
    if auto is None:
        raise ValueError("no class that generates")
    with torch.device("meta"):
        model = auto.from_config(config, dtype=torch.bfloat16)
    with torch.no_grad():
        cache = run(model.eval(), config).past_key_values
    row = {"model": file.stem.replace("__", "/", 1), "model_type": config.model_type}
    if isinstance(cache, transformers.EncoderDecoderCache):
        row["cross"] = groups([shapes(layer) for layer in cache.cross_attention_cache.layers])
        cache = cache.self_attention_cache
    row["layers"] = groups([shapes(layer) for layer in cache.layers])
    return row


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--models", type=pathlib.Path, required=True)
    options.add_argument("types", nargs="*")
    given = options.parse_args()
    for file in sorted(given.models.glob("*.json")):
        if given.types and json.loads(file.read_text()).get("model_type") not in given.types:
            continue
        try:
            print(json.dumps(record(file)), flush=True)
        except Exception as error:  # what one model cannot do is no matter to the others
            print(f"{file.stem}: {type(error).__name__}: {str(error)[:150]}", file=sys.stderr)


if __name__ == "__main__":
    main()
