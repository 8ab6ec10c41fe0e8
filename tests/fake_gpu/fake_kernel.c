/* Modules and kernels: the two of src/bench/bench_gpu.h, in C. The PTX is only checked for the kernel's name. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench_gpu.h"
#include "tests/fake_gpu/fake_queue.h"

enum kernel_kind { KERNEL_IS_FILL = 0, KERNEL_IS_CHECK = 1, KERNEL_KINDS = 2 };
enum { KERNEL_NS = 1000 };

struct CUfunc_st {
	enum kernel_kind kind;
};

struct CUmod_st {
	bool has_kernel[KERNEL_KINDS];
	struct CUfunc_st functions[KERNEL_KINDS];
};

static const char *const kernel_names[KERNEL_KINDS] = { KERNEL_FILL, KERNEL_CHECK };

cuda_result cuModuleLoadData(struct CUmod_st **module, const void *image)
{
	struct CUmod_st *made;

	FAKE_ENTER(true);
	if (image == NULL || strstr(image, ".version") == NULL || strstr(image, ".target") == NULL)
		return FAKE_INVALID_PTX;
	made = calloc(1, sizeof(*made));
	if (made == NULL)
		return FAKE_OUT_OF_MEMORY;
	for (int kind = 0; kind < KERNEL_KINDS; kind++) {
		made->functions[kind].kind = (enum kernel_kind)kind;
		made->has_kernel[kind] = strstr(image, kernel_names[kind]) != NULL;
	}
	*module = made;
	return 0;
}

cuda_result cuModuleUnload(struct CUmod_st *module)
{
	FAKE_ENTER(true);
	free(module);
	return 0;
}

cuda_result cuModuleGetFunction(struct CUfunc_st **function, struct CUmod_st *module,
				const char *name)
{
	FAKE_ENTER(true);
	for (int kind = 0; kind < KERNEL_KINDS; kind++) {
		if (strcmp(name, kernel_names[kind]) == 0 && module->has_kernel[kind]) {
			*function = &module->functions[kind];
			return 0;
		}
	}
	return FAKE_NOT_FOUND;
}

/* Both kernels' parameters. */
struct launch {
	enum kernel_kind kind;
	uint64_t buffer;
	uint64_t count;
	uint32_t element_bytes;
	uint64_t low; /* fill: the table */
	uint64_t high;
	uint32_t period;
	uint32_t phase;
	uint64_t counter;
};

static uint64_t u64(const void *parameter)
{
	uint64_t value;

	memcpy(&value, parameter, sizeof(value));
	return value;
}

static uint32_t u32(const void *parameter)
{
	uint32_t value;

	memcpy(&value, parameter, sizeof(value));
	return value;
}

static void launch_read(struct launch *launch, enum kernel_kind kind, void **parameters)
{
	*launch = (struct launch){
		.kind = kind,
		.buffer = u64(parameters[0]),
		.count = u64(parameters[1]),
		.element_bytes = u32(parameters[2]),
		.low = u64(parameters[3]),
	};
	if (kind == KERNEL_IS_CHECK) {
		launch->high = u64(parameters[4]);
		launch->counter = u64(parameters[7]);
	}
	launch->period = u32(parameters[kind == KERNEL_IS_CHECK ? 5 : 4]);
	launch->phase = u32(parameters[kind == KERNEL_IS_CHECK ? 6 : 5]);
}

static bool launch_is_legal(const struct launch *launch)
{
	uint32_t width = launch->element_bytes;
	size_t table = (size_t)launch->period * sizeof(uint64_t);

	if ((width != 1 && width != 2 && width != 4 && width != 8) || launch->period == 0 ||
	    launch->phase >= launch->period || launch->buffer % width != 0 ||
	    !fake_memory_has(launch->buffer, launch->count * width) ||
	    !fake_memory_has(launch->low, table))
		return false;
	return launch->kind == KERNEL_IS_FILL ||
	       (fake_memory_has(launch->high, table) &&
		fake_memory_has(launch->counter, sizeof(uint64_t)));
}

