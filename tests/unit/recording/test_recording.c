#include "recording/recording.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.h"
#include "common/text.h"
#include "format/region_read.h"
#include "tests/support/sample_region.h"
#include "tests/tap.h"

static char directory[] = "/tmp/test_recording.XXXXXX";
static char boot_id[40];
static pid_t dead_pid; /* of a process that is gone */

static const char *path_of(const char *name)
{
	static char path[512];

	text_format(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_file(const char *name, const struct sample *sample)
{
	FILE *file = fopen(path_of(name), "wb");

	if (file == NULL || fwrite(sample->bytes, 1, sample->size, file) != sample->size ||
	    fclose(file) != 0)
		abort();
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	(void)st, (void)kind, (void)ftw;
	return remove(path);
}

/* An empty directory for the next test. */
static void start_over(void)
{
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (mkdir(directory, 0700) == -1)
		abort();
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

/* The info text of a process of this machine. */
static const char *info_of(pid_t pid, uint64_t start_ticks, int rank, const char *region)
{
	static char text[SAMPLE_INFO_BYTES];

	text_format(
		text, sizeof(text),
		"host=here\nboot_id=%s\npid=%d\npid_namespace=%llu\nstart_ticks=%llu\njob=test\n"
		"rank=%d\nmode=trace\nregion=%s\ntrace=%s/trace\n",
		boot_id, (int)pid, (unsigned long long)file_proc_namespace("self"),
		(unsigned long long)start_ticks, rank, region, directory);
	return text;
}

/* A trace with the operations 1..5 and no end. */
static struct sample open_trace(const char *info)
{
	struct sample sample = { NULL, 0, 0 };
	struct comm_info comms[SAMPLE_COMMS] = { sample_comm(1), sample_comm(2) };

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), SAMPLE_COMMS);
	sample_ops(&sample, 1, SAMPLE_OPS);
	return sample;
}

static struct sample region_with(const char *info, pid_t pid, uint64_t start_ticks)
{
	struct sample sample = sample_region();
	struct region_header *header = sample_head(&sample);

	sample_set_info(&sample, info);
	memcpy(header->boot_id, boot_id, sizeof(boot_id));
	header->pid = (uint64_t)pid;
	header->pid_namespace = file_proc_namespace("self");
	header->start_ticks = start_ticks;
	header->mode = REGION_MODE_TRACE;
	header->drained = 5;
	return sample;
}

/* The result of a walk: sequences, or 1000 * communicator + number for live ones. */
struct given {
	uint64_t list[64];
	size_t count;
	size_t limit;
};

static bool note_op(const struct op_record *op, enum recording_place place, void *context)
{
	struct given *given = context;

	given->list[given->count++] =
		place == RECORDING_IN_LIVE ? 1000 * op->comm + op->number : op->sequence;
	return given->count < 64 && given->count != given->limit;
}

static bool note_detail(const struct op_detail *detail, enum recording_place place, void *context)
{
	struct given *given = context;

	(void)place;
	given->list[given->count++] = detail->sequence;
	return given->count < 64;
}

static int is_given(const struct given *given, const uint64_t *wanted, size_t count)
{
	return given->count == count && memcmp(given->list, wanted, count * sizeof(*wanted)) == 0;
}

static size_t count_kind(const struct recording *recording, enum recording_trouble_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->trouble_count; i++)
		count += recording->troubles[i].kind == kind;
	return count;
}

static void load(struct recording *recording, const char *path, unsigned int flags)
{
	recording_init(recording);
	if (recording_add(recording, path, flags) != OK || recording_finish(recording) != OK)
		abort();
}

static void test_trace(void)
{
	static const uint64_t all[] = { 1, 2, 3, 4, 5, 6, 7 };
	struct sample sample = sample_trace();
	struct recording_account account;
	struct recording_process *process;
	struct recording_walk walk;
	struct recording recording;
	struct given given = { .count = 0 };
	uint64_t wall;
	char text[32];

	write_file("trace", &sample);
	load(&recording, path_of("trace"), 0);
	if (!EXPECT(recording.count == 1 && recording.trouble_count == 0))
		return;
	process = recording.processes[0];
	EXPECT(process->rank == 3 && process->pid == 4711 && process->world_size == 8);
	EXPECT(strcmp(process->host, "node-1") == 0 && strcmp(process->job, "sample") == 0);
	EXPECT(recording_info(process, "label.team", text, sizeof(text)) &&
	       strcmp(text, "blue") == 0);
	EXPECT_EQUAL(process->life, RECORDING_ENDED);
	EXPECT(process->file_count == 1 && process->files[0].records == 7 &&
	       process->files[0].details == 3 && process->files[0].is_closed);
	EXPECT(process->files[0].first_sequence == 1 && process->files[0].last_sequence == 7);
	EXPECT(process->comm_count == 2 && recording_comm(process, 2)->counts.issued == 4);
	EXPECT(recording_comm(process, 3) == NULL);
	EXPECT(strcmp(recording_name(process, OP_NAMES_DATATYPE, OP_NAME_INTERNED), "ncclFloat4") ==
	       0);
	EXPECT(strcmp(recording_name(process, OP_NAMES_DATATYPE, 200), "?") == 0);
	EXPECT(strcmp(recording_name(process, OP_NAMES_FUNCTION, OP_SEND), "Send") == 0);
	EXPECT(recording_wall_ns(process, 1000007, &wall) && wall == SAMPLE_CREATED_NS + 7);
	EXPECT(recording_wall_ns(process, 2000005, &wall) && wall == SAMPLE_CREATED_NS + 1000015);
	EXPECT_EQUAL(recording_each_op(process, note_op, &given, &walk), OK);
	EXPECT(is_given(&given, all, 7) && walk.in_trace == 7 && walk.refused == 0);
	given = (struct given){ .limit = 3 };
	EXPECT_EQUAL(recording_each_op(process, note_op, &given, NULL), OK);
	EXPECT_THAT("a visitor can end the walk", given.count == 3);
	given = (struct given){ .count = 0 };
	EXPECT_EQUAL(recording_each_detail(process, note_detail, &given, NULL), OK);
	EXPECT(is_given(&given, all, 3));
	EXPECT_EQUAL(recording_account(&account, process), OK);
	EXPECT(account.is_exact && account.keeps_all && account.issued == 7 && account.kept == 7 &&
	       account.missing == 0 && account.unread == 0);
	EXPECT(account.lost_operations == 0 && account.lost_details == 1);
	recording_account_release(&account);
	recording_release(&recording);
	free(sample.bytes);
}

