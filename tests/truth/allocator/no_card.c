/* A CUDA runtime and driver without a card, as far as c10_cuda asks: hands out ascending addresses (descending with
 * DOWNWARDS set), counts them against CARD_BYTES and prints what is asked of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long u64;
static u64 next_address = 0x7f0000000000ULL;
static u64 used;
static struct { u64 address, bytes; } pieces[100000];
static int count;

static u64 total(void) { const char *text = getenv("CARD_BYTES"); return text ? strtoull(text, 0, 10) : 85899345920ULL; }
static int down(void) { return getenv("DOWNWARDS") != 0; }
static u64 place(u64 bytes) {
  if (down()) { next_address -= bytes; return next_address; }
  u64 out = next_address;
  next_address += bytes;
  return out;
}
int cudaMalloc(void **out, u64 bytes) {
  if (used + bytes > total()) return 2;
  used += bytes;
  u64 address = place(bytes);
  pieces[count].address = address;
  pieces[count++].bytes = bytes;
  printf("S %llu %llu\n", address, bytes);
  *out = (void *)address;
  return 0;
}
int cudaFree(void *at) {
  for (int i = 0; i < count; ++i) {
    if (pieces[i].address != (u64)at) continue;
    printf("F %llu %llu\n", pieces[i].address, pieces[i].bytes);
    used -= pieces[i].bytes;
    pieces[i].address = 0;
    return 0;
  }
  return 1;
}
int cudaMemGetInfo(u64 *free_bytes, u64 *total_bytes) { *free_bytes = total() - used; *total_bytes = total(); return 0; }
int cudaGetDevice(int *device) { *device = 0; return 0; }
int cudaGetDeviceCount(int *n) { *n = 1; return 0; }
int cudaSetDevice(int device) { return 0; }
int cudaGetLastError(void) { return 0; }
const char *cudaGetErrorString(int error) { return "error"; }
int cudaDeviceSynchronize(void) { return 0; }
int cudaDriverGetVersion(int *v) { *v = 12040; return 0; }
int cudaGetDeviceProperties_v2(char *p, int device) {
  memset(p, 0, 1032);
  u64 bytes = total();
  memcpy(p + 288, &bytes, 8); /* name[256], uuid 16, luid 8, luidDeviceNodeMask 4, pad 4: totalGlobalMem */
  return 0;
}
int cudaEventCreateWithFlags(void **e, unsigned f) { static char an; *e = &an; return 0; }
int cudaEventDestroy(void *e) { return 0; }
static int busy; /* whether streams are still at work */
void set_busy(int on) { busy = on; }
int cudaEventQuery(void *e) { return busy ? 600 : 0; /* cudaErrorNotReady */ }
int cudaEventRecord(void *e, void *s) { return 0; }
int cudaEventSynchronize(void *e) { return 0; }
int cudaStreamIsCapturing(void *s, int *status) { *status = 0; return 0; }
int cudaStreamQuery(void *s) { return 0; }
int cudaStreamSynchronize(void *s) { return 0; }
int cudaStreamWaitEvent(void *s, void *e, unsigned f) { return 0; }
int cudaThreadExchangeStreamCaptureMode(int *mode) { return 0; }
int cudaDeviceGetStreamPriorityRange(int *a, int *b) { *a = 0; *b = -1; return 0; }
int cudaStreamCreateWithPriority(void **s, unsigned f, int p) { static u64 n = 0x1000; *s = (void *)(n += 0x100); return 0; }
#define NEVER(name) int name(void) { fprintf(stderr, #name "\n"); abort(); }
NEVER(cudaDeviceEnablePeerAccess) NEVER(cudaDeviceGetDefaultMemPool) NEVER(cudaEventElapsedTime) NEVER(cudaFreeAsync)
NEVER(cudaIpcCloseMemHandle) NEVER(cudaIpcGetMemHandle) NEVER(cudaIpcOpenMemHandle) NEVER(cudaMallocAsync)
NEVER(cudaMemPoolGetAttribute) NEVER(cudaMemPoolSetAccess) NEVER(cudaMemPoolSetAttribute) NEVER(cudaMemPoolTrimTo)
NEVER(cudaMemcpy) NEVER(cudaMemcpyAsync) NEVER(cudaMemcpyPeerAsync)

/* The driver's virtual memory, for expandable segments. */
static u64 handle_bytes[200000];
static u64 handles;
int cuMemAddressReserve(u64 *out, u64 bytes, u64 alignment, u64 at, u64 flags) { *out = place(bytes); printf("R %llu %llu\n", *out, bytes); return 0; }
int cuMemAddressFree(u64 at, u64 bytes) { return 0; }
int cuMemCreate(u64 *out, u64 bytes, void *prop, u64 flags) {
  if (used + bytes > total()) return 2;
  used += bytes;
  handle_bytes[++handles] = bytes;
  *out = handles;
  return 0;
}
int cuMemRelease(u64 handle) { used -= handle_bytes[handle]; handle_bytes[handle] = 0; return 0; }
int cuMemMap(u64 at, u64 bytes, u64 offset, u64 handle, u64 flags) { printf("M %llu %llu\n", at, bytes); return 0; }
int cuMemUnmap(u64 at, u64 bytes) { printf("U %llu %llu\n", at, bytes); return 0; }
int cuMemSetAccess(u64 at, u64 bytes, void *desc, u64 n) { return 0; }
int cuMemGetAllocationGranularity(u64 *out, void *prop, int o) { *out = 2097152; return 0; }
NEVER(cuMemExportToShareableHandle) NEVER(cuMemImportFromShareableHandle) NEVER(cuMemsetD32Async)
int cuDeviceGetAttribute(int *v, int a, int d) { *v = 1; return 0; }
int cuGetErrorString(int e, const char **s) { *s = "error"; return 0; }
NEVER(cuStreamWriteValue32) NEVER(cuMulticastCreate)
