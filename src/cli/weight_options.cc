#include "cli/weight_options.h"

namespace ullage::cli {
namespace {

using Facts = std::optional<report::WeightFacts>;

report::WeightFacts facts_of(const model::Architecture& architecture, const model::Quantisation& quantisation,
                             DType dtype) {
  return report::weight_facts(quantisation.name, model::stored_weights(architecture, quantisation, dtype));
}

}  // namespace

Expected<Facts> weights_as_stored(const Arguments& arguments, const LoadedModel& loaded, DType dtype) {
  if (!arguments.has("--quantization")) {
    if (!loaded.quantisation.is_object()) return Facts{};
    const auto read = model::read_quantisation(JsonObject(loaded.quantisation, "quantization_config"));
    return read ? Facts(facts_of(loaded.architecture, *read, dtype)) : Facts{};
  }
  const std::string word = arguments.text("--quantization");
  if (model::is_gguf_mix(word)) {
    return model::gguf_tensors(loaded.architecture, word).map([&](const std::vector<model::MixTensor>& tensors) {
      return Facts(report::weight_facts(word, tensors));
    });
  }
  return model::quantisation_named(word).map([&](const model::Quantisation& quantisation) {
    return Facts(facts_of(loaded.architecture, quantisation, parse_dtype(word).value_or(dtype)));
  });
}

}  // namespace ullage::cli
