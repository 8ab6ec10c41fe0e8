#include "analysis/job.h"

#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "tests/tap.h"
#include "tests/support/hand_made.h"

static struct hand_made hand;
static struct job job;

static void made(void)
{
	if (job_make(&job, &hand.recording) != OK)
		abort();
}

static void over(void)
{
	job_release(&job);
	hand_release(&hand);
}

static const struct job_comm *comm_named(const char *name)
{
	for (size_t i = 0; i < job.comm_count; i++)
		if (strcmp(job.comms[i].name, name) == 0)
			return &job.comms[i];
	return NULL;
}

static void test_join(void)
{
	const struct job_comm *world, *pair;
	char host[16];

	for (int rank = 0; rank < 4; rank++) {
		struct recording_process *process;

		snprintf(host, sizeof(host), "node%d", rank / 2);
		process = hand_process(&hand, "a", rank, host);
		hand_comm(process, 0x77, "world", rank, 4, 2);
		/* Rank of the pair is not the global rank. */
		hand_comm(process, 0x80 + (uint64_t)rank % 2, "pair", rank / 2, 2, 2);
		if (rank / 2 == 0)
			hand_comm(process, 0x90, "node", rank, 2, 1);
	}
	made();
	world = comm_named("world");
	pair = comm_named("pair");
	EXPECT_EQUAL(job.rank_count, 4);
	EXPECT_EQUAL(job.comm_count, 4);
	EXPECT_EQUAL(job.host_count, 2);
	EXPECT_THAT("the largest communicator comes first", world == &job.comms[0]);
	EXPECT_THAT("with all its ranks", world->seat_count == 4 && world->missing == 0);
	EXPECT_THAT("several nodes, several ranks each: mixed", world->kind == JOB_COMM_MIXED);
	EXPECT_THAT("one rank per node: net-only",
		    pair->kind == JOB_COMM_NET && pair->seat_count == 2);
	EXPECT_THAT("one node: nvlink-only", comm_named("node")->kind == JOB_COMM_NVLINK);
	EXPECT_THAT("a shared name is followed by the hash",
		    strcmp(pair->label, "pair 0x0000000000000080") == 0);
	EXPECT_THAT("a unique name is the label", strcmp(world->label, "world") == 0);
	EXPECT_THAT("a seat leads to rank and communicator",
		    job_seat(&job, 3, 2)->rank == 3 && job_seat(&job, 3, 2)->comm_rank == 1);
	EXPECT_THAT("a number that the process does not list leads nowhere",
		    job_seat(&job, 3, 3) == NULL && job_seat(&job, 3, 0) == NULL);
	EXPECT_EQUAL(job.groups[0].world_size, 4);
	over();
}

static void test_again(void)
{
	/* The same hash twice in each process, one after the other; rank 1 lacks the second. */
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&hand, "a", rank, "h");

		hand_comm(process, 0x77, "c", rank, 2, 1);
		process->comms[0].info.init_ns = 10;
		process->comms[0].info.finalize_ns = 20;
		if (rank == 0) {
			hand_comm(process, 0x77, "c", rank, 2, 1);
			process->comms[1].info.init_ns = 30;
		}
	}
	made();
	EXPECT_EQUAL(job.comm_count, 2);
	EXPECT_EQUAL(job.rank_count, 2);
	EXPECT_THAT("the first of both is one communicator",
		    job.seats[0].comm == job.seats[2].comm &&
			    job.seats[1].comm != job.seats[0].comm);
	EXPECT_THAT("the second is another, and lacks a rank",
		    job.comms[job.seats[1].comm].generation == 1 &&
			    job.comms[job.seats[1].comm].missing == 1);
	over();
}

static void test_conflict(void)
{
	hand_comm(hand_process(&hand, "a", 0, "h"), 0x77, "c", 0, 2, 1);
	hand_comm(hand_process(&hand, "a", 1, "h"), 0x77, "c", 0, 2, 1);
	hand_comm(hand_process(&hand, "a", 2, "h"), 0x77, "c", 1, 2, 1);
	hand_comm(hand_process(&hand, "a", 3, "h"), 0x77, "c", 1, 4, 1);
	made();
	EXPECT_THAT("a seat that is taken makes a separate communicator",
		    job.conflicts == 1 && job.comm_count == 3);
	EXPECT_THAT("so does a different size (shrunk, same hash)",
		    job.comms[job.seats[3].comm].nranks == 4 &&
			    job.comms[job.seats[3].comm].seat_count == 1);
	over();
}

static void test_unknown(void)
{
	hand_comm(hand_process(&hand, "", -1, "h"), 0, "", -1, 0, 0);
	hand_comm(hand_process(&hand, "", -1, "h"), 0, "", -1, 0, 0);
	made();
	EXPECT_THAT("without a hash nothing is matched", job.comm_count == 2);
	EXPECT_THAT("and the kind is unknown", job.comms[0].kind == JOB_COMM_UNKNOWN);
	EXPECT_THAT("a rank of unknown number is named by host and pid",
		    job.ranks[0].rank == -1 && strcmp(job.ranks[0].label, "h:1000") == 0);
	over();

	/* The launcher gave no rank, the communicator of all ranks does. */
	for (int rank = 0; rank < 3; rank++)
		hand_comm(hand_process(&hand, "", -1, "h"), 0x77, "", 2 - rank, 3, 1);
	made();
	EXPECT_THAT("ranks come from the largest communicator",
		    job.ranks[0].rank == 0 && job.ranks[0].process == 2 && job.ranks[0].is_derived);
	EXPECT_THAT("a communicator without a name is labelled by its hash",
		    strcmp(job.comms[0].label, "0x0000000000000077") == 0);
	over();
}

