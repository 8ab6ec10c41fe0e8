/*
 * A report made by hand, for tests of slowness: eight ranks on four hosts (node0 has ranks 0 and 1, with GPUs 0 and 1), a
 * recording of 1,000 s that begins at 22:13:20. world has all ranks, dp0 and dp1 those with GPU 0 and 1, tp0 ... tp3 those
 * of a host. Tests say which operation types there are, which of them changed, and what their transfers spent on the
 * wire. A second job, whose two ranks have one communicator, is fine.
 */
#ifndef SLOW_STAGE_H
#define SLOW_STAGE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/doctor.h"
#include "tests/support/expected_verdicts.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

#define STAGE_SECOND UINT64_C(1000000000)
#define STAGE_START (1700000000 * STAGE_SECOND)
#define STAGE_MIB UINT64_C(1048576)

enum {
	STAGE_RANKS = 8,
	STAGE_HOSTS = 4,
	STAGE_ROWS = 700,
	STAGE_CHANGES = 16,
	STAGE_STRAGGLERS = 6,
	STAGE_LENGTH_S = 1000,
	STAGE_WIRE_OPS = 16, /* before 500 s, and as many after: 4 transfers each */
};

/* From 1 on: 0 ends a list. */
enum stage_comm {
	STAGE_WORLD = 1,
	STAGE_DP0,
	STAGE_DP1,
	STAGE_TP0,
	STAGE_TP1,
	STAGE_TP2,
	STAGE_TP3,
	STAGE_STRANGERS,
};

/* An operation type of a communicator; 100 calls of each rank. What is 0 is as usual. */
struct stage_cell {
	enum stage_comm comm;
	uint64_t bytes;	   /* 16 MiB */
	uint8_t function;  /* AllReduce */
	uint8_t algorithm; /* RING */
	uint8_t protocol;  /* SIMPLE */
	uint64_t calls;	   /* of each rank */
	double busbw;	   /* GB/s: 40 */
	double ms;	   /* 1 */
	double spread;	   /* of logarithms: 0.01 */
};

/* Faster until some time, or slower. What is 0 is as usual. */
struct stage_change {
	enum stage_comm comm;
	uint64_t at_s;
	double before, after; /* GB/s */
	uint32_t comms;	      /* 1: only this one */
	uint32_t changed;
	double lost_s; /* 400, over all ranks */
	uint64_t bytes;
	uint8_t function;
	uint64_t matches_before, matches_after; /* 100 */
	double confidence;			/* 0.99 */
};

struct stage {
	struct hand_made hand;
	struct timeline_report report;
	struct tally_row rows[STAGE_ROWS];
	struct windows_change changes[STAGE_CHANGES];
	struct straggler stragglers[STAGE_STRAGGLERS];
	struct straggler_judged judged[2];
	struct slow_options options;
	struct verdicts verdicts;
};

/* The second job; with another name it comes before the first. */
static const char *stage_strangers = "zoo";

static inline uint32_t stage_index(const struct stage *stage, enum stage_comm comm)
{
	for (uint32_t c = 0; c < stage->report.job.comm_count; c++)
		if (stage->report.job.comms[c].hash == (uint64_t)comm)
			return c;
	abort();
}

static inline void stage_begin(struct stage *stage)
{
	memset(stage, 0, sizeof(*stage));
	for (int rank = 0; rank < STAGE_RANKS; rank++) {
		char host[16], name[16];
		struct recording_process *process;

		snprintf(host, sizeof(host), "node%d", rank / 2);
		process = hand_process(&stage->hand, "train", rank, host);
		hand_comm(process, STAGE_WORLD, "world", rank, STAGE_RANKS, STAGE_HOSTS);
		snprintf(name, sizeof(name), "dp%d", rank % 2);
		hand_comm(process, STAGE_DP0 + (uint64_t)(rank % 2), name, rank / 2, STAGE_HOSTS,
			  STAGE_HOSTS);
		snprintf(name, sizeof(name), "tp%d", rank / 2);
		hand_comm(process, STAGE_TP0 + (uint64_t)(rank / 2), name, rank % 2, 2, 1);
		for (int c = 0; c < 3; c++)
			process->comms[c].info.gpu = rank % 2;
	}
	for (int rank = 0; rank < 2; rank++)
		hand_comm(hand_process(&stage->hand, stage_strangers, rank, rank ? "far1" : "far0"),
			  STAGE_STRANGERS, "strangers", rank, 2, 2);
	verdicts_init(&stage->verdicts);
}

/* Without the second job. */
static inline void stage_leave_strangers(struct stage *stage)
{
	while (stage->hand.recording.count > STAGE_RANKS) {
		struct recording_process *process = stage->hand.list[--stage->hand.recording.count];

		free(process->comms);
		free(process->flights);
		free(process);
	}
}

/* After all processes are there. */
static inline void stage_made(struct stage *stage)
{
	struct timeline_report *report = &stage->report;

	*report = (struct timeline_report){
		.recording = &stage->hand.recording,
		.start_ns = STAGE_START,
		.end_ns = STAGE_START + STAGE_LENGTH_S * STAGE_SECOND,
		.has_wall = true,
		.completeness = { .keeps_all = true, .is_complete = true, .share = 1 },
		.total = { .timed = 100,
			   .calls = 100,
			   .by_source = { [OP_TIME_KERNEL_GPU] = 100 } },
		.matches = { .stride = 1 },
		.stragglers = { .list = stage->stragglers, .least_matches = 128 },
		.windows = { .changes = stage->changes, .width_ns = STAGE_SECOND },
		.custom = { { .by = BASELINE_BY, .rows = stage->rows } },
		.custom_count = 1,
	};
	if (job_make(&report->job, &stage->hand.recording) != OK ||
	    align_solve(&report->align, &report->job, NULL, 0) != OK)
		abort();
	poison_job(&report->job);
}

