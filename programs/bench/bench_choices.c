/*
 * What NCCL chose, from our own recorder: where its plugin is loaded into this process, its region has
 * the last operations with their algorithm and protocol. Of each cell's function, size and type, on the
 * newest communicator, the most frequent pair is taken.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/op_layout.h"
#include "common/text.h"
#include "programs/bench/bench_inside.h"
#include "recording/recording.h"

struct choice {
	uint64_t bytes;
	uint8_t function;
	uint8_t datatype;
	uint32_t counts[OP_ALGORITHMS][OP_PROTOCOLS];
};

struct choices {
	struct choice *list; /* one per cell */
	size_t count;
	uint32_t comm; /* the newest that has operations */
};

static bool choice_fits(const struct choice *choice, const struct op_record *op)
{
	if (choice->function != op->function || choice->bytes != op->bytes)
		return false;
	return op->datatype == OP_DATATYPE_UNKNOWN || op->datatype == choice->datatype;
}

static void counts_forget(struct choices *choices, uint32_t comm)
{
	choices->comm = comm;
	for (size_t i = 0; i < choices->count; i++)
		memset(choices->list[i].counts, 0, sizeof(choices->list[i].counts));
}

static bool op_count(const struct op_record *op, enum recording_place place, void *context)
{
	struct choices *choices = context;

	(void)place;
	if (op->algorithm == OP_ALGORITHM_UNKNOWN || op->algorithm >= OP_ALGORITHMS ||
	    op->protocol >= OP_PROTOCOLS || op->comm < choices->comm)
		return true;
	if (op->comm > choices->comm)
		counts_forget(choices, op->comm);
	for (size_t i = 0; i < choices->count; i++)
		if (choice_fits(&choices->list[i], op))
			choices->list[i].counts[op->algorithm][op->protocol]++;
	return true;
}

static void choice_take(const struct choice *choice, struct bench_cell *cell)
{
	uint32_t most = 0;

	for (uint8_t algorithm = 0; algorithm < OP_ALGORITHMS; algorithm++)
		for (uint8_t protocol = 0; protocol < OP_PROTOCOLS; protocol++)
			if (choice->counts[algorithm][protocol] > most) {
				most = choice->counts[algorithm][protocol];
				cell->chosen_algorithm = algorithm;
				cell->chosen_protocol = protocol;
			}
}

static void region_read(struct choices *choices)
{
	struct recording recording;
	char path[32];

	recording_init(&recording);
	recording.directory = getenv("RINGSIDE_SHM");
	text_format(path, sizeof(path), "@%d", (int)getpid());
	if (recording_add(&recording, path, 0) == OK && recording_finish(&recording) == OK)
		for (size_t i = 0; i < recording.count; i++)
			(void)recording_each_op(recording.processes[i], op_count, choices, NULL);
	recording_release(&recording);
}

void bench_job_choices(struct bench_job *job)
{
	struct bench_run *run = job->run;
	struct choices choices = { 0 };

	if (run == NULL || run->plugin[0] == '\0' || run->cell_count <= job->first_cell)
		return;
	choices.count = run->cell_count - job->first_cell;
	choices.list = calloc(choices.count, sizeof(*choices.list));
	if (choices.list == NULL)
		return;
	for (size_t i = 0; i < choices.count; i++) {
		const struct bench_cell *cell = &run->cells[job->first_cell + i];

		choices.list[i].function = cell->function;
		choices.list[i].datatype = cell->datatype;
		choices.list[i].bytes = cell->bytes;
	}
	region_read(&choices);
	for (size_t i = 0; i < choices.count; i++)
		choice_take(&choices.list[i], &run->cells[job->first_cell + i]);
	free(choices.list);
}
