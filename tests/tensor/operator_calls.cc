// From the names of the operator rows to the C++ operators.
#include <algorithm>
#include <map>

#include "engines/pytorch/transformers_modules.h"
#include "operator_row.h"
#include "tensor/ops.h"

namespace ullage::testing {
namespace {

using tensor::Dims;
using tensor::Tensor;
namespace t = ullage::tensor;

Tensor take(Call& call, std::size_t i) { return i < call.inputs.size() ? std::move(call.inputs[i]) : Tensor{}; }

Outputs one(Tensor output) {
  Outputs out;
  out.push_back(std::move(output));
  return out;
}

template <Tensor (*kOperator)(Tensor)>
Outputs unary(Call& call) {
  return one(kOperator(take(call, 0)));
}

template <Tensor (*kOperator)(Tensor, Tensor)>
Outputs binary(Call& call) {
  return one(kOperator(take(call, 0), take(call, 1)));
}

Dims dims_of(const Json& list) {
  Dims out;
  for (const Json& value : list) out.push_back(value.get<std::int64_t>());
  return out;
}

int whole(const Json& attrs, const char* key, int fallback = 0) { return attrs.value(key, fallback); }

DType dtype_of(const Json& attrs, DType fallback) {
  return attrs.contains("dtype") ? *parse_dtype(attrs.at("dtype").get<std::string>()) : fallback;
}

// A model's modules without a model: for the functions that own no parameter.
struct Bare {
  explicit Bare(tensor::Context& context)
      : state(context, architecture, plan, options), modules(context, state, options) {}

