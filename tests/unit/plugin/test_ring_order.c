/*
 * Rule R2 of the region under concurrency: a reader of the ring gets a whole record or none. The
 * ring has two slots, so that readers and writers collide all the time. A ring of 256 slots hides a
 * wrong memory order for hours; this one shows it, and a mutant proves that it does.
 */
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "tests/mutants/weak_ring.inc"
#include "tests/tap.h"

enum { SLOTS = 2, WRITERS = 2 };
/*
 * A run ends after this many records were read or written, or after a while: on a busy machine the
 * threads seldom run at the same time, and a thread that yields waits for its turn.
 */
enum {
	TAKEN = TAP_IS_SLOW ? 3000 : 100000,
	TAKEN_WEAK = 1000000,
	WRITTEN = 4000000,
	BETWEEN = 256
};
#define RUN_NS UINT64_C(2000000000)

typedef void (*push_fn)(struct comm_state *comm, struct op_record *op);

static struct region_header header;
static struct region_total totals[1];
static _Alignas(64) struct op_record ring[SLOTS];

struct writer {
	pthread_t thread;
	push_fn push;
	uint64_t first, written;
};

struct outcome {
	uint64_t taken, torn, written;
	bool is_backwards; /* a sequence came after a later one */
};

static uint32_t is_over, ended; /* the reader has enough; writers that have ended */
static uint64_t taken;

static void set_up(void)
{
	is_over = ended = 0;
	taken = 0;
	memset(&header, 0, sizeof(header));
	memset(totals, 0, sizeof(totals));
	memset(ring, 0, sizeof(ring));
	recorder.region.header = &header;
	recorder.region.totals = totals;
	recorder.region.total_count = 1;
	recorder.region.ring = ring;
	recorder.region.ring_count = SLOTS;
}

/* Yield to the reader if it has not moved: writing without it shows nothing. */
static void wait_for_reader(uint64_t *seen)
{
	if (load_relaxed(&taken) == *seen)
		sched_yield();
	*seen = load_relaxed(&taken);
}

/* The same value in many words: a record is whole if all agree. */
static void *write_records(void *argument)
{
	struct writer *writer = argument;
	struct op_record op = { .bytes = OP_BYTES_UNKNOWN, .state = OP_LAUNCHED };
	uint64_t until_ns = clock_system_ns(CLOCK_MONOTONIC) + RUN_NS;
	uint64_t seen = 0;

	for (uint64_t i = 0; i < WRITTEN && !load_relaxed(&is_over); i++) {
		uint64_t value = writer->first + i;

		op.number = op.match = op.signature = op.count = op.nccl_sequence = value;
		op.user_tag = op.stream = op.issue_ns = op.launch_ns = op.task_ns = value;
		op.active_ns = op.done_ns = op.captured_number = op.reserved = value;
		writer->push(NULL, &op);
		if (++writer->written % BETWEEN != 0)
			continue;
		wait_for_reader(&seen);
		if (clock_system_ns(CLOCK_MONOTONIC) > until_ns)
			break;
	}
	add_relaxed(&ended, 1);
	return NULL;
}

static bool is_whole(const struct op_record *op)
{
	uint64_t value = op->number;

	return op->match == value && op->signature == value && op->count == value &&
	       op->nccl_sequence == value && op->user_tag == value && op->stream == value &&
	       op->issue_ns == value && op->launch_ns == value && op->task_ns == value &&
	       op->active_ns == value && op->done_ns == value && op->captured_number == value &&
	       op->reserved == value;
}

/*
 * Like the trace thread: sequence, words, sequence. Records seen before are skipped, so that the
 * next sequence is read the moment it appears.
 */
static bool take(const struct op_record *slot, uint64_t last, struct op_record *to)
{
	const uint64_t *from = (const uint64_t *)(const void *)slot;
	uint64_t *words = (uint64_t *)(void *)to;
	/* R2: pairs with the release in record_push(). */
	uint64_t sequence = load_acquire(&from[0]);

	if (sequence == last || sequence & RING_BUSY)
		return false;
	words[0] = sequence;
	for (int i = OP_RECORD_WORDS - 1; i > 0; i--)
		words[i] = load_relaxed(&from[i]);
	fence_acquire();
	return load_relaxed(&from[0]) == sequence;
}

