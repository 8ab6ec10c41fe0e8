/* What all commands do with a file: load it, walk it, check its sums. Through memory that looks like a
 * file, so that the reading of files is fuzzed, too. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"
#include "recording/recording_account.h"

static bool visit_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	(void)detail, (void)place, (void)context;
	return true;
}

static void read_recording(const char *path)
{
	struct recording_account account;
	struct recording recording;
	uint64_t wall;

	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		recording_account(&account, recording.processes[i]);
		recording_account_release(&account);
		recording_each_detail(recording.processes[i], visit_detail, NULL, NULL);
		recording_wall_ns(recording.processes[i], 7, &wall);
	}
	recording_release(&recording);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sample sample = size > 0 && data[0] & 2 ? fuzz_region_sample(data, size)
						       : fuzz_trace_sample(data, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	char path[64];

	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_recording(path);
	close(fd);
	free(sample.bytes);
	return 0;
}
