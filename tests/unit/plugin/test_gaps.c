/*
 * The event mask is one number per process, and others may change it while the job runs: NCCL's RAS
 * since 2.31, another plugin in any release. What is not shown is counted, and nothing is claimed
 * about it.
 */
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

static const int releases[] = {
	HOST_NCCL_2_26, HOST_NCCL_2_27, HOST_NCCL_2_28,
	HOST_NCCL_2_29, HOST_NCCL_2_30, HOST_NCCL_2_31,
};

/* EXPECT with the release in front. */
#define EXPECT_OF(release, condition)                                                \
	do {                                                                         \
		char sentence[200];                                                  \
		snprintf(sentence, sizeof(sentence), "%d.%d: %s", (release) / 10000, \
			 (release) / 100 % 100, #condition);                         \
		tap_line(!!(condition), sentence, __FILE__, __LINE__);               \
	} while (0)

static void play(struct plugin_host *made, enum op_function function)
{
	struct host_op op = host_op_make(made->comm, function, 64, OP_FLOAT32);

	plugin_host_play(made, &op);
	host_comm_settle(made->comm);
}

/* A training step: two AllReduces and an AllGather. */
static void play_steps(struct plugin_host *made, int steps)
{
	for (int i = 0; i < steps; i++) {
		play(made, OP_ALL_REDUCE);
		play(made, OP_ALL_GATHER);
		play(made, OP_ALL_REDUCE);
	}
}

static uint64_t not_shown(void)
{
	return recorder.region.header->lost[LOST_NOT_SHOWN];
}

static void a_gap_is_counted_and_numbers_go_on(int release)
{
	struct plugin_host made = plugin_host_new(release, false, 1);
	const struct region_comm *comm = plugin_host_comm(made.id);
	int mask = *host_mask(made.host);
	uint64_t lost = not_shown();
	const struct op_record *op;

	play_steps(&made, 4);
	EXPECT_OF(release, comm->counts.missed == 0 && comm->counts.signature != 0);
	*host_mask(made.host) = 0;
	play_steps(&made, 5);
	*host_mask(made.host) = mask;
	play_steps(&made, 2);
	EXPECT_OF(release, comm->counts.missed == 15 && not_shown() - lost == 15);
	EXPECT_OF(release, comm->counts.issued == 18);
	EXPECT_OF(release, comm->counts.collectives == 33);
	EXPECT_OF(release, comm->counts.signature == 0);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.recorded == 18);
	op = plugin_host_record(made.id, 12);
	EXPECT_OF(release, op->match == 12 && op->signature != 0);
	EXPECT_OF(release, !(op->flags & OP_FLAG_AFTER_GAP));
	op = plugin_host_record(made.id, 13);
	EXPECT_OF(release, op->flags & OP_FLAG_AFTER_GAP && op->nccl_sequence == 18);
	op = plugin_host_record(made.id, 18);
	EXPECT_OF(release, op->match == 33 && op->nccl_sequence == 21);
	EXPECT_OF(release, op->signature == 0 && !(op->flags & OP_FLAG_AFTER_GAP));
}

/* NCCL does not number Sends and Recvs: after a gap it is unknown which one it is. */
static void a_send_after_a_gap_has_no_number(void)
{
	struct plugin_host made;
	int mask;

	/* Of the whole process, like the mask. */
	recorder.region.header->lost[LOST_NOT_SHOWN] = 0;
	made = plugin_host_new(HOST_NCCL_2_31, false, 1);
	mask = *host_mask(made.host);
	play(&made, OP_ALL_REDUCE);
	play(&made, OP_SEND);
	*host_mask(made.host) = 0;
	play(&made, OP_ALL_REDUCE);
	play(&made, OP_SEND);
	*host_mask(made.host) = mask;
	play(&made, OP_ALL_REDUCE);
	play(&made, OP_SEND);
	plugin_host_end(&made);
	EXPECT_EQUAL(plugin_host_record(made.id, 2)->match, 1);
	EXPECT_EQUAL(plugin_host_record(made.id, 4)->match, 0);
	EXPECT_EQUAL(plugin_host_record(made.id, 4)->peer, 2);
}

/* All calls of a group are numbered before its first task reveals the gap. */
static void a_group_after_a_gap_is_numbered_right(int release)
{
	enum { CALLS = 40 };
	struct plugin_host made = plugin_host_new(release, false, 1);
	struct host_op ops[CALLS];
	struct host_group group = { .ops = ops, .count = CALLS };
	int mask = *host_mask(made.host);
	uint64_t good = 0;

	for (uint64_t i = 0; i < CALLS; i++)
		ops[i] = host_op_make(made.comm, OP_ALL_REDUCE, 64 + i, OP_FLOAT32);
	play(&made, OP_ALL_REDUCE);
	*host_mask(made.host) = 0;
	for (int i = 0; i < 7; i++)
		play(&made, OP_ALL_REDUCE);
	*host_mask(made.host) = mask;
	if (host_play_group(&made.user, &group) != OK)
		abort();
	host_comm_settle(made.comm);
	play(&made, OP_ALL_REDUCE);
	plugin_host_end(&made);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.missed == 7);
	for (uint64_t i = 2; i <= CALLS + 2; i++)
		good += plugin_host_record(made.id, i)->match == i + 7 &&
			plugin_host_record(made.id, i)->signature == 0;
	EXPECT_OF(release, good == CALLS + 1);
}

