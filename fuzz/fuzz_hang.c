/*
 * Any job at any moment: processes, communicators, operations and transfers whose fields come from
 * the input, within what recording.h guarantees. The doctor has an answer, and its texts are
 * terminated.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "doctor/doctor.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_main.h"

enum { PROCESSES = 8, COMMS = 4, FLIGHTS = 12, PROXIES = 4 };
#define SECOND UINT64_C(1000000000)

/* Mostly small and equal, so that ranks match. */
static uint64_t number(struct input *input)
{
	uint8_t value = byte(input);

	if (value == 255)
		return UINT64_MAX;
	return value & 128 ? (uint64_t)value << (byte(input) % 57) : value & 7;
}

static uint64_t moment(struct input *input)
{
	return byte(input) * 2 * SECOND;
}

static void fill_proxy(struct input *input, struct recording_proxy *proxy)
{
	static const uint8_t states[] = { 8, 9, 10, 11, 12, 20, 0, 77 };

	proxy->proxy.peer = (int32_t)(byte(input) % 10) - 1;
	proxy->proxy.channel = byte(input);
	proxy->proxy.flags = byte(input) & 15;
	proxy->proxy.steps = byte(input) & 15;
	proxy->proxy.done = byte(input) & 15;
	proxy->proxy.since_ns = moment(input);
	proxy->step_count = byte(input) % 3;
	for (unsigned int i = 0; i < proxy->step_count; i++) {
		proxy->steps[i].state = states[byte(input) % sizeof(states)];
		proxy->steps[i].time_ns[i % 3] = moment(input);
	}
}

static void fill_flight(struct input *input, struct recording_flight *flight, uint32_t comms)
{
	struct op_record *op = &flight->op;
	uint8_t flags, gpu;

	op->comm = 1 + byte(input) % (comms + 1);
	op->function = byte(input) & 64 ? byte(input) : byte(input) % OP_FUNCTIONS;
	op->datatype = byte(input);
	op->number = number(input);
	op->match = number(input);
	op->signature = number(input);
	op->count = number(input);
	op->root = (int32_t)(byte(input) % 10) - 1;
	op->peer = (int32_t)(byte(input) % 10) - 1;
	flags = byte(input);
	op->flags = (flags & 31) | (flags & 32 ? OP_FLAG_CUDA_EVENT : 0) |
		    (flags & 64 ? OP_FLAG_SEEN_OPEN : 0);
	op->state = byte(input) % OP_STATES;
	op->issue_ns = moment(input);
	op->launch_ns = moment(input);
	op->active_ns = moment(input);
	gpu = byte(input);
	op->kernels_started = gpu % 3;
	op->gpu_start_ns = gpu & 16 ? op->active_ns : 0;
	op->gpu_stop_ns = gpu & 32 ? op->active_ns + SECOND : 0;
	op->stream = gpu >> 6;
	flight->open_children = byte(input) % 2;
	flight->started[0] = byte(input);
	flight->stopped[0] = byte(input);
	flight->proxy_count = byte(input) % (PROXIES + 1);
	flight->proxies = calloc(PROXIES, sizeof(*flight->proxies));
	for (size_t i = 0; flight->proxies != NULL && i < flight->proxy_count; i++)
		fill_proxy(input, &flight->proxies[i]);
}

