/* Order, labels and counts of a job's parts, for recordings that come in any order. */
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
	EXPECT(job.comms == NULL && job.ranks == NULL && job.rank_count == 0);
	hand_release(&hand);
}

static void test_order_of_comms(void)
{
	static const struct {
		uint64_t hash;
		const char *name;
		int32_t nranks;
	} comms[] = {
		{ 0x50, "b", 2 }, { 0x40, "a", 2 }, { 0x30, "a", 4 }, { 0x20, "c", 8 },
		{ 0x41, "a", 2 }, { 0, "", 2 },	    { 0x10, "", 2 },  { 0, "z", 2 },
	};
	static const char *const labels[] = { "c",
					      "a 0x0000000000000030",
					      "#3",
					      "0x0000000000000010",
					      "a 0x0000000000000040",
					      "a 0x0000000000000041",
					      "b",
					      "z" };
	struct recording_process *process = hand_process(&hand, "j", 0, "h");

	for (size_t i = 0; i < 8; i++)
		hand_comm(process, comms[i].hash, comms[i].name, 0, comms[i].nranks, 1);
	made();
	EXPECT_EQUAL(job.comm_count, 8);
	for (size_t i = 0; i < 8; i++)
		if (!EXPECT_THAT(labels[i], strcmp(job.comms[i].label, labels[i]) == 0))
			printf("#   %s\n", job.comms[i].label);
	for (size_t i = 0; i < 8; i++) {
		const struct job_comm *comm = &job.comms[job.seats[i].comm];

		EXPECT(comm->hash == comms[i].hash && comm->nranks == comms[i].nranks &&
		       strcmp(comm->name, comms[i].name) == 0 && comm->seat_count == 1 &&
		       comm->seats[0] == i && comm->missing == (uint32_t)comms[i].nranks - 1 &&
		       comm->nnodes == 1 && comm->group == 0 && comm->generation == 0 &&
		       comm->missed == 0);
	}
	EXPECT_EQUAL(job.conflicts, 0);
	over();
}

/* Ranks 3, 1, 2 and 0 of one job, and two of another, on three hosts. */
static void test_order_of_ranks(void)
{
	static const struct {
		const char *job;
		int64_t rank;
		const char *host;
	} processes[] = { { "a", 3, "y" }, { "a", 1, "x" }, { "a", 2, "y" },
			  { "a", 0, "x" }, { "b", 1, "z" }, { "b", 0, "x" } };
	static const uint32_t sorted[] = { 3, 1, 2, 0, 5, 4 };
	static const char *const labels[] = { "0", "1", "2", "3", "0", "1" };

	for (size_t i = 0; i < 6; i++) {
		struct recording_process *process =
			hand_process(&hand, processes[i].job, processes[i].rank, processes[i].host);

		hand_comm(process, 0x77, "world", (int32_t)processes[i].rank, i < 4 ? 4 : 3, 2);
		process->comms[0].info.gpu = (int32_t)i + 10;
		snprintf((char *)process->comms[0].info.gpu_uuid,
			 sizeof(process->comms[0].info.gpu_uuid), "GPU-%zu", i);
	}
	made();
	EXPECT_EQUAL(job.rank_count, 6);
	for (uint32_t r = 0; r < 6; r++) {
		const struct job_rank *rank = &job.ranks[r];
		char uuid[8];

		snprintf(uuid, sizeof(uuid), "GPU-%u", sorted[r] % 10);
		EXPECT(rank->process == sorted[r] && rank->group == r / 4 && !rank->is_derived &&
		       rank->attempt == 0 && rank->gpu == (int32_t)sorted[r] + 10 &&
		       rank->pid == 1000 + sorted[r] && rank->life == RECORDING_ENDED &&
		       strcmp(rank->label, labels[r]) == 0 && strcmp(rank->gpu_uuid, uuid) == 0 &&
		       strcmp(job.hosts[rank->host].name, processes[sorted[r]].host) == 0);
		EXPECT(job.process_rank[sorted[r]] == r && job.seats[sorted[r]].rank == r &&
		       job.first_seat[sorted[r]] == sorted[r]);
	}
	EXPECT_EQUAL(job.first_seat[6], 6);
	EXPECT_THAT("hosts in the order of their first rank",
		    job.host_count == 3 && strcmp(job.hosts[0].name, "x") == 0 &&
			    strcmp(job.hosts[1].name, "y") == 0 &&
			    strcmp(job.hosts[2].name, "z") == 0);
	EXPECT(job.hosts[0].known_ranks == 3 && job.hosts[1].known_ranks == 2 &&
	       job.hosts[2].known_ranks == 1);
	EXPECT_EQUAL(job.group_count, 2);
	EXPECT(job.groups[0].first_rank == 0 && job.groups[0].rank_count == 4 &&
	       job.groups[0].process_count == 4 && job.groups[0].host_count == 2 &&
	       job.groups[0].world_size == 4);
	EXPECT(job.groups[1].first_rank == 4 && job.groups[1].rank_count == 2 &&
	       job.groups[1].process_count == 2 && job.groups[1].host_count == 2 &&
	       job.groups[1].world_size == 3);
	EXPECT_THAT("seats by their rank in the communicator",
		    job.comms[0].seat_count == 4 && job.comms[0].seats[0] == 3 &&
			    job.comms[0].seats[1] == 1 && job.comms[0].seats[2] == 2 &&
			    job.comms[0].seats[3] == 0 && job.comms[0].missing == 0);
	EXPECT(job.comms[1].group == 1 && job.comms[1].seat_count == 2 &&
	       job.comms[1].missing == 1);
	EXPECT(job_members_on(&job, 0, 0) == 2 && job_members_on(&job, 0, 1) == 2 &&
	       job_members_on(&job, 0, 2) == 0 && job_members_on(&job, 1, 0) == 1);
	over();
}

