// The backward pass, in autograd's order (torch/csrc/autograd/engine.cpp).
#pragma once

#include "tensor/context.h"

namespace ullage::tensor {

// Runs backward from `root`; an empty gradient stands for ones. Ready nodes run in descending order of creation,
// leaves accumulate at once. One node at a time: its summed gradients move in; saved tensors are unpacked; outputs are
// allocated, then fitted to the receivers' shapes and types; the incoming gradients go, then the saved tensors; the
// outputs are delivered, adding up where several meet.
void run_backward(Tensor root, Tensor gradient = {});

// The same from two results of one region, of which `second` is part of the graph that leads to `root`. The caller
// keeps both gradients.
void run_backward(const Tensor& root, const Tensor& gradient, const Tensor& second, const Tensor& second_gradient);

// Node function of a leaf: the first gradient is taken over when nobody else holds it, later ones are added in place.
void accumulate_gradient(Node& node, Gradients& in, Gradients& out);

}  // namespace ullage::tensor
