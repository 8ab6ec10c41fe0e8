/* Following a process while it works: the real recorder in this process, and a reader beside it. */
#include "recording/recording.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/order.h"
#include "tests/support/plugin_host.h"
#include "tests/tap.h"

enum { OPERATIONS = TAP_IS_SLOW ? 3000 : 20000, SIZES = 3 };

static struct plugin_host host;
static int is_over;

static void *play(void *unused)
{
	struct host_op op = host_op_make(host.comm, OP_ALL_REDUCE, 1024, OP_FLOAT32);

	op.channels = 2;
	op.steps = 1;
	for (int i = 0; i < OPERATIONS; i++) {
		op.count = UINT64_C(1024) << (i % SIZES);
		op.has_network = i % 5 == 0;
		plugin_host_play(&host, &op);
		/* Slowly, fast, and not at all. */
		if (i % 4000 == 0)
			usleep(20000);
		if (i > OPERATIONS - 300)
			host_comm_wait(host.comm, 4);
	}
	host_comm_settle(host.comm);
	store_release(&is_over, 1); /* pairs with the acquire in test_follow() */
	return unused;
}

static uint64_t count_of(const struct recording_process *process)
{
	uint64_t count = 0;

	for (size_t i = 0; i < process->total_count; i++)
		count += process->totals[i].count;
	return count;
}

/* What must hold at any moment. */
struct held {
	uint64_t last;
	bool never_fell;
	bool is_bounded;
	bool is_sorted;
	bool fits_buckets;
};

static void hold(struct held *held, const struct recording_process *process)
{
	uint64_t count = count_of(process);

	held->never_fell &= count >= held->last;
	held->last = count;
	/* The recorder itself says how many there are by now. */
	held->is_bounded &= process->comm_count == 1 &&
			    count <= load_relaxed(&recorder.region.comms[0].counts.issued);
	for (size_t i = 1; i < process->total_count; i++)
		held->is_sorted &= process->totals[i - 1].key < process->totals[i].key;
	for (size_t i = 1; i < process->flight_count; i++)
		held->is_sorted &=
			process->flights[i - 1].op.number < process->flights[i].op.number;
	for (size_t i = 0; i < process->total_count; i++)
		held->fits_buckets &= process->totals[i].timed <= process->totals[i].count;
}

static struct recording *find(const char *directory)
{
	static struct recording recording;

	recording_init(&recording);
	if (recording_add(&recording, directory, 0) != OK || recording_finish(&recording) != OK ||
	    recording.count != 1)
		abort();
	return &recording;
}

static void test_follow(const char *directory)
{
	struct recording *recording = find(directory);
	struct recording_process *process = recording->processes[0];
	struct held held = {
		.never_fell = true, .is_bounded = true, .is_sorted = true, .fits_buckets = true
	};
	unsigned int flags = RECORDING_REFRESH_TOTALS;
	bool is_last = false, is_read = true;
	pthread_t player;

	if (pthread_create(&player, NULL, play, NULL) != 0)
		abort();
	while (!is_last) {
		is_last = load_acquire(&is_over);
		is_read &= recording_refresh(process, flags) == OK;
		hold(&held, process);
		/* The second scan and later ones only read what changed. */
		flags |= RECORDING_REFRESH_MOVED;
	}
	pthread_join(player, NULL);
	/* One more: operations of fast communicators are skipped while they are fast. */
	is_read &= recording_refresh(process, flags) == OK;
	is_read &= recording_refresh(process, RECORDING_REFRESH_TOTALS) == OK;
	EXPECT_THAT("it could be read at every scan", is_read);
	EXPECT_THAT("counts never fell", held.never_fell);
	EXPECT_THAT("and never exceeded the real number", held.is_bounded);
	EXPECT_THAT("totals and flights are sorted", held.is_sorted);
	EXPECT_THAT("times are of operations", held.fits_buckets);
	EXPECT_EQUAL(process->comms[0].counts.issued, OPERATIONS);
	EXPECT_THAT("at the end every operation was counted once", count_of(process) == OPERATIONS);
	EXPECT_THAT("including those that the recorder holds back",
		    process->comms[0].counts.recorded < OPERATIONS);
	EXPECT_THAT("the last of which are visible",
		    process->flight_count > 0 && process->flight_count < 16);
	EXPECT_THAT("network transfers are there",
		    process->link_count > 1 && process->links[0].key == 0);
	EXPECT_THAT("now it is idle", recording_stands_still(process));
	EXPECT_THAT("it is alive", process->life == RECORDING_ALIVE);
	recording_rest(process);
	EXPECT_THAT("a closed one cannot be read and stays as it was",
		    recording_refresh(process, RECORDING_REFRESH_TOTALS) == ERR_TRUNCATED &&
			    count_of(process) == OPERATIONS);
	recording_release(recording);
}

/* Without totals all flights are returned. */
static void test_without(const char *directory)
{
	struct recording *recording = find(directory);
	struct recording_process *process = recording->processes[0];

	EXPECT_THAT("no totals without a request",
		    recording_refresh(process, 0) == OK && process->total_count == 0);
	EXPECT_THAT("everything held back is among the flights",
		    process->flight_count == OPERATIONS - process->comms[0].counts.recorded);
	recording_release(recording);
}

int main(void)
{
	const char *directory = plugin_host_setup("flight");

	host = plugin_host_new(HOST_NCCL_2_28, true, 2);
	test_follow(directory);
	test_without(directory);
	plugin_host_end(&host);
	return tap_done();
}
