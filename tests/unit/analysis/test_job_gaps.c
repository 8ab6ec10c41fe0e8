/*
 * Communicators for which NCCL did not report every collective: numbers are aligned by NCCL's own, which count per
 * function. In these recordings, NCCL's number n is the n+1-th call.
 */
#include "analysis/job.h"

#include <stdlib.h>
#include <string.h>

#include "tests/tap.h"
#include "tests/support/hand_made.h"

enum { CALLS = 10 };

static struct hand_made hand;
static struct job job;

/* A rank that recorded calls first .. CALLS - 1 of NCCL, as its own 1, 2, ... */
static struct recording_process *add_rank(int rank, int first, uint64_t missed)
{
	struct recording_process *process = hand_process(&hand, "j", rank, "h");

	hand_comm(process, 0x77, "world", rank, 3, 1);
	for (int call = first; call < CALLS; call++) {
		struct op_record *op = hand_op(process, 1, OP_ALL_REDUCE,
					       (uint64_t)(call - first) + 1, 64, 10, 1000);

		op->nccl_sequence = (uint64_t)call;
		op->task_ns = 1;
	}
	process->comms[0].counts.missed = missed;
	process->comms[0].counts.collectives = (uint64_t)(CALLS - first);
	process->comms[0].counts.signature = 5;
	return process;
}

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

static const struct op_record *flight(int rank, int at)
{
	return &hand.list[rank]->flights[at].op;
}

static void test_aligned(void)
{
	struct recording_process *behind, *apart;

	add_rank(0, 0, 0);
	behind = add_rank(1, 2, 2);
	apart = add_rank(2, 0, 1);
	for (int i = 0; i < CALLS; i++)
		apart->flights[i].op.nccl_sequence += 100;
	made();
	EXPECT_EQUAL(job.comms[0].missed, 3);
	EXPECT_THAT("the reference stays as it is",
		    flight(0, 0)->match == 1 && flight(0, 9)->match == 10 &&
			    hand.list[0]->comms[0].counts.collectives == 10 &&
			    !hand.list[0]->comms[0].is_unplaced);
	EXPECT_THAT("two calls were missed: the third is its first",
		    flight(1, 0)->match == 3 && flight(1, 7)->match == 10 &&
			    flight(1, 0)->signature == 0x1001);
	EXPECT(behind->comms[0].counts.collectives == 10 &&
	       behind->comms[0].counts.signature == 5 && !behind->comms[0].is_unplaced);
	EXPECT_THAT("nothing in common: its numbers are unknown",
		    apart->comms[0].is_unplaced && apart->comms[0].counts.signature == 0 &&
			    flight(2, 0)->match == 0 && flight(2, 9)->match == 0 &&
			    flight(2, 9)->signature == 0 &&
			    apart->comms[0].counts.collectives == 10);
	over();
}

/* Calls of one communicator; NCCL's numbers from `first` on, as its own from 1 on. */
static void add_calls(struct recording_process *process, uint32_t comm, int first, uint64_t missed)
{
	for (int call = first; call < CALLS; call++) {
		struct op_record *op = hand_op(process, comm, OP_ALL_GATHER,
					       (uint64_t)(call - first) + 1, 64, 10, 1000);

		op->nccl_sequence = (uint64_t)call;
		op->task_ns = 1;
	}
	process->comms[comm - 1].counts.missed = missed;
	process->comms[comm - 1].counts.collectives = (uint64_t)(CALLS - first);
	process->comms[comm - 1].counts.signature = 5;
}

/* Each communicator has gaps of its own, and a reference of its own. */
static void test_several_comms(void)
{
	static const int first[2][3] = { { 0, 3, 0 }, { 1, 0, 4 } };
	static const char *const names[] = { "a", "b", "c" };
	struct job_gaps gaps;

	for (int rank = 0; rank < 2; rank++) {
		struct recording_process *process = hand_process(&hand, "j", rank, "h");

		for (int c = 0; c < 3; c++)
			hand_comm(process, 0x70 + (uint64_t)c, names[c], rank, 2, 1);
		for (int c = 0; c < 3; c++)
			add_calls(process, (uint32_t)c + 1, first[rank][c],
				  (uint64_t)first[rank][c]);
	}
	made();
	for (int rank = 0; rank < 2; rank++)
		for (int c = 0, at = 0; c < 3; at += CALLS - first[rank][c], c++) {
			const struct recording_comm *comm = &hand.list[rank]->comms[c];

			EXPECT(flight(rank, at)->match == (uint64_t)first[rank][c] + 1 &&
			       flight(rank, at + CALLS - first[rank][c] - 1)->match == CALLS);
			EXPECT(comm->counts.collectives == CALLS && !comm->is_unplaced &&
			       comm->counts.signature == 5);
		}
	EXPECT_EQUAL(job_gaps_init(&gaps, &job), OK);
	for (size_t c = 0; c < job.comm_count; c++) {
		const struct job_comm *comm = &job.comms[c];
		int which = comm->name[0] - 'a';

		EXPECT_EQUAL(comm->missed, first[0][which] + first[1][which]);
		EXPECT_EQUAL(job.seats[gaps.comms[c].reference].process,
			     first[0][which] == 0 ? 0 : 1);
		EXPECT_EQUAL(gaps.comms[c].count, CALLS);
		for (size_t i = 0; i < gaps.comms[c].count; i++)
			EXPECT(gaps.comms[c].list[i].match == i + 1 &&
			       gaps.comms[c].list[i].key == (UINT64_C(2) << 48) + i);
	}
	job_gaps_release(&gaps);
	over();
}

