/* A hand-made job at one moment and the doctor's verdicts on it: for tests of hang_find(). */
#ifndef HANG_STAGE_H
#define HANG_STAGE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "common/op.h"
#include "doctor/doctor.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/poisoned_rest.h"
#include "tests/tap.h"

#define SECOND UINT64_C(1000000000)
#define NOW_NS (1000 * SECOND)
#define WALL_NS (UINT64_C(1700000000) * SECOND) /* at NOW_NS */

enum { STAGE_OPS = 64, STAGE_COMMS = 8, STAGE_STRANGERS = 3 };

/* NCCL's numbers for what a transfer waits for. */
enum {
	STEP_SEND_GPU = 8,
	STEP_SEND_NET = 9,
	STEP_RECV_NET = 10,
	STEP_RECV_GPU = 12,
	STEP_SEND_PEER = 20
};

struct hang_stage {
	struct recording recording;
	struct job job;
	struct verdicts verdicts;
	struct hang_options options;
	bool is_alone;	  /* not compared with the same among other ranks */
	bool is_numbered; /* nor with the same ranks with other numbers: these matter */
};

/* All verdicts of all stages of a test, with the function that asked. */
static struct expected_text stage_text;

static inline struct recording_process *stage_rank(const struct hang_stage *stage, int rank)
{
	return stage->recording.processes[rank];
}

/* `count` living ranks, `per_host` on a host, all of one job; one communicator "world" of all of them. */
static inline int stage_comm(struct hang_stage *stage, uint64_t hash, const char *name, int first,
			     int count, int step, int nranks);

static inline void stage_begin(struct hang_stage *stage, int count, int per_host)
{
	*stage = (struct hang_stage){ .recording = { .directory = NULL } };
	recording_init(&stage->recording);
	stage->recording.processes = calloc((size_t)count, sizeof(*stage->recording.processes));
	if (stage->recording.processes == NULL)
		abort();
	for (int i = 0; i < count; i++) {
		struct recording_process *process = calloc(1, sizeof(*process));

		if (process == NULL)
			abort();
		stage->recording.processes[stage->recording.count++] = process;
		snprintf(process->job, sizeof(process->job), "job");
		snprintf(process->host, sizeof(process->host), "node%d", i / per_host);
		process->rank = i;
		process->pid = process->pid_here = 4000 + i;
		process->world_size = count;
		process->life = RECORDING_ALIVE;
		process->has_counts = true;
		process->counts_ns = NOW_NS;
		process->comms = calloc(STAGE_COMMS, sizeof(*process->comms));
		process->flights = calloc(STAGE_OPS, sizeof(*process->flights));
		process->anchors = calloc(1, sizeof(*process->anchors));
		if (!process->comms || !process->flights || !process->anchors)
			abort();
		process->anchors[0] = (struct clock_anchor){ SECOND, WALL_NS - NOW_NS + SECOND };
		process->anchor_count = 1;
	}
	stage_comm(stage, 0x100, "world", 0, count, 1, count);
}

/* A communicator of ranks first, first + step ...; returns its number within these processes. */
static inline int stage_comm(struct hang_stage *stage, uint64_t hash, const char *name, int first,
			     int count, int step, int nranks)
{
	int id = 0;

	for (int i = 0; i < count; i++) {
		struct recording_process *process = stage_rank(stage, first + i * step);
		struct recording_comm *comm = &process->comms[process->comm_count++];

		if (process->comm_count > STAGE_COMMS)
			abort();
		id = (int)process->comm_count;
		*comm = (struct recording_comm){ .info = { .id = (uint32_t)id,
							   .interface = 5,
							   .hash = hash,
							   .rank = i,
							   .nranks = nranks,
							   .nnodes = 2,
							   .flags = COMM_FLAG_SEES_KERNELS |
								    COMM_FLAG_SEES_PROXIES,
							   .init_ns = 2 * SECOND,
							   .gpu = first + i * step },
						 .has_counts = true };
		snprintf(comm->info.name, sizeof(comm->info.name), "%s", name);
	}
	return id;
}

