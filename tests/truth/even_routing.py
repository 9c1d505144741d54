"""Fake tensors have no counts of tokens for each expert, so where a model asks for them they are made even."""


def even_shares(rows, experts):
    """What remains goes to the first experts."""
    return [rows // experts + (i < rows % experts) for i in range(experts)]


def install():
    from transformers.models.granitemoe import modeling_granitemoe as granitemoe

    run = granitemoe.GraniteMoeParallelExperts.forward
    granitemoe.GraniteMoeParallelExperts.forward = lambda self, inputs, expert_size: run(
        self, inputs, even_shares(inputs.size(0), self.num_experts))
