#include "analysis/flight.h"

#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "tests/tap.h"

enum { MASK_KERNELS = 1 << 6 };

/* One process with one communicator and up to four operations in live slots. */
static struct recording_comm comm;
static struct recording_flight flights[4];
static struct recording_process process;

static void start(uint32_t mask, uint32_t flags)
{
	memset(&comm, 0, sizeof(comm));
	memset(flights, 0, sizeof(flights));
	memset(&process, 0, sizeof(process));
	comm.info.id = 1;
	comm.info.interface = 5;
	comm.info.mask = mask;
	comm.info.flags = flags;
	process.comms = &comm;
	process.comm_count = 1;
	process.flights = flights;
}

static struct recording_flight *add(uint64_t number, uint8_t state)
{
	struct recording_flight *flight = &flights[process.flight_count++];

	flight->op.comm = 1;
	flight->op.function = OP_ALL_REDUCE;
	flight->op.number = number;
	flight->op.state = state;
	return flight;
}

static enum flight_kind kind_of(size_t index)
{
	return flight_kind(&process, &flights[index]);
}

static void test_order_tells(void)
{
	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_RUNNING);
	add(2, OP_LAUNCHED);
	add(3, OP_ISSUED);
	EXPECT_THAT("running is in flight", kind_of(0) == FLIGHT_OPEN);
	EXPECT_THAT("launched is, if its kernel would be reported", kind_of(1) == FLIGHT_OPEN);
	EXPECT_THAT("called is", kind_of(2) == FLIGHT_OPEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_LAUNCHED);
	add(2, OP_ISSUED);
	add(3, OP_DONE);
	EXPECT_THAT("launched is over if a later one is done", kind_of(0) == FLIGHT_OVER);
	EXPECT_THAT("so is called", kind_of(1) == FLIGHT_OVER);
	EXPECT_THAT("done is over", kind_of(2) == FLIGHT_OVER);
	flights[0].open_children = 1;
	EXPECT_THAT("but not while a part of it is open", kind_of(0) == FLIGHT_OPEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_LAUNCHED);
	comm.has_counts = true;
	comm.counts.last_done_number = 2;
	EXPECT_THAT("the later one may have left its slot", kind_of(0) == FLIGHT_OVER);
	comm.counts.last_done_number = 1;
	EXPECT_THAT("an earlier one proves nothing", kind_of(0) == FLIGHT_OPEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_LAUNCHED);
	add(2, OP_DONE)->op.comm = 2;
	EXPECT_THAT("nor does another communicator", kind_of(0) == FLIGHT_OPEN);
}

static void test_unseen(void)
{
	start(0, 0);
	add(1, OP_LAUNCHED);
	add(2, OP_ISSUED);
	EXPECT_THAT("no kernels, no network: unknown", kind_of(0) == FLIGHT_UNSEEN);
	EXPECT_THAT("a call that was not launched is stuck anyway", kind_of(1) == FLIGHT_OPEN);
	comm.info.flags = COMM_FLAG_SEES_PROXIES;
	EXPECT_THAT("with a network its end would be reported", kind_of(0) == FLIGHT_OPEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_ISSUED);
	add(2, OP_LAUNCHED);
	EXPECT_THAT("an overtaken call has no reported execution", kind_of(0) == FLIGHT_UNSEEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_ISSUED)->op.function = OP_BROADCAST;
	EXPECT_THAT("Broadcast of NCCL 2.28 reports its execution", kind_of(0) == FLIGHT_OPEN);
	comm.info.interface = 6;
	EXPECT_THAT("Broadcast of NCCL 2.29 does not", kind_of(0) == FLIGHT_UNSEEN);

	start(MASK_KERNELS, COMM_FLAG_SEES_KERNELS);
	add(1, OP_LAUNCHED)->op.flags = OP_FLAG_COPY_ENGINE;
	add(2, OP_LAUNCHED)->op.flags = OP_FLAG_SELF;
	EXPECT_THAT("copy engines do not", kind_of(0) == FLIGHT_UNSEEN);
	EXPECT_THAT("nor do sends to the rank itself", kind_of(1) == FLIGHT_UNSEEN);
	add(3, OP_CAPTURED);
	add(4, OP_ABANDONED);
	EXPECT_THAT("captured is not in flight", kind_of(2) == FLIGHT_OVER);
	EXPECT_THAT("nor is abandoned", kind_of(3) == FLIGHT_OVER);
}