/* Its last sign of life was `ago_ns` ago. */
static inline void stage_kill(const struct hang_stage *stage, int rank, uint64_t ago_ns)
{
	stage_rank(stage, rank)->life = RECORDING_KILLED;
	stage_rank(stage, rank)->counts_ns = NOW_NS - ago_ns;
}

/* A call made `ago_ns` ago; the rank is in it if its state is running. */
static inline struct recording_flight *stage_call(struct hang_stage *stage, int rank, int comm,
						  uint8_t function, uint64_t match, uint8_t state,
						  uint64_t ago_ns)
{
	struct recording_process *process = stage_rank(stage, rank);
	struct recording_comm *of = &process->comms[comm - 1];
	struct recording_flight *flight = &process->flights[process->flight_count++];
	uint64_t at_ns = NOW_NS - ago_ns;

	if (process->flight_count > STAGE_OPS)
		abort();
	*flight = (struct recording_flight){ .op = { .comm = (uint32_t)comm,
						     .function = function,
						     .datatype = OP_FLOAT32,
						     .number = ++of->counts.issued,
						     .match = match,
						     .count = 1024,
						     .root = OP_NOBODY,
						     .peer = OP_NOBODY,
						     .state = state,
						     .issue_ns = at_ns,
						     .launch_ns = at_ns } };
	if (state == OP_RUNNING || state == OP_DONE) {
		flight->op.active_ns = at_ns;
		flight->op.kernels_started = 2;
		flight->started[0] = 3;
	}
	if (state == OP_RUNNING)
		flight->open_children = 1;
	of->counts.last_issue_ns = at_ns;
	if (state == OP_DONE) {
		flight->op.done_ns = of->counts.last_done_ns = at_ns + 1000;
		of->counts.last_done_number = flight->op.number;
		flight->stopped[0] = 3;
	}
	if (op_is_collective(function)) {
		flight->op.signature = 0x1000 + match;
		of->counts.collectives = match;
		of->counts.signature = flight->op.signature;
	}
	return flight;
}

/* It called something else than the others: hashes differ from here on. */
static inline void stage_diverge(struct hang_stage *stage, int rank, int comm,
				 struct recording_flight *flight)
{
	flight->op.signature ^= 0x55;
	stage_rank(stage, rank)->comms[comm - 1].counts.signature ^= 0x55;
}

/* One connection of an operation, with its oldest transfer in this state; 0: none is open. */
static inline struct recording_proxy *stage_proxy(struct recording_flight *flight, bool is_send,
						  int peer, int channel, int state, uint64_t ago_ns)
{
	struct recording_proxy *proxy;

	flight->proxies =
		realloc(flight->proxies, (flight->proxy_count + 1) * sizeof(*flight->proxies));
	if (flight->proxies == NULL)
		abort();
	proxy = &flight->proxies[flight->proxy_count++];
	memset(proxy, 0, sizeof(*proxy));
	proxy->proxy.peer = peer;
	proxy->proxy.channel = (uint8_t)channel;
	proxy->proxy.flags = is_send ? PROXY_IS_SEND | PROXY_IN_PROGRESS : PROXY_IN_PROGRESS;
	proxy->proxy.steps = 8;
	proxy->proxy.done = state == 0 ? 8 : 3;
	proxy->proxy.start_ns = proxy->proxy.since_ns = NOW_NS - ago_ns;
	if (state != 0) {
		int stage = state == STEP_SEND_PEER			       ? 1
			    : state == STEP_SEND_NET || state == STEP_RECV_GPU ? 2
									       : 0;

		proxy->step_count = 1;
		proxy->steps[0].step_plus_1 = 4;
		proxy->steps[0].state = (uint8_t)state;
		proxy->steps[0].time_ns[stage] = NOW_NS - ago_ns;
	}
	return proxy;
}

