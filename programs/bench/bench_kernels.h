/*
 * Two kernels that fill and check buffers on the GPU, in hand-written PTX that the driver compiles: every
 * GPU since 2014 takes them. They know bits, not types: what is right stands in tables that the host made
 * (bench_pattern.h), of one 64-bit entry per element whatever its size. Element i belongs to entry
 * (i + phase) mod period.
 *
 *	ringside_fill	uint64_t buffer		address, aligned to element_bytes
 *			uint64_t count		elements
 *			uint32_t element_bytes	1, 2, 4 or 8
 *			uint64_t table		address of `period` entries of uint64_t: an element's bits
 *			uint32_t period
 *			uint32_t phase		below period
 *
 *	ringside_check	uint64_t buffer
 *			uint64_t count
 *			uint32_t element_bytes
 *			uint64_t low		address of `period` entries of uint64_t
 *			uint64_t high		likewise
 *			uint32_t period
 *			uint32_t phase
 *			uint64_t counter	address of one uint64_t: grows by the number of elements
 *						whose bits, as an unsigned number, are not in [low, high]
 *
 * kernelParams has pointers to these, in this order. One-dimensional grid and blocks, no shared memory.
 */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "programs/bench/cuda_open.h"

#define KERNEL_FILL "ringside_fill"
#define KERNEL_CHECK "ringside_check"

struct bench_kernels {
	struct CUmod_st *module;
	struct CUfunc_st *fill;
	struct CUfunc_st *check;
};

struct kernel_span {
	cuda_address buffer;
	uint64_t count;
	uint32_t element_bytes;
	uint32_t period;
	uint32_t phase;
	uint32_t blocks; /* of the grid; 0: as many as are good */
};

/* 0, or CUDA's error; *what is then the function that gave it. The context is current. */
cuda_result kernels_load(struct bench_kernels *kernels, const struct cuda *cuda, const char **what);
void kernels_unload(struct bench_kernels *kernels, const struct cuda *cuda);

/* Enqueued on the stream; nothing at all for a count of 0. */
cuda_result kernels_fill(const struct bench_kernels *kernels, const struct cuda *cuda,
			 struct CUstream_st *stream, const struct kernel_span *span,
			 cuda_address table);
cuda_result kernels_check(const struct bench_kernels *kernels, const struct cuda *cuda,
			  struct CUstream_st *stream, const struct kernel_span *span,
			  cuda_address low, cuda_address high, cuda_address counter);

#endif
