/*
 * Hangs inside a node, where neither kernels nor transfers are reported: what CUDA events around some launches show. Each rank
 * of a scene is a line of letters, one a collective: the first call on the left.
 *
 *	D  timed, over           r  timed, its GPU has reached it     n  timed, its GPU has not reached it
 *	?  timed, not asked yet  u  launched, not timed               i  called, not launched
 */
#include "common/attributes.h"
#include "doctor/doctor.h"
#include "tests/tap.h"
#include "tests/unit/doctor/hang_stage.h"

enum { CALLS_AND_LAUNCHES = 0x1f1f }; /* comm_info.mask: no kernel channels */

static struct hang_stage stage;

static void begin(int ranks)
{
	stage_begin(&stage, ranks, ranks);
	for (int i = 0; i < ranks; i++) {
		stage_rank(&stage, i)->comms[0].info.flags = 0;
		stage_rank(&stage, i)->comms[0].info.mask = CALLS_AND_LAUNCHES;
		stage_rank(&stage, i)->comms[0].info.nnodes = 1;
		stage_rank(&stage, i)->times_read_ns = NOW_NS - SECOND / 10;
	}
}

static struct recording_flight *launch(int rank, int comm, uint8_t function, uint64_t match,
				       char how, uint64_t ago_ns)
{
	struct recording_flight *flight = stage_call(&stage, rank, comm, function, match,
						     how == 'D'	  ? OP_DONE
						     : how == 'i' ? OP_ISSUED
								  : OP_LAUNCHED,
						     ago_ns);
	struct op_record *op = &flight->op;

	op->kernels_started = 0;
	op->stream = 0x7000;
	flight->started[0] = flight->stopped[0] = 0;
	if (how == 'u' || how == 'i')
		return flight;
	op->flags = OP_FLAG_CUDA_EVENT | (how == 'r' || how == 'n' ? OP_FLAG_SEEN_OPEN : 0);
	flight->open_children = how != 'D';
	if (how == 'r')
		op->state = OP_RUNNING;
	if (how == 'r' || how == 'D')
		op->active_ns = op->gpu_start_ns = NOW_NS - ago_ns + 1000;
	if (how == 'D')
		op->gpu_stop_ns = op->done_ns;
	return flight;
}

/* The collectives of a rank, a second apart, the last of them `ago_s` ago. */
static void calls(int rank, const char *line, uint64_t ago_s)
{
	size_t count = strlen(line);

	for (size_t i = 0; i < count; i++)
		launch(rank, 1, OP_ALL_REDUCE, i + 1, line[i], (ago_s + count - 1 - i) * SECOND);
}

/* Eight ranks: rank 3 has called this, the others that. */
static void eight_for(const char *rank_3, const char *others, uint64_t ago_s)
{
	begin(8);
	for (int i = 0; i < 8; i++)
		calls(i, i == 3 ? rank_3 : others, ago_s);
}

static void eight(const char *rank_3, const char *others)
{
	eight_for(rank_3, others, 60);
}

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

