/*
 * A fake CUDA driver with the functions that the recorder uses. In a job's LD_PRELOAD, under the
 * name libcuda.so.1, it counts as already loaded.
 *
 *	FAKE_CUDA_DEVICE	number of the current device, 0
 *	FAKE_CUDA_GPU		last byte of its UUID, 1
 */
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"

EXPORTED int cuCtxGetDevice(int *device);
EXPORTED int cuDeviceGetUuid(unsigned char *uuid, int device);
EXPORTED int cuDeviceGetPCIBusId(char *text, int size, int device);

static int setting(const char *name, int standard)
{
	const char *value = getenv(name);

	return value != NULL ? (int)strtol(value, NULL, 10) : standard;
}

int cuCtxGetDevice(int *device)
{
	*device = setting("FAKE_CUDA_DEVICE", 0);
	return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device)
{
	(void)device;
	memset(uuid, 0xab, 16);
	uuid[15] = (unsigned char)setting("FAKE_CUDA_GPU", 1);
	return 0;
}

int cuDeviceGetPCIBusId(char *text, int size, int device)
{
	(void)device;
	if (size < 13)
		return 1;
	memcpy(text, "0000:1b:00.0", 13);
	return 0;
}
