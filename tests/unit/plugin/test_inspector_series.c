/* The totals behind Inspector's metrics, and their files. */
#include "plugin/threads.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/text.h"
#include "plugin/recorder.h"
#include "tests/support/scratch.h"
#include "tests/tap.h"

static struct inspector_series series;
static char content[4 << 20];

static struct comm_info comm_named(const char *name, int gpu)
{
	struct comm_info comm = { .id = 1, .rank = 1, .nranks = 4, .nnodes = 1, .gpu = gpu };

	text_copy(comm.name, sizeof(comm.name), name);
	text_format(comm.gpu_uuid, sizeof(comm.gpu_uuid), "GPU-%d", gpu);
	return comm;
}

static struct op_record made(uint8_t function, uint64_t bytes, uint64_t ns)
{
	return (struct op_record){ .function = function,
				   .algorithm = OP_RING,
				   .protocol = OP_SIMPLE,
				   .bytes = bytes,
				   .state = OP_DONE,
				   .time_source = OP_TIME_KERNEL_GPU,
				   .gpu_start_ns = 1000,
				   .gpu_stop_ns = 1000 + ns };
}

static const char *read_file(const char *dir, const char *name)
{
	char path[512];
	size_t got = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "re");
	if (file != NULL) {
		got = fread(content, 1, sizeof(content) - 1, file);
		fclose(file);
	}
	content[got] = '\0';
	return content;
}

static unsigned int count_of(const char *text, const char *what)
{
	unsigned int count = 0;

	for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
		count++;
	return count;
}

static uint64_t publish(enum status *status)
{
	return inspector_series_publish(&series, status);
}

static void test_sums(const char *dir)
{
	struct comm_info comm = comm_named("dp", 0), other = comm_named("tp", 1);
	struct op_record op = made(OP_ALL_GATHER, 4 << 20, 1000000);
	enum status status;

	inspector_series_add(&series, &comm, &op);
	op = made(OP_ALL_GATHER, 4 << 20, 3000000);
	inspector_series_add(&series, &comm, &op);
	op = made(OP_SEND, 4 << 20, 1000000);
	inspector_series_add(&series, &other, &op);
	EXPECT_EQUAL(publish(&status), 3);
	EXPECT_EQUAL(status, OK);
	read_file(dir, "nccl_inspector_metrics_0.prom");
	EXPECT_THAT("the mean time", strstr(content, "} 2000.000000\n") != NULL);
	EXPECT_THAT("bus bandwidth, from the size of one rank's part",
		    strstr(content, "message_size=\"1-2MB\",algo_proto=\"RING_SIMPLE\","
				    "gpu_uuid=\"GPU-0\"} 1.572864\n") != NULL);
	EXPECT_EQUAL(count_of(content, "\nnccl_"), 2);
	read_file(dir, "nccl_inspector_metrics_1.prom");
	EXPECT_THAT("each GPU has its file", count_of(content, "p2p_operation=\"Send\"") == 2 &&
						     count_of(content, "\nnccl_") == 2);
	EXPECT_EQUAL(publish(&status), 0);
	read_file(dir, "nccl_inspector_metrics_0.prom");
	EXPECT_THAT("what is not new is not repeated",
		    count_of(content, "\nnccl_") == 0 && count_of(content, "# TYPE") == 4);
}

/* A time is a mean, a bandwidth is that of all together, also of Sends. */
static void test_values(const char *dir)
{
	struct comm_info comm = comm_named("pp", 2);
	struct op_record op = made(OP_SEND, 4000000, 1000000);
	enum status status;

	inspector_series_add(&series, &comm, &op);
	op = made(OP_SEND, 4000000, 3000000);
	inspector_series_add(&series, &comm, &op);
	EXPECT_EQUAL(publish(&status), 2);
	read_file(dir, "nccl_inspector_metrics_2.prom");
	EXPECT_EQUAL(count_of(content, "} 2000.000000\n"), 1);
	EXPECT_EQUAL(count_of(content, "} 2.000000\n"), 1);
}

/* Of a launch of several operations each has the whole time. */
static void test_shared(const char *dir)
{
	struct comm_info comm = comm_named("dp", 4);
	struct op_record op = made(OP_SEND, 4000000, 2000000);
	enum status status;

	inspector_series_add(&series, &comm, &op);
	op = made(OP_SEND, 4000000, 6000000);
	op.flags |= OP_FLAG_SHARED_TIME;
	inspector_series_add(&series, &comm, &op);
	op = made(OP_RECV, 4000000, 6000000);
	op.flags |= OP_FLAG_SHARED_TIME;
	inspector_series_add(&series, &comm, &op);
	EXPECT_EQUAL(publish(&status), 3);
	read_file(dir, "nccl_inspector_metrics_4.prom");
	EXPECT_THAT("it is in the mean time", count_of(content, "} 4000.000000\n") == 1);
	EXPECT_THAT("and not in the bandwidth", count_of(content, "} 2.000000\n") == 1);
	EXPECT_THAT("which is absent without another one",
		    count_of(content, "p2p_operation=\"Recv\"") == 1);
}

