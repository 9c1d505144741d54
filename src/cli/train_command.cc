#include <algorithm>
#include <iterator>
#include <optional>

#include "cli/commands.h"
#include "cli/device_options.h"
#include "cli/model_source.h"
#include "cli/output.h"
#include "cli/run.h"
#include "cli/train_options.h"
#include "engines/pytorch/workspaces.h"
#include "hardware/process_memory.h"
#include "report/prediction_json.h"
#include "report/prediction_text.h"
#include "report/timeline_file.h"
#include "report/train_report.h"

namespace ullage::cli {
namespace {

// From the third micro-batch on each does what the second did: gradients exist and are added to. Further ones add
// work and no memory, so they are counted instead of simulated.
constexpr std::int64_t kSimulatedMicroBatches = 3;

void append(std::vector<report::Message>& to, std::vector<report::Message> more) {
  to.insert(to.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

// What decides which kernels run; a card that nobody knows is one that runs them all.
tensor::Capability capability_of(const ChosenDevice& device) {
  if (!device.gpu || !device.gpu->compute_capability) return {};
  return {device.gpu->compute_capability->major, device.gpu->compute_capability->minor};
}

// One step with what a real card adds to the operators' own allocations.
Expected<engines::pytorch::TrainRun> simulate(const model::Architecture& architecture,
                                              const engines::pytorch::TrainOptions& options, const hardware::Gpu* gpu) {
  auto run = engines::pytorch::run_train_step(architecture, options);
  if (run && options.kernels == engines::pytorch::Kernels::cuda)
    engines::pytorch::add_workspaces(*run, options.step, hardware::process_memory(gpu).cublas_workspace_bytes);
  return run;
}

// --timeline: a file by its suffix.
Expected<void> write_timeline(const Arguments& arguments, const Files& files, const report::TrainQuestion& question) {
  if (!arguments.has("--timeline")) return {};
  const std::string path = arguments.text("--timeline");
  const engines::pytorch::ReserveQuestion program{question.run, question.first, 0, question.allocator, {}};
  return files.write(path, path.ends_with(".pickle") ? report::snapshot_pickle(program) : report::trace_json(program));
}

Expected<void> check_timeline(const Arguments& arguments) {
  if (!arguments.has("--timeline")) return {};
  const std::string path = arguments.text("--timeline");
  if (!path.ends_with(".pickle") && !path.ends_with(".json"))
    return fail(ErrorCode::invalid_argument, "--timeline",
                "expected FILE.pickle (a memory snapshot) or FILE.json (a trace)");
  if (arguments.text("--kernels") != "cpu") return {};
  return fail(ErrorCode::invalid_argument, "--timeline", "shows a GPU's memory; leave --kernels cpu out");
}

Expected<report::Prediction> predict_step(const LoadedModel& loaded, TrainSetup setup, ChosenDevice device,
                                          const Arguments& arguments, const Files& files) {
  setup.options.card = capability_of(device);
  engines::pytorch::TrainOptions simulated = setup.options;
  simulated.grad_accum = std::min(simulated.grad_accum, kSimulatedMicroBatches);
  const hardware::Gpu* gpu = device.gpu ? &*device.gpu : nullptr;
  const auto run = simulate(loaded.architecture, simulated, gpu);
  if (!run) return tl::unexpected<Error>(run.error());
  report::TrainQuestion question{loaded.architecture, setup.options, *run, gpu,
                                 setup.options.grad_accum - simulated.grad_accum};
  question.allocator = setup.allocator;
  question.used_bytes = device.used_bytes;
  std::optional<engines::pytorch::TrainRun> first;
  if (simulated.step == engines::pytorch::Step::steady && simulated.kernels != engines::pytorch::Kernels::cpu) {
    simulated.step = engines::pytorch::Step::first;
    auto ran = simulate(loaded.architecture, simulated, gpu);
    if (!ran) return tl::unexpected<Error>(ran.error());
    first = *std::move(ran);
    question.first = &*first;
  }
  if (auto written = write_timeline(arguments, files, question); !written)
    return tl::unexpected<Error>(written.error());
  report::Prediction out = report::train_report(question);
  out.setup = std::move(setup.settings);
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = std::move(setup.assumptions);
  append(out.assumptions, loaded.assumptions);
  append(out.assumptions, std::move(device.assumptions));
  append(out.assumptions, std::move(of_engine));
  append(out.warnings, std::move(setup.warnings));
  append(out.warnings, loaded.warnings);
  return out;
}

int exit_status(const Arguments& arguments, const report::Prediction& prediction) {
  return arguments.has("--require-fit") && prediction.fit.fits == false ? kDoesNotFit : kAnswered;
}

Expected<void> check_require_fit(const Arguments& arguments) {
  if (!arguments.has("--require-fit") || arguments.has("--gpu")) return {};
  return fail(ErrorCode::invalid_argument, "--require-fit", "nothing to fit into; name a card with --gpu");
}

}  // namespace

Expected<report::Prediction> predict_training(const Arguments& arguments, const Files& files) {
  if (auto checked = check_require_fit(arguments); !checked) return tl::unexpected<Error>(checked.error());
  if (auto checked = check_timeline(arguments); !checked) return tl::unexpected<Error>(checked.error());
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  auto setup = resolve_train_options(arguments, loaded->architecture);
  if (!setup) return tl::unexpected<Error>(setup.error());
  auto device = choose_device(arguments);
  if (!device) return tl::unexpected<Error>(device.error());
  auto prediction = predict_step(*loaded, *std::move(setup), *std::move(device), arguments, files);
  if (prediction && arguments.has("--require-fit") && !prediction->fit.fits) {
    prediction->warnings.push_back({report::Text::warn_fit_unknown, {}});
  }
  return prediction;
}

Expected<report::Prediction> predict(std::span<const std::string> words, const Files& files) {
  if (words.empty() || words.front() != "train") {
    return not_in_this_version(words.empty() ? std::string("command") : words.front());
  }
  const auto arguments = parse_arguments(*find_command("train"), words.subspan(1));
  if (!arguments) return tl::unexpected<Error>(arguments.error());
  if (arguments->has("--help")) return fail(ErrorCode::invalid_argument, "--help", "asks for no prediction");
  return predict_training(*arguments, files);
}

Expected<int> train_command(const Invocation& call) {
  const auto style = text_style(call.arguments, call.streams.surroundings);
  if (!style) return tl::unexpected<Error>(style.error());
  const auto prediction = predict_training(call.arguments, call.files);
  if (!prediction) return tl::unexpected<Error>(prediction.error());
  const std::string answer =
      wants_json(call.arguments) ? report::prediction_json(*prediction) : report::prediction_text(*prediction, *style);
  return call.streams.out(answer).map([&] { return exit_status(call.arguments, *prediction); });
}

}  // namespace ullage::cli
