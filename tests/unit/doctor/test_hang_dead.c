/* NCCL waiting inside the call itself, and recordings of dead jobs. */

#include "format/region_layout.h"
#include "tests/unit/doctor/hang_stage.h"
#include "tests/tap.h"

static struct hang_stage stage;

static const struct verdict *first(void)
{
	return &stage.verdicts.list[0];
}

/* All ranks but `missing` called AllReduce #2 of world, and NCCL launched it on none of them. */
static void all_called(int count, int missing, uint64_t ago_ns)
{
	stage_begin(&stage, count, 4);
	for (int i = 0; i < count; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, ago_ns + SECOND);
		if (i != missing)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_ISSUED, ago_ns);
	}
}

static void test_connecting(void)
{
	all_called(4, 3, 60 * SECOND);
	EXPECT_THAT("the others wait in the call: the rank that has not called is named",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	EXPECT_EQUAL(first()->victims, 3);
	EXPECT_THAT(
		"and the evidence shows that they only called it",
		stage_has_line(
			&first()->evidence,
			"3 of 4 ranks of world have been waiting in their call to AllReduce #2"));
	stage_end(&stage);

	all_called(4, 3, 15 * SECOND);
	EXPECT_THAT("not before the time limit", stage_nobody(&stage));
	stage_end(&stage);

	all_called(8, -1, 60 * SECOND);
	EXPECT_THAT("all ranks called it: one verdict that names no rank",
		    stage_only(&stage, VERDICT_NOT_LAUNCHED, -1));
	EXPECT_EQUAL(first()->victims, 8);
	EXPECT_THAT("the title",
		    strcmp(first()->title, "all 8 ranks have called AllReduce #2 of world but NCCL "
					   "has not launched it on any rank") == 0);
	EXPECT_THAT("without advice about GPUs", !stage_has_line(&first()->advice, "nvidia-smi"));
	EXPECT_THAT("with low confidence", first()->confidence < 0.7);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->comms[0].info.nranks = 9;
	EXPECT_THAT("not if a rank is invisible", stage_only(&stage, VERDICT_UNSEEN, -1));
	stage_end(&stage);

	/* GPUs compute before it, and one rank does not return from the call. */
	all_called(4, -1, 60 * SECOND);
	for (int i = 0; i < 4; i++)
		stage_rank(&stage, i)->flights[1].op.state = i == 2 ? OP_ISSUED : OP_LAUNCHED;
	EXPECT_THAT("a rank that has not launched what others have",
		    stage_only(&stage, VERDICT_NOT_LAUNCHED, 2));
	stage_end(&stage);
}

/* Rank 1 called a Recv on a communicator with ranks 0 and 2; NCCL does not report the peer. */
static void recv_alone(void)
{
	int pp;

	stage_begin(&stage, 4, 2);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
	pp = stage_comm(&stage, 0x200, "pp", 0, 3, 1, 3);
	stage_call(&stage, 1, pp, OP_RECV, 1, OP_ISSUED, 60 * SECOND);
}

static void test_recv(void)
{
	recv_alone();
	EXPECT_THAT("a Recv that waits for its peer to connect",
		    stage_only(&stage, VERDICT_NOT_LAUNCHED, 1));
	EXPECT_THAT("the evidence explains why",
		    stage_has_line(&first()->evidence, "NCCL connects first"));
	EXPECT_THAT("with the possible peers",
		    stage_has_line(&first()->evidence, "Ranks of pp in no operation: 0, 2."));
	EXPECT_THAT("and the ranks to check",
		    stage_has_line(&first()->advice, "other ranks of pp") &&
			    !stage_has_line(&first()->advice, "nvidia-smi"));
	/* Both others wait as well: still one verdict. */
	stage_call(&stage, 0, 2, OP_RECV, 1, OP_ISSUED, 60 * SECOND);
	stage_call(&stage, 2, 2, OP_RECV, 1, OP_ISSUED, 60 * SECOND);
	EXPECT_THAT("several of them are one verdict", stage_only(&stage, VERDICT_NOT_LAUNCHED, 0));
	EXPECT_THAT("that lists them", stage_has_line(&first()->evidence, "3 ranks (0-2)"));
	stage_end(&stage);

	/* The others are in world, where rank 3 is missing, too: that comes first. */
	recv_alone();
	stage_call(&stage, 0, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 1, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
	stage_call(&stage, 2, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
	EXPECT_THAT("a known cause explains the unknown one",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 3));
	stage_end(&stage);
}

/* Its second call has been running for a second. */
static void stage_run(int rank)
{
	struct recording_flight *flight = &stage_rank(&stage, rank)->flights[1];

	flight->op.state = OP_RUNNING;
	flight->op.kernels_started = 2;
	flight->open_children = 1;
	flight->op.active_ns = NOW_NS - SECOND;
}

/* A region left behind by a killed process. */
static void kill_all(struct region *regions, int count)
{
	for (int i = 0; i < count; i++) {
		stage_rank(&stage, i)->life = RECORDING_KILLED;
		stage_rank(&stage, i)->region = &regions[i];
	}
}

static void test_guess(void)
{
	struct region *regions = calloc(8, sizeof(*regions));

	if (regions == NULL)
		abort();
	all_called(8, 5, SECOND);
	for (int i = 0; i < 8; i++)
		if (i != 5)
			stage_run(i);
	kill_all(regions, 8);
	EXPECT_THAT("a dead job whose time of death is unknown",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("is a warning with low confidence",
		    first()->severity == VERDICT_WARNING && first()->confidence <= 0.4);
	EXPECT_THAT("the title says so",
		    strncmp(first()->title, "possible hang at exit: rank 5",
			    strlen("possible hang at exit: rank 5")) == 0 &&
			    stage_has_line(&first()->missing, "time of death is unknown"));
	EXPECT_THAT("without a duration", !stage_has_line(&first()->evidence, " for ") &&
						  !stage_has_line(&first()->evidence, " ago"));
	stage.options.only_living = true;
	EXPECT_THAT("not reported if only live jobs are asked for", stage_nobody(&stage));
	stage.options.only_living = false;
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->life = RECORDING_ENDED;
	EXPECT_THAT("nothing is reported for a job that ended cleanly", stage_nobody(&stage));
	kill_all(regions, 8);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->region = NULL;
	EXPECT_THAT("nor for one whose traces were closed", stage_nobody(&stage));
	for (int i = 0; i < 8; i++) {
		stage_rank(&stage, i)->flight_count = 1;
		stage_rank(&stage, i)->region = &regions[i];
	}
	EXPECT_THAT("nor if nothing was in flight", stage_nobody(&stage));
	stage_end(&stage);

	all_called(8, -1, SECOND);
	for (int i = 0; i < 8; i++)
		stage_run(i);
	stage_proxy(&stage_rank(&stage, 1)->flights[1], true, 5, 0, STEP_SEND_NET, SECOND);
	stage_proxy(&stage_rank(&stage, 5)->flights[1], false, 1, 0, STEP_RECV_NET, SECOND);
	kill_all(regions, 8);
	EXPECT_THAT("nor for transfers in progress", stage_nobody(&stage));
	stage_end(&stage);
	free(regions);
}

/* Ranks 0 to 3 on node0, 4 to 7 on node1; the snapshots of node0 were made `before_ns` earlier. */
static void snapshots(uint64_t before_ns)
{
	stage_begin(&stage, 8, 4);
	for (int i = 0; i < 8; i++) {
		struct recording_process *process = stage_rank(&stage, i);

		process->is_snapshot = true;
		process->counts_ns = NOW_NS - (i < 4 ? before_ns : 0);
		process->snapshot_wall_ns = WALL_NS - (i < 4 ? before_ns : 0);
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 100 * SECOND);
	}
}

static void test_snapshots(void)
{
	snapshots(34 * SECOND);
	for (int i = 0; i < 4; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_DONE, 34 * SECOND + 5000000);
	for (int i = 4; i < 8; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 8, OP_DONE, 31 * SECOND);
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 9, OP_RUNNING, 30 * SECOND);
	}
	stage.is_alone = true; /* all snapshots are counted, those of other jobs, too */
	EXPECT_THAT("a snapshot made before the hang does not hide it, and nobody is blamed",
		    stage_only(&stage, VERDICT_UNSEEN, -1));
	EXPECT(first()->severity == VERDICT_ERROR && first()->confidence <= 0.5);
	EXPECT(stage_has_line(&first()->missing, "4 of 8 snapshots were left out"));
	stage.is_alone = false;
	stage.options.is_one_moment = true;
	EXPECT_THAT("unless only the clocks differ", stage_nobody(&stage));
	stage_end(&stage);

	snapshots(12 * SECOND);
	for (int i = 0; i < 8; i++) {
		stage_call(&stage, i, 1, OP_ALL_REDUCE, 8, OP_DONE, 31 * SECOND);
		if (i != 2)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 9, OP_RUNNING, 30 * SECOND);
	}
	EXPECT_THAT("a snapshot made during the hang shows who is missing",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 2));
	EXPECT_EQUAL(first()->victims, 7);
	stage_end(&stage);

	snapshots(34 * SECOND);
	for (int i = 0; i < 8; i++)
		stage_call(&stage, i, 1, OP_ALL_REDUCE, i < 4 ? 2 : 9, OP_RUNNING,
			   i < 4 ? 34 * SECOND + 5000000 : 5000000);
	EXPECT_THAT("a job that goes on", stage_nobody(&stage));
	stage_end(&stage);
}