static inline void stage_over(struct stage *stage)
{
	verdicts_release(&stage->verdicts);
	align_release(&stage->report.align);
	job_release(&stage->report.job);
	hand_release(&stage->hand);
}

static inline struct tally_row *stage_cell(struct stage *stage, const struct stage_cell *cell)
{
	struct tally *table = &stage->report.custom[0];
	struct tally_row *row = &stage->rows[table->count++];
	uint32_t comm = stage_index(stage, cell->comm);
	uint64_t ranks = stage->report.job.comms[comm].seat_count;
	uint64_t moves = cell->calls > 0 ? cell->calls : 100, calls = moves * ranks;
	uint64_t bytes = cell->bytes > 0 ? cell->bytes : 16 * STAGE_MIB;
	double ns = 1e6 * (cell->ms > 0 ? cell->ms : 1), n = (double)moves;
	double spread = cell->spread > 0 ? cell->spread : 0.01;

	if (table->count > STAGE_ROWS)
		abort();
	*row = (struct tally_row){
		.key = { .comm = comm,
			 .function = cell->function > 0 ? cell->function : OP_ALL_REDUCE,
			 .algorithm = cell->algorithm > 0 ? cell->algorithm : OP_RING,
			 .protocol = cell->protocol > 0 ? cell->protocol : OP_SIMPLE,
			 .size_class = (uint8_t)op_size_class(bytes),
			 .kind = stage->report.job.comms[comm].kind },
		.ranks = (uint32_t)ranks,
		.calls = calls,
		.timed = calls,
		.bytes = calls * bytes,
		.by_source = { [OP_TIME_KERNEL_GPU] = calls },
		.sum_ns = (uint64_t)(ns * (double)calls),
		.max_ns = (uint64_t)ns,
		.min_ns = (uint64_t)ns,
		.bus_bytes = (cell->busbw > 0 ? cell->busbw : 40) * ns * (double)calls,
		.bus_ns = (uint64_t)(ns * (double)calls),
		.joined = calls,
		.joined_ns = (uint64_t)(ns * (double)calls),
		.joined_least_ns = (uint64_t)(ns * (double)calls),
		.moves = moves,
		.move_log_sum = n * log(ns),
		.move_log_squares = n * (log(ns) * log(ns) + spread * spread),
	};
	return row;
}

static inline void stage_change(struct stage *stage, const struct stage_change *change)
{
	uint32_t comm = stage_index(stage, change->comm);
	const struct job_comm *of = &stage->report.job.comms[comm];
	uint32_t comms = change->comms > 0 ? change->comms : 1;
	uint32_t changed = change->changed > 0 ? change->changed : comms;

	if (stage->report.windows.change_count == STAGE_CHANGES)
		abort();
	stage->changes[stage->report.windows.change_count++] = (struct windows_change){
		.kind = of->kind,
		.function = change->function > 0 ? change->function : OP_ALL_REDUCE,
		.size_class =
			(uint8_t)op_size_class(change->bytes > 0 ? change->bytes : 16 * STAGE_MIB),
		.at_ns = STAGE_START + change->at_s * STAGE_SECOND,
		.before = change->before * 1e9,
		.after = change->after * 1e9,
		.percent = 100 * (change->after - change->before) / change->before,
		.matches_before = change->matches_before > 0 ? change->matches_before : 100,
		.matches_after = change->matches_after > 0 ? change->matches_after : 100,
		.lost_ns = (uint64_t)(1e9 * (change->lost_s > 0 ? change->lost_s : 400)),
		.confidence = change->confidence > 0 ? change->confidence : 0.99,
		.comms = comms,
		.comms_changed = changed,
		.ranks_changed = changed * of->seat_count < STAGE_RANKS ? changed * of->seat_count
									: STAGE_RANKS,
		.example_comm = comm,
	};
}

/* AllReduces of 16 MiB, as many before 500 s as after, with this time on the wire for each transfer. Each rank has world,
 * a communicator between nodes and one within: the first, second and third. */
static inline void stage_wire(struct stage *stage, uint32_t comm,
			      uint64_t (*wire_ns)(int rank, bool is_after))
{
	for (int rank = 0; rank < STAGE_RANKS; rank++)
		for (int i = 0; i < 2 * STAGE_WIRE_OPS; i++) {
			bool is_after = i >= STAGE_WIRE_OPS;
			uint64_t at_s = is_after ? 500 + (uint64_t)i : 100 + (uint64_t)i;
			struct op_record *op = hand_op(stage->hand.list[rank], comm, OP_ALL_REDUCE,
						       (uint64_t)i + 1, 16 * STAGE_MIB, 1000,
						       STAGE_START + at_s * STAGE_SECOND);

			op->channels = 8;
			op->send_steps = op->recv_steps = 4;
			op->wait_ns[OP_WAIT_SEND_NET] = 4 * wire_ns(rank, is_after);
			op->wait_ns[OP_WAIT_RECV_GPU] = 4000;
		}
}

static inline void stage_find(struct stage *stage, struct expected_text *to, const char *what)
{
	poison_processes(&stage->hand.recording);
	if (slow_find(&stage->verdicts, &stage->report, &stage->options) != OK)
		abort();
	unpoison_processes(&stage->hand.recording);
	expected_put_verdicts(to, what, &stage->verdicts);
}

/* Only of the first job. */
static inline void stage_put_train(struct expected_text *to, const struct verdicts *verdicts)
{
	expected_put(to, "the same\n");
	for (size_t i = 0; i < verdicts->count; i++)
		if (strcmp(verdicts->list[i].job, "train") == 0)
			expected_put_verdict(to, &verdicts->list[i]);
}

#endif
