/*
 * An NVML with two GPUs for tests of what reads it. FAKE_NVML chooses how it behaves: "hang", "crash" and "exit" when
 * it is asked for the second GPU, "error" at its start, "old" lacks what it can lack; with "descriptors" a clock is the number of
 * open descriptors beside the standard ones. The second GPU is too hot.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"

struct nvml_pci {
	char legacy_bus[16];
	unsigned int numbers[5];
	char bus[32];
};

EXPORTED int nvmlInit_v2(void);
EXPORTED const char *nvmlErrorString(int code);
EXPORTED int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
EXPORTED int nvmlDeviceGetUUID(void *device, char *text, unsigned int size);
EXPORTED int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci);
EXPORTED int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz);
EXPORTED int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *mhz);
EXPORTED int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits);
EXPORTED int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter,
					 unsigned long long *count);
EXPORTED int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active);
EXPORTED int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned int link, int counter,
					     unsigned long long *count);

enum {
	OK = 0,
	ERROR_INVALID_ARGUMENT = 2,
	ERROR_NOT_SUPPORTED = 3,
	ERROR_UNKNOWN = 999,
	LINKS = 4
};

static int devices[2];

static int index_of(const void *device)
{
	return device == &devices[1];
}

static int is_mood(const char *name)
{
	const char *mood = getenv("FAKE_NVML");

	return mood != NULL && strcmp(mood, name) == 0;
}

int nvmlInit_v2(void)
{
	return is_mood("error") ? ERROR_UNKNOWN : OK;
}

const char *nvmlErrorString(int code)
{
	return code == ERROR_UNKNOWN ? "Unknown Error" : "Error";
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
	*count = 2;
	return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	if (index == 1 && is_mood("hang"))
		for (;;)
			pause();
	if (index == 1 && is_mood("crash"))
		raise(SIGSEGV);
	if (index == 1 && is_mood("exit"))
		_exit(3);
	*device = &devices[index];
	return index < 2 ? OK : ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned int size)
{
	snprintf(text, size, "%s",
		 index_of(device) ? "GPU-22222222-0000-0000-0000-000000000000"
				  : "GPU-11111111-0000-0000-0000-000000000000");
	return OK;
}

int nvmlDeviceGetPciInfo_v3(void *device, struct nvml_pci *pci)
{
	snprintf(pci->bus, sizeof(pci->bus), "%s",
		 index_of(device) ? "00000000:AB:00.0" : "00000000:3B:00.0");
	return OK;
}

static unsigned int open_descriptors(void)
{
	unsigned int count = 0;

	for (int fd = STDERR_FILENO + 1; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) != -1;
	return count;
}

int nvmlDeviceGetClockInfo(void *device, int type, unsigned int *mhz)
{
	*mhz = index_of(device) ? 1230 : 1980;
	if (is_mood("descriptors"))
		*mhz = open_descriptors();
	return type == 1 ? OK : ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetMaxClockInfo(void *device, int type, unsigned int *mhz)
{
	(void)device;
	*mhz = 1980;
	return type == 1 && !is_mood("old") ? OK : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *bits)
{
	*bits = index_of(device) ? 0x48 : 0;
	return OK;
}

int nvmlDeviceGetTotalEccErrors(void *device, int type, int counter, unsigned long long *count)
{
	*count = type == 1 && index_of(device) ? 2 : 0;
	return counter == 0 && !is_mood("old") ? OK : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkState(void *device, unsigned int link, unsigned int *is_active)
{
	*is_active = !(index_of(device) && link == 0);
	return link < LINKS ? OK : ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkErrorCounter(void *device, unsigned int link, int counter,
				    unsigned long long *count)
{
	(void)link;
	*count = counter == 0 && index_of(device) ? 5 : 0;
	return OK;
}