static struct recording_proxy proxies[4];

static struct recording_proxy *proxy(size_t index, uint8_t channel, int peer, bool is_send)
{
	struct recording_proxy *of = &proxies[index];

	memset(of, 0, sizeof(*of));
	of->proxy.channel = channel;
	of->proxy.peer = peer;
	of->proxy.steps = 8;
	of->proxy.done = 2;
	of->proxy.start_ns = 100;
	of->proxy.since_ns = 500;
	of->proxy.flags = (uint8_t)(PROXY_IN_PROGRESS | (is_send ? PROXY_IS_SEND : 0));
	return of;
}

static void step(struct recording_proxy *of, uint8_t state, unsigned int stage, uint64_t ns)
{
	of->steps[of->step_count].state = state;
	if (stage < 3)
		of->steps[of->step_count].time_ns[stage] = ns;
	of->step_count++;
}

static struct flight_wait only_wait(size_t count)
{
	struct flight_wait *waits, first = { .peer = -2 };
	size_t found;

	if (flight_waits(proxies, count, &waits, &found) == OK && found == 1)
		first = waits[0];
	free(waits);
	return first;
}

static void test_each_state(void)
{
	static const struct {
		uint8_t state;
		bool is_send;
		unsigned int stage;
		enum flight_reason reason;
	} states[] = {
		{ 8, true, 0, FLIGHT_SEND_GPU },     { 20, true, 1, FLIGHT_SEND_PEER },
		{ 9, true, 2, FLIGHT_SEND_NET },     { 10, false, 0, FLIGHT_RECV_NET },
		{ 11, false, 1, FLIGHT_RECV_FLUSH }, { 12, false, 2, FLIGHT_RECV_GPU },
	};

	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		struct flight_wait wait;

		step(proxy(0, 3, 7, states[i].is_send), states[i].state, states[i].stage, 300);
		wait = only_wait(1);
		EXPECT_THAT(flight_reason_name(states[i].reason),
			    wait.reason == states[i].reason && wait.peer == 7 &&
				    wait.since_ns == 300 && wait.channels[0] == 8);
	}
}

static void test_no_open_transfer(void)
{
	proxy(0, 0, 1, true)->proxy.flags = PROXY_IS_SEND;
	EXPECT_THAT("queued since it was appended",
		    only_wait(1).reason == FLIGHT_SEND_QUEUED && only_wait(1).since_ns == 100);
	proxy(0, 0, 1, false);
	EXPECT_THAT("between transfers",
		    only_wait(1).reason == FLIGHT_RECV_STARTING && only_wait(1).since_ns == 500);
	proxy(0, 0, 1, false)->proxy.flags = 0;
	proxies[0].proxy.posted = 1;
	EXPECT_THAT("old releases do not report when it left the queue; a transfer does",
		    only_wait(1).reason == FLIGHT_RECV_STARTING);
	proxy(0, 0, 1, true)->proxy.done = 8;
	EXPECT_THAT("all transfers done: it waits for nothing", only_wait(1).peer == -2);
	step(proxy(0, 0, 1, true), 0xff, 3, 0);
	EXPECT_THAT("a transfer that has just started",
		    only_wait(1).reason == FLIGHT_SEND_STARTING);
}

static void test_waits_are_put_together(void)
{
	struct flight_wait *waits;
	size_t count;

	step(proxy(0, 0, 1, false), 10, 0, 400);
	step(proxy(1, 65, 1, false), 10, 0, 300);
	step(proxy(2, 0, 2, false), 10, 0, 350);
	step(proxy(3, 0, 1, true), 9, 2, 200);
	step(&proxies[3], 8, 0, 100);
	EXPECT(flight_waits(proxies, 4, &waits, &count) == OK);
	EXPECT_EQUAL(count, 3);
	EXPECT_THAT("the longest wait comes first; the oldest transfer decides",
		    waits[0].reason == FLIGHT_SEND_NET && waits[0].since_ns == 200);
	EXPECT_THAT("channels of one peer are one wait",
		    waits[1].peer == 1 && waits[1].channels[0] == 1 && waits[1].channels[1] == 2);
	EXPECT_THAT("since the first of them", waits[1].since_ns == 300);
	EXPECT_THAT("with their steps", waits[1].steps_done == 4 && waits[1].steps == 16);
	EXPECT_THAT("another peer is another wait", waits[2].peer == 2);
	free(waits);

	EXPECT(flight_waits(NULL, 0, &waits, &count) == OK && waits == NULL && count == 0);
}

