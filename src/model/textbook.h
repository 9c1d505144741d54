// The formulas that people learn for the memory of a model: arithmetic on a count of parameters and a few sizes.
//
// They are what an answer is compared with, never what it is made of: they leave out what an allocator rounds, what a
// library takes and what an optimizer's step needs for itself. All results are bytes unless said otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/expected.h"

namespace ullage::model::textbook {

// "7B", "1.5b", "350M", "1T": parameters; nothing for other texts.
std::optional<double> bare_size(std::string_view text);
// Fails on sizes that no model has, a hundred times the largest that was published and more.
Expected<double> checked_size(std::string_view text);

// What a transformer is made of; a size of 0 is not known.
struct Shape {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
};

// P·Q/8.
double weights(double parameters, double bits);

// P·Q/8·1.2: a fifth on top of the weights, to serve.
inline constexpr double kServingFifth = 1.2;
// P·Q/8·1.3: the same with three tenths.
inline constexpr double kServingThreeTenths = 1.3;

// 2 + 2 + 12 bytes: weights and gradients in 16 bits, weights, momentum and variance of Adam in 32.
// Source: Rajbhandari et al., "ZeRO", arXiv:1910.02054, section 3.1 (K = 12).
inline constexpr double kMixedPrecisionBytes = 16;
// The same with gradients in 32 bits beside those in 16: what is taught as the least that is seen in practice.
inline constexpr double kPracticalBytes = 20;

// One unit of P·Q/8 each for weights and gradients, two for Adam's states.
double training_units(double parameters, double bits);
// What courses add for CUDA's kernels: nvidia-smi after the first tensor, on their authors' machine.
inline constexpr double kCourseKernelBytes = 1.3e9;

// Bytes of one of `devices` under stage 0 to 3. Source: ZeRO as above, section 5, with 16 bytes a parameter.
double zero_stage(double parameters, std::int64_t devices, int stage);

// 12·L·h², a count of parameters: four products of h x h for attention, two of h x 4h behind it.
double layer_parameters(const Shape& shape);

// s·b·h·L·(34 + 5·a·s/h): what a GPT layer keeps for backward in 16 bits, with all scores of attention.
// Source: Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models", arXiv:2205.05198, eq. 2.
double activations(const Shape& shape, std::int64_t micro_batch, std::int64_t seq_len);

// (h + f)·s·L·Q/8: one sample, as courses count it: a hidden state and a feed-forward state each layer.
double course_activations(const Shape& shape, std::int64_t seq_len, double bits);

// 2·L·h·s·2: keys and values of one sequence in 16 bits where every head has its own.
double kv_cache(const Shape& shape, std::int64_t seq_len);

// A count of parameters: r·(in + out).
std::int64_t lora_parameters(std::int64_t in, std::int64_t out, std::int64_t rank);

// Blocks of `block_size` tokens in a cache of `cache_bytes`, and those that one request needs, whose input and output
// begin blocks of their own. Source: MindIE's guide to tuning, "Total Block Num" and "Block Num".
std::int64_t cache_blocks(std::int64_t cache_bytes, std::int64_t block_size, std::int64_t bytes_per_token);
std::int64_t request_blocks(std::int64_t input_len, std::int64_t output_len, std::int64_t block_size);

// Cards whose printed gigabytes hold so many bytes, gigabytes taken as 10⁹.
std::int64_t cards(double bytes, double gigabytes_of_card);

// The catalogue's model that stands for a size: the nearest by ratio among those of data/sizes.jsonl. Fails where that
// is more than ten times smaller or larger.
Expected<std::string_view> stand_in(double parameters);

}  // namespace ullage::model::textbook