/* Ranks 0, 2 and 3 of five are recorded. */
static void test_members(void)
{
	static const int32_t ranks[] = { 3, 0, 2 };
	static const uint32_t seats[] = { 1, UINT32_MAX, 2, 0, UINT32_MAX, UINT32_MAX };
	char text[64] = "";

	for (int i = 0; i < 3; i++)
		hand_comm(hand_process(&hand, "j", i == 2 ? -1 : i, "h"), 0x77, "c", ranks[i], 5,
			  1);
	made();
	EXPECT_EQUAL(job.comms[0].missing, 2);
	EXPECT_EQUAL(job_member(&job, &job.comms[0], -1), UINT32_MAX);
	for (int32_t rank = 0; rank < 6; rank++)
		EXPECT_EQUAL(job_member(&job, &job.comms[0], rank), seats[rank]);
	/* The launcher's ranks: 0, 1; the third one has that of the communicator, which is 2. */
	EXPECT(job_place_in(&job, 0, job.seats[0].rank) == 2 &&
	       job_place_in(&job, 0, job.seats[1].rank) == 0 &&
	       job_place_in(&job, 0, job.seats[2].rank) == 1);
	EXPECT(job_place_in(&job, 0, 3) == UINT32_MAX && !job_is_member(&job, 0, 3) &&
	       job_is_member(&job, 0, 2));
	EXPECT_THAT("a derived rank is marked", job.ranks[job.seats[2].rank].rank == 2 &&
							job.ranks[job.seats[2].rank].is_derived &&
							!job.ranks[job.seats[1].rank].is_derived);
	job_say_rank(text, sizeof(text), &job, 1);
	EXPECT(strcmp(text, "rank 1") == 0);
	over();

	hand_comm(hand_process(&hand, "j", -1, "node0"), 0x77, "c", -1, 5, 1);
	made();
	text[0] = '\0';
	job_say_rank(text, sizeof(text), &job, 0);
	EXPECT_THAT("a rank that nobody knows",
		    strcmp(text, "process node0:1000") == 0 && !job.ranks[0].is_derived);
	EXPECT_EQUAL(job_member(&job, &job.comms[0], -1), UINT32_MAX);
	over();
}

static void test_operations(void)
{
	static const struct {
		uint64_t match, number;
		uint32_t flags;
		const char *text;
	} cases[] = {
		{ 0, 7, 0, "AllReduce #7" },
		{ 0, 7, OP_FLAG_REPLAY, "AllReduce #7 (graph replay)" },
	};

	hand_comm(hand_process(&hand, "j", 0, "h"), 0x77, "c", 0, 1, 1);
	made();
	for (size_t i = 0; i < 2; i++) {
		struct op_record op = { .function = OP_ALL_REDUCE,
					.match = cases[i].match,
					.number = cases[i].number,
					.flags = (uint16_t)cases[i].flags };
		char text[64] = "", numbered[64] = "", wanted[64];

		job_say_operation(text, sizeof(text), &job, 0, &op);
		EXPECT(strcmp(text, cases[i].text) == 0);
		op.match = 12;
		job_say_operation(numbered, sizeof(numbered), &job, 0, &op);
		snprintf(wanted, sizeof(wanted), "AllReduce #%llu%s",
			 (unsigned long long)op_shown_number(12), i ? " (graph replay)" : "");
		EXPECT_THAT("the number in the communicator comes first",
			    strcmp(numbered, wanted) == 0);
	}
	over();
}

