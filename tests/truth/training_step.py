"""One training step as `ullage train` means it, on fake CUDA tensors and the published model classes.

    out = model(input_ids, labels); loss = out.loss; [after_forward: first micro-batch]; del out;
    loss.backward(); del loss and inputs; [after_backward: last micro-batch]; clipping;
    optimizer.step(); zero_grad(set_to_none=True); [after_step]

With --grad-scaler the loss is scaled before backward, gradients are unscaled before they are clipped or by the
step, which is the scaler's, and the scale is updated behind it.

A steady step is recorded after one complete step, a first step without any before it. A forward step is a
forward pass alone with nothing before it, so neither optimizer states nor gradients exist.
"""
import argparse
import json

import torch
import transformers
from transformers.initialization import TORCH_INIT_FUNCTIONS

from optimizers import IMPLEMENTATIONS, OPTIMIZERS, in_backward, optimizer
from storage_watch import in_blocks
from vision_inputs import VISION_LANGUAGE, vision_language_inputs

# Weights have no values here; torch's way to draw these reads some back.
TORCH_INIT_FUNCTIONS["trunc_normal_"] = lambda tensor, **_: tensor

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "pure-bf16": torch.bfloat16,
          "amp-bf16": torch.float32, "amp-fp16": torch.float32}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-fp16": torch.float16}
PACKED = ("gptq", "awq")
TUNERS = ["lora", "lora-fa", "dora", "ia3", "prompt", "prefix", "adapter", "adapter-v2"]


def parse_options(words):
    """The options of `ullage train` that a lab step can honour, under their names and defaults there."""
    p = argparse.ArgumentParser(prog="job", allow_abbrev=False)
    p.add_argument("--kernels", choices=["cuda-traced", "cpu"], default="cuda-traced")
    p.add_argument("--micro-batch", type=int, default=1)
    p.add_argument("--seq-len", type=int, default=2048)
    p.add_argument("--image-size", type=int, default=224)
    p.add_argument("--image-max-pixels", type=int, default=0)
    p.add_argument("--grad-accum", type=int, default=1)
    p.add_argument("--step", choices=["first", "steady", "forward"], default="steady")
    p.add_argument("--precision", choices=list(DTYPES), default="bf16")
    p.add_argument("--optimizer", choices=list(OPTIMIZERS), default="adamw")
    p.add_argument("--optimizer-impl", choices=list(IMPLEMENTATIONS))
    p.add_argument("--optimizer-in-backward", action="store_true")
    p.add_argument("--clip-grad", type=float, default=0.0)
    p.add_argument("--grad-scaler", action="store_true")
    p.add_argument("--recompute", choices=["none", "full"], default="none")
    p.add_argument("--recompute-reentrant", action="store_true")
    p.add_argument("--recompute-vision", action="store_true")
    p.add_argument("--transformers", default="5.12")
    p.add_argument("--attention", choices=["sdpa", "eager", "flash"], default="sdpa")
    p.add_argument("--loss", choices=["full", "chunked", "fused", "none"], default="full")
    p.add_argument("--compile", action="store_true")
    p.add_argument("--offload", choices=["activations"])
    p.add_argument("--modules", default="transformers")
    p.add_argument("--modules-version", default="")
    p.add_argument("--trainer", choices=["none", "hf"], default="none")
    p.add_argument("--lora", type=int, default=0)
    p.add_argument("--lora-targets", default="")
    p.add_argument("--lora-dropout", type=float, default=0.0)
    p.add_argument("--lora-dtype", choices=["fp32", "base"], default="fp32")
    p.add_argument("--tuner", choices=TUNERS)
    p.add_argument("--virtual-tokens", type=int, default=0)
    p.add_argument("--modules-to-save", default="")
    p.add_argument("--quantize-base", choices=["nf4", "nf4-dq", "fp4", "int8", "gptq", "awq"])
    p.add_argument("--prepare-kbit", action="store_true")
    p.add_argument("--freeze", default="")
    p.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    return p.parse_args(words)


