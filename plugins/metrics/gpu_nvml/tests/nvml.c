/* A library of an NVIDIA driver with made-up GPUs, for the functions that aiperf calls; signatures and numbers are those of nvml.h.

   NVML_GPUS: how many; the second one has MIG with two instances.  NVML_FAIL: functions that fail, NAME=ERROR with commas.
   NVML_HANG: a function that never returns.  NVML_GONE_MS: from when on GPU 0 is lost.  NVML_RESET_MS: when its energy begins
   again.  With -DOLD it lacks functions that came with later drivers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7, GPU_IS_LOST = 15 };
typedef struct { int gpu, instance; } Device;
typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned int version; unsigned long long total, reserved, free, used; } MemoryV2;
typedef struct { unsigned int gpu, memory; } Utilization;
typedef struct { unsigned long long reference, violation; } Violation;
typedef struct { char legacy[16]; unsigned int domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
typedef struct { unsigned int pid; unsigned long long at; unsigned int sm, memory, encoder, decoder; } ProcessSample;
typedef struct { unsigned int id, result; double value; char *short_name, *long_name, *unit; } Metric;
typedef struct { unsigned int version, count; void *before, *now; Metric metrics[1]; } Question;
typedef struct { unsigned int version, supported; } Support;

static Device gpus[8], instances[2] = {{1, 3}, {1, 5}};
static double begin_s;

static double now_s(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec * 1e-9;
}

static double limit_s(const char *name) {
  const char *text = getenv(name);
  return text ? atof(text) * 1e-3 : 1e9;
}

static int fate(const char *name, const Device *device) {
  const char *hang = getenv("NVML_HANG"), *fail = getenv("NVML_FAIL");
  while (hang && !strcmp(hang, name)) pause();
  if (device && device->gpu == 0 && now_s() - begin_s > limit_s("NVML_GONE_MS")) return GPU_IS_LOST;
  const char *found = fail ? strstr(fail, name) : NULL;
  return found && found[strlen(name)] == '=' ? atoi(found + strlen(name) + 1) : SUCCESS;
}

#define BEGIN(device) do { int fault = fate(__func__, device); if (fault) return fault; } while (0)

static double watts(const Device *device) { return device->gpu == 0 ? 300 : 100; }

int nvmlInitWithFlags(unsigned int flags) {
  (void)flags;
  BEGIN(NULL);
  begin_s = now_s();
  for (int index = 0; index < 8; index++) gpus[index] = (Device){index, -1};
  return SUCCESS;
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int error) { return error == GPU_IS_LOST ? "GPU is lost" : "made up"; }
int nvmlDeviceGetCount_v2(unsigned int *count) {
  const char *text = getenv("NVML_GPUS");
  *count = text ? atoi(text) : 1;
  return SUCCESS;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, Device **device) { *device = &gpus[index]; return SUCCESS; }
int nvmlDeviceGetName(Device *device, char *name, unsigned int length) {
  (void)device;
  snprintf(name, length, "NVIDIA Made Up");
  return SUCCESS;
}
int nvmlDeviceGetUUID(Device *device, char *uuid, unsigned int length) {
  BEGIN(device);
  snprintf(uuid, length, "GPU-made-up-%d", device->gpu);
  return SUCCESS;
}
int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
  snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", device->gpu + 1);
  return SUCCESS;
}
int nvmlDeviceGetPowerUsage(Device *device, unsigned int *mw) { BEGIN(device); *mw = watts(device) * 1000; return SUCCESS; }
int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *mj) {
  BEGIN(device);
  double since_s = now_s() - begin_s, reset_s = limit_s("NVML_RESET_MS");
  int reset = device->gpu == 0 && since_s > reset_s;
  *mj = (reset ? 0 : 5000000) + watts(device) * 1000 * (reset ? since_s - reset_s : since_s);
  return SUCCESS;
}
int nvmlDeviceGetUtilizationRates(Device *device, Utilization *use) {
  BEGIN(device);
  *use = (Utilization){90 - device->gpu, 40 - device->gpu};
  return SUCCESS;
}
int nvmlDeviceGetClockInfo(Device *device, int type, unsigned int *mhz) {
  BEGIN(device);
  *mhz = type == 2 ? 2619 : type == 1 ? 1980 : 345;
  return SUCCESS;
}
int nvmlDeviceGetMemoryInfo(Device *device, Memory *memory) {
  BEGIN(device);
  *memory = (Memory){80000000000, 69000000000, 11000000000};
  return SUCCESS;
}
int nvmlDeviceGetTemperature(Device *device, int sensor, unsigned int *degrees) {
  BEGIN(device);
  *degrees = sensor == 0 ? 61 : 0;
  return SUCCESS;
}
int nvmlDeviceGetDecoderUtilization(Device *device, unsigned int *percent, unsigned int *period) {
  BEGIN(device);
  *percent = 7, *period = 1000;
  return SUCCESS;
}
int nvmlDeviceGetEncoderUtilization(Device *device, unsigned int *percent, unsigned int *period) {
  BEGIN(device);
  *percent = 8, *period = 1000;
  return SUCCESS;
}
int nvmlDeviceGetViolationStatus(Device *device, int policy, Violation *violation) {
  BEGIN(device);
  *violation = (Violation){1, policy == 0 ? 2500000 : 0};
  return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *reasons) {
  BEGIN(device);
  *reasons = 4;
  return SUCCESS;
}
int nvmlDeviceGetProcessUtilization(Device *device, ProcessSample *samples, unsigned int *count, unsigned long long since) {
  BEGIN(device);
  if (!samples) return *count = 2, INSUFFICIENT_SIZE;
  if (since > 1000) return NOT_FOUND;
  samples[0] = (ProcessSample){1, since + 600, 20, 0, 0, 0};
  samples[1] = (ProcessSample){2, since + 700, 35, 0, 0, 0};
  return SUCCESS;
}
int nvmlDeviceGetMigMode(Device *device, unsigned int *now, unsigned int *pending) {
  *now = *pending = device->gpu == 1;
  return SUCCESS;
}
int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned int *count) { (void)device; *count = 7; return SUCCESS; }
int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned int index, Device **instance) {
  (void)device;
  if (index > 1) return NOT_FOUND;
  *instance = &instances[index];
  return SUCCESS;
}
int nvmlDeviceGetGpuInstanceId(Device *device, unsigned int *number) { *number = device->instance; return SUCCESS; }
#ifndef OLD
int nvmlDeviceGetMemoryInfo_v2(Device *device, MemoryV2 *memory) {
  BEGIN(device);
  *memory = (MemoryV2){memory->version, 80000000000, 600000000, 69000000000, 10400000000};
  if (device->instance >= 0) memory->used = device->instance * 1000000000ULL;
  return SUCCESS;
}
int nvmlDeviceGetJpgUtilization(Device *device, unsigned int *percent, unsigned int *period) {
  BEGIN(device);
  *percent = 9, *period = 1000;
  return SUCCESS;
}
int nvmlDeviceGetCurrentClocksEventReasons(Device *device, unsigned long long *reasons) {
  BEGIN(device);
  *reasons = 4;
  return SUCCESS;
}
int nvmlGpmQueryDeviceSupport(Device *device, Support *support) { support->supported = device->gpu == 0; return SUCCESS; }
int nvmlGpmSampleAlloc(void **sample) { *sample = calloc(1, sizeof(double)); return SUCCESS; }
int nvmlGpmSampleFree(void *sample) { free(sample); return SUCCESS; }
int nvmlGpmSampleGet(Device *device, void *sample) { BEGIN(device); *(double *)sample = now_s(); return SUCCESS; }
int nvmlGpmMetricsGet(Question *question) {
  int ordered = *(double *)question->before < *(double *)question->now;
  if (question->version != 1 || question->count != 1 || question->metrics[0].id != 2 || !ordered) return NOT_SUPPORTED;
  question->metrics[0].result = SUCCESS, question->metrics[0].value = 73.5;
  return SUCCESS;
}
#endif