static struct outcome read_records(unsigned int writers, uint64_t wanted, bool until_torn)
{
	struct outcome outcome = { .taken = 0 };
	uint64_t last[SLOTS] = { 0 };
	struct op_record op;

	for (unsigned int i = 0; outcome.taken < wanted && load_relaxed(&ended) < writers; i++) {
		if (!take(&ring[i % SLOTS], last[i % SLOTS], &op))
			continue;
		store_relaxed(&taken, ++outcome.taken);
		outcome.torn += !is_whole(&op);
		outcome.is_backwards |= op.sequence < last[i % SLOTS];
		last[i % SLOTS] = op.sequence;
		if (until_torn && outcome.torn > 0)
			break;
	}
	return outcome;
}

static struct outcome run(push_fn push, unsigned int writers, uint64_t wanted, bool until_torn)
{
	struct writer made[WRITERS];
	struct outcome outcome;

	set_up();
	for (unsigned int i = 0; i < writers; i++) {
		made[i] = (struct writer){ .push = push, .first = (uint64_t)i << 32 };
		if (pthread_create(&made[i].thread, NULL, write_records, &made[i]) != 0)
			exit(1);
	}
	outcome = read_records(writers, wanted, until_torn);
	store_relaxed(&is_over, 1);
	for (unsigned int i = 0; i < writers; i++) {
		pthread_join(made[i].thread, NULL);
		outcome.written += made[i].written;
	}
	return outcome;
}

static void no_record_is_torn(unsigned int writers)
{
	struct outcome outcome = run(record_push, writers, TAKEN, false);

	printf("# %u writers: %llu records written, %llu taken\n", writers,
	       (unsigned long long)outcome.written, (unsigned long long)outcome.taken);
	EXPECT_THAT("R2: no record is torn", outcome.torn == 0);
	EXPECT_THAT("R2: no record is overwritten by an older one", !outcome.is_backwards);
	EXPECT_EQUAL(header.ring_head, outcome.written);
	EXPECT_EQUAL(totals[0].count, outcome.written);
}

#ifdef __aarch64__
enum { SHOWS_ORDER = !TAP_IS_SLOW };
#else
enum { SHOWS_ORDER = 0 };
#endif

/* About one in 100,000 collisions tears a record; after this many, one did. */
enum { MUTANT_TRIES = 20, MET_ENOUGH = 2000000, PER_MEETING = 64 };

/* How many CPUs this process may run on. */
static int processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

/*
 * Threads that share a CPU collide once in BETWEEN records; those that run in parallel, once in
 * ten.
 */
static uint64_t met(const struct outcome *outcome)
{
	uint64_t by_turns = outcome->written / PER_MEETING;

	return outcome->taken > by_turns ? outcome->taken - by_turns : 0;
}

static void a_weaker_ring_is_caught(void)
{
	struct outcome outcome = { .torn = 0 };
	uint64_t meetings = 0;

	if (!SHOWS_ORDER || processors() < 2) {
		EXPECT_THAT("the mutant is caught # SKIP this machine hides the order of stores",
			    true);
		return;
	}
	for (int i = 0; i < MUTANT_TRIES && outcome.torn == 0 && meetings < MET_ENOUGH; i++) {
		outcome = run(weak_record_push, 1, TAKEN_WEAK, true);
		meetings += met(&outcome);
	}
	printf("# the mutant: %llu records written, %llu taken, %llu met\n",
	       (unsigned long long)outcome.written, (unsigned long long)outcome.taken,
	       (unsigned long long)meetings);
	if (outcome.torn == 0 && meetings < MET_ENOUGH)
		EXPECT_THAT("the mutant is caught # SKIP the threads seldom ran at the same time",
			    true);
	else
		EXPECT_THAT(
			"R2: without release and fence a record is torn, and this test detects it",
			outcome.torn != 0);
}

int main(void)
{
	no_record_is_torn(1);
	no_record_is_torn(WRITERS);
	a_weaker_ring_is_caught();
	return tap_done();
}