/* Names that only NCCL knows, up to the last one that has a place. */
static void test_names(const char *dir)
{
	static struct region_name names[OP_NAMES_INTERNED_MAX + 1] = {
		[0] = { "FIRST" },
		[OP_NAMES_INTERNED_MAX - 1] = { "LAST" },
		[OP_NAMES_INTERNED_MAX] = { "BEHIND" },
	};
	struct comm_info comm = comm_named("ep", 3);
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 1000000);
	enum status status;

	recorder.region.names = names;
	op.algorithm = OP_NAME_INTERNED;
	inspector_series_add(&series, &comm, &op);
	op.algorithm = OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1;
	inspector_series_add(&series, &comm, &op);
	op.algorithm = OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX;
	inspector_series_add(&series, &comm, &op);
	EXPECT_EQUAL(publish(&status), 3);
	read_file(dir, "nccl_inspector_metrics_3.prom");
	EXPECT_EQUAL(count_of(content, "algo_proto=\"FIRST_SIMPLE\""), 2);
	EXPECT_EQUAL(count_of(content, "algo_proto=\"LAST_SIMPLE\""), 2);
	EXPECT_EQUAL(count_of(content, "BEHIND"), 0);
	recorder.region.names = NULL;
}

/* More GPUs than one process has. */
static void test_gpus(const char *dir)
{
	struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 1000000);
	enum status status;
	int added = 0;

	inspector_series_init(&series, dir, "1", "n");
	for (int gpu = 100; gpu < 100 + 2 * INSPECTOR_GPUS; gpu++) {
		struct comm_info comm = comm_named("x", gpu);

		added += inspector_series_add(&series, &comm, &op);
	}
	EXPECT_EQUAL(added, INSPECTOR_GPUS);
	EXPECT_EQUAL(series.gpu_count, INSPECTOR_GPUS);
	EXPECT_EQUAL(publish(&status), INSPECTOR_GPUS);
	inspector_series_leave(&series);
}

/* More different names than a file should have. */
static void test_bounds(const char *dir)
{
	enum { MANY = 5000 };
	uint64_t added = 0;
	enum status status;
	char name[32];

	for (int i = 0; i < MANY; i++) {
		struct comm_info comm;
		struct op_record op = made(OP_ALL_REDUCE, 1 << 20, 1000000);

		snprintf(name, sizeof(name), "group-%d", i);
		comm = comm_named(name, 0);
		added += inspector_series_add(&series, &comm, &op);
	}
	EXPECT_THAT("D24: nothing is lost for lack of room", added == MANY);
	EXPECT_EQUAL(publish(&status), MANY);
	read_file(dir, "nccl_inspector_metrics_0.prom");
	EXPECT_THAT("D24: and series are bounded: the rest is \"other\"",
		    count_of(content, "\nnccl_bus") < INSPECTOR_SERIES &&
			    count_of(content, "comm_name=\"other\"") == 2);
}

static bool has_file(const char *dir, const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return stat(path, &st) == 0;
}

/* A process that publishes and dies without cleanup; then another one. */
static void publish_and_die(const char *dir)
{
	struct comm_info comm = comm_named("x", 7);
	struct op_record op = made(OP_REDUCE, 1024, 1000);
	enum status status;
	int how;

	if (fork() == 0) {
		inspector_series_init(&series, dir, "1", "n");
		inspector_series_add(&series, &comm, &op);
		inspector_series_publish(&series, &status);
		_exit(status == OK ? 0 : 1);
	}
	wait(&how);
	EXPECT_EQUAL(how, 0);
}

/* D21: while another process has the GPU's name, this one gets another. */
static void test_two_on_one_gpu(const char *dir)
{
	struct comm_info comm = comm_named("x", 6);
	struct op_record op = made(OP_REDUCE, 1024, 1000);
	int ready[2], done[2], how;
	enum status status;
	char byte = 0;

	if (pipe(ready) == -1 || pipe(done) == -1)
		exit(1);
	if (fork() == 0) {
		inspector_series_init(&series, dir, "1", "n");
		inspector_series_add(&series, &comm, &op);
		inspector_series_publish(&series, &status);
		if (write(ready[1], &byte, 1) != 1 || read(done[0], &byte, 1) != 1)
			_exit(1);
		_exit(0);
	}
	if (read(ready[0], &byte, 1) != 1)
		exit(1);
	inspector_series_add(&series, &comm, &op);
	publish(&status);
	EXPECT_THAT("D21: two processes on one GPU have a file each",
		    has_file(dir, "nccl_inspector_metrics_6.prom") &&
			    count_of(read_file(dir, "nccl_inspector_metrics_6_2.prom"),
				     "process=\"2\"") == 2 &&
			    count_of(read_file(dir, "nccl_inspector_metrics_6.prom"), "process=") ==
				    0);
	if (write(done[1], &byte, 1) != 1)
		exit(1);
	wait(&how);
	EXPECT_EQUAL(how, 0);
}

