/* Hangs inside a node without kernel events: an operation is called and launched, and then nothing is
 * recorded of it. */
#include "doctor/doctor.h"
#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

enum { CALLS_ALONE = 1 << 1 }; /* comm_info.mask: Coll events, no kernel channels */

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return stage.verdicts.count > 0 ? &stage.verdicts.list[0] : NULL;
}

static bool is_first(enum verdict_class class, int64_t rank)
{
	return first() != NULL && first()->class == class && first()->rank == rank;
}

static void make_blind(struct recording_comm *comm)
{
	comm->info.flags = 0;
	comm->info.mask = CALLS_ALONE;
	comm->info.interface = 4;
}

/* `count` ranks of one host. Each has called collectives `from` to `to` of a communicator, a second apart. */
static void begin(int ranks)
{
	stage_begin(&stage, ranks, ranks);
	stage.options.has_unjudged = true;
	for (int i = 0; i < ranks; i++)
		make_blind(&stage_rank(&stage, i)->comms[0]);
}

static void call(int rank, int comm, uint64_t from, uint64_t to, uint64_t last_ago_ns)
{
	for (uint64_t match = from; match <= to; match++)
		stage_call(&stage, rank, comm, OP_ALL_REDUCE, match, OP_LAUNCHED,
			   last_ago_ns + (to - match) * SECOND);
}

static void missing_rank(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, i == 2 ? 10 : 11, i == 2 ? 31 * SECOND : 30 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("the rank that has not made the others' call is named",
		    is_first(VERDICT_NEVER_ISSUED, 2) && first()->number == 11);
	EXPECT_THAT("with less confidence than with kernel events",
		    first()->confidence < 0.8 && first()->confidence > 0.7);
	EXPECT(stage_has_line(&first()->missing, "Kernel events were not recorded"));
	EXPECT(stage_has_line(&first()->missing, "outside NCCL"));
	stage_end(&stage);

	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, i == 2 ? 6 : 11, i == 2 ? 10 : 26, 30 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("however far the other hosts have run ahead",
		    is_first(VERDICT_NEVER_ISSUED, 2) && first()->number == 11);
	stage_end(&stage);

	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, i == 2 ? 10 : 11, 15 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("not before the time limit", stage.verdicts.count == 0);
	stage_end(&stage);
}

static void several_behind(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, i < 2 ? 10 : 11, 30 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("several ranks are one call behind: a GPU may hang in an earlier call",
		    is_first(VERDICT_BLIND, -1) && first()->is_unjudged);
	EXPECT(stage_has_line(&first()->evidence, "hosts run ahead"));
	stage_end(&stage);
}

static void slow_program(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		for (uint64_t match = 1; match <= (i == 2 ? 4 : 5); match++)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, match, OP_LAUNCHED,
				   25 * SECOND + (5 - match) * 15 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("a program with a call every 15 seconds: no rank is blamed",
		    is_first(VERDICT_BLIND, -1) && first()->is_unjudged &&
			    strcmp(first()->rule, "hang") == 0);
	EXPECT(stage_has_line(&first()->evidence, "pauses like this are common there"));
	stage_end(&stage);
}

/* What shows more next time depends on NCCL's release. */
static void advice_by_release(void)
{
	static const struct {
		uint8_t interface;
		const char *advice;
	} releases[] = {
		{ 0, "ringside record --times 30s" },
		{ 2, "NCCL 2.28 and later show whether kernels run" },
		{ 3, "ringside run --times kernel -- COMMAND" },
		{ 4, "ringside run --times kernel -- COMMAND" },
		{ 5, "ringside record --times 30s" },
		{ 7, "ringside record --times 30s" },
	};

	for (size_t r = 0; r < ARRAY_LENGTH(releases); r++) {
		begin(4);
		for (int i = 0; i < 4; i++) {
			stage_rank(&stage, i)->comms[0].info.interface = releases[r].interface;
			call(i, 1, 6, 11, 30 * SECOND);
		}
		stage_find(&stage);
		EXPECT_THAT(releases[r].advice,
			    first() && stage_has_line(&first()->advice, releases[r].advice));
		stage_end(&stage);
	}
}

static void all_called(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, 11, 30 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("all ranks made the same calls: a hang is not judged",
		    is_first(VERDICT_BLIND, -1) && first()->is_unjudged);
	EXPECT_THAT("which is a warning", first()->severity == VERDICT_WARNING);
	EXPECT(stage_has_line(&first()->evidence, "the same calls"));
	EXPECT(stage_has_line(&first()->advice, "ringside run --times kernel"));
	stage_end(&stage);

	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, 11, 30 * SECOND);
	stage.options.has_unjudged = false;
	stage_find(&stage);
	EXPECT_THAT("not reported unless asked for", stage.verdicts.count == 0);
	stage_end(&stage);

	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, 11, 30 * SECOND);
	stage_rank(&stage, 1)->process_state = 'T';
	stage_find(&stage);
	EXPECT_THAT("a stopped process explains it",
		    is_first(VERDICT_PROCESS_STOPPED, 1) && stage.verdicts.count == 1);
	stage_end(&stage);
}

static void two_comms(void)
{
	int second;

	begin(4);
	second = stage_comm(&stage, 0x200, "second", 0, 4, 1, 4);
	for (int i = 0; i < 4; i++) {
		make_blind(&stage_rank(&stage, i)->comms[second - 1]);
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 5, OP_LAUNCHED,
			   (i == 3 ? 31 : 32) * SECOND);
		stage_call(&stage, i, second, OP_ALL_GATHER, 7, OP_LAUNCHED,
			   (i == 3 ? 32 : 31) * SECOND);
	}
	stage_find(&stage);
	EXPECT_THAT("the same calls in a different order on two communicators: a deadlock",
		    first() != NULL && first()->class == VERDICT_DEADLOCK &&
			    (first()->rank == 3 || first()->peer == 3));
	EXPECT(stage_has_line(&first()->evidence, "before AllGather #7 of second"));
	EXPECT(stage_has_line(&first()->evidence, "before AllReduce #5 of world"));
	EXPECT_THAT("at most likely: streams may run in parallel", first()->confidence < 0.8);
	stage_end(&stage);
}