static int stage_by_comm(const void *one, const void *other)
{
	const struct op_record *a = &((const struct recording_flight *)one)->op;
	const struct op_record *b = &((const struct recording_flight *)other)->op;

	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

/* A rank of a healthy job. */
static inline void stage_stranger(struct recording_process *process, struct recording_comm *comm,
				  struct recording_flight *flights, struct clock_anchor *anchor,
				  int rank)
{
	*anchor = (struct clock_anchor){ SECOND, WALL_NS - NOW_NS + SECOND };
	*process = (struct recording_process){ .rank = rank,
					       .pid = 9000 + rank,
					       .world_size = STAGE_STRANGERS,
					       .life = RECORDING_ALIVE,
					       .has_counts = true,
					       .counts_ns = NOW_NS,
					       .comms = comm,
					       .comm_count = 1,
					       .flights = flights,
					       .flight_count = 2,
					       .anchors = anchor,
					       .anchor_count = 1 };
	snprintf(process->job, sizeof(process->job), "stranger");
	snprintf(process->host, sizeof(process->host), "far%d", rank);
	*comm = (struct recording_comm){ .info = { .id = 1,
						   .interface = 5,
						   .hash = 0x999,
						   .rank = rank,
						   .nranks = STAGE_STRANGERS,
						   .nnodes = STAGE_STRANGERS,
						   .flags = COMM_FLAG_SEES_KERNELS |
							    COMM_FLAG_SEES_PROXIES,
						   .init_ns = 2 * SECOND },
					 .has_counts = true,
					 .counts = { .issued = 2,
						     .collectives = 2,
						     .signature = 0x1002,
						     .last_issue_ns = NOW_NS - SECOND,
						     .last_done_ns = NOW_NS - SECOND + 1000,
						     .last_done_number = 2 } };
	snprintf(comm->info.name, sizeof(comm->info.name), "strangers");
	for (uint64_t i = 0; i < 2; i++)
		flights[i] = (struct recording_flight){
			.op = { .comm = 1,
				.function = OP_ALL_REDUCE,
				.datatype = OP_FLOAT32,
				.number = i + 1,
				.match = i + 1,
				.signature = 0x1001 + i,
				.count = 1024,
				.root = OP_NOBODY,
				.peer = OP_NOBODY,
				.state = OP_DONE,
				.kernels_started = 2,
				.issue_ns = NOW_NS - (2 - i) * SECOND,
				.launch_ns = NOW_NS - (2 - i) * SECOND,
				.active_ns = NOW_NS - (2 - i) * SECOND,
				.done_ns = NOW_NS - (2 - i) * SECOND + 1000 },
			.started = { 3 },
			.stopped = { 3 }
		};
}

/* What does not depend on the order of the ranks: of several equal ones the first is the example. */
static inline void stage_put_short(struct expected_text *to, const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		expected_put(to, "%s %s %.3f %s %u %.3f %.3f %zu %zu %zu\n",
			     verdict_severity_name(verdict->severity),
			     verdict_class_name(verdict->class), verdict->confidence, verdict->comm,
			     verdict->victims, (double)verdict->for_ns / 1e9,
			     (double)verdict->since_wall_ns / 1e9, verdict->evidence.count,
			     verdict->missing.count, verdict->advice.count);
	}
}

/* Each rank also has a communicator on which nothing was ever called, or no longer. */
static inline void stage_idle_comm(const struct hang_stage *stage, bool is_there)
{
	for (size_t p = 0; p < stage->recording.count; p++) {
		struct recording_process *process = stage->recording.processes[p];
		struct recording_comm *comm = &process->comms[process->comm_count];

		if (!is_there) {
			process->comm_count--;
			continue;
		}
		if (process->comm_count == STAGE_COMMS)
			abort();
		*comm = (struct recording_comm){ .info = { .id = (uint32_t)++process->comm_count,
							   .interface = 5,
							   .hash = 0x888,
							   .rank = (int32_t)p,
							   .nranks =
								   (int32_t)stage->recording.count,
							   .nnodes = 2,
							   .init_ns = 2 * SECOND },
						 .has_counts = true };
		snprintf(comm->info.name, sizeof(comm->info.name), "idle");
	}
}

