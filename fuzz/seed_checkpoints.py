"""Writes the seeds of the corpora for checkpoints: small valid files of every kind, and each fault that is told.

    python3 fuzz/seed_checkpoints.py
"""

import json
import struct
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"


def u32(n):
    return struct.pack("<I", n)


def u64(n):
    return struct.pack("<Q", n)


def text(s):
    raw = s.encode()
    return u64(len(raw)) + raw


def entry(key, kind, value):
    return text(key) + u32(kind) + value


def number(key, n):
    return entry(key, 4, u32(n))


def tensor(name, sizes, kind, offset):
    return text(name) + u32(len(sizes)) + b"".join(u64(n) for n in sizes) + u32(kind) + u64(offset)


def gguf(entries, tensors, data=0, version=3, alignment=32):
    out = b"GGUF" + u32(version) + u64(len(tensors)) + u64(len(entries)) + b"".join(entries) + b"".join(tensors)
    out += bytes(-len(out) % alignment)
    return out + bytes(data)


def model(arch, more=(), tensors=()):
    entries = [entry("general.architecture", 8, text(arch)), number(f"{arch}.context_length", 512),
               number(f"{arch}.block_count", 2), number(f"{arch}.embedding_length", 64),
               number(f"{arch}.feed_forward_length", 128), number(f"{arch}.attention.head_count", 4),
               number(f"{arch}.attention.head_count_kv", 2), *more]
    return gguf(entries, [tensor("token_embd.weight", (64, 4), 0, 0), *tensors], 64 * 4 * 4)