  model::Architecture architecture;
  model::TuningPlan plan;
  engines::pytorch::TrainOptions options;
  engines::pytorch::ModelState state;
  engines::pytorch::TransformersModules modules;
};

Outputs rotary(Call& call) {
  Bare bare(call.context);
  model::RotaryTables tables;
  Tensor query = take(call, 0);
  Tensor key = take(call, 1);
  tables.cos = take(call, 2);
  tables.sin = take(call, 3);
  bare.modules.apply_rotary(query, key, tables);
  Outputs out;
  out.push_back(std::move(query));
  out.push_back(std::move(key));
  return out;
}

Outputs causal_lm_loss(Call& call) {
  Bare bare(call.context);
  return one(bare.modules.causal_lm_loss(take(call, 0), take(call, 1)));
}

Outputs gelu_new(Call& call) {
  Bare bare(call.context);
  return one(bare.modules.activation(model::Activation::gelu_new, take(call, 0)));
}

Outputs attention(Call& call) {
  const bool grouped = call.attrs.value("enable_gqa", false);
  const double dropout = call.attrs.value("dropout_p", 0.0);
  return one(
      t::scaled_dot_product_attention(take(call, 0), take(call, 1), take(call, 2), take(call, 3), dropout, grouped));
}

t::Tensor mean(t::Tensor x) { return t::mean_last(std::move(x)); }

Outputs slice(Call& call) {
  const int dim = whole(call.attrs, "dim");
  return one(t::slice(take(call, 0), dim, whole(call.attrs, "start"), whole(call.attrs, "end")));
}

Outputs flatten(Call& call) {
  Tensor x = take(call, 0);
  Dims sizes;
  for (int i = 0; i < whole(call.attrs, "start"); ++i) sizes.push_back(x.size(i));
  sizes.push_back(-1);
  return one(t::reshape(std::move(x), sizes));
}

Outputs add_in_place(Call& call) {
  Tensor x = take(call, 0);
  t::iadd(x, take(call, 1));
  return one(std::move(x));
}

template <void (*kOperator)(const Tensor&)>
Outputs in_place(Call& call) {
  Tensor x = take(call, 0);
  kOperator(x);
  return one(std::move(x));
}

t::Pool2d pool_of(const Json& attrs) {
  return {whole(attrs, "kernel_size"), whole(attrs, "stride"), whole(attrs, "padding")};
}

using Operators = std::map<std::string, Operator>;

Operators arithmetic() {
  return {
      {"add", binary<t::add>},
      {"sub", binary<t::sub>},
      {"mul", binary<t::mul>},
      {"add_scalar", unary<t::add_scalar>},
      {"mul_scalar", unary<t::mul_scalar>},
      {"div_scalar", unary<t::div_scalar>},
      {"neg", unary<t::neg>},
      {"pow", unary<t::pow_scalar>},
      {"rsqrt", unary<t::rsqrt>},
      {"tanh", unary<t::tanh>},
      {"sigmoid", unary<t::sigmoid>},
      {"silu", unary<t::silu>},
      {"gelu", unary<t::gelu>},
      {"relu", unary<t::relu>},
      {"gelu_new", gelu_new},
      {"add_in_place", add_in_place},
      {"relu_in_place", in_place<t::relu_in_place>},
      {"relu6_in_place", in_place<t::hardtanh_in_place>},
      {"dropout", [](Call& call) { return one(t::dropout(take(call, 0), call.attrs.at("p").get<double>())); }},
      {"to", [](Call& call) { return one(t::to(take(call, 0), dtype_of(call.attrs, DType::f32))); }},
      {"mean", unary<mean>},
      {"sum", unary<t::sum_all>},
      {"softmax",
       [](Call& call) {
         if (!call.attrs.contains("dtype")) return one(t::softmax(take(call, 0)));
         return one(t::softmax(take(call, 0), dtype_of(call.attrs, DType::f32)));
       }},
      {"log_softmax", unary<t::log_softmax>},
      {"cross_entropy", binary<t::cross_entropy>},
      {"causal_lm_loss", causal_lm_loss},
      {"linear", [](Call& call) { return one(t::linear(take(call, 0), take(call, 1), take(call, 2))); }},
      {"conv1d", [](Call& call) { return one(t::conv1d_addmm(take(call, 0), take(call, 1), take(call, 2))); }},
      {"addmm",
       [](Call& call) {
         Tensor bias = take(call, 0);
         return one(t::conv1d_addmm(take(call, 1), take(call, 2), std::move(bias)));
       }},
      {"matmul", binary<t::matmul>},
      {"embedding",
       [](Call& call) {
         Tensor ids = take(call, 0);
         return one(t::embedding(take(call, 1), std::move(ids)));
       }},
      {"layer_norm", [](Call& call) { return one(t::layer_norm(take(call, 0), take(call, 1), take(call, 2))); }},
      {"attention", attention},
      {"rotary", rotary},
  };
}

Operators shapes_and_images() {
  return {
      {"view", [](Call& call) { return one(t::view(take(call, 0), dims_of(call.attrs.at("shape")))); }},
      {"reshape", [](Call& call) { return one(t::reshape(take(call, 0), dims_of(call.attrs.at("shape")))); }},
      {"expand", [](Call& call) { return one(t::expand(take(call, 0), dims_of(call.attrs.at("shape")))); }},
      {"transpose",
       [](Call& call) { return one(t::transpose(take(call, 0), whole(call.attrs, "a"), whole(call.attrs, "b"))); }},
      {"unsqueeze", [](Call& call) { return one(t::unsqueeze(take(call, 0), whole(call.attrs, "dim"))); }},
      {"flatten", flatten},
      {"contiguous", unary<t::contiguous>},
      {"cat", [](Call& call) { return one(t::cat(std::move(call.inputs), whole(call.attrs, "dim"))); }},
      {"slice", slice},
      {"split",
       [](Call& call) { return t::split(take(call, 0), whole(call.attrs, "size"), whole(call.attrs, "dim")); }},
      {"unbind", [](Call& call) { return t::unbind(take(call, 0), whole(call.attrs, "dim")); }},
      {"conv3d", [](Call& call) { return one(t::conv3d_whole(take(call, 0), take(call, 1), take(call, 2))); }},
      {"masked_scatter",
       [](Call& call) { return one(t::masked_scatter(take(call, 0), take(call, 1), take(call, 2))); }},
      {"rows_by_host",
       [](Call& call) {
         const auto rows = static_cast<std::int64_t>(call.attrs.at("rows").size());
         return one(t::index_rows_by_host(take(call, 0), rows));
       }},
      {"conv2d",
       [](Call& call) {
         const t::Convolution options{whole(call.attrs, "stride", 1), whole(call.attrs, "padding"),
                                      whole(call.attrs, "groups", 1)};
         return one(t::conv2d(take(call, 0), take(call, 1), take(call, 2), options));
       }},
      {"batch_norm",
       [](Call& call) {
         return one(t::batch_norm(take(call, 0), take(call, 1), take(call, 2), take(call, 3), take(call, 4)));
       }},
      {"max_pool2d", [](Call& call) { return one(t::max_pool2d(take(call, 0), pool_of(call.attrs))); }},
      {"avg_pool2d", [](Call& call) { return one(t::avg_pool2d(take(call, 0), pool_of(call.attrs))); }},
      {"adaptive_avg_pool2d",
       [](Call& call) { return one(t::adaptive_avg_pool2d(take(call, 0), call.attrs.at("size")[0].get<int>())); }},
  };
}

const Operators& table() {
  static const Operators operators = [] {
    Operators all = arithmetic();
    all.merge(shapes_and_images());
    return all;
  }();
  return operators;
}

bool mixes_types(const OperatorRow& row) {
  const Json& inputs = row.json.at("inputs");
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Json& input) { return input.at("dtype") != inputs[0].at("dtype"); });
}

