// Adapted linears as PEFT writes them (src/peft/tuners/lora/layer.py).
#include "engines/pytorch/transformers_modules.h"
#include "tensor/record.h"

namespace ullage::engines::pytorch {

namespace t = ullage::tensor;
using model::call;
using t::Tensor;

namespace {

Tensor factor(const Tensor& weight, NameId module, Tensor x) {
  const t::Scope named(weight.context(), module);
  return t::linear(std::move(x), weight, {});
}

}  // namespace

namespace {

// W + the update, whose rows' lengths stay out of the graph. Nothing of it lives on but those lengths.
Tensor row_lengths(Tensor weight_in, Tensor update_in, bool turned) {
  Tensor weight = std::move(weight_in);
  const Tensor update = std::move(update_in);
  if (turned) weight = t::transpose(std::move(weight), 0, 1);
  {
    Tensor scaled = t::mul_scalar(update);
    weight = t::add(weight, std::move(scaled));
  }
  return t::empty(weight.context(), t::Op::norm, {weight.size(0)}, weight.dtype());
}

}  // namespace

// DoraLinearLayer.forward (src/peft/tuners/lora/dora.py): the update is multiplied out over a unit matrix to know the
// rows' lengths; it stays bound, with its graph, as the cast weight does. `base` is empty where the input was dropped
// out: then the base runs again on what is left of it.
Tensor TransformersModules::dora(const model::Linear& module, const Adapter& adapter, Tensor x_in, Tensor base_in) {
  const Tensor x = std::move(x_in);
  Tensor base = std::move(base_in);
  const auto a = [&](Tensor h) { return factor(adapter.a, adapter.a_module, std::move(h)); };
  const auto b = [&](Tensor h) { return factor(adapter.b, adapter.b_module, std::move(h)); };
  Tensor update;
  {
    const std::int64_t width = adapter.a.size(1);
    const Tensor unit = t::empty(context_, t::Op::eye, {width, width}, adapter.a.dtype());
    Tensor low = call(a, unit);
    update = call(b, std::move(low));
    update = t::transpose(std::move(update), 0, 1);
  }
  update = t::to(std::move(update), x.dtype());
  const Tensor weight = t::to(parameter(module.weight), x.dtype());
  Tensor lengths = row_lengths(weight, t::detach(update), module.stored_in_out);
  Tensor scale = t::div(adapter.magnitude, lengths);
  scale = t::view(std::move(scale), {1, -1});
  Tensor low = call(a, x);
  const Tensor high = call(b, std::move(low));
  if (!base) base = t::linear(x, module.stored_in_out ? t::transpose(weight, 0, 1) : weight, {});
  else if (module.bias) base = t::sub(base, parameter(module.bias));
  Tensor shrunk = t::add_scalar(scale);
  Tensor straight = t::mul(std::move(shrunk), base);
  Tensor turned = t::mul(scale, high);
  turned = t::mul_scalar(std::move(turned));
  return t::add(std::move(straight), std::move(turned));
}

// DoraLinearVariant.forward (src/peft/tuners/lora/variants.py).
Tensor TransformersModules::with_dora(const model::Linear& module, const Adapter& adapter, const Tensor& x,
                                      const Tensor& result) {
  const Tensor dropped = call([&](Tensor h) { return t::dropout(std::move(h), options_.lora_dropout); }, x);
  const Tensor base = options_.lora_dropout > 0 ? Tensor{} : result;
  Tensor change =
      call([&](Tensor h, Tensor y) { return dora(module, adapter, std::move(h), std::move(y)); }, dropped, base);
  return t::add(result, std::move(change));
}

// B(A(dropout(x))) * scaling
Tensor TransformersModules::update_of(const Adapter& adapter, Tensor x) {
  Tensor low = call([&](Tensor h) { return t::dropout(std::move(h), options_.lora_dropout); }, std::move(x));
  low = call([&](Tensor h) { return factor(adapter.a, adapter.a_module, std::move(h)); }, std::move(low));
  Tensor update = call([&](Tensor h) { return factor(adapter.b, adapter.b_module, std::move(h)); }, std::move(low));
  return t::mul_scalar(std::move(update));
}

// Beside quantised weights (src/peft/tuners/lora/bnb.py): the result of a four-bit product is copied first; nothing is
// cast under autocast.
Tensor TransformersModules::adapted_quantised(const model::Linear& module, const Adapter& adapter, bool four_bit,
                                              Tensor x_in) {
  Tensor x = std::move(x_in);
  Tensor result = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
  const t::Scope named(context_, scope(module.weight));
  if (four_bit) result = t::clone_in_graph(result);
  const bool casts = !context_.autocast.enabled;
  if (casts) x = t::to(x, adapter.a.dtype());
  Tensor update = update_of(adapter, x);
  if (casts) update = t::to(update, result.dtype());
  result = t::add(result, update);
  return result;
}

// Linear4bit.forward and Linear8bitLt.forward (bitsandbytes/nn/modules.py).
Tensor TransformersModules::quantised_linear(const model::Linear& module, const Quantised& weight, Tensor x_in) {
  if (weight.blocks.codes) return t::matmul_block_scaled(std::move(x_in), weight.blocks);
  if (weight.packed.codes && options_.packed_kernel) return t::matmul_packed(std::move(x_in), weight.packed);
  if (weight.packed.codes && weight.packed.is_awq()) return awq_linear(module, weight.packed, std::move(x_in));
  if (weight.packed.codes) return gptq_linear(module, weight.packed, std::move(x_in));
  Tensor x = std::move(x_in);
  Tensor bias = optional_parameter(module.bias);
  if (weight.eight.codes) return t::matmul_8bit(std::move(x), weight.eight, std::move(bias));
  const DType given = x.dtype();
  x = t::to(x, compute_dtype(options_));
  if (bias) bias = t::to(bias, compute_dtype(options_));
  Tensor out = t::matmul_4bit(x, weight.four, bias);
  return t::to(std::move(out), given);
}

namespace {

t::Dims with_width(t::Dims sizes, std::int64_t width) {
  sizes[-1] = width;
  return sizes;
}

}  // namespace

// TorchLinear._forward_eager (gptqmodel/nn_modules/qlinear/torch.py).
Tensor TransformersModules::gptq_linear(const model::Linear& module, const t::PackedWeight& weight, Tensor x_in) {
  Tensor x = std::move(x_in);
  const t::Dims sizes = with_width(x.sizes(), weight.shape[0]);
  x = t::reshape(std::move(x), {-1, weight.shape[1]});
  Tensor whole = t::unpacked(weight, x.dtype());
  whole = t::to(std::move(whole), x.dtype());
  Tensor out = t::matmul(x, whole);
  out = t::reshape(std::move(out), sizes);
  if (!module.bias) return out;
  const Tensor bias = t::to(parameter(module.bias), out.dtype());
  t::add_bias_to_view(out, bias);
  return out;
}

// AwqTorchLinear.forward (gptqmodel/nn_modules/qlinear/torch_awq.py).
Tensor TransformersModules::awq_linear(const model::Linear& module, const t::PackedWeight& weight, Tensor x_in) {
  const Tensor x = std::move(x_in);
  const DType given = x.dtype();
  const DType half = given == DType::f32 ? DType::f16 : given;
  Tensor flat = t::reshape(x, {-1, weight.shape[1]});
  flat = t::to(std::move(flat), half);
  const Tensor whole = t::unpacked(weight, half);
  Tensor out = t::matmul(flat, whole);
  if (module.bias) out = t::add(out, parameter(module.bias));
  out = t::to(std::move(out), given);
  return t::reshape(std::move(out), with_width(x.sizes(), weight.shape[0]));
}

// AwqLoraLinear.forward (src/peft/tuners/lora/awq.py): the update is cast before it is scaled.
Tensor TransformersModules::adapted_awq(const model::Linear& module, const Adapter& adapter, Tensor x_in) {
  Tensor x = std::move(x_in);
  Tensor result = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
  const t::Scope named(context_, scope(module.weight));
  const bool casts = !context_.autocast.enabled;
  if (casts) x = t::to(x, adapter.a.dtype());
  Tensor low = call([&](Tensor h) { return t::dropout(std::move(h), options_.lora_dropout); }, x);
  low = call([&](Tensor h) { return factor(adapter.a, adapter.a_module, std::move(h)); }, std::move(low));
  Tensor update = call([&](Tensor h) { return factor(adapter.b, adapter.b_module, std::move(h)); }, std::move(low));
  if (casts) update = t::to(update, result.dtype());
  update = t::mul_scalar(update);
  result = t::add(result, update);
  return result;
}

// (IA)3's linear (src/peft/tuners/ia3/layer.py): what comes out is scaled, or what goes in. The scale is a product with
// the number one to begin with.
Tensor TransformersModules::scaled_linear(const model::Linear& module, const Adapter& adapter, Tensor x_in) {
  Tensor x = std::move(x_in);
  const DType dtype = x.dtype();
  const t::Scope named(context_, scope(module.weight));
  Tensor scale = t::view(adapter.scale, {-1});
  scale = t::mul_scalar(std::move(scale));
  if (adapter.scales_input) {
    x = t::to(x, adapter.scale.dtype());
    Tensor product = t::mul(x, scale);
    const Tensor scaled = t::to(std::move(product), dtype);
    return call([&](Tensor h) { return plain_linear(module, std::move(h)); }, scaled);
  }
  Tensor result = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
  const DType given = result.dtype();
  Tensor product = t::mul(result, scale);
  result = t::to(std::move(product), given);
  return result;
}

// The input is cast to the adapter's type, the sum back to that of the module's result. Each name keeps its old tensor
// until the new one exists.
Tensor TransformersModules::adapted_linear(const model::Linear& module, const Adapter& adapter, Tensor x_in) {
  if (adapter.scale) return scaled_linear(module, adapter, std::move(x_in));
  Tensor x = std::move(x_in);
  Tensor result = call([&](Tensor h) { return plain_linear(module, std::move(h)); }, x);
  const DType dtype = result.dtype();
  const t::Scope named(context_, scope(module.weight));
  x = t::to(x, adapter.a.dtype());
  if (adapter.magnitude) {
    result = with_dora(module, adapter, x, result);
    return t::to(std::move(result), dtype);
  }
  Tensor update = update_of(adapter, x);
  result = t::add(result, std::move(update));
  return t::to(std::move(result), dtype);
}

}  // namespace ullage::engines::pytorch
