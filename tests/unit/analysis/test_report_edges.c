/* What few operations have: no end, no stream, no size, more kinds than fit; and the ring of senders. */
#include "analysis/timeline_report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

static struct hand_made hand;
static struct timeline_report report;
static struct timeline_options options;

static void made(void)
{
	if (timeline_report_make(&report, &hand.recording, NULL, &options) != OK)
		abort();
}

static void over(void)
{
	timeline_report_release(&report);
	hand_release(&hand);
	memset(&options, 0, sizeof(options));
}

/* Two ranks, both in the communicators 1 and 2. */
static void two_ranks(void)
{
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "a");

		hand_comm(process, 0x71, "first", rank, 2, 1);
		hand_comm(process, 0x72, "second", rank, 2, 1);
	}
}

static struct op_record *untimed(struct recording_process *process, uint32_t comm, uint8_t function,
				 uint64_t bytes, uint64_t issue_ns)
{
	struct op_record *op = hand_op(process, comm, function, 1, bytes, 0, issue_ns);

	op->time_source = OP_TIME_NONE;
	op->gpu_start_ns = op->gpu_stop_ns = op->active_ns = op->done_ns = 0;
	op->issue_ns = issue_ns;
	op->state = OP_LAUNCHED;
	return op;
}

/* On the default stream, where nothing else runs: their time on the GPU is exposed, if its place is known. */
static void test_vague_places(void)
{
	static const struct {
		const char *sentence;
		uint32_t flags;
		uint64_t error_ns;
		bool is_used;
	} cases[] = {
		{ "kernel events have no error", 0, 5000, true },
		{ "CUDA events with a small one", OP_FLAG_CUDA_EVENT, 1000, true },
		{ "CUDA events with one that matters", OP_FLAG_CUDA_EVENT, 1001, false },
	};

	for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		two_ranks();
		hand.list[0]->comms[0].info.place_error_ns = cases[c].error_ns;
		for (uint64_t i = 1; i <= 60; i++) {
			struct op_record *op =
				hand_op(hand.list[0], 1, i % 3 ? OP_ALL_REDUCE : OP_ALL_GATHER, i,
					8, 10000, 1000000 + i * 20000);

			op->flags = cases[c].flags;
			op->gpu_start_ns = op->done_ns - 10000;
			op->gpu_stop_ns = op->done_ns;
		}
		made();
		EXPECT(report.iterations.is_found && report.iterations.exposed > 0);
		EXPECT_THAT(cases[c].sentence, report.iterations.exposed_low_ns ==
						       (cases[c].is_used ? UINT64_C(30000) : 0));
		over();
	}
}