static void test_directory(void)
{
	struct sample sample = sample_trace(), foreign = { NULL, 0, 0 }, newer = { NULL, 0, 0 };
	struct recording_account account;
	struct recording recording;
	char link[600];

	sample_put(&foreign, "#!/bin/sh\n", 10);
	sample_header(&newer, TRACE_MAJOR + 1, 0);
	if (mkdir(path_of("sub"), 0700) == -1 || mkdir(path_of("sub/deeper"), 0700) == -1 ||
	    mkfifo(path_of("sub/pipe"), 0600) == -1)
		abort();
	write_file("sub/deeper/whole", &sample);
	write_file("script.ringside", &foreign);
	write_file("newer", &newer);
	foreign.size = 0;
	write_file("empty", &foreign);
	text_format(link, sizeof(link), "%s", path_of("sub/link"));
	if (symlink(path_of("sub/deeper/whole"), link) == -1 ||
	    (text_format(link, sizeof(link), "%s", path_of("sub/loop")) &&
	     symlink("..", link) == -1))
		abort();
	/* Another process, with a damaged block of operations. */
	free(sample.bytes);
	sample = (struct sample){ NULL, 0, 0 };
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_blocks(&sample, "host=node-1\npid=4712\nstart_ticks=1\nrank=4\njob=sample\n"
			       "mode=trace\n");
	sample.bytes[sample.size - 750] ^= 1;
	write_file("sub/damaged", &sample);

	load(&recording, directory, 0);
	EXPECT_EQUAL(recording.count, 2);
	EXPECT_THAT("sorted by rank",
		    recording.processes[0]->rank == 3 && recording.processes[1]->rank == 4);
	EXPECT_EQUAL(recording.files_foreign, 2);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_FOREIGN), 2);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_TOO_NEW), 1);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_DAMAGE), 1);
	EXPECT_EQUAL(recording.trouble_count, 4);
	for (size_t i = 0; i < recording.trouble_count; i++)
		if (recording.troubles[i].kind == RECORDING_DAMAGE)
			EXPECT(recording.troubles[i].process == recording.processes[1] &&
			       recording.troubles[i].bytes > 0);
	EXPECT_EQUAL(recording_account(&account, recording.processes[1]), OK);
	EXPECT_THAT("a damaged block makes the totals differ, and that is reported",
		    !account.is_exact && account.walk.damages == 1);
	recording_account_release(&account);
	recording_release(&recording);
	free(sample.bytes);
	free(foreign.bytes);
	free(newer.bytes);
}

static void test_cut(void)
{
	struct sample sample = sample_trace();
	struct recording_account account;
	struct recording recording;

	sample.size -= 5;
	write_file("cut", &sample);
	load(&recording, path_of("cut"), 0);
	EXPECT_EQUAL(recording.processes[0]->life, RECORDING_UNKNOWN);
	EXPECT(recording.trouble_count == 1 && recording.troubles[0].kind == RECORDING_CUT &&
	       recording.troubles[0].offset == recording.processes[0]->files[0].cut_offset);
	EXPECT_THAT("what cannot be read is from there to its end",
		    recording.troubles[0].bytes > 0 &&
			    recording.troubles[0].offset + recording.troubles[0].bytes ==
				    sample.size);
	EXPECT_EQUAL(recording.processes[0]->recorded, 7);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT(account.kept == 7 && !account.is_exact);
	recording_account_release(&account);
	recording_release(&recording);
	sample.size = 20;
	write_file("cut", &sample);
	load(&recording, path_of("cut"), 0);
	EXPECT_THAT("one that ends inside its header has no process",
		    recording.count == 0 && count_kind(&recording, RECORDING_DAMAGE) == 1);
	recording_release(&recording);
	free(sample.bytes);
}

