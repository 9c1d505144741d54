#include "cli/train_answer.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/answer.h"
#include "cli/code_options.h"
#include "engines/pytorch/reserve_nearby.h"
#include "engines/pytorch/workspaces.h"
#include "hardware/process_memory.h"
#include "report/train_report.h"

namespace ullage::cli {
namespace {

// From the third micro-batch on each does what the second did: gradients exist and are added to. Further ones add
// work and no memory, so they are counted instead of simulated.
constexpr std::int64_t kSimulatedMicroBatches = 3;

// One step with what a real card adds to the operators' own allocations.
Expected<engines::pytorch::TrainRun> simulate(const model::Architecture& architecture,
                                              const engines::pytorch::TrainOptions& options, const hardware::Gpu* gpu) {
  auto run = engines::pytorch::run_train_step(architecture, options);
  if (run && options.kernels == engines::pytorch::Kernels::cuda)
    engines::pytorch::add_workspaces(*run, options.step, hardware::process_memory(gpu).cublas_workspace_bytes);
  return run;
}

// What the formulas say of a step of the size that was asked for.
std::vector<report::TextbookLine> textbook_of(double parameters, const model::Architecture& architecture,
                                              const engines::pytorch::TrainOptions& options) {
  report::TextbookQuestion question;
  question.parameters = parameters;
  question.bits = 8.0 * static_cast<double>(size_of(options.dtype));
  question.shape = report::textbook_shape(architecture);
  question.micro_batch = options.micro_batch;
  question.seq_len = options.seq_len;
  return report::textbook_training_lines(question);
}

// What the neighbour of the simulated step reserves.
std::int64_t nearby_reserved(const model::Architecture& architecture, const engines::pytorch::TrainOptions& options,
                             const report::TrainQuestion& question) {
  using engines::pytorch::Kernels;
  if (options.kernels == Kernels::cpu) return 0;
  const std::int64_t workspace =
      options.kernels == Kernels::cuda ? hardware::process_memory(question.gpu).cublas_workspace_bytes : 0;
  return engines::pytorch::reserved_nearby({architecture, options, workspace, question.allocator, nullptr});
}

Expected<TrainAnswer> answer_step(LoadedModel loaded, TrainSetup setup, ChosenDevice device, Ranges ranges) {
  setup.options.card = capability_of(device);
  auto coded = engines::pytorch::in_code(std::move(loaded.architecture), std::move(setup.options));
  if (!coded) return tl::unexpected<Error>(coded.error());
  loaded.architecture = std::move(coded->architecture);
  setup.options = std::move(coded->options);
  engines::pytorch::TrainOptions simulated = setup.options;
  simulated.grad_accum = std::min(simulated.grad_accum, kSimulatedMicroBatches);
  const hardware::Gpu* gpu = device.gpu ? &*device.gpu : nullptr;
  auto run = simulate(loaded.architecture, simulated, gpu);
  if (!run) return tl::unexpected<Error>(run.error());
  report::TrainQuestion question{loaded.architecture, setup.options, *run, gpu,
                                 setup.options.grad_accum - simulated.grad_accum};
  question.allocator = setup.allocator;
  question.used_bytes = device.used_bytes;
  question.load = setup.load;
  if (ranges == Ranges::nearby)
    question.nearby_reserved_bytes = nearby_reserved(loaded.architecture, simulated, question);
  std::optional<engines::pytorch::TrainRun> first;
  if (simulated.step == engines::pytorch::Step::steady && simulated.kernels != engines::pytorch::Kernels::cpu) {
    simulated.step = engines::pytorch::Step::first;
    auto ran = simulate(loaded.architecture, simulated, gpu);
    if (!ran) return tl::unexpected<Error>(ran.error());
    first = *std::move(ran);
    question.first = &*first;
  }
  report::Prediction out = report::train_report(question);
  if (loaded.size) out.textbook = textbook_of(*loaded.size, loaded.architecture, setup.options);
  out.setup = std::move(setup.settings);
  tell(out, {std::move(setup.assumptions), std::move(setup.warnings)}, loaded, std::move(device.assumptions));
  return TrainAnswer{std::move(out),  std::move(loaded), setup.options,
                     setup.allocator, *std::move(run),   std::move(first)};
}

// A card that is named must be able to run what is asked for.
Expected<void> check_card(const engines::pytorch::TrainOptions& options, const ChosenDevice& device) {
  if (options.attention != engines::pytorch::AttentionImpl::flash || !device.gpu) return {};
  if (hardware::supports_flash_attention_2(*device.gpu) != hardware::Support::no) return {};
  return fail(ErrorCode::invalid_argument, "--attention",
              fmt::format("flash needs compute capability 8.0 and {} has {}; use sdpa", device.gpu->name,
                          hardware::to_string(*device.gpu->compute_capability)));
}

Expected<void> check_trainable(const LoadedModel& loaded) {
  if (!loaded.stored || loaded.stored->format != model::CheckpointFormat::gguf) return {};
  return fail(ErrorCode::invalid_argument, loaded.architecture.name,
              "is a GGUF file, which PyTorch does not train from; name the model's config.json or its folder");
}

}  // namespace

Expected<TrainAnswer> answer_training(const Arguments& arguments, const Files& files, Ranges ranges) {
  if (auto checked = check_require_fit(arguments); !checked) return tl::unexpected<Error>(checked.error());
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  if (auto checked = check_trainable(*loaded); !checked) return tl::unexpected<Error>(checked.error());
  auto setup = resolve_train_options(arguments, loaded->architecture);
  if (!setup) return tl::unexpected<Error>(setup.error());
  if (auto known = check_attention_of(setup->options.code, loaded->config); !known)
    return tl::unexpected<Error>(known.error());
  auto device = choose_device(arguments, files);
  if (!device) return tl::unexpected<Error>(device.error());
  if (auto checked = check_card(setup->options, *device); !checked) return tl::unexpected<Error>(checked.error());
  auto answer = answer_step(*std::move(loaded), *std::move(setup), *std::move(device), ranges);
  if (answer && arguments.has("--require-fit") && !answer->prediction.fit.fits) {
    answer->prediction.warnings.push_back({report::Text::warn_fit_unknown, {}});
  }
  return answer;
}

}  // namespace ullage::cli
