// What each optimizer keeps of a parameter from step to step.
#pragma once

#include <string_view>
#include <vector>

#include "engines/pytorch/options.h"
#include "tensor/context.h"

namespace ullage::engines::pytorch {

// Makes the states of one parameter after the other. What all states of an optimizer share (the code tables of 8-bit
// states) comes with the first that needs it; in backward each parameter has an optimizer of its own.
class StateMaker {
 public:
  StateMaker(tensor::Context& context, const TrainOptions& options) : context_(context), options_(options) {}

  // In the order in which they are made. `muon`: the parameter is one of Muon's.
  std::vector<tensor::Tensor> make(const tensor::Tensor& parameter, bool muon);

 private:
  void add(tensor::Tensor state, std::string_view label);
  void add_like(const tensor::Tensor& parameter, std::string_view label);
  void add_counter();
  void add_adam(const tensor::Tensor& parameter);
  void add_adafactor(const tensor::Tensor& parameter);
  void add_8bit(const tensor::Tensor& parameter);
  void add_torchao(const tensor::Tensor& parameter, std::int64_t block);
  void add_codes(const tensor::Tensor& parameter, std::int64_t block, std::string_view label);

  NameId name_of(std::string_view label);

  tensor::Context& context_;
  const TrainOptions& options_;
  std::vector<tensor::Tensor> made_;
  std::vector<tensor::Tensor> tables_;
  std::vector<std::pair<const char*, NameId>> names_;  // of the labels met so far, which are literals
};

}  // namespace ullage::engines::pytorch
