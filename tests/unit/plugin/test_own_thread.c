/* What the plugin's own threads share: reading a ring, sweeping, the heartbeat. */
#include "plugin/own_thread.h"

#include <time.h>

#include "tests/unit/plugin/callback_play.h"
#include "tests/tap.h"

enum { SLOTS = 8, WORDS = 2 };
#define MS UINT64_C(1000000)

static uint64_t slots[SLOTS][WORDS], head;

static void put(uint64_t sequence)
{
	slots[(sequence - 1) % SLOTS][0] = sequence;
	slots[(sequence - 1) % SLOTS][1] = 100 * sequence;
}

static struct ring_reader ring_with(uint64_t first, uint64_t last)
{
	memset(slots, 0, sizeof(slots));
	for (uint64_t sequence = first; sequence <= last; sequence++)
		put(sequence);
	head = last;
	return (struct ring_reader){
		.slots = slots[0], .count = SLOTS, .words = WORDS, .head = &head
	};
}

/* Takes up to `most`; true if it got these sequences in a row. */
static bool takes(struct ring_reader *reader, uint32_t most, uint64_t first, uint32_t count,
		  struct ring_missed *missed)
{
	uint64_t batch[SLOTS][WORDS];
	uint32_t taken = ring_reader_take(reader, 5 * MS, false, batch[0], most, missed);
	bool is_good = taken == count;

	for (uint32_t i = 0; i < taken; i++)
		is_good = is_good && batch[i][0] == first + i && batch[i][1] == 100 * (first + i);
	return is_good;
}

static void records_come_in_order(void)
{
	struct ring_reader reader = ring_with(1, 5);
	struct ring_missed missed;

	EXPECT(takes(&reader, 2, 1, 2, &missed));
	EXPECT(takes(&reader, SLOTS, 3, 3, &missed));
	EXPECT(missed.overrun == 0 && missed.busy == 0 && reader.tail == 5);
	EXPECT_THAT("none without a new one", takes(&reader, SLOTS, 0, 0, &missed));
	put(head = 6);
	EXPECT(takes(&reader, SLOTS, 6, 1, &missed));
}

static void overwritten_ones_are_counted(void)
{
	struct ring_reader reader = ring_with(4, 11);
	struct ring_missed missed;

	EXPECT_THAT("the oldest that are still there come first",
		    takes(&reader, SLOTS, 4, 8, &missed));
	EXPECT(missed.overrun == 3 && missed.busy == 0 && reader.tail == 11);
	reader = ring_with(1, 8);
	put(9);
	EXPECT_THAT("one that was overwritten since the head was read is passed",
		    takes(&reader, SLOTS, 2, 7, &missed));
	EXPECT(missed.overrun == 1 && reader.tail == 8);
}

static void a_writer_that_is_not_finished_is_waited_for(void)
{
	struct ring_reader reader = ring_with(1, 3);
	struct ring_missed missed;
	uint64_t batch[SLOTS][WORDS];

	slots[1][0] = RING_BUSY | 2;
	EXPECT(takes(&reader, SLOTS, 1, 1, &missed));
	EXPECT(missed.busy == 0 && reader.tail == 1 && reader.stuck_ns == 5 * MS);
	EXPECT_EQUAL(ring_reader_take(&reader, 1005 * MS - 1, false, batch[0], SLOTS, &missed), 0);
	EXPECT_THAT("for almost a second", missed.busy == 0 && reader.tail == 1);
	EXPECT_EQUAL(ring_reader_take(&reader, 1005 * MS, false, batch[0], SLOTS, &missed), 1);
	EXPECT_THAT("but no longer", missed.busy == 1 && batch[0][0] == 3 && reader.stuck_ns == 0);

	reader = ring_with(1, 4);
	slots[0][0] = 0;
	EXPECT_THAT("not for half a lap", takes(&reader, SLOTS, 2, 3, &missed) && missed.busy == 1);
	reader = ring_with(1, 7);
	reader.tail = 3;
	slots[3][0] = 0;
	EXPECT_THAT("which counts from there", takes(&reader, SLOTS, 5, 3, &missed));
	reader = ring_with(1, 6);
	reader.tail = 3;
	slots[3][0] = 0;
	EXPECT(takes(&reader, SLOTS, 0, 0, &missed) && missed.busy == 0);
	EXPECT_EQUAL(ring_reader_take(&reader, 6 * MS, true, batch[0], SLOTS, &missed), 2);
	EXPECT_THAT("nor at the end", missed.busy == 1 && batch[0][0] == 5 && reader.tail == 6);
}

static void the_rings_of_the_region(void)
{
	struct ring_reader ops = ring_reader_of_ops(), details = ring_reader_of_details();

	EXPECT(ops.slots == (void *)recorder.region.ring && ops.words == OP_RECORD_WORDS);
	EXPECT(ops.count == recorder.region.ring_count && ops.tail == 0);
	EXPECT(details.count == recorder.region.detail_count && details.words == OP_DETAIL_WORDS);
}

static void sweeps_are_rare(void)
{
	uint64_t last = 1000 * MS;

	own_thread_sweep(&last, 1200 * MS);
	EXPECT_EQUAL(last, 1000 * MS);
	own_thread_sweep(&last, 1200 * MS + 1);
	EXPECT_EQUAL(last, 1200 * MS + 1);
}

/* Waits for the condition: on a busy machine a thread may need seconds to start. */
static bool beats_again(uint64_t since)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < 60000; i++) {
		if (load_relaxed(&recorder.region.header->alive_ns) > since)
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static void the_heart_beats(void)
{
	uint64_t *alive = &recorder.region.header->alive_ns, first;

	EXPECT_EQUAL(own_thread_heartbeat(2 * MS), OK);
	EXPECT(beats_again(0));
	first = load_relaxed(alive);
	EXPECT_THAT("more than once", beats_again(first));
	EXPECT(load_relaxed(alive) <= recorder_now());
}

int main(void)
{
	void *context;

	play_setup("flight");
	context = play_init(1, 1, 2, 0);
	records_come_in_order();
	overwritten_ones_are_counted();
	a_writer_that_is_not_finished_is_waited_for();
	the_rings_of_the_region();
	sweeps_are_rare();
	the_heart_beats();
	ncclProfiler_v5.finalize(context);
	return tap_done();
}
