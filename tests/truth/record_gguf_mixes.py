"""Writes the type that llama.cpp's own quantisation gives each tensor of small models, for every mix it knows.

    python3 record_gguf_mixes.py --out gguf_mixes

Headers in the manner of llama.cpp's converter with room for F16 data are written to a scratch folder, `llama-quantize
--dry-run` decides. gguf_mixes/NAME.json is the configuration as Hugging Face writes it, NAME.types has lines "mix tensor
type : numbers": "*" stands for the layer's number, behind the colon stands which layers have it.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import tempfile

import gguf
import numpy as np

from record_outlines import ranges

T = gguf.GGMLQuantizationType
MIXES = """Q1_0 Q2_0 Q4_0 Q4_1 MXFP4_MOE Q5_0 Q5_1 IQ2_XXS IQ2_XS IQ2_S IQ2_M IQ1_S IQ1_M TQ1_0 TQ2_0 Q2_K Q2_K_S IQ3_XXS
IQ3_S IQ3_M IQ3_XS Q3_K_S Q3_K_M Q3_K_L IQ4_NL IQ4_XS Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K Q8_0 F16 BF16 F32""".split()


def dense(layers=20, **changed):
    return {"model_type": "llama", "hidden_size": 512, "num_hidden_layers": layers, "intermediate_size": 1024,
            "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 1000, **changed}


MODELS = {
    "grouped": dense(),
    "many_heads": dense(num_key_value_heads=8),
    "tied": dense(9, tie_word_embeddings=True),
    "odd": dense(8, hidden_size=288, intermediate_size=736, num_attention_heads=9, num_key_value_heads=3),
    "odder": dense(8, hidden_size=272, intermediate_size=500, num_attention_heads=17, num_key_value_heads=17),
    "eighty_layers": dense(80, intermediate_size=512, num_attention_heads=16),
    "eight_experts": dense(16, model_type="mixtral", intermediate_size=512, num_local_experts=8),
    "four_experts": dense(16, model_type="mixtral", intermediate_size=512, num_local_experts=4, num_key_value_heads=4),
    "many_experts": dense(17, model_type="qwen3_moe", moe_intermediate_size=256, num_experts=16, head_dim=64),
    "fused": dense(12, model_type="phi3", num_key_value_heads=8),
    "falcon": {"model_type": "falcon", "hidden_size": 512, "num_hidden_layers": 16, "num_attention_heads": 8,
               "vocab_size": 1000, "multi_query": True, "parallel_attn": True, "bias": False,
               "new_decoder_architecture": False, "alibi": False},
}
ARCHITECTURES = {"llama": "llama", "mixtral": "llama", "qwen3_moe": "qwen3moe", "phi3": "phi3", "falcon": "falcon"}


def sizes_of(c):
    heads = c["num_attention_heads"]
    return {"hidden": c["hidden_size"], "layers": c["num_hidden_layers"], "heads": heads,
            "ffn": c.get("intermediate_size", 4 * c["hidden_size"]), "kv": c.get("num_key_value_heads", 1),
            "dim": c.get("head_dim", c["hidden_size"] // heads), "vocab": c["vocab_size"],
            "experts": c.get("num_local_experts", c.get("num_experts", 0)),
            "expert_ffn": c.get("moe_intermediate_size", c.get("intermediate_size", 0)),
            "tied": c.get("tie_word_embeddings", c["model_type"] == "falcon")}


def layer_tensors(arch, s):
    hidden, q, kv = s["hidden"], s["heads"] * s["dim"], s["kv"] * s["dim"]
    yield "attn_norm.weight", (hidden,)
    if arch == "falcon":
        yield "attn_norm.bias", (hidden,)
    else:
        yield "ffn_norm.weight", (hidden,)
    if arch in ("phi3", "falcon"):
        yield "attn_qkv.weight", (q + 2 * kv, hidden)
    else:
        yield from (("attn_q.weight", (q, hidden)), ("attn_k.weight", (kv, hidden)), ("attn_v.weight", (kv, hidden)))
    yield "attn_output.weight", (hidden, q)
    if arch == "qwen3moe":
        yield from (("attn_q_norm.weight", (s["dim"],)), ("attn_k_norm.weight", (s["dim"],)))
    if s["experts"]:
        count, ffn = s["experts"], s["expert_ffn"]
        yield "ffn_gate_inp.weight", (count, hidden)
        yield from ((f"ffn_{name}_exps.weight", (count, ffn, hidden)) for name in ("gate", "up"))
        yield "ffn_down_exps.weight", (count, hidden, ffn)
    else:
        if arch not in ("phi3", "falcon"):
            yield "ffn_gate.weight", (s["ffn"], hidden)
        yield "ffn_up.weight", (2 * s["ffn"] if arch == "phi3" else s["ffn"], hidden)
        yield "ffn_down.weight", (hidden, s["ffn"])


def tensors(arch, s):
    yield "token_embd.weight", (s["vocab"], s["hidden"])
    for i in range(s["layers"]):
        for name, shape in layer_tensors(arch, s):
            yield f"blk.{i}.{name}", shape
    yield "output_norm.weight", (s["hidden"],)
    if arch == "falcon":
        yield "output_norm.bias", (s["hidden"],)
    if not s["tied"]:
        yield "output.weight", (s["vocab"], s["hidden"])


def write(path, config):
    arch, s = ARCHITECTURES[config["model_type"]], sizes_of(config)
    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(4096)
    w.add_embedding_length(s["hidden"])
    w.add_block_count(s["layers"])
    w.add_feed_forward_length(s["ffn"])
    w.add_head_count(s["heads"])
    w.add_head_count_kv(s["kv"])
    w.add_key_length(s["dim"])
    w.add_value_length(s["dim"])
    w.add_rope_dimension_count(s["dim"])
    w.add_layer_norm_rms_eps(1e-5)
    w.add_layer_norm_eps(1e-5)
    w.add_vocab_size(s["vocab"])
    w.add_tokenizer_model("no_vocab")
    if s["experts"]:
        w.add_expert_count(s["experts"])
        w.add_expert_used_count(2)
        w.add_expert_feed_forward_length(s["expert_ffn"])
    data = 0
    for name, shape in tensors(arch, s):
        wide = len(shape) == 1 or "gate_inp" in name
        size = int(np.prod(shape)) * (4 if wide else 2)
        kind = T.F32 if wide else T.F16
        w.add_tensor_info(name, shape, np.dtype("float32" if wide else "float16"), size, raw_dtype=kind)
        data += (size + 31) // 32 * 32
    w.write_header_to_file(path=path)
    w.write_kv_data_to_file()
    w.write_ti_data_to_file()
    w.close()
    header = (os.path.getsize(path) + 31) // 32 * 32
    with open(path, "r+b") as file:
        file.truncate(header + data)


LINE = re.compile(r"\] (\S+)\s+- \[.*?\], type =\s+(\w+), size =\s+[\d.]+ MiB(?: ->\s+[\d.]+ MiB \((\w+)\))?")


def types(path, mix):
    done = subprocess.run(["llama-quantize", "--dry-run", str(path), mix], capture_output=True, text=True)
    text = done.stdout + done.stderr
    found = [(m[1], m[3] or m[2]) for m in LINE.finditer(text)]
    if done.returncode != 0 or not found:
        print(f"{path.stem} {mix}: {text.strip().splitlines()[-1] if text.strip() else done.returncode}")
        return []
    return found


def lines(path):
    for mix in MIXES:
        groups = {}
        for name, kind in types(path, mix):
            layer = re.match(r"blk\.(\d+)\.", name)
            pattern = name if layer is None else "blk.*." + name[layer.end():]
            groups.setdefault((pattern, kind.lower()), []).append(None if layer is None else int(layer[1]))
        for (pattern, kind), numbers in groups.items():
            yield f"{mix} {pattern} {kind} : " + ("" if numbers == [None] else ranges(numbers))


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=pathlib.Path, required=True)
    given = options.parse_args()
    given.out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, config in MODELS.items():
            path = pathlib.Path(scratch) / f"{name}.gguf"
            write(path, config)
            (given.out / f"{name}.json").write_text(json.dumps(config) + "\n")
            (given.out / f"{name}.types").write_text("\n".join(line.rstrip() for line in lines(path)) + "\n")
            path.unlink()


if __name__ == "__main__":
    main()
