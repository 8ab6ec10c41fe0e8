#include "recording/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/file.h"
#include "common/order.h"
#include "common/text.h"
#include "format/region_read.h"
#include "recording/recording.h"
#include "tests/support/sample_region.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static char directory[64]; /* "DIR/shm" */
static char boot_id[40];
static char path_of_cut[512];
static pid_t dead_pid;
static uint64_t now_ns = 1000 * SECOND_NS;

static const char *path_of(const char *name)
{
	static char path[512];

	text_format(path, sizeof(path), "%s/ringside-1/%s", directory, name);
	return path;
}

static uint64_t start_ticks_of_self(void)
{
	unsigned long long ticks = 0;
	char text[1024] = "";
	FILE *file = fopen("/proc/self/stat", "r");

	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		abort();
	fclose(file);
	sscanf(strrchr(text, ')') + 2,
	       "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	       &ticks);
	return ticks;
}

/* The region of a process on this host that started a moment ago. */
static struct sample region_of(pid_t pid, int rank, const char *host)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);
	uint64_t start_ticks = pid == getpid() ? start_ticks_of_self() : 5;
	uint64_t wall_ns = clock_system_ns(CLOCK_REALTIME),
		 clock_ns = clock_system_ns(CLOCK_MONOTONIC);
	char info[SAMPLE_INFO_BYTES];

	text_format(info, sizeof(info), "host=%s\njob=watched\nrank=%d\nmode=flight\n", host, rank);
	sample_set_info(&sample, info);
	memcpy(header->boot_id, boot_id, sizeof(boot_id));
	header->pid = (uint64_t)pid;
	header->pid_namespace = file_proc_namespace("self");
	header->start_ticks = start_ticks;
	header->first_anchor = (struct clock_anchor){ clock_ns, wall_ns };
	header->last_anchor = (struct clock_anchor){ clock_ns + 1000000, wall_ns + 1000000 };
	header->proxy_cursor = SAMPLE_PROXIES;
	header->totals_used = 1;
	return sample;
}

/* Like the recorder: in place. */
static void write_region(const char *name, const struct sample *sample)
{
	int fd = open(path_of(name), O_RDWR | O_CREAT, 0600);

	if (fd == -1 || pwrite(fd, sample->bytes, sample->size, 0) != (ssize_t)sample->size ||
	    ftruncate(fd, (off_t)sample->size) == -1 || close(fd) == -1)
		abort();
}

static void put_region(const char *name, pid_t pid, int rank)
{
	struct sample sample = region_of(pid, rank, "here");

	write_region(name, &sample);
	free(sample.bytes);
}

/* Of another job: nobody shares a communicator with it. */
static void put_stranger(const char *name, pid_t pid, int rank)
{
	struct sample sample = region_of(pid, rank, "here");

	for (uint32_t i = 0; i < 3; i++)
		((struct region_comm *)sample_slot(&sample, REGION_COMMS, i))->info.hash += 1000;
	write_region(name, &sample);
	free(sample.bytes);
}

/*
 * Quiet since the host booted, by its own clock; the wall clock has been set meanwhile. How long that is depends on the
 * host, which may have booted a minute ago.
 */
static void make_old(struct sample *sample)
{
	sample_head(sample)->first_anchor.clock_ns = 1000000;
	sample_head(sample)->last_anchor.clock_ns = 2000000;
}

static void put_old(const char *name, pid_t pid, int rank)
{
	struct sample sample = region_of(pid, rank, "here");

	make_old(&sample);
	write_region(name, &sample);
	free(sample.bytes);
}

static void empty_directory(void)
{
	nftw(directory, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	if (mkdir(directory, 0700) == -1 || mkdir(path_of(""), 0700) == -1)
		abort();
}

static void start_keeping(struct watch *watch, const char *host, uint64_t keep_ns)
{
	struct watch_settings settings = { .directory = directory,
					   .keep_ns = keep_ns,
					   .only_host = host };

	if (watch_init(watch, &settings) != OK)
		abort();
	/* Ignore memfds of whatever else is running, unless a test needs them. */
	watch->next_processes_ns = UINT64_MAX;
}

static void start(struct watch *watch, const char *host)
{
	start_keeping(watch, host, 60 * SECOND_NS);
}

/* By which an old region has been quiet for long. */
static void start_impatient(struct watch *watch)
{
	start_keeping(watch, NULL, SECOND_NS);
}

static enum status look(struct watch *watch, uint64_t seconds)
{
	now_ns += seconds * SECOND_NS;
	watch->earliest_ns = 0;
	return watch_look_at(watch, WATCH_TOTALS, now_ns);
}

static void test_nothing(void)
{
	struct watch watch;

	nftw(directory, scratch_remove_one, 8, FTW_DEPTH | FTW_PHYS);
	start(&watch, NULL);
	EXPECT_THAT("a missing directory is not an error", look(&watch, 1) == OK);
	EXPECT_EQUAL(watch.recording.count, 0);
	empty_directory();
	put_region("a", getpid(), 0);
	look(&watch, 10);
	EXPECT_THAT("a directory created later is found in time", watch.recording.count == 1);
	watch_release(&watch);
	watch_release(&watch);
	EXPECT_THAT("released twice", watch_fd(&watch) == -1);
}

static void test_idle(void)
{
	struct watch watch;
	uint64_t due_ns;

	empty_directory();
	start(&watch, NULL);
	look(&watch, 1);
	look(&watch, 5); /* until new names have settled */
	due_ns = watch.next_search_ns;
	for (int i = 0; i < 4; i++)
		look(&watch, 1);
	EXPECT_THAT("scans without events do not search", watch.next_search_ns == due_ns);
	look(&watch, 10);
	EXPECT_THAT("until 10 s have passed", watch.next_search_ns > due_ns);
	EXPECT_EQUAL(watch.generation, 0);
	watch_release(&watch);
}

static void test_found(void)
{
	const struct recording_process *process;
	struct watch watch;

	empty_directory();
	start(&watch, NULL);
	look(&watch, 1);
	put_region("a", getpid(), 3);
	EXPECT_THAT("a new name triggers a search", watch_heed(&watch));
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 1);
	EXPECT_EQUAL(watch.generation, 1);
	process = watch.recording.processes[0];
	EXPECT_THAT("it is alive",
		    process->life == RECORDING_ALIVE && process->pid_here == getpid());
	EXPECT_THAT("with its identity", process->rank == 3 && strcmp(process->host, "here") == 0);
	EXPECT_EQUAL(process->comm_count, 3);
	EXPECT_EQUAL(process->flight_count, 2);
	EXPECT_EQUAL(process->flights[0].proxy_count, 2);
	EXPECT_EQUAL(process->proxy_count, 1);
	EXPECT_THAT("totals begin with \"other\"",
		    process->total_count == 3 && process->totals[0].key == 0);
	EXPECT_THAT("and are sorted by key", process->totals[1].key < process->totals[2].key);
	look(&watch, 1);
	EXPECT_THAT("no process came or went", watch.generation == 1 && watch.recording.count == 1);
	EXPECT_THAT("no failures", watch.processes[0].failures == 0);
	watch_release(&watch);
}