static void test_kinds(void)
{
	static const struct {
		int32_t nranks, nnodes;
		enum job_comm_kind kind;
		bool is_over_network;
	} cases[] = {
		{ 0, 0, JOB_COMM_UNKNOWN, false }, { -1, 1, JOB_COMM_UNKNOWN, false },
		{ 2, 0, JOB_COMM_UNKNOWN, false }, { 1, 0, JOB_COMM_SINGLE, false },
		{ 1, 1, JOB_COMM_SINGLE, false },  { 2, 1, JOB_COMM_NVLINK, false },
		{ 2, 2, JOB_COMM_NET, true },	   { 3, 2, JOB_COMM_MIXED, true },
		{ 2, 3, JOB_COMM_NET, true },
	};
	static const char *const names[] = { "unknown",	 "single-rank", "nvlink-only",
					     "net-only", "mixed",	"unknown" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		EXPECT(job_comm_kind_of(cases[i].nranks, cases[i].nnodes) == cases[i].kind &&
		       job_comm_is_over_network(cases[i].kind) == cases[i].is_over_network);
	for (int i = 0; i < 6; i++)
		EXPECT(strcmp(job_comm_kind_name((enum job_comm_kind)i), names[i]) == 0);
}

/* A process that is in one communicator twice. */
static void test_several_ranks(void)
{
	static const struct {
		const char *sentence;
		uint64_t finalize_ns; /* of the first, which began at 10 */
		uint64_t init_ns;     /* of the second */
		int32_t gpus[2];
		size_t ranks;
		int32_t gpu; /* of the second rank */
	} cases[] = {
		{ "both live", 0, 20, { 4, 5 }, 2, 5 },
		{ "the first ended after the second began", 21, 20, { 4, 5 }, 2, 5 },
		{ "the first ended when the second began", 20, 20, { 4, 5 }, 1, 0 },
		{ "the first ended before", 19, 20, { 4, 5 }, 1, 0 },
		{ "on one GPU", 0, 20, { 4, 4 }, 2, 4 },
		{ "on GPU 0 and another", 0, 20, { 0, 1 }, 2, 1 },
		{ "on unknown GPUs", 0, 20, { -1, -1 }, 2, -1 },
		{ "one GPU is unknown", 0, 20, { 4, -1 }, 2, -1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		/* The same whichever comes first. */
		for (int turn = 0; turn < 2; turn++) {
			struct recording_process *process = hand_process(&hand, "j", 9, "h");

			for (int c = 0; c < 2; c++) {
				int which = turn ? 1 - c : c;

				hand_comm(process, 0x77, "world", which, 2, 1);
				process->comms[c].info.gpu = cases[i].gpus[which];
				process->comms[c].info.init_ns = which ? cases[i].init_ns : 10;
				process->comms[c].info.finalize_ns =
					which ? 0 : cases[i].finalize_ns;
			}
			made();
			EXPECT_THAT(cases[i].sentence, job.rank_count == cases[i].ranks);
			if (cases[i].ranks == 2)
				EXPECT(job.ranks[0].rank == 0 && job.ranks[1].rank == 1 &&
				       job.ranks[1].gpu == cases[i].gpu &&
				       job.ranks[0].is_derived && job.ranks[0].process == 0 &&
				       job.seats[turn].rank == 0 && job.seats[!turn].rank == 1);
			else
				EXPECT(job.ranks[0].rank == 9 && !job.ranks[0].is_derived &&
				       job.seats[0].rank == 0 && job.seats[1].rank == 0);
			EXPECT_EQUAL(job.comm_count, 1);
			over();
		}
	}

	/* Twice the same rank, or without a hash: one rank. */
	for (int is_bare = 0; is_bare < 2; is_bare++) {
		struct recording_process *process = hand_process(&hand, "j", 9, "h");

		hand_comm(process, is_bare ? 0 : 0x77, "world", 0, 2, 1);
		hand_comm(process, is_bare ? 0 : 0x77, "world", is_bare, 2, 1);
		made();
		EXPECT(job.rank_count == 1 && job.comm_count == 2);
		over();
	}
}

/*
 * Two processes of `width` ranks: world, a group of the ranks of each process ("tp"), a communicator of each rank with
 * the same one of the other process ("pp"), and one of all ranks. They are created in an order of its own by each
 * thread, and NCCL shows the GPUs of all of them, of none, or of some.
 */
enum gpus {
	GPUS_KNOWN,
	GPUS_UNKNOWN,
	GPUS_OF_PP,
	GPUS_OF_TP,
	GPUS_BUT_PP,
	GPUS_SHARED,
	GPUS_CASES
};

enum { WORLD, TP, PP, ALL, KINDS };

static int32_t gpu_of(enum gpus gpus, int kind, int local)
{
	if (gpus == GPUS_UNKNOWN || (gpus == GPUS_OF_PP && kind != PP && kind != WORLD) ||
	    (gpus == GPUS_OF_TP && kind != TP) || (gpus == GPUS_BUT_PP && kind == PP))
		return -1;
	return gpus == GPUS_SHARED ? 0 : local;
}

static void add_seats(struct recording_process *process, int node, int width, enum gpus gpus,
		      unsigned int turn)
{
	for (int i = 0; i < width * KINDS; i++) {
		/* 11 has no factor in common with any number of seats here. */
		int at = (int)(((unsigned int)i * (turn ? 11 : 1) + turn * 3) %
			       (unsigned int)(width * KINDS));
		int local = at % width, kind = at / width;
		int32_t global = node * width + local;
		char name[8];

		if (kind == WORLD)
			hand_comm(process, 0x100, "world", global, 2 * width, 2);
		else if (kind == ALL)
			hand_comm(process, 0x101, "ep-0", global, 2 * width, 2);
		else if (kind == TP)
			hand_comm(process, 0x200 + (uint64_t)node, node ? "tp-1" : "tp-0", local,
				  width, 1);
		else
			hand_comm(process, 0x300 + (uint64_t)local,
				  (text_format(name, sizeof(name), "pp-%d", local), name), node, 2,
				  2);
		process->comms[i].info.gpu = gpu_of(gpus, kind, local);
		process->comms[i].info.init_ns = 10 + (uint64_t)i;
		/* Where the seat belongs, for the check. */
		process->comms[i].counts.reserved = (uint64_t)(kind * 100 + global + 1);
	}
}

static bool are_seats_right(int width, enum gpus gpus)
{
	size_t named = 0;

	for (size_t s = 0; s < job.seat_count; s++) {
		const struct recording_process *process =
			job.recording->processes[job.seats[s].process];
		const struct recording_comm *comm =
			&process->comms[s - job.first_seat[job.seats[s].process]];
		const struct job_rank *rank = &job.ranks[job.seats[s].rank];
		int kind = (int)(comm->counts.reserved - 1) / 100;
		int64_t wanted = (int64_t)(comm->counts.reserved - 1) % 100;
		bool is_shown = kind != PP || gpus == GPUS_KNOWN || gpus == GPUS_OF_PP;
		char label[32];

		text_format(label, sizeof(label), "%d of %s", comm->info.rank, comm->info.name);
		if (rank->process != job.seats[s].process ||
		    (is_shown ? rank->is_unplaced || rank->rank != wanted
			      : !rank->is_unplaced || rank->rank != -1 ||
					strcmp(rank->label, label) != 0))
			return false;
	}
	for (size_t r = 0; r < job.rank_count; r++)
		named += !job.ranks[r].is_unplaced;
	return named == (size_t)(2 * width);
}

static void test_seats(void)
{
	static const char *const sentences[] = {
		[GPUS_KNOWN] = "GPUs place all seats",
		[GPUS_UNKNOWN] = "without GPUs what all ranks of a process are in has their order",
		[GPUS_OF_PP] = "a GPU that NCCL shows places the seat",
		[GPUS_OF_TP] = "one that has the GPUs gives them to the others",
		[GPUS_BUT_PP] = "a seat without a GPU is not guessed",
		[GPUS_SHARED] = "GPUs that ranks share place nothing",
	};

	for (int width = 2; width <= 8; width++)
		for (int gpus = 0; gpus < GPUS_CASES; gpus++)
			for (unsigned int turn = 0; turn < 2; turn++) {
				for (int node = 0; node < 2; node++)
					add_seats(hand_process(&hand, "j", -1, node ? "b" : "a"),
						  node, width, (enum gpus)gpus, turn);
				made();
				if (!EXPECT_THAT(sentences[gpus],
						 are_seats_right(width, (enum gpus)gpus)))
					printf("#   %d ranks, turn %u\n", width, turn);
				over();
			}

	/* Beside a process of one rank, which the launcher numbered. */
	add_seats(hand_process(&hand, "j", -1, "a"), 0, 2, GPUS_UNKNOWN, 0);
	hand_comm(hand_process(&hand, "j", 2, "b"), 0x100, "world", 2, 3, 2);
	made();
	EXPECT_THAT("a process of one rank has all its seats",
		    !job.ranks[job.seats[job.seat_count - 1].rank].is_unplaced &&
			    job.ranks[job.seats[job.seat_count - 1].rank].rank == 2);
	over();
}

/* The same communicator three times, and seats that several processes claim. */
static void test_generations(void)
{
	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "h");

		for (int again = 0; again < 3; again++)
			hand_comm(process, 0x77, again == 1 ? "" : "c", rank, 2, 1);
	}
	made();
	EXPECT_EQUAL(job.comm_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct job_comm *comm = &job.comms[job.seats[i].comm];

		EXPECT(comm->generation == i && comm->seat_count == 2 && comm->seats[0] == i &&
		       comm->seats[1] == 3 + i);
	}
	EXPECT(strcmp(job.comms[job.seats[0].comm].label, "c 0x0000000000000077") == 0);
	EXPECT(strcmp(job.comms[job.seats[1].comm].label, "0x0000000000000077 (2)") == 0);
	EXPECT(strcmp(job.comms[job.seats[2].comm].label, "c 0x0000000000000077 (3)") == 0);
	EXPECT_EQUAL(job.conflicts, 0);
	over();

	for (int i = 0; i < 3; i++)
		hand_comm(hand_process(&hand, "j", i, "h"), 0x77, "c", 1, 2, 1);
	hand_comm(hand_process(&hand, "j", 3, "h"), 0x77, "", 0, 2, 1);
	made();
	EXPECT_THAT("three claim the same seat", job.conflicts == 2 && job.comm_count == 3);
	EXPECT_THAT("the first of them is with the others",
		    job.seats[0].comm == job.seats[3].comm &&
			    job.seats[1].comm != job.seats[0].comm &&
			    job.seats[2].comm != job.seats[0].comm &&
			    job.seats[1].comm != job.seats[2].comm);
	EXPECT_THAT("a name that any of its ranks knows",
		    strcmp(job.comms[job.seats[3].comm].name, "c") == 0);
	over();

	for (int i = 0; i < 2; i++)
		hand_comm(hand_process(&hand, "j", i, "h"), 0x77, "c", -1, 2, 1);
	made();
	EXPECT_THAT("unknown ranks do not claim a seat",
		    job.conflicts == 0 && job.comm_count == 1 && job.comms[0].seat_count == 2);
	over();
}

