"""Every JSON document that the program prints validates against docs/schema/, and nothing else is on that stream."""

import json
import os
import pathlib
import subprocess
import unittest

import jsonschema

ROOT = pathlib.Path(os.environ["ULLAGE_SOURCE_DIR"])
BINARY = os.environ["ULLAGE_BINARY"]
LLAMA = "TinyLlama/TinyLlama-1.1B-Chat-v1.0"

CALLS = {
    "prediction": [
        ["train", LLAMA],
        ["train", LLAMA, "--gpu", "h100"],
        ["train", LLAMA, "--gpu", "t4", "--micro-batch", "8"],
        ["train", LLAMA, "--gpu", "rtx-4090", "--micro-batch", "4", "--advise"],
        ["train", LLAMA, "--advise"],
        ["train", LLAMA, "--gpu", "a100-80gb", "--seq-len", "max"],
        ["train", "gpt2", "--step", "forward"],
        ["train", "1B", "--gpu", "h100"],
        ["train", "gpt2", "--load", "torch"],
        ["train", LLAMA, "--tuner", "prefix", "--load", "meta"],
        ["train", "gpt2", "--step", "first", "--optimizer", "sgd-momentum", "--optimizer-impl", "loop"],
        ["train", "gpt2", "--optimizer", "none", "--loss", "none", "--attention", "eager", "--precision", "fp32"],
        ["train", "gpt2", "--recompute", "full", "--recompute-reentrant", "--grad-accum", "5", "--clip-grad", "1.5"],
        ["train", "gpt2", "--kernels", "cpu", "--gpu", "h100"],
        ["train", "gpt2", "--trainer", "hf", "--transformers", "4.47"],
        ["train", LLAMA, "--lora", "8", "--quantize-base", "gptq"],
        ["train", "gpt2", "--kernels", "cuda-traced", "--optimizer-impl", "fused", "--lang", "zh"],
        ["serve", LLAMA],
        ["serve", LLAMA, "--gpu", "t4", "--batch", "8", "--new-tokens", "1", "--dtype", "fp16"],
        ["serve", LLAMA, "--engine", "transformers", "--cache", "static", "--attention", "eager"],
        ["serve", "gpt2", "--cache", "quantized", "--cache-config", '{"nbits": 2}'],
        ["serve", LLAMA, "--cache", "offloaded", "--attention", "flash"],
        ["serve", "Qwen/Qwen3-32B-FP8", "--gpu", "2xh100"],
        ["serve", LLAMA, "--gpu", "2xrtx-4090", "--quantization", "nf4"],
        ["serve", LLAMA, "--gpus", "3", "--device-map", "sequential"],
        ["serve", "Qwen/Qwen3-30B-A3B", "--gpu", "rtx-4090,rtx-3090", "--quantization", "int8", "--seq-len", "128"],
        ["serve", LLAMA, "--engine", "vllm"],
        ["serve", LLAMA, "--engine", "sglang"],
        ["serve", LLAMA, "--engine", "sglang", "--gpu", "rtx-4090", "--mem-fraction-static", "0.3", "--lang", "zh"],
        ["serve", "Llama-3.1-70B", "--engine", "sglang", "--gpu", "8xh100", "--tp", "4", "--pp", "2",
         "--input-len", "1000", "--output-len", "200", "--concurrency", "max"],
        ["serve", "Qwen/Qwen3-Next-80B-A3B-Instruct", "--engine", "sglang", "--gpu", "4xh100", "--tp", "4"],
        ["serve", LLAMA, "--engine", "vllm", "--gpu", "t4", "--max-model-len", "max", "--lang", "zh",
         "--input-len", "100", "--output-len", "10", "--concurrency", "5"],
        ["serve", "Llama-3.1-70B", "--engine", "vllm", "--gpu", "8xh100", "--tensor-parallel-size", "4",
         "--pipeline-parallel-size", "2", "--quantization", "fp8", "--engine-version", "0.19.0"],
        ["serve", "Llama-3.1-8B", "--engine", "vllm", "--gpu", "rtx-3090", "--engine-version", "0.6.4"],
        ["serve", "Qwen/Qwen3.5-27B", "--engine", "vllm", "--kv-cache-memory-bytes", "4G", "--tensor-parallel-size", "2"],
    ],
    "fit": [
        ["fit", "7B", "--gpu", "rtx-4070,t4"],
        ["fit", "7B,resnet50,Qwen3-32B-FP8", "--gpu", "rtx-4090"],
        ["fit", "70B", "--gpu", "gtx-1060-6gb"],
        ["fit", "--gpu", "h100", "--rows", "3"],
        ["fit", "1B", "--rows", "2", "--context", "8192", "--dtype", "fp32"],
    ],
    "inspect": [
        ["inspect", LLAMA],
        ["inspect", "deepseek-ai/DeepSeek-V3", "--kv-cache-dtype", "fp8"],
        ["inspect", "openai/whisper-tiny"],
        ["inspect", "gpt2", "--dtype", "fp32", "--seq-len", "7"],
        ["inspect", "--tensor", "32x3x256x256", "--dtype", "fp32"],
        ["inspect", LLAMA, "--checkpoint"],
        ["inspect", str(ROOT / "tests/data/checkpoints/types.gguf"), "--checkpoint"],
        ["inspect", str(ROOT / "tests/data/checkpoints/types.safetensors"), "--checkpoint"],
        ["inspect", LLAMA, "--quantization", "nf4-dq"],
        ["inspect", "gpt2", "--quantization", "IQ3_XS"],
        ["inspect", "zai-org/GLM-5.1"],
        ["inspect", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "--quantization", "q4_k_m"],
        ["inspect", "Qwen/Qwen3-235B-A22B-FP8", "--seq-len", "8"],
    ],
    "mfu": [
        ["mfu", "--tflops", "100", "--gpu", "a100"],
        ["mfu", "gpt2", "--examples-per-second", "3", "--seq-len", "512", "--gpu", "2xh100", "--reference", "llama-7b"],
        ["mfu", "--cores", "1280", "--clock-ghz", "1.4"],
    ],
    "textbook": [["7B"], ["textbook", "--lora", "8", "--matrix", "1024x512"], ["65B", "--gpu", "8xa100", "--dtype", "int8"]],
    "models": [["models"], ["models", "llama"], ["models", "no such model"]],
    "replay": [
        ["replay", str(ROOT / "tests/data/recordings/lora.json")],
        ["replay", str(ROOT / "tests/data/recordings/lora.json"), str(ROOT / "fuzz/corpus/recording/difference.json")],
    ],
    "sweep": [
        ["train", "gpt2", "--sweep", "micro-batch=1..3"],
        ["train", "gpt2", "--gpu", "t4", "--sweep", "seq-len=512,1024,4096"],
    ],
    "check": [
        ["check", "--", "vllm", "serve", LLAMA, "--port", "1"],
        ["check", "--gpu", "rtx-3090", "--", "vllm serve meta-llama/Llama-3.1-8B --max-num-sequences 4 --nonsense"],
        ["check", "--gpu", "l4", "--", "A=1 docker run --gpus 2 vllm/vllm-openai:v0.19.0 --model /m/gpt2 -tp 2 -cc.a 1"],
    ],
    "versions": [
        ["serve", LLAMA, "--engine", "vllm", "--engine-version", "0.6.4,0.23.1"],
        ["check", "--gpu", "h100", "--engine-version", "0.9.0,0.19.0", "--", "vllm", "serve", LLAMA],
    ],
    "engines": [["engines"], ["engines", "graph"], ["engines", "no such rule"]],
    "gpus": [["gpus"], ["gpus", "--sort", "bandwidth", "--bf16"], ["gpus", "no such card"]],
}


