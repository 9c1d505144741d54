#include "engines/transformers/quantised_tokens.h"

#include <fmt/core.h>

#include <algorithm>

namespace ullage::engines::transformers {

namespace t = ullage::tensor;
using t::Context;
using t::Dims;
using t::Op;
using t::Tensor;

namespace {

constexpr std::int64_t kByte = 8;  // bits

Tensor like(const Tensor& x, Op op) { return t::empty(x.context(), op, x.sizes(), x.dtype()); }
Tensor like(const Tensor& x, Op op, DType dtype) { return t::empty(x.context(), op, x.sizes(), dtype); }

// --- quanto ----------------------------------------------------------------------------------------------------------

// tensor/grouped.py: [groups, size of one] along the first axis; [size, groups] along the last, which takes a copy.
Tensor grouped(const Tensor& x, int axis, std::int64_t group) {
  if (axis == 0) return t::reshape(x, {-1, group});
  Tensor out = t::reshape(x, {-1, group, x.size(-1)});
  const std::int64_t groups = out.size(0) * out.size(2);
  out = t::transpose(std::move(out), 0, 1);
  out = t::transpose(std::move(out), 1, 2);
  return t::reshape(std::move(out), {group, groups});
}

Tensor ungrouped(Tensor x_in, int axis, const Dims& sizes) {
  Tensor x = std::move(x_in);
  if (axis == 0) return t::reshape(std::move(x), sizes);
  const Dims parts{x.size(0), sizes[-1], -1};
  x = t::view(std::move(x), parts);
  x = t::transpose(std::move(x), 1, 2);
  x = t::transpose(std::move(x), 0, 1);
  return t::reshape(std::move(x), sizes);
}

struct Scales {
  Tensor scale;
  Tensor shift;
};

// MaxOptimizer.optimize.
Scales scales_of(const Tensor& x, int axis, std::int64_t group) {
  const Tensor base = grouped(x, axis, group);
  Context& context = x.context();
  const Dims sizes = axis == 0 ? Dims{base.size(0), 1} : Dims{1, base.size(1)};
  const Tensor least = t::empty(context, Op::min, sizes, x.dtype());
  const Tensor most = t::empty(context, Op::maximum, sizes, x.dtype());
  Scales out;
  {
    const Tensor range = t::empty(context, Op::sub, sizes, x.dtype());
    out.scale = like(range, Op::div);
  }
  out.shift = like(least, Op::neg);
  return out;
}

// quanto::quantize_affine: a byte for each number.
Tensor affine_codes(const Tensor& x, int axis, std::int64_t group) {
  const Tensor base = grouped(x, axis, group);
  Tensor data = like(base, Op::add);
  data = like(base, Op::div);
  data = like(base, Op::abs);  // rounded
  const Tensor clamped = like(base, Op::clamp);
  return like(base, Op::cast, DType::u8);
}

// pack_weights: rows that lie far apart share a byte.
Tensor packed(const Tensor& codes, std::int64_t bits) {
  const std::int64_t values = kByte / bits;
  const std::int64_t rows = (codes.size(0) + values - 1) / values;
  Tensor out = t::empty(codes.context(), Op::zeros, {rows, codes.size(1)}, DType::u8);
  for (std::int64_t i = 0; i < std::min(values, codes.size(0) / rows + 1); ++i) {
    const std::int64_t here = std::min((i + 1) * rows, codes.size(0)) - i * rows;
    if (here > 0) t::empty(codes.context(), Op::quantize, {here, codes.size(1)}, DType::u8);
  }
  return out;
}

// quanto::unpack.
Tensor unpacked_rows(const Tensor& codes, std::int64_t bits) {
  const std::int64_t values = kByte / bits;
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < values; ++i) {
    const Tensor masked = like(codes, Op::logical_and);
    parts.push_back(like(codes, Op::dequantize));
  }
  return t::cat(std::move(parts), 0);
}

// --- hqq -------------------------------------------------------------------------------------------------------------

struct Solver {
  const Tensor& x;  // half precision
  Dims one;         // of a group's scale
  int axis;

