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

namespace {

using model::RotaryForm;

// 1 / (factors * base^exponents), where a long RoPE has factors. `length`, the highest position, stays with the caller.
Tensor compute_frequencies(t::Context& context, const model::Rotary& module, Tensor& length) {
  const Dims sizes{module.dim / 2};
  const auto step = [&](Op op) { return t::empty(context, op, sizes, DType::f32); };
  {
    Tensor highest = t::empty(context, Op::maximum, {}, DType::i64);
    length = t::add_scalar(std::move(highest));
  }
  Tensor scales;
  Tensor powers;
  if (module.type == "longrope") {
    for (int asked = 0; asked < 2; ++asked) t::empty(context, Op::compare, {}, DType::boolean);
    const Tensor factors = step(Op::cast);
    Tensor integers = t::empty(context, Op::arange, sizes, DType::i64);
    Tensor exponents = step(Op::cast);
    integers.reset();
    exponents = step(Op::div);
    powers = step(Op::pow);
    scales = step(Op::mul);
    powers.reset();
    const Tensor inverse = step(Op::div);
    return step(Op::mul);
  }
  {
    Tensor exponents = step(Op::cast);
    exponents = step(Op::div);
    powers = step(Op::pow);
  }
  const Tensor inverse = step(Op::div);
  return step(Op::mul);
}

// Numbers of length one, scaled.
model::RotaryTables complex_tables(const Tensor& angles) {
  t::Context& context = angles.context();
  Tensor turns;
  {
    const Tensor lengths = t::ones_like(angles);
    turns = t::empty(context, Op::polar, angles.sizes(), DType::c64);
  }
  model::RotaryTables tables;
  tables.form = RotaryForm::complex;
  tables.cos = t::mul_scalar(turns);
  return tables;
}

}  // namespace

// Without gradient: angles are a batched product, cos and sin are scaled and, but for one form, cast.
model::RotaryTables TransformersModules::rotary(const model::Rotary& module, const Tensor& hidden,
                                                Tensor position_ids_in) {
  const t::NoGrad no_grad(context_);
  const t::Scope named(context_, context_.intern("rotary_emb"));
  const Tensor ids = std::move(position_ids_in);
  update_frequencies(module, ids);
  Tensor length;
  Tensor recomputed;
  if (module.recomputed) recomputed = compute_frequencies(context_, module, length);
  const t::AutocastRegion off(context_, {});
  const Tensor& frequencies = module.recomputed ? recomputed : state_.buffer(module.buffer);
  Tensor expanded = t::unsqueeze(frequencies, 0);
  expanded = t::unsqueeze(std::move(expanded), 2);
  if (ids.dim() == 3) {
    expanded = t::unsqueeze(std::move(expanded), 0);
    expanded = t::expand(std::move(expanded), {ids.size(0), ids.size(1), module.dim / 2, 1});
  }
  Tensor positions = t::unsqueeze(ids, -2);
  positions = t::to(std::move(positions), DType::f32);
  Tensor angles = t::matmul(expanded, positions);
  angles = t::transpose(std::move(angles), -2, -1);
  if (module.form == RotaryForm::interleaved) angles = t::select(std::move(angles), 0, 0);
  if (module.form == RotaryForm::complex) return complex_tables(angles);
  // Twice each, one copy behind the other or side by side.
  const Tensor both = module.form == RotaryForm::narrow ? angles : t::cat({angles, angles}, -1);
  Tensor cos = t::cos(both);
  cos = t::mul_scalar(std::move(cos));
  Tensor sin = t::sin(both);
  sin = t::mul_scalar(std::move(sin));
  const DType dtype = module.form == model::RotaryForm::halves_fp32 ? DType::f32 : hidden.dtype();
  model::RotaryTables tables;
  tables.form = module.form;
  tables.sections = module.sections;
  tables.cos = t::to(cos, dtype);
  tables.sin = t::to(sin, dtype);
  return tables;
}

