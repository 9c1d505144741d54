/* A stand-in for the two places where a PyTorch built without CUDA refuses to work with tensors on
 * device "cuda", enough for fake tensors (which have no memory to touch) to run forward and backward.
 *
 * 1. c10 keeps one device guard for each kind of device; the autograd engine asks it for the current
 *    device and stream. pretend_guard() makes one for CUDA whose answers are constant: device 0, its
 *    default stream, nothing to wait for. A guard is a C++ object, so what is built here is a table of
 *    virtual functions in the order that PyTorch 2.14 declares them; all that a step never calls is
 *    taken over from the guard of device "meta".
 * 2. libtorch looks up "the accelerator" and "the CUDA hooks" through two exported functions. Loaded
 *    ahead of the library (LD_PRELOAD) this file answers both: CUDA, and hooks that say yes to all.
 *
 * Build: cc -shared -fPIC -O1 -o libpretend_cuda.so pretend_cuda.c
 */
#include <stdint.h>
#include <string.h>

enum { kCuda = 1, kGuardFunctions = 28, kHookFunctions = 256 };

typedef struct { int8_t kind, index; } DeviceId;
typedef struct { DeviceId device; int64_t id; } StreamId;
typedef struct { int8_t kind, present; } MaybeKind;

static const DeviceId kDevice = {kCuda, 0};
static const StreamId kStream = {{kCuda, 0}, 0};

static int8_t kind_of(const void *self) { return kCuda; }
static DeviceId swap_device(const void *self, DeviceId to) { return kDevice; }
static DeviceId current_device(const void *self) { return kDevice; }
static void choose_device(const void *self, DeviceId to) {}
static StreamId stream_of(const void *self, DeviceId of) { return kStream; }
static StreamId swap_stream(const void *self, StreamId to) { return kStream; }
static void drop_event(const void *self, void *event, int8_t index) {}
static void record_event(const void *self, void **event, const StreamId *on, int8_t index, int flags) {
  static char an_event;
  *event = &an_event;
}
static void wait_event(const void *self, void *event, const StreamId *on) {}
static int8_t has_happened(const void *self, void *event) { return 1; }
static int8_t device_count(const void *self) { return 1; }

static void *guard_functions[kGuardFunctions];
static struct { void **functions; } cuda_guard = {guard_functions};

void *pretend_guard(void **functions_of_meta_guard) {
  void *const constant_answers[] = {
      kind_of,   swap_device, current_device, choose_device, choose_device /* unchecked */,
      stream_of, stream_of /* new */, stream_of /* default */, stream_of /* from pool */,
      swap_stream, drop_event, record_event, wait_event, has_happened, device_count};
  memcpy(guard_functions, functions_of_meta_guard, sizeof guard_functions);
  memcpy(guard_functions, constant_answers, sizeof constant_answers);
  return &cuda_guard;
}

static intptr_t yes(void) { return 1; }

/* const at::CUDAHooksInterface& at::detail::getCUDAHooks() */
void *_ZN2at6detail12getCUDAHooksEv(void) {
  static void *answers[kHookFunctions];
  static struct { void **functions; } hooks = {answers};
  for (int i = 0; i < kHookFunctions; ++i) answers[i] = (void *)yes;
  return &hooks;
}

/* std::optional<c10::DeviceType> at::accelerator::getAccelerator(bool) */
MaybeKind _ZN2at11accelerator14getAcceleratorEb(int8_t checked) {
  MaybeKind cuda = {kCuda, 1};
  return cuda;
}