/* The last rank of each communicator becomes its first, and so on; twice: as before. */
static inline void stage_mirror(const struct hang_stage *stage)
{
	for (size_t p = 0; p < stage->recording.count; p++) {
		struct recording_process *process = stage->recording.processes[p];

		process->rank = (int64_t)stage->recording.count - 1 - process->rank;
		for (size_t c = 0; c < process->comm_count; c++) {
			struct comm_info *info = &process->comms[c].info;

			info->rank = info->nranks - 1 - info->rank;
		}
		for (size_t f = 0; f < process->flight_count; f++) {
			struct recording_flight *flight = &process->flights[f];
			int32_t last = process->comms[flight->op.comm - 1].info.nranks - 1;

			if (flight->op.root >= 0)
				flight->op.root = last - flight->op.root;
			if (flight->op.peer >= 0)
				flight->op.peer = last - flight->op.peer;
			for (size_t i = 0; i < flight->proxy_count; i++)
				if (flight->proxies[i].proxy.peer >= 0)
					flight->proxies[i].proxy.peer =
						last - flight->proxies[i].proxy.peer;
		}
	}
}

enum stage_order { STAGE_IN_ORDER = 0, STAGE_REVERSED = 1, STAGE_MIRRORED = 2, STAGE_HUNG = 3 };

/* The last one of the other job has not called what its ranks have been in for ten minutes. */
static inline void stage_hang_stranger(struct recording_process *process, int rank)
{
	struct comm_counts *counts = &process->comms[0].counts;

	if (rank == STAGE_STRANGERS - 1) {
		process->flight_count = 1;
		counts->collectives = counts->issued = counts->last_done_number = 1;
		counts->signature = 0x1001;
		counts->last_issue_ns = counts->last_done_ns = NOW_NS - 601 * SECOND;
		return;
	}
	process->flights[1].op.state = OP_RUNNING;
	process->flights[1].op.done_ns = 0;
	process->flights[1].op.issue_ns = process->flights[1].op.launch_ns =
		process->flights[1].op.active_ns = NOW_NS - 600 * SECOND;
	process->flights[1].open_children = 1;
	process->flights[1].stopped[0] = 0;
	counts->last_done_number = 1;
	counts->last_issue_ns = NOW_NS - 600 * SECOND;
	counts->last_done_ns = NOW_NS - 601 * SECOND;
}

/* The same ranks among those of another job, in the opposite order or with other numbers: the verdicts are the same. */
static inline void stage_compare_among_others(const struct hang_stage *stage,
					      enum stage_order order)
{
	static const char *const orders[] = { "in order\n", "in the opposite order\n",
					      "with other numbers\n", "beside another hang\n" };
	static struct recording_process strangers[STAGE_STRANGERS];
	static struct recording_comm comms[STAGE_STRANGERS];
	static struct recording_flight flights[STAGE_STRANGERS][2];
	static struct clock_anchor anchors[STAGE_STRANGERS];
	struct recording recording = stage->recording;
	struct verdicts verdicts = { .list = NULL };
	struct expected_text alone = { .text = NULL }, among = { .text = NULL };
	struct job job;

	recording.count = 0;
	recording.processes =
		calloc(stage->recording.count + STAGE_STRANGERS, sizeof(*recording.processes));
	if (recording.processes == NULL)
		abort();
	for (int i = 0; i < STAGE_STRANGERS; i++) {
		stage_stranger(&strangers[i], &comms[i], flights[i], &anchors[i], i);
		if (order == STAGE_HUNG)
			stage_hang_stranger(&strangers[i], i);
		for (size_t p = 0; i == STAGE_STRANGERS - 1 && p < stage->recording.count; p++)
			recording.processes[recording.count++] =
				stage->recording.processes[order == STAGE_REVERSED
								   ? stage->recording.count - 1 - p
								   : p];
		recording.processes[recording.count++] = &strangers[i];
	}
	stage_idle_comm(stage, true);
	if (order == STAGE_MIRRORED)
		stage_mirror(stage);
	if (job_make(&job, &recording) != OK || hang_find(&verdicts, &job, &stage->options) != OK)
		abort();
	verdicts_sort(&verdicts);
	if (order == STAGE_MIRRORED)
		stage_mirror(stage);
	stage_idle_comm(stage, false);
	expected_put(&alone, "%s", orders[order]);
	expected_put(&among, "%s", orders[order]);
	if (order == STAGE_HUNG) {
		for (size_t i = 0; i < stage->verdicts.count; i++)
			expected_put_verdict(&alone, &stage->verdicts.list[i]);
		for (size_t i = 0; i < verdicts.count; i++)
			if (strcmp(verdicts.list[i].job, "stranger") != 0)
				expected_put_verdict(&among, &verdicts.list[i]);
	} else if (order != STAGE_IN_ORDER) {
		stage_put_short(&alone, &stage->verdicts);
		stage_put_short(&among, &verdicts);
	} else {
		expected_put_verdicts(&alone, "", &stage->verdicts);
		expected_put_verdicts(&among, "", &verdicts);
	}
	if (strcmp(alone.text, among.text) != 0 &&
	    !EXPECT_THAT("the same verdicts among ranks of another job", false))
		printf("# alone: %s\n# among others: %s\n", alone.text, among.text);
	free(alone.text);
	free(among.text);
	verdicts_release(&verdicts);
	job_release(&job);
	free(recording.processes);
}