def schema(name):
    return json.loads((ROOT / "docs" / "schema" / f"{name}.json").read_text(encoding="utf-8"))


def run(words):
    return subprocess.run([BINARY, *words], capture_output=True, text=True, encoding="utf-8", timeout=60, check=False)


class Schemas(unittest.TestCase):
    def test_every_schema_is_one(self):
        for path in sorted((ROOT / "docs" / "schema").glob("*.json")):
            with self.subTest(path.name):
                jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text(encoding="utf-8")))

    def test_every_answer_validates(self):
        for name, calls in CALLS.items():
            validator = jsonschema.Draft202012Validator(schema(name))
            for words in calls:
                with self.subTest(" ".join(words)):
                    done = run([words[0], "--json", *words[1:]])
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
                    validator.validate(json.loads(done.stdout))

    def test_weights_are_those_of_published_checkpoints(self):
        for model, dtype, total in (("Qwen/Qwen-7B-Chat-Int4", "fp16", 5860564992), ("mlx-community/Qwen3-14B-4bit", "bf16", 8307783680)):
            weights = json.loads(run(["inspect", model, "--seq-len", "8", "--dtype", dtype, "--json"]).stdout)["weights"]
            self.assertEqual(weights["bytes"], total)
            self.assertEqual(sum(t["copies"] * t["bytes"] for t in weights["tensors"]), total)
            self.assertTrue(all(sum(p["bytes"] for p in t["parts"]) == t["bytes"] for t in weights["tensors"]))

    def test_image_models_validate_where_they_are_built(self):
        done = run(["train", "resnet18", "--json"])
        if done.returncode == 2 and "is not modelled" in done.stderr:
            self.skipTest("no image family in this build")
        self.assertEqual(done.stderr, "")
        jsonschema.Draft202012Validator(schema("prediction")).validate(json.loads(done.stdout))

    def test_schemas_reject_what_is_not_in_them(self):
        answer = json.loads(run(["train", "gpt2", "--json"]).stdout)
        validator = jsonschema.Draft202012Validator(schema("prediction"))
        for spoil in (lambda a: a.update(surprise=1), lambda a: a["peak"].pop("at"), lambda a: a["peak"].update(allocated_bytes=-1)):
            spoiled = json.loads(json.dumps(answer))
            spoil(spoiled)
            self.assertFalse(validator.is_valid(spoiled))


if __name__ == "__main__":
    unittest.main()
