/* Lost records: defects D1 to D5, D25 and D27 of docs/HACKING.md. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include "tests/unit/plugin/defect_process.h"

/* ---- a disk that does not answer ------------------------------------------------------------- */

static uint32_t is_frozen;
static int write_error; /* 0: none */
static sem_t frozen, thaw;

/* Replaces libc's: while the disk is frozen, no write returns. */
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset)
{
	int error = load_acquire(&write_error);

	if (error != 0) {
		errno = error;
		return -1;
	}
	if (load_acquire(&is_frozen)) {
		sem_post(&frozen);
		while (sem_wait(&thaw) == -1)
			;
	}
	return syscall(SYS_pwrite64, fd, bytes, size, offset);
}

/* How often a thread of the job has waited for one of the recorder. */
static uint32_t pauses;

/* Replaces libc's. */
int nanosleep(const struct timespec *pause, struct timespec *left)
{
	add_relaxed(&pauses, 1);
	return (int)syscall(SYS_nanosleep, pause, left);
}

/* ---- D1 -------------------------------------------------------------------------------------- */

/* More than a small ring and a file of 1 MiB can take. */
enum { BURST = TAP_IS_SLOW ? 20000 : 500000, FILES_WORTH = TAP_IS_SLOW ? 120000 : 500000 };

/* All different, otherwise a block of them would take almost no space in the file. */
static void issue_many(uint64_t count)
{
	void *context = play_init(1, 1, 2, 0);

	for (uint64_t i = 1; i <= count; i++)
		play_issue(context, "AllReduce", i * 0x9e3779b97f4a7c15u >> 4, "ncclFloat32", 1);
}

static void issue_many_through_a_small_ring(void)
{
	setenv("RINGSIDE_BUFFER", "64KiB", 1);
	issue_many(BURST);
}

static void issue_many_into_a_small_file(void)
{
	setenv("RINGSIDE_QUOTA", "1MiB", 1);
	issue_many(FILES_WORTH);
}

static void a_burst_is_seen_or_counted(void)
{
	struct defect_run run = defect_run("trace", issue_many_through_a_small_ring);

	EXPECT_THAT("D1: a burst through a ring of 256 slots: seen + counted as lost == issued",
		    defect_adds_up(&run, BURST));
	printf("# %llu of %d lost\n", (unsigned long long)run.account.lost_operations, BURST);
	defect_release(&run);
	run = defect_run("trace", issue_many_into_a_small_file);
	EXPECT_THAT("D1: past the quota: seen + counted as lost == issued",
		    defect_adds_up(&run, FILES_WORTH));
	EXPECT_THAT("D1: and the reason is reported",
		    run.process != NULL && run.process->lost[LOST_QUOTA] > 0);
	defect_release(&run);
}

/* The thread holds the first record, and a small ring has the rest. Returns another communicator. */
static void *begin_on_a_frozen_disk(void)
{
	void *context;

	setenv("RINGSIDE_BUFFER", "64KiB", 1);
	sem_init(&frozen, 0, 0);
	sem_init(&thaw, 0, 0);
	context = play_init(1, 1, 2, 0);
	store_release(&is_frozen, 1);
	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	ncclProfiler_v5.finalize(context);
	while (sem_wait(&frozen) == -1)
		;
	return play_init(2, 1, 2, 0);
}

/*
 * The thread is stuck for the whole burst: what the ring cannot hold is lost, and counted exactly.
 */
static void issue_many_on_a_frozen_disk(void)
{
	void *context = begin_on_a_frozen_disk();

	for (int i = 0; i < 10000; i++)
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	store_release(&is_frozen, 0);
	sem_post(&thaw);
}

static void a_reader_that_stands_still_costs_no_count(void)
{
	struct defect_run run = defect_run("trace", issue_many_on_a_frozen_disk);

	EXPECT_THAT("D1: a reader that does not read: seen + counted as lost == issued",
		    defect_adds_up(&run, 10001));
	/* The last 256 were in the ring, and a few hundred more still in flight. */
	EXPECT_THAT("D1: most of them were lost, and counted",
		    run.process != NULL && run.process->lost[LOST_RING_OVERRUN] >= 9000);
	defect_release(&run);
}

/* ---- a disk that never answers --------------------------------------------------------------- */

/* The thread holds the first record forever; the exit does not wait for it. */
static void exit_on_a_frozen_disk(int more)
{
	void *context = begin_on_a_frozen_disk();

	for (int i = 0; i < more; i++)
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
}

static void exit_with_a_few(void)
{
	exit_on_a_frozen_disk(100);
}

static void exit_with_many(void)
{
	exit_on_a_frozen_disk(1000);
}