static void half_of_a_pair(void)
{
	begin(2);
	for (int i = 0; i < 2; i++)
		stage_call(&stage, i, 1, i ? OP_RECV : OP_SEND, 4, OP_LAUNCHED, 31 * SECOND)
			->op.peer = 1 - i;
	stage_call(&stage, 0, 1, OP_SEND, 5, OP_LAUNCHED, 30 * SECOND)->op.peer = 1;
	stage_find(&stage);
	EXPECT_THAT("a Send whose Recv was not called", is_first(VERDICT_NEVER_ISSUED, 1));
	stage_end(&stage);
}

/* Over the network: the peer has made many calls, and its half is no longer among the recorded ones. */
static void half_not_kept(void)
{
	struct recording_flight *flight;

	begin(2);
	for (int i = 0; i < 2; i++)
		stage_rank(&stage, i)->comms[0].info.flags = COMM_FLAG_SEES_PROXIES;
	flight = stage_call(&stage, 0, 1, OP_SEND, 5, OP_RUNNING, 30 * SECOND);
	flight->op.peer = 1;
	flight->op.kernels_started = 0;
	stage_proxy(flight, true, 1, 0, STEP_SEND_GPU, 30 * SECOND)->proxy.done = 0;
	stage_call(&stage, 1, 1, OP_SEND, 9, OP_DONE, 31 * SECOND)->op.peer = 0;
	stage_rank(&stage, 1)->comms[0].counts.issued = 50;
	stage_find(&stage);
	EXPECT_THAT("a half that is no longer recorded may be over: the peer is not blamed",
		    first() != NULL && first()->class != VERDICT_NEVER_ISSUED);
	stage_end(&stage);
}

/* Kernel events were on for some operations of a communicator, but not for these. */
static void sampled(void)
{
	begin(4);
	for (int i = 0; i < 4; i++) {
		stage_rank(&stage, i)->comms[0].info.flags = COMM_FLAG_SEES_KERNELS;
		call(i, 1, 6, 11, 30 * SECOND);
	}
	stage_find(&stage);
	EXPECT_THAT("kernels without events that did not start prove nothing",
		    is_first(VERDICT_BLIND, -1) && stage.verdicts.count == 1);
	stage_end(&stage);
}

static void different_calls(void)
{
	begin(4);
	for (int i = 0; i < 4; i++) {
		struct recording_flight *last;

		call(i, 1, 6, 10, 31 * SECOND);
		last = stage_call(&stage, i, 1, OP_ALL_REDUCE, 11, OP_LAUNCHED, 30 * SECOND);
		if (i == 3)
			stage_diverge(&stage, i, 1, last);
	}
	stage_find(&stage);
	EXPECT_THAT("ranks that called different operations", is_first(VERDICT_MISMATCH, 3));
	EXPECT_THAT("and are stuck", stage_has_line(&first()->evidence, "for 30.0 s"));
	stage_end(&stage);
}

static void gone_early(void)
{
	begin(4);
	for (int i = 0; i < 4; i++)
		call(i, 1, 6, 11, 2 * SECOND);
	stage_rank(&stage, 1)->process_state = 'T';
	stage_rank(&stage, 2)->life = RECORDING_KILLED;
	stage.is_numbered = true; /* they are reported in this order */
	stage_find(&stage);
	EXPECT_THAT("a stopped or dead process is reported before anything hangs",
		    stage.verdicts.count == 2);
	EXPECT(stage.verdicts.list[0].severity == VERDICT_WARNING &&
	       stage.verdicts.list[1].severity == VERDICT_WARNING);
	stage_end(&stage);
}

/* Kernel events are on: all ranks launched it, and no GPU has started it. */
static void none_started(void)
{
	stage_begin(&stage, 4, 4);
	stage.options.has_unjudged = true;
	for (int i = 0; i < 4; i++)
		call(i, 1, 11, 11, 100 * SECOND);
	stage_find(&stage);
	EXPECT_THAT("no kernel starts anywhere: not judged",
		    is_first(VERDICT_BLIND, -1) && first()->is_unjudged);
	EXPECT(stage_has_line(&first()->evidence, "no GPU has started it"));
	stage_end(&stage);

	stage_begin(&stage, 4, 4);
	for (int i = 0; i < 4; i++) {
		for (int number = 6; number <= 10; number++)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, (uint64_t)number, OP_DONE,
				   (uint64_t)(111 - number) * SECOND);
		call(i, 1, 11, 11, 100 * SECOND);
	}
	stage_find(&stage);
	EXPECT_THAT("much longer than calls were apart: stuck, cause unknown, also for an agent",
		    is_first(VERDICT_STUCK, -1) && first()->severity == VERDICT_ERROR &&
			    first()->confidence == 0.5);
	EXPECT_THAT("nobody is named", first()->host[0] == '\0' && first()->pid == -1);
	EXPECT(stage_has_line(&first()->evidence, "no GPU has started it"));
	EXPECT(scene_answer(NULL, &stage.verdicts) == SCENE_STUCK);
	stage_end(&stage);
}

int main(void)
{
	missing_rank();
	several_behind();
	slow_program();
	all_called();
	advice_by_release();
	two_comms();
	half_of_a_pair();
	half_not_kept();
	sampled();
	different_calls();
	gone_early();
	none_started();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_blind.txt");
	return tap_done();
}