/* What is no call does not tell how far a rank is: replays, Sends and those without a number. */
static void test_no_calls(void)
{
	struct recording_process *other;
	struct op_record *op;

	add_rank(0, 0, 0);
	other = add_rank(1, CALLS, 0);
	other->comms[0].counts.collectives = 8;
	hand_op(other, 1, OP_ALL_REDUCE, 50, 64, 10, 1000)->flags |= OP_FLAG_REPLAY;
	hand_op(other, 1, OP_SEND, 60, 64, 10, 1000);
	hand_op(other, 1, OP_ALL_REDUCE, 0, 64, 10, 1000);
	made();
	EXPECT(other->comms[0].is_unplaced);
	over();
	add_rank(0, 0, 0);
	other = add_rank(1, CALLS, 0);
	other->comms[0].counts.collectives = 8;
	op = hand_op(other, 1, OP_ALL_REDUCE, 9, 64, 10, 1000);
	op->state = OP_RUNNING;
	made();
	EXPECT_THAT("a call in flight does", !other->comms[0].is_unplaced);
	over();
}

/* Calls without a number of NCCL's, and what is no call, are no common point. */
static void test_keys(void)
{
	static const struct {
		uint8_t function;
		uint32_t flags;
		uint64_t sequence;
		bool is_launched;
		uint32_t interface;
		uint64_t match;
		uint64_t key;
	} cases[] = {
		{ OP_ALL_REDUCE, 0, 7, true, 5, 1, (UINT64_C(1) << 48) + 7 },
		{ OP_REDUCE, 0, 7, true, 5, 1, (UINT64_C(5) << 48) + 7 },
		{ OP_BROADCAST, 0, 7, true, 5, 1, (UINT64_C(4) << 48) + 7 },
		{ OP_BROADCAST, 0, 7, true, 6, 1, 0 },
		{ OP_ALL_REDUCE, 0, 7, true, 6, 1, (UINT64_C(1) << 48) + 7 },
		{ OP_ALL_REDUCE, 0, (UINT64_C(1) << 48) + 7, true, 5, 1, (UINT64_C(1) << 48) + 7 },
		{ OP_ALL_REDUCE, 0, 7, false, 5, 1, 0 },
		{ OP_ALL_REDUCE, 0, 7, true, 5, 0, 0 },
		{ OP_SEND, 0, 7, true, 5, 1, 0 },
		{ OP_FUNCTION_UNKNOWN, 0, 7, true, 5, 1, 0 },
		{ OP_ALL_REDUCE, OP_FLAG_REPLAY, 7, true, 5, 1, 0 },
		{ OP_ALL_REDUCE, OP_FLAG_API_ONLY, 7, true, 5, 1, 0 },
		{ OP_ALL_REDUCE, OP_FLAG_COPY_ENGINE, 7, true, 5, 1, 0 },
	};

	add_rank(0, 0, 0);
	made();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct op_record op = { .function = cases[i].function,
					.flags = (uint16_t)cases[i].flags,
					.nccl_sequence = cases[i].sequence,
					.task_ns = cases[i].is_launched,
					.match = cases[i].match };

		hand.list[0]->comms[0].info.interface = cases[i].interface;
		EXPECT(job_gap_key(&job, 0, &op) == cases[i].key);
	}
	over();
}

