/* When GPU times would help: by how a communicator differs from its own past. */
#include "doctor/live.h"

#include "common/op_layout.h"
#include "tests/unit/doctor/live_stage.h"
#include "tests/tap.h"

static struct stage stage;
static uint64_t calls;
static double figure;

static enum live_doubt doubt(void)
{
	return live_doubt(&stage.live, 0, &figure);
}

/* `count` looks, `rate` calls of each rank before each, of which NCCL shows no end. */
static void play(int count, uint64_t rate, bool is_timed)
{
	for (int i = 0; i < count; i++) {
		calls += rate;
		for (size_t p = 0; p < 2; p++) {
			struct recording_process *process = stage.hand.list[p];
			struct region_total *total =
				stage_total(process, 1, OP_ALL_REDUCE, calls, calls * 1000);
			struct op_record *op = &process->flights[0].op;

			total->timed = is_timed ? calls : 0;
			total->timed_bytes = is_timed ? total->bytes : 0;
			total->sum_ns = is_timed ? total->sum_ns : 0;
			if (rate > 0) {
				process->comms[0].counts.last_issue_ns =
					stage_clock(&stage) + SECOND;
				process->comms[0].counts.collectives = calls;
				op->number = op->match = calls;
				op->issue_ns = op->launch_ns = stage_clock(&stage) + SECOND;
			}
		}
		stage_look(&stage, SECOND);
	}
}

static void begin(void)
{
	stage_init(&stage);
	stage_world(&stage, 2, 2, "dp");
	calls = 0;
	for (size_t p = 0; p < 2; p++) {
		struct recording_process *process = stage.hand.list[p];
		struct op_record *op = &stage_enter(&stage, process, 1, OP_ALL_REDUCE, 1)->op;

		op->state = OP_LAUNCHED;
		op->active_ns = 0;
		op->kernels_started = 0;
		process->comms[0].info.flags = 0;
		process->comms[0].info.mask = 1;
	}
}

static void test_hang(void)
{
	begin();
	play(15, 20, false);
	EXPECT_THAT("a job that goes on is in no doubt", doubt() == LIVE_NO_DOUBT);
	play(3, 0, false);
	EXPECT_THAT("nor in a short pause", doubt() == LIVE_NO_DOUBT);
	play(4, 0, false);
	EXPECT_THAT("one that calls nothing any more may hang", doubt() == LIVE_DOUBT_HANG);
	EXPECT_THAT("for so long", figure >= 5 && figure < 9);
	stage_release(&stage);
	begin();
	play(5, 20, false);
	play(30, 0, false);
	EXPECT_THAT("with too little past, nobody knows what is usual", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
}

/* As one that saves for some seconds again and again. */
static void test_usual_pauses(void)
{
	begin();
	for (int i = 0; i < 4; i++) {
		play(5, 20, false);
		play(7, 0, false);
	}
	EXPECT_THAT("a pause as before is none", doubt() == LIVE_NO_DOUBT);
	play(25, 0, false);
	EXPECT_THAT("one that is much longer is one", doubt() == LIVE_DOUBT_HANG);
	stage_release(&stage);
}

static void test_slow(void)
{
	begin();
	play(121, 20, false);
	EXPECT_THAT("at its usual rate it is in no doubt", doubt() == LIVE_NO_DOUBT);
	play(30, 10, false);
	EXPECT_THAT("at half of it, not timed, it may be slow", doubt() == LIVE_DOUBT_SLOW);
	EXPECT_THAT("by so much", figure > 1.9 && figure < 2.1);
	stage_release(&stage);
	begin();
	play(121, 20, true);
	play(30, 10, true);
	EXPECT_THAT("what is timed can be judged as it is", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
	begin();
	play(31, 10, false);
	play(90, 20, false);
	play(30, 10, false);
	EXPECT_THAT("one that has been as slow before is as it was", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
}

int main(void)
{
	test_hang();
	test_usual_pauses();
	test_slow();
	return tap_done();
}