static void an_exit_counts_what_the_disk_did_not_take(void)
{
	struct defect_run run = defect_run("trace", exit_with_a_few);

	EXPECT_THAT("what the ring still holds is not lost",
		    defect_adds_up(&run, 101) && run.process != NULL &&
			    run.process->lost[LOST_RING_OVERRUN] == 0 &&
			    run.process->lost[LOST_WRITE_ERROR] <= 1);
	defect_release(&run);
	run = defect_run("trace", exit_with_many);
	EXPECT_THAT("what was overwritten is",
		    defect_adds_up(&run, 1001) && run.process != NULL &&
			    run.process->lost[LOST_RING_OVERRUN] >= 700 &&
			    run.process->lost[LOST_WRITE_ERROR] <= 1);
	defect_release(&run);
}

enum { LINES = 30 };

static void play_timed(void *context)
{
	for (int i = 0; i < LINES; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 1);
		uint64_t gpu = play_gpu_now();
		void *kernel = play_kernel_start(context, op.task, 0, gpu);

		while (play_gpu_now() <= gpu + 1000)
			;
		play_kernel_stop(kernel, gpu + 1000);
	}
}

/* Inspector's settings, and standard error into a file. */
static void set_up_lines(void)
{
	char path[128];
	int fd;

	text_format(path, sizeof(path), "%s/files", getenv("RINGSIDE_DIR"));
	setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
	setenv("NCCL_INSPECTOR_DUMP_DIR", path, 1);
	setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000", 1);
	setenv("RINGSIDE_EVENTS", "kernel", 1);
	text_format(path, sizeof(path), "%s/said", getenv("RINGSIDE_DIR"));
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1)
		_exit(2);
}

static void exit_with_lines(void)
{
	void *context;

	set_up_lines();
	sem_init(&frozen, 0, 0);
	sem_init(&thaw, 0, 0);
	store_release(&is_frozen, 1);
	context = play_init(1, 1, 8, 3);
	play_timed(context);
	ncclProfiler_v5.finalize(context);
	while (sem_wait(&frozen) == -1)
		;
	play_timed(play_init(2, 1, 8, 3));
}

static bool has_said(const struct defect_run *run, const char *words)
{
	char path[128], said[2048] = "";
	FILE *file;

	text_format(path, sizeof(path), "%s/said", run->dir);
	file = fopen(path, "re");
	if (file != NULL) {
		said[fread(said, 1, sizeof(said) - 1, file)] = '\0';
		fclose(file);
	}
	return strstr(said, words) != NULL;
}

/* Every line: those that the thread has in hand, and those that it never took. */
static void an_exit_counts_lines_that_the_disk_did_not_take(void)
{
	struct defect_run run = defect_run("flight", exit_with_lines);

	EXPECT_EQUAL(run.status, 0);
	EXPECT_THAT("the last words say so",
		    has_said(&run, ".log: 60 operations, 0 lines, 60 lost\n"));
	EXPECT_EQUAL(run.process != NULL ? run.process->lost[LOST_INSPECTOR] : 0, 2 * LINES);
	defect_release(&run);
}

/* ---- a disk that refuses --------------------------------------------------------------------- */

static int next_error;

/* The trace file exists by then, so only its records are refused. */
static void write_lines_and_a_trace(void)
{
	void *context;

	set_up_lines();
	context = play_init(1, 1, 8, 3);
	store_release(&write_error, next_error);
	play_timed(context);
	ncclProfiler_v5.finalize(context);
}

static void the_reason_of_a_failure_is_kept(void)
{
	static const struct {
		int error;
		const char *words;
		enum lost_reason reason;
	} cases[] = {
		{ ENOSPC, "(no room)", LOST_NO_SPACE },
		{ EDQUOT, "(no room)", LOST_NO_SPACE },
		{ EFBIG, "(no room)", LOST_WRITE_ERROR },
		{ EIO, "(Input/output error)", LOST_WRITE_ERROR },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct defect_run run;

		next_error = cases[i].error;
		run = defect_run("trace", write_lines_and_a_trace);
		if (!EXPECT(run.status == 0 && run.process != NULL))
			return;
		EXPECT_THAT(cases[i].words, has_said(&run, cases[i].words));
		EXPECT(has_said(&run, ".log: 30 operations, 0 lines, 30 lost\n"));
		EXPECT_EQUAL(run.process->lost[cases[i].reason], LINES);
		EXPECT_EQUAL(run.process->lost[LOST_NO_SPACE] + run.process->lost[LOST_WRITE_ERROR],
			     LINES);
		defect_release(&run);
	}
}

/* ---- D2, D3 ---------------------------------------------------------------------------------- */

enum { COMMS = 700, OPS = 5 };

