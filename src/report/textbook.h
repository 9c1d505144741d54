// What the formulas of courses and interviews say about a size, line by line, each with who teaches it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/textbook.h"
#include "report/messages.h"
#include "report/text_style.h"

namespace ullage::report {

enum class TextbookUnit : std::uint8_t { bytes, parameters, cards, samples, blocks, sequences };

struct TextbookLine {
  std::string name;  // "weights": the same in every language
  Text title{};
  TextbookUnit unit = TextbookUnit::bytes;
  double value = 0;
  std::string formula;  // with its letters, then with the numbers
  std::string source;
};

struct TextbookCard {
  std::string name;
  double gigabytes = 0;  // as printed on it
};

// Absent parameters: only what the rest allows is answered.
struct TextbookQuestion {
  std::optional<double> parameters;
  double bits = 16;  // of a weight
  model::textbook::Shape shape;
  std::int64_t devices = 1;
  std::int64_t micro_batch = 1;
  std::int64_t seq_len = 2048;
  std::optional<TextbookCard> card;
  std::int64_t cache_bytes = 0;      // 0: not asked for
  std::int64_t bytes_per_token = 0;  // of the cache
  std::int64_t block_size = 128;     // tokens of a block, MindIE's default
  std::int64_t input_len = 1024;
  std::int64_t output_len = 1024;
  std::int64_t lora_rank = 0;  // 0: not asked for
  std::int64_t matrix_in = 0;  // that the adapter is added to
  std::int64_t matrix_out = 0;
};

std::vector<TextbookLine> textbook_lines(const TextbookQuestion& question);
// Those that speak of a training step.
std::vector<TextbookLine> textbook_training_lines(const TextbookQuestion& question);

model::textbook::Shape textbook_shape(const model::Architecture& architecture);

// The answer for a real model of about that size.
struct TextbookModel {
  std::string name;
  std::int64_t parameters = 0;
  std::optional<std::int64_t> weight_bytes;  // in the type asked for, where a weight has 16 bits or more
  std::optional<std::int64_t> step_allocated_bytes;
  std::string step;  // the command that gives the step
};

struct TextbookAnswer {
  std::string size;  // as asked: "7B"; empty: none
  TextbookQuestion question;
  std::vector<TextbookLine> lines;
  std::optional<TextbookModel> model;
  std::vector<Message> warnings;
  bool only = false;  // one line was asked for
};

// The lines alone, under a heading.
void write_textbook(TextPage& page, const std::vector<TextbookLine>& lines);
std::string textbook_text(const TextbookAnswer& answer, const TextStyle& style);
std::string textbook_json(const TextbookAnswer& answer);

}  // namespace ullage::report
