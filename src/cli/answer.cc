#include "cli/answer.h"

#include <iterator>

namespace ullage::cli {

void append(std::vector<report::Message>& to, std::vector<report::Message> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

void tell(report::Prediction& out, Told resolved, const LoadedModel& loaded, std::vector<report::Message> of_device) {
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = std::move(resolved.assumptions);
  append(out.assumptions, loaded.assumptions);
  append(out.assumptions, std::move(of_device));
  append(out.assumptions, std::move(of_engine));
  append(out.warnings, std::move(resolved.warnings));
  append(out.warnings, loaded.warnings);
}

tensor::Capability capability_of(const hardware::Gpu& gpu) {
  if (!gpu.compute_capability) return {};
  return {gpu.compute_capability->major, gpu.compute_capability->minor};
}

tensor::Capability capability_of(const ChosenDevice& device) {
  return device.gpu ? capability_of(*device.gpu) : tensor::Capability{};
}

Expected<void> check_require_fit(const Arguments& arguments) {
  if (!arguments.has("--require-fit") || arguments.has("--gpu")) return {};
  return fail(ErrorCode::invalid_argument, "--require-fit", "nothing to fit into; name a card with --gpu");
}

}  // namespace ullage::cli