static void test_the_dead(const char *dir)
{
	struct comm_info comm = comm_named("y", 8);
	enum status status;

	publish_and_die(dir);
	EXPECT(has_file(dir, "nccl_inspector_metrics_7.prom"));
	EXPECT_THAT("files of a living process are left alone",
		    has_file(dir, "nccl_inspector_metrics_0.prom"));
	publish_and_die(dir);
	EXPECT_THAT("D22: the next process gets the name again",
		    has_file(dir, "nccl_inspector_metrics_7.prom") &&
			    !has_file(dir, "nccl_inspector_metrics_7_2.prom"));
	inspector_series_leave(&series);
	EXPECT(!has_file(dir, "nccl_inspector_metrics_0.prom") &&
	       !has_file(dir, ".nccl_inspector_metrics_0.lock"));
	inspector_series_init(&series, dir, "1", "n");
	inspector_series_see_gpu(&series, &comm);
	publish(&status);
	EXPECT_THAT("D22: and removes files of dead processes",
		    !has_file(dir, "nccl_inspector_metrics_7.prom") &&
			    has_file(dir, "nccl_inspector_metrics_8.prom"));
	inspector_series_leave(&series);
}

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	file = fopen(path, "we");
	if (file == NULL)
		exit(1);
	fputs(text, file);
	fclose(file);
}

/* On some file systems locks work on one host only. */
static void test_other_hosts(const char *dir)
{
	struct comm_info comm = comm_named("y", 8);
	char host[256] = "", longer[300];
	enum status status;

	gethostname(host, sizeof(host) - 1);
	snprintf(longer, sizeof(longer), "%s-2", host);
	write_file(dir, "nccl_inspector_metrics_70.prom", "");
	write_file(dir, ".nccl_inspector_metrics_70.lock", longer);
	write_file(dir, "nccl_inspector_metrics_71.prom", "");
	write_file(dir, ".nccl_inspector_metrics_71.prom.draft", "");
	write_file(dir, ".nccl_inspector_metrics_71.lock", host);
	write_file(dir, "nccl_inspector_metrics_72.prom", "");
	write_file(dir, ".nccl_inspector_metrics_72.lock", "");
	write_file(dir, ".nccl_inspector_metrics_73.look", "");
	inspector_series_init(&series, dir, "1", "n");
	inspector_series_see_gpu(&series, &comm);
	publish(&status);
	EXPECT_THAT("files of another host stay",
		    has_file(dir, "nccl_inspector_metrics_70.prom") &&
			    has_file(dir, ".nccl_inspector_metrics_70.lock"));
	EXPECT_THAT("those of dead processes of this one go",
		    !has_file(dir, "nccl_inspector_metrics_71.prom") &&
			    !has_file(dir, ".nccl_inspector_metrics_71.prom.draft") &&
			    !has_file(dir, ".nccl_inspector_metrics_71.lock"));
	EXPECT_THAT("and those that nobody signed",
		    !has_file(dir, "nccl_inspector_metrics_72.prom"));
	EXPECT(has_file(dir, ".nccl_inspector_metrics_73.look"));
	EXPECT_THAT("a lock is signed",
		    strcmp(read_file(dir, ".nccl_inspector_metrics_8.lock"), host) == 0);
	inspector_series_leave(&series);
}

/* Other files are in the way. */
static void test_things_in_the_way(const char *dir)
{
	struct comm_info comm = comm_named("z", 9);
	struct op_record op = made(OP_REDUCE, 1024, 1000);
	char path[512], victim[512];
	enum status status;
	FILE *file;

	snprintf(victim, sizeof(victim), "%s/victim", dir);
	file = fopen(victim, "we");
	if (file != NULL) {
		fputs("precious", file);
		fclose(file);
	}
	snprintf(path, sizeof(path), "%s/.nccl_inspector_metrics_9.prom.draft", dir);
	EXPECT(symlink(victim, path) == 0);
	snprintf(path, sizeof(path), "%s/nccl_inspector_metrics_9.prom", dir);
	EXPECT(symlink(victim, path) == 0);
	inspector_series_init(&series, dir, "1", "n");
	inspector_series_add(&series, &comm, &op);
	publish(&status);
	EXPECT_EQUAL(status, OK);
	EXPECT_THAT("links are not followed",
		    strcmp(read_file(dir, "victim"), "precious") == 0 &&
			    strstr(read_file(dir, "nccl_inspector_metrics_9"
						  ".prom"),
				   "# TYPE") != NULL);
	inspector_series_leave(&series);
	inspector_series_init(&series, "/dev/null/x", "1", "n");
	inspector_series_add(&series, &comm, &op);
	EXPECT_EQUAL(publish(&status), 0);
	EXPECT_EQUAL(status, ERR_SYSTEM);
	inspector_series_leave(&series);
}

int main(void)
{
	const char *dir = scratch_make();

	if (!inspector_series_init(&series, dir, "4711", "node01"))
		return 1;
	test_sums(dir);
	test_values(dir);
	test_shared(dir);
	test_names(dir);
	test_bounds(dir);
	test_two_on_one_gpu(dir);
	test_the_dead(dir);
	test_gpus(dir);
	test_other_hosts(dir);
	test_things_in_the_way(dir);
	return tap_done();
}
