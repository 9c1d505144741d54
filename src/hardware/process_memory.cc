#include "hardware/process_memory.h"

#include "base/bytes.h"
#include "base/json.h"
#include "base/lines.h"
#include "data/process_memory.h"

namespace ullage::hardware {
namespace {

Expected<bool> fits_card(const JsonObject& row, const Gpu* gpu) {
  const std::string vendor = row.string("vendor", "").value_or("");
  if (!vendor.empty() && (gpu == nullptr || gpu->vendor != vendor)) return false;
  const auto range = row.strings("compute_capability");
  if (!range) return tl::unexpected<Error>(range.error());
  if (range->empty()) return true;
  if (range->size() != 2) return fail(ErrorCode::malformed, row.where("compute_capability"), "expected first and last");
  if (gpu == nullptr || !gpu->compute_capability) return false;
  const auto first = parse_compute_capability((*range)[0]);
  const auto last = parse_compute_capability((*range)[1]);
  if (!first || !last) return fail(ErrorCode::malformed, row.where("compute_capability"), "expected versions");
  return *first <= *gpu->compute_capability && *gpu->compute_capability <= *last;
}

Expected<MeasuredBytes> measured(const JsonObject& row) {
  const Json* mib = row.find("mib");
  if (mib == nullptr || !mib->is_array() || mib->size() != 3)
    return fail(ErrorCode::malformed, row.where("mib"), "expected three numbers: low, middle, high");
  for (const Json& number : *mib) {
    if (!number.is_number_integer()) return fail(ErrorCode::malformed, row.where("mib"), "expected whole numbers");
  }
  return MeasuredBytes{(*mib)[0].get<std::int64_t>() * kMiB, (*mib)[1].get<std::int64_t>() * kMiB,
                       (*mib)[2].get<std::int64_t>() * kMiB, row.string("kind", "").value_or("") == "guess",
                       row.string("source", "").value_or("")};
}

Expected<void> take_measured(const JsonObject& row, MeasuredBytes& into) {
  if (into.bytes != 0) return {};
  const auto read = measured(row);
  if (!read) return tl::unexpected<Error>(read.error());
  into = *read;
  return {};
}

Expected<void> take_row(const JsonObject& row, const Gpu* gpu, ProcessMemory& out) {
  const auto fits = fits_card(row, gpu);
  if (!fits) return tl::unexpected<Error>(fits.error());
  if (!*fits) return {};
  const std::string part = row.string("part", "").value_or("");
  if (part == "context") return take_measured(row, out.context);
  if (part == "libraries") return take_measured(row, out.libraries);
  if (part == "eager_loading") {
    const auto bytes = row.integer("bytes", 0, 4 * kGiB);
    if (!bytes) return tl::unexpected<Error>(bytes.error());
    if (out.eager_bytes == 0) out.eager_bytes = *bytes;
    return {};
  }
  if (part != "cublas_workspace") return fail(ErrorCode::malformed, row.where("part"), "no such part");
  if (out.cublas_workspace_bytes != 0) return {};
  const auto bytes = row.integer("bytes", 1, kGiB);
  if (!bytes) return tl::unexpected<Error>(bytes.error());
  out.cublas_workspace_bytes = *bytes;
  out.cublas_workspace_source = row.string("source", "").value_or("");
  return {};
}

}  // namespace

Expected<ProcessMemory> parse_process_memory(std::string_view lines, const Gpu* gpu) {
  ProcessMemory out;
  std::optional<Error> error;
  for_each_line(lines, [&](std::string_view line) {
    if (error) return;
    const auto json = parse_json(line, "process_memory");
    if (!json) {
      error = json.error();
      return;
    }
    if (auto taken = take_row(JsonObject(*json, "process_memory"), gpu, out); !taken) error = taken.error();
  });
  if (error) return tl::unexpected<Error>(*error);
  return out;
}

// A test reads the built-in rows for every card of the catalogue, so they parse.
ProcessMemory process_memory(const Gpu* gpu) {
  return parse_process_memory(data::process_memory(), gpu).value_or(ProcessMemory{});
}

}  // namespace ullage::hardware
