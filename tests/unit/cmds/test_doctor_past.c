/*
 * What an agent keeps of the past, and what the doctor finds in it: simulated jobs are followed as an agent follows them, second by
 * second, and judged by snapshots from their end: with the last operations alone, and with the past.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "recording/recording.h"
#include "tests/support/command_play.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)

/* When each operation of a process was over, by sequence. */
struct ends {
	uint64_t *ns;
	size_t count;
};

static bool take_end(const struct op_record *op, enum recording_place place, void *context)
{
	struct ends *ends = context;

	if (place == RECORDING_IN_LIVE)
		return true;
	ends->ns = realloc(ends->ns, (ends->count + 1) * sizeof(*ends->ns));
	if (ends->ns == NULL)
		abort();
	ends->ns[ends->count++] = op->done_ns ? op->done_ns : op->issue_ns;
	return true;
}

static void write_snapshot(struct recording_process *process, const char *name, size_t last,
			   size_t past)
{
	unsigned char *bytes;
	char path[4096];
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "%s", command_path(name));
	mkdir(path, 0700);
	snprintf(path + strlen(path), sizeof(path) - strlen(path), "/r%d.ringside",
		 (int)process->rank);
	file = fopen(path, "we");
	if (file == NULL || recording_snapshot(process, last, past, &bytes, &length) != OK ||
	    fwrite(bytes, 1, length, file) != length || fclose(file) != 0)
		abort();
	free(bytes);
}

/* Sees it once a second, a little later than other agents see their processes. */
static void follow(struct recording_process *process, uint64_t most)
{
	struct ends ends = { .ns = NULL };
	uint64_t all = process->recorded, first_ns, last_ns, clock_ns;
	uint64_t late = (uint64_t)(process->rank + 1) * 7 % 10 * (SECOND / 10);

	if (recording_each_op(process, take_end, &ends, NULL) != OK || ends.count == 0 ||
	    !recording_wall_ns(process, ends.ns[0], &first_ns) ||
	    !recording_wall_ns(process, ends.ns[ends.count - 1], &last_ns))
		abort();
	process->recorded = 0;
	process->life = RECORDING_ALIVE;
	for (uint64_t wall_ns = first_ns + late; wall_ns < last_ns; wall_ns += SECOND) {
		if (!recording_clock_ns(process, wall_ns, &clock_ns))
			abort();
		while (process->recorded < ends.count && ends.ns[process->recorded] <= clock_ns)
			process->recorded++;
		recording_past_follow(process, wall_ns, most, true);
	}
	process->recorded = all;
	free(ends.ns);
}

static void age(const char *job, size_t last, size_t past)
{
	struct recording recording;
	char name[256];

	snprintf(name, sizeof(name), "%s/job", job);
	recording_init(&recording);
	if (recording_add(&recording, command_path(name), 0) != OK ||
	    recording_finish(&recording) != OK)
		abort();
	for (size_t i = 0; i < recording.count; i++) {
		struct recording_process *process = recording.processes[i];

		follow(process, 48 * 1024);
		snprintf(name, sizeof(name), "%s/recent", job);
		write_snapshot(process, name, last, 0);
		snprintf(name, sizeof(name), "%s/aged", job);
		write_snapshot(process, name, last, past);
	}
	recording_release(&recording);
}

/* The same job as its files, as the last operations of each process, and as these with the past. */
static void play(const char *name, const char *job, size_t last, size_t past)
{
	char line[512];

	snprintf(line, sizeof(line), "-o %s/job %s", name, job);
	command_directory(name);
	command_sim(line);
	age(name, last, past);
	for (size_t i = 0; i < 3; i++) {
		static const char *const kinds[] = { "job", "recent", "aged" };

		snprintf(line, sizeof(line), "doctor %s/%s", name, kinds[i]);
		command(line);
	}
	snprintf(line, sizeof(line), "verify %s/aged", name);
	command(line);
}

int main(void)
{
	command_begin();
	play("network",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 41 --network 12 --seconds 900s "
	     "-f degraded-network:factor=2,at=200s",
	     2000, 16384);
	play("rank",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.31 --seed 42 --seconds 900s "
	     "-f slow-rank:rank=2,factor=1.5,at=200s",
	     2000, 16384);
	play("cable",
	     "--nodes 3 --gpus 2 -w ddp --release 2.28 --seed 43 --network 12 --seconds 900s "
	     "-f slow-link:from=1,to=2,factor=6,at=200s",
	     2000, 16384);
	play("calm",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 44 --seconds 900s --noise "
	     "gc:every=5s,for=10ms",
	     2000, 16384);
	play("untimed",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.27 --seed 45 --network 12 --seconds 600s "
	     "-f degraded-network:factor=3,at=150s",
	     2000, 4096);
	/* More operations in each slot than are kept of it. */
	play("busy",
	     "--nodes 2 --gpus 2 -w tp-pp --release 2.30 --seed 46 --network 12 --rate 12 "
	     "--seconds 300s "
	     "-f slow-rank:rank=1,factor=1.6,at=120s",
	     3000, 16384);
	play("over",
	     "--nodes 2 --gpus 2 -w fsdp --release 2.30 --seed 47 --network 12 --seconds 900s "
	     "-f degraded-network:factor=2,at=200s,until=300s",
	     2000, 16384);
	EXPECT_THAT("with the past the doctor finds what the whole recording shows",
		    command_expected("tests/unit/cmds/expected/doctor-past"));
	return tap_done();
}