/* Other programs use /dev/shm, too. */
static void test_strangers(void)
{
	char path[128];
	struct watch watch;

	empty_directory();
	start(&watch, NULL);
	look(&watch, 1);
	look(&watch, 5);
	text_format(path, sizeof(path), "%s/torch_123", directory);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	EXPECT_THAT("other files do not trigger a search", !watch_heed(&watch));
	for (int i = 0; i < 3000; i++) {
		unlink(path);
		/* Equal consecutive events are merged. */
		text_format(path, sizeof(path), "%s/torch_%d", directory, i);
		close(open(path, O_CREAT | O_WRONLY, 0600));
		if (i % 100 == 0)
			watch_heed(&watch);
	}
	watch_heed(&watch);
	look(&watch, 10);
	EXPECT_THAT("with too many of them, watching stops", watch.directory_watch == -1);
	watch_heed(&watch);
	put_region("a", getpid(), 0);
	EXPECT_THAT("except for recorders' directories", watch_heed(&watch));
	look(&watch, 100);
	EXPECT_THAT("and starts again later", watch.directory_watch != -1);
	EXPECT_EQUAL(watch.recording.count, 1);
	watch_release(&watch);
}

/* ---- following ------------------------------------------------------------------------------- */

/* Only finished operations: nothing is in flight. */
static struct sample quiet_region(void)
{
	struct sample sample = region_of(getpid(), 0, "here");

	for (uint32_t i = 0; i < SAMPLE_PROXIES; i++)
		((struct region_proxy *)sample_slot(&sample, REGION_PROXIES, i))->word = 0;
	((struct region_live *)sample_slot(&sample, REGION_LIVE, 1))->word = 0;
	return sample;
}

static const struct region_total *total_of(const struct recording_process *process, uint64_t key)
{
	for (size_t i = 0; i < process->total_count; i++)
		if (process->totals[i].key == key)
			return &process->totals[i];
	return NULL;
}

static uint64_t sample_total(const struct recording_process *process)
{
	const struct region_total *total = total_of(
		process, TOTALS_KEY(1, OP_ALL_REDUCE, OP_BFLOAT16, OP_RING, OP_SIMPLE, 12));

	return total != NULL ? total->count : 0;
}

static void test_stands_still(void)
{
	struct sample sample = quiet_region();
	struct region_comm *comm = sample_slot(&sample, REGION_COMMS, 0);
	struct region_total *total = sample_slot(&sample, REGION_TOTALS, 1);
	const struct recording_process *process;
	struct watch watch;

	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	process = watch.recording.processes[0];
	EXPECT_THAT("it is idle", recording_stands_still(process));
	EXPECT_EQUAL(process->comms[0].counts.issued, 7);
	/* Nothing shows that it moved, so this is not read. */
	total->count = 20;
	write_region("a", &sample);
	look(&watch, 1);
	EXPECT_EQUAL(sample_total(process), 11);
	comm->counts.issued++;
	write_region("a", &sample);
	EXPECT_THAT("a call is seen", !recording_stands_still(process));
	look(&watch, 1);
	EXPECT_EQUAL(process->comms[0].counts.issued, 8);
	EXPECT_EQUAL(sample_total(process), 20);
	total->count = 21;
	write_region("a", &sample);
	look(&watch, 11);
	EXPECT_THAT("from time to time everything is read", sample_total(process) == 21);
	sample_head(&sample)->lost[LOST_RING_BUSY] = 1;
	write_region("a", &sample);
	EXPECT_THAT("a loss is seen", !recording_stands_still(process));
	look(&watch, 1);
	EXPECT_EQUAL(process->lost[LOST_RING_BUSY], 1);
	watch_release(&watch);
	free(sample.bytes);
}

