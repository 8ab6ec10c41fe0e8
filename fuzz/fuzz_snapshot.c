/*
 * One moment as a trace file, and back. A snapshot of whatever was read is written and read again:
 * it has the same in flight as a snapshot of itself, and reading it causes no trouble. What it has of the past is in order when
 * it is shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/flight.h"
#include "fuzz/fuzz_main.h"
#include "fuzz/fuzz_samples.h"
#include "recording/recording.h"

#define SECOND UINT64_C(1000000000)

static void add_waits(uint64_t *sum, const struct recording_proxy *proxies, size_t count)
{
	struct flight_wait *waits;
	size_t found;

	if (flight_waits(proxies, count, &waits, &found) != OK)
		abort();
	for (size_t i = 0; i < found; i++)
		*sum = hash_word(*sum, hash_bytes(&waits[i], sizeof(waits[i])));
	free(waits);
}

/* What is in flight, as a checksum. */
static uint64_t sum_of(const struct recording_process *process)
{
	uint64_t sum = hash_word(process->flight_count, process->proxy_count);

	for (size_t i = 0; i < process->flight_count; i++) {
		const struct recording_flight *flight = &process->flights[i];
		struct op_record op = flight->op;

		op.sequence = op.sequence != 0;
		sum = hash_word(sum, hash_bytes(&op, sizeof(op)));
		sum = hash_word(sum, flight->open_children + flight->is_retiring);
		if (op.state == OP_DONE)
			continue;
		sum = hash_word(sum, hash_bytes(flight->started, sizeof(flight->started)));
		sum = hash_word(sum, hash_bytes(flight->stopped, sizeof(flight->stopped)));
		add_waits(&sum, flight->proxies, flight->proxy_count);
	}
	add_waits(&sum, process->proxies, process->proxy_count);
	return sum;
}

static void read_again(const struct recording_process *process, int depth, uint64_t wanted)
{
	struct recording_account account;
	struct recording recording;
	unsigned char *bytes;
	size_t length;

	if (recording_snapshot(process, 3, 0, &bytes, &length) != OK)
		abort();
	recording_init(&recording);
	if (recording_add_memory(&recording, "snapshot", bytes, length, 0) != OK ||
	    recording_finish(&recording) != OK || recording.count != 1)
		abort();
	if (depth > 0 && sum_of(recording.processes[0]) != wanted)
		abort();
	if (recording_account(&account, recording.processes[0]) != OK)
		abort();
	recording_account_release(&account);
	if (depth < 2)
		read_again(recording.processes[0], depth + 1, sum_of(recording.processes[0]));
	recording_release(&recording);
	free(bytes);
}

static bool count_op(const struct op_record *op, enum recording_place place, void *context)
{
	(void)op;
	(void)place;
	++*(size_t *)context;
	return true;
}

static size_t count_ops(const struct recording *recording)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->count; i++)
		recording_each_op(recording->processes[i], count_op, &count, NULL);
	return count;
}

static void show_past(struct recording *recording)
{
	size_t hidden = count_ops(recording);
	uint64_t from_ns, until_ns;

	if (recording_show_past(recording) != OK)
		abort();
	count_ops(recording);
	for (uint64_t at = 1; at != 0; at *= 2)
		if (recording_past_gap(recording, recording_past_wall(recording, at), &from_ns,
				       &until_ns) &&
		    from_ns >= until_ns)
			abort();
	recording_hide_past(recording);
	if (count_ops(recording) != hidden)
		abort();
}

/* As an agent that sees it now and then. */
static void keep_past(struct recording_process *process)
{
	uint64_t last_ns = recording_last_ns(process), wall_ns;

	if (!recording_wall_ns(process, last_ns, &wall_ns))
		return;
	process->life = RECORDING_ALIVE;
	for (uint64_t at = wall_ns - 60 * SECOND; at < wall_ns + 60 * SECOND; at += 10 * SECOND)
		recording_past_follow(process, at, 1 << 14, true);
}

static void finish(struct recording *recording)
{
	if (recording_finish(recording) != OK)
		abort();
	show_past(recording);
	recording_find_flights(recording);
	for (size_t i = 0; i < recording->count; i++)
		read_again(recording->processes[i], 0, 0);
	recording_release(recording);
}

static void read_region(const uint8_t *data, size_t size)
{
	struct sample sample = fuzz_region_sample(data, size);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct recording recording;
	char path[64];

	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK)
		abort();
	finish(&recording);
	close(fd);
	free(sample.bytes);
}

/* A snapshot of the valid region, with changes. */
static void read_changed(const uint8_t *data, size_t size)
{
	struct sample region = sample_region(), snapshot = { NULL, 0, 0 };
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct recording recording;
	char path[64];

	if (fd == -1 || write(fd, region.bytes, region.size) != (ssize_t)region.size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	recording_init(&recording);
	if (recording_add(&recording, path, 0) != OK || recording_finish(&recording) != OK)
		abort();
	keep_past(recording.processes[0]);
	if (recording_snapshot(recording.processes[0], 4, 16, &snapshot.bytes, &snapshot.size) !=
	    OK)
		abort();
	recording_release(&recording);
	close(fd);
	fuzz_change(&snapshot, data, size);
	if (size > 0 && data[0] & 1)
		fuzz_set_checksums(&snapshot);
	recording_init(&recording);
	if (recording_add_memory(&recording, "changed", snapshot.bytes, snapshot.size, 0) != OK)
		abort();
	finish(&recording);
	free(snapshot.bytes);
	free(region.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording recording;

	recording_init(&recording);
	if (recording_add_memory(&recording, "bytes", data, size, 0) != OK)
		abort();
	finish(&recording);
	if (size > 0 && data[0] & 2)
		read_region(data, size);
	else
		read_changed(data, size);
	return 0;
}