def gguf_seeds():
    yield "empty", gguf([], [])
    yield "version2", gguf([], [tensor("a", (8,), 0, 0)], 32, version=2)
    yield "version1", gguf([], [], version=1)
    yield "big_endian", b"GGUF" + struct.pack(">I", 3) + bytes(16)
    yield "no_gguf", b"PK\3\4"
    kinds = [(0, b"\x01"), (1, b"\xff"), (2, b"\1\0"), (3, b"\xff\xff"), (4, u32(7)), (5, u32(7)), (6, u32(0x3f800000)),
             (7, b"\1"), (8, text("value")), (10, u64(2**63)), (11, u64(5)), (12, u64(0))]
    yield "kinds", gguf([entry(f"k{kind}", kind, raw) for kind, raw in kinds], [])
    yield "arrays", gguf([entry("numbers", 9, u32(4) + u64(3) + u32(1) * 3), entry("reals", 9, u32(6) + u64(2) + u64(0)),
                          entry("texts", 9, u32(8) + u64(2) + text("a") + text("bc")),
                          entry("flags", 9, u32(7) + u64(2) + b"\0\1"),
                          entry("long", 9, u32(0) + u64(10_001) + bytes(10_001))], [])
    yield "nested_array", gguf([entry("a", 9, u32(9) + u64(1) + u32(4) + u64(0))], [])
    yield "long_text", gguf([entry("a", 8, text("x" * 2000))], [])
    yield "long_key", gguf([], [])[:16] + u64(1) + u64(70_000) + bytes(10)
    yield "bad_kind", gguf([entry("a", 13, bytes(8))], [])
    for name, kind, raw in (("alignment64", 4, u32(64)), ("alignment48", 4, u32(48)), ("alignment0", 4, u32(0))):
        yield name, gguf([entry("general.alignment", kind, raw)], [tensor("a", (8,), 0, 0)], 64, alignment=64)
    yield "types", gguf([], [tensor("q", (256, 2), 12, 0), tensor("f", (4, 3, 2, 1), 1, 288)], 288 + 48)
    yield "header_only", gguf([], [tensor("a", (8,), 0, 0)])
    yield "cut", gguf([], [tensor("a", (8,), 0, 0)], 31)
    yield "cut_header", gguf([], [tensor("a", (8,), 0, 0)])[:40]
    yield "overlap", gguf([], [tensor("a", (16,), 0, 0), tensor("b", (8,), 0, 32)], 96)
    yield "unsorted", gguf([], [tensor("a", (8,), 0, 32), tensor("b", (8,), 0, 0)], 64)
    yield "twice", gguf([], [tensor("a", (8,), 0, 0), tensor("a", (8,), 0, 32)], 64)
    yield "unaligned", gguf([], [tensor("a", (8,), 0, 5)], 64)
    yield "row", gguf([], [tensor("a", (33,), 8, 0)], 64)
    yield "unknown_type", gguf([], [tensor("a", (8,), 77, 0)], 64)
    yield "rank5", gguf([], [tensor("a", (1, 1, 1, 1, 1), 0, 0)], 64)
    yield "negative", gguf([], [tensor("a", (8, 2**64 - 1), 0, 0)], 64)
    yield "huge", gguf([], [tensor("a", (2**40, 2**40), 0, 0)], 64)
    yield "huge_zero", gguf([], [tensor("a", (5, 2**62, 2**62, 0), 0, 0)], 64)
    yield "long_name", gguf([], [tensor("n" * 65, (8,), 0, 0)], 64)
    yield "claims", b"GGUF" + u32(3) + u64(2**62) + u64(2**62)
    part = [entry("split.no", 2, b"\0\0"), entry("split.count", 2, b"\2\0"), entry("split.tensors.count", 5, u32(2))]
    first = gguf(part, [tensor("a", (8,), 0, 0)], 32)
    yield "part", first

    def second(number, name, front=b""):
        entries = [entry("split.no", 2, bytes([number, 0])), entry("split.count", 2, b"\2\0")]
        return front + gguf(entries, [tensor(name, (8,), 0, 0)], 32)

    yield "parts", first + second(1, "b")
    yield "parts_same_number", first + second(0, "b")
    yield "parts_same_tensor", first + second(1, "a")
    yield "part_missing", first + second(1, "b", b"m")
    part[2] = entry("split.tensors.count", 5, u32(3))
    yield "parts_too_few", gguf(part, [tensor("a", (8,), 0, 0)], 32) + second(1, "b")
    yield "llama", model("llama", [number("llama.rope.dimension_count", 16)], [tensor("output.weight", (64, 4), 0, 1024)]) + bytes(1024)
    yield "mixtral", model("llama", [number("llama.expert_count", 4), number("llama.expert_used_count", 2)])
    yield "per_layer", model("qwen3", [entry("qwen3.attention.sliding_window", 9, u32(4) + u64(2) + u32(1) + u32(2))])
    yield "differing", model("gemma2", [entry("gemma2.attention.key_length", 9, u32(4) + u64(2) + u32(1) + u32(2))])
    yield "same_in_all", model("gemma3", [entry("gemma3.attention.key_length", 9, u32(4) + u64(2) + u32(16) * 2)])
    yield "deepseek", model("deepseek2", [number("deepseek2.attention.kv_lora_rank", 32),
                                          number("deepseek2.rope.dimension_count", 8),
                                          number("deepseek2.attention.key_length", 24),
                                          number("deepseek2.attention.value_length", 16)])
    for arch in ("qwen3moe", "glm4", "glm4moe", "phi3", "granite", "gpt-oss", "unknown"):
        yield arch, model(arch, [number(f"{arch}.rope.dimension_count", 8)])
    yield "tokens", gguf([entry("general.architecture", 8, text("qwen2")),
                          entry("tokenizer.ggml.tokens", 9, u32(8) + u64(2) + text("a") + text("b"))], [])
    yield "vocab_size", gguf([entry("general.architecture", 8, text("qwen2")), number("qwen2.vocab_size", 10)], [])
    yield "architecture_is_a_number", gguf([number("general.architecture", 4)], [])


def safetensors(header, data):
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return u64(len(raw)) + raw + bytes(data)


def one(dtype="F32", shape=(2,), offsets=(0, 8), **more):
    return {"t": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets), **more}}