static void test_not_reached(void)
{
	eight("DDn", "DDr");
	EXPECT_THAT("a GPU that has not reached what all others are in",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(first()->victims == 7 && first()->number == 3 && first()->confidence >= 0.9);
	EXPECT(stage_has_line(&first()->evidence, "the GPUs of 7 other ranks have reached it"));
	EXPECT_THAT("with what it finished last",
		    stage_has_line(&first()->evidence, "known to have finished is #2"));
	EXPECT(first()->missing.count == 0);
	stage_end(&stage);

	eight("Dnuu", "Druu");
	EXPECT_THAT("hosts that ran ahead of their GPUs change nothing",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(first()->number == 2);
	stage_end(&stage);

	eight("Duun", "Duur");
	EXPECT_THAT("it may be in one that was not timed",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(stage_has_line(&first()->missing, "2 launches from #2 to #3 were not timed"));
	EXPECT(stage_has_line(&first()->evidence, "known to have finished is #1"));
	stage_end(&stage);

	eight("uun", "uur");
	EXPECT_THAT("or nothing before was timed", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(!stage_has_line(&first()->evidence, "known to have finished"));
	stage_end(&stage);

	begin(8);
	for (int i = 0; i < 8; i++)
		calls(i, i == 3 || i == 5 ? "Dn" : "Dr", 60);
	EXPECT_THAT("two of them", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(stage_has_line(&first()->evidence, "Affected: 2 ranks (3, 5)"));
	stage_end(&stage);
}

static void test_stuck(void)
{
	eight("DDr", "DDr");
	EXPECT_THAT("all GPUs are in it: which of them does not end is not visible",
		    stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->evidence, "The GPUs of 8 ranks have reached it"));
	EXPECT(first()->confidence < 0.5 && first()->missing.count == 0);
	stage_end(&stage);

	eight("DDr", "DDD");
	EXPECT_THAT("all others have finished it", stage_only(&stage, VERDICT_GPU_STUCK, 3));
	EXPECT(stage_has_line(&first()->evidence, "all other ranks have finished it"));
	stage_end(&stage);

	eight("DDru", "DDDr");
	EXPECT_THAT("and are in the next one", stage_only(&stage, VERDICT_GPU_STUCK, 3));
	EXPECT(first()->number == 3);
	stage_end(&stage);

	eight("DDru", "DDur");
	EXPECT_THAT("what was not timed is over if a later launch of its stream was reached",
		    stage_only(&stage, VERDICT_GPU_STUCK, 3));
	stage_end(&stage);

	eight("DDr", "DDu");
	EXPECT_THAT("of the others nothing is known", stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->missing, "0-2, 4-7"));
	EXPECT(stage_has_line(&first()->evidence, "1 of 8 ranks of world has been in"));
	stage_end(&stage);

	begin(8);
	for (int i = 0; i < 8; i++)
		calls(i, i == 3 || i == 5 ? "DDr" : "DDD", 60);
	EXPECT_THAT("two that are in it may wait for each other",
		    stage_only(&stage, VERDICT_STUCK, -1));
	stage_end(&stage);
}

static void test_not_called(void)
{
	eight("DD", "DDr");
	EXPECT_THAT("a rank that has not called what all others are in",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT_THAT("that they are in it is known", first()->confidence > 0.9);
	stage_end(&stage);

	eight("DDu", "DDun");
	EXPECT_THAT("the others have not reached it either: less likely",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT(first()->confidence < 0.7);
	EXPECT(stage_has_line(&first()->missing, "No GPU has reached it yet"));
	stage_end(&stage);

	eight("DDi", "DDr");
	EXPECT_THAT("a rank on which NCCL has not launched it",
		    stage_only(&stage, VERDICT_NOT_LAUNCHED, 3));
	stage_end(&stage);
}

/* Two launches before the hang was the last one that was timed. */
static void test_timed_before(void)
{
	eight("DDDuu", "DDDuu");
	EXPECT_THAT("no evidence of the last two: nobody is blamed", stage_nobody(&stage));
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT_THAT("but how far all GPUs have come is known",
		    stage_has_line(&first()->evidence,
				   "have finished collective #3; they do not show the end"));
	stage_end(&stage);

	eight("DDDuu", "DDuuu");
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT_THAT("the least of all ranks counts",
		    stage_has_line(&first()->evidence, "have finished collective #2"));
	stage_end(&stage);

	eight("uuuu", "uuuu");
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT(!stage_has_line(&first()->evidence, "CUDA events"));
	stage_end(&stage);
}

/* A timed launch that no GPU has reached: all may compute. */
static void test_none_reached(void)
{
	eight_for("DDun", "DDun", 40);
	EXPECT_THAT("no GPU has reached it: nobody is behind the others", stage_nobody(&stage));
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT(stage_has_line(&first()->evidence, "somewhere between #2 and #4"));
	stage_end(&stage);

	eight_for("DDDn", "DDDn", 40);
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT_THAT("nothing is between them", !stage_has_line(&first()->evidence, "somewhere"));
	stage_end(&stage);

	eight_for("DDDn", "DDDu", 40);
	EXPECT_THAT("one has not, and of the others nothing is known", stage_nobody(&stage));
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT(stage_has_line(&first()->evidence, "no GPU is known to have started it"));
	stage_end(&stage);

	eight_for("DDDu", "DDDn", 40);
	EXPECT_THAT("nor of one of them", stage_nobody(&stage));
	stage_end(&stage);

	eight("DDDn", "DDDn");
	EXPECT_THAT("for much longer than any pause before: it hangs",
		    stage_only(&stage, VERDICT_STUCK, -1));
	stage_end(&stage);
}

static void test_evidence_missing(void)
{
	eight("DDu", "DDr");
	EXPECT_THAT("of one GPU nothing is known: it is not blamed, nor is any other",
		    stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->missing, "Whether the GPU of rank 3 has reached it"));
	stage_end(&stage);

	eight("DD?", "DDr");
	EXPECT_THAT("it was not asked yet", stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->missing, "Whether the GPU of rank 3 has reached it"));
	stage_end(&stage);

	begin(8);
	for (int i = 0; i < 8; i++)
		calls(i, i == 3 ? "DDu" : i == 5 ? "DDn" : "DDr", 60);
	EXPECT_THAT("another one is behind for certain",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 5));
	EXPECT(first()->confidence < 0.8);
	EXPECT(stage_has_line(&first()->missing, "Whether the GPU of rank 3 has reached it"));
	stage_end(&stage);

	/* Ranks with different shares: rank 3 times a later launch only. */
	eight("DDun", "DDru");
	EXPECT_THAT("it may be in the one that was not timed there",
		    stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->missing, "Whether the GPU of rank 3 has reached it"));
	EXPECT(first()->number == 3);
	stage_end(&stage);
}

/* The driver has not answered the recorder for minutes: what it knew then has no meaning now. */
static void test_silent_gpu(void)
{
	eight("DDn", "DDr");
	stage_rank(&stage, 3)->times_read_ns = NOW_NS - 50 * SECOND;
	EXPECT_THAT("a GPU that was not asked since is not blamed",
		    stage_only(&stage, VERDICT_STUCK, -1));
	EXPECT(stage_has_line(&first()->missing,
			      "GPU state of rank 3 was last known 50.0 s ago (at"));
	EXPECT(stage_has_line(&first()->missing, "Whether the GPU of rank 3 has reached it"));
	stage_end(&stage);

	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->times_read_ns = NOW_NS - 50 * SECOND;
	EXPECT_THAT("nothing is known of any", stage_nobody(&stage));
	stage.options.has_unjudged = true;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT(stage_has_line(&first()->missing,
			      "GPU state of ranks 0-7 was last known 50.0 s ago"));
	stage_end(&stage);

	eight("DDu", "DDu");
	stage.options.has_unjudged = true;
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->times_read_ns = NOW_NS - 50 * SECOND;
	EXPECT(stage_only(&stage, VERDICT_BLIND, -1));
	EXPECT_THAT("a recorder that waits for no answer asks nothing",
		    !stage_has_line(&first()->missing, "was last known"));
	stage_end(&stage);

	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->times_read_ns = NOW_NS - 4 * SECOND;
	EXPECT_THAT("a few seconds are usual", stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	stage_end(&stage);

	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->times_read_ns = 0;
	EXPECT_THAT("a recording that does not say when is of its end",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	EXPECT(!stage_has_line(&first()->evidence, "last asked ("));
	stage_end(&stage);
}

/* Nobody is blamed while anything goes on. */
static void test_moving(void)
{
	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		launch(i, 1, OP_ALL_REDUCE, 4, 'D', 50 * SECOND);
	EXPECT_THAT("a later one is over, whatever this one looked like", stage_nobody(&stage));
	stage_end(&stage);

	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		launch(i, 1, OP_ALL_REDUCE, 4, 'u', 3 * SECOND);
	EXPECT_THAT("calls go on", stage_nobody(&stage));
	stage_end(&stage);

	eight("DDr", "DDr");
	stage_rank(&stage, 3)->flights[2].op.active_ns = NOW_NS - 3 * SECOND;
	EXPECT_THAT("the last GPU has just come", stage_nobody(&stage));
	stage_end(&stage);

	begin(8);
	for (int i = 0; i < 8; i++)
		calls(i, i == 3 ? "DDn" : "DDr", 10);
	EXPECT_THAT("not for long enough", stage_nobody(&stage));
	stage_end(&stage);

	/* Each has one that is open, and a later one of another stream that is not. */
	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++)
		launch(i, 1, OP_ALL_REDUCE, 4, 'r', 50 * SECOND)->op.stream = 0x8000;
	EXPECT_THAT("another stream proves nothing",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	stage_end(&stage);
}

static void test_gone(void)
{
	eight("DDn", "DDr");
	stage_kill(&stage, 3, 30 * SECOND);
	stage_rank(&stage, 3)->times_read_ns = NOW_NS - 30 * SECOND;
	EXPECT_THAT("a dead process is the cause", stage_only(&stage, VERDICT_PROCESS_DEAD, 3));
	stage_end(&stage);

	eight("DDn", "DDr");
	for (int i = 0; i < 8; i++) {
		stage_kill(&stage, i, 0);
		stage_rank(&stage, i)->has_counts = true;
	}
	EXPECT_THAT("a job that was killed in a hang has the verdict that it had before",
		    stage_only(&stage, VERDICT_GPU_NOT_REACHED, 3));
	stage_end(&stage);

	eight("DDn", "DDr");
	stage_rank(&stage, 3)->process_state = 'T';
	stage_rank(&stage, 3)->times_read_ns = NOW_NS - 50 * SECOND;
	EXPECT_THAT("a stopped process is the cause, too",
		    stage_only(&stage, VERDICT_PROCESS_STOPPED, 3));
	EXPECT_THAT("and why its GPU is not asked",
		    !stage_has_line(&first()->missing, "was last known"));
	stage_end(&stage);
}

/* Sends and Recvs, of which each end has its own launch. */
static void test_pairs(void)
{
	static const struct {
		char send, receive;
		enum verdict_class class;
		int64_t rank;
	} cases[] = { { 'r', 'n', VERDICT_GPU_NOT_REACHED, 1 },
		      { 'n', 'r', VERDICT_GPU_NOT_REACHED, 0 },
		      { 'r', 'r', VERDICT_STUCK, -1 } };

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin(4);
		for (int rank = 0; rank < 4; rank++)
			calls(rank, "D", 70);
		launch(0, 1, OP_SEND, 1, cases[i].send, 60 * SECOND)->op.peer = 1;
		launch(1, 1, OP_RECV, 1, cases[i].receive, 60 * SECOND)->op.peer = 0;
		EXPECT_THAT("a Send and its Recv",
			    stage_only(&stage, cases[i].class, cases[i].rank));
		stage_end(&stage);
	}
}

/* Two communicators: what holds a GPU up may be on the other one. */
static void test_two_comms(void)
{
	static const struct {
		const char *of_3; /* in world and in tp */
		const char *of_2;
		enum verdict_class class;
		int64_t rank;
	} cases[] = {
		{ "nr", "rr", VERDICT_STUCK, -1 },
		{ "nr", "rn", VERDICT_DEADLOCK, 3 },
		{ "nr", "r ", VERDICT_DEADLOCK, 3 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin(4);
		stage_comm(&stage, 0x200, "tp", 2, 2, 1, 2);
		for (int rank = 0; rank < 4; rank++) {
			const char *how = rank == 3   ? cases[i].of_3
					  : rank == 2 ? cases[i].of_2
						      : "r ";

			calls(rank, "D", 70);
			if (rank >= 2) {
				stage_rank(&stage, rank)->comms[1].info.flags = 0;
				stage_rank(&stage, rank)->comms[1].info.mask = CALLS_AND_LAUNCHES;
			}
			if (how[1] != ' ')
				launch(rank, 2, OP_ALL_GATHER, 1, how[1],
				       (rank == 3 ? 61 : 59) * SECOND)
					->op.stream = 0x8000;
			launch(rank, 1, OP_ALL_REDUCE, 2, how[0], 60 * SECOND);
		}
		EXPECT_THAT("what a GPU is in on another communicator explains more",
			    stage_only(&stage, cases[i].class, cases[i].rank));
		stage_end(&stage);
	}
}

int main(void)
{
	test_not_reached();
	test_stuck();
	test_not_called();
	test_timed_before();
	test_none_reached();
	test_evidence_missing();
	test_silent_gpu();
	test_moving();
	test_gone();
	test_pairs();
	test_two_comms();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_launches.txt");
	return tap_done();
}
