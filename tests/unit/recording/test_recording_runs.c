/* Runs of a job: which processes belong to which start of it. */
#include "recording/recording.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"

enum { PROCESSES_MAX = 64 };

#define SECOND UINT64_C(1000000000)
#define WALL_NS (UINT64_C(1700000000) * SECOND)

static struct recording recording;
static struct recording_process *list[PROCESSES_MAX];

static void begin(void)
{
	recording_init(&recording);
	recording.processes = list;
}

static void end(void)
{
	for (size_t i = 0; i < recording.count; i++)
		recording_process_free(list[i]);
	recording.count = 0;
}

/* A process that lived from .. to, in seconds; to 0: it lives. Its clock began with it. */
static struct recording_process *add(int64_t rank, uint64_t from, uint64_t to)
{
	struct recording_process *process = recording_process_new();

	if (process == NULL || recording.count == PROCESSES_MAX)
		abort();
	list[recording.count++] = process;
	text_copy(process->job, sizeof(process->job), "none");
	text_copy(process->host, sizeof(process->host), "node0");
	process->pid = 1000 + (int64_t)recording.count;
	process->rank = rank;
	process->started_wall_ns = WALL_NS + from * SECOND;
	process->life = to == 0 ? RECORDING_ALIVE : RECORDING_KILLED;
	if (recording_load_anchor(process,
				  (struct clock_anchor){ SECOND, process->started_wall_ns }) != OK)
		abort();
	process->counts_ns = to == 0 ? 0 : SECOND + (to - from) * SECOND;
	return process;
}

static void join(struct recording_process *process, uint64_t hash, int32_t rank, int32_t nranks)
{
	struct recording_comm *comm =
		recording_load_comm(process, (uint32_t)process->comm_count + 1);

	if (comm == NULL)
		abort();
	comm->info.hash = hash;
	comm->info.rank = rank;
	comm->info.nranks = nranks;
}

/* Ranks from .. to - 1 of a start of the job, with a communicator of all; 0: NCCL does not give its hash. */
static void add_ranks(int first, int last, uint64_t hash, uint64_t from, uint64_t to)
{
	for (int i = first; i < last; i++)
		join(add(i, from, to), hash, i, last);
}

static bool are(size_t first, size_t count, uint32_t run, uint32_t runs, bool is_earlier)
{
	for (size_t i = first; i < first + count; i++)
		if (list[i]->run != run || list[i]->runs != runs ||
		    list[i]->is_earlier_run != is_earlier)
			return false;
	return true;
}

static void test_restarts(void)
{
	begin();
	add_ranks(0, 4, 0x11, 100, 200);
	add_ranks(0, 4, 0x22, 201, 0);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a job that was started again has two runs",
		    are(0, 4, 1, 2, true) && are(4, 4, 2, 2, false));
	end();

	begin();
	add_ranks(0, 4, 0x11, 201, 300);
	add_ranks(0, 4, 0x11, 100, 200);
	add_ranks(0, 2, 0x33, 400, 500);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("in order of their start, with the same hash, and with fewer ranks",
		    are(0, 4, 2, 3, true) && are(4, 4, 1, 3, true) && are(8, 2, 3, 3, false));
	end();

	begin();
	add_ranks(0, 4, 0, 100, 200);
	add_ranks(0, 4, 0, 201, 300);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("without hashes their ranks and times show it",
		    are(0, 4, 1, 2, true) && are(4, 4, 2, 2, false));
	end();

	begin();
	add_ranks(0, 4, 0x11, 100, 200);
	list[2]->life = RECORDING_ALIVE;
	add_ranks(0, 4, 0x22, 201, 0);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a run of which one process was left behind is not over",
		    are(0, 4, 1, 2, false) && are(4, 4, 2, 2, false));
	end();
}