/* Run the doctor. */
static inline size_t stage_find_in(struct hang_stage *stage, const char *test)
{
	for (size_t i = 0; i < stage->recording.count; i++) {
		struct recording_process *process = stage->recording.processes[i];

		qsort(process->flights, process->flight_count, sizeof(*process->flights),
		      stage_by_comm);
	}
	job_release(&stage->job);
	verdicts_release(&stage->verdicts);
	poison_processes(&stage->recording);
	if (job_make(&stage->job, &stage->recording) != OK)
		abort();
	poison_job(&stage->job);
	if (hang_find(&stage->verdicts, &stage->job, &stage->options) != OK)
		abort();
	unpoison_processes(&stage->recording);
	verdicts_sort(&stage->verdicts);
	expected_put_verdicts(&stage_text, test, &stage->verdicts);
	for (int i = 0; i < 4 && !stage->is_alone && stage->options.still_ns == NULL; i++)
		if (i != STAGE_MIRRORED || !stage->is_numbered)
			stage_compare_among_others(stage, (enum stage_order)i);
	return stage->verdicts.count;
}

#define stage_find(stage) stage_find_in(stage, __func__)

static inline bool stage_has_line(const struct verdict_lines *lines, const char *words)
{
	for (size_t i = 0; i < lines->count; i++)
		if (strstr(lines->list[i], words) != NULL)
			return true;
	return false;
}

static inline void stage_print(const struct hang_stage *stage)
{
	for (size_t i = 0; i < stage->verdicts.count; i++) {
		const struct verdict *verdict = &stage->verdicts.list[i];

		printf("# %s rank %lld (%.2f, %u wait) %s\n", verdict_class_name(verdict->class),
		       (long long)verdict->rank, verdict->confidence, verdict->victims,
		       verdict->title);
		for (size_t j = 0; j < verdict->evidence.count; j++)
			printf("#   %s\n", verdict->evidence.list[j]);
		for (size_t j = 0; j < verdict->missing.count; j++)
			printf("#   missing: %s\n", verdict->missing.list[j]);
	}
}

/* The only verdict is of this class and names this rank (-1 none). */
static inline bool stage_only_in(struct hang_stage *stage, enum verdict_class class, int64_t rank,
				 const char *test)
{
	bool is_so = stage_find_in(stage, test) == 1 && stage->verdicts.list[0].class == class &&
		     stage->verdicts.list[0].rank == rank && stage->verdicts.list[0].title[0] &&
		     stage->verdicts.list[0].evidence.count > 0 &&
		     stage->verdicts.list[0].advice.count > 0 && stage->verdicts.list[0].page[0];

	if (!is_so)
		stage_print(stage);
	return is_so;
}

#define stage_only(stage, class, rank) stage_only_in(stage, class, rank, __func__)

static inline bool stage_nobody_in(struct hang_stage *stage, const char *test)
{
	bool is_so = stage_find_in(stage, test) == 0;

	stage_print(stage);
	return is_so;
}

#define stage_nobody(stage) stage_nobody_in(stage, __func__)

static inline void stage_end(struct hang_stage *stage)
{
	verdicts_release(&stage->verdicts);
	job_release(&stage->job);
	for (size_t i = 0; i < stage->recording.count; i++) {
		struct recording_process *process = stage->recording.processes[i];

		for (size_t j = 0; j < process->flight_count; j++)
			free(process->flights[j].proxies);
		free(process->flights);
		free(process->comms);
		free(process->anchors);
		free(process);
	}
	free(stage->recording.processes);
}

#endif
