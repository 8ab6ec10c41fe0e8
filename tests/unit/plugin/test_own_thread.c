/* What the plugin's own threads share: reading a ring, sweeping, the heartbeat. */
#include "plugin/threads.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
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
	reader = ring_with(2, 5);
	slots[0][0] = 9;
	EXPECT_THAT("even if the head is far from a lap", takes(&reader, SLOTS, 2, 4, &missed));
	EXPECT(missed.overrun == 1 && reader.tail == 5);
	reader = ring_with(9, 16);
	reader.tail = 7;
	EXPECT_THAT("as many as were written since", takes(&reader, SLOTS, 9, 8, &missed));
	EXPECT(missed.overrun == 1 && reader.tail == 16);
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

/* What is over for 200 ms leaves the table; what runs, or has just ended, stays. */
static void what_lingers_is_swept(void *context)
{
	struct play_op op = play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	struct handle handle = handle_decode(recorder.salt, op.task);
	struct region_live *live = &recorder.region.live[handle_slot(handle)];
	void *kernel = play_kernel_start(context, op.task, 0, play_gpu_now());
	uint64_t last = 0, ring = recorder.region.header->ring_head, done;

	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	live->op.done_ns = 1;
	own_thread_sweep(&last, recorder_now() + 1000 * MS);
	EXPECT_THAT("not while it runs, nor before it does",
		    recorder.region.header->ring_head == ring);
	play_kernel_stop(kernel, play_gpu_now());
	done = live->op.done_ns;
	last = 0;
	own_thread_sweep(&last, done + 200 * MS);
	EXPECT_THAT("not before 200 ms", recorder.region.header->ring_head == ring);
	last = 0;
	own_thread_sweep(&last, done + 200 * MS + 1);
	EXPECT_THAT("then it is recorded", recorder.region.header->ring_head == ring + 1);
	EXPECT(play_record(1)->done_ns == done && !region_slot_is_used(live->word));
}

/* ---- work in a thread of its own --------------------------------------------------------------- */

struct work {
	sem_t begin, dropped;
	int runs, drops;
};

static void run_at_once(void *data)
{
	((struct work *)data)->runs++;
}

static void run_when_told(void *data)
{
	struct work *work = data;

	while (sem_wait(&work->begin) == -1)
		;
	work->runs++;
}

static void drop(void *data)
{
	struct work *work = data;

	work->drops++;
	sem_post(&work->dropped);
}

static void work_is_done_or_dropped(void)
{
	static const struct own_work quick = { "quick", run_at_once, drop },
				     stuck = { "stuck", run_when_told, drop };
	struct work work = { .runs = 0 };

	sem_init(&work.begin, 0, 0);
	sem_init(&work.dropped, 0, 0);
	EXPECT_THAT("what is done belongs to the caller",
		    own_thread_try(&quick, &work, 60000) && work.runs == 1 && work.drops == 0);
	EXPECT_THAT("what is not done in time is left", !own_thread_try(&stuck, &work, 10));
	EXPECT(work.runs == 1 && work.drops == 0);
	sem_post(&work.begin);
	while (sem_wait(&work.dropped) == -1)
		;
	EXPECT_THAT("and dropped, once, when it is over", work.runs == 2 && work.drops == 1);
}

/* ---- passes ------------------------------------------------------------------------------------ */

static struct own_passes passes = OWN_PASSES_INIT;
static uint32_t is_ended, passes_left;

/* Makes this many passes, then none. */
static void *make_passes(void *unused)
{
	bool goes_on = true;

	while (goes_on && passes_left-- > 0)
		goes_on = own_passes_rest(&passes, true);
	while (goes_on) { /* until it is over */
		pthread_mutex_lock(&passes.account);
		if (!passes.is_over)
			pthread_cond_wait(&passes.changed, &passes.account);
		goes_on = !passes.is_over;
		pthread_mutex_unlock(&passes.account);
	}
	pthread_mutex_lock(&passes.account);
	own_passes_end(&passes);
	pthread_mutex_unlock(&passes.account);
	store_release(&is_ended, 1);
	return unused;
}

static bool has_answered(void)
{
	bool answer;

	pthread_mutex_lock(&passes.account);
	answer = passes.count >= 2 && !passes.is_mute;
	pthread_mutex_unlock(&passes.account);
	return answer;
}

static void passes_are_asked_for(void)
{
	uint64_t before;

	passes_left = UINT32_MAX;
	EXPECT_EQUAL(own_thread_start(make_passes, NULL, &passes.changed), OK);
	/* On a busy machine an answer may come too late, but asking again helps. */
	do
		own_passes_ask(&passes);
	while (!has_answered());
	EXPECT(!own_passes_are_abandoned(&passes));
	pthread_mutex_lock(&passes.account);
	EXPECT_THAT("it ends when asked", own_passes_finish(&passes));
	EXPECT(passes.is_over && passes.is_finished && !passes.is_abandoned);
	pthread_mutex_unlock(&passes.account);
	while (!load_acquire(&is_ended))
		sched_yield();
	EXPECT_THAT("nothing goes on after that", !own_passes_rest(&passes, false));
	before = passes.count;
	own_passes_ask(&passes);
	EXPECT_THAT("one that does not answer is mute", passes.is_mute && passes.count == before);
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
	what_lingers_is_swept(context);
	work_is_done_or_dropped();
	passes_are_asked_for();
	the_heart_beats();
	ncclProfiler_v5.finalize(context);
	return tap_done();
}