static int by_place(const void *one, const void *other)
{
	const struct op_record *a = &((const struct recording_flight *)one)->op;
	const struct op_record *b = &((const struct recording_flight *)other)->op;

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

static void fill_comm(struct input *input, struct recording_comm *comm, uint32_t id)
{
	comm->info.id = id;
	comm->info.interface = 4 + byte(input) % 2;
	comm->info.hash = byte(input) % 4;
	comm->info.rank = (int32_t)(byte(input) % 10) - 1;
	comm->info.nranks = byte(input) % 10;
	comm->info.nnodes = byte(input) % 3;
	comm->info.flags = byte(input) & 31;
	comm->info.mask = byte(input) & 64;
	comm->info.gpu = byte(input) % 8;
	comm->has_counts = byte(input) % 8 != 0;
	comm->counts.collectives = number(input);
	comm->counts.replays = number(input);
	comm->counts.signature = number(input);
	comm->counts.last_issue_ns = moment(input);
	comm->counts.last_done_ns = moment(input);
	comm->counts.last_done_number = number(input);
	comm->counts.untracked = byte(input) & 1;
	memset(comm->info.name, 'x', byte(input) % (sizeof(comm->info.name) - 1));
}

static struct recording_process *make_process(struct input *input)
{
	struct recording_process *process = calloc(1, sizeof(*process));
	uint8_t asked;

	if (process == NULL)
		return NULL;
	process->comms = calloc(COMMS, sizeof(*process->comms));
	process->flights = calloc(FLIGHTS, sizeof(*process->flights));
	process->anchors = calloc(1, sizeof(*process->anchors));
	if (!process->comms || !process->flights || !process->anchors)
		abort();
	process->rank = (int64_t)(byte(input) % 10) - 1;
	process->pid = byte(input);
	process->life = byte(input) % 4;
	process->process_state = byte(input) % 4 == 0 ? 'T' : 'S';
	process->host[0] = (char)('a' + byte(input) % 3);
	process->lost[byte(input) % LOST_REASONS] = byte(input) % 2;
	asked = byte(input);
	process->is_moving = asked % 8 == 0;
	process->counts_ns = moment(input);
	if (asked & 64)
		process->times_read_ns = process->counts_ns - (asked >> 3 & 7) * SECOND;
	process->anchor_count = byte(input) % 2;
	process->anchors[0].wall_ns = moment(input);
	process->comm_count = byte(input) % (COMMS + 1);
	for (uint32_t i = 0; i < process->comm_count; i++)
		fill_comm(input, &process->comms[i], i + 1);
	process->flight_count = byte(input) % (FLIGHTS + 1);
	for (size_t i = 0; i < process->flight_count; i++)
		fill_flight(input, &process->flights[i], (uint32_t)process->comm_count);
	qsort(process->flights, process->flight_count, sizeof(*process->flights), by_place);
	return process;
}

static void free_process(struct recording_process *process)
{
	for (size_t i = 0; i < process->flight_count; i++)
		free(process->flights[i].proxies);
	free(process->flights);
	free(process->comms);
	free(process->anchors);
	free(process);
}

static void check(const struct verdicts *verdicts, const struct job *job)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (!verdict_is_hang(verdict->class) || verdict->title[0] == '\0' ||
		    verdict->page[0] == '\0' || verdict->evidence.count == 0 ||
		    verdict->victims > job->rank_count ||
		    !(verdict->confidence > 0 && verdict->confidence <= 1) ||
		    memchr(verdict->title, '\0', sizeof(verdict->title)) == NULL)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = { data, size, 0 };
	struct hang_source source = { "agent", true, NULL };
	struct hang_options options = { .hang_ns = (1 + byte(&input) % 8) * 8 * SECOND,
					.sources = &source,
					.source_count = byte(&input) % 2 };
	struct recording_process *list[PROCESSES];
	struct recording recording;
	struct verdicts verdicts;
	struct job job;
	size_t count = 1 + byte(&input) % PROCESSES;

	recording_init(&recording);
	for (size_t i = 0; i < count; i++)
		list[i] = make_process(&input);
	recording.processes = list;
	recording.count = count;
	verdicts_init(&verdicts);
	if (job_make(&job, &recording) != OK)
		abort();
	if (hang_find(&verdicts, &job, &options) != OK)
		abort();
	verdicts_sort(&verdicts);
	check(&verdicts, &job);
	verdicts_release(&verdicts);
	job_release(&job);
	for (size_t i = 0; i < count; i++)
		free_process(list[i]);
	return 0;
}
