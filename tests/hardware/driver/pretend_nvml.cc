// A driver's library as NVML's guide describes it, for machines without a card: two cards, of which the second is in
// no catalogue. PRETEND_NVML chooses what it does: "old" lacks what drivers before 510 lack, "lost" has fallen off the
// bus, "none" shows no card.
#include <cstdlib>
#include <cstring>

namespace {

bool is(const char* manner) {
  const char* const chosen = std::getenv("PRETEND_NVML");
  return chosen != nullptr && std::strcmp(chosen, manner) == 0;
}

constexpr unsigned long long kMib = 1ULL << 20U;

struct Card {
  const char* name;
  unsigned long long total_mib, reserved_mib, used_mib;
  int major, minor;
  unsigned milliwatts;
};

// The first as nvidia-smi -q showed one with driver 535; the second is made up.
const Card kCards[] = {{"NVIDIA GeForce RTX 4090", 24564, 346, 1200, 8, 9, 450000},
                       {"NVIDIA Unheard-of 9000", 65536, 700, 0, 13, 1, 900000}};

const Card& card(void* device) { return *static_cast<const Card*>(device); }

}  // namespace

extern "C" {

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
const char* nvmlErrorString(int status) { return status == 15 ? "GPU is lost" : "Unknown Error"; }

int nvmlSystemGetDriverVersion(char* out, unsigned length) {
  std::strncpy(out, is("old") ? "470.82.01" : "535.129.03", length);
  return 0;
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = is("none") ? 0 : 2;
  return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = const_cast<Card*>(&kCards[index]);
  return is("lost") ? 15 : 0;
}

int nvmlDeviceGetName(void* device, char* out, unsigned length) {
  std::strncpy(out, card(device).name, length);
  return 0;
}

int nvmlDeviceGetMemoryInfo_v2(void* device, MemoryV2* out) {
  if (is("old") || out->version != (sizeof(MemoryV2) | (2U << 24U))) return 13;
  const Card& shown = card(device);
  out->total = shown.total_mib * kMib;
  out->reserved = shown.reserved_mib * kMib;
  out->used = shown.used_mib * kMib;
  out->free = out->total - out->reserved - out->used;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* out) {
  const Card& shown = card(device);
  out->total = shown.total_mib * kMib;
  out->used = shown.used_mib * kMib;
  out->free = out->total - out->used;
  return 0;
}

int nvmlDeviceGetCudaComputeCapability(void* device, int* major, int* minor) {
  *major = card(device).major;
  *minor = card(device).minor;
  return 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  *milliwatts = card(device).milliwatts;
  return 0;
}
}
