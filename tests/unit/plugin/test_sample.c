/*
 * Kernel events for some collectives. The test acts as NCCL: it reads the mask before each call,
 * and reports kernels of calls whose mask had them. Each scene has its own process, because
 * sampling ends for good.
 */
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/plugin/stamp_play.h"
#include "tests/tap.h"

enum { KERNEL = 0x40 };

static bool is_open(void)
{
	return play_mask & KERNEL;
}

/* One AllReduce of this duration; was it timed? */
static bool collective(void *context, uint64_t duration_ns)
{
	bool is_timed = is_open();
	struct stamp_op made = stamp_issue(context, 2, 1000, duration_ns);

	if (is_timed)
		stamp_report(context, &made, 2, 500);
	stamp_move(duration_ns + 2000);
	return is_timed;
}

static unsigned int collectives(void *context, unsigned int count, uint64_t duration_ns)
{
	unsigned int timed = 0;

	for (unsigned int i = 0; i < count; i++)
		timed += collective(context, duration_ns);
	return timed;
}

/* Until a window is open, or it took too long. */
static bool until_open(void *context)
{
	for (unsigned int i = 0; i < 10000 && !is_open(); i++)
		collective(context, 50000);
	return is_open();
}

static void *begin(const char *after_s)
{
	void *context;

	play_setup("flight");
	setenv("RINGSIDE_EVENTS", "sample", 1);
	setenv("RINGSIDE_SAMPLE_AFTER", after_s, 1);
	context = play_init(0x5eed, 1, 8, 0);
	stamp_now_ns = recorder_now() + STAMP_S;
	stamp_move(0);
	return context;
}

static bool says(bool is_true, const char *what)
{
	if (!is_true)
		printf("# not so: %s\n", what);
	return is_true;
}

static uint64_t state(void)
{
	return recorder.region.header->sampling;
}

static bool nothing_is_timed_too_early(void)
{
	void *context = begin("100");
	unsigned int timed = collectives(context, 1000, 50000);

	stamp_move(101 * STAMP_S);
	return says(timed == 0, "closed at first") &
	       says(collectives(context, 1000, 50000) > 10, "open later");
}

/*
 * 4 KiB each: one in 128 costs half a percent. While a kind is new, four times as many are timed.
 */
enum { NEW_UNTIL = 64 + 8192, NEW_LEVEL = 5, LEVEL = 7 };

/* Every rank can derive which ones from the number, so they are comparable. */
static bool the_number_decides(void)
{
	void *context = begin("0");
	unsigned int wrong = 0, early = 0, late = 0;

	/* The first call sees the mask as init left it. */
	for (uint64_t number = 1; number <= 100000; number++) {
		uint64_t decided_at =
			number < SAMPLE_BLOCK ? 1 : number / SAMPLE_BLOCK * SAMPLE_BLOCK - 1;
		unsigned int level = decided_at < NEW_UNTIL ? NEW_LEVEL : LEVEL;
		bool is_drawn = number > 1 && sample_level(0x5eed, number) >= level;
		bool is_timed = collective(context, 500000);

		*(level == LEVEL ? &late : &early) += is_timed;
		wrong += is_timed != is_drawn;
	}
	printf("# timed %u of %d, then %u of %d\n", early, NEW_UNTIL, late, 100000 - NEW_UNTIL);
	return says(wrong == 0, "as drawn") &
	       says(early > NEW_UNTIL / 32 / 2 && early < NEW_UNTIL / 32 * 3 / 2, "more at first") &
	       says(late > (100000 - NEW_UNTIL) / 128 / 2, "not too few later") &
	       says(late < (100000 - NEW_UNTIL) / 128 * 3 / 2, "nor too many");
}

static bool rare_collectives_are_all_timed(void)
{
	void *context = begin("0");
	unsigned int timed = 0;

	for (int i = 0; i < 60; i++) {
		stamp_move(STAMP_S);
		timed += collective(context, 50000);
	}
	return says(timed >= 57, "all but the first few");
}

/* Operations without kernel events leave the table; those with them are timed; all are recorded. */
static bool nothing_is_lost(void)
{
	void *context = begin("0");
	unsigned int timed = collectives(context, 50000, 100000), in_flight = 0;
	const struct comm_counts *counts = &hot_comm(context)->shared->counts;

	for (uint32_t i = 0; i < recorder.region.live_count; i++)
		in_flight += region_slot_is_used(recorder.region.live[i].word);
	ncclProfiler_v5.finalize(context);
	return says(in_flight < 100, "the table stays small") &
	       says(counts->recorded == 50000 && counts->issued == 50000, "all are recorded") &
	       says(counts->timed == timed && counts->untracked == 0, "timed as asked") &
	       says(counts->untrusted == 0, "stamps are accepted") &
	       says(recorder.region.header->lost[LOST_LATE_CHILD] == 0, "no child came too late");
}

