// Predicts a training step as often as it is told to, for whoever counts its instructions:
//   speed_tests --steps N [--full|--replayed|--asked|--ranged]
// --replayed: as by default, equal layers spliced, and the timeline through PyTorch's allocator.
// --asked: what `ullage train` asks of a steady step: the first one, too, and what both reserve.
//   speed_tests --launches N
//   speed_tests --checks N
// reads a launch command, and answers for it.
// --ranged: the same and the range of what is reserved.
//   speed_tests --search N
// asks for the largest micro-batch that fits on a card.
//   speed_tests --read FILE N
// reads the header of a safetensors file, or an index of several, as often as it is told to.
// Without arguments of its own it is an ordinary test program.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string_view>

#include "base/byte_source.h"
#include "check_driver.h"
#include "engines/pytorch/reserve.h"
#include "engines/pytorch/reserve_nearby.h"
#include "fit_driver.h"
#include "memory/timeline_replay.h"
#include "model/catalogue.h"
#include "model/checkpoint/safetensors.h"
#include "model/family.h"
#include "search_driver.h"

namespace ullage {
namespace {

using namespace engines::pytorch;

enum class How { spliced, full, replayed, asked, ranged };

std::int64_t reserved_by(const TrainRun& run) {
  memory::CachingAllocator allocator;
  memory::TimelineReplay(allocator).run(run.timeline, 0, static_cast<std::uint32_t>(run.timeline.events.size()));
  return allocator.reserved_bytes();
}

Expected<std::int64_t> reserved_by_program(const model::Architecture& architecture, TrainOptions options,
                                           tensor::Workspace& workspace) {
  auto steady = run_train_step(architecture, options, true, &workspace);
  options.step = Step::first;
  auto first = run_train_step(architecture, options, true, &workspace);
  if (!steady || !first) return tl::unexpected<Error>((steady ? first : steady).error());
  const auto end = static_cast<std::uint32_t>(steady->timeline.events.size());
  const memory::Peak peak = memory::find_peak(steady->timeline, steady->before_step, end);
  const Reserved reserved = reserve({*steady, &*first, peak.event, {}, {}});
  workspace.give_back(std::move(first->timeline));
  workspace.give_back(std::move(steady->timeline));
  return reserved.bytes;
}

// 80 layers, full recompute. Nothing but room is kept between calls, and each is of another width.
Expected<std::int64_t> peak_of_step(const Json& config, std::int64_t call, How how, tensor::Workspace& workspace) {
  Json changed = config;
  changed["intermediate_size"] = config.value("intermediate_size", std::int64_t{0}) + 8 * call;
  const auto architecture = model::build_architecture(changed, "config");
  if (!architecture) return tl::unexpected<Error>(architecture.error());
  TrainOptions options;
  options.recompute = Recompute::full;
  if (how == How::asked) return reserved_by_program(*architecture, options, workspace);
  if (how == How::ranged) {
    const auto asked = reserved_by_program(*architecture, options, workspace);
    const std::int64_t nearby = reserved_nearby({*architecture, options, 0, {}, &workspace});
    return asked.map([&](std::int64_t bytes) { return std::max(bytes, nearby); });
  }
  auto run = run_train_step(*architecture, options, how != How::full, &workspace);
  if (!run) return tl::unexpected<Error>(run.error());
  const auto end = static_cast<std::uint32_t>(run->timeline.events.size());
  const std::int64_t peak =
      how == How::replayed ? reserved_by(*run) : memory::find_peak(run->timeline, run->before_step, end).bytes;
  workspace.give_back(std::move(run->timeline));
  return peak;
}

How how_of(std::string_view word) {
  if (word == "--full") return How::full;
  if (word == "--replayed") return How::replayed;
  if (word == "--asked") return How::asked;
  if (word == "--ranged") return How::ranged;
  return How::spliced;
}

using Milliseconds = std::chrono::duration<double, std::milli>;

int drive(std::int64_t steps, How how) {
  const auto entry = model::find_model("meta-llama/Llama-3.1-70B");
  if (!entry) return 1;
  std::int64_t sum = 0;
  tensor::Workspace workspace;
  Milliseconds all{0};
  Milliseconds least{1e9};  // what the machine does when nobody else uses it
  for (std::int64_t call = 0; call < steps; ++call) {
    const auto start = std::chrono::steady_clock::now();
    const auto peak = peak_of_step(entry->config, call, how, workspace);
    const Milliseconds took = std::chrono::steady_clock::now() - start;
    if (!peak) return 1;
    sum += *peak / steps;
    all += took;
    least = std::min(least, took);
  }
  std::cout << sum << " bytes at the peak on average, " << all.count() / static_cast<double>(steps)
            << " ms a step, least " << least.count() << " ms\n";
  return 0;
}

Expected<std::size_t> read_once(const std::string& path) {
  const auto source = open_file(path);
  if (!source) return tl::unexpected<Error>(source.error());
  if (path.ends_with(".index.json"))
    return model::read_safetensors_index(**source).map([](const auto& index) { return index.entries.size(); });
  return model::read_safetensors(**source).map([](const auto& checkpoint) { return checkpoint.tensors.size(); });
}

int drive_reading(const std::string& path, std::int64_t times) {
  std::size_t tensors = 0;
  std::chrono::duration<double, std::milli> best(0);
  for (std::int64_t i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto read = read_once(path);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!read) return 1;
    tensors = *read;
    best = i == 0 ? took : std::min(best, took);
  }
  std::cout << tensors << " tensors, " << best.count() << " ms at best\n";
  return 0;
}

}  // namespace
}  // namespace ullage

int main(int argc, char** argv) {
  if (argc > 2 && std::strcmp(argv[1], "--steps") == 0) {
    return ullage::drive(std::atoll(argv[2]), ullage::how_of(argc < 4 ? "" : argv[3]));
  }
  if (argc > 2 && std::strcmp(argv[1], "--fits") == 0) return ullage::drive_fits(std::atoll(argv[2]));
  if (argc > 2 && std::strcmp(argv[1], "--launches") == 0) return ullage::drive_launches(std::atoll(argv[2]));
  if (argc > 2 && std::strcmp(argv[1], "--checks") == 0) return ullage::drive_checks(std::atoll(argv[2]));
  if (argc > 2 && std::strcmp(argv[1], "--search") == 0) return ullage::drive_search(std::atoll(argv[2]));
  if (argc == 4 && std::strcmp(argv[1], "--read") == 0) return ullage::drive_reading(argv[2], std::atoll(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