/* An operation that is done sits in its slot for a while before the recorder counts it. */
static void test_held_back(void)
{
	const uint64_t key =
		TOTALS_KEY(1, OP_ALL_REDUCE, OP_BFLOAT16, OP_RING, OP_SIMPLE, 2 + 11 + 13);
	struct sample sample = quiet_region();
	struct region_live *live = sample_slot(&sample, REGION_LIVE, 4);
	struct region_total *slot = sample_slot(&sample, REGION_TOTALS, 1);
	struct region_comm *comm = sample_slot(&sample, REGION_COMMS, 0);
	const struct recording_process *process;
	const struct region_total *total;
	struct watch watch;

	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	process = watch.recording.processes[0];
	total = total_of(process, key);
	EXPECT_THAT("it counts when it is done", total != NULL && total->count == 1);
	EXPECT_THAT("with bytes and time", total && total->bytes == live->op.bytes &&
						   total->sum_ns == 1500 && total->timed == 1 &&
						   total->timed_bytes == live->op.bytes &&
						   total->buckets[histogram_bucket(1500)] == 1);
	/* Between its slot and the totals: in neither. */
	live->word = UINT64_C(6) << 32;
	comm->counts.recorded++;
	write_region("a", &sample);
	look(&watch, 11);
	total = total_of(process, key);
	EXPECT_THAT("what is nowhere for a moment has no separate total", total == NULL);
	/* Then in the totals. */
	slot->key = key;
	slot->count = slot->timed = 1;
	slot->sum_ns = 1500;
	sample_head(&sample)->totals_used++;
	write_region("a", &sample);
	look(&watch, 1);
	total = total_of(process, key);
	EXPECT_THAT("once", total != NULL && total->count == 1);
	slot->count = 5;
	comm->counts.recorded++;
	write_region("a", &sample);
	look(&watch, 1);
	slot->count = 4;
	comm->counts.recorded++;
	write_region("a", &sample);
	look(&watch, 1);
	total = total_of(process, key);
	EXPECT_THAT("a total never decreases", total != NULL && total->count == 5);
	watch_release(&watch);
	free(sample.bytes);
}

/* Recorders up to minor version 4 have shorter slots, and nothing about launches of several operations. */
static void test_short_totals(void)
{
	struct sample sample = quiet_region();
	struct region_comm *comm = sample_slot(&sample, REGION_COMMS, 0);
	const struct recording_process *process;
	bool is_unknown = true;
	struct watch watch;

	sample_shorten_totals(&sample);
	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	/* The first scan reads all slots, the second those in use. */
	for (unsigned int i = 0; i < 2; i++) {
		struct region_total *total = sample_slot(&sample, REGION_TOTALS, 1);

		total->count = 11 + i;
		comm->counts.recorded += i;
		write_region("a", &sample);
		look(&watch, 1);
		process = watch.recording.processes[0];
		EXPECT_EQUAL(sample_total(process), 11 + i);
		for (size_t t = 0; t < process->total_count; t++)
			is_unknown &= process->totals[t].shared_ns == 0;
	}
	EXPECT(is_unknown);
	watch_release(&watch);
	free(sample.bytes);
}

/* Of operations that share a launch as the recorder counts them: no duration of their own. */
static void test_held_back_shared(void)
{
	const uint64_t key =
		TOTALS_KEY(1, OP_ALL_REDUCE, OP_BFLOAT16, OP_RING, OP_SIMPLE, 2 + 11 + 13);
	struct sample sample = quiet_region();
	struct region_live *live = sample_slot(&sample, REGION_LIVE, 4);
	const struct region_total *total;
	struct watch watch;

	live->op.flags |= OP_FLAG_SHARED_TIME;
	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	live->op.state = OP_DONE;
	live->op.time_source = OP_TIME_KERNEL_GPU;
	live->op.gpu_start_ns = 1000;
	live->op.gpu_stop_ns = 2500;
	((struct region_comm *)sample_slot(&sample, REGION_COMMS, 0))->counts.issued++;
	write_region("a", &sample);
	look(&watch, 1);
	total = total_of(watch.recording.processes[0], key);
	EXPECT_THAT("one that shares a launch counts as such",
		    total && total->count == 1 && total->timed == 0 && total->sum_ns == 0 &&
			    total->timed_bytes == 0 && total->shared == 1 &&
			    total->shared_ns == 1500);
	watch_release(&watch);
	free(sample.bytes);
}

static void test_cut(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct watch watch;

	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.processes[0]->comm_count, 3);
	if (truncate(path_of("a"), 5000) == -1)
		abort();
	EXPECT_THAT("a truncated region affects only itself", look(&watch, 1) == OK);
	EXPECT_EQUAL(watch.processes[0].failures, 1);
	EXPECT_THAT("its last state is kept",
		    watch.recording.processes[0]->comm_count == 3 &&
			    watch.recording.processes[0]->flight_count == 2);
	if (truncate(path_of("a"), 0) == -1)
		abort();
	look(&watch, 11);
	EXPECT_EQUAL(watch.processes[0].failures, 2);
	write_region("a", &sample);
	look(&watch, 1);
	EXPECT_THAT("and it continues when it is complete again", watch.processes[0].failures == 0);
	unlink(path_of("a"));
	look(&watch, 11);
	EXPECT_THAT("a living process is followed after its file is deleted",
		    watch.recording.count == 1 && watch.processes[0].failures == 0);
	watch_release(&watch);
	free(sample.bytes);
}

/* ---- death ----------------------------------------------------------------------------------- */

/* Cuts a region anywhere and makes it whole again, over and over. */
static struct {
	struct sample whole;
	uint32_t is_over, cuts;
} cutter;

static void *cut_often(void *unused)
{
	uint64_t random = 1;

	(void)unused;
	while (!load_acquire(&cutter.is_over)) {
		random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		if (truncate(path_of_cut, (off_t)((random >> 33) % cutter.whole.size)) == -1)
			abort();
		add_relaxed(&cutter.cuts, 1);
		write_region("cut", &cutter.whole);
	}
	return NULL;
}

