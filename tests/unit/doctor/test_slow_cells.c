/*
 * Cells given by hand, compared with a baseline and with the peak of a link; and the time on the wire of operations given
 * by hand. Eight ranks on four hosts, two GPUs each.
 */
#include "doctor/slow_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "doctor/doctor.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"
#include "tests/support/poisoned_rest.h"

enum { RANKS = 8 };
#define SECOND UINT64_C(1000000000)

static struct hand_made hand;
static struct timeline_report report;

static void begin(void)
{
	hand_pairs(&hand, RANKS);
}

static void made(void)
{
	report = (struct timeline_report){ .recording = &hand.recording };
	if (job_make(&report.job, &hand.recording) != OK ||
	    align_solve(&report.align, &report.job, NULL, 0) != OK)
		abort();
	poison_job(&report.job);
}

static void over(void)
{
	align_release(&report.align);
	job_release(&report.job);
	hand_release(&hand);
}

static bool is_near(double got, double wanted)
{
	return fabs(got - wanted) <= 1e-9 * fabs(wanted);
}

/* ---- a baseline --------------------------------------------------------------------------------- */

static struct slow_cell all_reduce(void)
{
	return (struct slow_cell){ .function = OP_ALL_REDUCE,
				   .size_class = (uint8_t)op_size_class(1 << 20),
				   .algorithm = OP_RING,
				   .protocol = OP_SIMPLE,
				   .is_transfer = true,
				   .calls = 100,
				   .busbw = 5e9,
				   .log_mean = log(2000),
				   .samples = 100 };
}

static const struct baseline_row as_before = { .comm_name = "world",
					       .kind = "mixed",
					       .function = "AllReduce",
					       .size = "1 MiB",
					       .algorithm = "RING",
					       .protocol = "SIMPLE",
					       .nranks = RANKS,
					       .nnodes = 4,
					       .calls = 50,
					       .is_joined = true,
					       .busbw = 8e9,
					       .p10_ns = 500,
					       .wire_ns = 30,
					       .consume_ns = 40,
					       .channels = 6,
					       .log_mean = 0,
					       .samples = 100 };

static void compare_with(struct slow_cell *cell, struct baseline_row *rows, size_t count,
			 struct slow_rows *to)
{
	const struct baseline baseline = { .rows = rows, .count = count };
	const struct slow_options options = { .baseline = &baseline, .threshold = 0.05 };
	struct slow_cells cells = { .list = cell, .count = 1 };

	*to = (struct slow_rows){ .against = SLOW_BASELINE };
	slow_compare_baseline(&cells, &report, &options, to);
}

static void test_baseline(void)
{
	static const struct {
		const char *what;
		const char *name, *kind, *function, *size;
		int32_t nranks, nnodes;
		bool is_joined;
		bool is_found, is_other_ranks;
	} cases[] = {
		{ "the same", "world", "mixed", "AllReduce", "1 MiB", 8, 4, true, true, false },
		{ "another name", "else", "mixed", "AllReduce", "1 MiB", 8, 4, true, true, false },
		{ "more ranks", "world", "mixed", "AllReduce", "1 MiB", 16, 4, true, true, true },
		{ "more nodes", "world", "mixed", "AllReduce", "1 MiB", 8, 8, true, true, true },
		{ "another name and more ranks", "else", "mixed", "AllReduce", "1 MiB", 16, 8, true,
		  true, true },
		{ "another kind", "world", "net-only", "AllReduce", "1 MiB", 8, 4, true, false,
		  false },
		{ "another function", "world", "mixed", "AllGather", "1 MiB", 8, 4, true, false,
		  false },
		{ "another size", "world", "mixed", "AllReduce", "2 MiB", 8, 4, true, false,
		  false },
		{ "with waiting", "world", "mixed", "AllReduce", "1 MiB", 8, 4, false, false,
		  false },
	};

	begin();
	made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baseline_row row = as_before;
		struct slow_cell cell = all_reduce();
		struct slow_rows rows;

		row.log_mean = log(1000);
		row.nranks = cases[i].nranks;
		row.nnodes = cases[i].nnodes;
		row.is_joined = cases[i].is_joined;
		snprintf(row.comm_name, sizeof(row.comm_name), "%s", cases[i].name);
		snprintf(row.kind, sizeof(row.kind), "%s", cases[i].kind);
		snprintf(row.function, sizeof(row.function), "%s", cases[i].function);
		snprintf(row.size, sizeof(row.size), "%s", cases[i].size);
		compare_with(&cell, &row, 1, &rows);
		EXPECT_THAT(cases[i].what, cell.is_compared == cases[i].is_found &&
						   rows.unmatched == !cases[i].is_found &&
						   rows.is_other_ranks == cases[i].is_other_ranks &&
						   cell.is_other_ranks == cases[i].is_other_ranks);
		if (!cases[i].is_found)
			continue;
		EXPECT_THAT("with as many ranks by time, else by bandwidth",
			    is_near(cell.ratio, cases[i].is_other_ranks ? 1.6 : 2) &&
				    cell.is_slow && !cell.is_send);
		EXPECT(cell.busbw_then == 8e9 && cell.wire_then_ns == 30 &&
		       cell.consume_then_ns == 40 && cell.channels_then == 6 &&
		       cell.was[0] == '\0');
	}
	over();
}