/* Rank 0 was started three times, rank 1 once; processes come in any order. */
static void test_attempts(void)
{
	static const struct {
		int64_t rank;
		uint64_t wall_ns;
		uint32_t attempt;
		const char *label;
	} starts[] = {
		{ 0, 300, 2, "0 (start 3)" }, { 0, 100, 0, "0" },	{ 1, 400, 0, "1" },
		{ 0, 200, 1, "0 (start 2)" }, { -1, 100, 0, "h:1004" }, { -1, 200, 0, "h:1005" },
	};

	for (size_t i = 0; i < 6; i++)
		hand_process(&hand, "j", starts[i].rank, "h")->started_wall_ns = starts[i].wall_ns;
	made();
	EXPECT_EQUAL(job.rank_count, 6);
	for (size_t i = 0; i < 6; i++) {
		const struct job_rank *rank = &job.ranks[job.process_rank[i]];

		EXPECT(rank->process == i && rank->attempt == starts[i].attempt &&
		       strcmp(rank->label, starts[i].label) == 0);
	}
	EXPECT_EQUAL(job.groups[0].started_wall_ns, 100);
	over();
}

/* The wall clock was set back between two runs. */
static void test_attempts_of_runs(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct recording_process *process = hand_process(&hand, "j", 0, "h");

		process->run = i + 1;
		process->started_wall_ns = 200 - 100 * i;
	}
	made();
	EXPECT(job.ranks[job.process_rank[0]].attempt == 0 &&
	       job.ranks[job.process_rank[1]].attempt == 1);
	over();
}