/* What the command-line tool does: everything, once. True: all of it could be read. */
static bool reads_all(void)
{
	struct recording_account account = { 0 };
	struct recording recording;
	bool is_whole;

	recording_init(&recording);
	recording_add(&recording, path_of_cut, 0);
	recording_finish(&recording);
	is_whole = recording.count == 1 && recording.trouble_count == 0 &&
		   recording_account(&account, recording.processes[0]) == OK &&
		   account.comm_count == 3;
	recording_account_release(&account);
	recording_release(&recording);
	return is_whole;
}

/* Sizes are checked, then bytes are read, and the file can shrink in between. */
static void test_cut_often(void)
{
	unsigned int whole = 0, seen = 0;
	struct watch watch;
	pthread_t thread;

	empty_directory();
	text_copy(path_of_cut, sizeof(path_of_cut), path_of("cut"));
	cutter.whole = region_of(getpid(), 0, "here");
	write_region("cut", &cutter.whole);
	start(&watch, NULL);
	if (pthread_create(&thread, NULL, cut_often, NULL) != 0)
		abort();
	for (int i = 0; i < 500 || load_relaxed(&cutter.cuts) < 500; i++) {
		whole += reads_all();
		look(&watch, 20);
		seen += watch.recording.count == 1;
	}
	store_release(&cutter.is_over, 1);
	pthread_join(thread, NULL);
	printf("# cut %u times; whole %u times, followed %u times\n", cutter.cuts, whole, seen);
	EXPECT_THAT("a region that is cut while it is read is read afterwards", reads_all());
	for (int i = 0; i < 10 && watch.recording.count == 0; i++)
		look(&watch, 20);
	EXPECT_THAT("and followed",
		    watch.recording.count == 1 && watch.recording.processes[0]->comm_count == 3);
	watch_release(&watch);
	free(cutter.whole.bytes);
}

static void test_killed(void)
{
	struct watch watch;

	empty_directory();
	put_region("a", dead_pid, 0);
	put_stranger("b", getpid(), 1);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 2);
	EXPECT_THAT("recognized by its identity",
		    watch.recording.processes[0]->life == RECORDING_KILLED);
	EXPECT_THAT("and since when", watch.processes[0].died_ns != 0);
	EXPECT_THAT("its state is there", watch.recording.processes[0]->comm_count == 3 &&
						  watch.recording.processes[0]->total_count > 1);
	EXPECT_THAT("its file is closed", watch.recording.processes[0]->region->fd == -1);
	look(&watch, 30);
	EXPECT_EQUAL(watch.recording.count, 2);
	look(&watch, 60);
	EXPECT_THAT("then it is forgotten",
		    watch.recording.count == 1 && watch.recording.processes[0]->rank == 1);
	look(&watch, 20);
	EXPECT_THAT("and not found again", watch.recording.count == 1);
	EXPECT_EQUAL(watch.past_count, 1);
	unlink(path_of("a"));
	look(&watch, 20);
	EXPECT_EQUAL(watch.past_count, 0);
	watch_release(&watch);
}

/* The sweep of another process marks its file with a new time of change. */
static void test_marked(void)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, { .tv_sec = 1000000 } };
	struct watch watch;

	empty_directory();
	put_region("a", dead_pid, 0);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 1);
	EXPECT_EQUAL(utimensat(AT_FDCWD, path_of("a"), times, 0), 0);
	look(&watch, 20);
	EXPECT_THAT("a dead process is listed once, whoever found it", watch.recording.count == 1);
	look(&watch, 60);
	EXPECT_EQUAL(watch.recording.count, 0);
	EXPECT_THAT("and put aside as it is now",
		    watch.past_count == 1 && watch.refused_count == 0);
	watch_release(&watch);
}

/* A job hangs for as long as its framework lets it, because one rank was killed. */
static void test_missed(void)
{
	struct watch watch;

	empty_directory();
	put_region("a", dead_pid, 0);
	put_region("b", getpid(), 1);
	put_stranger("c", dead_pid, 2);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 3);
	look(&watch, 3600);
	EXPECT_THAT("kept while a process that lives has a communicator with it",
		    watch.recording.count == 2 && watch.recording.processes[0]->rank == 0);
	watch_release(&watch);
	/* Started long after. */
	unlink(path_of("c"));
	put_old("a", dead_pid, 0);
	start_impatient(&watch);
	look(&watch, 1);
	EXPECT_THAT("and found, though it is dead for long",
		    watch.recording.count == 2 && watch.recording.processes[0]->rank == 0);
	watch_release(&watch);
	unlink(path_of("b"));
	start_impatient(&watch);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 0);
	watch_release(&watch);
}