/* The reference is a rank without gaps, else the one that recorded most. */
static void test_reference(void)
{
	static const struct {
		uint64_t missed[3];
		uint64_t recorded[3];
		int reference;
	} cases[] = {
		{ { 1, 0, 0 }, { 90, 10, 20 }, 2 }, { { 0, 1, 1 }, { 10, 90, 90 }, 0 },
		{ { 1, 1, 1 }, { 10, 30, 20 }, 1 }, { { 1, 1, 0 }, { 90, 30, 10 }, 2 },
		{ { 1, 1, 1 }, { 10, 10, 10 }, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct job_gaps gaps;

		for (int rank = 0; rank < 3; rank++)
			add_rank(rank, 0, cases[i].missed[rank])->comms[0].counts.recorded =
				cases[i].recorded[rank];
		made();
		EXPECT(job_gaps_init(&gaps, &job) == OK &&
		       gaps.comms[0].reference == (uint32_t)cases[i].reference &&
		       gaps.comms[0].count == CALLS);
		job_gaps_release(&gaps);
		over();
	}
}

/* What ended elsewhere cannot be missing here: such numbers are wrong. One less may be a moment. */
static void test_unseen(void)
{
	static const struct {
		uint64_t counted; /* calls of rank 1; it has none in flight */
		uint8_t state;	  /* of the last call of rank 0 */
		uint32_t flags;
		bool is_unplaced;
	} cases[] = {
		{ 10, OP_DONE, 0, false },  { 9, OP_DONE, 0, false },
		{ 8, OP_DONE, 0, true },    { 8, OP_RUNNING, 0, false },
		{ 7, OP_RUNNING, 0, true }, { 8, OP_DONE, OP_FLAG_REPLAY, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct op_record *last = &add_rank(0, 0, 0)->flights[CALLS - 1].op;
		struct recording_process *other = add_rank(1, CALLS, 0);

		last->state = cases[i].state;
		last->flags |= (uint16_t)cases[i].flags;
		other->comms[0].counts.collectives = cases[i].counted;
		made();
		EXPECT_EQUAL(other->comms[0].is_unplaced, cases[i].is_unplaced);
		EXPECT_EQUAL(other->comms[0].counts.signature, cases[i].is_unplaced ? 0 : 5);
		over();
	}
}

/* Rows of a trace: those of the reference are listed, the others looked up. */
static void test_rows(void)
{
	enum { ROWS = 7 };
	struct job_gaps gaps;
	struct op_batch batch = { .rows = ROWS }, copy;
	const struct op_batch *got;
	uint64_t kind[ROWS], state[ROWS], match[ROWS], signature[ROWS], sequence[ROWS];
	const struct {
		uint8_t function;
		uint32_t comm;
		uint64_t sequence;
		uint8_t state;
		uint64_t match, signature; /* wanted */
	} rows[ROWS] = {
		{ OP_ALL_REDUCE, 1, 0, OP_DONE, 1, 0 },
		{ OP_ALL_REDUCE, 1, 9, OP_DONE, 10, 0 },
		{ OP_ALL_REDUCE, 1, 10, OP_DONE, 0, 0 },
		{ OP_ALL_REDUCE, 1, 3, OP_ISSUED, 0, 0 },
		{ OP_ALL_REDUCE, 1, 3, OP_CAPTURED, 0, 0 },
		{ OP_SEND, 1, 3, OP_DONE, 77, 88 },
		{ OP_ALL_REDUCE, 9, 3, OP_DONE, 77, 88 },
	};

	for (int i = 0; i < ROWS; i++) {
		struct op_record op = { .function = rows[i].function,
					.comm = rows[i].comm,
					.state = rows[i].state };
		uint64_t words[OP_RECORD_WORDS];

		memcpy(words, &op, sizeof(words));
		kind[i] = words[OP_WORD_KIND];
		state[i] = words[OP_WORD_STATE];
		match[i] = 77;
		signature[i] = 88;
		sequence[i] = rows[i].sequence;
	}
	batch.column[OP_WORD_KIND] = kind;
	batch.column[OP_WORD_STATE] = state;
	batch.column[OP_WORD_MATCH] = match;
	batch.column[OP_WORD_SIGNATURE] = signature;
	batch.column[OP_WORD_NCCL_SEQUENCE] = sequence;
	add_rank(0, 0, 0);
	add_rank(1, 2, 2);
	made();
	EXPECT(job_gaps_init(&gaps, &job) == OK &&
	       job_gaps_words(&gaps) == OP_WORD_BIT(OP_WORD_NCCL_SEQUENCE));
	got = job_gaps_batch(&gaps, 1, &batch, &copy);
	EXPECT(got == &copy && copy.rows == ROWS);
	for (int i = 0; i < ROWS; i++)
		EXPECT(got->column[OP_WORD_MATCH][i] == rows[i].match &&
		       got->column[OP_WORD_SIGNATURE][i] == rows[i].signature);
	EXPECT_THAT("the rows themselves are not changed", match[0] == 77 && signature[0] == 88);
	batch.rows = 1;
	got = job_gaps_batch(&gaps, 1, &batch, &copy);
	EXPECT(got == &copy && got->column[OP_WORD_MATCH][0] == 1);
	batch.rows = 0;
	EXPECT(job_gaps_batch(&gaps, 1, &batch, &copy) == &batch);
	job_gaps_release(&gaps);
	over();

	add_rank(0, 0, 0);
	made();
	batch.rows = ROWS;
	EXPECT(job_gaps_init(&gaps, &job) == OK && job_gaps_words(&gaps) == 0);
	EXPECT_THAT("without gaps rows stay as they are",
		    job_gaps_batch(&gaps, 0, &batch, &copy) == &batch);
	job_gaps_release(&gaps);
	over();
}

int main(void)
{
	test_aligned();
	test_several_comms();
	test_no_calls();
	test_keys();
	test_reference();
	test_unseen();
	test_rows();
	return tap_done();
}