/* The last call of rank 1 on its second communicator: is it in flight? */
static void test_in_flight(void)
{
	static const struct {
		const char *sentence;
		uint8_t state;
		uint32_t flags;
		uint64_t done_ns;
		uint64_t last_done; /* its own number is 2 */
		bool has_counts;
		enum recording_life life;
		bool is_open;
		bool is_blind; /* NCCL reports nothing after the launch */
	} cases[] = {
		{ "launched", OP_LAUNCHED, 0, 0, 1, true, RECORDING_KILLED, true, false },
		{ "issued", OP_ISSUED, 0, 0, 1, true, RECORDING_ALIVE, true, false },
		{ "its process ended", OP_LAUNCHED, 0, 0, 1, true, RECORDING_ENDED, false, false },
		{ "it ended", OP_LAUNCHED, 0, 9000, 1, true, RECORDING_KILLED, false, false },
		{ "it is done", OP_DONE, 0, 0, 1, true, RECORDING_KILLED, false, false },
		{ "it was counted as done", OP_LAUNCHED, 0, 0, 2, true, RECORDING_KILLED, false,
		  false },
		{ "a later one is done", OP_LAUNCHED, 0, 0, 3, true, RECORDING_KILLED, false,
		  false },
		{ "it was counted as done, and runs", OP_RUNNING, 0, 0, 2, true, RECORDING_KILLED,
		  true, false },
		{ "there are no counts", OP_LAUNCHED, 0, 0, 2, false, RECORDING_KILLED, true,
		  false },
		{ "only its call is shown", OP_LAUNCHED, OP_FLAG_API_ONLY, 0, 1, true,
		  RECORDING_KILLED, false, false },
		{ "by copy engines", OP_LAUNCHED, OP_FLAG_COPY_ENGINE, 0, 1, true, RECORDING_KILLED,
		  false, false },
		{ "to itself", OP_LAUNCHED, OP_FLAG_SELF, 0, 1, true, RECORDING_KILLED, false,
		  false },
		{ "it was not tracked", OP_LAUNCHED, OP_FLAG_UNTRACKED, 0, 1, true,
		  RECORDING_KILLED, false, false },
		{ "sampled", OP_LAUNCHED, OP_FLAG_KERNELS_ASKED, 0, 1, true, RECORDING_KILLED, true,
		  false },
		{ "launched, and nothing more is reported", OP_LAUNCHED, 0, 0, 1, true,
		  RECORDING_KILLED, false, true },
		{ "its CUDA event was not passed", OP_LAUNCHED, OP_FLAG_CUDA_EVENT, 0, 1, true,
		  RECORDING_KILLED, true, true },
		{ "issued, and its launch would be reported", OP_ISSUED, 0, 0, 1, true,
		  RECORDING_KILLED, true, true },
		{ "running", OP_RUNNING, 0, 0, 1, true, RECORDING_KILLED, true, true },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct op_record *op;

		two_ranks();
		/* Neither other counts nor the other communicator's decide. */
		hand.list[1]->comms[0].counts.last_done_number = 100;
		hand.list[0]->comms[1].counts.last_done_number = 100;
		hand.list[0]->life = hand.list[1]->life = cases[i].life;
		hand_op(hand.list[1], 2, OP_ALL_REDUCE, 1, 8, 500, 1000);
		op = untimed(hand.list[1], 2, OP_ALL_REDUCE, 8, 2000);
		op->state = cases[i].state;
		op->flags = cases[i].flags;
		op->done_ns = cases[i].done_ns;
		hand.list[1]->comms[1].counts.last_done_number = cases[i].last_done;
		hand.list[1]->comms[1].has_counts = cases[i].has_counts;
		if (!cases[i].is_blind)
			hand.list[1]->comms[1].info.flags |= COMM_FLAG_SEES_KERNELS;
		made();
		EXPECT_THAT(cases[i].sentence,
			    report.total.open == cases[i].is_open &&
				    report.completeness.in_flight == cases[i].is_open &&
				    report.ranks[1].open == cases[i].is_open &&
				    report.ranks[0].open == 0 && report.total.calls == 2 &&
				    report.total.bytes == 16 &&
				    report.total.covered == (cases[i].is_open ? 0 : 1));
		EXPECT_EQUAL(report.ranks[1].span_ns,
			     (cases[i].done_ns ? cases[i].done_ns : 2000) - 500);
		over();
	}
}

