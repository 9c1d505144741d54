// One accelerator as software sees it: what a vendor publishes, what programs get, what it can do.
//
// A board that shows itself as two devices (an MI250) is described per device: memory, bandwidth and rates are the
// board's divided by devices_per_card. Rates are dense, without sparsity. A value that is not known is absent, never 0.
// `recalled` names the values nobody looked up, `inferred` those that follow from others; see docs/data.md.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ullage::hardware {

// NVIDIA's number for what a chip's kernels may use.
struct ComputeCapability {
  int major = 0;
  int minor = 0;
  auto operator<=>(const ComputeCapability&) const = default;
};

struct ByteRange {
  std::int64_t low = 0;
  std::int64_t high = 0;
};

// Where usable_bytes comes from.
enum class UsableBasis {
  runtime_total,    // the runtime of the vendor reported it (cudaMemGetInfo)
  nvidia_smi_rule,  // nvidia-smi's total less what drivers were seen to keep
  datasheet_rule,   // the datasheet's size times what was seen on cards of the kind
  guess,            // as before, but nothing was seen
  driver,           // this machine's driver: its total less what it keeps
  given,            // the user said so
};

// Vendor's dense peak rates in 10^12 operations a second.
struct PeakRates {
  std::optional<double> fp32_tflops;
  std::optional<double> tf32_tflops;
  std::optional<double> fp16_tflops;
  std::optional<double> bf16_tflops;
  std::optional<double> fp8_tflops;
  std::optional<double> fp4_tflops;
  std::optional<double> int8_tops;
};

struct CellSource {
  std::string source;
  std::vector<std::string> cells;
};

struct Gpu {
  std::string id;
  std::vector<std::string> aliases;
  std::string vendor;
  std::string name;
  std::string architecture;
  std::string form_factor;
  std::optional<ComputeCapability> compute_capability;
  int devices_per_card = 1;
  bool inline_ecc = false;      // ECC that takes its bits from the memory itself
  bool unified_memory = false;  // shared with the processor

  std::int64_t datasheet_bytes = 0;  // "80 GB" read as 80 GiB, per device
  std::int64_t memory_bytes =
      0;  // what nvidia-smi reports, where known, else datasheet_bytes; at least what the runtime sees
  std::optional<std::int64_t> runtime_total_bytes;  // what cudaMemGetInfo reports
  std::int64_t runtime_total_precision_bytes = 0;   // the figure is known to ± this much
  std::optional<std::int64_t> nvidia_smi_total_bytes;
  std::int64_t usable_bytes = 0;  // what programs can share before any context
  ByteRange usable_range_bytes;   // over the drivers and machines it was seen on
  UsableBasis usable_basis = UsableBasis::guess;
  std::string usable_source;

  std::optional<double> memory_bandwidth_bytes_per_s;
  PeakRates peak;
  std::optional<double> link_bytes_per_s;  // to its peers, both directions together
  std::optional<int> link_domain;          // most devices joined by that link
  std::optional<int> pcie_generation;
  std::optional<int> tdp_w;  // per board
  std::optional<int> year;

  std::vector<std::string> recalled;
  std::vector<std::string> inferred;
  std::vector<CellSource> sources;
  std::string note;
};

bool is_recalled(const Gpu& gpu, std::string_view cell);

// The text of a version such as "8.9"; empty input and anything else give nothing.
std::optional<ComputeCapability> parse_compute_capability(std::string_view text);
std::string to_string(ComputeCapability capability);

enum class Support { no, yes, unknown };

// From which compute capability on. Sources: CUDA C++ Programming Guide, arithmetic throughput table (bf16, fp8);
// flash-attention's README (version 2: Ampere, Ada, Hopper).
inline constexpr ComputeCapability kBf16Since{8, 0};
inline constexpr ComputeCapability kFp8Since{8, 9};
inline constexpr ComputeCapability kFlashAttention2Since{8, 0};
// bitsandbytes' LLM.int8(). Source: its installation guide (0.50), table of features and compute capabilities.
inline constexpr ComputeCapability kInt8WeightsSince{7, 5};

// Without a compute capability, a published rate in the type counts as support.
Support supports_bf16(const Gpu& gpu);
Support supports_fp8(const Gpu& gpu);
Support supports_flash_attention_2(const Gpu& gpu);
Support has_nvlink(const Gpu& gpu);

// The card offers exactly this much (--gpu-memory).
void set_usable(Gpu& gpu, std::int64_t bytes);
// Others use this much (--used); what is left does not go below zero.
void take_used(Gpu& gpu, std::int64_t bytes);

}  // namespace ullage::hardware
