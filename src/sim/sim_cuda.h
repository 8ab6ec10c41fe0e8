/*
 * A CUDA driver whose events are those of the simulated GPU, so that the recorder times simulated launches as it
 * times real ones. Programs that link it export the functions of common/cuda_driver.h (scripts/build.mk): the recorder
 * looks them up in the program if no libcuda is loaded.
 *
 * An event that is recorded between the begin of a launch and its kernel fires when the GPU reaches the kernel; one that
 * is recorded after it, when the kernel is over. What is recorded at any other time fires at once. A stream captures a
 * graph only during a captured launch. Then it takes external events only, which are recorded when the graph runs again;
 * each launch has an event of NCCL before it, as NCCL's default is.
 *
 * Each GPU of the process has one context, which the host makes current where NCCL calls cudaSetDevice(). All functions
 * can be called by any thread.
 */
#ifndef SIM_CUDA_H
#define SIM_CUDA_H

#include "common/attributes.h"
#include "common/cuda_driver.h"
#include "sim/host.h"

/* For host_config. */
extern const struct host_watcher sim_cuda_watcher;

#define SIM_CUDA_FUNCTION(member, name, parameters) EXPORTED int name parameters;
CUDA_TIMING_FUNCTIONS(SIM_CUDA_FUNCTION)
CUDA_TIMING_FUNCTIONS_NEWER(SIM_CUDA_FUNCTION)
#undef SIM_CUDA_FUNCTION

#endif