/* Rows of all algorithms together, by their samples; the one with most calls is what was chosen then. */
static void test_several_rows(void)
{
	struct baseline_row baseline[2] = { as_before, as_before };
	struct slow_cell cell = all_reduce();
	struct slow_rows rows;

	begin();
	made();
	baseline[0].log_mean = log(1000);
	baseline[1].log_mean = log(1000) + 1;
	baseline[1].samples = 300;
	baseline[1].busbw = 4e9;
	baseline[1].wire_ns = 50;
	baseline[1].consume_ns = 20;
	baseline[1].calls = 51;
	snprintf(baseline[1].algorithm, sizeof(baseline[1].algorithm), "TREE");
	compare_with(&cell, baseline, 2, &rows);
	EXPECT(cell.is_compared && is_near(cell.ratio, 2 / exp(0.75)) &&
	       is_near(cell.busbw_then, 5e9) && cell.wire_then_ns == 50 &&
	       cell.consume_then_ns == 40);
	EXPECT(strcmp(cell.was, "TREE SIMPLE") == 0);
	baseline[1].calls = 49;
	compare_with(&cell, baseline, 2, &rows);
	EXPECT_THAT("the same choice is nothing to report", cell.was[0] == '\0');
	baseline[1].samples = 0;
	compare_with(&cell, baseline, 2, &rows);
	EXPECT_THAT("a row without samples says nothing", is_near(cell.ratio, 2));
	snprintf(baseline[1].comm_name, sizeof(baseline[1].comm_name), "else");
	baseline[1].samples = 300;
	compare_with(&cell, baseline, 2, &rows);
	EXPECT_THAT("nor does another name, if this one is there", is_near(cell.ratio, 2));
	for (double samples = 4; samples < 6; samples++) {
		cell.samples = samples;
		compare_with(&cell, baseline, 1, &rows);
		EXPECT_EQUAL(cell.is_compared, samples == 5);
		cell.samples = 100;
		baseline[0].samples = samples;
		compare_with(&cell, baseline, 1, &rows);
		EXPECT_EQUAL(cell.is_compared, samples == 5);
		baseline[0].samples = 100;
	}
	over();
}