/* A killed process: its trace has 1..5, its ring 4..11, and two more were in flight. */
static void test_killed(void)
{
	static const uint64_t all[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1006, 1007 };
	char region_path[512];
	const char *info;
	struct sample trace, region;
	struct recording_process *process;
	struct recording_account account;
	struct recording_walk walk;
	struct recording recording;
	struct given given = { .count = 0 };

	text_format(region_path, sizeof(region_path), "%s", path_of("its.region"));
	info = info_of(dead_pid, 77, 0, region_path);
	trace = open_trace(info);
	region = region_with(info, dead_pid, 77);
	write_file("trace", &trace);
	write_file("its.region", &region);
	load(&recording, path_of("trace"), 0);
	process = recording.processes[0];
	EXPECT(recording.count == 1 && recording.trouble_count == 0);
	EXPECT_EQUAL(process->life, RECORDING_KILLED);
	EXPECT(process->file_count == 1 && process->region != NULL && !process->is_moving);
	EXPECT_EQUAL(process->flight_count, 2);
	EXPECT(process->flights[0].op.number == 6 && process->flights[0].proxy_count == 2 &&
	       process->flights[0].open_children == 2 && process->flights[0].started[0] == 3);
	EXPECT_THAT("proxy operations by channel, with their open transfers",
		    process->flights[0].proxies[0].proxy.channel == 1 &&
			    process->flights[0].proxies[1].step_count == 3);
	EXPECT_THAT("those of other processes separately", process->proxy_count == 1);
	EXPECT_EQUAL(recording_each_op(process, note_op, &given, &walk), OK);
	EXPECT(is_given(&given, all, 13));
	EXPECT(walk.in_trace == 5 && walk.in_ring == 6 && walk.in_live == 2 && walk.torn == 0);
	EXPECT_EQUAL(recording_account(&account, process), OK);
	EXPECT(account.is_exact && account.issued == 13 && account.recorded == 11 &&
	       account.in_flight == 2 && account.kept == 11);
	recording_account_release(&account);
	recording_release(&recording);

	/* From the other end, and all at once: the same. */
	load(&recording, path_of("its.region"), RECORDING_WITH_TRACES);
	EXPECT(recording.count == 1 && recording.processes[0]->file_count == 1);
	recording_release(&recording);
	recording_init(&recording);
	recording_add(&recording, directory, 0);
	recording_add(&recording, path_of("trace"), 0);
	recording_finish(&recording);
	EXPECT(recording.count == 1 && recording.processes[0]->file_count == 1 &&
	       recording.processes[0]->region != NULL);
	given = (struct given){ .count = 0 };
	recording_each_op(recording.processes[0], note_op, &given, NULL);
	EXPECT(is_given(&given, all, 13));
	recording_release(&recording);
	load(&recording, path_of("trace"), RECORDING_TRACES_ALONE);
	EXPECT(recording.processes[0]->region == NULL &&
	       count_kind(&recording, RECORDING_CUT) == 1);
	recording_release(&recording);
	free(trace.bytes);
	free(region.bytes);
}

/* Killed while an operation was being moved from its live slot to the ring. */
static void test_killed_between(void)
{
	static const uint64_t written[] = { 4, 5, 6, 7, 8, 9, 10, 11, 1006 };
	static const uint64_t torn[] = { 4, 5, 6, 7, 8, 9, 10, 1006, 2006 };
	struct sample region = region_with(info_of(dead_pid, 77, 0, ""), dead_pid, 77);
	struct region_live *live = sample_slot(&region, REGION_LIVE, 4);
	struct region_comm *comm = sample_slot(&region, REGION_COMMS, 0);
	struct op_record *last = sample_slot(&region, REGION_RING, 10 % SAMPLE_RING);
	struct recording_account account;
	struct recording_walk walk;
	struct recording recording;
	struct given given = { .count = 0 };

	comm->counts.issued = 6;
	live->word |= LIVE_RETIRING;
	live->op = *last;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	recording_each_op(recording.processes[0], note_op, &given, &walk);
	EXPECT_THAT("already in the ring: returned once",
		    is_given(&given, written, 9) && walk.repeated == 1);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT(account.is_exact && account.in_flight == 1);
	recording_account_release(&account);
	recording_release(&recording);

	last->sequence |= RING_BUSY;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	given = (struct given){ .count = 0 };
	recording_each_op(recording.processes[0], note_op, &given, &walk);
	EXPECT_THAT("half in the ring: returned from its live slot",
		    is_given(&given, torn, 9) && walk.torn == 1);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT(account.is_exact);
	recording_account_release(&account);
	recording_release(&recording);

	live->word = UINT64_C(5) << 32 | LIVE_RETIRING | 1;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	EXPECT_THAT("given up with open children: recorded, not in flight",
		    recording.processes[0]->flight_count == 1);
	recording_release(&recording);
	free(region.bytes);
}

/* The file reached its quota after 5: the rest is counted as lost, but the ring still has it. */
static void test_quota(void)
{
	char region_path[512];
	struct sample trace, region;
	struct recording_account account;
	struct recording recording;
	const char *info;

	text_format(region_path, sizeof(region_path), "%s", path_of("its.region"));
	info = info_of(dead_pid, 77, 0, region_path);
	trace = open_trace(info);
	region = region_with(info, dead_pid, 77);
	sample_head(&region)->drained = 11;
	sample_head(&region)->lost[LOST_QUOTA] = 6;
	write_file("trace", &trace);
	write_file("its.region", &region);
	load(&recording, path_of("trace"), 0);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT(account.walk.recovered == 6 && account.unread == 0 && account.is_exact &&
	       account.lost_operations == 6);
	recording_account_release(&account);
	recording_release(&recording);
	sample_head(&region)->lost[LOST_QUOTA] = 5;
	write_file("its.region", &region);
	load(&recording, path_of("trace"), 0);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT_THAT("an uncounted loss is found", account.unread == 1 && !account.is_exact);
	recording_account_release(&account);
	recording_release(&recording);

	/* The thread came no further than 2, and the ring begins with 4: 3 is gone, uncounted. */
	free(trace.bytes);
	trace = (struct sample){ NULL, 0, 0 };
	sample_header(&trace, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&trace, TRACE_PROCESS, info, strlen(info), 1);
	sample_ops(&trace, 1, 2);
	sample_head(&region)->lost[LOST_QUOTA] = 0;
	sample_head(&region)->drained = 1;
	write_file("trace", &trace);
	write_file("its.region", &region);
	load(&recording, path_of("trace"), 0);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT_THAT("what a killed process could not count is counted by the reader",
		    account.lost_uncounted == 1 && account.lost_operations == 1 &&
			    account.unread == 0 && account.is_exact && account.kept == 10);
	recording_account_release(&account);
	recording_release(&recording);
	free(trace.bytes);
	free(region.bytes);
}