/* With a constant width, each copy of an element is one instruction. */
static inline void fill_wide(const struct launch *launch, uint32_t width)
{
	unsigned char *buffer = (unsigned char *)(uintptr_t)launch->buffer;
	const uint64_t *table = (const uint64_t *)(uintptr_t)launch->low;
	uint32_t entry = launch->phase;

	/* Little-endian: an entry's first bytes are the element. */
	for (uint64_t i = 0; i < launch->count; i++) {
		memcpy(buffer + i * width, &table[entry], width);
		entry = entry + 1 == launch->period ? 0 : entry + 1;
	}
}

static inline void check_wide(const struct launch *launch, uint32_t width)
{
	const unsigned char *buffer = (const unsigned char *)(uintptr_t)launch->buffer;
	const uint64_t *low = (const uint64_t *)(uintptr_t)launch->low;
	const uint64_t *high = (const uint64_t *)(uintptr_t)launch->high;
	uint32_t entry = launch->phase;
	uint64_t wrong = 0;

	for (uint64_t i = 0; i < launch->count; i++) {
		uint64_t value = 0;

		memcpy(&value, buffer + i * width, width);
		wrong += value < low[entry] || value > high[entry];
		entry = entry + 1 == launch->period ? 0 : entry + 1;
	}
	*(uint64_t *)(uintptr_t)launch->counter += wrong;
}

static inline void launch_wide(const struct launch *launch, uint32_t width)
{
	if (launch->kind == KERNEL_IS_FILL)
		fill_wide(launch, width);
	else
		check_wide(launch, width);
}

static int launch_run(void *arg, struct CUstream_st *stream)
{
	const struct launch *launch = arg;

	if (!launch_is_legal(launch))
		return FAKE_ILLEGAL_ADDRESS;
	switch (launch->element_bytes) {
	case 1:
		launch_wide(launch, 1);
		break;
	case 2:
		launch_wide(launch, 2);
		break;
	case 4:
		launch_wide(launch, 4);
		break;
	default:
		launch_wide(launch, 8);
	}
	fake_stream_pass(stream, fake_clock(), KERNEL_NS);
	return 0;
}

static cuda_result add_owned(struct CUstream_st *stream, int (*run)(void *, struct CUstream_st *),
			     void *arg, int type)
{
	struct fake_work work = { .run = run, .release = free, .arg = arg };
	cuda_result result =
		arg == NULL ? FAKE_OUT_OF_MEMORY : fake_stream_enqueue(stream, &work, type);

	if (result != 0)
		free(arg);
	return result;
}

cuda_result cuLaunchKernel(struct CUfunc_st *function, unsigned int grid_x, unsigned int grid_y,
			   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			   unsigned int block_z, unsigned int shared, struct CUstream_st *stream,
			   void **parameters, void **extra)
{
	struct launch *launch;

	FAKE_ENTER(true);
	if (function == NULL)
		return FAKE_INVALID_HANDLE;
	if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x > 1024 ||
	    block_y != 1 || block_z != 1 || shared != 0 || extra != NULL || parameters == NULL)
		return FAKE_INVALID_VALUE;
	launch = malloc(sizeof(*launch));
	if (launch != NULL)
		launch_read(launch, function->kind, parameters);
	return add_owned(stream, launch_run, launch, FAKE_NODE_KERNEL);
}

/* ---- memset ---------------------------------------------------------------------------------- */

struct setting_bytes {
	uint64_t address;
	size_t bytes;
	unsigned char value;
};

static int set_run(void *arg, struct CUstream_st *stream)
{
	const struct setting_bytes *set = arg;

	if (!fake_memory_has(set->address, set->bytes))
		return FAKE_ILLEGAL_ADDRESS;
	memset((void *)(uintptr_t)set->address, set->value, set->bytes);
	fake_stream_pass(stream, fake_clock(), KERNEL_NS);
	return 0;
}

cuda_result cuMemsetD8Async(cuda_address address, unsigned char value, size_t bytes,
			    struct CUstream_st *stream)
{
	struct setting_bytes *set;

	FAKE_ENTER(true);
	set = malloc(sizeof(*set));
	if (set != NULL)
		*set = (struct setting_bytes){ .address = address, .bytes = bytes, .value = value };
	return add_owned(stream, set_run, set, FAKE_NODE_MEMSET);
}