static void test_one_run(void)
{
	begin();
	add_ranks(0, 4, 0x11, 100, 0);
	list[2]->life = RECORDING_KILLED;
	list[2]->counts_ns = 50 * SECOND;
	join(add(2, 160, 0), 0x22, 2, 4);
	for (int i = 0; i < 4; i++)
		if (i != 2)
			join(list[i], 0x22, i, 4);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a single rank that was started again is the same run", are(0, 5, 1, 1, false));
	end();

	begin();
	for (int i = 0; i < 4; i++)
		join(add(i, 100, 0), 0x11, i, 4);
	for (int i = 4; i < 8; i++)
		join(add(i, 101, 0), 0x22, i - 4, 4);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("groups without a common communicator are", are(0, 8, 1, 1, false));
	end();

	begin();
	add_ranks(0, 2, 0x11, 100, 110);
	add_ranks(2, 4, 0x11, 400, 410);
	for (int i = 0; i < 4; i++)
		list[i]->comms[0].info.nranks = 4;
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a common communicator counts more than clocks that are minutes apart",
		    are(0, 4, 1, 1, false));
	end();

	begin();
	add_ranks(0, 4, 0x11, 100, 200);
	add_ranks(0, 4, 0x22, 201, 0);
	list[5]->started_wall_ns = 0;
	list[5]->anchor_count = 0;
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("if a start is unknown, nothing is left out", are(0, 8, 1, 1, false));
	end();
}

/* Ranks 0 .. 3 of a boot. Their clock, which is never set, began steady_from seconds before them. */
static void add_ranks_of_boot(const char *boot, uint64_t hash, uint64_t steady_from, uint64_t from,
			      uint64_t to)
{
	size_t first = recording.count;

	add_ranks(0, 4, hash, from, to);
	for (size_t i = first; i < recording.count; i++) {
		text_copy(list[i]->boot_id, sizeof(list[i]->boot_id), boot);
		list[i]->anchors[0].clock_ns = steady_from * SECOND;
		list[i]->counts_ns = to == 0 ? 0 : (steady_from + to - from) * SECOND;
	}
}

static void test_clock_set_back(void)
{
	begin();
	add_ranks_of_boot("b", 0x11, 1000, 500, 600);
	add_ranks_of_boot("b", 0x22, 1101, 400, 0);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a run that begins while the wall clock shows an earlier time is the last",
		    are(0, 4, 1, 2, true) && are(4, 4, 2, 2, false));
	EXPECT_THAT("and its start is shown as the wall clock was",
		    list[4]->started_wall_ns == WALL_NS + 400 * SECOND);
	end();

	begin();
	add_ranks_of_boot("b", 0x11, 1000, 100, 200);
	add_ranks_of_boot("b", 0x22, 1050, 300, 0);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("a wall clock that was put forward does not part processes that met",
		    are(0, 8, 1, 1, false));
	end();

	begin();
	add_ranks_of_boot("b", 0x11, 9000, 100, 200);
	add_ranks_of_boot("c", 0x22, 50, 201, 0);
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("clocks of two boots are not compared",
		    are(0, 4, 1, 2, true) && are(4, 4, 2, 2, false));
	end();

	begin();
	add_ranks_of_boot("b", 0x11, 9000, 100, 200);
	add_ranks_of_boot("b", 0x22, 50, 201, 0);
	list[3]->anchor_count = 0;
	EXPECT_EQUAL(recording_find_runs(&recording), OK);
	EXPECT_THAT("nor is one that was not read",
		    are(0, 4, 1, 2, false) && are(4, 4, 2, 2, false));
	end();
}

static void test_order(void)
{
	struct recording_process *late, *early;

	begin();
	late = add(3, 200, 0);
	early = add(3, 100, 0);
	late->pid = 10;
	early->pid = 20;
	EXPECT_THAT("a rank's starts are in order of time, not of pid",
		    recording_start_order(early, late) < 0 &&
			    recording_start_order(late, early) > 0 &&
			    recording_load_order(late, early) < 0);
	end();
}

int main(void)
{
	test_restarts();
	test_one_run();
	test_clock_set_back();
	test_order();
	return tap_done();
}
