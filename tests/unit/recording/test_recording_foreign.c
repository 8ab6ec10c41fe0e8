/* Logs of other tools among the processes of a recording. */
#include <stdlib.h>

#include "recording/recording.h"
#include "tests/support/foreign_play.h"
#include "tests/tap.h"

static struct recording recording;
static char scratch[] = "/tmp/test_recording_foreignXXXXXX";

static void load(const char *path, unsigned int flags)
{
	recording_release(&recording);
	recording_init(&recording);
	if (recording_add(&recording, path, flags) != OK || recording_finish(&recording) != OK)
		abort();
}

static const char *in_scratch(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static void put(const char *name, const char *mode, const char *text)
{
	FILE *file = fopen(in_scratch(name), mode);

	if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0)
		abort();
}

static void put_call(const char *name, const char *mode, int pid, int rank, int ranks,
		     unsigned int hash, int sn)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"header\":{\"id\":\"0x%x\",\"comm_name\":\"w\",\"rank\":%d,\"n_ranks\":%d,"
		 "\"nnodes\":1},\"metadata\":{\"inspector_output_format_version\":\"v4.0\","
		 "\"dump_timestamp_us\":1767225600000100,\"hostname\":\"h\",\"pid\":%d},\"coll_"
		 "perf\":{"
		 "\"coll\":\"AllReduce\",\"coll_sn\":%d,\"coll_msg_size_bytes\":64,"
		 "\"coll_exec_time_us\":9,\"coll_timing_source\":\"kernel_gpu\"}}\n",
		 hash, rank, ranks, pid, sn);
	put(name, mode, text);
}

static void put_op(const char *name, const char *mode, int pid, int rank, unsigned int hash, int sn)
{
	put_call(name, mode, pid, rank, 4, hash, sn);
}

static bool count_op(const struct op_record *op, enum recording_place place, void *context)
{
	(void)op;
	*(int *)context += place == RECORDING_IN_TRACE;
	return true;
}

static bool count_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	(void)detail, (void)place;
	++*(int *)context;
	return true;
}

static bool count_batch(const struct op_batch *batch, enum recording_place place, void *context)
{
	(void)place;
	for (uint32_t i = 0; i < batch->rows; i++)
		*(int *)context += batch->column[OP_WORD_BYTES][i] == 64;
	return true;
}

static int ops_of(size_t process, struct recording_walk *walk)
{
	int count = 0;

	return recording_each_op(recording.processes[process], count_op, &count, walk) == OK ? count
											     : -1;
}

static void test_log(void)
{
	const struct recording_process *process;
	struct recording_walk walk;
	uint64_t wall;
	int details = 0;

	load("tests/foreign/data/inspector-v4.3.log", 0);
	EXPECT_EQUAL(recording.count, 1);
	EXPECT_EQUAL(recording.trouble_count, 0);
	EXPECT_EQUAL(recording.files_read, 1);
	process = recording.processes[0];
	EXPECT(strcmp(process->host, "alpha") == 0 && process->pid == 4100);
	EXPECT_EQUAL(process->comm_count, 2);
	EXPECT_EQUAL(process->lost[LOST_RING_OVERRUN], 7);
	EXPECT_EQUAL(process->lost[LOST_DETAIL_OVERRUN], 5);
	EXPECT_EQUAL(process->odd[ODD_FOREIGN_PROCESS], 6);
	EXPECT_EQUAL(process->comms[1].counts.issued, 1 + 7);
	EXPECT_EQUAL(ops_of(0, &walk), 4);
	EXPECT_EQUAL(walk.in_trace, 4);
	EXPECT(recording_each_detail(process, count_detail, &details, NULL) == OK && details == 3);
	EXPECT_THAT("its clock is wall time",
		    recording_wall_ns(process, 5000000000, &wall) && wall == 5000000000);
	EXPECT_THAT("whether it ended is unknown", process->life == RECORDING_UNKNOWN);
	EXPECT(process->foreign != NULL && process->foreign->is_alone &&
	       strcmp(process->foreign->format, "NCCL Inspector's log") == 0);
}

static void test_account(void)
{
	struct recording_account account;

	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT_EQUAL(account.missing, 0);
	EXPECT_EQUAL(account.issued, 4 + 7);
	EXPECT_EQUAL(account.kept, 4);
	EXPECT_EQUAL(account.lost_operations, 7);
	recording_account_release(&account);
}

static void test_troubles(void)
{
	load("tests/foreign/data/inspector-damaged.log", 0);
	EXPECT_EQUAL(recording.count, 1);
	EXPECT_EQUAL(recording.trouble_count, 13);
	EXPECT(recording.troubles[0].kind == RECORDING_DAMAGE &&
	       strcmp(recording.troubles[0].what, "line 2 is skipped: not a JSON value") == 0 &&
	       recording.troubles[0].offset == 444 &&
	       recording.troubles[0].process == recording.processes[0]);
	EXPECT(recording.troubles[12].kind == RECORDING_CUT);
	EXPECT_EQUAL(ops_of(0, NULL), 6);
	load("tests/foreign/data", 0);
	EXPECT_THAT("a directory is read; files without operations are reported",
		    recording.count == 10 && recording.files_foreign == 6 &&
			    recording.trouble_count == 13 + 6);
}

