/* Whole operations: order, threads, parents and fields of the calls, for every version. */
#include <pthread.h>
#include <unistd.h>

#include "sim/host.h"
#include "tests/unit/sim/stage.h"

static void one_collective_of_2_28(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	const struct witness_call *group_api, *api, *launch, *group, *coll;

	op.channels = 2;
	stage_play(&stage, &op);
	expect_story("the user's thread makes NCCL's calls in NCCL's order", pthread_self(),
		     "S8 T23 S9 E9 T24 S11 E11 S0 S1 E1 E0 E8");
	group_api = witness_nth(ABI_GROUP_API, 0);
	api = witness_nth(ABI_COLL_API, 0);
	launch = witness_nth(ABI_KERNEL_LAUNCH, 0);
	group = witness_nth(ABI_GROUP, 0);
	coll = witness_nth(ABI_COLL, 0);
	EXPECT_EQUAL(group_api->parent, 0);
	EXPECT_EQUAL(group_api->depth, 1);
	EXPECT_EQUAL(api->parent, group_api->handle);
	EXPECT_EQUAL(launch->parent, group_api->handle);
	EXPECT_EQUAL(group->parent, 0);
	EXPECT_EQUAL(coll->parent, api->handle);
	EXPECT_EQUAL(coll->parent_group, group->handle);
	EXPECT_EQUAL(coll->channels, 2);
	EXPECT_EQUAL(coll->rank, 1);
	EXPECT_EQUAL(coll->context, 1);
	EXPECT_THAT("API events, Group and KernelLaunch have rank 0",
		    group_api->rank == 0 && api->rank == 0 && launch->rank == 0 &&
			    group->rank == 0);
	EXPECT_THAT("GroupApi's states have no argument",
		    !witness_find('T', group_api->handle, ABI_GROUP_START_API_STOP)->has_args);
	EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), 2);
	EXPECT_THAT("kernel channels come from another thread",
		    !pthread_equal(witness_nth(ABI_KERNEL_CH, 0)->thread, pthread_self()));
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 1)->parent, coll->handle);
	EXPECT_EQUAL(witness_nth(ABI_KERNEL_CH, 1)->rank, 0);
	stage_strike(&stage);
	EXPECT_EQUAL(witness.calls[witness.count - 1].what, 'F');
	EXPECT_EQUAL(witness.calls[witness.count - 1].context, 1);
}

static void proxy_makes_its_steps(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL & ~ABI_KERNEL_CH);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	const struct witness_call *recv, *send, *step;

	op.has_network = true;
	op.steps = 2;
	op.first_channel = 255;
	stage_play(&stage, &op);
	recv = witness_nth(ABI_PROXY_OP, 0);
	send = witness_nth(ABI_PROXY_OP, 1);
	expect_story("the proxy starts both, then advances step by step", recv->thread,
		     "S3 S3 T19 S4 T10 T19 S4 T8 "  /* begun, first steps posted */
		     "T11 T12 S4 T10 T20 T9 S4 T8 " /* arrived and sent, second posted */
		     "E4 T11 T12 E4 T20 T9 "	    /* first done, second on its way */
		     "E4 E3 E4 E3");
	EXPECT_EQUAL(recv->channel, 255);
	EXPECT_EQUAL(recv->is_send, 0);
	EXPECT_EQUAL(recv->peer, 0);
	EXPECT_EQUAL(send->peer, 2);
	EXPECT_EQUAL(send->steps, 2);
	EXPECT_EQUAL(send->pid, getpid());
	EXPECT_EQUAL(send->parent, witness_nth(ABI_COLL, 0)->handle);
	step = witness_nth(ABI_PROXY_STEP, 1);
	EXPECT_EQUAL(step->parent, send->handle);
	EXPECT_EQUAL(step->rank, 1);
	EXPECT_EQUAL(witness_find('T', step->handle, ABI_STEP_SEND_PEER_WAIT)->arg, 0);
	EXPECT_THAT("the size is known once it is sent",
		    witness_find('T', step->handle, ABI_STEP_SEND_WAIT)->arg == 2048);
	stage_strike(&stage);
	EXPECT(stage_is_balanced());
}

