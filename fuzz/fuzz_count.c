/* Any bytes as a file of counted calls. */
#include <stdlib.h>

#include "bench/profilers.h"
#include "fuzz/fuzz_main.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct count_file file;

	if (count_read(&file, data, size) != OK)
		return 0;
	if (file.host[sizeof(file.host) - 1] != '\0' || file.pid <= 0 || size < sizeof(file))
		abort();
	return 0;
}