static void destroy_right_after_the_last_operation(void)
{
	for (uint64_t i = 0; i < COMMS; i++) {
		void *context = play_init(i + 1, 1, 2, 0);

		for (int j = 0; j < OPS; j++)
			play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
		ncclProfiler_v5.finalize(context);
	}
}

static void a_destroyed_communicator_keeps_its_last_records(const char *mode)
{
	struct defect_run run = defect_run(mode, destroy_right_after_the_last_operation);
	size_t whole = 0, ended = 0;

	EXPECT_THAT("D2: destroyed right after its last operation, nothing is lost",
		    defect_adds_up(&run, COMMS * OPS) && run.account.lost_operations == 0);
	for (size_t i = 0; i < run.account.comm_count; i++)
		whole += run.account.comms[i].kept == OPS && run.account.comms[i].issued == OPS;
	EXPECT_EQUAL(whole, COMMS);
	for (size_t i = 0; run.process != NULL && i < run.process->comm_count; i++)
		ended += run.process->comms[i].info.finalize_ns != 0;
	EXPECT_THAT("D2: each communicator's end is known", ended == COMMS);
	defect_release(&run);
}

/*
 * Nothing can be done for those that do not fit. When one ends, the next one waits until its end is
 * in the file, and takes its slot.
 */
static void open_more_than_fit(void)
{
	void *contexts[COMMS];
	uint32_t before = 0;

	for (uint64_t i = 0; i < COMMS; i++) {
		if (i == recorder.region.comm_count && i > 0)
			before = load_relaxed(&pauses);
		contexts[i] = play_init(i + 1, 1, 2, 0);
		play_issue(contexts[i], "AllReduce", 8, "ncclFloat32", 1);
	}
	if (load_relaxed(&pauses) != before)
		_exit(2);
	ncclProfiler_v5.finalize(contexts[7]);
	if (hot_comm(play_init(COMMS + 1, 1, 2, 0)) == NULL)
		_exit(3);
}

static void open_communicators_wait_for_nothing(void)
{
	struct defect_run run = defect_run("trace", open_more_than_fit);
	const struct recording_process *process = run.process;
	size_t ended = 0, latest = 0;

	EXPECT_THAT("D2: init waits for nothing while all communicators are open, and for the end "
		    "of one to be written when it has ended",
		    run.status == 0);
	EXPECT_THAT("D2: operations of those that did not fit are counted",
		    process != NULL && run.account.issued + process->lost[LOST_NO_COMM] == COMMS &&
			    process->lost[LOST_NO_COMM] > 0 && run.account.is_exact);
	for (size_t i = 0; process != NULL && i < process->comm_count; i++) {
		ended += process->comms[i].info.finalize_ns != 0;
		latest += process->comms[i].info.hash == COMMS + 1;
	}
	EXPECT_THAT("D2: both the ended one and the one in its slot are described",
		    ended == 1 && latest == 1);
	defect_release(&run);
}

static void exit_at_once(void)
{
	void *context = play_init(1, 1, 2, 0);
	struct play_op op;

	for (int i = 0; i < 1000; i++)
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	op = play_issue(context, "Broadcast", 8, "ncclFloat32", 1);
	play_kernel_start(context, op.task, 0, play_gpu_now());
}

static void the_exit_flushes(void)
{
	struct defect_run run = defect_run("trace", exit_at_once);

	EXPECT_THAT("D3: exit right after the last call, without finalize: nothing is lost",
		    defect_adds_up(&run, 1001) && run.account.lost_operations == 0);
	EXPECT_THAT("D3: the file is closed", run.process != NULL && run.process->file_count == 1 &&
						      run.process->files[0].is_closed);
	EXPECT_THAT("D3: all of them are in the file", run.account.walk.in_trace == 1001);
	defect_release(&run);
}

/* ---- D4 -------------------------------------------------------------------------------------- */

