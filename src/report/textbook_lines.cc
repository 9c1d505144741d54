#include <fmt/core.h>

#include <cmath>

#include "report/textbook.h"

namespace ullage::report {
namespace {

namespace book = model::textbook;

constexpr double kGiga = 1e9;

constexpr const char* kArithmetic = "arithmetic";
constexpr const char* kServing = "serving guides: M = (P x 4B) / (32/Q) x 1.2";
constexpr const char* kCourses = "courses: weights x 1.3";
constexpr const char* kZero = "Rajbhandari et al., ZeRO, arXiv:1910.02054";
constexpr const char* kPractice = "courses: at least 20 in practice; DeepSpeed and Megatron add gradients in fp32";
constexpr const char* kInterviews = "interview notes: 1 + 1 + 2 units of the weights";
constexpr const char* kKaplan = "Kaplan et al., arXiv:2001.08361, table 1";
constexpr const char* kKorthikanti = "Korthikanti et al., arXiv:2205.05198, equation 2";
constexpr const char* kMindie = "MindIE's guide to tuning: Total Block Num, Block Num, maxBatchSize";
constexpr const char* kLora = "Hu et al., LoRA, arXiv:2106.09685, section 4.1";

// "7e9", "13.5e9", "350e6": parameters as people write them.
std::string count(double value) {
  const bool giga = value >= kGiga;
  return fmt::format("{:.6g}{}", value / (giga ? kGiga : 1e6), giga ? "e9" : "e6");
}

void add_serving(const TextbookQuestion& q, double parameters, std::vector<TextbookLine>& out) {
  const double weights = book::weights(parameters, q.bits);
  const std::string weights_text = fmt::format("{} x {:g}/8", count(parameters), q.bits);
  out.push_back(
      {"weights", Text::textbook_weights, TextbookUnit::bytes, weights, "P x Q/8 = " + weights_text, kArithmetic});
  out.push_back({"serving_1.2", Text::textbook_serving_fifth, TextbookUnit::bytes, weights * book::kServingFifth,
                 "P x Q/8 x 1.2 = " + weights_text + " x 1.2", kServing});
  out.push_back({"serving_1.3", Text::textbook_serving_three_tenths, TextbookUnit::bytes,
                 weights * book::kServingThreeTenths, "P x Q/8 x 1.3 = " + weights_text + " x 1.3", kCourses});
}

void add_cards(const TextbookQuestion& q, double parameters, std::vector<TextbookLine>& out) {
  if (!q.card) return;
  const double weights = book::weights(parameters, q.bits);
  out.push_back(
      {"cards", Text::textbook_cards, TextbookUnit::cards, static_cast<double>(book::cards(weights, q.card->gigabytes)),
       fmt::format("weights / card, rounded up = {:g} GB / {:g} GB", weights / kGiga, q.card->gigabytes), kArithmetic});
}

void add_states(const TextbookQuestion& q, double parameters, std::vector<TextbookLine>& out) {
  const std::string p = count(parameters);
  out.push_back({"training_16", Text::textbook_training_mixed, TextbookUnit::bytes,
                 book::kMixedPrecisionBytes * parameters, "(2 + 2 + 12) x P = 16 x " + p, kZero});
  out.push_back({"training_20", Text::textbook_training_practice, TextbookUnit::bytes,
                 book::kPracticalBytes * parameters, "20 x P = 20 x " + p, kPractice});
  const double units = book::training_units(parameters, q.bits);
  const std::string units_text = fmt::format("4 x {} x {:g}/8", p, q.bits);
  out.push_back({"training_units", Text::textbook_training_units, TextbookUnit::bytes, units,
                 "(1 + 1 + 2) x P x Q/8 = " + units_text, kInterviews});
  out.push_back({"training_units_kernels", Text::textbook_training_kernels, TextbookUnit::bytes,
                 units + book::kCourseKernelBytes, "(1 + 1 + 2) x P x Q/8 + 1.3 GB = " + units_text + " + 1.3 GB",
                 kInterviews});
}

void add_zero(const TextbookQuestion& q, double parameters, std::vector<TextbookLine>& out) {
  if (q.devices < 2) return;
  constexpr const char* kFormulas[] = {"(2 + 2 + K) x P", "(2 + 2) x P + K x P/N", "2 x P + (2 + K) x P/N",
                                       "(2 + 2 + K) x P/N"};
  constexpr Text kTitles[] = {Text::textbook_zero_0, Text::textbook_zero_1, Text::textbook_zero_2,
                              Text::textbook_zero_3};
  for (int stage = 0; stage <= 3; ++stage) {
    out.push_back({fmt::format("zero_{}", stage), kTitles[stage], TextbookUnit::bytes,
                   book::zero_stage(parameters, q.devices, stage),
                   fmt::format("{}, K = 12, P = {}, N = {}", kFormulas[stage], count(parameters), q.devices), kZero});
  }
}

bool has_activations(const book::Shape& s) { return s.layers > 0 && s.hidden > 0 && s.heads > 0; }

void add_activations(const TextbookQuestion& q, std::vector<TextbookLine>& out) {
  const book::Shape& s = q.shape;
  if (!has_activations(s)) return;
  out.push_back({"activations", Text::textbook_activations, TextbookUnit::bytes,
                 book::activations(s, q.micro_batch, q.seq_len),
                 fmt::format("s x b x h x L x (34 + 5 x a x s/h) = {} x {} x {} x {} x (34 + 5 x {} x {}/{})",
                             q.seq_len, q.micro_batch, s.hidden, s.layers, s.heads, q.seq_len, s.hidden),
                 kKorthikanti});
  if (s.ffn <= 0) return;
  const double sample = book::course_activations(s, q.seq_len, q.bits);
  out.push_back({"sample", Text::textbook_sample, TextbookUnit::bytes, sample,
                 fmt::format("(h + f) x s x L x Q/8 = ({} + {}) x {} x {} x {:g}/8", s.hidden, s.ffn, q.seq_len,
                             s.layers, q.bits),
                 kInterviews});
  if (!q.card || !q.parameters) return;
  const double model = book::training_units(*q.parameters, q.bits) + book::kCourseKernelBytes;
  const double left = q.card->gigabytes * kGiga - model;
  out.push_back(
      {"samples", Text::textbook_samples, TextbookUnit::samples, std::floor(std::max(0.0, left) / sample),
       fmt::format("({:g} GB - {:g} GB) / {:.4g} GB, rounded down", q.card->gigabytes, model / kGiga, sample / kGiga),
       kInterviews});
}

void add_shape(const TextbookQuestion& q, std::vector<TextbookLine>& out) {
  const book::Shape& s = q.shape;
  if (s.layers <= 0 || s.hidden <= 0) return;
  out.push_back({"parameters_by_shape", Text::textbook_parameters, TextbookUnit::parameters, book::layer_parameters(s),
                 fmt::format("12 x L x h^2 = 12 x {} x {}^2", s.layers, s.hidden), kKaplan});
  out.push_back({"kv_cache", Text::textbook_kv_cache, TextbookUnit::bytes, book::kv_cache(s, q.seq_len),
                 fmt::format("2 x L x h x s x 2 = 2 x {} x {} x {} x 2", s.layers, s.hidden, q.seq_len), kArithmetic});
}

void add_cache(const TextbookQuestion& q, std::vector<TextbookLine>& out) {
  if (q.bytes_per_token <= 0) return;
  const std::int64_t tokens = q.input_len + q.output_len;
  out.push_back(
      {"cache_batch", Text::textbook_cache_batch, TextbookUnit::bytes,
       static_cast<double>(q.micro_batch) * static_cast<double>(tokens) * static_cast<double>(q.bytes_per_token),
       fmt::format("b x (input + output) x bytes of a token = {} x {} x {}", q.micro_batch, tokens, q.bytes_per_token),
       kArithmetic});
  if (q.cache_bytes <= 0) return;
  const std::int64_t blocks = book::cache_blocks(q.cache_bytes, q.block_size, q.bytes_per_token);
  out.push_back({"cache_blocks", Text::textbook_cache_blocks, TextbookUnit::blocks, static_cast<double>(blocks),
                 fmt::format("cache / (block x bytes of a token) = {} / ({} x {}), rounded down", q.cache_bytes,
                             q.block_size, q.bytes_per_token),
                 kMindie});
  const std::int64_t needed = book::request_blocks(q.input_len, q.output_len, q.block_size);
  out.push_back({"cache_sequences", Text::textbook_cache_sequences, TextbookUnit::sequences,
                 static_cast<double>(blocks / needed),
                 fmt::format("blocks / blocks of a sequence = {} / {}, rounded down", blocks, needed), kMindie});
}

void add_lora(const TextbookQuestion& q, std::vector<TextbookLine>& out) {
  if (q.lora_rank <= 0 || q.matrix_in <= 0) return;
  out.push_back({"lora", Text::textbook_lora, TextbookUnit::parameters,
                 static_cast<double>(book::lora_parameters(q.matrix_in, q.matrix_out, q.lora_rank)),
                 fmt::format("r x (in + out) = {} x ({} + {})", q.lora_rank, q.matrix_in, q.matrix_out), kLora});
}

// Elements of the first logical axis of that kind in a layer; 0: it has none.
std::int64_t axis_size(const model::LayerKind& kind, model::Axis axis) {
  for (const model::Parameter& parameter : kind.parameters) {
    for (const model::Dimension& dimension : parameter.dims) {
      for (const model::AxisPart& part : dimension.parts) {
        if (part.axis == axis) return part.count * part.unit;
      }
    }
  }
  return 0;
}

}  // namespace

std::vector<TextbookLine> textbook_training_lines(const TextbookQuestion& question) {
  std::vector<TextbookLine> out;
  if (question.parameters) {
    add_states(question, *question.parameters, out);
    add_zero(question, *question.parameters, out);
  }
  add_activations(question, out);
  return out;
}

std::vector<TextbookLine> textbook_lines(const TextbookQuestion& question) {
  std::vector<TextbookLine> out;
  if (question.parameters) {
    add_serving(question, *question.parameters, out);
    add_cards(question, *question.parameters, out);
  }
  for (TextbookLine& line : textbook_training_lines(question)) out.push_back(std::move(line));
  add_shape(question, out);
  add_cache(question, out);
  add_lora(question, out);
  return out;
}

book::Shape textbook_shape(const model::Architecture& architecture) {
  book::Shape out;
  out.layers = architecture.layer_count();
  out.hidden = architecture.hidden;
  if (out.layers == 0) return out;
  const model::LayerKind& kind = architecture.kind_of(0);
  out.heads = kind.attention.heads;
  out.ffn = axis_size(kind, model::Axis::ffn);
  return out;
}

}  // namespace ullage::report
