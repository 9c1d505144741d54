// Rotary embeddings of transformers 5.12 (modeling_rope_utils.py, the rotary modules of the model files).
#include "engines/pytorch/transformers_modules.h"
#include "tensor/autocast.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using t::Dims;
using t::Op;
using t::Tensor;

Tensor TransformersModules::position_ids(const Tensor& hidden) {
  Tensor positions = t::empty(context_, Op::arange, {hidden.size(1)}, DType::i64);
  positions = t::add_scalar(std::move(positions));
  return t::unsqueeze(std::move(positions), 0);
}

// What dynamic and long RoPE look at before each forward: the highest position, compared with the limits they know. A
// long RoPE then drops the copy of its frequencies in favour of the original. (modeling_rope_utils.py)
void TransformersModules::update_frequencies(const model::Rotary& module, const Tensor& position_ids) {
  const bool dynamic = module.type.find("dynamic") != std::string::npos;
  if (!dynamic && module.type != "longrope") return;
  Tensor highest = t::empty(context_, Op::maximum, {}, position_ids.dtype());
  const Tensor length = t::add_scalar(std::move(highest));
  t::empty(context_, Op::compare, {}, DType::boolean);
  if (dynamic) t::empty(context_, Op::compare, {}, DType::boolean);
  else state_.drop_rotary_copy(module);
}

// Without gradient: angles are a batched product, cos and sin are scaled and, but for one form, cast.
model::RotaryTables TransformersModules::rotary(const model::Rotary& module, const Tensor& hidden,
                                                Tensor position_ids_in) {
  const t::NoGrad no_grad(context_);
  const t::Scope named(context_, context_.intern("rotary_emb"));
  const Tensor ids = std::move(position_ids_in);
  update_frequencies(module, ids);
  const t::AutocastRegion off(context_, {});
  const Tensor& frequencies = state_.buffer(module.buffer);
  Tensor expanded = t::unsqueeze(frequencies, 0);
  expanded = t::unsqueeze(std::move(expanded), 2);
  Tensor positions = t::unsqueeze(ids, 1);
  positions = t::to(std::move(positions), DType::f32);
  Tensor angles = t::matmul(expanded, positions);
  angles = t::transpose(std::move(angles), 1, 2);
  // Twice each, one copy behind the other or side by side.
  const Tensor both = t::cat({angles, angles}, -1);
  Tensor cos = t::cos(both);
  cos = t::mul_scalar(std::move(cos));
  Tensor sin = t::sin(both);
  sin = t::mul_scalar(std::move(sin));
  const DType dtype = module.form == model::RotaryForm::halves_fp32 ? DType::f32 : hidden.dtype();
  model::RotaryTables tables;
  tables.form = module.form;
  tables.cos = t::to(cos, dtype);
  tables.sin = t::to(sin, dtype);
  return tables;
}

namespace {

using model::RotaryForm;

Tensor rotate_half(Tensor x_in) {
  const Tensor x = std::move(x_in);
  const std::int64_t dim = x.size(-1);
  const Tensor first = t::slice(x, -1, 0, dim / 2);
  const Tensor second = t::slice(x, -1, dim / 2, dim);
  Tensor negated = t::neg(second);
  return t::cat({std::move(negated), first}, -1);
}

Tensor rotate_neighbours(Tensor x_in) {
  const Tensor x = std::move(x_in);
  const std::int64_t dim = x.size(-1);
  const Tensor even = t::slice(x, -1, 0, dim, 2);
  const Tensor odd = t::slice(x, -1, 1, dim, 2);
  Tensor negated = t::neg(odd);
  const Tensor turned = t::stack_last({std::move(negated), even});
  return t::view(turned, x.sizes());
}

Tensor rotate(const Tensor& x, const Tensor& cos, const Tensor& sin, RotaryForm form) {
  Tensor straight = t::mul(x, cos);
  Tensor turned = form == RotaryForm::neighbours ? rotate_neighbours(x) : rotate_half(x);
  turned = t::mul(std::move(turned), sin);
  return t::add(std::move(straight), std::move(turned));
}

struct Cut {
  Tensor turned;
  Tensor rest;
};

Cut cut(const Tensor& x, std::int64_t dim) {
  Cut parts;
  parts.turned = t::slice(x, -1, 0, dim);
  parts.rest = t::slice(x, -1, dim, x.size(-1));
  return parts;
}

Tensor rotate_and_join(const Cut& x, const Tensor& cos, const Tensor& sin) {
  Tensor turned = rotate(x.turned, cos, sin, RotaryForm::joined);
  return t::cat({std::move(turned), x.rest}, -1);
}

}  // namespace

// The old query and key live until both rotated ones exist.
void TransformersModules::apply_rotary(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  const DType dtype = query.dtype();
  const bool in_fp32 = tables.form == RotaryForm::neighbours;
  const Tensor q = in_fp32 ? t::to(query, DType::f32) : query;
  const Tensor k = in_fp32 ? t::to(key, DType::f32) : key;
  const Tensor cos = t::unsqueeze(tables.cos, 1);
  const Tensor sin = t::unsqueeze(tables.sin, 1);
  Tensor rotated_query, rotated_key;
  if (tables.form == RotaryForm::joined) {
    const Cut query_parts = cut(q, cos.size(-1));
    const Cut key_parts = cut(k, cos.size(-1));
    rotated_query = rotate_and_join(query_parts, cos, sin);
    rotated_key = rotate_and_join(key_parts, cos, sin);
  } else {
    rotated_query = rotate(q, cos, sin, tables.form);
    rotated_key = rotate(k, cos, sin, tables.form);
  }
  const bool goes_back = tables.form != RotaryForm::halves && tables.form != RotaryForm::joined;
  const Tensor query_back = goes_back ? t::to(rotated_query, dtype) : rotated_query;
  const Tensor key_back = goes_back ? t::to(rotated_key, dtype) : rotated_key;
  query = query_back;
  key = key_back;
}

}  // namespace ullage::engines::pytorch
