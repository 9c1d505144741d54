"""Losses of the next token as older releases of transformers made them, put into models of the newest.

From src/transformers/models/*/modeling_*.py of v4.31 to v4.45 and src/transformers/loss/loss_utils.py of v4.46 to v4.48.
"""
from torch.nn import functional as F


def sliced(logits, labels, in_fp32):
    if in_fp32:
        logits = logits.float()
    shift_logits = logits[..., :-1, :].contiguous()
    shift_labels = labels[..., 1:].contiguous()
    shift_logits = shift_logits.view(-1, shift_logits.shape[-1])
    shift_labels = shift_labels.view(-1)
    return F.cross_entropy(shift_logits, shift_labels)


OWN_TYPE = ("gpt2", "gpt_neox", "opt", "stablelm", "falcon", "bloom")


def as_before(model, version):
    minor = int(version.split(".")[1])
    own = model.config.model_type in OWN_TYPE and minor < (46 if model.config.model_type == "stablelm" else 49)
    model.loss_function = lambda logits, labels, vocab_size, **_: sliced(logits, labels, not own)
    if minor < 46 and not own:
        product = model.lm_head.forward
        model.lm_head.forward = lambda x: product(x).float()  # `logits = logits.float()` behind it