static void test_times(void)
{
	start(0, 0);
	add(1, OP_RUNNING)->op.task_ns = 70;
	EXPECT_EQUAL(flight_since_ns(&flights[0]), 70);
	flights[0].op.issue_ns = 60;
	EXPECT_EQUAL(flight_since_ns(&flights[0]), 60);
	flights[0].op.active_ns = 90;
	EXPECT_EQUAL(recording_last_ns(&process), 90);
	comm.counts.last_issue_ns = 95;
	EXPECT_EQUAL(recording_last_ns(&process), 95);
	process.counts_ns = 99;
	EXPECT_EQUAL(recording_last_ns(&process), 99);
}

/* All at once are what each is by itself, whatever is in flight on several communicators. */
static void test_all_at_once(void)
{
	enum { COMMS = 3, EACH = 6, TRIALS = 300 };
	static struct recording_flight many[COMMS * EACH];
	static struct recording_comm comms[COMMS];
	struct recording_process several = { .comms = comms,
					     .comm_count = COMMS - 1, /* one is unknown */
					     .flights = many,
					     .flight_count = COMMS * EACH };
	size_t wrong = 0, kinds_seen[3] = { 0 };
	uint8_t kinds[COMMS * EACH];

	for (uint64_t trial = 1; trial <= TRIALS; trial++) {
		for (size_t c = 0; c < COMMS; c++) {
			comms[c].info.id = (uint32_t)c + 1;
			comms[c].info.interface = 5;
			comms[c].info.mask = hash_word(trial, c + 1) % 2 ? MASK_KERNELS : 0;
			comms[c].info.flags =
				hash_word(trial, c + 2) % 2 ? COMM_FLAG_SEES_KERNELS : 0;
			comms[c].has_counts = hash_word(trial, c + 3) % 2;
			comms[c].counts.last_done_number = hash_word(trial, c + 4) % EACH;
		}
		for (size_t i = 0; i < COMMS * EACH; i++) {
			uint64_t drawn = hash_word(trial, i + 10);

			many[i] = (struct recording_flight){
				.op = { .comm = (uint32_t)(i / EACH) + 1,
					.function = drawn % 5 == 0 ? OP_BROADCAST : OP_ALL_REDUCE,
					.number = i % EACH + 1,
					.state = (uint8_t)(drawn >> 8) % 11 < 1	   ? OP_DONE
						 : (uint8_t)(drawn >> 16) % 3 == 0 ? OP_RUNNING
						 : (uint8_t)(drawn >> 16) % 3 == 1 ? OP_LAUNCHED
										   : OP_ISSUED,
					.flags = drawn >> 24 & 7 ? 0 : OP_FLAG_API_ONLY },
				.open_children = (drawn >> 32) % 8 == 0
			};
		}
		flight_kinds(&several, kinds);
		for (size_t i = 0; i < COMMS * EACH; i++) {
			wrong += kinds[i] != flight_kind(&several, &many[i]);
			kinds_seen[kinds[i] == FLIGHT_OPEN ? 0 : kinds[i] == FLIGHT_OVER ? 1 : 2]++;
		}
	}
	EXPECT_EQUAL(wrong, 0);
	EXPECT(kinds_seen[0] > TRIALS && kinds_seen[1] > TRIALS && kinds_seen[2] > TRIALS);
}

int main(void)
{
	test_order_tells();
	test_unseen();
	test_each_state();
	test_no_open_transfer();
	test_waits_are_put_together();
	test_times();
	test_all_at_once();
	EXPECT(strcmp(flight_reason_name((enum flight_reason)99), "?") == 0);
	return tap_done();
}
