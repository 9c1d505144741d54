"""Every family has recorded steps: a plain one, one with recompute and one under autocast."""

import collections
import json
import re
import unittest

import repository

KINDS = ("plain", "recompute", "autocast")

# What is recorded of no family of that name, or not in some kind, and why.
EXCEPTIONS = {
    "RefinedWeb": (KINDS, "an older name of falcon, which is recorded"),
    "RefinedWebModel": (KINDS, "an older name of falcon, which is recorded"),
    "phi-msft": (KINDS, "an older name of phi, which is recorded"),
    "gpt_neo": (("recompute",), "its rerun picks elements by a list, which fake tensors refuse"),
    "torchvision": (("recompute",), "its networks have no layers that their code runs again"),
    "qwen3_vl_moe": (("autocast",), "fake tensors refuse its grouped experts in fp32, which autocast begins with"),
    "baichuan": (KINDS, "written from the code published with the weights, which was not run"),
}

# Those asked for at first.
ASKED_FOR = """qwen qwen2 qwen3 gemma gemma2 gemma3_text phi phi3 gpt_neox gptj opt bloom falcon mpt gpt_bigcode starcoder2
olmo olmo2 granite smollm3 stablelm cohere internlm2 baichuan chatglm mixtral qwen2_moe qwen3_moe granitemoe phimoe gpt_oss
glm4_moe deepseek_v2 deepseek_v3 bert roberta t5 bart vit clip_vision_model whisper llava qwen2_vl qwen2_5_vl
qwen3_vl""".split()


def kinds_of(args):
    kinds = {"recompute"} if "--recompute full" in args else set()
    if "--precision amp-" in args:
        kinds.add("autocast")
    return kinds or {"plain"}


def type_of(model):
    return json.loads(model)["model_type"] if model.startswith("{") else "torchvision"


def of_log(name):
    header = dict(line[2:].split(" ", 1) for line in repository.text_of(name).splitlines()[:8] if line.startswith("# "))
    return type_of(header["model"]), kinds_of(header["args"])


def recorded():
    """Model type: how many recorded steps of each kind."""
    types = {}
    for line in repository.text_of("data/models.jsonl").splitlines():
        row = json.loads(line)
        types[row["name"]] = row.get("model_type")
    counts = collections.defaultdict(collections.Counter)
    for name in repository.files():
        if name.startswith("tests/data/events/") and name.endswith(".events"):
            family, kinds = of_log(name)
            counts[family].update(kinds)
        if re.fullmatch(r"tests/data/lab/train.*\.jsonl", name):
            for line in repository.text_of(name).splitlines():
                args = json.loads(line)["args"]
                counts[types.get(args[1]) or "torchvision"].update(kinds_of(" ".join(args)))
    return counts


def families():
    return re.findall(r'Family\{"([^"]+)"', repository.text_of("src/model/family.cc"))


class FamiliesRecorded(unittest.TestCase):
    def test_each_kind_of_each_family(self):
        counts = recorded()
        missing = {(family, kind) for family in families() for kind in KINDS if not counts[family][kind]}
        excepted = {(family, kind) for family, (kinds, _) in EXCEPTIONS.items() for kind in kinds}
        self.assertEqual(sorted(missing), sorted(excepted))

    def test_what_was_asked_for_is_built(self):
        self.assertEqual([name for name in ASKED_FOR if name not in families()], [])


if __name__ == "__main__":
    unittest.main()
