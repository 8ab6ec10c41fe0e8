/*
 * What all commands do with a file: load it, walk it, check its totals. Through a memory file, so
 * that reading files is fuzzed, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"
#include "recording/recording.h"

static bool visit_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	(void)detail, (void)place, (void)context;
	return true;
}

static bool sum_op(const struct op_record *op, enum recording_place place, void *context)
{
	*(uint64_t *)context += op->sequence * 3 + op->bytes + op->time_source + place;
	return true;
}

/* The same for columns. */
static bool sum_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	for (uint32_t i = 0; i < batch->rows; i++)
		*(uint64_t *)context += batch->column[OP_WORD_SEQUENCE][i] * 3 +
					batch->column[OP_WORD_BYTES][i] +
					op_state_source(batch->column[OP_WORD_STATE][i]) + place;
	return true;
}

static void compare_walks(const struct recording_process *process)
{
	const uint32_t words = OP_WORD_BIT(OP_WORD_SEQUENCE) | OP_WORD_BIT(OP_WORD_BYTES) |
			       OP_WORD_BIT(OP_WORD_STATE);
	struct recording_walk rows, columns;
	uint64_t sum_rows = 0, sum_columns = 0;

	if (recording_each_op(process, sum_op, &sum_rows, &rows) !=
		    recording_each_batch(process, words, sum_batch, &sum_columns, &columns) ||
	    sum_rows != sum_columns)
		abort();
	rows.problem = columns.problem = NULL;
	if (memcmp(&rows, &columns, sizeof(rows)) != 0)
		abort();
}

/* Only "other" has key 0, and it comes first. */
static void check_links(const struct recording_process *process)
{
	for (size_t i = 0; i < process->link_count; i++)
		if (i > 0 &&
		    (process->links[i].key <= SLOT_FORGOTTEN || process->links[i].proxies == 0))
			abort();
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
		compare_walks(recording.processes[i]);
		check_links(recording.processes[i]);
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