def safetensors_seeds():
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "F8_E4M3FNUZ": 1,
             "F8_E5M2FNUZ": 1, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U64": 8, "U32": 4, "U16": 2, "U8": 1, "BOOL": 1,
             "C64": 8}
    header, end = {"__metadata__": {"format": "pt", "nested": [1, {"a": None}]}}, 0
    for name, size in sizes.items():
        header[name.lower()] = {"dtype": name, "shape": [2, 3], "data_offsets": [end, end + 6 * size]}
        end += 6 * size
    header["f4"] = {"dtype": "F4", "shape": [4], "data_offsets": [end, end + 2]}
    header["f6"] = {"dtype": "F6_E2M3", "shape": [4], "data_offsets": [end + 2, end + 5]}
    yield "types", safetensors(header, end + 5)
    yield "header_only", safetensors(one(), 0)
    yield "plain", safetensors(one(unknown=[1, "x"]), 8)
    yield "blanks", safetensors(json.dumps(one()).encode() + b"   \n", 8)
    yield "escapes", safetensors(b'{"a\\"\\u00e9\\ud83d\\ude00\\n\\\\":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}', 1)
    yield "bad_escape", safetensors(b'{"\\x":{}}', 0)
    yield "half_pair", safetensors(b'{"\\ud800":{}}', 0)
    yield "unsorted", safetensors({"a": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]},
                                   "b": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}, 2)
    yield "overlap", safetensors({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                  "b": {"dtype": "U8", "shape": [1], "data_offsets": [1, 2]}}, 2)
    yield "gap", safetensors(one(offsets=(4, 12)), 12)
    yield "cut", safetensors(one(), 7)
    yield "longer", safetensors(one(), 9)
    yield "cut_header", safetensors(one(), 8)[:20]
    yield "type", safetensors(one("Q8"), 8)
    yield "size", safetensors(one(offsets=(0, 7)), 7)
    yield "backwards", safetensors(one(offsets=(8, 0)), 8)
    yield "three_offsets", safetensors(one(offsets=(0, 8, 8)), 8)
    yield "no_dtype", safetensors({"t": {"shape": [2], "data_offsets": [0, 8]}}, 8)
    yield "half_byte", safetensors(one("F4", (3,), (0, 1)), 1)
    yield "rank", safetensors(one("U8", (1,) * 9, (0, 1)), 1)
    yield "huge", safetensors(one("U8", (2**62, 4), (0, 1)), 1)
    yield "list", safetensors([1], 0)
    yield "deep", safetensors(b'{"__metadata__":' + b"[" * 100, 0)
    yield "huge_header", u64(2**63) + b"{}"
    yield "tiny", b"\1\0\0"
    for name, raw in (("bad_number", b"01"), ("real", b"1.5"), ("overflow", b"9223372036854775808"), ("no_number", b"x")):
        yield name, safetensors(b'{"t":{"shape":[' + raw + b"]}}", 0)


def index_seeds():
    yield "plain", json.dumps({"metadata": {"total_size": 8, "x": "y"}, "weight_map": {"a": "1", "a ": "2"}}).encode()
    yield "good", json.dumps({"weight_map": {"a": "1.safetensors"}}).encode()
    yield "two", json.dumps({"metadata": {"total_size": "8"}, "weight_map": {"a": "1.s", "b": "2.s", "c": "1.s"}}).encode()
    yield "missing", json.dumps({"weight_map": {"a": "1234567"}}).encode()
    yield "real_total", b'{"metadata":{"total_size":1.6e9},"weight_map":{"a":"1"}}'
    yield "escapes", b'{"weight_map":{"\\u0061":"\\u0031","a\\n":"1"}}'
    yield "no_map", b'{"metadata":1}'
    yield "empty_map", b'{"weight_map":{}}'
    yield "number", b'{"weight_map":{"a":1}}'
    yield "cut", b'{"weight_map":{"a":"1'
    for name, file in (("absolute", "/x"), ("outside", "../x"), ("no_name", ""), ("windows", "a\\\\b")):
        yield name, b'{"weight_map":{"a":"' + file.encode() + b'"}}'


for kind, seeds in (("gguf", gguf_seeds()), ("safetensors", safetensors_seeds()), ("safetensors_index", index_seeds())):
    (CORPUS / kind).mkdir(parents=True, exist_ok=True)
    for name, raw in seeds:
        (CORPUS / kind / name).write_bytes(raw)
