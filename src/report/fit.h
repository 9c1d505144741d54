// `ullage fit`: which models fit on which cards, and what makes them fit.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "report/messages.h"
#include "report/text_style.h"

namespace ullage::report {

struct FitRow {
  std::string model;  // as it was asked for: "7B"
  std::string name;   // the catalogue's
  std::int64_t parameters = 0;
  std::string gpu;         // the catalogue's id, or as it was asked for
  std::string title;       // the product's name
  std::int64_t cards = 0;  // 0: nothing makes it fit
  std::string quantization;
  std::string dtype;  // of what is not quantised
  std::int64_t weight_bytes = 0;
  std::int64_t context_tokens = 0;  // of one sequence: the largest that fits
  bool at_the_limit = false;        // as far as the model's positions go
  bool certain = true;
  std::optional<std::int64_t> headroom_bytes;  // on the fullest card
  std::optional<double> tokens_per_second;     // at best, of one sequence
  bool memory_bound = true;
  std::optional<std::int64_t> cards_w;
  std::optional<std::int64_t> supply_w;
  std::vector<std::string> args;  // of the call that shows it
  std::string not_modelled;       // why there is no answer, in English; the rest but `model` may be empty
};

struct FitTable {
  bool ranks_models = false;      // no model was named
  std::int64_t least_tokens = 0;  // that must be kept to count as fitting
  std::int64_t speed_tokens = 0;  // that are kept where speed is told
  std::vector<FitRow> rows;
  std::int64_t left_out = 0;  // further ones that fit
  std::int64_t not_fitting = 0;
  std::vector<Message> assumptions;
  std::vector<Message> warnings;
};

std::string fit_text(const FitTable& table, const TextStyle& style);
std::string fit_json(const FitTable& table);

// Of Chinese text.
double characters_per_second(double tokens_per_second);

}  // namespace ullage::report
