// Rows of tests/data/ops (its README has the format): one operator of PyTorch, what it was given and what it allocated.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "tensor/context.h"

namespace ullage::testing {

struct OperatorRow {
  std::string file;
  std::size_t line = 0;
  Json json;

  std::string op() const { return json.at("op").get<std::string>(); }
  std::string mode() const { return json.at("mode").get<std::string>(); }
  const Json& attrs() const { return json.at("attrs"); }
  // "cuda-products.jsonl:17 linear {…} grad, with the inputs": for people.
  std::string title() const;
};

// All rows of every file, files in order of their names.
std::vector<OperatorRow> read_operator_rows();

// What a lambda of the table below is given.
struct Call {
  tensor::Context& context;
  std::vector<tensor::Tensor> inputs;  // an operator moves out of it what Python passes on
  const Json& attrs;
};
using Outputs = std::vector<tensor::Tensor>;
using Operator = Outputs (*)(Call& call);

// The C++ side of an operator's name, or nullptr with the reason why it has none.
struct Chosen {
  Operator run = nullptr;
  std::string why_not;
};
Chosen choose_operator(const OperatorRow& row);

// Begins a difference that is only one of the order in which tensors go between two allocations.
inline constexpr const char* kReleaseOrder = "order of releases, ";

// What the C++ operator did, against the row. Empty: equal.
std::vector<std::string> differences(const OperatorRow& row, Operator run);

}  // namespace ullage::testing