static void fields_are_as_odd_as_in_nccl(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_28, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_BROADCAST);

	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_nth(ABI_COLL_API, 0)->count, 1024);
	EXPECT(strcmp(witness_nth(ABI_COLL_API, 0)->datatype, "ncclFloat32") == 0);
	EXPECT_THAT("Coll counts Broadcast in bytes", witness_nth(ABI_COLL, 0)->count == 4096);
	EXPECT(strcmp(witness_nth(ABI_COLL, 0)->datatype, "ncclInt8") == 0);
	op = stage_op(&stage, OP_ALL_REDUCE);
	op.datatype = OP_UINT8;
	stage_play(&stage, &op);
	EXPECT_THAT("uint8 has no name",
		    strcmp(witness_nth(ABI_COLL, 1)->datatype, "Unknown") == 0);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 1)->sequence, 0);
	stage_play(&stage, &op);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 2)->sequence, 1);
	stage_strike(&stage);
}

/* For each release: everything once, and the counters agree with what the plugin saw. */
static void every_version_counts(void)
{
	static const int releases[] = { HOST_NCCL_2_23, HOST_NCCL_2_25, HOST_NCCL_2_26,
					HOST_NCCL_2_27, HOST_NCCL_2_28, HOST_NCCL_2_29,
					HOST_NCCL_2_30, HOST_NCCL_2_31 };

	for (size_t i = 0; i < sizeof(releases) / sizeof(releases[0]); i++) {
		int version = host_release_native(releases[i]);
		struct stage stage = stage_of(releases[i], STAGE_ALL);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		struct host_counts counts;

		printf("# release %d, v%d\n", releases[i], version);
		op.has_network = true;
		op.channels = 3;
		op.steps = 11;
		stage_play(&stage, &op);
		op = stage_op(&stage, OP_SEND);
		op.has_network = true;
		stage_play(&stage, &op);
		EXPECT_EQUAL(witness_starts(ABI_PROXY_OP), 3 * 2 + 1);
		EXPECT_EQUAL(witness_starts(ABI_PROXY_STEP), 3 * 2 * 11 + 1);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_CH), version >= 3 ? 4 : 0);
		EXPECT_EQUAL(witness_starts(ABI_KERNEL_PHASE), version >= 7 ? 8 : 0);
		EXPECT_EQUAL(witness_starts(ABI_GROUP), 2);
		EXPECT_EQUAL(witness_starts(ABI_COLL_API), version >= 5 ? 1 : 0);
		EXPECT_EQUAL(witness_states(ABI_KERNEL_CH_STOP), version >= 4 ? 4 : 0);
		EXPECT_EQUAL(witness_states(ABI_OP_IN_PROGRESS), version >= 4 ? 7 : 0);
		EXPECT_EQUAL(witness_states(ABI_OP_SEND_DONE), version <= 3 ? 34 : 0);
		EXPECT_EQUAL(witness_states(ABI_STEP_SEND_PEER_WAIT), version >= 4 ? 34 : 0);
		EXPECT(stage_counts_agree(&stage));
		host_comm_counts(stage.comm, &counts);
		EXPECT_EQUAL(counts.calls, 2);
		EXPECT_EQUAL(counts.shown, 2);
		EXPECT_EQUAL(counts.shown_of[OP_SEND], 1);
		stage_strike(&stage);
		EXPECT(stage_is_balanced());
		EXPECT_THAT("a narrow type is followed by garbage, a wide one is not",
			    witness_nth(ABI_COLL, 0)->head ==
				    (version < 5 ? 0xa5a5a5a5a5a5a502 : 2));
	}
}

