#include "search_driver.h"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "cli/commands.h"

namespace ullage {

// The 80 layers of the other counts, with everything that `ullage train` answers: ranges, and assumptions.
int drive_search(std::int64_t times) {
  const std::vector<std::string> words{
      "train", "meta-llama/Llama-3.1-70B", "--gpu", "h200", "--lora", "8", "--recompute", "full", "--micro-batch",
      "max"};
  const cli::Files files = cli::real_files();
  double least = std::numeric_limits<double>::max();
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < times; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const auto found = cli::predict(words, files);
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    if (!found) return 1;
    bytes = found->peak.allocated_bytes;
    least = std::min(least, took.count());
  }
  std::cout << bytes << " bytes at the peak of what fits, least " << least << " ms\n";
  return 0;
}

}  // namespace ullage
