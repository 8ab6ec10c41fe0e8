/* The GPU of this process: one of those of tests/fake_gpu, which stays loaded. */
#ifndef GPU_PLAY_H
#define GPU_PLAY_H

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "common/cuda_driver.h"

static inline void *gpu_play_library(void)
{
	char path[512], *end;
	ssize_t got = readlink("/proc/self/exe", path, sizeof(path) - 64);

	path[got > 0 ? got : 0] = '\0';
	end = strstr(path, "/tests/unit/");
	if (end == NULL)
		end = strstr(path, "/tests/race/");
	if (end == NULL)
		return NULL;
	memcpy(end, "/tests/fake_gpu/libcuda.so.1", sizeof("/tests/fake_gpu/libcuda.so.1"));
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static inline bool gpu_play_use(void *library, int device)
{
	int (*init)(unsigned int);
	int (*retain)(void **, int);
	int (*use)(void *);
	void *context = NULL;

	if (library == NULL)
		return false;
	*(void **)&init = dlsym(library, "cuInit");
	*(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
	*(void **)&use = dlsym(library, "cuCtxSetCurrent");
	return init != NULL && retain != NULL && use != NULL && init(0) == 0 &&
	       retain(&context, device) == 0 && use(context) == 0;
}

/* The functions that give times, as the recorder finds them. */
static inline void gpu_play_driver(void *library, struct cuda_driver *driver)
{
#define GPU_PLAY_FIND(member, name, parameters) *(void **)&driver->member = dlsym(library, #name);
	CUDA_TIMING_FUNCTIONS(GPU_PLAY_FIND)
	CUDA_TIMING_FUNCTIONS_NEWER(GPU_PLAY_FIND)
#undef GPU_PLAY_FIND
}

#endif
