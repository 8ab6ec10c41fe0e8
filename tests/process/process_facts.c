/*
 * What a reader finds of a job, as lines "key=value". The numbers of the operations are checked one
 * by one: for each communicator 1, 2, 3 ... without gaps or duplicates.
 *
 *	process_facts PATH...	traces, directories, regions, @PID
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/region_read.h"
#include "recording/recording.h"

/* Which numbers of a communicator were seen. */
struct numbers {
	uint32_t comm;
	uint64_t *bits;
	uint64_t words, seen, highest, twice;
};

struct census {
	struct numbers *comms;
	size_t count;
	uint64_t done, timed, sequence_steps_back, last_sequence;
};

static void *must(void *memory)
{
	if (memory == NULL)
		exit(3);
	return memory;
}

static struct numbers *numbers_of(struct census *census, uint32_t comm)
{
	for (size_t i = census->count; i > 0; i--)
		if (census->comms[i - 1].comm == comm)
			return &census->comms[i - 1];
	census->comms =
		must(reallocarray(census->comms, census->count + 1, sizeof(*census->comms)));
	census->comms[census->count] = (struct numbers){ .comm = comm };
	return &census->comms[census->count++];
}

static void mark(struct numbers *numbers, uint64_t number)
{
	uint64_t word = number / 64, bit = UINT64_C(1) << number % 64;

	if (word >= numbers->words) {
		uint64_t words = word * 2 + 64;

		numbers->bits = must(reallocarray(numbers->bits, words, 8));
		memset(numbers->bits + numbers->words, 0, (words - numbers->words) * 8);
		numbers->words = words;
	}
	if (numbers->bits[word] & bit)
		numbers->twice++;
	else
		numbers->seen++;
	numbers->bits[word] |= bit;
	if (number > numbers->highest)
		numbers->highest = number;
}

static bool count_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct census *census = context;

	mark(numbers_of(census, op->comm), op->number);
	census->done += op->state == OP_DONE;
	census->timed += op->time_source == OP_TIME_KERNEL_GPU || op->time_source == OP_TIME_PROXY;
	if (place != RECORDING_IN_LIVE) {
		census->sequence_steps_back += op->sequence <= census->last_sequence;
		census->last_sequence = op->sequence;
	}
	return true;
}

static void fact(const char *name, int64_t value)
{
	printf("%s=%lld\n", name, (long long)value);
}

static void say_census(const struct census *census)
{
	uint64_t seen = 0, gaps = 0, twice = 0;

	for (size_t i = 0; i < census->count; i++) {
		seen += census->comms[i].seen;
		gaps += census->comms[i].highest - census->comms[i].seen;
		twice += census->comms[i].twice;
	}
	fact("operations", (int64_t)seen);
	fact("gaps", (int64_t)gaps);
	fact("twice", (int64_t)twice);
	fact("done", (int64_t)census->done);
	fact("timed", (int64_t)census->timed);
	fact("disorder", (int64_t)census->sequence_steps_back);
}

static void say_sources(const struct recording_process *process)
{
	fact("file_count", (int64_t)process->file_count);
	fact("closed", process->file_count > 0 && process->files[0].is_closed);
	fact("trace_records", process->file_count > 0 ? (int64_t)process->files[0].records : 0);
	fact("has_region", process->region != NULL);
	fact("region_bytes", process->region ? (int64_t)process->region->header.total_bytes : 0);
	fact("region_mode", process->region ? (int64_t)process->region->header.mode : 0);
	printf("life=%s\n", recording_life_name(process->life));
	/* Lines of the same form. */
	printf("%.*s", (int)process->info_bytes, process->info);
}

static void say_account(const struct recording_process *process)
{
	struct recording_account account;

	if (recording_account(&account, process) != OK)
		exit(3);
	fact("issued", (int64_t)account.issued);
	fact("recorded", (int64_t)account.recorded);
	fact("in_flight", (int64_t)account.in_flight);
	fact("kept", (int64_t)account.kept);
	fact("lost", (int64_t)account.lost_operations);
	fact("missing", account.missing);
	fact("unread", account.unread);
	fact("exact", account.is_exact);
	fact("in_trace", (int64_t)account.walk.in_trace);
	fact("in_ring", (int64_t)account.walk.in_ring);
	fact("in_live", (int64_t)account.walk.in_live);
	fact("recovered", (int64_t)account.walk.recovered);
	fact("refused", (int64_t)account.walk.refused);
	fact("comms", (int64_t)account.comm_count);
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (op_lost_name(i) != NULL)
			printf("lost_%s=%llu\n", op_lost_name(i),
			       (unsigned long long)process->lost[i]);
	recording_account_release(&account);
}

static void say_totals(const struct recording_process *process)
{
	struct region_total total;
	uint64_t count = 0;

	if (process->region == NULL || region_copy(process->region, REGION_COPY_TOTALS) != OK)
		return;
	for (uint32_t i = 0; i < region_slots(process->region, REGION_TOTALS); i++)
		if (region_total_at(process->region, i, &total))
			count += total.count;
	fact("totals", (int64_t)count);
}

int main(int argc, char **argv)
{
	struct recording recording;

	recording_init(&recording);
	recording.directory = getenv("RINGSIDE_SHM");
	for (int i = 1; i < argc; i++)
		if (recording_add(&recording, argv[i], RECORDING_WITH_TRACES) != OK)
			return 3;
	if (recording_finish(&recording) != OK)
		return 3;
	fact("processes", (int64_t)recording.count);
	fact("troubles", (int64_t)recording.trouble_count);
	for (size_t i = 0; i < recording.trouble_count; i++)
		printf("trouble=%s: %s\n", recording.troubles[i].path, recording.troubles[i].what);
	for (size_t i = 0; i < recording.count; i++) {
		struct census census = { 0 };

		recording_each_op(recording.processes[i], count_op, &census, NULL);
		say_census(&census);
		say_account(recording.processes[i]);
		say_sources(recording.processes[i]);
		say_totals(recording.processes[i]);
		for (size_t c = 0; c < census.count; c++)
			free(census.comms[c].bits);
		free(census.comms);
	}
	recording_release(&recording);
	return 0;
}