/* Without any setting the process's recording can be seen from outside while it runs. */
static void defaults_record_something(void)
{
	int ready[2], done[2], status;
	struct recording recording;
	const struct recording_process *process = NULL;
	char pid[32], byte = 0;
	pid_t child;

	if (pipe(ready) == -1 || pipe(done) == -1 || (child = fork()) == -1)
		exit(1);
	if (child == 0) {
		alarm(DEFECT_PATIENCE_S);
		defect_clean_settings();
		play_issue(play_init(1, 1, 2, 0), "AllReduce", 1024, "ncclFloat32", 1);
		if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
			_exit(1);
		/* Leave nothing in the real directory. */
		unlink(recorder.region.path);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
	recording_init(&recording);
	text_format(pid, sizeof(pid), "@%d", (int)child);
	EXPECT_EQUAL(recording_add(&recording, pid, 0), OK);
	recording_finish(&recording);
	/* An earlier process with this PID may have left its region there. */
	for (size_t i = 0; i < recording.count; i++)
		if (recording.processes[i]->life == RECORDING_ALIVE)
			process = recording.processes[i];
	EXPECT_THAT("D4: without any setting there is a recording",
		    process != NULL && process->comm_count == 1 &&
			    process->comms[0].counts.issued == 1);
	EXPECT_THAT("D4: the operation itself, too", process != NULL &&
							     process->flight_count == 1 &&
							     process->flights[0].op.bytes == 4096);
	recording_release(&recording);
	if (write(done[1], &byte, 1) != 1 || waitpid(child, &status, 0) != child)
		exit(1);
	EXPECT_EQUAL(status, 0);
}

/* ---- D5 -------------------------------------------------------------------------------------- */

static void tear_down_while_the_disk_is_frozen(void)
{
	void *context;

	sem_init(&frozen, 0, 0);
	sem_init(&thaw, 0, 0);
	context = play_init(1, 1, 2, 0);
	play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
	store_release(&is_frozen, 1);
	ncclProfiler_v5.finalize(context);
	/* The trace thread is now blocked in the disk and holds some records. */
	while (sem_wait(&frozen) == -1)
		;
	for (uint64_t i = 2; i < 50; i++) {
		context = play_init(i, 1, 2, 0);
		play_issue(context, "AllReduce", 8, "ncclFloat32", 1);
		ncclProfiler_v5.finalize(context);
	}
	store_release(&is_frozen, 0);
	sem_post(&thaw);
}

static void teardown_waits_for_nobody(void)
{
	struct defect_run run = defect_run("trace", tear_down_while_the_disk_is_frozen);

	EXPECT_THAT("D5: init, operations and finalize return while the trace thread is stuck",
		    WIFEXITED(run.status) && WEXITSTATUS(run.status) == 0);
	EXPECT_THAT("D5: and nothing is lost", defect_adds_up(&run, 49));
	defect_release(&run);
}

/* ---- D25, D27 -------------------------------------------------------------------------------- */

static void destroy_all_and_begin_again(void)
{
	for (int i = 0; i < 3; i++) {
		exit_at_once();
		for (uint32_t j = 0; j < recorder.region.comm_count; j++) {
			uint64_t word = recorder.region.comms[j].word;

			ncclProfiler_v5.finalize(
				handle_make(HANDLE_CONTEXT, REGION_GENERATION(word), j, 0));
		}
	}
}

static void a_new_beginning_truncates_nothing(void)
{
	struct defect_run run = defect_run("trace", destroy_all_and_begin_again);

	EXPECT_THAT("D25: all communicators destroyed and created again: nothing is truncated",
		    defect_adds_up(&run, 3003) && run.account.walk.in_trace == 3003);
	EXPECT_THAT("D25: one process has one file",
		    run.process != NULL && run.process->file_count == 1);
	defect_release(&run);
}

static void issue_small_ones(void)
{
	void *context = play_init(1, 1, 2, 0);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *api;

	play_issue(context, "AllReduce", 2, "ncclFloat32", 1);
	play_issue(context, "AllReduce", 1, "ncclInt8", 1);
	api = play_p2p_api(context, play_start(context, group), "Send", 0);
	play_p2p(context, api, "Send", 0, 1);
}

static bool sum_bytes(const struct op_record *op, enum recording_place place, void *sum)
{
	(void)place;
	*(uint64_t *)sum += op->bytes;
	return true;
}

static void small_operations_are_recorded(void)
{
	struct defect_run run = defect_run("trace", issue_small_ones);
	uint64_t bytes = 0;

	EXPECT_THAT("D27: operations of 8, 1 and 0 bytes are recorded like any other",
		    defect_adds_up(&run, 3) && run.account.lost_operations == 0);
	if (run.process != NULL)
		recording_each_op(run.process, sum_bytes, &bytes, NULL);
	EXPECT_THAT("D27: with their sizes", bytes == 9);
	defect_release(&run);
}

int main(void)
{
	a_burst_is_seen_or_counted();
	a_reader_that_stands_still_costs_no_count();
	an_exit_counts_what_the_disk_did_not_take();
	an_exit_counts_lines_that_the_disk_did_not_take();
	the_reason_of_a_failure_is_kept();
	a_destroyed_communicator_keeps_its_last_records("trace");
	open_communicators_wait_for_nothing();
	the_exit_flushes();
	defaults_record_something();
	teardown_waits_for_nobody();
	a_new_beginning_truncates_nothing();
	small_operations_are_recorded();
	return tap_done();
}
