/*
 * What an agent would have kept of a recorded job: its processes are followed second by second, as if they ran, and
 * snapshots are made at the end.
 */
#ifndef FOLLOWED_H
#define FOLLOWED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "common/text.h"
#include "recording/recording.h"

/* When each operation of a process was over, by sequence. */
struct followed_ends {
	uint64_t *ns;
	size_t count, room;
};

static inline bool followed_end(const struct op_record *op, enum recording_place place,
				void *context)
{
	struct followed_ends *ends = context;

	if (place == RECORDING_IN_LIVE)
		return true;
	if (ends->count == ends->room) {
		ends->room = ends->room ? 2 * ends->room : 4096;
		ends->ns = realloc(ends->ns, ends->room * sizeof(*ends->ns));
	}
	if (ends->ns == NULL)
		abort();
	ends->ns[ends->count++] = op->done_ns ? op->done_ns : op->issue_ns;
	return true;
}

static inline void followed_write(struct recording_process *process, const char *directory,
				  size_t last, size_t past)
{
	unsigned char *bytes;
	char path[4200];
	size_t length;
	FILE *file;

	mkdir(directory, 0700);
	text_format(path, sizeof(path), "%s/r%d.ringside", directory, (int)process->rank);
	file = fopen(path, "we");
	if (file == NULL || recording_snapshot(process, last, past, &bytes, &length) != OK ||
	    fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
	free(bytes);
}

/* Sees it once a second, a little later than other agents see their processes. */
static inline void followed_process(struct recording_process *process, uint64_t most)
{
	struct followed_ends ends = { .ns = NULL };
	uint64_t all = process->recorded, first_ns, last_ns, clock_ns;
	uint64_t late = (uint64_t)(process->rank + 1) * 7 % 10 * (UINT64_C(1000000000) / 10);

	if (recording_each_op(process, followed_end, &ends, NULL) != OK || ends.count == 0 ||
	    !recording_wall_ns(process, ends.ns[0], &first_ns) ||
	    !recording_wall_ns(process, ends.ns[ends.count - 1], &last_ns))
		abort();
	process->recorded = 0;
	process->life = RECORDING_ALIVE;
	for (uint64_t wall_ns = first_ns + late; wall_ns < last_ns;
	     wall_ns += UINT64_C(1000000000)) {
		if (!recording_clock_ns(process, wall_ns, &clock_ns))
			abort();
		while (process->recorded < ends.count && ends.ns[process->recorded] <= clock_ns)
			process->recorded++;
		recording_past_follow(process, wall_ns, most, true);
	}
	process->recorded = all;
	free(ends.ns);
}

/* JOB/job is judged at its end: JOB/recent has the last operations of each process, JOB/aged some of the past as well. */
static inline void followed_job(const char *job, size_t last, size_t past)
{
	struct recording recording;
	char name[4096];

	snprintf(name, sizeof(name), "%s/job", job);
	recording_init(&recording);
	if (recording_add(&recording, name, 0) != OK || recording_finish(&recording) != OK)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		struct recording_process *process = recording.processes[i];

		followed_process(process, 48 * 1024);
		snprintf(name, sizeof(name), "%s/recent", job);
		followed_write(process, name, last, 0);
		snprintf(name, sizeof(name), "%s/aged", job);
		followed_write(process, name, last, past);
	}
	recording_release(&recording);
}

#endif