def device_of(o):
    return "cpu" if o.kernels == "cpu" else "cuda"


NOT_SHAPE = ("quantization_config", "auto_map", "torch_dtype", "dtype")


def configuration(fields, changes=()):
    """A transformers configuration from a config.json's fields and --set changes."""
    fields = {k: v for k, v in fields.items() if not k.startswith("_") and k not in NOT_SHAPE}
    for change in changes:
        key, value = change.split("=", 1)
        *path, last = key.split(".")
        place = fields
        for name in path:
            place = place.setdefault(name, {})
        place[last] = json.loads(value)
    config = transformers.AutoConfig.for_model(fields.pop("model_type"), **fields)
    config.use_cache = False
    return config


MASKED = ("bert", "roberta")
SEQUENCE_TO_SEQUENCE = ("bart", "t5")
IMAGES = ("vit", "clip", "clip_vision_model")
SPEECH = ("whisper",)


def model_class(config):
    """The published class whose loss is the one that its pretraining minimises."""
    if config.model_type in MASKED:
        return transformers.AutoModelForMaskedLM
    if config.model_type in SEQUENCE_TO_SEQUENCE:
        return transformers.AutoModelForSeq2SeqLM
    if config.model_type in IMAGES:
        return transformers.AutoModelForImageClassification
    if config.model_type in SPEECH:
        return transformers.AutoModelForSpeechSeq2Seq
    if config.model_type in VISION_LANGUAGE:
        return transformers.AutoModelForImageTextToText
    return transformers.AutoModelForCausalLM


def language_model(config, o):
    if config.model_type == "clip_vision_model":  # a tower alone has no class with a loss
        config = transformers.CLIPConfig(vision_config=config.to_dict(), num_labels=config.num_labels)
    with torch.device(device_of(o)):
        model = model_class(config).from_config(config, dtype=DTYPES[o.precision], attn_implementation=o.attention)
    model.train()
    if o.loss == "fused":
        from fused_loss import fuse
        fuse(model)
    if o.recompute == "full":
        model.gradient_checkpointing_enable({"use_reentrant": o.recompute_reentrant})
    if o.recompute_vision:
        tower = getattr(model.model, "visual", None) or model.model.vision_tower
        tower.gradient_checkpointing_enable({"use_reentrant": o.recompute_reentrant})
    if o.transformers != "5.12":
        from old_losses import as_before
        as_before(model, o.transformers)
    if o.quantize_base in PACKED:
        from packed_models import pack
        pack(model, o.quantize_base, AUTOCAST.get(o.precision, DTYPES[o.precision]))
    elif o.quantize_base:
        from quantised_models import quantise
        quantise(model, o.quantize_base, AUTOCAST.get(o.precision, DTYPES[o.precision]), o.prepare_kbit)
        if o.prepare_kbit and o.recompute_reentrant:
            model.enable_input_require_grads()
    if o.lora or o.tuner:
        from adapted_models import adapted
        return adapted(model, o)
    for name, parameter in model.named_parameters():
        if any(f".{frozen}." in f".{name}" for frozen in o.freeze.split(",") if frozen):
            parameter.requires_grad_(False)
    return model


def inputs(config, o):
    if config.model_type in IMAGES:
        return image_inputs(config, o)
    if config.model_type in SPEECH:
        return speech_inputs(config, o)
    if config.model_type in VISION_LANGUAGE:
        return vision_language_inputs(config, o, device_of(o))
    return text_inputs(config, o)


def image_inputs(config, o):
    images = torch.rand(o.micro_batch, 3, o.image_size, o.image_size, dtype=DTYPES[o.precision], device=device_of(o))
    labels = torch.zeros(o.micro_batch, dtype=torch.long, device=device_of(o))
    return {"pixel_values": images} if o.loss == "none" else {"pixel_values": images, "labels": labels}


