#include "memory/out_of_memory_text.h"

#include <cstdio>

namespace ullage::memory {
namespace {

std::string before_2_1(const OutOfMemory& f, const CardMemory& card) {
  std::string out = " (GPU 0; " + torch_size_text(card.total_bytes) + " total capacity; " +
                    torch_size_text(f.allocated_bytes + f.private_bytes) + " already allocated; " +
                    torch_size_text(f.free_bytes) + " free; ";
  if (f.allowed_bytes > 0) out += torch_size_text(f.allowed_bytes) + " allowed; ";
  return out + torch_size_text(f.reserved_bytes) +
         " reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to "
         "avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF";
}

std::string hint(TorchVersion version) {
  if (version < TorchVersion{2, 3}) {
    return "max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and "
           "PYTORCH_CUDA_ALLOC_CONF";
  }
  const std::string name = version < TorchVersion{2, 10} ? "PYTORCH_CUDA_ALLOC_CONF" : "PYTORCH_ALLOC_CONF";
  return name +
         "=expandable_segments:True to avoid fragmentation.  See documentation for Memory Management  "
         "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)";
}

}  // namespace

std::string torch_size_text(std::int64_t bytes) {
  constexpr std::int64_t kKibi = 1024;
  if (bytes <= kKibi) return std::to_string(bytes) + " bytes";
  const bool kibi = bytes <= kKibi * kKibi;
  const bool mebi = bytes <= kKibi * kKibi * kKibi;
  const double unit = kibi ? 0x1p10 : mebi ? 0x1p20 : 0x1p30;
  char buffer[48];
  const int length = std::snprintf(buffer, sizeof buffer, "%.2f %s", static_cast<double>(bytes) / unit,
                                   kibi   ? "KiB"
                                   : mebi ? "MiB"
                                          : "GiB");
  return {buffer, static_cast<std::size_t>(length)};
}

std::string out_of_memory_text(const OutOfMemory& f, const CardMemory& card, TorchVersion version,
                               std::optional<std::int64_t> process_bytes) {
  if (f.requested_bytes > kMostRequestBytes) return "CUDA out of memory. Tried to allocate more than 1EB memory.";
  std::string out = "CUDA out of memory. Tried to allocate " + torch_size_text(f.segment_bytes);
  if (version < TorchVersion{2, 1}) return out + before_2_1(f, card);
  // "capacty" is how 2.1 and 2.2 spell it.
  out += std::string(". GPU 0 has a total ") + (version < TorchVersion{2, 3} ? "capacty" : "capacity") + " of " +
         torch_size_text(card.total_bytes) + " of which " + torch_size_text(f.free_bytes) + " is free. ";
  if (process_bytes)
    out += "Including non-PyTorch memory, this process has " + torch_size_text(*process_bytes) + " memory in use. ";
  if (f.allowed_bytes > 0) out += torch_size_text(f.allowed_bytes) + " allowed; ";
  out +=
      "Of the allocated memory " + torch_size_text(f.allocated_bytes + f.private_bytes) + " is allocated by PyTorch, ";
  if (f.private_bytes > 0)
    out += "with " + torch_size_text(f.private_bytes) + " allocated in private pools (e.g., CUDA Graphs), ";
  out += "and " + torch_size_text(f.reserved_bytes - f.allocated_bytes - f.private_bytes) +
         " is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting ";
  return out + hint(version);
}

}  // namespace ullage::memory
