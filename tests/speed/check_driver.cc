#include "check_driver.h"

#include <chrono>
#include <functional>
#include <iostream>

#include "cli/commands.h"
#include "launch/launch.h"

namespace ullage {
namespace {

constexpr const char* kCommand =
    "CUDA_VISIBLE_DEVICES=0,1,2,3 python -m vllm.entrypoints.openai.api_server --host 0.0.0.0 --port 8000 \\\n"
    "  --model meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4 --max_model_len=32768 \\\n"
    "  --gpu-memory-utilization 0.92 --enable-prefix-caching --max-num-seqs 512 --trust-remote-code \\\n"
    "  --served-model-name llama --hf-overrides '{\"rope_theta\": 500000.0}' --disable-log-requests";

Expected<launch::Launch> read() {
  const std::vector<std::string> words{kCommand};
  return launch::read_launch(words, [](const std::string& path) -> Expected<std::string> {
    return fail(ErrorCode::not_found, path, "no such file");
  });
}

int drive(std::int64_t times, const std::function<std::int64_t()>& once) {
  std::int64_t sum = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::int64_t i = 0; i < times; ++i) sum += once();
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::cout << sum << ", " << took.count() / static_cast<double>(times) << " ms\n";
  return sum > 0 ? 0 : 1;
}

}  // namespace

int drive_launches(std::int64_t times) {
  return drive(times, [] { return static_cast<std::int64_t>(read().value_or(launch::Launch{}).options.size()); });
}

int drive_checks(std::int64_t times) {
  const cli::Files files = cli::real_files();
  return drive(times, [&] {
    const auto launch = read();
    if (!launch) return std::int64_t{0};
    std::vector<std::string> words = launch::serve_words(*launch);
    words.insert(words.end(), {"--gpu", "4xh100"});
    const auto prediction = cli::predict(words, files);
    return prediction && prediction->fit.fits.value_or(false) ? prediction->peak.process_bytes.value_or(0) : 0;
  });
}

}  // namespace ullage