static void test_groups(void)
{
	static const struct {
		const char *job;
		uint32_t run;
		bool is_earlier;
		int64_t owner;
		uint64_t wall_s;
		int64_t world_size;
	} processes[] = {
		{ "a", 2, false, 7, 1700000300, 2 }, { "a", 1, true, 8, 1700000100, -1 },
		{ "a", 2, false, 9, 1700000200, 4 }, { "a", 1, true, 8, 1700000050, -1 },
		{ "b", 2, true, 5, 1700000400, 3 },
	};

	for (size_t i = 0; i < 5; i++) {
		struct recording_process *process =
			hand_process(&hand, processes[i].job, (int64_t)i, "h");

		process->run = processes[i].run;
		process->is_earlier_run = processes[i].is_earlier;
		process->owner = processes[i].owner;
		process->started_wall_ns = processes[i].wall_s * 1000000000;
		process->world_size = processes[i].world_size;
	}
	hand_comm(hand.list[1], 0x77, "c", 0, 6, 1);
	hand_comm(hand.list[2], 0x77, "c", 0, 9, 1);
	hand_comm(hand.list[3], 0x78, "d", 0, 5, 1);
	made();
	EXPECT_EQUAL(job.group_count, 3);
	EXPECT_THAT("the last run has the name of the job",
		    strcmp(job.groups[0].name, "a") == 0 && job.groups[0].run == 2 &&
			    job.groups[0].owner == 7 && !job.groups[0].is_earlier_run &&
			    job.groups[0].process_count == 2 && job.groups[0].world_size == 4 &&
			    job.groups[0].started_wall_ns == UINT64_C(1700000200000000000));
	EXPECT_THAT("an earlier one that of its first start, and its largest communicator",
		    strcmp(job.groups[1].name, "a (run of 2023-11-14 22:14:10)") == 0 &&
			    job.groups[1].run == 1 && job.groups[1].owner == 8 &&
			    job.groups[1].is_earlier_run && job.groups[1].process_count == 2 &&
			    job.groups[1].world_size == 6);
	EXPECT_THAT("no later run is known: it keeps its name",
		    strcmp(job.groups[2].name, "b") == 0 && job.groups[2].world_size == 3);
	over();
}