static void test_alive(void)
{
	uint64_t ticks = start_ticks_of_self();
	struct sample region = region_with(info_of(getpid(), ticks, 5, ""), getpid(), ticks);
	struct recording recording;
	uint64_t now;
	char at[32];

	if (mkdir(path_of("ringside-0"), 0700) == -1)
		abort();
	write_file("ringside-0/x.region", &region);
	recording_init(&recording);
	recording.directory = directory;
	text_format(at, sizeof(at), "@%d", (int)getpid());
	EXPECT_EQUAL(recording_add(&recording, at, 0), OK);
	EXPECT_EQUAL(recording_finish(&recording), OK);
	EXPECT(recording.count == 1 && recording.trouble_count == 0);
	EXPECT_EQUAL(recording.processes[0]->life, RECORDING_ALIVE);
	EXPECT_EQUAL(recording.processes[0]->pid_here, getpid());
	EXPECT(recording_now(recording.processes[0], &now) && now > 0);
	recording_release(&recording);
	recording_init(&recording);
	recording.directory = directory;
	recording_add(&recording, "@1", 0);
	recording_add(&recording, "@", 0);
	recording_add(&recording, "@1x", 0);
	recording_add(&recording, path_of("nothing here"), 0);
	recording_add(&recording, path_of("ringside-0/x.region"), 0);
	recording_finish(&recording);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_NOTHING), 3);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_UNREADABLE), 1);
	EXPECT_EQUAL(recording.count, 1);
	recording_release(&recording);
	sample_head(&region)->ended_ns = 5;
	write_file("ringside-0/x.region", &region);
	recording_init(&recording);
	recording_add_machine(&recording, directory, 0);
	recording_finish(&recording);
	EXPECT(recording.count >= 1);
	for (size_t i = 0; i < recording.count; i++)
		if (recording.processes[i]->pid == getpid())
			EXPECT_EQUAL(recording.processes[i]->life, RECORDING_ENDED);
	recording_release(&recording);
	free(region.bytes);
}

/* A process ends between the moment at which it is read and the question whether it runs. */
static void test_ends_while_it_is_read(void)
{
	struct sample region = region_with(info_of(dead_pid, 77, 0, ""), dead_pid, 77);
	struct sample trace = open_trace(info_of(dead_pid, 77, 0, ""));
	struct recording recording;

	write_file("its.region", &region);
	recording_init(&recording);
	EXPECT_EQUAL(recording_add(&recording, path_of("its.region"), 0), OK);
	sample_head(&region)->ended_ns = 5;
	write_file("its.region", &region);
	EXPECT_EQUAL(recording_finish(&recording), OK);
	EXPECT_THAT("it was not killed", recording.processes[0]->life == RECORDING_ALIVE);
	recording_release(&recording);

	start_over();
	write_file("trace", &trace);
	recording_init(&recording);
	EXPECT_EQUAL(recording_add(&recording, path_of("trace"), 0), OK);
	sample_put(&trace, "more", 4);
	write_file("trace", &trace);
	EXPECT_EQUAL(recording_finish(&recording), OK);
	EXPECT_THAT("nor if its trace goes on", recording.processes[0]->life == RECORDING_ALIVE &&
							recording.trouble_count == 0);
	recording_release(&recording);
	load(&recording, path_of("trace"), 0);
	EXPECT_THAT("later it was", recording.processes[0]->life == RECORDING_KILLED);
	recording_release(&recording);
	free(region.bytes);
	free(trace.bytes);
}

/* Paths in info texts are not trusted. */
static void test_claims(void)
{
	static const char *const claims[] = { "/dev/zero", "/proc/self/mem", "relative", "/",
					      "/proc/1/fd/0" };
	struct sample trace, region;
	struct recording recording;
	char other[512];

	for (size_t i = 0; i < sizeof(claims) / sizeof(claims[0]); i++) {
		trace = open_trace(info_of(dead_pid, 77, 0, claims[i]));
		write_file("trace", &trace);
		load(&recording, path_of("trace"), 0);
		EXPECT_THAT(claims[i],
			    recording.count == 1 && recording.processes[0]->region == NULL);
		recording_release(&recording);
		free(trace.bytes);
	}
	text_format(other, sizeof(other), "%s", path_of("other.region"));
	trace = open_trace(info_of(dead_pid, 77, 0, other));
	region = region_with(info_of(dead_pid, 78, 0, other), dead_pid, 78);
	write_file("trace", &trace);
	write_file("other.region", &region);
	load(&recording, path_of("trace"), 0);
	EXPECT_THAT("a region of another process is not merged",
		    recording.count == 1 && recording.processes[0]->region == NULL);
	recording_release(&recording);
	free(trace.bytes);
	free(region.bytes);
}

