/* Operation types of a report, and how several communicators and algorithms of one type are put together: every value. */
#include "common/attributes.h"
#include "common/text.h"
#include "doctor/slow_internal.h"
#include "tests/tap.h"
#include "tests/unit/doctor/slow_stage.h"

static struct stage stage;
static struct expected_text found;

static void put_cell(const struct slow_cell *cell)
{
	const struct job *job = &stage.report.job;
	char size[16];

	op_size_text(size, sizeof(size), cell->size_class);
	expected_put(&found,
		     "%s %s %s: %s %s of %u, %s, %u ranks, %llu calls, %llu moves, %llu bytes\n",
		     job->comms[cell->comm].label, job_name(job, OP_NAMES_FUNCTION, cell->function),
		     size, job_name(job, OP_NAMES_ALGORITHM, cell->algorithm),
		     job_name(job, OP_NAMES_PROTOCOL, cell->protocol), cell->choices,
		     cell->is_transfer ? "transfer" : "with waiting", cell->ranks,
		     (unsigned long long)cell->calls, (unsigned long long)cell->moves,
		     (unsigned long long)cell->bytes);
	expected_put(&found,
		     "  %.4f GB/s, mean %.3f us, fastest tenth %.3f us, spent %.3f ms, log %.5f +- "
		     "%.5f of %.2f\n",
		     cell->busbw / 1e9, cell->mean_ns / 1e3, cell->p10_ns / 1e3,
		     cell->spent_ns / 1e6, cell->log_mean, sqrt(cell->log_variance), cell->samples);
	if (cell->wire_ns > 0 || cell->channels > 0)
		expected_put(&found, "  wire %.3f us, consume %.3f us, %.3f channels\n",
			     cell->wire_ns / 1e3, cell->consume_ns / 1e3, cell->channels);
}

static void put_row(const struct slow_row *row)
{
	const struct job *job = &stage.report.job;
	char size[16];

	op_size_text(size, sizeof(size), row->size_class);
	expected_put(&found, "%s %s %s %s %s: %s%s, %u of %u (%s%s), %s, %u ranks, at most %.4fx\n",
		     job_comm_kind_name(row->kind), job_name(job, OP_NAMES_FUNCTION, row->function),
		     size, job_name(job, OP_NAMES_ALGORITHM, row->algorithm),
		     job_name(job, OP_NAMES_PROTOCOL, row->protocol),
		     row->is_slow ? "slow" : "fine", row->is_send ? " by Sends" : "",
		     row->comms_slow, row->comms, job->comms[row->comm].label,
		     row->is_one_name ? ", one name" : "",
		     row->host != UINT32_MAX ? job->hosts[row->host].name : "several hosts",
		     row->ranks, row->bound);
	expected_put(
		&found,
		"  %.4f -> %.4f GB/s, %.4fx (%.4f-%.4f), lost %.3f ms, %.3f, was %s, wire %.1f "
		"us, consume %.1f us, %.1f channels\n",
		row->before / 1e9, row->after / 1e9, row->ratio, row->ratio_low, row->ratio_high,
		row->lost_ns / 1e6, row->confidence, row->was[0] ? row->was : "the same",
		row->wire_then_ns / 1e3, row->consume_then_ns / 1e3, row->channels_then);
}

static struct slow_cells make_cells(const char *what)
{
	struct slow_cells cells;

	if (slow_cells_make(&cells, &stage.report) != OK)
		abort();
	expected_put(&found, "=== %s\n", what);
	return cells;
}

/* ---- cells ---------------------------------------------------------------------------------------------- */

static void begin(void)
{
	stage_begin(&stage);
	stage_made(&stage);
}

static void test_cells(void)
{
	static const struct stage_cell list[] = {
		{ STAGE_WORLD, .calls = 30, .busbw = 40, .ms = 1 },
		{ STAGE_DP1, .bytes = STAGE_MIB, .calls = 20, .busbw = 10, .ms = 0.2,
		  .spread = 0.1 },
		/* Two algorithms and two protocols; the one with most calls is named. */
		{ STAGE_WORLD, .algorithm = OP_TREE, .calls = 50, .busbw = 30, .ms = 2,
		  .spread = 0.2 },
		{ STAGE_WORLD, .protocol = OP_LL128, .calls = 20, .busbw = 20, .ms = 3 },
		{ STAGE_WORLD, .function = OP_ALL_GATHER, .calls = 40 },
		{ STAGE_TP2, .calls = 40, .busbw = 200, .ms = 0.1 },
		{ STAGE_DP0, .bytes = STAGE_MIB, .calls = 20, .busbw = 12, .ms = 0.2 },
	};
	struct slow_cells cells;
	struct tally_row *row;

	begin();
	for (size_t i = 0; i < ARRAY_LENGTH(list); i++)
		stage_cell(&stage, &list[i]);
	/* No call of it is timed: it is no operation type. */
	row = stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_TP0 });
	row->timed = 0;
	cells = make_cells("operation types");
	for (size_t i = 0; i < cells.count; i++)
		put_cell(&cells.list[i]);
	for (size_t i = 0; i < cells.count; i++)
		EXPECT(slow_cells_find(&cells, cells.list[i].comm, cells.list[i].function,
				       cells.list[i].size_class) == &cells.list[i]);
	EXPECT(slow_cells_find(&cells, stage_index(&stage, STAGE_TP0), OP_ALL_REDUCE,
			       cells.list[0].size_class) == NULL);
	EXPECT(slow_cells_find(&cells, cells.list[0].comm, OP_BROADCAST,
			       cells.list[0].size_class) == NULL);
	EXPECT(slow_cells_find(&cells, cells.list[0].comm, OP_ALL_REDUCE, 1) == NULL);
	slow_cells_release(&cells);
	stage_over(&stage);
}