  struct Step {
    Tensor whole;
    Tensor codes;
    Tensor zero;
  };

  Tensor codes() const {
    Tensor out;
    {
      Tensor shifted;
      {
        const Tensor scaled = like(x, Op::mul);
        shifted = like(x, Op::add);
      }
      out = like(x, Op::abs);  // rounded
    }
    return out;
  }

  // shrink_lp_op of a difference.
  Tensor shrunk() const {
    const Tensor difference = like(x, Op::sub);
    Tensor out = like(x, Op::abs);
    {
      Tensor powers = like(x, Op::pow);
      const Tensor scaled = like(x, Op::mul);
      powers.reset();
    }
    const Tensor signs = like(x, Op::compare);
    return out;
  }

  // optimize_weights_proximal_legacy_step.
  Step step() const {
    Step out;
    out.codes = codes();
    {
      const Tensor difference = like(x, Op::sub);
      out.whole = like(x, Op::div);
    }
    const Tensor shrunken = shrunk();
    Tensor left;
    {
      Tensor scaled;
      {
        const Tensor difference = like(x, Op::sub);
        scaled = like(x, Op::mul);
      }
      left = like(x, Op::sub);
    }
    out.zero = t::empty(x.context(), Op::mean, one, x.dtype());
    return out;
  }

  Tensor error() const {
    Tensor mean;
    {
      Tensor size;
      {
        const Tensor difference = like(x, Op::sub);
        size = like(x, Op::abs);
      }
      mean = t::empty(x.context(), Op::mean, {}, x.dtype());
    }
    return t::to(std::move(mean), DType::f32);
  }
};

struct Solved {
  Tensor codes;
  Tensor scale;
  Tensor zero;
};

// optimize_weights_proximal_legacy: computes in fp16 on a GPU.
Solved solve(const Tensor& x, const Tensor& scale, const Tensor& zero, int axis) {
  Context& context = x.context();
  Tensor half = like(x, Op::cast, DType::f16);
  Solved out;
  out.scale = like(scale, Op::cast, DType::f16);
  out.zero = like(zero, Op::cast, DType::f16);
  Tensor best = t::empty(context, Op::cast, {}, DType::f32);
  {
    Solver::Step step;
    Tensor error;
    for (int i = 0; i < 2; ++i) {
      Solver::Step next = Solver{half, scale.sizes(), axis}.step();
      step.whole = std::move(next.whole);
      step.codes = std::move(next.codes);
      out.zero = std::move(next.zero);
      error = Solver{half, scale.sizes(), axis}.error();
      t::empty(context, Op::compare, {}, DType::boolean);
      if (i == 0) best = error;
    }
    half.reset();
    step = {};
    Tensor shifted;
    {
      const Tensor scaled = like(x, Op::mul);
      shifted = like(x, Op::add);
    }
    out.codes = like(x, Op::abs);  // rounded
  }
  return out;
}

// What min and max give beside the values: where they are.
Tensor extreme(const Tensor& x, const Dims& one, Op op) {
  Tensor out = t::empty(x.context(), op, one, DType::f32);
  t::empty(x.context(), Op::index, one, DType::i64);
  return out;
}

// BitPack: rows that lie far apart share a byte.
Tensor bits_packed(const Tensor& codes, std::int64_t bits) {
  const Tensor bytes = like(codes, Op::cast, DType::u8);
  const std::int64_t values = kByte / bits;
  if (values == 1) return bytes;
  const Dims part{codes.size(0) / values, codes.size(1)};
  const auto made = [&](Op op) { return t::empty(codes.context(), op, part, DType::u8); };
  Tensor out = made(Op::quantize);
  for (std::int64_t i = 1; i < values; ++i) {
    const Tensor shifted = i + 1 < values ? made(Op::quantize) : Tensor{};
    out = made(Op::add);
  }
  return out;
}

void unpack_bits(const Tensor& codes, std::int64_t bits) {
  for (std::int64_t i = 1; i < kByte / bits; ++i) {
    const Tensor masked = like(codes, Op::logical_and);
    const Tensor shifted = like(codes, Op::dequantize);
  }
  like(codes, Op::logical_and);
}

}  // namespace

