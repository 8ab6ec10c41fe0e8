#include "output/viewer.h"

#include <string.h>

#include "tests/tap.h"

enum { RANKS = 40 };

static struct job_seat seats[RANKS];
static uint32_t seat_numbers[RANKS];
static struct job_rank ranks[RANKS];
static struct job_comm comms[] = { { .hash = 0xabc,
				     .label = "world",
				     .nranks = RANKS,
				     .seats = seat_numbers,
				     .seat_count = RANKS } };
static struct job job = { .seats = seats,
			  .seat_count = RANKS,
			  .ranks = ranks,
			  .rank_count = RANKS,
			  .comms = comms,
			  .comm_count = 1 };

static void make_job(void)
{
	for (uint32_t i = 0; i < RANKS; i++) {
		seats[i] = (struct job_seat){
			.process = i, .comm_id = 1, .rank = i, .comm_rank = (int32_t)i
		};
		seat_numbers[i] = i;
		ranks[i] = (struct job_rank){ .process = i, .rank = i };
		snprintf(ranks[i].label, sizeof(ranks[i].label), "%u", i);
	}
}

/* All end at 1 ms; rank r arrives at 10 us x r. */
static struct op_record collective(uint32_t rank, uint64_t match)
{
	uint64_t start_ns = 10000 * rank;

	return (struct op_record){
		.comm = 1,
		.function = OP_ALL_REDUCE,
		.number = match,
		.match = match,
		.signature = 99,
		.state = OP_DONE,
		.time_source = OP_TIME_KERNEL_GPU,
		.gpu_start_ns = 1 + start_ns,
		.gpu_stop_ns = 1 + 1000000,
		.root = OP_NOBODY,
		.peer = OP_NOBODY,
		.bytes = 1 << 20,
	};
}

static struct viewer_place place_of(const struct op_record *op)
{
	return (struct viewer_place){ VIEWER_TIMED, op->gpu_start_ns, op->gpu_stop_ns };
}

static void add(struct viewer_meet *meet, uint32_t rank, const struct op_record *op, bool is_shown)
{
	struct viewer_place place = place_of(op);
	struct viewer_meet_op one = { op, &seats[rank], &place, is_shown };

	viewer_meet_add(meet, &one);
}

static struct viewer_met find(struct viewer_meet *meet, uint32_t rank, const struct op_record *op)
{
	struct viewer_place place = place_of(op);
	struct viewer_meet_op one = { op, &seats[rank], &place, true };
	struct viewer_met met;

	viewer_meet_find(meet, &one, &met);
	return met;
}

static void test_collective(void)
{
	struct viewer_meet meet;
	struct op_record op;
	struct viewer_met met;
	unsigned int tails = 0;
	bool is_right = true;

	viewer_meet_init(&meet, &job, 0);
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		op = collective(rank, 5);
		add(&meet, rank, &op, true);
	}
	for (uint32_t rank = 0; rank < RANKS; rank++) {
		op = collective(rank, 5);
		met = find(&meet, rank, &op);
		is_right &= met.has_wait && !met.is_partial && met.last == &seats[RANKS - 1] &&
			    met.wait_ns == 10000 * (RANKS - 1 - rank);
		if (rank < RANKS - 1) {
			tails += (unsigned int)met.arrow_count;
			is_right &=
				met.arrow_count <= 1 && !(met.arrow_count && met.arrows[0].is_head);
		}
	}
	EXPECT_THAT("each rank waited for the last one, for as long as it was earlier", is_right);
	EXPECT_THAT("arrows from the ranks that waited longest", tails == VIEWER_ARROWS_MAX);
	EXPECT_THAT("to the rank that arrived last",
		    met.arrow_count == VIEWER_ARROWS_MAX && met.arrows[0].is_head);
	op = collective(0, 5);
	EXPECT_THAT("the first rank to arrive has an arrow", find(&meet, 0, &op).arrow_count == 1);
	op = collective(35, 5);
	EXPECT_THAT("a late rank has none", find(&meet, 35, &op).arrow_count == 0);
	op.match = 6;
	EXPECT_THAT("an operation that was not added is not matched", !find(&meet, 35, &op).is_met);
	viewer_meet_release(&meet);
}