static bool a_capture_ends_it(void)
{
	void *context = begin("0");

	until_open(context);
	while (is_open())
		collective(context, 50000);
	play_coll_api(context, NULL, "AllReduce", 1024, "ncclFloat32", true);
	return says(state() == SAMPLING_BY_GRAPH, "it says so") &
	       says(collectives(context, 5000, 50000) == 0, "nothing is timed any more");
}

/* Part of the graph has kernel events: if the rest of the process had none, NCCL would hang. */
static bool a_capture_in_a_window_leaves_it_open(void)
{
	void *context = begin("0");

	until_open(context);
	play_coll_api(context, NULL, "AllReduce", 1024, "ncclFloat32", true);
	return says(state() == SAMPLING_STUCK, "it says so") &
	       says(collectives(context, 5000, 50000) == 5000, "all are timed from now on") &
	       says(play_init(0x77, 1, 8, 0) != NULL && is_open(),
		    "another communicator's init, too");
}

static bool a_send_ends_it(void)
{
	void *context = begin("0"), *group;

	until_open(context);
	while (is_open())
		collective(context, 50000);
	group = play_start(context, (struct abi_descr_v5){ .type = ABI_GROUP_API });
	play_p2p_api(context, group, "Send", 10);
	play_p2p_api(context, group, "Recv", 10);
	play_stop(group);
	return says(state() == SAMPLING_BY_P2P, "it says so") &
	       says(collectives(context, 5000, 50000) == 0, "nothing is timed any more");
}

static bool never_between_send_and_recv(void)
{
	void *context = begin("0"), *group, *other;
	bool is_kept;

	until_open(context);
	group = play_start(context, (struct abi_descr_v5){ .type = ABI_GROUP_API });
	play_p2p_api(context, group, "Send", 10);
	is_kept = is_open();
	other = play_start(context, (struct abi_descr_v5){ .type = ABI_GROUP_API });
	play_stop(other);
	is_kept &= is_open();
	play_p2p_api(context, group, "Recv", 10);
	is_kept &= is_open();
	play_stop(group);
	return says(is_kept, "open until the group ends") & says(!is_open(), "closed then") &
	       says(state() == SAMPLING_BY_P2P, "for good") &
	       says(collectives(context, 5000, 50000) == 0, "nothing is timed any more");
}

/* One more work of a kernel. */
static void work(void *context, void *plan, const char *algorithm)
{
	struct abi_descr_v5 descr = { .type = ABI_COLL };

	descr.coll.function = "AllReduce";
	descr.coll.datatype = "ncclFloat32";
	descr.coll.algorithm = algorithm;
	descr.coll.protocol = "SIMPLE";
	descr.coll.parent_group = plan;
	descr.parent = play_coll_api(context, NULL, "AllReduce", 1024, "ncclFloat32", false);
	play_stop(play_start(context, descr));
}

static bool grouped_nvls_ends_it(void)
{
	void *context = begin("0"), *plan = stamp_plan(context);

	until_open(context);
	for (int i = 0; i < 2; i++)
		work(context, plan, "NVLS");
	return says(state() == SAMPLING_BY_NVLS && !is_open(), "ended and closed");
}

static bool grouped_nvls_trees_end_it(void)
{
	void *context = begin("0"), *plan;

	for (int i = 0; i < 3; i++) {
		work(context, stamp_plan(context), "NVLS");
		work(context, stamp_plan(context), "NVLS_TREE");
		plan = stamp_plan(context);
		work(context, plan, "RING");
		work(context, plan, "TREE");
	}
	if (!says(state() == SAMPLING_ACTIVE, "not by single works, nor by other algorithms"))
		return false;
	work(context, plan, "NVLS_TREE");
	return says(state() == SAMPLING_BY_NVLS, "ended");
}

/* From NCCL 2.29 on they are counted by the GPU alone, unless AllGatherV is off. */
static bool a_broadcast_ends_it_where_it_disturbs(void)
{
	void *context = begin("0");

	store_relaxed(&recorder.sampling.broadcasts, 1);
	play_issue(context, "Broadcast", 16, "ncclFloat32", 1);
	if (!says(state() == SAMPLING_ACTIVE, "not where it is counted"))
		return false;
	store_relaxed(&recorder.sampling.broadcasts, 0);
	play_issue(context, "AllReduce", 16, "ncclFloat32", 1);
	if (!says(state() == SAMPLING_ACTIVE, "nor any other collective"))
		return false;
	play_issue(context, "Broadcast", 16, "ncclFloat32", 1);
	return says(state() == SAMPLING_BY_BROADCAST && !is_open(), "ended and closed");
}

