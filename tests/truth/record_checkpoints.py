"""Writes small checkpoints with the formats' own libraries, and what those libraries read in them.

    python3 record_checkpoints.py tests/data/checkpoints

Every file NAME.gguf or NAME.safetensors gets a list beside it, NAME.gguf.txt: a line a tensor with its name, type, shape (outermost first),
elements and bytes, in the order of the file.
"""

import json
import struct
import sys
from importlib.metadata import version
from pathlib import Path

import gguf
import numpy
import torch
from safetensors import safe_open
from safetensors.torch import save_file

OUT = Path(sys.argv[1])


def write_list(path, origin, rows):
    lines = [f"# {origin}"] + ["\t".join(str(cell) for cell in row) for row in rows]
    path.with_name(path.name + ".txt").write_text("\n".join(lines) + "\n")


def add_tensor(writer, name, kind, shape):
    """Zeros of that type; `shape` outermost first, in elements."""
    block, size = gguf.GGML_QUANT_SIZES[kind]
    data = numpy.zeros((*shape[:-1], shape[-1] // block * size), numpy.uint8)
    writer.add_tensor(name, data, raw_shape=data.shape, raw_dtype=kind)


def write_gguf(path):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Small")
    writer.add_block_count(2)
    writer.add_context_length(512)
    writer.add_embedding_length(256)
    writer.add_feed_forward_length([512, 768])
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_bool("llama.some.switch", True)
    writer.add_int64("llama.some.negative", -7)
    writer.add_float64("llama.some.double", 0.5)
    writer.add_array("llama.some.pattern", [True, False, True])
    writer.add_chat_template("x" * 5000)
    writer.add_token_list([f"token {i}" for i in range(1000)])
    writer.add_token_scores([0.25] * 1000)
    writer.add_token_types([1] * 1000)
    kinds = [kind for kind in gguf.GGML_QUANT_SIZES if kind.name not in ("Q8_1", "Q8_K")]
    for kind in kinds:
        add_tensor(writer, f"blk.0.{kind.name.lower()}.weight", kind, (3, 256))
    add_tensor(writer, "blk.1.stacked.weight", gguf.GGMLQuantizationType.Q4_0, (5, 2, 64))
    add_tensor(writer, "output_norm.weight", gguf.GGMLQuantizationType.F32, (7,))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def list_gguf(path):
    reader = gguf.GGUFReader(path)
    rows = [(t.name, t.tensor_type.name, "x".join(str(int(n)) for n in reversed(t.shape)), t.n_elements, t.n_bytes)
            for t in reader.tensors]
    write_list(path, f"gguf {version('gguf')}, GGUFReader; data begin at byte {reader.data_offset}", rows)


def write_safetensors(path):
    types = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2,
             torch.float8_e8m0fnu, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
             torch.uint16, torch.uint32, torch.uint64, torch.complex64, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz]
    tensors = {f"layer.{str(kind).split('.')[1]}": torch.zeros(3, 5, dtype=torch.float32).to(kind) for kind in types}
    tensors["scalar"] = torch.tensor(1.0)
    tensors["empty"] = torch.zeros(0, 4)
    tensors['name with "quotes" and \u00e9'] = torch.zeros(2, 1, 1, 3)
    save_file(tensors, path, metadata={"format": "pt"})


def list_safetensors(path):
    raw = path.read_bytes()
    end = 8 + struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:end])
    rows = []
    with safe_open(path, "pt") as opened:
        for name in header:
            if name == "__metadata__":
                continue
            tensor = opened.get_tensor(name)
            shape = "x".join(str(n) for n in tensor.shape)
            rows.append((name, opened.get_slice(name).get_dtype(), shape, tensor.numel(), tensor.nbytes))
    write_list(path, f"safetensors {version('safetensors')}, safe_open; data begin at byte {end}", rows)


OUT.mkdir(parents=True, exist_ok=True)
write_gguf(OUT / "types.gguf")
list_gguf(OUT / "types.gguf")
write_safetensors(OUT / "types.safetensors")
list_safetensors(OUT / "types.safetensors")
