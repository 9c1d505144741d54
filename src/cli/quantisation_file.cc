#include "cli/quantisation_file.h"

#include <string>

namespace ullage::cli {
namespace {

Json linear_weights(int bits, int group) {
  Json weights = {{"num_bits", bits}, {"type", "float"}};
  if (group > 0) weights["group_size"] = group;
  Json out = {{"weights", std::move(weights)}, {"targets", Json::array({"Linear"})}};
  out["input_activations"] = {{"num_bits", bits}, {"type", "float"}, {"dynamic", false}};
  return out;
}

}  // namespace

Json quantisation_in_file(const Json& file) {
  if (!file.is_object()) return nullptr;
  const auto said = file.find("quantization");
  if (said == file.end() || !said->is_object()) return nullptr;
  const auto algorithm = said->find("quant_algo");
  if (algorithm == said->end() || !algorithm->is_string()) return nullptr;
  const std::string word = algorithm->get<std::string>();
  Json out = {{"quant_method", "modelopt"}};
  constexpr int kNvfp4Group = 16;
  if (word == "NVFP4") out["config_groups"] = {{"group_0", linear_weights(4, kNvfp4Group)}};
  else if (word == "FP8") out["config_groups"] = {{"group_0", linear_weights(8, 0)}};
  else out["quant_method"] = "modelopt " + word;
  if (const auto excluded = said->find("exclude_modules"); excluded != said->end() && excluded->is_array())
    out["ignore"] = *excluded;
  return out;
}

}  // namespace ullage::cli
