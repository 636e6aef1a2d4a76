/* A library of AMD SMI with made-up GPUs, for the functions that aiperf calls; layouts are those of amdsmi 7.0.2.  The functions of
   OTHERS are not supported.  SMI_GPUS: how many; SMI_MAJOR: version; SMI_INIT: error of its start; SMI_FAIL: functions that fail. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 2 };
static int gpus[8];
static struct { uint64_t socket; uint32_t current, average; uint64_t voltages[3]; uint32_t limit; } power;

static int number(const char *name, int otherwise) { const char *text = getenv(name); return text ? atoi(text) : otherwise; }
static int fails(const char *name) { const char *text = getenv("SMI_FAIL"); return text && strstr(text, name) ? NOT_SUPPORTED : 0; }

int amdsmi_init(uint64_t flags) { (void)flags; return number("SMI_INIT", 0); }
int amdsmi_shut_down(void) { return SUCCESS; }
int amdsmi_get_socket_handles(uint32_t *count, void **sockets) { if (sockets) sockets[0] = gpus; *count = 1; return SUCCESS; }
int amdsmi_get_processor_handles(void *socket, uint32_t *count, void **processors) {
  (void)socket;
  *count = number("SMI_GPUS", 1);
  for (uint32_t index = 0; processors && index < *count; index++) gpus[index] = index, processors[index] = &gpus[index];
  return SUCCESS;
}
int amdsmi_get_gpu_device_uuid(int *gpu, uint32_t *length, char *uuid) {
  if (fails(__func__)) return NOT_SUPPORTED;
  return snprintf(uuid, *length, "made-up-%d", *gpu), SUCCESS;
}
int amdsmi_get_gpu_asic_info(int *gpu, char *info) { (void)gpu; strcpy(info, "AMD Made Up"); return SUCCESS; }
int amdsmi_get_gpu_device_bdf(int *gpu, uint64_t *bdf) { *bdf = (uint64_t)(*gpu + 1) << 8; return SUCCESS; }
int amdsmi_get_power_info(int *gpu, char *info) {
  if (fails(__func__)) return NOT_SUPPORTED;
  power.current = number("SMI_CURRENT", 512 + *gpu), power.average = 499;
  memcpy(info, &power, sizeof power);
  return SUCCESS;
}
int amdsmi_get_energy_count(int *gpu, uint64_t *steps, float *resolution, uint64_t *at) {
  (void)gpu;
  if (fails(__func__)) return NOT_SUPPORTED;
  return *steps = 2000000000, *resolution = 15.25f, *at = 1, SUCCESS;
}
int amdsmi_get_gpu_activity(int *gpu, uint32_t *activity) {
  (void)gpu;
  if (fails(__func__)) return NOT_SUPPORTED;
  return activity[0] = 93, activity[1] = 41, activity[2] = 0xFFFF, SUCCESS;
}
int amdsmi_get_gpu_vram_usage(int *gpu, uint32_t *usage) { (void)gpu; return usage[0] = 196592, usage[1] = 100000, SUCCESS; }
int amdsmi_get_temp_metric(int *gpu, uint32_t sensor, uint32_t metric, int64_t *value) {
  (void)gpu;
  if (sensor != 1 || metric != 0) return NOT_SUPPORTED;
  return *value = number("SMI_MAJOR", 26) >= 26 ? 61 : 61000, SUCCESS;
}
int amdsmi_get_gpu_total_ecc_count(int *gpu, uint64_t *count) { (void)gpu; return count[0] = 5, count[1] = 2, SUCCESS; }
int amdsmi_get_gpu_metrics_info(int *gpu, char *metrics) {
  (void)gpu;
  uint32_t status = number("SMI_THROTTLE", 0);
  return memcpy(metrics + 68, &status, 4), SUCCESS;
}
static char build[] = "made up";
int amdsmi_get_lib_version(uint32_t *version) {
  char *text = build;
  version[0] = number("SMI_MAJOR", 26), version[1] = 0, version[2] = 0;
  return memcpy(version + 4, &text, sizeof text), SUCCESS;
}
#include "others.h"