/*
 * A call that finds no free slot near its last one tries others, wherever the cursor points. The
 * calls of its own group still wait for their tasks and must stay.
 */
static void no_call_loses_its_task(int release)
{
	enum { CALLS = 40 };
	struct plugin_host made = plugin_host_new(release, false, 1);
	struct host_op ops[CALLS];
	struct host_group group = { .ops = ops, .count = CALLS };
	const uint64_t *late = &recorder.region.header->lost[LOST_LATE_CHILD];
	uint64_t before = *late;

	for (uint64_t i = 0; i < CALLS; i++)
		ops[i] = host_op_make(made.comm, OP_ALL_REDUCE, 64 + i, OP_FLOAT32);
	for (uint32_t i = 0; i < recorder.region.live_count; i++) {
		recorder.region.header->live_cursor = i;
		if (host_play_group(&made.user, &group) != OK)
			abort();
	}
	plugin_host_end(&made);
	EXPECT_OF(release, *late == before);
}

/* Their calls are recorded: not a gap, only less detail. */
static void calls_without_tasks_are_no_gap(int release)
{
	struct plugin_host made = plugin_host_new(release, false, 1);
	const struct region_comm *comm = plugin_host_comm(made.id);
	int mask = *host_mask(made.host);

	play_steps(&made, 2);
	*host_mask(made.host) = ABI_COLL_API | ABI_P2P_API;
	play_steps(&made, 3);
	*host_mask(made.host) = mask;
	play_steps(&made, 2);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.missed == 0 && comm->counts.recorded == 21);
	EXPECT_OF(release, comm->counts.signature != 0 && comm->counts.collectives == 21);
}

/* What NCCL does not number, or shows without a number. */
static void these_are_no_gaps(int release)
{
	struct plugin_host made = plugin_host_new(release, false, 2);
	struct host_op op = host_op_make(made.comm, OP_ALL_REDUCE, 64, OP_FLOAT32);
	struct host_group group = { .ops = &op, .count = 1 };

	if (host_graph_new(made.host, &group.capture) != OK)
		abort();
	for (int i = 0; i < 3; i++) {
		play(&made, OP_BROADCAST);
		play(&made, OP_ALL_REDUCE);
		op.count = 0;
		plugin_host_play(&made, &op);
		op.count = 64;
		op.path = HOST_PATH_SYMMETRIC;
		plugin_host_play(&made, &op);
		op.path = HOST_PATH_COPY_ENGINE;
		plugin_host_play(&made, &op);
		op.path = HOST_PATH_KERNEL;
		/* With a network, replays are shown without kernel events and are not numbered. */
		op.has_network = true;
		if (i == 0 && host_play_group(&made.user, &group) != OK)
			abort();
		host_graph_replay(group.capture);
		host_graph_replay(group.capture);
	}
	host_graph_free(group.capture);
	host_comm_settle(made.comm);
	play(&made, OP_ALL_REDUCE);
	play(&made, OP_BROADCAST);
	plugin_host_end(&made);
	EXPECT_OF(release, plugin_host_comm(made.id)->counts.missed == 0);
}

/* Random masks, in all bits, between any two calls. */
static void any_mask_at_any_time(int release)
{
	static const enum op_function functions[] = { OP_ALL_REDUCE, OP_ALL_GATHER,
						      OP_SEND,	     OP_BROADCAST,
						      OP_RECV,	     OP_REDUCE_SCATTER };
	struct plugin_host made = plugin_host_new(release, false, 2);
	const struct region_comm *comm = plugin_host_comm(made.id);
	struct host_counts counts;
	uint32_t random = 12345;

	for (int i = 0; i < 600; i++) {
		struct host_op op = host_op_make(made.comm, functions[i % 6], 64, OP_FLOAT32);

		random = random * 1664525 + 1013904223;
		*host_mask(made.host) = random >> 8 & 1 ? 0 : (int)(random >> 12 & 0xffff);
		op.has_network = random & 1 << 30;
		op.steps = 2;
		plugin_host_play(&made, &op);
	}
	host_comm_settle(made.comm);
	host_comm_counts(made.comm, &counts);
	plugin_host_end(&made);
	EXPECT_OF(release, comm->counts.issued == counts.shown);
	EXPECT_OF(release, comm->counts.recorded == counts.shown);
	EXPECT_OF(release, comm->counts.missed <= counts.hidden);
	for (unsigned int i = 0; i < OP_FUNCTIONS; i++)
		if (plugin_host_records(made.id, i) != counts.shown_of[i])
			EXPECT_OF(release, plugin_host_records(made.id, i) == counts.shown_of[i]);
}

int main(void)
{
	plugin_host_setup("flight");
	setenv("RINGSIDE_BUFFER", "1MiB", 1);
	for (size_t i = 0; i < ARRAY_LENGTH(releases); i++) {
		a_gap_is_counted_and_numbers_go_on(releases[i]);
		a_group_after_a_gap_is_numbered_right(releases[i]);
		if (releases[i] >= HOST_NCCL_2_28) {
			calls_without_tasks_are_no_gap(releases[i]);
			no_call_loses_its_task(releases[i]);
		}
		these_are_no_gaps(releases[i]);
		any_mask_at_any_time(releases[i]);
	}
	a_send_after_a_gap_has_no_number();
	any_mask_at_any_time(HOST_NCCL_2_23);
	any_mask_at_any_time(HOST_NCCL_2_24);
	return tap_done();
}
