#include "fit_driver.h"

#include <chrono>
#include <iostream>

#include "cli/fit_rows.h"
#include "engines/transformers/serve.h"
#include "hardware/gpu_list.h"
#include "model/catalogue.h"

namespace ullage {
namespace {

struct Count {
  std::int64_t models = 0;
  std::int64_t pairs = 0;
  std::int64_t fitting = 0;
};

Count fit_all() {
  Count out;
  const cli::FitWanted wanted;
  const cli::Files files = cli::real_files();
  std::vector<cli::FitGpu> gpus;
  for (const hardware::Gpu& gpu : hardware::list_gpus().value_or(std::vector<hardware::Gpu>{}))
    gpus.push_back(cli::fit_gpu(gpu.id, gpu, plan::kMostCards));
  for (const model::ModelRow& row : model::list_models()) {
    if (row.partial || !engines::transformers::serves(row.model_type)) continue;
    const auto model = cli::load_fit_model(std::string(row.name), wanted, files);
    if (!model) continue;
    ++out.models;
    for (const cli::FitGpu& gpu : gpus) {
      const auto choices = cli::estimated_fits(**model, gpu, wanted);
      ++out.pairs;
      if (choices && !choices->empty()) ++out.fitting;
    }
  }
  return out;
}

}  // namespace

int drive_fits(std::int64_t times) {
  Count count;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < times; ++i) count = fit_all();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::cout << count.models << " models, " << count.fitting << " of " << count.pairs << " pairs fit, "
            << took.count() / static_cast<double>(times) << " ms\n";
  return count.fitting > 0 ? 0 : 1;
}

}  // namespace ullage