/* A request to time everything for 30 s. */
static bool a_request_is_granted(void)
{
	void *context = begin("1000");
	unsigned int before = collectives(context, 100, 50000), during, after;
	const uint64_t request = UINT64_C(7) << 32 | 30;

	store_relaxed(&recorder.region.header->kernel_request, request);
	collectives(context, 2 * SAMPLE_BLOCK, 50000);
	during = collectives(context, 1000, 50000);
	stamp_move(31 * STAMP_S);
	collectives(context, 2 * SAMPLE_BLOCK, 50000);
	after = collectives(context, 1000, 50000);
	return says(before == 0 && during == 1000 && after == 0, "on for the requested time") &
	       says(recorder.region.header->kernel_answer == request, "and answered");
}

/* The word may hold anything. */
static bool a_request_comes_to_an_end(void)
{
	void *context = begin("100000");
	unsigned int during;

	store_relaxed(&recorder.region.header->kernel_request, UINT64_MAX);
	collectives(context, 2 * SAMPLE_BLOCK, 50000);
	during = collectives(context, 100, 50000);
	stamp_move(3601 * STAMP_S);
	collectives(context, 2 * SAMPLE_BLOCK, 50000);
	return says(during == 100, "granted") &
	       says(collectives(context, 100, 50000) == 0, "for an hour at most");
}

static bool an_ended_communicator_wants_nothing(void)
{
	void *context = begin("0");

	until_open(context);
	ncclProfiler_v5.finalize(context);
	return says(!is_open(), "closed");
}

/* One waits for its next call, which never comes; the other must not be timed all the time. */
static bool others_do_not_pay_for_one(void)
{
	void *idle = begin("0"), *busy = play_init(0xb5, 1, 8, 0);
	unsigned int timed;

	until_open(idle);
	collectives(busy, NEW_UNTIL, 16000);
	timed = collectives(busy, 100000, 16000);
	printf("# %u of 100000\n", timed);
	return says(timed < 100000 / 32, "it has had enough");
}

static uint64_t pretended_shm_bytes; /* free in /dev/shm; 0: what is free */

int statvfs(const char *path, struct statvfs *fs)
{
	struct statfs found;

	memset(fs, 0, sizeof(*fs));
	if (syscall(SYS_statfs, path, &found) != 0)
		return -1;
	fs->f_frsize = (unsigned long)found.f_frsize;
	fs->f_blocks = found.f_blocks;
	fs->f_bavail = found.f_bavail;
	if (pretended_shm_bytes != 0) {
		fs->f_frsize = 1 << 20;
		fs->f_blocks = 1 << 20;
		fs->f_bavail = pretended_shm_bytes >> 20;
	}
	return 0;
}

/*
 * NCCL needs 40 MiB for each communicator of 8 processes; room for 4 more must be left. Ended
 * communicators do not count.
 */
static bool too_many_communicators_end_it(void)
{
	enum { ROOM_FOR = 8 };
	void *contexts[3] = { NULL };

	pretended_shm_bytes = ((UINT64_C(40) * 8 * ROOM_FOR) << 20) + 1;
	begin("0");
	for (int i = 0; i < 10; i++) {
		contexts[0] = play_init(1, 1, 8, 0);
		contexts[1] = play_init(2, 1, 8, 0);
		ncclProfiler_v5.finalize(contexts[0]);
		ncclProfiler_v5.finalize(contexts[1]);
	}
	if (!says(state() == SAMPLING_ACTIVE, "not by those that ended"))
		return false;
	for (int i = 0; i < 3; i++)
		contexts[i] = play_init(3, 1, 8, 0);
	if (!says(state() == SAMPLING_ACTIVE, "not by four"))
		return false;
	play_init(4, 1, 8, 0);
	return says(state() == SAMPLING_BY_SHM, "by the fifth");
}

static bool is_true_in_a_process(bool (*scene)(void))
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (child == 0) {
		bool is_fine = scene();

		fflush(stdout);
		exit(is_fine ? 0 : 1);
	}
	return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
	       WEXITSTATUS(status) == 0;
}

#define EXPECT_SCENE(scene) EXPECT_THAT(#scene, is_true_in_a_process(scene))

int main(void)
{
	EXPECT_SCENE(nothing_is_timed_too_early);
	EXPECT_SCENE(the_number_decides);
	EXPECT_SCENE(rare_collectives_are_all_timed);
	EXPECT_SCENE(nothing_is_lost);
	EXPECT_SCENE(a_capture_ends_it);
	EXPECT_SCENE(a_capture_in_a_window_leaves_it_open);
	EXPECT_SCENE(a_send_ends_it);
	EXPECT_SCENE(never_between_send_and_recv);
	EXPECT_SCENE(grouped_nvls_ends_it);
	EXPECT_SCENE(grouped_nvls_trees_end_it);
	EXPECT_SCENE(a_broadcast_ends_it_where_it_disturbs);
	EXPECT_SCENE(too_many_communicators_end_it);
	EXPECT_SCENE(a_request_is_granted);
	EXPECT_SCENE(a_request_comes_to_an_end);
	EXPECT_SCENE(an_ended_communicator_wants_nothing);
	EXPECT_SCENE(others_do_not_pay_for_one);
	return tap_done();
}
