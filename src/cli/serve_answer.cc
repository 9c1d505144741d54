#include "cli/serve_answer.h"

#include "cli/answer.h"
#include "cli/model_source.h"
#include "hardware/process_memory.h"
#include "report/serve_report.h"

namespace ullage::cli {
namespace {

Expected<ServeAnswer> answer(LoadedModel loaded, ServeSetup setup, ChosenDevice device) {
  setup.options.card = capability_of(device);
  auto served = engines::transformers::run_generation(loaded.architecture, setup.options);
  if (!served) return tl::unexpected<Error>(served.error());
  const hardware::Gpu* gpu = device.gpu ? &*device.gpu : nullptr;
  if (setup.options.kernels == engines::pytorch::Kernels::cuda)
    engines::transformers::add_workspace(*served, hardware::process_memory(gpu).cublas_workspace_bytes);
  report::Prediction out =
      report::serve_report({loaded.architecture, setup.options, *served, gpu, setup.allocator, device.used_bytes});
  out.setup = std::move(setup.settings);
  std::vector<report::Message> of_engine = std::move(out.assumptions);
  out.assumptions = std::move(setup.assumptions);
  append(out.assumptions, loaded.assumptions);
  append(out.assumptions, std::move(device.assumptions));
  append(out.assumptions, std::move(of_engine));
  append(out.warnings, std::move(setup.warnings));
  append(out.warnings, loaded.warnings);
  return ServeAnswer{std::move(out), *std::move(served), setup.allocator};
}

}  // namespace

Expected<ServeAnswer> answer_serving(const Arguments& arguments, const Files& files) {
  if (auto checked = check_require_fit(arguments); !checked) return tl::unexpected<Error>(checked.error());
  auto loaded = load_model(arguments.positionals().front(), arguments.all("--set"), files);
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  auto setup = resolve_serve_options(arguments, loaded->architecture);
  if (!setup) return tl::unexpected<Error>(setup.error());
  auto device = choose_device(arguments, files);
  if (!device) return tl::unexpected<Error>(device.error());
  return answer(*std::move(loaded), *std::move(setup), *std::move(device));
}

}  // namespace ullage::cli