static void test_threads(void)
{
	struct recording_process *process = hand_process(&hand, "a", 0, "h");

	for (int rank = 0; rank < 2; rank++) {
		hand_comm(process, 0x77, "world", rank, 2, 1);
		process->comms[process->comm_count - 1].info.gpu = rank;
		hand_comm(process, 0x80 + (uint64_t)rank, "own", 0, 1, 1);
		process->comms[process->comm_count - 1].info.gpu = rank;
	}
	made();
	EXPECT_THAT("one process, twice in a communicator: two ranks", job.rank_count == 2);
	EXPECT_THAT("both have the rank of the communicator",
		    job.ranks[0].rank == 0 && job.ranks[1].rank == 1);
	EXPECT_THAT("other communicators go with the GPU",
		    job.seats[3].rank == job.seats[2].rank && job.seats[1].rank == 0);
	EXPECT_THAT("a single rank", job.comms[job.seats[1].comm].kind == JOB_COMM_SINGLE);
	over();
}

static void test_groups(void)
{
	hand_comm(hand_process(&hand, "a", 0, "h"), 0x77, "c", 0, 2, 1);
	hand_comm(hand_process(&hand, "a", 1, "h"), 0x77, "c", 1, 2, 1);
	hand_comm(hand_process(&hand, "b", 0, "h"), 0x77, "c", 0, 2, 1);
	hand_comm(hand_process(&hand, "b", 0, "h"), 0x78, "c", 0, 2, 1);
	made();
	EXPECT_EQUAL(job.group_count, 2);
	EXPECT_THAT("the same hash in another job is another communicator",
		    job.seats[0].comm == job.seats[1].comm &&
			    job.seats[2].comm != job.seats[0].comm);
	EXPECT_THAT("a restarted rank is distinguished",
		    job.ranks[3].attempt == 1 && strcmp(job.ranks[3].label, "0 (start 2)") == 0);
	EXPECT_EQUAL(job.groups[1].rank_count, 2);
	over();
}

/* A job that was started again: the last run has its name. */
static void test_runs(void)
{
	struct recording_process *first = hand_process(&hand, "a", 0, "h");
	struct recording_process *second = hand_process(&hand, "a", 0, "h");

	hand_comm(first, 0x77, "c", 0, 1, 1);
	hand_comm(second, 0x77, "c", 0, 1, 1);
	first->run = 1;
	first->is_earlier_run = true;
	first->started_wall_ns = UINT64_C(1700000000123456789);
	second->run = 2;
	second->started_wall_ns = UINT64_C(1700000100) * 1000000000;
	made();
	EXPECT_EQUAL(job.group_count, 2);
	EXPECT_THAT("the earlier run is named by its start",
		    strcmp(job.groups[0].name, "a (run of 2023-11-14 22:13:20)") == 0 &&
			    job.groups[0].is_earlier_run &&
			    job.groups[0].started_wall_ns == first->started_wall_ns);
	EXPECT_THAT("the last one is the job",
		    strcmp(job.groups[1].name, "a") == 0 && !job.groups[1].is_earlier_run);
	EXPECT_THAT("its ranks have not been started before", strcmp(job.ranks[1].label, "0") == 0);
	over();

	first = hand_process(&hand, "a", 0, "h");
	first->run = 1;
	first->is_earlier_run = true;
	hand_comm(first, 0x77, "c", 0, 1, 1);
	made();
	EXPECT_THAT("a run that was asked for alone keeps the name",
		    strcmp(job.groups[0].name, "a") == 0);
	over();
}

static void test_names(void)
{
	struct recording_process *first = hand_process(&hand, "", 0, "h");
	struct recording_process *second = hand_process(&hand, "", 1, "h");

	text_copy(first->names[0], sizeof(first->names[0]), "ncclNew");
	text_copy(first->names[1], sizeof(first->names[1]), "ncclOther");
	text_copy(second->names[0], sizeof(second->names[0]), "ncclOther");
	made();
	EXPECT_THAT("names unknown to us are matched by their text",
		    job_name_number(&job, 1, OP_NAME_INTERNED) ==
			    job_name_number(&job, 0, OP_NAME_INTERNED + 1));
	EXPECT(strcmp(job_name(&job, OP_NAMES_FUNCTION, job_name_number(&job, 1, OP_NAME_INTERNED)),
		      "ncclOther") == 0);
	EXPECT(strcmp(job_name(&job, OP_NAMES_FUNCTION, OP_ALL_REDUCE), "AllReduce") == 0);
	EXPECT_THAT("a number without a name",
		    job_name_number(&job, 1, OP_NAME_INTERNED + 5) == JOB_NAME_OTHER);
	EXPECT(strcmp(job_name(&job, OP_NAMES_FUNCTION, JOB_NAME_OTHER), "?") == 0);
	over();
}

int main(void)
{
	test_join();
	test_again();
	test_conflict();
	test_unknown();
	test_threads();
	test_groups();
	test_runs();
	test_names();
	made();
	EXPECT_THAT("an empty recording is a job, too", job.rank_count == 0 && job.comm_count == 0);
	over();
	return tap_done();
}
