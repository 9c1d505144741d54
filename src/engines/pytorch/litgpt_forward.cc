// LitGPT's decoder and its loss (litgpt/model.py, litgpt/utils.py) as its fine-tuning scripts run them.
#include "engines/pytorch/litgpt.h"
#include "tensor/autocast.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using model::LayerKind;
using t::Tensor;

namespace {

constexpr std::int64_t kChunk = 128;  // tokens, of the head's product and of the loss

struct Tables {
  Tensor cos;
  Tensor sin;
};

// The tables are in fp32, so all of it is; the result goes back.
Tensor apply_rope(Tensor x_in, const Tables& tables) {
  const Tensor x = std::move(x_in);
  const std::int64_t half = x.size(-1) / 2;
  const Tensor first = t::slice(x, -1, 0, half);
  const Tensor second = t::slice(x, -1, half, 2 * half);
  Tensor rotated;
  {
    Tensor negated = t::neg(second);
    rotated = t::cat({std::move(negated), first}, -1);
  }
  Tensor straight = t::mul(x, tables.cos);
  Tensor turned = t::mul(rotated, tables.sin);
  const Tensor roped = t::add(std::move(straight), std::move(turned));
  return t::to(roped, x.dtype());
}

struct Heads {
  Tensor query;
  Tensor key;
  Tensor value;
};

// Each group's queries lie together with its key and its value, so that taking them apart leaves views of the whole.
Heads split_by_group(const Choices& choices, const model::Attention& a, Tensor qkv) {
  const std::int64_t batch = qkv.size(0);
  const std::int64_t seq = qkv.size(1);
  const std::int64_t groups = a.kv_heads;
  const std::int64_t each = a.heads / groups;
  qkv = t::view(std::move(qkv), {batch, seq, groups, each + 2, a.head_dim});
  qkv = t::transpose(std::move(qkv), 1, 2);
  qkv = t::transpose(std::move(qkv), 2, 3);
  std::vector<Tensor> parts = t::split(qkv, {each, 1, 1}, 2);
  Heads h{std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
  const bool expands = each > 1 && !(choices.single_key_broadcasts && groups == 1);
  if (expands) {
    h.key = t::expand(std::move(h.key), {batch, groups, each, seq, a.head_dim});
    h.value = t::expand(std::move(h.value), {batch, groups, each, seq, a.head_dim});
  }
  h.query = t::reshape(std::move(h.query), {batch, -1, seq, a.head_dim});
  h.key = t::reshape(std::move(h.key), {batch, -1, seq, a.head_dim});
  h.value = t::reshape(std::move(h.value), {batch, -1, seq, a.head_dim});
  return h;
}

Heads split_in_sequence(const model::Attention& a, Tensor qkv) {
  const std::int64_t batch = qkv.size(0);
  const std::int64_t seq = qkv.size(1);
  const std::int64_t queries = a.heads * a.head_dim;
  const std::int64_t keys = a.kv_heads * a.head_dim;
  std::vector<Tensor> parts = t::split(qkv, {queries, keys, keys}, -1);
  for (Tensor& part : parts) {
    part = t::view(std::move(part), {batch, seq, -1, a.head_dim});
    part = t::transpose(std::move(part), 1, 2);
  }
  return {std::move(parts[0]), std::move(parts[1]), std::move(parts[2])};
}

// repeat_interleave, of heads.
Tensor repeat_heads(Tensor x_in, std::int64_t times) {
  Tensor x = std::move(x_in);
  const t::Dims wide{x.size(0), x.size(1), times, x.size(2), x.size(3)};
  const t::Dims merged{x.size(0), x.size(1) * times, x.size(2), x.size(3)};
  x = t::unsqueeze(std::move(x), 2);
  x = t::expand(std::move(x), wide);
  x = t::copy_contiguous(std::move(x));
  return t::view(std::move(x), merged);
}

// LLaMA-Adapter's attention to a prompt of its own, whose keys and values the same projection makes
// (litgpt/adapter.py).
Tensor attend_to_prompt(LitGptModules& m, const LayerKind& layer, const Tensor& query, Tensor y) {
  const model::Attention& a = layer.attention;
  const model::ParameterRef prompt = find_parameter(layer, "attn.adapter_wte.weight");
  if (!prompt) return y;
  const std::int64_t groups = a.kv_heads;
  const std::int64_t each = a.heads / groups;
  const Tensor rows = m.weight(prompt);
  const std::int64_t length = rows.size(0);
  Tensor prefix = t::reshape(rows, {1, length, rows.size(1)});
  Tensor qkv = call([&](Tensor h) { return m.qkv(a, std::move(h)); }, prefix);
  qkv = t::view(std::move(qkv), {1, length, groups, each + 2, a.head_dim});
  qkv = t::transpose(std::move(qkv), 1, 2);
  qkv = t::transpose(std::move(qkv), 2, 3);
  std::vector<Tensor> parts = t::split(qkv, {each, 1, 1}, 2);
  Tensor key = t::reshape(parts[1], {1, -1, length, a.head_dim});
  Tensor value = t::reshape(parts[2], {1, -1, length, a.head_dim});
  if (groups != 1) {
    key = repeat_heads(key, each);
    value = repeat_heads(value, each);
  }
  const Tensor mask = t::empty(m.context(), t::Op::ones_like, {query.size(2), length}, DType::boolean);
  Tensor prompted = t::scaled_dot_product_attention(query, key, value, mask, 0, false);
  prompted = t::transpose(std::move(prompted), 1, 2);
  const Tensor gate = m.weight(find_parameter(layer, "attn.gating_factor"));
  Tensor gated = t::mul(gate, prompted);
  return t::add(y, std::move(gated));
}

Tensor attention(LitGptModules& m, const LayerKind& layer, Tensor x_in, const Tables& tables) {
  const model::Attention& a = layer.attention;
  const Tensor x = std::move(x_in);
  const std::int64_t batch = x.size(0);
  const std::int64_t seq = x.size(1);
  const bool by_group = m.choices().qkv_by_group;
  const Tensor qkv = call([&](Tensor h) { return m.qkv(a, std::move(h)); }, x);
  Heads h = by_group ? split_by_group(m.choices(), a, qkv) : split_in_sequence(a, qkv);
  const std::int64_t turned = tables.cos.size(-1);
  const Tensor query_roped = apply_rope(t::slice(h.query, -1, 0, turned), tables);
  const Tensor key_roped = apply_rope(t::slice(h.key, -1, 0, turned), tables);
  {
    Tensor rest = t::slice(h.query, -1, turned, a.head_dim);
    h.query = t::cat({query_roped, std::move(rest)}, -1);
  }
  {
    Tensor rest = t::slice(h.key, -1, turned, a.head_dim);
    h.key = t::cat({key_roped, std::move(rest)}, -1);
  }
  if (!by_group && a.heads != a.kv_heads) {
    h.key = repeat_heads(h.key, a.heads / a.kv_heads);
    h.value = repeat_heads(h.value, a.heads / a.kv_heads);
  }
  const t::Scope named(m.context(), m.context().intern("attention"));
  Tensor y = t::scaled_dot_product_attention(h.query, h.key, h.value, {}, 0, false);
  y = t::transpose(std::move(y), 1, 2);
  y = attend_to_prompt(m, layer, h.query, std::move(y));
  y = t::reshape(std::move(y), {batch, seq, a.heads * a.head_dim});
  return call([&](Tensor out) { return m.linear(a.o, std::move(out)); }, y);
}

Tensor feed_forward(LitGptModules& m, const model::Mlp& mlp, Tensor x_in) {
  Tensor x = std::move(x_in);
  if (!mlp.gated) {
    x = call([&](Tensor h) { return m.linear(mlp.up, std::move(h)); }, x);
    x = m.activation(mlp.activation, x);
    return call([&](Tensor h) { return m.linear(mlp.down, std::move(h)); }, x);
  }
  const Tensor gate = call([&](Tensor h) { return m.linear(mlp.gate, std::move(h)); }, x);
  const Tensor up = call([&](Tensor h) { return m.linear(mlp.up, std::move(h)); }, x);
  {
    Tensor activated = m.activation(mlp.activation, gate);
    x = t::mul(std::move(activated), up);
  }
  return call([&](Tensor h) { return m.linear(mlp.down, std::move(h)); }, x);
}

Tensor fed(LitGptModules& m, const LayerKind& layer, Tensor x) {
  return call([&](Tensor h) { return feed_forward(m, layer.mlp, std::move(h)); }, std::move(x));
}

bool shares_norm(const LayerKind& layer) { return layer.parallel && !layer.post_attention_norm.weight; }

Tensor parallel_block(LitGptModules& m, const LayerKind& layer, Tensor x_in, Tensor normed_in, const Tensor& attended) {
  Tensor x = std::move(x_in);
  Tensor x_normed = std::move(normed_in);
  if (m.choices().order == BranchOrder::attention_first) {
    const Tensor second = shares_norm(layer) ? x_normed : m.normed(layer.post_attention_norm, x);
    Tensor sum = t::add(x, attended);
    Tensor more = fed(m, layer, second);
    return t::add(std::move(sum), std::move(more));
  }
  if (!shares_norm(layer)) x_normed = m.normed(layer.post_attention_norm, x);
  if (m.choices().order == BranchOrder::attention_bound) {
    x = t::add(attended, x);
    Tensor more = fed(m, layer, x_normed);
    return t::add(std::move(more), x);
  }
  Tensor more = fed(m, layer, x_normed);
  Tensor sum = t::add(std::move(more), attended);
  return t::add(std::move(sum), x);
}

Tensor serial_block(LitGptModules& m, const LayerKind& layer, Tensor x_in, Tensor normed_in, const Tensor& attended) {
  Tensor x = std::move(x_in);
  Tensor x_normed = std::move(normed_in);
  x = t::add(attended, x);
  if (m.choices().order != BranchOrder::attention_bound) {
    Tensor second = m.normed(layer.post_attention_norm, x);
    Tensor more = fed(m, layer, std::move(second));
    return t::add(std::move(more), x);
  }
  x_normed = m.normed(layer.post_attention_norm, x);
  Tensor more = fed(m, layer, x_normed);
  return t::add(std::move(more), x);
}

Tensor block(LitGptModules& m, const LayerKind& layer, Tensor x_in, const Tables& tables) {
  const Tensor x = std::move(x_in);
  Tensor x_normed = m.normed(layer.input_norm, x);
  const Tensor attended = call([&](Tensor h) { return attention(m, layer, std::move(h), tables); }, x_normed);
  return layer.parallel ? parallel_block(m, layer, x, std::move(x_normed), attended)
                        : serial_block(m, layer, x, std::move(x_normed), attended);
}

// LoRA and adapters know a head that runs on some tokens at a time; the full model does not.
bool chunks_head(const TrainOptions& options) {
  return options.loss == Loss::chunked && (options.tuning.tuner != model::Tuner::none || options.llama_adapter > 0);
}

std::vector<Tensor> decoder(LitGptModules& m, const model::Architecture& arch, Tensor ids_in) {
  const Tensor ids = std::move(ids_in);
  const std::int64_t seq = ids.size(1);
  const Tensor all_cos = m.model_buffer(0);
  const Tensor all_sin = m.model_buffer(1);
  const Tensor cos = t::slice(all_cos, 0, 0, seq);
  const Tensor sin = t::slice(all_sin, 0, 0, seq);
  const Tables tables{cos, sin};
  Tensor x = call([&](Tensor i) { return m.embedding(arch.embedding, std::move(i)); }, ids);
  if (arch.multiplies_embeddings) x = t::mul_scalar(x);
  for (std::int64_t i = 0; i < arch.layer_count(); ++i) {
    const LayerKind& layer = arch.kind_of(i);
    x = m.layer(
        i, [&m, &layer, tables](Tensor h, Tensor) { return block(m, layer, std::move(h), tables); }, x, {}, nullptr);
  }
  x = m.normed(arch.final_norm, x);
  const auto head = [&](Tensor h) { return m.linear(arch.head, std::move(h)); };
  if (!chunks_head(m.step_options())) {
    std::vector<Tensor> whole;
    whole.push_back(call(head, x));
    return whole;
  }
  std::vector<Tensor> logits;
  for (const Tensor& chunk : t::split(x, kChunk, 1)) logits.push_back(call(head, chunk));
  return logits;
}

Tensor rows_of(Tensor logits) {
  const std::int64_t vocab = logits.size(-1);
  return t::reshape(std::move(logits), {-1, vocab});
}

void let_go(std::vector<Tensor>& list) {
  for (Tensor& tensor : list) tensor.reset();
  list.clear();
}

// The mean of the chunks' losses, by their number or by that of the targets that are not to be ignored.
Tensor mean_of(const Choices& choices, std::vector<Tensor>& losses, const Tensor& targets) {
  Tensor counted;
  if (choices.counts_targets) {
    const Tensor counts = t::empty(targets.context(), t::Op::compare, targets.sizes(), DType::boolean);
    counted = t::empty(targets.context(), t::Op::sum, {}, DType::i64);
  }
  Tensor all = t::cat(losses, 0);
  if (!choices.counts_targets) return t::mean_last(std::move(all), choices.mean_keeps_input);
  Tensor sum = t::sum_all(std::move(all));
  Tensor divisor;
  {
    const Tensor one = t::ones_like(counted);
    divisor = t::empty(targets.context(), t::Op::maximum, {}, DType::i64);
  }
  return t::div(std::move(sum), std::move(divisor));
}

// chunked_cross_entropy of a list: all chunks' parts exist before the first loss.
Tensor loss_of_chunks(const Choices& choices, const std::vector<Tensor>& logits, const Tensor& targets) {
  std::vector<Tensor> rows;
  for (const Tensor& chunk : logits) rows.push_back(rows_of(chunk));
  std::vector<Tensor> wanted;
  for (const Tensor& part : t::split(targets, logits[0].size(1), 1)) wanted.push_back(t::reshape(part, {-1}));
  std::vector<Tensor> losses;
  for (std::size_t i = 0; i < std::min(rows.size(), wanted.size()); ++i) {
    losses.push_back(t::cross_entropy_each(rows[i], wanted[i]));
  }
  Tensor loss = mean_of(choices, losses, targets);
  for (std::vector<Tensor>* list : {&rows, &wanted, &losses}) let_go(*list);
  return loss;
}

// The same of logits that were made at once.
Tensor loss_of_whole(const Choices& choices, const Tensor& shifted, const Tensor& shifted_targets, bool in_chunks) {
  const Tensor logits = rows_of(shifted);
  const Tensor targets = t::reshape(shifted_targets, {-1});
  if (!in_chunks) return t::cross_entropy(logits, targets);
  const std::vector<Tensor> rows = t::split(logits, kChunk, 0);
  const std::vector<Tensor> wanted = t::split(targets, kChunk, 0);
  std::vector<Tensor> losses;
  for (std::size_t i = 0; i < rows.size(); ++i) losses.push_back(t::cross_entropy_each(rows[i], wanted[i]));
  Tensor loss = mean_of(choices, losses, targets);
  let_go(losses);
  return loss;
}

}  // namespace

// The names of the batch before are bound again one after the other: inputs, logits, loss.
void litgpt_forward(LitGptModules& m, const model::Architecture& arch, Bound& bound) {
  const TrainOptions& options = m.step_options();
  {
    std::vector<Tensor> made;
    {
      const t::AutocastRegion autocast(m.context(),
                                       {options.autocast.has_value(), options.autocast.value_or(DType::bf16)});
      made = call([&](Tensor ids) { return decoder(m, arch, std::move(ids)); }, bound.inputs);
    }
    // _FabricModule.forward: outputs in torch's default type.
    std::vector<Tensor> converted;
    for (const Tensor& chunk : made) converted.push_back(t::to(chunk, DType::f32));
    let_go(made);
    let_go(bound.logits);
    bound.logits = std::move(converted);
  }
  const t::Scope named(m.context(), m.context().intern("loss"));
  if (chunks_head(options)) {
    Tensor& last = bound.logits.back();
    last = t::slice(last, 1, 0, last.size(1) - 1);
    const Tensor targets = t::slice(bound.labels, 1, 1, bound.labels.size(1));
    bound.loss = loss_of_chunks(m.choices(), bound.logits, targets);
  } else {
    const Tensor& logits = bound.logits[0];
    const Tensor shifted = t::slice(logits, 1, 0, logits.size(1) - 1);
    const Tensor targets = t::slice(bound.labels, 1, 1, bound.labels.size(1));
    bound.loss = loss_of_whole(m.choices(), shifted, targets, options.loss == Loss::chunked);
  }
}

}  // namespace ullage::engines::pytorch