bool has_scalar_tensor(const OperatorRow& row) {
  const Json& inputs = row.json.at("inputs");
  return std::any_of(inputs.begin(), inputs.end(), [](const Json& input) { return input.at("shape").empty(); });
}

std::size_t dims(const OperatorRow& row, std::size_t input) {
  return row.json.at("inputs").at(input).at("shape").size();
}

bool contiguous(const Json& input) {
  std::int64_t expected = 1;
  for (std::size_t i = input.at("shape").size(); i-- > 0;) {
    if (input.at("strides")[i] != expected && input.at("shape")[i] != 1) return false;
    expected *= input.at("shape")[i].get<std::int64_t>();
  }
  return true;
}

// Forms of an operator that ops.h does not offer.
std::string missing_form(const OperatorRow& row) {
  const Json& attrs = row.attrs();
  const std::string op = row.op();
  if (op == "sum" && !attrs.empty()) return "sum over one dimension";
  if (op == "mean" && !attrs.value("keepdim", false)) return "mean without keepdim";
  if (op == "log_softmax" && attrs.contains("dtype")) return "log_softmax with a dtype of its own";
  if (op == "cross_entropy" && !attrs.empty()) return "cross_entropy summed or smoothed";
  if (op == "batch_norm" && !attrs.at("training").get<bool>()) return "batch_norm in evaluation";
  if (op == "matmul" && dims(row, 1) == 2) return "matmul with a matrix on the right";
  if (op == "linear" && row.json.at("inputs").size() == 2 && !contiguous(row.json.at("inputs")[0]))
    return "linear without bias of an input that is not contiguous";
  if (op == "rows_by_host" && row.mode() == "recompute") return "a list on the host inside of a checkpoint";
  if (op == "causal_lm_loss" && row.mode() == "recompute") return "a loss inside of a checkpoint";
  if ((op == "cat" || op == "linear") && mixes_types(row)) return op + " of several types";
  if (has_scalar_tensor(row) && mixes_types(row)) return "an operand without dimensions, of another type";
  return {};
}

}  // namespace

Chosen choose_operator(const OperatorRow& row) {
  if (const std::string missing = missing_form(row); !missing.empty()) return {nullptr, "no form: " + missing};
  const auto found = table().find(row.op());
  if (found == table().end()) return {nullptr, "no operator: " + row.op()};
  return {found->second, {}};
}

}  // namespace ullage::testing
