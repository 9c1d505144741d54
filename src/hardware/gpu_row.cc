#include "hardware/gpu_row.h"

#include <string>
#include <utility>

#include "base/bytes.h"

namespace ullage::hardware {
namespace {

// Reads cells and keeps the first error, so that the reading below stays a list.
class Cells {
 public:
  explicit Cells(JsonObject row) : row_(std::move(row)) {}

  std::string text(std::string_view key) { return keep(row_.string(key, ""), std::string()); }
  std::vector<std::string> texts(std::string_view key) { return keep(row_.strings(key), std::vector<std::string>()); }
  bool flag(std::string_view key) { return keep(row_.boolean(key, false), false); }

  std::optional<std::int64_t> whole(std::string_view key) {
    if (!row_.has(key)) return std::nullopt;
    return keep(row_.integer(key, 0, kMaxBytes / kGiB * kMiB), std::int64_t{0});
  }
  std::optional<int> small(std::string_view key) {
    if (!row_.has(key)) return std::nullopt;
    return static_cast<int>(keep(row_.integer(key, 0, 100000), std::int64_t{0}));
  }
  std::optional<double> real(std::string_view key, double scale = 1) {
    if (!row_.has(key)) return std::nullopt;
    return keep(row_.number(key, 0), 0.0) * scale;
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  template <class T>
  T keep(Expected<T> value, T otherwise) {
    if (value) return std::move(*value);
    if (!error_) error_ = value.error();
    return otherwise;
  }

  JsonObject row_;
  std::optional<Error> error_;
};

bool begins_with_windows(std::string_view platform) { return platform.starts_with("windows"); }

std::vector<SeenTotal> read_seen(const JsonObject& row) {
  std::vector<SeenTotal> out;
  const Json* list = row.find("cuda_totals_seen");
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& item : *list) {
    Cells cells(JsonObject(item, row.where()));
    out.push_back({cells.whole("bytes").value_or(0), cells.whole("precision_bytes").value_or(0),
                   begins_with_windows(cells.text("platform"))});
  }
  return out;
}

std::vector<CellSource> read_sources(const JsonObject& row) {
  std::vector<CellSource> out;
  const Json* list = row.find("sources");
  if (list == nullptr || !list->is_array()) return out;
  for (const Json& item : *list) {
    Cells cells(JsonObject(item, row.where()));
    out.push_back({cells.text("source"), cells.texts("cells")});
  }
  return out;
}

std::string source_of(const Gpu& gpu, std::string_view cell) {
  for (const CellSource& source : gpu.sources) {
    for (const std::string& name : source.cells) {
      if (name == cell) return source.source;
    }
  }
  return {};
}

void read_description(Cells& cells, Gpu& gpu) {
  gpu.id = cells.text("id");
  gpu.aliases = cells.texts("aliases");
  gpu.vendor = cells.text("vendor");
  gpu.name = cells.text("name");
  gpu.architecture = cells.text("architecture");
  gpu.form_factor = cells.text("form_factor");
  gpu.compute_capability = parse_compute_capability(cells.text("compute_capability"));
  gpu.devices_per_card = cells.small("devices_per_card").value_or(1);
  gpu.inline_ecc = cells.flag("inline_ecc");
  gpu.unified_memory = cells.flag("unified_memory");
  gpu.link_domain = cells.small("link_domain");
  gpu.pcie_generation = cells.small("pcie_generation");
  gpu.tdp_w = cells.small("tdp_w");
  gpu.year = cells.small("year");
  gpu.recalled = cells.texts("recalled");
  gpu.inferred = cells.texts("inferred");
  gpu.note = cells.text("note");
}

void read_memory(Cells& cells, Gpu& gpu) {
  gpu.datasheet_bytes = cells.whole("datasheet_gb").value_or(0) * kGiB / gpu.devices_per_card;
  gpu.runtime_total_bytes = cells.whole("cuda_total_bytes");
  gpu.runtime_total_precision_bytes = cells.whole("cuda_total_precision_bytes").value_or(0);
  if (const auto mib = cells.whole("nvidia_smi_total_mib")) gpu.nvidia_smi_total_bytes = *mib * kMiB;
  gpu.memory_bytes = gpu.nvidia_smi_total_bytes.value_or(gpu.datasheet_bytes);
}

void read_rates(Cells& cells, Gpu& gpu) {
  const double share = 1.0 / gpu.devices_per_card;
  gpu.memory_bandwidth_bytes_per_s = cells.real("memory_bandwidth_gb_per_s", 1e9 * share);
  gpu.link_bytes_per_s = cells.real("link_gb_per_s", 1e9);
  gpu.peak.fp32_tflops = cells.real("fp32_tflops", share);
  gpu.peak.tf32_tflops = cells.real("tf32_tflops", share);
  gpu.peak.fp16_tflops = cells.real("fp16_tflops", share);
  gpu.peak.bf16_tflops = cells.real("bf16_tflops", share);
  gpu.peak.fp8_tflops = cells.real("fp8_tflops", share);
  gpu.peak.fp4_tflops = cells.real("fp4_tflops", share);
  gpu.peak.int8_tops = cells.real("int8_tops", share);
}

}  // namespace

Expected<Gpu> parse_gpu_row(std::string_view line, const std::vector<UsableRule>& rules) {
  const auto json = parse_json(line, "gpus");
  if (!json) return tl::unexpected<Error>(json.error());
  const JsonObject row(*json, "gpus");
  Cells cells(row);
  Gpu gpu;
  read_description(cells, gpu);
  if (gpu.devices_per_card < 1) return fail(ErrorCode::malformed, row.where("devices_per_card"), "expected 1 or more");
  read_memory(cells, gpu);
  read_rates(cells, gpu);
  gpu.sources = read_sources(row);
  const bool windows = begins_with_windows(cells.text("cuda_total_platform"));
  if (cells.error()) return tl::unexpected<Error>(*cells.error());
  decide_usable(gpu, windows, read_seen(row), rules);
  if (gpu.usable_basis == UsableBasis::runtime_total) gpu.usable_source = source_of(gpu, "cuda_total_bytes");
  return gpu;
}

}  // namespace ullage::hardware