/* Killed, with a region, and a last heartbeat this long ago. */
static void kill_with_heartbeat(struct region *region, int rank, uint64_t ago_ns)
{
	static const struct clock_anchor anchor = { 1, 1000 * SECOND };
	struct recording_process *process = stage_rank(&stage, rank);

	process->life = RECORDING_KILLED;
	process->region = region;
	process->heartbeat_ns = SECOND;
	process->alive_ns = NOW_NS - ago_ns;
	process->anchors = realloc(process->anchors, sizeof(anchor));
	if (process->anchors == NULL)
		abort();
	process->anchors[0] = anchor;
	process->anchor_count = 1;
}

/* Seven of eight ranks are in AllReduce #2 since ago_ns; rank 5 is in nothing. */
static void all_but_one(struct region *regions, uint64_t ago_ns, uint64_t dead_ns)
{
	all_called(8, 5, ago_ns);
	for (int i = 0; i < 8; i++) {
		if (i != 5) {
			stage_run(i);
			stage_rank(&stage, i)->flights[1].op.active_ns = NOW_NS - ago_ns;
		}
		kill_with_heartbeat(&regions[i], i, dead_ns);
	}
}

static void test_heartbeat(void)
{
	struct region *regions = calloc(8, sizeof(*regions));

	if (regions == NULL)
		abort();
	all_but_one(regions, 700 * SECOND, 100 * SECOND);
	EXPECT_THAT("a dead job that lived on in its hang",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("is as certain as one that was recorded to a file",
		    first()->severity == VERDICT_ERROR && first()->confidence > 0.9);
	EXPECT_THAT("its age ends with the last heartbeat", first()->for_ns == 600 * SECOND);
	EXPECT_THAT("which the evidence gives",
		    stage_has_line(&first()->evidence, "last sign of life"));
	EXPECT_THAT("no advice to save the evidence before stopping a dead job",
		    !stage_has_line(&first()->advice, "stop the job") &&
			    !stage_has_line(&first()->advice, "ringside bundle"));
	stage_end(&stage);

	all_but_one(regions, 101 * SECOND, 100 * SECOND);
	EXPECT_THAT("one that was killed in the middle of its work did not hang",
		    stage_nobody(&stage));
	stage_end(&stage);

	/* A watchdog ended most ranks, and the launcher the last one, half a minute later. */
	all_but_one(regions, 700 * SECOND, 100 * SECOND);
	stage_rank(&stage, 5)->alive_ns = NOW_NS - 60 * SECOND;
	EXPECT_THAT("ranks that died waiting are not the cause",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	stage_end(&stage);

	/* One of them dies while it works, and the others wait for it. */
	all_but_one(regions, 700 * SECOND, 100 * SECOND);
	stage_rank(&stage, 5)->alive_ns = NOW_NS - 700 * SECOND;
	EXPECT_THAT("a rank that died first is", stage_only(&stage, VERDICT_PROCESS_DEAD, 5));
	stage_end(&stage);
	free(regions);
}

/* Seven of eight ranks have been in AllReduce #2 for ten minutes; rank 5 called it a second before all were killed. */
static void late_one(struct region *regions, uint64_t late_ns)
{
	all_but_one(regions, 700 * SECOND, 100 * SECOND);
	stage_call(&stage, 5, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 100 * SECOND + late_ns);
	stage.options.has_unjudged = true;
}

static void test_late(void)
{
	struct region *regions = calloc(8, sizeof(*regions));

	if (regions == NULL)
		abort();
	late_one(regions, SECOND);
	EXPECT_THAT("a rank that went on when the job was ended",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5));
	EXPECT_THAT("is named with what the others waited",
		    strcmp(first()->title, "rank 5 called AllReduce #2 of world only at the end; "
					   "7 ranks waited 9 min 59 s") == 0 &&
			    first()->victims == 7 && first()->for_ns == 600 * SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->comms[0].info.nranks = 9;
	EXPECT_THAT("with less confidence where a rank is not visible",
		    stage_only(&stage, VERDICT_NEVER_ISSUED, 5) && first()->confidence < 0.9);
	stage_end(&stage);

	late_one(regions, SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->flights[1].op.function = OP_BROADCAST;
	EXPECT_THAT("a collective that does not make all wait shows nothing", stage_nobody(&stage));
	stage_end(&stage);

	late_one(regions, SECOND);
	stage_rank(&stage, 3)->flight_count = 1;
	stage_rank(&stage, 3)->comms[0].counts.collectives = 2;
	EXPECT_THAT("nor one that a rank may have finished", stage_nobody(&stage));
	stage_end(&stage);

	late_one(regions, SECOND);
	for (int i = 0; i < 8; i++)
		stage_rank(&stage, i)->life = RECORDING_ALIVE;
	EXPECT_THAT("a rank that came late to a job that goes on", stage_nobody(&stage));
	stage_end(&stage);

	late_one(regions, SECOND);
	for (int i = 0; i < 8; i++)
		if (i != 5)
			stage_rank(&stage, i)->flights[1].op.issue_ns = NOW_NS - 115 * SECOND;
	EXPECT_THAT("nor one that the others waited a quarter of a minute for",
		    stage_nobody(&stage));
	stage_end(&stage);
	free(regions);
}

/* Four ranks; rank 2 died `before_ns` before the launcher ended the others, who waited for it. */
static void launcher_ended(struct region *regions, int per_host, uint64_t before_ns)
{
	stage_begin(&stage, 4, per_host);
	for (int i = 0; i < 4; i++) {
		struct recording_process *process = stage_rank(&stage, i);

		stage_call(&stage, i, 1, OP_ALL_REDUCE, 1, OP_DONE, 61 * SECOND);
		if (i != 2)
			stage_call(&stage, i, 1, OP_ALL_REDUCE, 2, OP_RUNNING, 60 * SECOND);
		process->heartbeat_ns = SECOND;
		process->counts_ns = 0;
		process->alive_ns = NOW_NS - 50 * SECOND - (i == 2 ? before_ns : 0);
	}
	kill_all(regions, 4);
	stage.options.has_unjudged = true;
}

static void test_first_death(void)
{
	struct region *regions = calloc(4, sizeof(*regions));

	if (regions == NULL)
		abort();
	launcher_ended(regions, 4, 5 * SECOND);
	EXPECT_THAT("a launcher ended the others soon after a death: the first is named",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 2));
	EXPECT_THAT("in the title",
		    strcmp(first()->title,
			   "rank 2 died first; the other 3 processes ended 5.00 s later") == 0);
	for (int i = 0; i < 4; i++)
		if (i != 2)
			stage_rank(&stage, i)->life = RECORDING_ENDED;
	EXPECT_THAT("also if the others could close their recordings",
		    stage_only(&stage, VERDICT_PROCESS_DEAD, 2));
	stage_rank(&stage, 2)->life = RECORDING_ENDED;
	EXPECT_THAT("not if all did", stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 4, 5 * SECOND);
	stage_rank(&stage, 2)->life = RECORDING_ENDED;
	EXPECT_THAT("nor if the first ended by itself", stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 4, 2 * SECOND);
	EXPECT_THAT("heartbeats do not show the order within two seconds", stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 4, 10 * SECOND);
	stage_rank(&stage, 2)->region = NULL;
	stage_rank(&stage, 2)->counts_ns = NOW_NS - 60 * SECOND;
	EXPECT_THAT("nor does a trace without its region within eleven", stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 2, 4 * SECOND);
	EXPECT_THAT("nor do clocks of several hosts within four", stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 4, 5 * SECOND);
	for (int i = 0; i < 2; i++)
		stage_rank(&stage, i)->alive_ns = NOW_NS - 54 * SECOND;
	EXPECT_THAT("most died first, and one was late: it was ended from outside",
		    stage_nobody(&stage));
	stage_end(&stage);

	launcher_ended(regions, 4, 5 * SECOND);
	stage_rank(&stage, 1)->heartbeat_ns = 0;
	EXPECT_THAT("the time of one death is unknown", stage_nobody(&stage));
	stage_end(&stage);
	free(regions);
}

int main(void)
{
	test_snapshots();
	test_connecting();
	test_recv();
	test_guess();
	test_heartbeat();
	test_late();
	test_first_death();
	expected_compare(&stage_text, "tests/unit/doctor/expected/hang_dead.txt");
	return tap_done();
}