/* Damage inside is reported, and the rest is read. */
static void test_damaged_region(void)
{
	struct sample region = region_with(info_of(dead_pid, 77, 0, ""), dead_pid, 77);
	struct region_live *live = sample_slot(&region, REGION_LIVE, 1);
	struct op_record *op = sample_slot(&region, REGION_RING, 0);
	struct recording_account account;
	struct recording recording;

	live->op.function = 100;
	op->state = 99;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	EXPECT(recording.count == 1 && count_kind(&recording, RECORDING_DAMAGE) == 1);
	EXPECT(recording.processes[0]->flight_count == 1 && recording.processes[0]->refused == 1);
	EXPECT_EQUAL(recording_account(&account, recording.processes[0]), OK);
	EXPECT(account.walk.refused == 1 && account.missing == 1 && !account.is_exact);
	recording_account_release(&account);
	recording_release(&recording);
	region.size = 9000;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	EXPECT(recording.count == 0 && count_kind(&recording, RECORDING_CUT) == 1);
	recording_release(&recording);
	free(region.bytes);
}

static void test_lying_times(void)
{
	struct sample region = region_with(info_of(dead_pid, 77, 0, ""), dead_pid, 77);
	struct op_record *op = sample_slot(&region, REGION_RING, 0);
	struct recording_walk walk;
	struct recording recording;
	struct given given = { .count = 0 };

	op->gpu_stop_ns = op->gpu_start_ns - 1;
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	recording_each_op(recording.processes[0], note_op, &given, &walk);
	EXPECT_THAT("a negative duration is rejected", walk.untimed == 1);
	EXPECT_EQUAL(given.count, 10);
	recording_release(&recording);
	free(region.bytes);
}

/* ---- in memory -------------------------------------------------------------------------------- */

static void load_memory(struct recording *recording, const void *bytes, size_t length)
{
	recording_init(recording);
	if (recording_add_memory(recording, "memory", bytes, length, 0) != OK ||
	    recording_finish(recording) != OK)
		abort();
}

static void test_memory(void)
{
	static const char text[] = "just some text that nobody recorded";
	struct sample sample = sample_trace();
	struct recording recording;

	load_memory(&recording, text, 0);
	EXPECT(recording.count == 0 && recording.files_foreign == 1 &&
	       recording.trouble_count == 1 && recording.troubles[0].kind == RECORDING_FOREIGN &&
	       strcmp(recording.troubles[0].what, "empty file") == 0 &&
	       strcmp(recording.troubles[0].path, "memory") == 0);
	recording_release(&recording);
	load_memory(&recording, text, sizeof(text));
	EXPECT(recording.count == 0 && recording.files_foreign == 1 &&
	       recording.trouble_count == 1 &&
	       strstr(recording.troubles[0].what, "unrecognized") != NULL);
	recording_release(&recording);
	load_memory(&recording, sample.bytes, sample.size);
	EXPECT(recording.count == 1 && recording.files_foreign == 0 &&
	       recording.trouble_count == 0);
	recording_release(&recording);
	free(sample.bytes);
}

/* Everything that the sample says, beside its operations. */
static void test_contents(void)
{
	struct sample sample = sample_trace();
	const struct recording_process *process;
	struct recording recording;
	uint64_t others = 0;

	load_memory(&recording, sample.bytes, sample.size);
	process = recording.processes[0];
	for (int i = 0; i < LOST_REASONS; i++)
		others += i == LOST_PROXY_SLOT ? 0 : process->lost[i];
	for (int i = 0; i < ODD_REASONS; i++)
		others += i == ODD_NULL_HANDLE ? 0 : process->odd[i];
	EXPECT(process->lost[LOST_PROXY_SLOT] == 1 && process->odd[ODD_NULL_HANDLE] == 2 &&
	       others == 0);
	EXPECT(process->has_counts && process->is_final && process->recorded == 7 &&
	       process->counts_ns == 2000007);
	EXPECT_EQUAL(process->refused, 0);
	EXPECT(process->link_count == SAMPLE_LINKS && process->links[0].key == 0 &&
	       process->links[0].proxies == 1 && process->links[2].proxies == 3 &&
	       process->links[2].bytes == 3 * 4096 && process->links[2].wait_ns[2] == 302);
	EXPECT(process->anchor_count == 2 && process->anchors[1].clock_ns == 2000000);
	EXPECT(process->comms[0].counts.issued == 3 && process->comms[1].counts.issued == 4 &&
	       process->comms[1].counts.timed == 4);
	EXPECT(process->interface == 5 && process->comms[0].info.nnodes == 2);
	recording_release(&recording);
	free(sample.bytes);
}

static bool count_rows(const struct op_batch *batch, enum recording_place place, void *context)
{
	(void)place;
	*(uint32_t *)context += batch->rows;
	return true;
}

/*
 * 32 operations with a time of this source, two of which have none in fact: one begins at 0, one ends before it began. As
 * batches and one by one, that is the same.
 */