def speech_inputs(config, o):
    shape = o.micro_batch, config.num_mel_bins, 2 * config.max_source_positions
    features = torch.rand(shape, dtype=DTYPES[o.precision], device=device_of(o))
    return {"input_features": features, "labels": text_inputs(config, o)["input_ids"]}


def text_inputs(config, o):
    tokens = torch.randint(0, config.vocab_size, (o.micro_batch, o.seq_len), device=device_of(o))
    return {"input_ids": tokens} if o.loss == "none" else {"input_ids": tokens, "labels": tokens}


def held(tensors, device):
    """(bytes, bytes in blocks) of the distinct storages behind a device's tensors."""
    storages = {t.untyped_storage()._cdata: t.untyped_storage().size()
                for t in tensors if isinstance(t, torch.Tensor) and t.device.type == device}
    return sum(storages.values()), sum(map(in_blocks, storages.values()))


def quantised_parts(model, o):
    """What belongs to the weights but is no parameter."""
    if not o.quantize_base:
        return []
    if o.quantize_base in PACKED:
        from packed_models import packed_tensors
        return packed_tensors(model)
    if o.modules == "torchtune":
        from torchtune_models import inner_tensors
        return inner_tensors(model)
    if o.modules == "litgpt":
        from old_quantised_models import quantised_tensors
    else:
        from quantised_models import quantised_tensors
    return quantised_tensors(model)


class Step:
    """Plays steps of one model; calls mark(name, sizes) at each phase of the last one."""

    def __init__(self, model, next_inputs, loss_of, o, watch, mark):
        self.model, self.next_inputs, self.loss_of, self.o = model, next_inputs, loss_of, o
        self.watch, self.mark = watch, mark
        self.parameters = [p for p in model.parameters() if not hasattr(p, "quantized_data")]  # a shell
        self.trained = [p for p in self.parameters if p.requires_grad]
        self.optimizer = (in_backward if o.optimizer_in_backward else optimizer)(list(model.named_parameters()), o)
        self.scaler = torch.amp.GradScaler(device_of(o), enabled=o.grad_scaler)
        for tensor in [*self.parameters, *quantised_parts(model, o), *model.buffers(), *self.states()]:
            watch.take_in(tensor)

    def states(self):
        """What the optimizer keeps; Adagrad's exist before any step."""
        states = self.optimizer.state.values() if self.optimizer else []
        return [t for s in states for t in s.values() if isinstance(t, torch.Tensor)]

    def play(self):
        with self.watch:
            if self.o.step == "steady":
                self.whole(silent=True)
            self.whole(silent=False)

    def whole(self, silent):
        mark = (lambda name: None) if silent else (lambda name: self.mark(name, self.sizes()))
        if not silent:
            self.watch.restart_peak()
        mark("before_step")
        for micro in range(self.o.grad_accum):
            first, last = micro == 0, micro == self.o.grad_accum - 1
            inputs = self.next_inputs()
            with torch.autocast(device_of(self.o), dtype=AUTOCAST.get(self.o.precision), enabled=self.o.precision in AUTOCAST):
                out, loss = self.loss_of(self.model, inputs)
            if first:
                mark("after_forward")
            del out
            if self.o.step == "forward":
                return
            self.scaler.scale(loss).backward()
            del loss, inputs
            if last:
                mark("after_backward")
        self.update()
        mark("after_step")

    def update(self):
        if self.o.clip_grad > 0:
            if self.optimizer is not None:
                self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.trained, self.o.clip_grad)
        if self.optimizer is not None and not self.o.optimizer_in_backward:
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()

    def sizes(self):
        """Live, parameters, gradients, optimizer states: each (bytes, bytes in blocks)."""
        parameters = [*self.parameters, *quantised_parts(self.model, self.o)]
        groups = (parameters, (p.grad for p in self.parameters), self.states())
        return ((self.watch.live, self.watch.live_blocks), *(held(group, device_of(self.o)) for group in groups))


