// Plays requests to the CUDA caching allocator of an installed PyTorch (libc10_cuda) on a driver without a card, and
// prints each request, what the allocator asked of the driver for it, and the address that it handed out.
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

extern "C" void set_busy(int on);

namespace c10::cuda::_internal {
void setHasPrimaryContext(bool (*has)(c10::DeviceIndex));
}

namespace {

using c10::cuda::CUDACachingAllocator::CUDAAllocator;

cudaStream_t stream_of(unsigned long long number) { return reinterpret_cast<cudaStream_t>(number); }

void allocate(CUDAAllocator& from, std::vector<void*>& blocks, unsigned long long bytes, unsigned long long stream) {
  void* block = nullptr;
  try {
    block = from.raw_alloc_with_stream(bytes, stream_of(stream));
    std::printf("@ %llu\n", static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(block)));
  } catch (const c10::Error& error) {
    std::printf("o %s\n", error.what_without_backtrace());
  }
  blocks.push_back(block);
}

}  // namespace

int main() {
  CUDAAllocator& allocator = *c10::cuda::CUDACachingAllocator::get();
  allocator.init(1);
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  if (const char* fraction = std::getenv("FRACTION")) allocator.setMemoryFraction(std::atof(fraction), 0);
  std::vector<void*> blocks;
  char what = 0;
  unsigned long long a = 0;
  unsigned long long b = 0;
  while (std::scanf(" %c %llu %llu", &what, &a, &b) == 3) {
    std::printf("%c %llu %llu\n", what, a, b);
    if (what == 'a') allocate(allocator, blocks, a, b);                        // bytes, stream
    if (what == 'f' && blocks[a] != nullptr) allocator.raw_delete(blocks[a]);  // number of the request
    if (what == 'u' && blocks[a] != nullptr) {  // number of the request, another stream that uses its block
      const c10::DataPtr use(blocks[a], blocks[a], allocator.raw_deleter(), c10::Device(c10::kCUDA, 0));
      allocator.recordStream(use, c10::cuda::getStreamFromExternal(stream_of(b), 0));
      const_cast<c10::DataPtr&>(use).release_context();
    }
    if (what == 'y') set_busy(static_cast<int>(a));
    if (what == 'e') allocator.emptyCache();
    if (what == 'b') allocator.beginAllocateToPool(0, {0, a}, [b](cudaStream_t of) { return of == stream_of(b); });
    if (what == 'n') allocator.endAllocateToPool(0, {0, a});
    if (what == 'd') allocator.releasePool(0, {0, a});
  }
  const auto stats = allocator.getDeviceStats(0);
  std::printf("= %lld %lld\n", static_cast<long long>(stats.allocated_bytes[0].current),
              static_cast<long long>(stats.reserved_bytes[0].current));
}