static uint64_t untimed_of(unsigned int source)
{
	const char *info = info_of(dead_pid, 77, 0, "");
	struct comm_info comm = sample_comm(1);
	struct sample sample = { NULL, 0, 0 };
	struct given given = { .count = 0 };
	struct recording_walk walk, batches;
	struct op_record ops[SAMPLE_ROWS_MAX];
	struct recording recording;
	uint32_t rows = 0, count = SAMPLE_ROWS_MAX < 32 ? SAMPLE_ROWS_MAX : 32;

	for (uint32_t i = 0; i < count; i++) {
		ops[i] = sample_op(1);
		ops[i].sequence = ops[i].number = i + 1;
		ops[i].comm = 1;
		ops[i].time_source = (uint8_t)source;
		ops[i].gpu_start_ns = ops[i].active_ns = ops[i].issue_ns = 1000 + i;
		ops[i].gpu_stop_ns = ops[i].done_ns = 1000 + i;
	}
	ops[1].gpu_start_ns = ops[1].active_ns = ops[1].issue_ns = 0;
	ops[count - 1].gpu_stop_ns = ops[count - 1].done_ns = 999;
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, &comm, sizeof(comm), 1);
	sample_coded(&sample, TRACE_OPS, ops, OP_RECORD_WORDS, count);
	load_memory(&recording, sample.bytes, sample.size);
	recording_each_op(recording.processes[0], note_op, &given, &walk);
	recording_each_batch(recording.processes[0], OP_WORDS_ALL, count_rows, &rows, &batches);
	EXPECT(given.count == count && rows == count && walk.in_trace == count);
	EXPECT_EQUAL(batches.untimed, walk.untimed);
	recording_release(&recording);
	free(sample.bytes);
	return walk.untimed;
}

/* What is invalid in a trace file is counted, and the rest is read. */
static void test_invalid_records(void)
{
	const char *info = info_of(dead_pid, 77, 0, "");
	struct sample sample = { NULL, 0, 0 };
	struct comm_info comms[3] = { sample_comm(1), sample_comm(0), sample_comm(2) };
	struct op_record ops[4] = { sample_op(1), sample_op(2), sample_op(3), sample_op(4) };
	static const uint64_t good[] = { 1, 3, 4 };
	struct given given = { .count = 0 };
	struct recording_walk walk;
	struct recording recording;

	comms[2].nranks = -1;
	ops[1].state = 99;
	ops[2].gpu_stop_ns = ops[2].gpu_start_ns - 1;
	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_block(&sample, TRACE_PROCESS, info, strlen(info), 1);
	sample_block(&sample, TRACE_COMM, comms, sizeof(comms), 3);
	sample_coded(&sample, TRACE_OPS, ops, OP_RECORD_WORDS, 4);
	load_memory(&recording, sample.bytes, sample.size);
	EXPECT_EQUAL(recording.processes[0]->refused, 2);
	EXPECT(recording.processes[0]->refused_why != NULL &&
	       strcmp(recording.processes[0]->refused_why, "its size is negative") == 0);
	EXPECT_EQUAL(count_kind(&recording, RECORDING_DAMAGE), 1);
	for (size_t i = 0; i < recording.trouble_count; i++)
		if (recording.troubles[i].kind == RECORDING_DAMAGE)
			EXPECT(strncmp(recording.troubles[i].what, "2 of its communicators", 22) ==
			       0);
	EXPECT_EQUAL(recording_each_op(recording.processes[0], note_op, &given, &walk), OK);
	EXPECT(is_given(&given, good, 3));
	EXPECT(walk.in_trace == 3 && walk.refused == 1 && walk.untimed == 1 && walk.in_ring == 0 &&
	       walk.in_live == 0 && walk.repeated == 0 && walk.damages == 0 &&
	       walk.problem != NULL);
	for (unsigned int source = OP_TIME_KERNEL_GPU; source <= OP_TIME_HOST; source++)
		EXPECT_EQUAL(untimed_of(source), 2);
	EXPECT_THAT("where it is", walk.refused_at > 0 && walk.refused_at < sample.size);
	recording_release(&recording);
	free(sample.bytes);
}

/* Where operations were called, as a snapshot says. */
static void test_wheres(void)
{
	const char *info = "host=a\npid=7\nsnapshot_stack=in train.py:88 in step\n"
			   "snapshot_where_1=1 6 3000 1 train.py:88 in step\n"
			   "snapshot_where_2=2 9 5000 0 eval.py:3 in main\n"
			   "snapshot_where_3=1 5 4000 0 train.py:70 in step\n"
			   "snapshot_where_4=1 x 9000 0 not a number\n"
			   "snapshot_where_5=3 1 9000 0 behind it\n";
	struct sample sample = { NULL, 0, 0 };
	const struct recording_process *process;
	const struct recording_where *where;
	struct recording recording;

	sample_header(&sample, TRACE_MAJOR, TRACE_MINOR);
	sample_blocks(&sample, info);
	load_memory(&recording, sample.bytes, sample.size);
	process = recording.processes[0];
	EXPECT(process->stack != NULL && strcmp(process->stack, "in train.py:88 in step") == 0);
	EXPECT_EQUAL(process->where_count, 3);
	where = recording_where(process, 1, 6);
	EXPECT(where != NULL && where->comm == 1 && where->number == 6 && where->issue_ns == 3000 &&
	       where->is_open && strcmp(where->text, "train.py:88 in step") == 0);
	where = recording_where(process, 1, 5);
	EXPECT(where != NULL && !where->is_open && where->issue_ns == 4000);
	EXPECT(recording_where(process, 2, 6) == NULL && recording_where(process, 1, 9) == NULL);
	where = recording_where(process, 0, 0);
	EXPECT_THAT("the last call of all", where != NULL && where->number == 9);
	recording_release(&recording);
	free(sample.bytes);
}

