#include "tensor/checkpoint.h"

#include <algorithm>

#include "tensor/autocast.h"
#include "tensor/offload.h"
#include "tensor/ops.h"
#include "tensor/record.h"
#include "tensor/tape.h"

namespace ullage::tensor {
namespace {

void tag_as_activation(const Tensor& tensor) {
  Storage& storage = tensor.storage();
  if (storage.component == memory::Component::temporaries) {
    storage.context->retag(storage, memory::Component::activations);
  }
}

Ref<Ticket> hand_out(Checkpoint& checkpoint) {
  Ref<Ticket> ticket(checkpoint.context->make_ticket());
  ticket->checkpoint = Ref<Checkpoint>(&checkpoint);
  ticket->index = checkpoint.tickets.size();
  checkpoint.tickets.push_back(ticket.get());
  return ticket;
}

// The rerun meets the next save of the region. The tensor fills its ticket, outside of the graph if there is one, and
// the rerun is over with the last one.
void fill(Checkpoint& checkpoint, const Tensor& tensor) {
  if (checkpoint.filled < checkpoint.tickets.size()) {
    if (Ticket* ticket = checkpoint.tickets[checkpoint.filled])
      ticket->tensor = checkpoint.context->ghost_graph ? tensor : detach(tensor);
  }
  if (++checkpoint.filled == checkpoint.tickets.size()) {
    checkpoint.context->discarding = true;
    checkpoint.context->grad_enabled = false;
  }
}

// Empty where the tensor stays.
Ref<Ticket> send_away(SavedOffload& offload, const Tensor& tensor) {
  const std::uint32_t number = offload.pack(tensor);
  if (number == 0) return {};
  Ref<Ticket> ticket(offload.context().make_ticket());
  ticket->offload = &offload;
  ticket->index = number;
  return ticket;
}

void save(Node* node, const Tensor& tensor, bool output) {
  if (node == nullptr) return;
  Context& context = *node->context;
  if (node->ghost) {
    if (context.discarding) return;
    tag_as_activation(tensor);
    fill(*context.hooks.back().checkpoint, tensor);
    return;
  }
  Saved& slot = node->saved.add();
  if (context.discarding) return;
  if (!context.hooks.empty() && !context.hooks.back().rerun) {
    slot.ticket = hand_out(*context.hooks.back().checkpoint);
    return;
  }
  tag_as_activation(tensor);
  if (context.offloading) {
    slot.ticket = send_away(*context.offload, tensor);
    if (slot.ticket) return;
  }
  slot.tensor = output ? detach(tensor) : tensor;
  if (!context.hooks.empty()) fill(*context.hooks.back().checkpoint, tensor);
}

// A ticket that died belonged to a part of the graph that led nowhere; what it would hold lives as long as that part.
bool all_alive(const std::vector<Ticket*>& tickets) {
  return std::find(tickets.begin(), tickets.end(), nullptr) == tickets.end();
}

void copy_origin(const Tensor& from, const Tensor& to) {
  to.impl()->leaf_requires_grad = from.impl()->leaf_requires_grad;
  to.impl()->tracked = from.impl()->tracked;
  to.impl()->output = from.impl()->output;
  to.impl()->grad_fn = from.impl()->grad_fn;
}

// Whose result a tensor was, without its memory.
Tensor shell_of(const Tensor& tensor) {
  Tensor shell = tensor.context().make({0}, tensor.dtype());
  copy_origin(tensor, shell);
  return shell;
}

Tensor input_of(const Checkpoint& checkpoint) {
  if (checkpoint.input_away == 0) return checkpoint.input;
  Tensor input = checkpoint.context->offload->unpack(checkpoint.input_away);
  copy_origin(checkpoint.input, input);
  return input;
}

void run_again(Checkpoint& checkpoint) {
  Context& context = *checkpoint.context;
  checkpoint.rerun = true;
  checkpoint.filled = 0;
  Restore<memory::Phase> phase(context.phase, memory::Phase::recompute);
  Restore<NameId> module(context.module, context.module);
  Restore<std::int16_t> layer(context.layer, context.layer);
  Restore<bool> grad(context.grad_enabled, true);
  Restore<bool> discarding(context.discarding, false);
  Restore<bool> ghost_graph(context.ghost_graph, all_alive(checkpoint.tickets));
  context.hooks.push_back({&checkpoint, true});
  {
    Tensor input = input_of(checkpoint);
    const AutocastRegion autocast(context, checkpoint.autocast);
    checkpoint.region(std::move(input), checkpoint.extra);
  }
  context.hooks.pop_back();
}

void reentrant_backward(Node& node, Gradients& in, Gradients& out) {
  Context& context = *node.context;
  // Nobody uses the second output, but its gradient is made all the same, of zeros (materialize_grads).
  if (in.size() > 1) in[1] = empty(context, Op::zeros, node.inputs[1].sizes, node.inputs[1].dtype);
  const Tensor saved = unpack(node, 0);
  const Tensor extra = node.saved.size() > 1 ? unpack(node, 1) : Tensor{};
  Tensor input = detach(saved);
  input.impl()->leaf_requires_grad = true;
  RegionOutput output;
  {
    Restore<bool> grad(context.grad_enabled, true);
    Restore<memory::Phase> phase(context.phase, memory::Phase::recompute);
    const AutocastRegion autocast(context, node.checkpoint->autocast);
    output = node.checkpoint->region(input, extra);
  }
  if (in.size() > 1) {
    run_backward(output.hidden, in[0], output.second, in[1]);
  } else {
    run_backward(output.hidden, in[0]);
  }
  out[0] = input.grad();
}

}  // namespace

void destroy(Checkpoint* checkpoint) { delete checkpoint; }

RegionOutput checkpoint(Context& context, Region region, Tensor input_in, Tensor extra_in) {
  const Tensor input = std::move(input_in);
  const Tensor extra = std::move(extra_in);
  if (!context.grad_enabled) return region(input, extra);
  Ref<Checkpoint> state(new Checkpoint);
  state->context = &context;
  state->region = std::move(region);
  state->input = input;
  state->extra = extra;
  state->autocast = context.autocast;
  state->tickets.reserve(64);
  tag_as_activation(input);
  if (context.offloading) {
    state->input_away = context.offload->pack(input);
    if (state->input_away != 0) state->input = shell_of(input);
  }
  context.hooks.push_back({state.get(), false});
  RegionOutput result = state->region(input, extra);
  context.hooks.pop_back();
  return result;
}

RegionOutput checkpoint_reentrant(Context& context, Region region, Tensor input_in, Tensor extra_in) {
  const Tensor input = std::move(input_in);
  const Tensor extra = std::move(extra_in);
  if (!context.grad_enabled) return region(input, extra);
  Recording record(context, reentrant_backward, {&input});
  RegionOutput result;
  {
    NoGrad no_grad(context);
    result = region(input, extra);
  }
  if (!record) return result;
  save_input(record.node(), input);
  if (extra) save_input(record.node(), extra);
  Ref<Checkpoint> state(new Checkpoint);
  state->context = &context;
  state->region = std::move(region);
  state->autocast = context.autocast;
  record.node()->checkpoint = std::move(state);
  RegionOutput out(record.finish(detach(result.hidden)));
  if (result.second) out.second = record.finish(detach(result.second));
  return out;
}

void save_input(Node* node, const Tensor& tensor) { save(node, tensor, false); }
void save_output(Node* node, const Tensor& tensor) { save(node, tensor, true); }

Tensor unpack(Node& node, std::size_t slot) {
  Saved& saved = node.saved[slot];
  if (!saved.ticket) return saved.tensor;
  if (saved.ticket->offload != nullptr)
    return saved.ticket->offload->unpack(static_cast<std::uint32_t>(saved.ticket->index));
  Checkpoint& checkpoint = *saved.ticket->checkpoint;
  if (!checkpoint.rerun) run_again(checkpoint);
  return std::move(saved.ticket->tensor);
}

}  // namespace ullage::tensor