/* The fastest tenth of Sends must be more than a quarter slower. */
static void test_sends(void)
{
	static const struct {
		uint64_t calls;
		double p10_ns, then_ns;
		uint64_t bytes;
		bool is_compared, is_slow;
	} cases[] = {
		{ 32, 1251, 1000, 1 << 20, true, true },   { 32, 1250, 1000, 1 << 20, true, false },
		{ 31, 1251, 1000, 1 << 20, false, false }, { 32, 1251, 0, 1 << 20, false, false },
		{ 32, 1251, 1000, 0, false, false },
	};

	begin();
	made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct baseline_row row = as_before;
		struct slow_cell cell = all_reduce();
		struct slow_rows rows;

		cell.function = OP_SEND;
		cell.is_transfer = false;
		cell.calls = cases[i].calls;
		cell.p10_ns = cases[i].p10_ns;
		cell.size_class = (uint8_t)op_size_class(cases[i].bytes);
		snprintf(row.function, sizeof(row.function), "Send");
		op_size_text(row.size, sizeof(row.size), cell.size_class);
		row.is_joined = false;
		row.p10_ns = cases[i].then_ns;
		compare_with(&cell, &row, 1, &rows);
		EXPECT(cell.is_compared == cases[i].is_compared &&
		       cell.is_slow == cases[i].is_slow && cell.is_send == cases[i].is_compared);
		if (cell.is_compared)
			EXPECT(is_near(cell.ratio, cases[i].p10_ns / 1000) &&
			       cell.ratio_low == cell.ratio && cell.ratio_high == cell.ratio &&
			       is_near(cell.busbw_then, 5e9 * cell.ratio) &&
			       cell.confidence == 0.85);
	}
	over();
}

/* ---- data sheets ----------------------------------------------------------------------------------- */

static void test_peak(void)
{
	static const struct {
		const char *what;
		enum job_comm_kind kind;
		double nvlink, network;
		int32_t nnodes;
		double then; /* 80% of what is possible; 0: not compared */
	} cases[] = {
		{ "within a node", JOB_COMM_NVLINK, 400e9, 10e9, 1, 320e9 },
		{ "one rank per node", JOB_COMM_NET, 400e9, 10e9, 8, 8e9 },
		{ "two ranks per node have two ways out", JOB_COMM_MIXED, 400e9, 10e9, 4, 16e9 },
		{ "but NVLink is the limit", JOB_COMM_MIXED, 15e9, 10e9, 4, 12e9 },
		{ "NVLink's peak is not known", JOB_COMM_MIXED, 0, 10e9, 4, 16e9 },
		{ "nodes are not known", JOB_COMM_NET, 0, 10e9, 0, 64e9 },
		{ "neither", JOB_COMM_SINGLE, 400e9, 10e9, 1, 0 },
		{ "no peak given", JOB_COMM_NET, 400e9, 0, 8, 0 },
	};

	begin();
	made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) + 3; i++) {
		size_t n = i < 8 ? i : 0;
		struct slow_cell cell = all_reduce();
		struct slow_cells cells = { .list = &cell, .count = 1 };
		struct slow_options options = { .peak_nvlink = cases[n].nvlink,
						.peak_network = cases[n].network };
		struct slow_rows rows = { .against = SLOW_PEAK };
		bool is_compared = i < 8 && cases[n].then > 0;

		report.job.comms[0].kind = cases[n].kind;
		report.job.comms[0].nnodes = cases[n].nnodes;
		cell.size_class = (uint8_t)op_size_class(i == 8 ? (16 << 20) - 1 : 16 << 20);
		cell.is_transfer = i != 9;
		cell.busbw = i == 10 ? 0 : 5e9;
		slow_compare_peak(&cells, &report, &options, &rows);
		EXPECT_THAT(i < 8 ? cases[n].what : "small, with waiting, or of unknown speed",
			    cell.is_compared == is_compared && rows.unmatched == !is_compared);
		if (is_compared)
			EXPECT(is_near(cell.busbw_then, cases[n].then) &&
			       is_near(cell.ratio, cases[n].then / 5e9) && cell.is_slow);
	}
	over();
}

/* ---- time on the wire --------------------------------------------------------------------------------- */

/* Each rank: 16 AllReduces of 4 transfers before 100 s, and as many after; how long they are on the wire. */
static void play(uint64_t (*wire)(int rank, bool is_after))
{
	begin();
	for (int rank = 0; rank < RANKS; rank++)
		for (int i = 0; i < 32; i++) {
			bool is_after = i >= 16;
			struct op_record *op = hand_op(
				hand.list[rank], 1, OP_ALL_REDUCE, (uint64_t)i + 1, 1 << 20, 1000,
				(is_after ? 100 : 50) * SECOND + (uint64_t)(i % 16) * 1000);

			op->channels = is_after ? 4 : 8;
			op->send_steps = op->recv_steps = 4;
			op->wait_ns[OP_WAIT_SEND_NET] = 4 * wire(rank, is_after);
			op->wait_ns[OP_WAIT_RECV_GPU] = 4000;
		}
	made();
}

