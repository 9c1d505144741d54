// How much of its cards a training run uses, as values and as text and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/messages.h"
#include "report/text_style.h"
#include "speed/utilisation.h"

namespace ullage::report {

// One way of counting what a token costs.
struct WorkRule {
  std::string name;  // "6N"
  Message formula;   // with the numbers put in
  speed::TokenFlops flops;
  std::string source;
};

// Throughput to compare with.
struct ReferenceRun {
  std::string name;
  double tokens_per_second_per_gpu = 0;
  std::string source;
};

// An absent optional was neither given nor can it be computed.
struct Utilisation {
  std::string model;  // empty: none was named
  std::int64_t parameters = 0;
  std::int64_t active_parameters = 0;
  std::string gpu;        // the catalogue's id; empty: none was named
  std::string gpu_title;  // the product's name
  std::int64_t gpus = 1;
  std::string precision = "bf16";
  std::optional<double> peak_flops;     // of one card
  std::optional<Message> peak_formula;  // where the peak was computed from cores and clock
  std::optional<double> flops;          // of one card a second, as given
  std::optional<double> tokens_per_second;
  std::optional<double> examples_per_second;
  std::optional<std::int64_t> seq_len;
  speed::Rerun rerun = speed::Rerun::nothing;
  std::vector<WorkRule> rules;  // the last is the one that counts
  std::optional<ReferenceRun> reference;
  std::vector<Message> assumptions;
  std::vector<Message> warnings;
};

std::optional<double> tokens_per_second_per_gpu(const Utilisation& u);
// Fractions of the peak, by the rule or, without one, of the FLOPs that were given.
std::optional<double> mfu_of(const Utilisation& u, const WorkRule* rule);
std::optional<double> hfu_of(const Utilisation& u, const WorkRule* rule);
// The rule whose figures stand at the top; null: none.
const WorkRule* main_rule(const Utilisation& u);

std::string utilisation_text(const Utilisation& u, const TextStyle& style);
std::string utilisation_json(const Utilisation& u);

}  // namespace ullage::report
