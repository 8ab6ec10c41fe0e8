/* When GPU times would help: a communicator differs from its own past. */
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

/* `count` scans, `rate` calls of each rank before each; NCCL reports no completions. */
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
	EXPECT_THAT("a job that makes progress is in no doubt", doubt() == LIVE_NO_DOUBT);
	play(3, 0, false);
	EXPECT_THAT("nor in a short pause", doubt() == LIVE_NO_DOUBT);
	play(4, 0, false);
	EXPECT_THAT("one without calls may hang", doubt() == LIVE_DOUBT_HANG);
	EXPECT_THAT("with the duration", figure >= 5 && figure < 9);
	stage_release(&stage);
	begin();
	play(5, 20, false);
	play(30, 0, false);
	EXPECT_THAT("with too little history, normal is unknown", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
}

/* A launch that is timed is open until the recorder has asked the GPU. If it did, the doctor judges. */
static void test_timed_launch(void)
{
	for (int is_asked = 0; is_asked < 2; is_asked++) {
		begin();
		for (size_t p = 0; p < 2; p++) {
			struct recording_flight *flight = &stage.hand.list[p]->flights[0];

			flight->open_children = 1;
			flight->op.flags = OP_FLAG_CUDA_EVENT | (is_asked ? OP_FLAG_SEEN_OPEN : 0);
		}
		play(15, 20, false);
		play(7, 0, false);
		EXPECT(stage.live.seats[0].oldest != NULL);
		EXPECT_THAT("only one that nobody asked for is in doubt",
			    doubt() == (is_asked ? LIVE_NO_DOUBT : LIVE_DOUBT_HANG));
		stage_release(&stage);
	}
}

/* A job that saves for some seconds repeatedly. */
static void test_usual_pauses(void)
{
	begin();
	for (int i = 0; i < 4; i++) {
		play(5, 20, false);
		play(7, 0, false);
	}
	EXPECT_THAT("a pause as before is normal", doubt() == LIVE_NO_DOUBT);
	play(25, 0, false);
	EXPECT_THAT("a much longer one is not", doubt() == LIVE_DOUBT_HANG);
	stage_release(&stage);
}

static void test_slow(void)
{
	begin();
	play(121, 20, false);
	EXPECT_THAT("at its usual rate it is in no doubt", doubt() == LIVE_NO_DOUBT);
	play(30, 10, false);
	EXPECT_THAT("at half the rate, untimed, it may be slow", doubt() == LIVE_DOUBT_SLOW);
	EXPECT_THAT("with the ratio", figure > 1.9 && figure < 2.1);
	stage_release(&stage);
	begin();
	play(121, 20, true);
	play(30, 10, true);
	EXPECT_THAT("timed operations can be judged directly", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
	begin();
	play(31, 10, false);
	play(90, 20, false);
	play(30, 10, false);
	EXPECT_THAT("one that has been as slow before is unchanged", doubt() == LIVE_NO_DOUBT);
	stage_release(&stage);
}

int main(void)
{
	test_hang();
	test_timed_launch();
	test_usual_pauses();
	test_slow();
	expected_compare(&stage_text, "tests/unit/doctor/expected/live_doubt.txt");
	return tap_done();
}