static void test_partial(void)
{
	struct viewer_meet meet;
	struct op_record op;
	struct viewer_met met;

	viewer_meet_init(&meet, &job, 0);
	for (uint32_t rank = 0; rank < 3; rank++) {
		op = collective(rank, 1);
		add(&meet, rank, &op, rank != 2);
	}
	op = collective(0, 1);
	met = find(&meet, 0, &op);
	EXPECT_THAT("missing ranks make it a lower bound", met.has_wait && met.is_partial);
	EXPECT_THAT("no arrow to an operation that is not shown", met.arrow_count == 0);
	op.signature = 98;
	add(&meet, 3, &op, true);
	met = find(&meet, 3, &op);
	EXPECT_THAT("a rank that called a different operation is not matched",
		    met.is_differing && !met.is_met);
	op = collective(0, 2);
	add(&meet, 0, &op, true);
	EXPECT_THAT("a single rank does not wait", !find(&meet, 0, &op).has_wait);
	op.function = OP_BROADCAST;
	op.match = 3;
	add(&meet, 0, &op, true);
	add(&meet, 1, &op, true);
	EXPECT_THAT("rooted collectives have no waiting", !find(&meet, 0, &op).is_met);
	viewer_meet_release(&meet);
}

static void test_transfer(void)
{
	struct viewer_meet meet;
	struct op_record send = collective(5, 1), recv = collective(2, 1);
	struct viewer_met at_send, at_recv;

	viewer_meet_init(&meet, &job, 0);
	send.function = OP_SEND;
	send.peer = 2;
	recv.function = OP_RECV;
	recv.peer = 5;
	add(&meet, 5, &send, true);
	EXPECT_THAT("a Send without Recv has no arrow", find(&meet, 5, &send).arrow_count == 0);
	add(&meet, 2, &recv, true);
	at_send = find(&meet, 5, &send);
	at_recv = find(&meet, 2, &recv);
	EXPECT(at_send.arrow_count == 1 && at_recv.arrow_count == 1);
	EXPECT_THAT("an arrow from Send to Recv",
		    !at_send.arrows[0].is_head && at_recv.arrows[0].is_head &&
			    at_send.arrows[0].number == at_recv.arrows[0].number);
	EXPECT_THAT("but not backwards in time",
		    at_recv.arrows[0].not_before_ns == send.gpu_start_ns + VIEWER_SLIDE_NS);
	EXPECT_THAT("Send and Recv have no waiting", !at_recv.has_wait);
	recv.gpu_stop_ns = send.gpu_start_ns;
	add(&meet, 2, &recv, true);
	EXPECT_THAT("no arrow if the Recv ends first",
		    find(&meet, 5, &send).arrow_count == 0 &&
			    find(&meet, 2, &recv).arrow_count == 0);
	viewer_meet_release(&meet);
}

static void test_limit(void)
{
	struct viewer_meet meet;
	struct op_record op = { 0 };

	viewer_meet_init(&meet, &job, 300 * 1024);
	for (uint64_t match = 1; match < 10000; match++) {
		op = collective(0, match);
		add(&meet, 0, &op, true);
		add(&meet, 1, &op, true);
	}
	EXPECT_THAT("memory is bounded, operations without room are counted",
		    meet.left_out > 0 && meet.left_out < 20000 && meet.status == OK);
	op = collective(0, 1);
	EXPECT_THAT("operations added before are found", find(&meet, 0, &op).is_met);
	op = collective(0, 9999);
	EXPECT_THAT("operations without room are not", !find(&meet, 0, &op).is_met);
	viewer_meet_release(&meet);
}

