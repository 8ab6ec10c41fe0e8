/*
 * Devices, contexts, errors, and injected failures.
 *
 *	FAKE_GPUS		number of GPUs, default 1
 *	FAKE_GPU_MEMORY		bytes of each, default 1G
 *	FAKE_CUDA_FAIL		function:nth[:error],...
 */
#include "tests/fake_gpu/fake_cuda.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "common/order.h"

enum { STACK_MAX = 16, COMPUTE_CAPABILITY_MAJOR = 75 };

static struct CUctx_st contexts[FAKE_CONTEXTS_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards their beginning and end */
static uint64_t last_id;
static int is_initialized;
/* The thread's contexts; the last one is current. */
static _Thread_local struct {
	size_t count;
	struct CUctx_st *contexts[STACK_MAX];
} stack;

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
	if (!needs_context)
		return 0;
	if (fake_context_current() == NULL)
		return FAKE_INVALID_CONTEXT;
	return load_relaxed(&fake_context_current()->id) == 0 ? FAKE_CONTEXT_IS_DESTROYED : 0;
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
	{ FAKE_CONTEXT_IS_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed" },
	{ CUDA_DEINITIALIZED, "CUDA_ERROR_DEINITIALIZED", "driver shutting down" },
	{ FAKE_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure" },
	{ FAKE_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	  "operation not permitted when stream is capturing" },
	{ FAKE_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	  "operation failed due to a previous error during capture" },
	{ CUDA_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
	  "operation would make the legacy stream depend on a capturing blocking stream" },
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

	return count > FAKE_DEVICES_MAX ? FAKE_DEVICES_MAX : (int)count;
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

struct CUctx_st *fake_context_current(void)
{
	return stack.count > 0 ? stack.contexts[stack.count - 1] : NULL;
}

size_t fake_context_number(const struct CUctx_st *context)
{
	return (size_t)(context - contexts);
}

struct fake_home fake_home_current(void)
{
	struct CUctx_st *context = fake_context_current();

	return (struct fake_home){ .context = context, .id = load_relaxed(&context->id) };
}

bool fake_home_exists(const struct fake_home *home)
{
	return load_relaxed(&home->context->id) == home->id;
}

static bool is_context(const struct CUctx_st *context)
{
	return context >= contexts && context < contexts + FAKE_CONTEXTS_MAX;
}

/* Under the lock. */
static void context_begin(struct CUctx_st *context, int device)
{
	context->device = device;
	context->legacy = NULL;
	store_relaxed(&context->error, 0);
	store_relaxed(&context->id, ++last_id);
}

/* Under the lock. All that belongs to it is gone, too. */
static void context_end(struct CUctx_st *context)
{
	uint64_t id = context->id;

	store_relaxed(&context->id, 0);
	if (id != 0)
		fake_streams_end(context, id);
}

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
	pthread_mutex_lock(&lock);
	contexts[device].retained++;
	if (contexts[device].id == 0)
		context_begin(&contexts[device], device);
	pthread_mutex_unlock(&lock);
	*context = &contexts[device];
	return 0;
}

cuda_result cuDevicePrimaryCtxRelease_v2(cuda_device device)
{
	cuda_result result = FAKE_INVALID_CONTEXT;

	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (contexts[device].retained > 0) {
		if (--contexts[device].retained == 0)
			context_end(&contexts[device]);
		result = 0;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Whoever retained it has to retain it again. */
cuda_result cuDevicePrimaryCtxReset_v2(cuda_device device)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	context_end(&contexts[device]);
	contexts[device].retained = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}

cuda_result cuDevicePrimaryCtxGetState(cuda_device device, unsigned int *flags, int *is_active)
{
	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	*flags = 0;
	*is_active = load_relaxed(&contexts[device].id) != 0;
	return 0;
}

cuda_result cuCtxCreate_v2(struct CUctx_st **context, unsigned int flags, cuda_device device)
{
	struct CUctx_st *made = NULL;

	FAKE_ENTER(false);
	if (!is_device(device))
		return FAKE_INVALID_DEVICE;
	(void)flags;
	pthread_mutex_lock(&lock);
	for (int i = FAKE_DEVICES_MAX; i < FAKE_CONTEXTS_MAX && made == NULL; i++) {
		if (contexts[i].id == 0)
			made = &contexts[i];
	}
	if (made != NULL && stack.count < STACK_MAX) {
		context_begin(made, device);
		stack.contexts[stack.count++] = made;
		*context = made;
	}
	pthread_mutex_unlock(&lock);
	return made == NULL ? FAKE_OUT_OF_MEMORY : 0;
}

cuda_result cuCtxDestroy_v2(struct CUctx_st *context)
{
	FAKE_ENTER(false);
	if (!is_context(context) || context < contexts + FAKE_DEVICES_MAX ||
	    load_relaxed(&context->id) == 0)
		return FAKE_INVALID_CONTEXT;
	if (fake_context_current() == context)
		stack.count--;
	pthread_mutex_lock(&lock);
	context_end(context);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* A primary context that was reset can be made current: it may come back. Another one that is destroyed crashes CUDA. */
cuda_result cuCtxSetCurrent(struct CUctx_st *context)
{
	FAKE_ENTER(false);
	if (context == NULL) {
		stack.count -= stack.count > 0;
		return 0;
	}
	if (!is_context(context))
		return FAKE_INVALID_CONTEXT;
	if (context >= contexts + FAKE_DEVICES_MAX && load_relaxed(&context->id) == 0)
		return fake_stale(FAKE_CONTEXT_IS_DESTROYED);
	if (stack.count == 0)
		stack.count = 1;
	stack.contexts[stack.count - 1] = context;
	return 0;
}

cuda_result cuCtxGetCurrent(struct CUctx_st **context)
{
	FAKE_ENTER(false);
	*context = fake_context_current();
	return 0;
}

/* Also of one that was destroyed. */
cuda_result cuCtxGetDevice(cuda_device *device)
{
	FAKE_ENTER(false);
	if (fake_context_current() == NULL)
		return FAKE_INVALID_CONTEXT;
	*device = fake_context_current()->device;
	return 0;
}

cuda_result cuCtxGetId(struct CUctx_st *context, unsigned long long *id)
{
	uint64_t found;

	FAKE_ENTER(false);
	if (context == NULL)
		context = fake_context_current();
	if (context == NULL || !is_context(context))
		return FAKE_INVALID_CONTEXT;
	found = load_relaxed(&context->id);
	if (found == 0)
		return FAKE_CONTEXT_IS_DESTROYED;
	*id = found;
	return 0;
}