def language_loss(o):
    def run(model, inputs):
        out = model(**inputs)
        return out, out.logits.sum() if o.loss == "none" else out.loss
    return run


class LoopStep(Step):
    """Step with the training loop of another code base, whose names stay bound until they are bound again."""

    def __init__(self, loop, *rest):
        self.loop, self.inputs, self.logits, self.loss = loop, None, None, None
        super().__init__(loop.model, *rest)

    def whole(self, silent):
        mark = (lambda name: None) if silent else (lambda name: self.mark(name, self.sizes()))
        if self.loop.longest_first:  # what came before was shorter, and is left out
            self.inputs = self.logits = self.loss = None
        if not silent:
            self.watch.restart_peak()
        mark("before_step")
        for micro in range(self.o.grad_accum):
            self.inputs = self.next_inputs()
            self.logits = self.loop.forward(self.inputs)
            self.loss = self.loop.loss_of_logits(self.logits, self.inputs["targets"])
            if micro == 0:
                mark("after_forward")
            if self.o.step == "forward":
                return
            (self.loss / self.o.grad_accum).backward()
            if micro == self.o.grad_accum - 1:
                mark("after_backward")
                self.update()
                mark("after_step")
            if not self.loop.longest_first:  # the loop makes a number of it
                self.loss = None


class TitanStep(Step):
    """Step as torchtitan's train_step takes it: its names end with it, and gradients go when the next one begins."""

    def whole(self, silent):
        mark = (lambda name: None) if silent else (lambda name: self.mark(name, self.sizes()))
        if not silent:
            self.watch.restart_peak()
        mark("before_step")
        self.train_step(mark)
        if self.o.step == "forward":
            return
        self.optimizer.zero_grad()
        mark("after_step")

    def train_step(self, mark):
        microbatches = []
        local_valid_tokens = torch.tensor(0, dtype=torch.int64)
        for _ in range(self.o.grad_accum):
            inputs, labels = self.next_inputs()
            local_valid_tokens += (labels != -100).sum()
            microbatches.append(({"input": inputs}, labels))
        del inputs
        local_valid_tokens = local_valid_tokens.to("cuda")
        global_valid_tokens = local_valid_tokens.float()
        accumulated_losses = []
        for number, (input_dict, labels) in enumerate(microbatches):
            input_dict["input"] = input_dict["input"].to("cuda")
            labels = labels.to("cuda")
            loss = self.forward_backward_step(input_dict["input"], labels, global_valid_tokens, number, mark)
            if self.o.step == "forward":
                return
            accumulated_losses.append(loss.detach())
        if self.o.clip_grad > 0:
            from torchtitan_models import clip
            grad_norm = clip(self.trained, self.o.clip_grad)
        self.optimizer.step()
        loss = torch.sum(torch.stack(accumulated_losses))

    def forward_backward_step(self, inputs, labels, global_valid_tokens, number, mark):
        half = self.o.precision in ("bf16", "amp-bf16")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=half):
            pred = self.model(inputs)
            loss_sum = self.loss_of(pred, labels)
            loss = loss_sum / global_valid_tokens
        if number == 0:
            mark("after_forward")
        if self.o.step == "forward":
            return None
        del pred
        loss.backward()
        if number == self.o.grad_accum - 1:
            mark("after_backward")
        return loss


