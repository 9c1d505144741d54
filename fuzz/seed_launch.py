"""Writes the seeds of the fuzz targets `launch` and `yaml`: every command of tests/data/launch-commands.jsonl with the
file it names, and each fault that the readers name."""

import json
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"

FAULTS = {
    "unended-quote": "vllm serve 'gpt2",
    "unended-double": "vllm serve \"gpt2 $(x",
    "growing": "A=0123456789\n" + "A=$A$A\n" * 20 + "vllm serve $A",
    "nested-shells": "bash -c \"bash -c 'vllm serve gpt2'\"",
    "entrypoint": "docker run --entrypoint vllm x/y:1 serve gpt2 --seed 1",
    "torchrun": "torchrun --nproc_per_node 2 -m vllm.entrypoints.openai.api_server --model gpt2",
    "module-run": "python -m torch.distributed.run --nnodes 1 -m sglang.launch_server --model gpt2",
    "dotted": "vllm serve gpt2 -O.mode=3 --hf-overrides.a.b 1 --hf-overrides.a 2 --speculative-config.x.y []",
    "starter-alone": "uv",
    "no-value": "vllm serve gpt2 --max-model-len",
    "unknown": "vllm serve gpt2 --max-modle-len 8 --nonsense 1 2 3",
    "bad-json": "vllm serve gpt2 --compilation-config {",
    "redirections": "x 2>&1 >y <z | vllm serve gpt2 &> a && b",
    "file-list": "vllm serve --config c\0- 1\n- 2\n",
    "file-nested": "trtllm-serve gpt2 --config c\0a:\n  b: {c: [1]}\nmax_batch_size: x\n",
}

YAML = {
    "words": "a: yes\nb: 010\nc: 1_000\nd: 1.5\ne: ~\nf: 'x'\ng: \"\\u00e9\"\nh: !!str 5\n",
    "lists": "a: [1, {b: c}]\nd:\n  - e\n  -\n",
    "blocks": "a: |\n  b\nc: >-\n  d\n  e\n",
    "alias": "a: &x 1\nb: *x\n",
    "merge": "a:\n  <<: {b: 1}\n",
    "key": "[1]: 2\n",
    "deep": "[" * 80,
    "open": "a: [1, 2\nb: 3\n",
    "tab": "a:\n\tb: 1\n",
    "documents": "a: 1\n---\nb: 2\n",
    "empty": "# nothing\n",
}


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content.encode())


def main():
    rows = [json.loads(line) for line in (ROOT / "tests/data/launch-commands.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        files = list(row.get("files", {}).values())
        write("launch", f"command-{number:02}", "\0".join([row["command"], *files]))
        for text in files:
            write("yaml", f"file-{number:02}", text)
    for name, text in FAULTS.items():
        write("launch", name, text)
    for name, text in YAML.items():
        write("yaml", name, text)


if __name__ == "__main__":
    main()
