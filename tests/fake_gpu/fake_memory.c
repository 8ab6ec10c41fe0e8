/*
 * Device memory: host memory between two guards of known bytes, which are checked when it is freed. New memory
 * contains garbage, as on a GPU. Every address passed to a kernel or a copy is checked.
 */
#include "tests/fake_gpu/fake_queue.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRIP = 256, STRIP_BYTE = 0xc5, RUBBISH_BYTE = 0xa7, RUBBISH_MOST = 4 << 20 };

struct block {
	struct block *next;
	size_t bytes;
	unsigned char *memory; /* guard, the caller's bytes, guard */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct block *blocks;
static size_t used_bytes;

static uint64_t address_of(const struct block *block)
{
	return (uint64_t)(uintptr_t)block->memory + STRIP;
}

bool fake_memory_has(uint64_t address, size_t bytes)
{
	bool is_found = false;

	pthread_mutex_lock(&lock);
	for (const struct block *block = blocks; block != NULL && !is_found; block = block->next) {
		uint64_t offset = address - address_of(block);

		is_found = address >= address_of(block) && offset <= block->bytes &&
			   bytes <= block->bytes - offset;
	}
	pthread_mutex_unlock(&lock);
	return is_found;
}

static void strips_check(const struct block *block)
{
	const unsigned char *before = block->memory, *behind = before + STRIP + block->bytes;

	for (int i = 0; i < STRIP; i++) {
		if (before[i] == STRIP_BYTE && behind[i] == STRIP_BYTE)
			continue;
		(void)fprintf(stderr, "fake CUDA: something wrote %s %zu bytes of device memory\n",
			      before[i] != STRIP_BYTE ? "before" : "behind", block->bytes);
		abort();
	}
}

static struct block *block_new(size_t bytes)
{
	struct block *block = malloc(sizeof(*block));

	if (block == NULL)
		return NULL;
	*block = (struct block){ .bytes = bytes };
	if (posix_memalign((void **)&block->memory, STRIP, bytes + 2 * STRIP) != 0) {
		free(block);
		return NULL;
	}
	memset(block->memory, STRIP_BYTE, STRIP);
	memset(block->memory + STRIP, RUBBISH_BYTE, bytes < RUBBISH_MOST ? bytes : RUBBISH_MOST);
	memset(block->memory + STRIP + bytes, STRIP_BYTE, STRIP);
	return block;
}

static size_t total_bytes(void)
{
	return fake_setting("FAKE_GPU_MEMORY", 1 << 30);
}

cuda_result cuMemAlloc_v2(cuda_address *address, size_t bytes)
{
	struct block *block = NULL;
	cuda_result result;

	FAKE_ENTER(true);
	result = fake_capture_unsafe();
	if (result != 0)
		return result;
	if (bytes == 0)
		return FAKE_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	if (bytes <= total_bytes() && used_bytes <= total_bytes() - bytes)
		block = block_new(bytes);
	if (block != NULL) {
		block->next = blocks;
		blocks = block;
		used_bytes += bytes;
		*address = address_of(block);
	}
	pthread_mutex_unlock(&lock);
	return block == NULL ? FAKE_OUT_OF_MEMORY : 0;
}

cuda_result cuMemFree_v2(cuda_address address)
{
	struct block **link = &blocks, *block;

	FAKE_ENTER(true);
	if (address == 0)
		return 0;
	pthread_mutex_lock(&lock);
	while (*link != NULL && address_of(*link) != address)
		link = &(*link)->next;
	block = *link;
	if (block != NULL) {
		*link = block->next;
		used_bytes -= block->bytes;
	}
	pthread_mutex_unlock(&lock);
	if (block == NULL)
		return FAKE_INVALID_VALUE;
	strips_check(block);
	memset(block->memory + STRIP, STRIP_BYTE,
	       block->bytes < RUBBISH_MOST ? block->bytes : RUBBISH_MOST);
	free(block->memory);
	free(block);
	return 0;
}

cuda_result cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	FAKE_ENTER(true);
	pthread_mutex_lock(&lock);
	*total = total_bytes();
	*free_bytes = *total - used_bytes;
	pthread_mutex_unlock(&lock);
	return 0;
}

cuda_result cuMemcpyHtoD_v2(cuda_address to, const void *from, size_t bytes)
{
	FAKE_ENTER(true);
	if (!fake_memory_has(to, bytes))
		return FAKE_INVALID_VALUE;
	memcpy((void *)(uintptr_t)to, from, bytes);
	return 0;
}

cuda_result cuMemcpyDtoH_v2(void *to, cuda_address from, size_t bytes)
{
	FAKE_ENTER(true);
	if (!fake_memory_has(from, bytes))
		return FAKE_INVALID_VALUE;
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return 0;
}