/* Some calls were not matched, or have no GPU times: waiting is part of their durations. */
static void test_waiting(void)
{
	static const struct {
		const char *what;
		uint64_t joined, by_gpu; /* of 800 */
	} cases[] = {
		{ "half of the calls are matched", 400, 800 },
		{ "less than half of them are", 399, 800 },
		{ "90% of the times are the GPU's", 800, 720 },
		{ "less than 90% are", 800, 719 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		static uint64_t counts[2];
		struct slow_cells cells;
		struct tally_row *row;

		begin();
		row = stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_WORLD });
		row->joined = cases[i].joined;
		row->joined_ns = row->joined * 1500000;
		row->joined_least_ns = row->joined * 1000000;
		row->by_source[OP_TIME_KERNEL_GPU] = cases[i].by_gpu;
		/* 200 took about 1 ms, 600 about 2 ms. */
		row->max_ns = 2000000;
		counts[0] = 200;
		counts[1] = 600;
		row->histogram = (struct tally_histogram){
			.counts = counts, .first = (uint16_t)histogram_bucket(1900000), .used = 2
		};
		cells = make_cells(cases[i].what);
		for (size_t c = 0; c < cells.count; c++)
			put_cell(&cells.list[c]);
		slow_cells_release(&cells);
		stage_over(&stage);
	}
}

static uint64_t wire_by_rank(int rank, bool is_after)
{
	return (uint64_t)(1000 * (rank + 1) + (is_after ? 500 : 0));
}

static void test_wire(void)
{
	struct slow_cells cells;

	stage_begin(&stage);
	stage_wire(&stage, 1, wire_by_rank);
	stage_made(&stage);
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_DP0 });
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_WORLD });
	stage_cell(&stage, &(struct stage_cell){ STAGE_WORLD, .bytes = STAGE_MIB });
	for (int i = 0; i < STAGE_WIRE_OPS; i++) {
		stage.hand.list[3]->flights[i].op.bytes = STAGE_MIB;
		stage.hand.list[3]->flights[i].op.channels = 2;
	}
	/* These had no transfers. */
	for (int i = 0; i < STAGE_WIRE_OPS; i++)
		stage.hand.list[5]->flights[i].op.send_steps =
			stage.hand.list[5]->flights[i].op.recv_steps = 0;
	cells = make_cells("time on the wire");
	if (slow_cells_wire(&cells, &stage.report) != OK)
		abort();
	for (size_t i = 0; i < cells.count; i++)
		put_cell(&cells.list[i]);
	slow_cells_release(&cells);
	stage_over(&stage);
}

/* ---- rows ----------------------------------------------------------------------------------------------- */

static void compare(const struct baseline_row *rows, size_t count, const char *what)
{
	struct baseline_row copy[4];
	struct baseline baseline = { .rows = copy, .count = count };
	struct slow_options options = { .baseline = &baseline };
	struct slow_cells cells = make_cells(what);
	struct slow_rows to;

	memcpy(copy, rows, count * sizeof(*rows));
	if (slow_rows_init(&to, SLOW_BASELINE) != OK)
		abort();
	slow_compare_baseline(&cells, &stage.report, &options, &to);
	slow_rows_collect(&to, &stage.report, &cells, 0);
	for (size_t i = 0; i < to.count; i++)
		put_row(&to.list[i]);
	expected_put(&found, "left out %zu, unmatched %zu%s\n", to.left_out, to.unmatched,
		     to.is_other_ranks ? ", other ranks" : "");
	slow_rows_release(&to);
	slow_cells_release(&cells);
}