/* When it was last seen alive shows when it ended, if something keeps writing. */
static void test_known_ends(void)
{
	static const struct {
		const char *sentence, *mode;
		enum recording_life life;
		bool has_region, is_snapshot;
		uint64_t heartbeat_ns, alive_ns, counts_ns;
		bool is_known;
	} cases[] = {
		{ "ended", "flight", RECORDING_ENDED, false, false, 0, 0, 0, true },
		{ "region with a heartbeat", "flight", RECORDING_KILLED, true, false, 9, 9, 0,
		  true },
		{ "that never beat", "flight", RECORDING_KILLED, true, false, 9, 0, 9, false },
		{ "region without one", "flight", RECORDING_KILLED, true, false, 0, 9, 9, false },
		{ "snapshot of a killed one", "flight", RECORDING_KILLED, false, true, 0, 0, 9,
		  false },
		{ "with a heartbeat", "flight", RECORDING_KILLED, false, true, 9, 0, 0, true },
		{ "with a thread", "trace", RECORDING_KILLED, false, true, 0, 0, 0, true },
		{ "with a thread, too", "full", RECORDING_KILLED, false, true, 0, 0, 0, true },
		{ "snapshot of a living one", "flight", RECORDING_ALIVE, false, true, 0, 0, 9,
		  true },
		{ "trace with counts", "trace", RECORDING_KILLED, false, false, 0, 0, 9, true },
		{ "trace without", "trace", RECORDING_KILLED, false, false, 9, 9, 0, false },
	};
	struct region region = { .fd = -1 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recording_process process = {
			.life = cases[i].life,
			.region = cases[i].has_region ? &region : NULL,
			.is_snapshot = cases[i].is_snapshot,
			.heartbeat_ns = cases[i].heartbeat_ns,
			.alive_ns = cases[i].alive_ns,
			.counts_ns = cases[i].counts_ns,
		};

		text_copy(process.mode, sizeof(process.mode), cases[i].mode);
		EXPECT_THAT(cases[i].sentence,
			    recording_end_is_known(&process) == cases[i].is_known);
	}
}