static void test_dies(void)
{
	struct watch watch;
	int ready[2];
	char byte;
	pid_t child;

	empty_directory();
	if (pipe(ready) == -1 || (child = fork()) == -1)
		abort();
	if (child == 0) {
		put_region("a", getpid(), 0);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		abort();
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_THAT("it is alive", watch.recording.count == 1 && watch.processes[0].died_ns == 0 &&
					   watch.recording.processes[0]->life == RECORDING_ALIVE);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	look(&watch, 1);
	EXPECT_THAT("it died", watch.processes[0].died_ns == now_ns &&
				       watch.recording.processes[0]->life == RECORDING_KILLED);
	EXPECT_EQUAL(watch.generation, 2);
	look(&watch, 1);
	EXPECT_EQUAL(watch.generation, 2);
	close(ready[0]);
	close(ready[1]);
	watch_release(&watch);
}

static void test_ended(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct watch watch;

	empty_directory();
	write_region("a", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	sample_head(&sample)->ended_ns = 3000000;
	write_region("a", &sample);
	look(&watch, 1);
	EXPECT_THAT("a process that ended cleanly is not killed",
		    watch.recording.processes[0]->life == RECORDING_ENDED &&
			    watch.processes[0].died_ns == now_ns);
	watch_release(&watch);
	/* Found by a watcher that starts later. */
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 1);
	watch_release(&watch);
	make_old(&sample);
	write_region("a", &sample);
	start_impatient(&watch);
	look(&watch, 1);
	EXPECT_THAT("much later it is not followed any more",
		    watch.recording.count == 0 && watch.past_count == 1);
	watch_release(&watch);
	free(sample.bytes);
}

/* ---- what is none ---------------------------------------------------------------------------- */

static void test_refused(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct watch watch;

	empty_directory();
	sample_head(&sample)->parts[REGION_LIVE].stride = 7;
	write_region("bad", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_EQUAL(watch.refused_count, 1);
	EXPECT_THAT("which and why", strstr(watch.refused[0].path, "/bad") != NULL &&
					     strstr(watch.refused[0].why, "invalid") != NULL);
	look(&watch, 10);
	EXPECT_THAT("reported once", watch.refused_count == 1 && watch.recording.count == 0);
	sample_head(&sample)->parts[REGION_LIVE].stride = sizeof(struct region_live);
	write_region("bad", &sample);
	look(&watch, 10);
	EXPECT_THAT("retried after a change",
		    watch.refused_count == 0 && watch.recording.count == 1);
	/* A copy of it. */
	write_region("copy", &sample);
	look(&watch, 10);
	EXPECT_THAT("a copy is not another process",
		    watch.recording.count == 1 && watch.refused_count == 1);
	unlink(path_of("copy"));
	look(&watch, 10);
	EXPECT_EQUAL(watch.refused_count, 0);
	watch_release(&watch);
	free(sample.bytes);
}

static void test_oversized(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct region_part *part = &sample_head(&sample)->parts[REGION_PROXIES];
	struct watch watch;

	empty_directory();
	part->offset = (sample.size + 63) & ~UINT64_C(63);
	part->count = 100000;
	sample_head(&sample)->total_bytes = part->offset + (uint64_t)part->count * part->stride;
	write_region("large", &sample);
	if (truncate(path_of("large"), (off_t)sample_head(&sample)->total_bytes) == -1)
		abort();
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_THAT("oversized tables are rejected",
		    watch.recording.count == 0 && watch.refused_count == 1 &&
			    strstr(watch.refused[0].why, "larger") != NULL);
	watch_release(&watch);
	free(sample.bytes);
}

static void test_oversized_slots(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct region_part *part = &sample_head(&sample)->parts[REGION_LIVE];
	struct watch watch;

	empty_directory();
	part->offset = (sample.size + 63) & ~UINT64_C(63);
	part->stride = 1 << 16;
	sample_head(&sample)->total_bytes = part->offset + (uint64_t)part->count * part->stride;
	write_region("wide", &sample);
	if (truncate(path_of("wide"), (off_t)sample_head(&sample)->total_bytes) == -1)
		abort();
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_THAT("oversized slots are rejected, too",
		    watch.recording.count == 0 && watch.refused_count == 1);
	watch_release(&watch);
	free(sample.bytes);
}

/* Only root can change the owner of a file. */
static void test_forged(void)
{
	struct sample sample = region_of(getpid(), 0, "here");
	struct watch watch;

	empty_directory();
	write_region("forged", &sample);
	if (chown(path_of("forged"), 12345, (gid_t)-1) == 0) {
		start(&watch, NULL);
		look(&watch, 1);
		EXPECT_THAT("a file that claims another user's process is rejected",
			    watch.recording.count == 0 && watch.refused_count == 1 &&
				    strstr(watch.refused[0].why, "another user") != NULL);
		watch_release(&watch);
	}
	free(sample.bytes);
}

/* The same job and communicators, another user. */
static void test_owners(void)
{
	struct watch watch;
	bool is_apart;

	empty_directory();
	put_region("mine", dead_pid, 0);
	put_region("theirs", dead_pid, 1);
	if (chown(path_of("theirs"), 12345, (gid_t)-1) == -1)
		return;
	start(&watch, NULL);
	look(&watch, 1);
	is_apart = watch.recording.count == 2 &&
		   strcmp(watch.recording.processes[0]->job, "watched") == 0 &&
		   strcmp(watch.recording.processes[1]->job, "watched (uid 12345)") == 0;
	EXPECT_THAT("processes of different users are not of one job", is_apart);
	watch_release(&watch);
	start(&watch, NULL);
	watch.settings.is_any_owner = true;
	look(&watch, 1);
	EXPECT_THAT("unless that is asked for",
		    watch.recording.count == 2 &&
			    strcmp(watch.recording.processes[1]->job, "watched") == 0);
	watch_release(&watch);
}

static void test_oddities(void)
{
	struct watch watch;
	char name[32];
	int fd;

	empty_directory();
	put_region("real", getpid(), 0);
	if (mkfifo(path_of("pipe.region"), 0600) == -1 ||
	    mkdir(path_of("dir.region"), 0700) == -1 ||
	    symlink("real", path_of("link.region")) == -1)
		abort();
	for (int i = 0; i < 2000; i++) {
		text_format(name, sizeof(name), "junk%d", i);
		fd = open(path_of(name), O_CREAT | O_WRONLY, 0600);
		if (fd == -1 || (i % 2 && write(fd, "RREGION1 and more", 17) != 17))
			abort();
		close(fd);
	}
	close(open(path_of("secret.region"), O_CREAT | O_WRONLY, 0000));
	start(&watch, NULL);
	EXPECT_THAT("pipes, links, directories and junk are survived", look(&watch, 1) == OK);
	EXPECT_THAT("of files that are none to follow, a search reads a few",
		    watch.refused_count <= WATCH_OWNER_IN_VAIN);
	for (int i = 0; i < 80; i++)
		look(&watch, 10);
	EXPECT_THAT("the real one is found among them", watch.recording.count == 1);
	EXPECT_THAT("junk that looks like a region is listed, up to a limit",
		    watch.refused_count == 1000 && watch.refused_count <= WATCH_REFUSED_MAX);
	EXPECT_THAT("unreadable files are counted", watch.unreadable == (geteuid() == 0 ? 0 : 1));
	watch_release(&watch);
}

/* The first processes of two containers that were started together. */
static void test_containers(void)
{
	struct sample sample = region_of(1, 0, "here");
	struct watch watch;

	empty_directory();
	sample_head(&sample)->pid_namespace = 17;
	write_region("one", &sample);
	sample_head(&sample)->pid_namespace = 18;
	write_region("other", &sample);
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_THAT("equal pids in two namespaces are two processes",
		    watch.recording.count == 2 && watch.refused_count == 0);
	watch_release(&watch);
	free(sample.bytes);
}

static void test_host(void)
{
	struct sample sample = region_of(getpid(), 0, "elsewhere");
	struct watch watch;

	empty_directory();
	write_region("a", &sample);
	start(&watch, "here");
	look(&watch, 1);
	EXPECT_THAT("processes with another hostname are skipped",
		    watch.recording.count == 0 && watch.refused_count == 0);
	watch_release(&watch);
	start(&watch, "elsewhere");
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, 1);
	watch_release(&watch);
	free(sample.bytes);
}

static void test_memfd(void)
{
	struct sample sample = region_of(getpid(), 77, "here");
	int fd = memfd_create("ringside", MFD_CLOEXEC);
	struct watch watch;
	size_t found = 0;

	empty_directory();
	if (fd == -1 || write(fd, sample.bytes, sample.size) != (ssize_t)sample.size)
		abort();
	start(&watch, NULL);
	watch.next_processes_ns = 0;
	look(&watch, 1);
	for (size_t i = 0; i < watch.recording.count; i++)
		found += watch.recording.processes[i]->rank == 77;
	EXPECT_THAT("a memfd is found, too", found == 1);
	watch_release(&watch);
	close(fd);
	free(sample.bytes);
}

/* ---- many ------------------------------------------------------------------------------------ */

static void test_order(void)
{
	struct watch watch;
	bool is_sorted = true;
	char name[16];

	empty_directory();
	start(&watch, NULL);
	look(&watch, 1);
	for (int i = 0; i < 40; i++) {
		text_format(name, sizeof(name), "%d", i);
		put_region(name, dead_pid, (i * 7) % 40);
		if (i % 10 == 9)
			look(&watch, 1);
	}
	for (size_t i = 0; i < watch.recording.count; i++)
		is_sorted &= watch.recording.processes[i]->rank == (int64_t)i;
	EXPECT_EQUAL(watch.recording.count, 40);
	EXPECT_THAT("sorted by rank, whatever the order of arrival", is_sorted);
	watch_release(&watch);
}

/* Before its first communicator, and dead. */
static void put_small(const char *name, int rank)
{
	struct sample sample = region_of(dead_pid, rank, "here");

	for (uint32_t i = 0; i < 3; i++)
		*(struct region_comm *)sample_slot(&sample, REGION_COMMS, i) =
			(struct region_comm){ .word = 0 };
	write_region(name, &sample);
	free(sample.bytes);
}

static uint64_t later_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

/* One user has more than the limit. */
static void test_crowd(void)
{
	struct watch watch;
	char name[16];

	empty_directory();
	for (int i = 0; i < WATCH_OWNER_MAX + 6; i++) {
		text_format(name, sizeof(name), "%d", i);
		put_small(name, i);
	}
	start(&watch, NULL);
	look(&watch, 1);
	EXPECT_THAT("a long directory takes several steps",
		    watch.recording.count == 0 && watch_is_searching(&watch));
	while (watch_search_more(&watch))
		;
	EXPECT_THAT("which add no process", watch.recording.count == 0);
	/* The machine was busy with something else, for a minute. */
	watch.search_ns += 60 * SECOND_NS;
	look(&watch, 1);
	EXPECT_THAT("a search that waited for the processor does not delay the next one",
		    watch.search_cpu_ns > 0 &&
			    watch.earliest_ns <=
				    now_ns + later_of(10 * SECOND_NS, 50 * watch.search_cpu_ns));
	EXPECT_THAT("many processes are added a few at a time",
		    watch.recording.count == 256 && watch_is_searching(&watch));
	/* As many scans as it takes. */
	for (int i = 0; i < 1000 && watch.recording.count < WATCH_OWNER_MAX; i++)
		look(&watch, 1);
	look(&watch, 1);
	EXPECT_EQUAL(watch.recording.count, WATCH_OWNER_MAX);
	EXPECT_EQUAL(watch.left_out, 6);
	watch_release(&watch);
}

/* How many were read in the scan that began at `now_ns`. */
static size_t read_by_now(const struct watch *watch)
{
	size_t count = 0;

	for (size_t i = 0; i < watch->recording.count; i++)
		count += watch->processes[i].read_ns == now_ns;
	return count;
}

/* A scan in steps of `effort`. Returns their number; *most: processes that a step has found or read, at most. */
static size_t look_in_steps(struct watch *watch, uint64_t effort, size_t *most)
{
	bool is_over = false;
	size_t steps = 0;

	*most = 0;
	now_ns += 10 * SECOND_NS;
	watch->earliest_ns = 0;
	for (watch_look_begin(watch, WATCH_TOTALS, now_ns); !is_over; steps++) {
		size_t found = watch->recording.count, read = read_by_now(watch), done;

		if (watch_look_step(watch, effort, &is_over) != OK)
			abort();
		done = watch->recording.count - found + read_by_now(watch) - read;
		*most = done > *most ? done : *most;
	}
	return steps;
}

/* Of a process that nobody can find, so it is read for ever. */
static void put_unknown(const char *name, int rank)
{
	struct sample sample = region_of(4000 + rank, rank, "here");

	sample_head(&sample)->pid_namespace = 17;
	write_region(name, &sample);
	free(sample.bytes);
}

static void test_steps(void)
{
	enum { COUNT = 12 };
	size_t steps, most;
	struct watch watch;
	char name[16];

	empty_directory();
	for (int i = 0; i < COUNT; i++) {
		text_format(name, sizeof(name), "s%d", i);
		put_region(name, dead_pid, i);
	}
	start(&watch, NULL);
	steps = look_in_steps(&watch, 1, &most);
	EXPECT_THAT("the first scan finds and reads one process after the other",
		    watch.recording.count == COUNT && most == 1 && steps >= 2 * COUNT);
	EXPECT_THAT("all of them", read_by_now(&watch) == COUNT && !watch_is_searching(&watch));
	watch_release(&watch);

	empty_directory();
	for (int i = 0; i < COUNT; i++) {
		text_format(name, sizeof(name), "s%d", i);
		put_unknown(name, i);
	}
	start(&watch, NULL);
	do
		look_in_steps(&watch, 1, &most);
	while (watch_is_searching(&watch));
	steps = look_in_steps(&watch, 1, &most);
	EXPECT_THAT("later ones read one after the other",
		    most == 1 && steps >= COUNT && read_by_now(&watch) == COUNT);
	steps = look_in_steps(&watch, UINT64_MAX / 2, &most);
	EXPECT_THAT("or all of them at once, if that is little", most == COUNT && steps <= 2);
	put_unknown("s99", 99);
	look_in_steps(&watch, 1, &most);
	EXPECT_THAT("one that comes is found by the next scan",
		    watch.recording.count == COUNT + 1 && read_by_now(&watch) == COUNT + 1);
	watch_release(&watch);

	/* Files that nobody can use cost a step, too. */
	empty_directory();
	for (int i = 0; i < COUNT; i++) {
		struct sample sample = region_of(getpid(), i, "here");

		text_format(name, sizeof(name), "s%d", i);
		sample_head(&sample)->parts[REGION_COMMS].count = UINT32_MAX;
		write_region(name, &sample);
		free(sample.bytes);
	}
	start(&watch, NULL);
	steps = look_in_steps(&watch, 1, &most);
	EXPECT_THAT("a file that is refused is a step of its own",
		    watch.refused_count == COUNT && steps >= COUNT);
	watch_release(&watch);
}

/* ---- limits of a user ------------------------------------------------------------------------- */

enum { STRANGER = 12345, TOTALS = 1024 };

/* A region with a full table of totals, of a process in a pid namespace that nobody knows. */
static bool put_large(const char *name, int rank, uid_t owner)
{
	struct sample sample = region_of(4000 + rank, rank, "here");
	size_t bytes = TOTALS * sizeof(struct region_total);
	struct region_part *part = &sample_head(&sample)->parts[REGION_TOTALS];

	sample.bytes = realloc(sample.bytes, sample.size + bytes);
	if (sample.bytes == NULL)
		abort();
	memset(sample.bytes + sample.size, 0, bytes);
	part = &sample_head(&sample)->parts[REGION_TOTALS];
	part->offset = sample.size;
	part->count = TOTALS;
	sample.size += bytes;
	sample_head(&sample)->total_bytes = sample.size;
	sample_head(&sample)->pid_namespace = 17;
	for (uint32_t i = 1; i < TOTALS; i++) {
		struct region_total *total = sample_slot(&sample, REGION_TOTALS, i);

		total->key = TOTALS_KEY(1, i % 5, i / 5 % 9, 0, 0, i / 45);
		total->count = 1;
	}
	write_region(name, &sample);
	free(sample.bytes);
	return chown(path_of(name), owner, (gid_t)-1) == 0;
}

static size_t count_of(const struct watch *watch, uint32_t owner)
{
	size_t count = 0;

	for (size_t i = 0; i < watch->recording.count; i++)
		count += watch->processes[i].file.owner == owner;
	return count;
}

static void look_until_found(struct watch *watch)
{
	do
		look(watch, 1);
	while (watch_is_searching(watch));
}

/* One user has more than fits into memory. Only root can act as another user. */
static void test_user_budget(void)
{
	const struct recording_left_out *left_out;
	struct watch watch;
	char name[16];
	size_t taken;
	bool is_within = true;

	empty_directory();
	for (int i = 0; i < 40; i++) {
		text_format(name, sizeof(name), "large%d", i);
		if (!put_large(name, i, STRANGER))
			return;
	}
	put_region("mine", getpid(), 0);
	start(&watch, NULL);
	/* Four scans until it is settled; then nothing changes any more. */
	for (int i = 0; i < 8; i++) {
		look(&watch, 1);
		is_within &= watch.bytes <= WATCH_BYTES_MAX;
	}
	taken = count_of(&watch, STRANGER);
	EXPECT_THAT("a user gets no more than the limit",
		    is_within && taken > 0 && taken < 40 &&
			    watch.bytes > WATCH_OWNER_BYTES_MAX / 2 &&
			    watch.bytes < WATCH_OWNER_BYTES_MAX + WATCH_OWNER_BYTES_MAX / 4);
	EXPECT_THAT("others are followed, with all they have",
		    count_of(&watch, geteuid()) == 1 &&
			    watch.recording.processes[watch.recording.count - 1]->comm_count == 3);
	left_out = watch.recording.left_out;
	EXPECT_THAT("what is left out is counted, by user",
		    watch.recording.left_out_count == 1 && left_out->owner == STRANGER &&
			    left_out->processes == 40 - taken && watch.left_out == 40 - taken);
	for (int i = 0; i < 40; i++) {
		text_format(name, sizeof(name), "large%d", i);
		if (i % 8 != 0)
			unlink(path_of(name));
	}
	for (int i = 0; i < 10; i++)
		look(&watch, 20);
	EXPECT_EQUAL(count_of(&watch, STRANGER), 5);
	EXPECT_THAT("what fits later is followed then", watch.recording.left_out_count == 0);
	watch_release(&watch);
}

/* Two users have too much: whoever has the most gives way. */
static void test_users_share(void)
{
	struct watch watch;
	char name[16];
	size_t of_large, of_stranger;

	empty_directory();
	for (int i = 0; i < 30; i++) {
		text_format(name, sizeof(name), "a%d", i);
		if (!put_large(name, i, STRANGER + i % 5))
			return;
	}
	for (int i = 30; i < 33; i++) {
		text_format(name, sizeof(name), "z%d", i);
		put_large(name, i, STRANGER + 9);
	}
	start(&watch, NULL);
	/* Nine scans until it is settled. */
	for (int i = 0; i < 13; i++)
		look(&watch, 1);
	of_stranger = count_of(&watch, STRANGER + 9);
	of_large = count_of(&watch, STRANGER);
	EXPECT_THAT("all users together get no more than the total",
		    watch.bytes <= WATCH_BYTES_MAX);
	EXPECT_THAT("whoever has little keeps it",
		    of_stranger == 3 && of_large >= 3 && of_large < 6);
	watch_release(&watch);
}

/* Any number of files: what a search does in a step, and of one user, is limited. */
static void test_user_files(void)
{
	struct watch watch;
	char name[32];
	uint64_t before;
	bool is_bounded = true;
	int steps = 0;

	empty_directory();
	for (int i = 0; i < WATCH_OWNER_FILES + 500; i++) {
		text_format(name, sizeof(name), "junk%d", i);
		close(open(path_of(name), O_CREAT | O_WRONLY, 0600));
	}
	start(&watch, NULL);
	look(&watch, 1);
	do {
		before = region_search_effort(watch.search);
		steps++;
		if (!watch_search_more(&watch))
			break;
		is_bounded &= region_search_effort(watch.search) - before <= 16100;
	} while (steps < 1000);
	EXPECT_THAT("a step looks at a thousand files at most", is_bounded && steps >= 3);
	EXPECT_THAT("a user's files are limited",
		    region_search_effort(watch.search) < (WATCH_OWNER_FILES + 100) * 17);
	look_until_found(&watch);
	EXPECT_THAT("and that is reported",
		    watch.recording.left_out_count == 1 &&
			    watch.recording.left_out[0].owner == geteuid() &&
			    watch.recording.left_out[0].directories == 1);
	watch_release(&watch);
}

static void test_coming_and_going(void)
{
	struct watch watch;
	char name[16];
	size_t most = 0;

	empty_directory();
	start(&watch, NULL);
	for (int round = 0; round < (TAP_IS_SLOW ? 20 : 60); round++) {
		for (int i = 0; i < 25; i++) {
			text_format(name, sizeof(name), "%d", round * 25 + i);
			put_region(name, dead_pid, i);
			if (round > 0) {
				text_format(name, sizeof(name), "%d", (round - 1) * 25 + i);
				unlink(path_of(name));
			}
		}
		look(&watch, 20);
		if (watch.recording.count > most)
			most = watch.recording.count;
	}
	EXPECT_THAT("and removed again", most <= 5 * 25 && most >= 25);
	look(&watch, 1000);
	EXPECT_EQUAL(watch.recording.count, 0);
	watch_release(&watch);
}

int main(void)
{
	text_format(directory, sizeof(directory), "%s/shm", scratch_make());
	region_boot_id(boot_id);
	if (mkdir(directory, 0700) == -1)
		abort();
	dead_pid = fork();
	if (dead_pid == 0)
		_exit(0);
	waitpid(dead_pid, NULL, 0);
	if (TAP_FINDS_RACES) {
		test_cut_often();
		return tap_done();
	}
	test_nothing();
	test_idle();
	test_found();
	test_strangers();
	test_stands_still();
	test_held_back();
	test_held_back_shared();
	test_short_totals();
	test_cut();
	test_cut_often();
	test_killed();
	test_marked();
	test_missed();
	test_dies();
	test_ended();
	test_refused();
	test_oversized();
	test_oversized_slots();
	test_forged();
	test_owners();
	test_oddities();
	test_containers();
	test_host();
	test_memfd();
	test_order();
	test_crowd();
	test_steps();
	test_user_budget();
	test_users_share();
	test_user_files();
	test_coming_and_going();
	return tap_done();
}