static uint64_t of_host(int rank, bool is_after)
{
	return is_after && rank / 2 == 1 ? 20000 : 10000;
}

static uint64_t of_rail(int rank, bool is_after)
{
	return is_after && rank % 2 == 1 ? 20000 : 10000;
}

static uint64_t of_rank(int rank, bool is_after)
{
	return is_after && rank == 5 ? 20000 : 10000;
}

static uint64_t of_all(int rank, bool is_after)
{
	(void)rank;
	return is_after ? 20000 : 10000;
}

static void test_wire(void)
{
	static const struct {
		const char *what;
		uint64_t (*wire)(int rank, bool is_after);
		double after_ns;
		uint32_t slower, same, host, rail, sender;
		bool has_place;
	} cases[] = {
		{ "a host", of_host, 12500, 2, 6, 1, UINT32_MAX, UINT32_MAX, true },
		{ "a rail", of_rail, 15000, 4, 4, UINT32_MAX, 1, UINT32_MAX, true },
		{ "a rank", of_rank, 11250, 1, 7, UINT32_MAX, UINT32_MAX, 5, true },
		{ "everywhere", of_all, 20000, 8, 0, UINT32_MAX, UINT32_MAX, UINT32_MAX, false },
	};
	struct slow_row row = { .function = OP_ALL_REDUCE,
				.size_class = (uint8_t)op_size_class(1 << 20),
				.ratio = 2,
				.span = { .from_ns = 100 * SECOND } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_wire wire;

		play(cases[i].wire);
		if (slow_wire(&wire, &report, &row) != OK)
			abort();
		EXPECT_THAT(cases[i].what, wire.slow_host == cases[i].host &&
						   wire.slow_rail == cases[i].rail &&
						   wire.slow_sender == cases[i].sender &&
						   wire.has_place == cases[i].has_place);
		EXPECT(wire.is_known && is_near(wire.before_ns, 10000) &&
		       is_near(wire.after_ns, cases[i].after_ns) && wire.channels_before == 8 &&
		       wire.channels_after == 4);
		EXPECT(wire.senders == 8 && wire.senders_slower == cases[i].slower &&
		       wire.senders_same == cases[i].same);
		EXPECT_THAT("no host's GPUs consume later", wire.host == UINT32_MAX);
		over();
	}
}

/* 5 us longer and three times as long until the GPU has what it received: that host's links are slow inside. */
static void test_consume(void)
{
	static const struct {
		uint64_t before_ns, after_ns;
		bool is_found;
	} cases[] = {
		{ 1000, 6000, true },
		{ 1000, 5999, false },
		{ 3000, 9000, true },
		{ 3000, 8999, false },
	};
	struct slow_row row = { .function = OP_ALL_REDUCE,
				.size_class = (uint8_t)op_size_class(1 << 20),
				.ratio = 2,
				.span = { .from_ns = 100 * SECOND } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct slow_wire wire;

		play(of_all);
		for (int rank = 0; rank < RANKS; rank++)
			for (int n = 0; n < 32; n++)
				hand.list[rank]->flights[n].op.wait_ns[OP_WAIT_RECV_GPU] =
					4 * (n >= 16 && rank / 2 == 2 ? cases[i].after_ns
								      : cases[i].before_ns);
		if (slow_wire(&wire, &report, &row) != OK)
			abort();
		EXPECT_EQUAL(wire.host, cases[i].is_found ? 2 : UINT32_MAX);
		over();
	}
}

int main(void)
{
	test_baseline();
	test_several_rows();
	test_sends();
	test_peak();
	test_wire();
	test_consume();
	return tap_done();
}
