#include <dlfcn.h>
#include <fmt/core.h>

#include <array>
#include <memory>
#include <string_view>

#include "hardware/local.h"

namespace ullage::hardware {
namespace {

// What NVML's functions take and give; the names are this file's, the layouts NVML's.
using Device = void*;
using Status = int;
constexpr Status kSuccess = 0;

struct MemoryInfo {
  unsigned long long total = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

struct MemoryInfoV2 {
  unsigned version = sizeof(MemoryInfoV2) | (2U << 24U);
  unsigned long long total = 0;
  unsigned long long reserved = 0;
  unsigned long long free = 0;
  unsigned long long used = 0;
};

// The loaded library, initialised; both undone at the end.
class Nvml {
 public:
  static Expected<Nvml> load();

  Expected<std::vector<LocalDevice>> devices() const;

 private:
  struct Unload {
    void operator()(void* library) const {
      if (auto* const shutdown = reinterpret_cast<Status (*)()>(dlsym(library, "nvmlShutdown"))) shutdown();
      dlclose(library);
    }
  };

  // Calls a function of the library; one that this driver lacks is an error like any other.
  template <typename... Parameters>
  Expected<void> call(const char* name, Parameters... arguments) const {
    auto* const function = reinterpret_cast<Status (*)(Parameters...)>(dlsym(library_.get(), name));
    if (function == nullptr) return refusal(name, "no such function");
    const Status status = function(arguments...);
    if (status == kSuccess) return {};
    auto* const text = reinterpret_cast<const char* (*)(Status)>(dlsym(library_.get(), "nvmlErrorString"));
    return refusal(name, text != nullptr ? text(status) : std::to_string(status));
  }

  static tl::unexpected<Error> refusal(std::string_view function, std::string_view answer) {
    return fail(ErrorCode::unsupported, "--gpu local",
                fmt::format("the driver answers {} with '{}'; name the card instead (`ullage gpus` lists all)",
                            function, answer));
  }

  Expected<LocalDevice> device(unsigned index) const;
  Expected<void> read_memory(Device handle, LocalDevice& out) const;

  std::unique_ptr<void, Unload> library_;
  std::string driver_;
};

Expected<Nvml> Nvml::load() {
  Nvml out;
  out.library_.reset(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL));
  if (out.library_ == nullptr) {
    return fail(ErrorCode::not_found, "--gpu local",
                "there is no NVIDIA driver here (libnvidia-ml.so.1); name the card instead (`ullage gpus` lists all)");
  }
  if (auto ready = out.call("nvmlInit_v2"); !ready) return tl::unexpected<Error>(ready.error());
  std::array<char, 96> version{};
  if (out.call("nvmlSystemGetDriverVersion", version.data(), static_cast<unsigned>(version.size()))) {
    out.driver_ = version.data();
  }
  return out;
}

Expected<void> Nvml::read_memory(Device handle, LocalDevice& out) const {
  MemoryInfoV2 memory;
  if (call("nvmlDeviceGetMemoryInfo_v2", handle, &memory)) {
    out.total_bytes = static_cast<std::int64_t>(memory.total);
    out.reserved_bytes = static_cast<std::int64_t>(memory.reserved);
    out.used_bytes = static_cast<std::int64_t>(memory.used);
    return {};
  }
  MemoryInfo old;
  if (auto read = call("nvmlDeviceGetMemoryInfo", handle, &old); !read) return read;
  out.total_bytes = static_cast<std::int64_t>(old.total);
  out.used_bytes = static_cast<std::int64_t>(old.used);
  return {};
}

Expected<LocalDevice> Nvml::device(unsigned index) const {
  LocalDevice out;
  out.index = static_cast<int>(index);
  out.driver = driver_;
  Device handle = nullptr;
  if (auto got = call("nvmlDeviceGetHandleByIndex_v2", index, &handle); !got) {
    return tl::unexpected<Error>(got.error());
  }
  std::array<char, 96> name{};
  if (auto got = call("nvmlDeviceGetName", handle, name.data(), static_cast<unsigned>(name.size())); !got) {
    return tl::unexpected<Error>(got.error());
  }
  out.name = name.data();
  if (auto read = read_memory(handle, out); !read) return tl::unexpected<Error>(read.error());
  ComputeCapability capability;
  if (call("nvmlDeviceGetCudaComputeCapability", handle, &capability.major, &capability.minor)) {
    out.compute_capability = capability;
  }
  unsigned milliwatts = 0;
  if (call("nvmlDeviceGetEnforcedPowerLimit", handle, &milliwatts)) {
    out.power_limit_w = static_cast<int>(milliwatts / 1000);
  }
  return out;
}

Expected<std::vector<LocalDevice>> Nvml::devices() const {
  unsigned count = 0;
  if (auto got = call("nvmlDeviceGetCount_v2", &count); !got) return tl::unexpected<Error>(got.error());
  if (count == 0) {
    return fail(ErrorCode::not_found, "--gpu local",
                "the driver shows no card; name one instead (`ullage gpus` lists all)");
  }
  std::vector<LocalDevice> out;
  for (unsigned index = 0; index < count; ++index) {
    auto read = device(index);
    if (!read) return tl::unexpected<Error>(read.error());
    out.push_back(std::move(*read));
  }
  return out;
}

}  // namespace

Expected<std::vector<LocalDevice>> local_devices() {
  const auto nvml = Nvml::load();
  if (!nvml) return tl::unexpected<Error>(nvml.error());
  return nvml->devices();
}

}  // namespace ullage::hardware