/* Seven names per process that our tables lack; 127 have a number. */
static void test_names(void)
{
	size_t wrong = 0;

	for (int p = 0; p < 20; p++) {
		struct recording_process *process = hand_process(&hand, "j", p, "h");

		for (int i = 0; i < 7; i++)
			snprintf(process->names[i], sizeof(process->names[i]), "name-%d",
				 p * 7 + i);
	}
	made();
	EXPECT_EQUAL(job.name_count, JOB_NAMES_MAX);
	for (size_t p = 0; p < 20; p++)
		for (size_t i = 0; i < 7; i++) {
			uint8_t number = job_name_number(&job, p, (uint8_t)(OP_NAME_INTERNED + i));
			size_t place = p * 7 + i;
			char name[16];

			snprintf(name, sizeof(name), "name-%u", (unsigned int)place % 1000);
			wrong += number != (place < JOB_NAMES_MAX ? OP_NAME_INTERNED + place
								  : JOB_NAME_OTHER);
			wrong += strcmp(job_name(&job, OP_NAMES_FUNCTION, number),
					place < JOB_NAMES_MAX ? name : "?") != 0;
		}
	EXPECT_THAT("names in the order of processes, as many as fit", wrong == 0);
	EXPECT_EQUAL(job_name_number(&job, 0, OP_ALL_REDUCE), OP_ALL_REDUCE);
	EXPECT_EQUAL(job_name_number(&job, 0, OP_NAME_INTERNED - 1), OP_NAME_INTERNED - 1);
	EXPECT_EQUAL(job_name_number(&job, 0, OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX),
		     JOB_NAME_OTHER);
	over();
}

int main(void)
{
	test_order_of_comms();
	test_order_of_ranks();
	test_members();
	test_operations();
	test_kinds();
	test_several_ranks();
	test_seats();
	test_generations();
	test_attempts();
	test_attempts_of_runs();
	test_groups();
	test_names();
	return tap_done();
}