/* Whose file says it is of a living process must be its user. */
static void test_forged(void)
{
	static const struct {
		const char *sentence;
		enum recording_life life;
		bool is_here, is_owner_known, is_other, has_region, is_forged;
	} cases[] = {
		{ "of another user", RECORDING_ALIVE, true, true, true, true, true },
		{ "of the same user", RECORDING_ALIVE, true, true, false, true, false },
		{ "of a dead process", RECORDING_KILLED, true, true, true, true, false },
		{ "of a process elsewhere", RECORDING_ALIVE, false, true, true, true, false },
		{ "of an unknown owner", RECORDING_ALIVE, true, false, true, true, false },
		{ "without a region", RECORDING_ALIVE, true, true, true, false, false },
	};
	struct region region = { .fd = -1 };
	struct recording_process other = { .life = RECORDING_ALIVE, .region = &region };
	int ready[2];
	char byte;

	/* Root can be another user. */
	if (geteuid() == 0) {
		if (pipe(ready) == -1 || (other.pid_here = fork()) == -1)
			abort();
		if (other.pid_here == 0) {
			if (setuid(12345) == -1 || write(ready[1], "x", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		if (read(ready[0], &byte, 1) != 1)
			abort();
		other.owner = 12345;
		EXPECT_THAT("of a user's own process", !recording_is_forged(&other));
		other.owner = 0;
		EXPECT_THAT("of root, which has become a user", !recording_is_forged(&other));
		other.owner = 12346;
		EXPECT_THAT("of a user, about another user's process", recording_is_forged(&other));
		kill((pid_t)other.pid_here, SIGKILL);
		waitpid((pid_t)other.pid_here, NULL, 0);
		close(ready[0]);
		close(ready[1]);
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct recording_process process = {
			.life = cases[i].life,
			.pid_here = cases[i].is_here ? getpid() : 0,
			.owner = !cases[i].is_owner_known ? -1
				 : cases[i].is_other	  ? (int64_t)geteuid() + 1
							  : (int64_t)geteuid(),
			.region = cases[i].has_region ? &region : NULL,
		};

		EXPECT_THAT(cases[i].sentence, recording_is_forged(&process) == cases[i].is_forged);
	}
}

/* ---- wall time ----------------------------------------------------------------------------------- */

enum {
	FAST_S = 26
}; /* the recorder's clock gained this much over the wall clock; 43 per day are possible */

/* A process without a thread started a day ago; both clocks were read together only then. */
static struct sample old_anchor(int64_t wall_step_ns)
{
	const uint64_t day_ns = UINT64_C(86400) * 1000000000;
	struct sample region = region_with(info_of(dead_pid, 77, 0, ""), dead_pid, 77);
	struct region_header *header = sample_head(&region);
	struct clock_anchor now;

	header->mode = REGION_MODE_FLIGHT;
	clock_source_init(&header->clock, clock_sample_take());
	/* Without a counter the clock begins at boot, which may be less than a day ago. */
	header->clock.kind = CLOCK_KIND_COUNTER;
	header->clock.multiplier |= 1;
	header->clock.base_ns += 2 * day_ns;
	now = clock_anchor_take(&header->clock);
	header->first_anchor.clock_ns = now.clock_ns - day_ns;
	header->first_anchor.wall_ns =
		now.wall_ns - day_ns + FAST_S * UINT64_C(1000000000) - (uint64_t)wall_step_ns;
	header->last_anchor = header->first_anchor;
	return region;
}

/* How far that process's "now" is from the wall clock. */
static double seconds_off(const struct recording_process *process, int64_t before_ns)
{
	uint64_t clock_ns = process->fresh_anchor.clock_ns - (uint64_t)before_ns, wall_ns = 0;

	if (!recording_wall_ns(process, clock_ns, &wall_ns))
		return 1e9;
	return (double)(int64_t)(wall_ns + (uint64_t)before_ns - process->fresh_anchor.wall_ns) /
	       1e9;
}

static void test_old_anchor(void)
{
	const int64_t day_ns = INT64_C(86400) * 1000000000;
	struct sample region = old_anchor(0);
	const struct recording_process *process;
	struct recording recording, read;
	uint64_t clock_ns, wall_ns;
	unsigned char *bytes;
	size_t length;

	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	process = recording.processes[0];
	EXPECT_THAT("the reader takes an anchor", process->fresh_anchor.wall_ns != 0);
	EXPECT_THAT("now maps to the current wall time", fabs(seconds_off(process, 0)) < 1);
	EXPECT_THAT("half a day ago is half as far off",
		    fabs(seconds_off(process, day_ns / 2) - FAST_S / 2.0) < 1);
	EXPECT_THAT("its start is unchanged", fabs(seconds_off(process, day_ns) - FAST_S) < 1);
	recording_wall_ns(process, process->fresh_anchor.clock_ns - (uint64_t)day_ns / 3, &wall_ns);
	EXPECT(recording_clock_ns(process, wall_ns, &clock_ns));
	EXPECT_THAT("and back",
		    clock_ns + 2 > process->fresh_anchor.clock_ns - (uint64_t)day_ns / 3 &&
			    clock_ns < process->fresh_anchor.clock_ns - (uint64_t)day_ns / 3 + 2);
	EXPECT_THAT("reading it does not change the process's anchors", process->anchor_count == 1);
	if (recording_snapshot(process, 4, 0, &bytes, &length) != OK)
		abort();
	recording_init(&read);
	recording_add_memory(&read, "snapshot", bytes, length, 0);
	recording_finish(&read);
	EXPECT(read.count == 1 &&
	       read.processes[0]->anchors[read.processes[0]->anchor_count - 1].clock_ns <=
		       recording_last_ns(process));
	EXPECT_THAT(
		"a snapshot has it, for other machines",
		recording_wall_ns(read.processes[0], process->fresh_anchor.clock_ns, &wall_ns) &&
			fabs((double)(int64_t)(wall_ns - process->fresh_anchor.wall_ns)) < 1e9);
	recording_release(&read);
	free(bytes);
	recording_release(&recording);
	memset(sample_head(&region)->boot_id, 'x', sizeof(boot_id) - 1);
	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	EXPECT_THAT("the clock of another boot is unknown",
		    recording.processes[0]->fresh_anchor.wall_ns == 0);
	recording_release(&recording);
	free(region.bytes);
}

/* The wall clock was an hour behind, and was set. */
static void test_set_wall_clock(void)
{
	const int64_t hour_ns = INT64_C(3600) * 1000000000;
	struct sample region = old_anchor(hour_ns);
	struct recording recording;

	write_file("region", &region);
	load(&recording, path_of("region"), 0);
	EXPECT_THAT("the wall clock is right now",
		    fabs(seconds_off(recording.processes[0], hour_ns)) < 1);
	EXPECT_THAT("at the start of the process it is what the process saw",
		    fabs(seconds_off(recording.processes[0], 23 * hour_ns) - FAST_S + 3600) < 1);
	recording_release(&recording);
	free(region.bytes);
}

#define ID "2e1fa0a8ae56b12f15a0bb7d8e7a31b8c92d5b8b6e29d3d7f54a1d0c3b2a1908"
#define UID "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"

static bool is_container(const char *cgroups, const char *id, const char *uid)
{
	char container_id[16], pod_uid[40];

	recording_container(cgroups, container_id, pod_uid);
	return strcmp(container_id, id) == 0 && strcmp(pod_uid, uid) == 0;
}

static void test_container(void)
{
	EXPECT_THAT("a pod of containerd, systemd's slices",
		    is_container("0::/kubepods.slice/kubepods-burstable.slice/"
				 "kubepods-burstable-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice/"
				 "cri-containerd-" ID ".scope\n",
				 "2e1fa0a8ae56", UID));
	EXPECT_THAT("a pod, cgroup v1, seen from another cgroup namespace",
		    is_container("12:pids:/../../pod" UID "/" ID "\n0::/\n", "2e1fa0a8ae56", UID));
	EXPECT_THAT("CRI-O",
		    is_container("0::/../crio-" ID ".scope/container\n", "2e1fa0a8ae56", ""));
	EXPECT_THAT("Docker", is_container("0::/docker/" ID "\n", "2e1fa0a8ae56", ""));
	EXPECT_THAT("Podman without root",
		    is_container("0::/user.slice/user-1000.slice/libpod-" ID ".scope/container",
				 "2e1fa0a8ae56", ""));
	EXPECT_THAT("no container",
		    is_container("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0\n", "",
				 "") &&
			    is_container("", "", "") && is_container("0::/" ID "0\n", "", "") &&
			    is_container("0::/podman/pod0f1e2d3c_4b5a\n", "", ""));
}

int main(void)
{
	static void (*const tests[])(void) = {
		test_trace,	     test_directory,   test_cut,	test_killed,
		test_killed_between, test_quota,       test_alive,	test_claims,
		test_damaged_region, test_lying_times, test_old_anchor, test_set_wall_clock,
		test_container,	     test_memory,      test_contents,	test_invalid_records,
		test_wheres,	     test_known_ends,  test_forged,	test_ends_while_it_is_read
	};

	if (mkdtemp(directory) == NULL)
		return tap_skip_all("no temporary directory");
	region_boot_id(boot_id);
	dead_pid = fork();
	if (dead_pid == 0)
		_exit(0);
	waitpid(dead_pid, NULL, 0);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		start_over();
		tests[i]();
	}
	nftw(directory, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return tap_done();
}
