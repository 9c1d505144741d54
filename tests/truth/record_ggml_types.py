"""Prints ggml's types as the gguf package knows them: number, name, elements and bytes of a block, a line each.

    python3 record_ggml_types.py > tests/data/ggml-types.txt
"""

from importlib.metadata import version

from gguf.constants import GGML_QUANT_SIZES

print(f"# gguf {version('gguf')}, gguf.constants.GGML_QUANT_SIZES: number, name, elements and bytes of a block")
for kind, (elements, size) in sorted(GGML_QUANT_SIZES.items()):
    print(int(kind), kind.name, elements, size)