QuantisedTokens::State QuantisedTokens::by_quanto(const Tensor& x) const {
  const t::Restore<memory::Component> component(x.context().component, memory::Component::temporaries);
  State out;
  Scales scales = scales_of(x, axis_, form_.group);
  const Tensor codes = affine_codes(x, axis_, form_.group);
  out.codes = packed(codes, form_.bits);
  out.scales = std::move(scales.scale);
  out.zeros = std::move(scales.shift);
  return out;
}

QuantisedTokens::State QuantisedTokens::by_hqq(const Tensor& x) const {
  Context& context = x.context();
  const t::Restore<memory::Component> component(context.component, memory::Component::temporaries);
  Tensor whole = t::to(x, DType::f32);
  whole =
      axis_ == 1 ? t::reshape(std::move(whole), {-1, form_.group}) : t::reshape(std::move(whole), {form_.group, -1});
  const Dims one = axis_ == 1 ? Dims{whole.size(0), 1} : Dims{1, whole.size(1)};
  Tensor least = extreme(whole, one, Op::min);
  Tensor most = extreme(whole, one, Op::maximum);
  const Tensor range = like(least, Op::sub);
  Tensor scale;
  {
    const Tensor inverse = like(range, Op::div);
    scale = like(range, Op::mul);
  }
  {
    Tensor tiny;
    {
      const Tensor size = like(range, Op::abs);
      tiny = like(range, Op::compare, DType::boolean);
    }
    const Tensor ones = like(range, Op::ones_like);
    scale = like(range, Op::where);
  }
  scale = like(range, Op::clamp);
  Tensor zero;
  {
    const Tensor negative = like(range, Op::neg);
    zero = like(range, Op::mul);
  }
  Solved solved = solve(whole, scale, zero, axis_);
  scale.reset();
  zero.reset();
  whole.reset();
  least.reset();
  most.reset();
  {
    const Tensor inverse = like(solved.scale, Op::div);
    solved.scale = like(solved.scale, Op::mul);
  }
  State out;
  out.codes = bits_packed(solved.codes, form_.bits);
  solved.codes.reset();
  out.scales = std::move(solved.scale);
  out.zeros = std::move(solved.zero);
  return out;
}

void QuantisedTokens::take(Tensor x_in, const QuantisedCache& form, int axis) {
  const Tensor x = std::move(x_in);
  form_ = form;
  axis_ = axis;
  State made = form.backend == CacheBackend::quanto ? by_quanto(x) : by_hqq(x);
  if (form.backend == CacheBackend::hqq) {
    made.scales = t::to(made.scales, x.dtype());
    made.zeros = t::to(made.zeros, x.dtype());
  }
  sizes_ = x.sizes();
  dtype_ = x.dtype();
  Context& context = x.context();
  for (const Tensor* part : {&made.codes, &made.scales, &made.zeros}) {
    context.retag(part->storage(), memory::Component::kv_cache);
    context.set_label(part->storage(), context.intern("quantised"));
  }
  state_ = std::move(made);
}

