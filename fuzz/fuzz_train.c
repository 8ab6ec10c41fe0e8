/* Any text as a rank's training log. */
#include <stdlib.h>
#include <string.h>

#include "bench/profilers.h"
#include "fuzz/fuzz_main.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct train_result result;

	if (train_read(&result, (const char *)data, size) != OK)
		return 0;
	if (result.epoch_count == 0 || result.epoch_count > TRAIN_EPOCHS_MAX || result.rank < 0 ||
	    result.rank >= result.ranks ||
	    memchr(result.torch, '\0', sizeof(result.torch)) == NULL ||
	    memchr(result.nccl, '\0', sizeof(result.nccl)) == NULL)
		abort();
	return 0;
}
