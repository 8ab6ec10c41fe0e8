/*
 * Devices, contexts, errors, and injected failures.
 *
 *	FAKE_GPUS		number of GPUs, default 1
 *	FAKE_GPU_MEMORY		bytes of each, default 1G
 *	FAKE_CUDA_FAIL		function:nth[:error],...
 */
#include "tests/fake_gpu/fake_cuda.h"

#include <stdio.h>
#include <string.h>

#include "common/order.h"

struct CUctx_st {
	int device;
};

enum { DEVICES_MAX = 16, COMPUTE_CAPABILITY_MAJOR = 75 };

static struct CUctx_st contexts[DEVICES_MAX];
static int is_initialized;
static _Thread_local struct CUctx_st *current;

/* ---- failures -------------------------------------------------------------------------------- */

static cuda_result told_to_fail(const char *function)
{
	static uint32_t calls[FAKE_POINTS];
	cuda_result result = fake_control_enter(function);

	if (result != 0)
		return result;
	return fake_point("FAKE_CUDA_FAIL", function, calls, FAKE_LAUNCH_FAILED);
}

cuda_result fake_enter(const char *function, bool needs_context)
{
	cuda_result result = told_to_fail(function);

	if (result != 0)
		return result;
	if (!load_relaxed(&is_initialized))
		return FAKE_NOT_INITIALIZED;
	return needs_context && current == NULL ? FAKE_INVALID_CONTEXT : 0;
}

static const struct {
	cuda_result result;
	const char *name;
	const char *text;
} errors[] = {
	{ 0, "CUDA_SUCCESS", "no error" },
	{ FAKE_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument" },
	{ FAKE_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory" },
	{ FAKE_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error" },
	{ FAKE_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected" },
	{ FAKE_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal" },
	{ FAKE_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context" },
	{ FAKE_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed" },
	{ FAKE_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle" },
	{ FAKE_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed now" },
	{ FAKE_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found" },
	{ CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready" },
	{ FAKE_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access" },
	{ FAKE_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ FAKE_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "operation not permitted when stream is capturing" },
};

cuda_result cuGetErrorName(cuda_result result, const char **name)
{
	for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
		if (errors[i].result == result) {
			*name = errors[i].name;
			return 0;
		}
	}
	*name = NULL;
	return FAKE_INVALID_VALUE;
}

cuda_result cuGetErrorString(cuda_result result, const char **text)
{
	for (size_t i = 0; i < ARRAY_LENGTH(errors); i++) {
		if (errors[i].result == result) {
			*text = errors[i].text;
			return 0;
		}
	}
	*text = NULL;
	return FAKE_INVALID_VALUE;
}

/* ---- devices --------------------------------------------------------------------------------- */

static int device_count(void)
{
	uint64_t count = fake_setting("FAKE_GPUS", 1);

	return count > DEVICES_MAX ? DEVICES_MAX : (int)count;
}

static bool is_device(cuda_device device)
{
	return device >= 0 && device < device_count();
}

cuda_result cuInit(unsigned int flags)
{
	cuda_result result = told_to_fail(__func__);

	if (result != 0)
		return result;
	if (flags != 0)
		return FAKE_INVALID_VALUE;
	if (device_count() == 0)
		return FAKE_NO_DEVICE;
	store_relaxed(&is_initialized, 1);
	return 0;
}

cuda_result cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

cuda_result cuDeviceGetCount(int *count)
{
	FAKE_ENTER(false);
	*count = device_count();
	return 0;
}

cuda_result cuDeviceGet(cuda_device *device, int ordinal)
{
	FAKE_ENTER(false);
	if (!is_device(ordinal))
		return FAKE_INVALID_DEVICE;
	*device = ordinal;
	return 0;
}

cuda_result cuDeviceGetName(char *name, int size, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device) || size <= 0)
		return FAKE_INVALID_DEVICE;
	(void)snprintf(name, (size_t)size, "Fake GPU");
	return 0;
}

cuda_result cuDeviceGetUuid(struct cuda_uuid *uuid, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	memset(uuid->bytes, 0xfa, sizeof(uuid->bytes));
	uuid->bytes[15] = (unsigned char)device;
	return 0;
}

cuda_result cuDeviceGetPCIBusId(char *text, int size, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device) || size < 13)
		return FAKE_INVALID_DEVICE;
	(void)snprintf(text, (size_t)size, "0000:%02X:00.0", (unsigned int)device + 1);
	return 0;
}

cuda_result cuDeviceTotalMem_v2(size_t *bytes, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	*bytes = fake_setting("FAKE_GPU_MEMORY", 1 << 30);
	return 0;
}

cuda_result cuDeviceGetAttribute(int *value, int attribute, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	switch (attribute) {
	case CUDA_ATTRIBUTE_MULTIPROCESSORS:
		*value = 4;
		break;
	case COMPUTE_CAPABILITY_MAJOR:
		*value = 9;
		break;
	default:
		*value = 0;
	}
	return 0;
}

cuda_result cuDeviceGetP2PAttribute(int *value, int attribute, cuda_device one, cuda_device other)
{
	FAKE_ENTER(false);
	if (!is_device(one) || !is_device(other) || one == other)
		return FAKE_INVALID_DEVICE;
	*value = attribute == CUDA_P2P_ACCESS_SUPPORTED;
	return 0;
}

/* ---- contexts -------------------------------------------------------------------------------- */

cuda_result cuDevicePrimaryCtxSetFlags_v2(cuda_device device, unsigned int flags)
{
	FAKE_ENTER(false);
	(void)flags;
	return is_device(device) ? 0 : FAKE_INVALID_DEVICE;
}

cuda_result cuDevicePrimaryCtxRetain(struct CUctx_st **context, cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	contexts[device].device = device;
	*context = &contexts[device];
	return 0;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
	FAKE_ENTER(false);
	return is_device(device) ? 0 : FAKE_INVALID_DEVICE;
}

cuda_result cuCtxSetCurrent(struct CUctx_st *context)
{
	FAKE_ENTER(false);
	current = context;
	return 0;
}

cuda_result cuCtxGetDevice(cuda_device *device)
{
	FAKE_ENTER(true);
	*device = current->device;
	return 0;
}