class ComposerStep(Step):
    """Step as Composer's trainer takes it: what the model gave, and the loss, stay until they are made anew, metrics are
    updated behind each backward pass, and gradients go when the next batch begins."""

    def __init__(self, model, *rest):
        from llm_foundry_models import decoupled
        super().__init__(model, *rest)
        self.optimizer = decoupled(model, self.o)
        self.batch = self.outputs = self.loss = None

    def whole(self, silent):
        mark = (lambda name: None) if silent else (lambda name: self.mark(name, self.sizes()))
        if not silent:
            self.watch.restart_peak()
        mark("before_step")
        self.train_batch(mark)
        if self.o.step == "forward":
            return
        if self.optimizer:
            self.optimizer.zero_grad()
        mark("after_step")

    def train_batch(self, mark):
        for metric in self.model.train_metrics.values():
            metric.reset()
        total_loss = torch.zeros(size=(1,)).to("cuda")
        self.train_microbatches(total_loss, mark)
        if self.o.step != "forward" and self.optimizer:
            self.optimizer.step()

    def train_microbatches(self, total_loss, mark):
        current_batch_size = torch.tensor(self.o.micro_batch * self.o.grad_accum).to("cuda")
        current_batch_size = current_batch_size.item()
        for number in range(self.o.grad_accum):
            self.batch = self.next_inputs()
            self.batch = {name: tensor.to("cuda") for name, tensor in self.batch.items()}
            microbatch_loss_dict = self.train_microbatch(number, mark)
            if self.o.step == "forward":
                return
            for microbatch_loss in microbatch_loss_dict.values():
                total_loss += microbatch_loss
        self.batch = None
        if self.o.clip_grad > 0:
            torch.nn.utils.clip_grad_norm_(self.trained, self.o.clip_grad)

    def precision(self):
        return torch.autocast("cuda", dtype=AUTOCAST.get(self.o.precision), enabled=self.o.precision in AUTOCAST)

    def train_microbatch(self, number, mark):
        device_batch = {name: tensor.clone() for name, tensor in self.batch.items()}  # deepcopy
        with self.precision():
            self.outputs = self.model(self.batch)
        with self.precision():
            self.loss = self.model.loss(self.outputs, self.batch)
        if number == 0:
            mark("after_forward")
        if self.o.step == "forward":
            return None
        microbatch_loss = torch.zeros(size=(1,)).to("cuda")
        microbatch_loss.add_(self.loss.mean())
        microbatch_loss_dict = {"total": microbatch_loss}
        for k, loss in microbatch_loss_dict.items():
            microbatch_loss_dict[k] = loss.detach().clone().mean() * (1 / self.o.grad_accum)
        microbatch_loss.mul_(1 / self.o.grad_accum)
        microbatch_loss.backward()
        if number == self.o.grad_accum - 1:
            mark("after_backward")
        with torch.no_grad(), self.precision():
            for metric in self.model.train_metrics.values():
                metric.move()
            eval_outputs = self.model.eval_forward(device_batch, self.outputs)
            for metric in self.model.train_metrics.values():
                self.model.update_metric(device_batch, eval_outputs, metric)
        return microbatch_loss_dict


class RecipeStep(Step):
    """Step as torchtune's recipes take it: losses are sums over tokens, and gradients are divided by their number."""

    def __init__(self, recipe, *rest):
        self.recipe, self.batch, self.loss = recipe, None, None
        o, next_inputs = rest[2], rest[0]
        if o.compile:  # at first use, which nobody is to see
            recipe.loss_step(next_inputs()).backward()
            recipe.model.zero_grad()
        super().__init__(recipe.model, *rest)
        self.watch.take_in(recipe.ignored)

    def whole(self, silent):
        mark = (lambda name: None) if silent else (lambda name: self.mark(name, self.sizes()))
        self.batch = self.loss = None
        if not silent:
            self.watch.restart_peak()
        mark("before_step")
        running_loss, num_tokens = 0, 0
        for micro in range(self.o.grad_accum):
            self.batch = self.next_inputs()
            current_num_tokens = (self.batch["labels"] != -100).sum()
            num_tokens += current_num_tokens
            self.loss = self.recipe.loss_step(self.batch) * current_num_tokens
            del current_num_tokens
            running_loss += self.loss
            self.watch.offloaded = self.recipe.offloaded()
            if micro == 0:
                mark("after_forward")
            if self.o.step == "forward":
                return
            self.loss.backward()
        mark("after_backward")
        if not self.o.optimizer_in_backward:
            scale = 1 / num_tokens
            for parameter in self.trained:
                parameter.grad *= scale
            del scale
        self.update()
        mark("after_step")
