// The catalogues as text and JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hardware/gpu.h"
#include "report/text_style.h"

namespace ullage::report {

struct ListedModel {
  std::string name;
  std::string model_type;
  bool partial = false;                    // its configuration lacks what counting needs
  std::optional<std::int64_t> parameters;  // absent where the family is not built yet
};

std::string models_json(const std::vector<ListedModel>& models);
std::string models_text(const std::vector<ListedModel>& models, const TextStyle& style);

std::string gpus_json(const std::vector<hardware::Gpu>& gpus);
std::string gpus_text(const std::vector<hardware::Gpu>& gpus, const TextStyle& style);

}  // namespace ullage::report
