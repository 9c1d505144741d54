"""Steps of transformers' own Trainer (Trainer.train() itself, with accelerate) on fake CUDA tensors.

Moments are its callbacks'. A step begins with its batches on the device and ends when gradients are gone. What was
replaced: the device is said to be there, numbers that the loop reads back are stand-ins, and nothing is logged or saved.
"""
import contextlib
from unittest import mock

import torch
import transformers

from optimizers import optimizer
from training_step import device_of, held, quantised_parts


ordinary_tensor = torch.tensor


def number_on(data, *args, device=None, **kwargs):
    """torch.tensor, whose copy to a device that is not there fails."""
    if isinstance(data, float) and torch.device(device or "cpu").type == "cuda":
        return torch.full((), data, dtype=kwargs.get("dtype"), device=device)
    return ordinary_tensor(data, *args, device=device, **kwargs)


@contextlib.contextmanager
def said_to_be_there():
    """The GPU, with fake parameters on it, which cannot be moved."""
    with contextlib.ExitStack() as stack:
        def replace(place, name, value):
            stack.enter_context(mock.patch.object(place, name, value))

        replace(torch, "tensor", number_on)
        replace(torch.nn.Module, "to", lambda self, *_, **__: self)
        for name, answer in (("is_available", True), ("device_count", 1), ("current_device", 0), ("set_device", None),
                             ("is_initialized", False), ("manual_seed", None), ("manual_seed_all", None)):
            replace(torch.cuda, name, lambda *_, answer=answer: answer)
        yield


class Texts(torch.utils.data.Dataset):
    """Token ids that stand for texts; labels are tensors of their own."""

    def __init__(self, config, o):
        self.vocab, self.length = config.vocab_size, o.seq_len
        self.size = 4 * o.micro_batch * o.grad_accum

    def __len__(self):
        return self.size

    def __getitem__(self, _):
        return {name: torch.zeros(self.length, dtype=torch.long) for name in ("input_ids", "labels")}


class Moments(transformers.TrainerCallback):
    def __init__(self, step):
        self.step = step

    def on_step_begin(self, args, state, control, **_):
        self.step.begin(last=state.global_step == args.max_steps - 1)

    def on_step_end(self, args, state, control, **_):
        self.step.mark("after_step")


class TrainerStep(transformers.Trainer):
    """A Trainer that tells its moments: mark(name, sizes), as training_step.Step does."""

    def __init__(self, model, config, o, watch, mark):
        self.o, self.watch, self.on_mark = o, watch, mark
        self.recording, self.forwards = False, 0
        steps = 2 if o.step == "steady" else 1
        flag = o.precision.removeprefix("amp-")  # neither for fp32 and pure-bf16
        arguments = transformers.TrainingArguments(
            output_dir="/tmp/trainer", per_device_train_batch_size=o.micro_batch, max_steps=steps,
            gradient_accumulation_steps=o.grad_accum, bf16=flag == "bf16", fp16=flag == "fp16", report_to=[],
            max_grad_norm=o.clip_grad, save_strategy="no", logging_strategy="no", dataloader_pin_memory=False,
            disable_tqdm=True, dataloader_num_workers=0, remove_unused_columns=False)
        made = optimizer(list(model.named_parameters()), o)
        still = torch.optim.lr_scheduler.LambdaLR(made, lambda _: 1.0)
        super().__init__(model=model, args=arguments, train_dataset=Texts(config, o), optimizers=(made, still),
                         data_collator=lambda rows: {name: torch.stack([row[name] for row in rows]) for name in rows[0]},
                         callbacks=[Moments(self)])
        self.remove_callback(transformers.PrinterCallback)

    def begin(self, last):
        self.recording, self.forwards = last, 0
        if last:
            self.watch.restart_peak()
        self.mark("before_step")

    def mark(self, name):
        if self.recording:
            self.on_mark(name, self.sizes())

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss, outputs = super().compute_loss(model, inputs, True, num_items_in_batch)
        if self.forwards == 0:
            self.mark("after_forward")
        self.forwards += 1
        return loss

    def training_step(self, model, inputs, num_items_in_batch=None):
        loss = super().training_step(model, inputs, num_items_in_batch)
        if self.forwards == self.o.grad_accum:
            self.mark("after_backward")
        return loss

    def sizes(self):
        """As of training_step.Step."""
        parameters = [*self.model.parameters(), *quantised_parts(self.model, self.o)]
        states = [t for s in self.optimizer.state.values() for t in s.values() if isinstance(t, torch.Tensor)]
        groups = (parameters, (p.grad for p in parameters), states)
        return ((self.watch.live, self.watch.live_blocks), *(held(group, device_of(self.o)) for group in groups))


def train(model, config, o, watch, mark):
    with said_to_be_there():
        step = TrainerStep(model, config, o, watch, mark)
        for tensor in [*model.parameters(), *model.buffers(), *quantised_parts(model, o)]:
            watch.take_in(tensor)
        with watch:
            step.train()