namespace {

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
  const bool pairs = form == RotaryForm::neighbours || form == RotaryForm::joined_neighbours;
  Tensor turned = pairs ? rotate_neighbours(x) : rotate_half(x);
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

// Both are turned before either is joined.
void rotate_and_join_last(Tensor& query, Tensor& key, const Tensor& cos, const Tensor& sin, RotaryForm form) {
  const Cut query_parts = cut(query, cos.size(-1));
  const Cut key_parts = cut(key, cos.size(-1));
  Tensor rotated_query = rotate(query_parts.turned, cos, sin, form);
  Tensor rotated_key = rotate(key_parts.turned, cos, sin, form);
  rotated_query = t::cat({rotated_query, query_parts.rest}, -1);
  rotated_key = t::cat({rotated_key, key_parts.rest}, -1);
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

// repeat_interleave: the first half of the last dimension, each entry twice.
Tensor twice_each(const Tensor& table) {
  Tensor half = t::slice(table, -1, 0, table.size(-1) / 2);
  Dims sizes = half.sizes();
  half = t::unsqueeze(std::move(half), -1);
  sizes.push_back(2);
  half = t::expand(std::move(half), sizes);
  half = t::copy_contiguous(std::move(half));
  return t::view(std::move(half), table.sizes());
}

// first * cos - second * sin and second * cos + first * sin, one behind the other.
Tensor turn_pairs(const Tensor& first, const Tensor& second, const Tensor& cos, const Tensor& sin) {
  Tensor left = t::mul(first, cos);
  {
    Tensor crossed = t::mul(second, sin);
    left = t::sub(std::move(left), std::move(crossed));
  }
  Tensor right = t::mul(second, cos);
  {
    Tensor crossed = t::mul(first, sin);
    right = t::add(std::move(right), std::move(crossed));
  }
  return t::cat({std::move(left), std::move(right)}, -1);
}

struct Pairs {
  Tensor first;
  Tensor second;
};

Pairs even_and_odd(const Tensor& x) {
  Pairs pairs;
  pairs.first = t::slice(x, -1, 0, x.size(-1), 2);
  pairs.second = t::slice(x, -1, 1, x.size(-1), 2);
  return pairs;
}

// Both are taken apart before either is turned.
void rotate_unzipped(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  Tensor cos = t::slice(tables.cos, -1, 0, tables.cos.size(-1) / 2);
  cos = t::unsqueeze(std::move(cos), 1);
  Tensor sin = t::slice(tables.sin, -1, 0, tables.sin.size(-1) / 2);
  sin = t::unsqueeze(std::move(sin), 1);
  const Pairs q = even_and_odd(query);
  const Pairs k = even_and_odd(key);
  Tensor rotated_query = turn_pairs(q.first, q.second, cos, sin);
  Tensor rotated_key = turn_pairs(k.first, k.second, cos, sin);
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

Tensor turn_halves(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const std::vector<Tensor> halves = t::split(x, x.size(-1) / 2, -1);
  return turn_pairs(halves[0], halves[1], cos, sin);
}

void rotate_narrow(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  const Tensor cos = t::unsqueeze(tables.cos, 1);
  const Tensor sin = t::unsqueeze(tables.sin, 1);
  Tensor rotated_query = turn_halves(query, cos, sin);
  Tensor rotated_key = turn_halves(key, cos, sin);
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

Tensor as_complex(const Tensor& x) {
  Tensor wide = t::to(x, DType::f32);
  wide = t::reshape(std::move(wide), {x.size(0), x.size(1), x.size(2), -1, 2});
  return t::view_as_complex(std::move(wide));
}

Tensor turn_complex(const Tensor& x, const Tensor& turns, DType dtype) {
  Tensor turned = t::complex_mul(x, turns);
  turned = t::view_as_real(std::move(turned));
  turned = t::reshape(std::move(turned), {x.size(0), x.size(1), x.size(2), -1});
  return t::to(std::move(turned), dtype);
}

void rotate_complex(Tensor& query, Tensor& key, const Tensor& table) {
  const Tensor q = as_complex(query);
  const Tensor k = as_complex(key);
  const Tensor turns = t::unsqueeze(table, 1);
  Tensor rotated_query = turn_complex(q, turns, query.dtype());
  Tensor rotated_key = turn_complex(k, turns, key.dtype());
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

void rotate_wide(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  const Tensor q = t::to(query, DType::f32);
  const Tensor k = t::to(key, DType::f32);
  const Tensor cos = t::unsqueeze(tables.cos, -2);
  const Tensor sin = t::unsqueeze(tables.sin, -2);
  Tensor rotated_query = rotate(q, cos, sin, RotaryForm::halves);
  Tensor rotated_key = rotate(k, cos, sin, RotaryForm::halves);
  rotated_query = t::to(std::move(rotated_query), query.dtype());
  rotated_key = t::to(std::move(rotated_key), key.dtype());
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

// Sections of the table's columns, twice over, each from the next of the three tables.
Tensor by_sections(const Tensor& table, const std::array<std::int64_t, 3>& sections) {
  std::vector<Tensor> taken;
  {
    std::vector<Tensor> columns =
        t::split(table, {sections[0], sections[1], sections[2], sections[0], sections[1], sections[2]}, -1);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      taken.push_back(t::select(columns[i], 0, static_cast<std::int64_t>(i % 3)));
    }
  }
  Tensor joined = t::cat(std::move(taken), -1);
  return t::unsqueeze(std::move(joined), 1);
}

void rotate_by_sections(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  const Tensor cos = by_sections(tables.cos, tables.sections);
  const Tensor sin = by_sections(tables.sin, tables.sections);
  Tensor rotated_query = rotate(query, cos, sin, RotaryForm::halves);
  Tensor rotated_key = rotate(key, cos, sin, RotaryForm::halves);
  query = std::move(rotated_query);
  key = std::move(rotated_key);
}

}  // namespace

// The old query and key live until both rotated ones exist.
void TransformersModules::apply_rotary(Tensor& query, Tensor& key, const model::RotaryTables& tables) {
  if (tables.form == RotaryForm::complex) return rotate_complex(query, key, tables.cos);
  if (tables.form == RotaryForm::unzipped) return rotate_unzipped(query, key, tables);
  if (tables.form == RotaryForm::narrow) return rotate_narrow(query, key, tables);
  if (tables.form == RotaryForm::wide) return rotate_wide(query, key, tables);
  if (tables.form == RotaryForm::sections) return rotate_by_sections(query, key, tables);
  const DType dtype = query.dtype();
  const bool in_fp32 = tables.form == RotaryForm::neighbours;
  const Tensor q = in_fp32 ? t::to(query, DType::f32) : query;
  const Tensor k = in_fp32 ? t::to(key, DType::f32) : key;
  const Tensor cos = t::unsqueeze(tables.cos, 1);
  const Tensor sin = t::unsqueeze(tables.sin, 1);
  if (tables.form == RotaryForm::joined_last) return rotate_and_join_last(query, key, cos, sin, tables.form);
  if (tables.form == RotaryForm::joined_neighbours) {
    const Tensor wide_cos = twice_each(cos);
    const Tensor wide_sin = twice_each(sin);
    return rotate_and_join_last(query, key, wide_cos, wide_sin, tables.form);
  }
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
  const bool goes_back = tables.form == RotaryForm::halves_back || tables.form == RotaryForm::halves_fp32 || in_fp32;
  const Tensor query_back = goes_back ? t::to(rotated_query, dtype) : rotated_query;
  const Tensor key_back = goes_back ? t::to(rotated_key, dtype) : rotated_key;
  query = query_back;
  key = key_back;
}

}  // namespace ullage::engines::pytorch