/* Every field is set: there must be room for all arguments. */
static void test_args(void)
{
	struct recording_process process = { .rank = 0 };
	struct op_record op = collective(0, 1);
	struct viewer_place place = place_of(&op);
	struct viewer_met met = { .has_wait = true,
				  .is_partial = true,
				  .is_differing = true,
				  .last = &seats[3],
				  .wait_ns = 5 };
	struct viewer_op of = { &job, &process, &seats[0], &op, &place, &met, 7 };
	struct viewer_op_texts texts;
	struct viewer_args args;
	char name[VIEWER_NAME_TEXT];

	op.flags = UINT32_MAX;
	op.channels = op.warps = 1;
	op.function = OP_BROADCAST;
	op.root = op.peer = 1;
	op.user_tag = op.captured_number = op.nccl_sequence = op.sequence = op.stream = 1;
	op.issue_ns = op.launch_ns = 1;
	op.start_spread_ns = op.stop_spread_ns = 1;
	op.kernels_started = op.kernels_stopped = op.proxies_started = op.proxies_stopped = 1;
	op.send_bytes = op.recv_bytes = 1;
	for (int i = 0; i < OP_WAITS; i++)
		op.wait_ns[i] = 1;
	viewer_op_args(&of, &texts, &args);
	EXPECT_THAT("all arguments have room", !args.is_cut);
	EXPECT_THAT("all flags have room", strstr(texts.flags, "foreign_stop") != NULL);
	EXPECT(strcmp(texts.waits_for, "rank 3") == 0);
	viewer_op_name(&of, name);
	EXPECT_THAT("a name has operation and size", strcmp(name, "Broadcast 1 MiB to 1") == 0);
	op.function = OP_RECV;
	op.bytes = OP_BYTES_UNKNOWN;
	place.kind = VIEWER_IN_FLIGHT;
	viewer_op_name(&of, name);
	EXPECT(strcmp(name, "Recv from 1 (in flight)") == 0);
	EXPECT(viewer_op_colour(&of) == VIEWER_UNFINISHED);
}

static void test_bins(void)
{
	static struct viewer_bins bins;
	double sum = 0;

	viewer_bins_init(&bins, 1000000, 11000000);
	EXPECT(bins.width_ns == 10000 && bins.count == 1001);
	viewer_bins_add(&bins, 1005000, 1025000, 2000);
	EXPECT(bins.bytes[0] == 500 && bins.bytes[1] == 1000 && bins.bytes[2] == 500);
	viewer_bins_add(&bins, 0, 2000000, 2000000);
	viewer_bins_add(&bins, 10000000, 30000000, 20000000);
	for (uint32_t i = 0; i < bins.count; i++)
		sum += bins.bytes[i];
	EXPECT_THAT("parts outside are ignored",
		    sum > 2000 + 1000000 + 1009999 && sum < 2000 + 1000000 + 1010001);
	viewer_bins_init(&bins, 0, UINT64_C(3600000000000));
	EXPECT_THAT("an hour has bins of five seconds",
		    bins.width_ns == UINT64_C(5000000000) && bins.count == 721);
	viewer_bins_init(&bins, 5, 5);
	EXPECT(bins.count == 1);
	viewer_bins_init(&bins, 0, 100000);
	for (uint64_t i = 0; i < 11; i++)
		viewer_bins_add(&bins, 1000 * i, 1000 * i + 100, 1000);
	viewer_bins_miss(&bins);
	EXPECT_THAT("one of twelve not timed: all operations count",
		    !viewer_bins_is_sampled(&bins));
	viewer_bins_miss(&bins);
	EXPECT_THAT("two of thirteen not timed: the value covers timed operations only",
		    viewer_bins_is_sampled(&bins) && bins.bytes[0] == 10000 &&
			    bins.busy_ns[0] == 1000);
}

int main(void)
{
	make_job();
	test_collective();
	test_partial();
	test_transfer();
	test_limit();
	test_args();
	test_bins();
	return tap_done();
}