/* Calls whose time is not known do not make a rank busier, and one without an end does not begin its recording. */
static void test_spans(void)
{
	static const struct {
		uint64_t issue_ns, done_ns, span_ns;
	} cases[] = {
		{ 0, 0, 500 },	     { 100, 0, 500 }, { 0, 3000, 2500 },
		{ 100, 3000, 2900 }, { 700, 0, 500 }, { 1500, 0, 1000 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct op_record *op;

		two_ranks();
		hand_op(hand.list[0], 1, OP_ALL_REDUCE, 1, 8, 500, 1000);
		op = untimed(hand.list[0], 1, OP_BROADCAST, 8, cases[i].issue_ns);
		op->done_ns = cases[i].done_ns;
		made();
		EXPECT_EQUAL(report.ranks[0].span_ns, cases[i].span_ns);
		EXPECT_EQUAL(report.ranks[0].busy_ns, 500);
		over();
	}
}

struct fractions {
	double list[16];
	size_t count;
};

static bool keep(double fraction, void *context)
{
	struct fractions *fractions = context;

	if (fractions->count < 16)
		fractions->list[fractions->count++] = fraction;
	return true;
}

static void test_progress(void)
{
	for (int is_known = 0; is_known < 2; is_known++) {
		struct fractions fractions = { .count = 0 };

		two_ranks();
		for (int rank = 0; rank < 2; rank++) {
			for (uint64_t n = 1; n <= 4; n++)
				hand_op(hand.list[rank], 1, OP_ALL_REDUCE, n, 8, 500, n * 1000);
			hand.list[rank]->recorded = is_known ? 10 : 0;
		}
		options.progress = keep;
		options.progress_context = &fractions;
		made();
		EXPECT_EQUAL(fractions.count, 3);
		EXPECT(fabs(fractions.list[0] - (is_known ? 0.95 * 4 / 20 : 0.5)) < 1e-9 &&
		       fabs(fractions.list[1] - (is_known ? 0.95 * 8 / 20 : 0.5)) < 1e-9 &&
		       fractions.list[2] == 1);
		over();
	}
}

/* More kinds of operations than are kept at once. */
static void test_many_kinds(void)
{
	size_t wrong = 0;

	two_ranks();
	for (int round = 0; round < 2; round++)
		for (uint64_t tag = 1; tag <= 700; tag++)
			hand_op(hand.list[0], 1 + tag % 2, OP_BROADCAST, 0, 8, 100 + tag,
				((uint64_t)round * 700 + tag) * 10000)
				->user_tag = tag;
	options.custom_by[0] = TALLY_BY_TAG;
	options.custom_count = 1;
	made();
	EXPECT_EQUAL(report.custom[0].count, 700);
	for (size_t i = 0; i < report.custom[0].count; i++) {
		const struct tally_row *row = &report.custom[0].rows[i];

		wrong += row->calls != 2 || row->sum_ns != 2 * (100 + row->key.tag) ||
			 row->min_ns != 100 + row->key.tag || row->max_ns != row->min_ns ||
			 row->ranks != 1 || row->bytes != 16;
	}
	EXPECT_THAT("none of them is lost, or counted twice", wrong == 0);
	EXPECT_EQUAL(report.total.calls, 1400);
	over();
}

/* Kinds without any duration, most calls first. */
static void test_untimed_kinds(void)
{
	static const struct {
		uint32_t comm;
		uint8_t function;
		uint64_t bytes;
		uint64_t calls;
	} kinds[] = {
		{ 1, OP_BROADCAST, 64, 2 },  { 2, OP_BROADCAST, 64, 5 },
		{ 1, OP_ALL_REDUCE, 64, 3 }, { 1, OP_ALL_REDUCE, 4096, 3 },
		{ 2, OP_ALL_GATHER, 64, 3 },
	};
	static const size_t sorted[] = { 1, 2, 3, 4, 0 };

	two_ranks();
	for (int rank = 0; rank < 2; rank++)
		for (size_t k = 0; k < 5; k++)
			for (uint64_t n = 0; n < kinds[k].calls; n++)
				untimed(hand.list[rank], kinds[k].comm, kinds[k].function,
					kinds[k].bytes, 1000 + n * 10);
	made();
	EXPECT_EQUAL(report.untimed_count, 5);
	for (size_t i = 0; i < report.untimed_count; i++) {
		const struct timeline_untimed *untimed_kind = &report.untimed[i];
		size_t k = sorted[i];

		EXPECT(untimed_kind->comm == kinds[k].comm - 1 &&
		       (uint8_t)untimed_kind->names == kinds[k].function &&
		       untimed_kind->size_class == op_size_class(kinds[k].bytes) &&
		       untimed_kind->calls == 2 * kinds[k].calls);
	}
	over();
}

/* Steps of an AllReduce and an AllGather: is the AllReduce on the default stream? */
static void test_default_stream(void)
{
	static const struct {
		const char *sentence;
		uint32_t interface;
		uint64_t stream;
		uint32_t flags;
		uint64_t low_ns;
	} cases[] = {
		{ "it is", 5, 0, 0, 400 },
		{ "with a later interface", 6, 0, 0, 400 },
		{ "NCCL did not show streams yet", 4, 0, 0, 0 },
		{ "on another stream", 5, 7, 0, 0 },
		{ "a replay has no stream of its own", 5, 0, OP_FLAG_REPLAY, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		two_ranks();
		/* Other communicators of the process are not asked. */
		hand.list[0]->comms[0].info.interface = cases[i].interface == 4 ? 5 : 4;
		hand.list[0]->comms[1].info.interface = cases[i].interface;
		for (uint64_t n = 0; n < 12; n++) {
			struct op_record *op = hand_op(hand.list[0], 2, OP_ALL_REDUCE, 0, 1024, 400,
						       n * 10000 + 1000);

			op->stream = cases[i].stream;
			op->flags = cases[i].flags;
			op->bytes = n % 2 ? 1024 : 1030;
			op->gpu_start_ns += n * 10000;
			op->gpu_stop_ns += n * 10000;
			op = hand_op(hand.list[0], 2, OP_ALL_GATHER, 0, OP_BYTES_UNKNOWN, 300,
				     n * 10000 + 2000);
			op->stream = 9;
			op->gpu_start_ns += n * 10000 + 1000;
			op->gpu_stop_ns += n * 10000 + 1000;
		}
		made();
		EXPECT(report.iterations.is_found && report.iterations.period_ops == 2 &&
		       report.iterations.regular == 12);
		EXPECT_THAT(cases[i].sentence,
			    report.iterations.exposed == 12 &&
				    report.iterations.exposed_low_ns == cases[i].low_ns &&
				    report.iterations.exposed_high_ns == 700 + 2 * 20000);
		EXPECT_THAT("sizes that are not known are not counted",
			    report.iterations.list[0].bytes == 1030 &&
				    report.iterations.list[1].bytes == 1024);
		over();
	}
}

/* What another tool measured can have been exposed from its call on; spans and bounds say nothing. */
static void test_other_sources(void)
{
	for (int is_tool = 0; is_tool < 2; is_tool++) {
		uint32_t flags = is_tool ? OP_FLAG_TOOL_TIME : 0;

		two_ranks();
		for (uint64_t n = 0; n < 12; n++) {
			struct op_record *op = hand_op(hand.list[0], 1, OP_ALL_REDUCE, 0, 8, 400,
						       n * 10000 + 1000);

			op->time_source = OP_TIME_PROXY;
			op->flags |= flags;
			op = hand_op(hand.list[0], 1, OP_ALL_GATHER, 0, 8, 300, n * 10000 + 2000);
			op->time_source = OP_TIME_HOST;
			op->flags |= flags;
		}
		made();
		if (is_tool)
			EXPECT(report.iterations.exposed == 12 &&
			       report.iterations.exposed_low_ns == 0 &&
			       report.iterations.exposed_high_ns == 700 + 2 * 20000 &&
			       report.iterations.timed == 12 &&
			       report.iterations.median_busy_ns == 700);
		else
			EXPECT(report.iterations.is_found && report.iterations.exposed == 0 &&
			       report.iterations.timed == 0 && report.total.timed == 0 &&
			       report.total.by_source[OP_TIME_PROXY] == 12 &&
			       report.total.by_source[OP_TIME_HOST] == 12);
		over();
	}
}

/* Two ranks in a ring, 11 chunks of collectives; rank 0's transfers take twice as long. Some are smaller. */
static void test_ring_senders(void)
{
	const struct pace_sender *senders;
	size_t wrong = 0;

	two_ranks();
	for (int rank = 0; rank < 2; rank++)
		for (uint64_t n = 1; n < 11 * MATCH_CHUNK; n++) {
			bool is_small = n / MATCH_CHUNK == 4;
			struct op_record *op = hand_op(hand.list[rank], 1, OP_ALL_REDUCE, n,
						       is_small ? 4096 : 1 << 20, 5000, n * 10000);

			op->send_steps = is_small ? 100 : 3;
			op->wait_ns[OP_WAIT_SEND_NET] = (rank == 0 ? 2000 : 1000) * 3;
		}
	/* And Sends of rank 1, two to each of two peers. */
	for (int i = 0; i < 4; i++) {
		struct op_record *op =
			hand_op(hand.list[1], 2, OP_SEND, 0, i == 0 ? OP_BYTES_UNKNOWN : 4096, 100,
				5000000 + (uint64_t)i);

		op->peer = i % 2;
		op->send_steps = 2 + (uint32_t)i;
		op->wait_ns[OP_WAIT_SEND_NET] = 700 + 100 * (uint64_t)i;
	}
	made();
	senders = report.paces.senders;
	if (!EXPECT(report.paces.sender_count == 4))
		exit(1);
	for (size_t s = 0; s < 2; s++) {
		double transfers = 3 * (10 * MATCH_CHUNK - 1), each_ns = s == 0 ? 2000 : 1000;

		EXPECT(senders[s].comm == 0 && senders[s].seat == 2 * s && senders[s].to == -1 &&
		       senders[s].size_class == op_size_class(1 << 20) &&
		       senders[s].transfers == transfers &&
		       senders[s].wire_ns == transfers * each_ns);
		for (uint32_t block = 0; block < PACE_BLOCKS; block++) {
			double wanted = 0;

			/* A chunk is in the part that its middle is in. */
			for (uint32_t chunk = 0; chunk < 11; chunk++)
				if ((uint32_t)((chunk + 0.5) * PACE_BLOCKS / 11) == block)
					wanted = chunk == 4   ? 0
						 : chunk == 0 ? 3 * (MATCH_CHUNK - 1)
							      : 3 * MATCH_CHUNK;
			wrong += senders[s].series.count[block] != wanted ||
				 fabs(senders[s].series.log_sum[block] - wanted * log(each_ns)) >
					 1e-6;
		}
	}
	EXPECT_THAT("by part of the recording", wrong == 0);
	for (size_t s = 2; s < 4; s++) {
		uint64_t i = s - 2;

		EXPECT(senders[s].comm == 1 && senders[s].seat == 3 &&
		       senders[s].to == (int32_t)i && senders[s].size_class == 0 &&
		       senders[s].transfers == (double)(2 + i + 4 + i) &&
		       senders[s].wire_ns == (double)(700 + 100 * i + 900 + 100 * i));
		EXPECT(senders[s].series.count[0] == (double)(2 + i) &&
		       senders[s].series.count[1] == (double)(4 + i) &&
		       fabs(senders[s].series.log_sum[1] -
			    (double)(4 + i) * log((double)(900 + 100 * i) / (double)(4 + i))) <
			       1e-6);
	}
	over();
}

int main(void)
{
	test_vague_places();
	test_in_flight();
	test_spans();
	test_progress();
	test_many_kinds();
	test_untimed_kinds();
	test_default_stream();
	test_other_sources();
	test_ring_senders();
	return tap_done();
}