static void old_versions_have_old_habits(void)
{
	struct stage stage = stage_of(HOST_NCCL_2_26, STAGE_ALL);
	struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
	const struct witness_call *proxy;

	op.has_network = true;
	stage_play(&stage, &op);
	proxy = witness_nth(ABI_PROXY_OP, 1);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 0)->parent, witness_nth(ABI_GROUP, 0)->handle);
	EXPECT_EQUAL(witness_nth(ABI_COLL, 0)->hash, 0xabc);
	EXPECT_THAT("steps have states without argument",
		    !witness_find('T', witness_nth(ABI_PROXY_STEP, 0)->handle, ABI_STEP_RECV_WAIT)
			     ->has_args);
	EXPECT_THAT("and operations have states of their own",
		    witness_find('T', proxy->handle, ABI_OP_SEND_TRANSMITTED)->arg == 4096);
	stage_strike(&stage);

	witness_reset(STAGE_ALL);
	struct host_linked only_v3 = { .v3 = &witness_v3 };
	struct host_config config = { .release = HOST_NCCL_2_27, .linked = &only_v3 };
	struct host_comm_config comm = { .hash = 0xabc };

	host_new(&stage.host, &config);
	host_comm_new(stage.host, &stage.comm, &comm);
	op = stage_op(&stage, OP_ALL_REDUCE);
	stage_play(&stage, &op);
	EXPECT_THAT("a wrapped plugin never gets the hash", witness_nth(ABI_COLL, 0)->hash == 0);
	stage_strike(&stage);
}

static void null_group_hides_tasks_before_2_28(void)
{
	for (int release = HOST_NCCL_2_27; release <= HOST_NCCL_2_28; release += 102) {
		struct stage stage = stage_of(release, STAGE_ALL);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);

		witness.null_types = ABI_GROUP;
		stage_play(&stage, &op);
		EXPECT_EQUAL(witness_starts(ABI_COLL), release < 22800 ? 0 : 1);
		stage_strike(&stage);
	}
}

static void mask_brings_parents(void)
{
	static const struct {
		int release, mask, events;
	} cases[] = {
		{ HOST_NCCL_2_23, ABI_GROUP, 0 },
		{ HOST_NCCL_2_23, ABI_P2P, ABI_GROUP },
		{ HOST_NCCL_2_23, ABI_COLL, ABI_GROUP | ABI_COLL },
		{ HOST_NCCL_2_23, ABI_PROXY_STEP,
		  ABI_GROUP | ABI_COLL | ABI_PROXY_OP | ABI_PROXY_STEP },
		{ HOST_NCCL_2_26, ABI_GROUP, ABI_GROUP },
		{ HOST_NCCL_2_26, ABI_KERNEL_CH, ABI_GROUP | ABI_COLL | ABI_KERNEL_CH },
		{ HOST_NCCL_2_28, 0, 0 },
		{ HOST_NCCL_2_28, ABI_GROUP_API, ABI_GROUP_API },
		{ HOST_NCCL_2_28, ABI_KERNEL_LAUNCH, ABI_GROUP_API | ABI_KERNEL_LAUNCH },
		{ HOST_NCCL_2_28, ABI_COLL_API, ABI_GROUP_API | ABI_COLL_API },
		{ HOST_NCCL_2_28, ABI_COLL, ABI_GROUP_API | ABI_COLL_API | ABI_GROUP | ABI_COLL },
		{ HOST_NCCL_2_28, ABI_PROXY_OP,
		  ABI_GROUP_API | ABI_COLL_API | ABI_GROUP | ABI_COLL | ABI_PROXY_OP },
		{ HOST_NCCL_2_28, ABI_KERNEL_PHASE, 0 },
		{ HOST_NCCL_2_31, ABI_KERNEL_PHASE,
		  ABI_GROUP_API | ABI_COLL_API | ABI_GROUP | ABI_COLL | ABI_KERNEL_CH |
			  ABI_KERNEL_PHASE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct stage stage = stage_of(cases[i].release, cases[i].mask);
		struct host_op op = stage_op(&stage, OP_ALL_REDUCE);
		int seen = 0;

		op.has_network = true;
		stage_play(&stage, &op);
		for (size_t j = 0; j < witness.count; j++)
			if (witness.calls[j].what == 'S')
				seen |= (int)witness.calls[j].type;
		printf("# release %d, mask %#x\n", cases[i].release, cases[i].mask);
		EXPECT_EQUAL(seen, cases[i].events);
		stage_strike(&stage);
	}
}

int main(void)
{
	one_collective_of_2_28();
	proxy_makes_its_steps();
	fields_are_as_odd_as_in_nccl();
	every_version_counts();
	old_versions_have_old_habits();
	null_group_hides_tasks_before_2_28();
	mask_brings_parents();
	return tap_done();
}