static void test_rows(void)
{
	static const struct baseline_row then[] = {
		{ .comm_name = "tp0",
		  .kind = "nvlink-only",
		  .function = "AllReduce",
		  .size = "16 MiB",
		  .algorithm = "RING",
		  .protocol = "SIMPLE",
		  .nranks = 2,
		  .nnodes = 1,
		  .calls = 100,
		  .is_joined = true,
		  .busbw = 50e9,
		  .wire_ns = 2000,
		  .consume_ns = 3000,
		  .channels = 4,
		  .log_mean = 13.5,
		  .log_deviation = 0.02,
		  .samples = 30 },
		{ .comm_name = "tp0",
		  .kind = "nvlink-only",
		  .function = "AllReduce",
		  .size = "16 MiB",
		  .algorithm = "TREE",
		  .protocol = "SIMPLE",
		  .nranks = 2,
		  .nnodes = 1,
		  .calls = 101,
		  .is_joined = true,
		  .busbw = 60e9,
		  .wire_ns = 1000,
		  .consume_ns = 4000,
		  .channels = 2,
		  .log_mean = 13.6,
		  .log_deviation = 0.04,
		  .samples = 10 },
	};

	begin();
	/* 13.8 is the logarithm of 1 ms: tp0 is slow, tp1 more so and spends more, tp2 is fine. */
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_TP0 });
	stage_cell(&stage, &(struct stage_cell){ STAGE_TP1, .busbw = 30, .ms = 1.2 });
	stage_cell(&stage,
		   &(struct stage_cell){ STAGE_TP2, .busbw = 60, .ms = 0.73, .spread = 0.02 });
	stage_cell(&stage,
		   &(struct stage_cell){ STAGE_TP3, .busbw = 60, .ms = 0.74, .spread = 0.05 });
	stage_cell(&stage, &(struct stage_cell){ STAGE_TP3, .bytes = STAGE_MIB });
	stage_cell(&stage, &(struct stage_cell){ STAGE_WORLD, .function = OP_ALL_GATHER });
	stage_cell(&stage, &(struct stage_cell){ .comm = STAGE_STRANGERS });
	compare(then, 1, "four communicators compared with one row");
	compare(then, 2, "and with two");
	for (size_t c = 0; c < stage.report.job.comm_count; c++)
		stage.report.job.comms[c].name[0] = '\0';
	compare(then, 2, "without names");
	stage_over(&stage);
}

/* A benchmark's values: the bus bandwidth is compared. */
static void test_expected(void)
{
	static const double ms[] = { 0.9, 1.1, 2 };

	for (size_t i = 0; i < ARRAY_LENGTH(ms); i++) {
		struct expected_row *rows = calloc(2, sizeof(*rows));
		struct expected expected = { .rows = rows, .count = 2 };
		struct slow_options options = { .expected = &expected };
		struct slow_cells cells;
		struct slow_rows to;

		if (rows == NULL)
			abort();
		/* 16 MiB in 1 ms are 29.4 GB/s bus bandwidth for eight ranks, and in 0.1 ms 168 for two. */
		rows[0] = (struct expected_row){ .function = OP_ALL_REDUCE,
						 .nranks = STAGE_RANKS,
						 .bytes = 16 * STAGE_MIB,
						 .time_ns = 1e6 };
		rows[1] = (struct expected_row){ .function = OP_ALL_REDUCE,
						 .nranks = 2,
						 .bytes = 16 * STAGE_MIB,
						 .time_ns = 0.1e6 };
		expected_finish(&expected);
		begin();
		stage_cell(&stage, &(struct stage_cell){ STAGE_WORLD, .ms = ms[i],
							 .busbw = 29.36 / ms[i] });
		stage_cell(&stage, &(struct stage_cell){ STAGE_TP1, .ms = 0.1, .busbw = 167.8 });
		stage_cell(&stage, &(struct stage_cell){ STAGE_DP0, .ms = 1, .busbw = 20 });
		stage_cell(&stage, &(struct stage_cell){ STAGE_DP1, .function = OP_ALL_GATHER });
		cells = make_cells("expected values");
		if (slow_rows_init(&to, SLOW_EXPECTED) != OK)
			abort();
		slow_compare_expected(&cells, &stage.report, &options, &to);
		slow_rows_collect(&to, &stage.report, &cells, 0);
		for (size_t r = 0; r < to.count; r++)
			put_row(&to.list[r]);
		expected_put(&found, "left out %zu, unmatched %zu%s\n", to.left_out, to.unmatched,
			     to.is_other_ranks ? ", other ranks" : "");
		slow_rows_release(&to);
		slow_cells_release(&cells);
		stage_over(&stage);
		expected_release(&expected);
	}
}

int main(void)
{
	test_cells();
	test_waiting();
	test_wire();
	test_rows();
	test_expected();
	expected_compare(&found, "tests/unit/doctor/expected/slow_made.txt");
	return tap_done();
}