static void test_ranks(void)
{
	load("tests/foreign/data/inspector-mixed.jsonl", 0);
	EXPECT_THAT(
		"a file of two processes gives two, with the ranks in their common communicator",
		recording.count == 2 && recording.processes[0]->rank == 1 &&
			recording.processes[1]->rank == 2 &&
			recording.processes[0]->world_size == 8);
	EXPECT(ops_of(0, NULL) == 2 && ops_of(1, NULL) == 2);
	put_op("a.log", "w", 10, 2, 7, 0);
	put_op("b.log", "w", 11, 0, 7, 0);
	load(scratch, 0);
	EXPECT(recording.count == 2 && recording.processes[0]->rank == 0 &&
	       recording.processes[0]->pid == 11);
	put_op("c.log", "w", 12, 3, 8, 0);
	load(scratch, 0);
	EXPECT_THAT("one that is not in it leaves all ranks unknown",
		    recording.count == 3 && recording.processes[0]->rank == -1);
	put_op("c.log", "w", 12, 2, 7, 0);
	load(scratch, 0);
	EXPECT_THAT("so does a duplicate rank", recording.processes[0]->rank == -1);
	unlink(in_scratch("c.log"));
}

/* Ten ranks, each in three communicators: the largest, a pair before it and all alone after it. */
static void test_largest(void)
{
	enum { RANKS = 10 };

	unlink(in_scratch("a.log"));
	unlink(in_scratch("b.log"));
	put("all.log", "w", "");
	for (int rank = RANKS - 1; rank >= 0; rank--) {
		put_call("all.log", "a", 20 + rank, rank % 2, 2, 100 + (unsigned int)rank / 2, 0);
		put_call("all.log", "a", 20 + rank, rank, RANKS, 7, 0);
		put_call("all.log", "a", 20 + rank, 0, 1, 200 + (unsigned int)rank, 0);
	}
	load(scratch, 0);
	EXPECT_EQUAL(recording.count, RANKS);
	for (int rank = 0; rank < RANKS && recording.count == RANKS; rank++)
		EXPECT(recording.processes[rank]->rank == rank &&
		       recording.processes[rank]->pid == 20 + rank &&
		       recording.processes[rank]->world_size == RANKS &&
		       recording.processes[rank]->recorded == 3);
	unlink(in_scratch("all.log"));
}

/* A hundred damaged lines are reported one by one, the rest with their number. */
static void test_many_damages(void)
{
	for (int lines = 99; lines <= 102; lines++) {
		size_t wanted = lines <= 100 ? (size_t)lines : 101;
		bool is_owned = true;
		char more[64];

		put_op("damaged.log", "w", 10, 2, 7, 0);
		for (int i = 0; i < lines; i++)
			put("damaged.log", "a", "{broken\n");
		load(in_scratch("damaged.log"), 0);
		EXPECT_EQUAL(recording.trouble_count, wanted);
		for (size_t i = 0; i < recording.trouble_count; i++)
			is_owned =
				is_owned && recording.troubles[i].process == recording.processes[0];
		EXPECT_THAT("all of the only process", recording.count == 1 && is_owned);
		snprintf(more, sizeof(more), "%d more lines are skipped", lines - 100);
		if (lines > 100)
			EXPECT(strcmp(recording.troubles[100].what, more) == 0);
	}
	unlink(in_scratch("damaged.log"));
}

static void test_moving(void)
{
	char older[300];
	int rows = 0;

	load(in_scratch("a.log"), 0);
	put_op("a.log", "a", 10, 2, 7, 1);
	EXPECT_THAT("lines appended later are ignored", ops_of(0, NULL) == 1);
	load(in_scratch("a.log"), 0);
	EXPECT(ops_of(0, NULL) == 2);
	EXPECT(recording_each_batch(recording.processes[0], OP_WORD_BIT(OP_WORD_BYTES), count_batch,
				    &rows, NULL) == OK &&
	       rows == 2);
	snprintf(older, sizeof(older), "%s.old", in_scratch("a.log"));
	rename(in_scratch("a.log"), older);
	put_op("a.log", "w", 10, 2, 7, 1);
	rows = 0;
	EXPECT_THAT("another file with its name is rejected",
		    recording_each_op(recording.processes[0], count_op, &rows, NULL) == ERR_GONE);
	unlink(older);
}

static void test_repeated(void)
{
	recording_release(&recording);
	recording_init(&recording);
	recording_add(&recording, in_scratch("a.log"), 0);
	recording_add(&recording, scratch, 0);
	EXPECT(recording_finish(&recording) == OK);
	EXPECT_THAT("the same file twice is one process", recording.count == 2);
}

static void test_list(void)
{
	load("tests/foreign/data", RECORDING_LIST_FOREIGN);
	EXPECT(recording.count == 0 && recording.foreign_path_count == 9);
	EXPECT(strcmp(recording.foreign_paths[0], "tests/foreign/data/comma-latency.txt") == 0);
}

int main(void)
{
	if (mkdtemp(scratch) == NULL)
		abort();
	test_log();
	test_account();
	test_troubles();
	test_ranks();
	test_moving();
	test_repeated();
	test_list();
	test_many_damages();
	test_largest();
	recording_release(&recording);
	unlink(in_scratch("a.log"));
	unlink(in_scratch("b.log"));
	rmdir(scratch);
	return tap_done();
}