void QuantisedTokens::jump_to(Context& context, std::int64_t tokens) {
  sizes_[2] = tokens;
  const std::int64_t groups = t::numel(sizes_) / form_.group;
  const std::int64_t values = kByte / form_.bits;
  const bool rows = axis_ == (form_.backend == CacheBackend::quanto ? 0 : 1);  // that groups are
  const std::int64_t first = rows ? groups : form_.group;
  const Dims one = rows ? Dims{groups, 1} : Dims{1, groups};
  state_.codes =
      t::empty(context, Op::quantize, {(first + values - 1) / values, rows ? form_.group : groups}, DType::u8);
  state_.scales = t::empty(context, Op::div, one, dtype_);
  state_.zeros = t::empty(context, Op::neg, one, dtype_);
}

Tensor QuantisedTokens::whole_of_quanto() const {
  const Tensor codes = unpacked_rows(state_.codes, form_.bits);
  const std::int64_t groups = t::numel(sizes_) / form_.group;
  const Dims grouped_sizes = axis_ == 0 ? Dims{groups, form_.group} : Dims{form_.group, groups};
  Tensor out = t::empty(codes.context(), Op::mul, grouped_sizes, dtype_);
  return ungrouped(std::move(out), axis_, sizes_);
}

Tensor QuantisedTokens::whole_of_hqq() const {
  const std::int64_t groups = t::numel(sizes_) / form_.group;
  const Dims grouped_sizes = axis_ == 1 ? Dims{groups, form_.group} : Dims{form_.group, groups};
  Context& context = state_.codes.context();
  const Tensor codes = t::empty(context, form_.bits == kByte ? Op::cast : Op::empty, grouped_sizes, dtype_);
  if (form_.bits < kByte) unpack_bits(state_.codes, form_.bits);
  const Tensor shifted = like(codes, Op::sub);
  Tensor scaled = like(codes, Op::mul);
  return t::reshape(std::move(scaled), sizes_);
}

Tensor QuantisedTokens::whole() const {
  return form_.backend == CacheBackend::quanto ? whole_of_quanto() : whole_of_hqq();
}

std::int64_t quantised_bytes(const QuantisedCache& form, std::int64_t numbers, DType dtype) {
  return numbers * form.bits / kByte + 2 * size_of(dtype) * numbers / form.group;
}

Expected<void> check_quantised_cache(const QuantisedCache& form, std::string_view where) {
  const bool quanto = form.backend == CacheBackend::quanto;
  const auto wrong = [&](std::string message) {
    return fail(ErrorCode::invalid_argument, std::string(where), std::move(message));
  };
  if (quanto && form.bits != 2 && form.bits != 4)
    return wrong(fmt::format("nbits is {}; quanto's cache has 2 or 4", form.bits));
  if (!quanto && (form.bits == 1 || form.bits == 3))
    return fail(ErrorCode::unsupported, std::string(where),
                fmt::format("hqq's packing of {} bits is not modelled; use 2, 4 or 8", form.bits));
  if (!quanto && form.bits != 2 && form.bits != 4 && form.bits != kByte)
    return wrong(fmt::format("nbits is {}; hqq's cache has 1, 2, 3, 4 or 8", form.bits));
  for (const int axis : {form.axis_key, form.axis_value}) {
    if (axis == 0 || axis == (quanto ? -1 : 1)) continue;
    return wrong(fmt::format("an axis is {}; {}", axis, quanto ? "quanto takes 0 or -1" : "hqq takes 0 or 1"));
  }
  if (form.group < 1) return wrong(fmt::format("q_group_size is {}; expected 1 or more", form.group));
  if (form.residual_length < 1)
    return wrong(fmt::format("residual_length is {}; expected 1 or more", form.residual_length));
  return {};
}

bool fills_groups(const QuantisedCache& form, int axis, const Dims& sizes) {
  const std::int64_t numbers = t::numel(sizes);
  if (form.backend == CacheBackend::quanto) return (numbers / sizes[axis == 0 ? 0 : 3]) % form.group == 0;
  const std::int64_t rows = axis == 1 ? numbers / form.group : form.group;
  return numbers % form.group == 0 && rows % (kByte / form.bits) == 0;
}

}  // namespace ullage::engines::transformers
