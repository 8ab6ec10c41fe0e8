/* Every operation is in the file of Inspector's lines or metrics, or in the summary with the reason. */
#include "plugin/inspector_thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/plugin/defect_process.h"

enum { TIMED = 40, UNTIMED = 3, OTHERS = 2, CAPTURED = 5 };
static char output[64];
static char text[1 << 20];

/* Inspector's settings, and standard error into a file. */
static void set_up(const char *prom)
{
	char path[128];
	int fd;

	text_format(path, sizeof(path), "%s/files", output);
	setenv("NCCL_INSPECTOR_ENABLE", "1", 1);
	setenv("NCCL_INSPECTOR_DUMP_DIR", path, 1);
	setenv("NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS", "1000", 1);
	setenv("NCCL_INSPECTOR_PROM_DUMP", prom, 1);
	setenv("RINGSIDE_EVENTS", "kernel", 1);
	text_format(path, sizeof(path), "%s/said", output);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd == -1 || dup2(fd, STDERR_FILENO) == -1)
		exit(1);
}

static void play(void)
{
	void *context = play_init(1, 1, 8, 3);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api;

	for (int i = 0; i < TIMED; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 1);
		uint64_t gpu = play_gpu_now();
		void *kernel = play_kernel_start(context, op.task, 0, gpu);

		/* A time in the future, or of two kernels at once, would be rejected. */
		while (play_gpu_now() <= gpu + 1000)
			;
		play_kernel_stop(kernel, gpu + 1000);
	}
	for (int i = 0; i < OTHERS; i++)
		play_issue(context, "Quantum", 7, "ncclFloat32", 1);
	group_api = play_start(context, group);
	for (int i = 0; i < CAPTURED; i++)
		play_coll_api(context, group_api, "AllReduce", 8, "ncclFloat32", true);
	play_stop(group_api);
	for (int i = 0; i < UNTIMED; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", 1);

		play_kernel_start(context, op.task, 0, play_gpu_now());
	}
	ncclProfiler_v5.finalize(context);
}

static void write_lines(void)
{
	set_up("0");
	play();
}

static void write_metrics(void)
{
	set_up("1");
	play();
}

/* A file below the output directory: the one with this name, or the first if the name is a directory. */
static const char *read_output(const char *name)
{
	char path[512];
	size_t got = 0;
	struct dirent *entry;
	FILE *file;
	DIR *dir;

	text_format(path, sizeof(path), "%s/%s", output, name);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			text_format(path, sizeof(path), "%s/%s/%s", output, name, entry->d_name);
	if (dir != NULL)
		closedir(dir);
	file = fopen(path, "re");
	if (file != NULL) {
		got = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[got] = '\0';
	return text;
}

/* Each run writes a file of its own. */
static void empty_output(const char *name)
{
	char path[512], file[1024];
	struct dirent *entry;
	DIR *dir;

	text_format(path, sizeof(path), "%s/%s", output, name);
	dir = opendir(path);
	while (dir != NULL && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.') {
			text_format(file, sizeof(file), "%s/%s", path, entry->d_name);
			unlink(file);
		}
	if (dir != NULL)
		closedir(dir);
}

static unsigned int count_of(const char *in, const char *what)
{
	unsigned int count = 0;

	for (const char *at = in; (at = strstr(at, what)) != NULL; at += strlen(what))
		count++;
	return count;
}

static void expect_said(const char *sentence, const char *wanted)
{
	const char *said = strstr(read_output("said"), " operations, ");

	while (said != NULL && said > text && said[-1] != ' ')
		said--;
	EXPECT_THAT("it is all that is printed", count_of(text, "\n") == 1);
	EXPECT_THAT(sentence, said != NULL && strcmp(said, wanted) == 0);
	if (said == NULL || strcmp(said, wanted) != 0)
		printf("# %s\n", text);
}

static void test_lines(void)
{
	struct defect_run run = defect_run("flight", write_lines);
	const char *lines;

	EXPECT_EQUAL(run.status, 0);
	lines = read_output("files");
	EXPECT_EQUAL(count_of(lines, "\n"), TIMED);
	EXPECT_EQUAL(count_of(lines, "AllReduce"), TIMED);
	EXPECT_THAT("the file ends with a whole line",
		    lines[0] == '{' && strcmp(lines + strlen(lines) - 2, "}\n") == 0);
	expect_said("every operation is counted once",
		    "50 operations, 40 lines, 5 captured into graphs, 2 of other functions, "
		    "3 without a time, 0 lost\n");
	defect_release(&run);
}

/* What came after the last file of metrics is counted by itself. */
static void test_metrics(void)
{
	struct defect_run run = defect_run("flight", write_metrics);
	unsigned int all = 0, in_metrics = 0, since = 0;
	const char *said = strstr(read_output("said"), "files: "), *last;

	EXPECT_EQUAL(run.status, 0);
	EXPECT(said != NULL &&
	       sscanf(said, "files: %u operations, %u in metrics", &all, &in_metrics) == 2);
	last = strstr(text, "without a time, ");
	if (last != NULL)
		sscanf(last, "without a time, %u since the last metrics", &since);
	EXPECT_EQUAL(all, TIMED + UNTIMED + OTHERS + CAPTURED);
	EXPECT_EQUAL(in_metrics + since, TIMED);
	EXPECT(strstr(text, ", 5 captured into graphs, 2 of other functions, 3 without a time, ") !=
	       NULL);
	defect_release(&run);
}

static void write_verbose_lines(void)
{
	setenv("NCCL_INSPECTOR_DUMP_VERBOSE", "1", 1);
	set_up("0");
	play();
}

/* Every time after such a key is of this test. */
static bool times_are_between(const char *lines, const char *key, uint64_t first_us,
			      uint64_t last_us, unsigned int wanted)
{
	unsigned int count = 0;

	for (const char *at = lines; (at = strstr(at, key)) != NULL; count++) {
		at += strlen(key);
		if (strtoull(at, NULL, 10) < first_us || strtoull(at, NULL, 10) > last_us)
			return false;
	}
	return count == wanted;
}

static void test_verbose(void)
{
	/* The wall clock's own steps are smaller. */
	uint64_t first_us = clock_system_ns(CLOCK_REALTIME) / 1000 - 1000, last_us;
	struct defect_run run;
	const char *lines;

	empty_output("files");
	run = defect_run("flight", write_verbose_lines);
	last_us = clock_system_ns(CLOCK_REALTIME) / 1000 + 1000;
	EXPECT_EQUAL(run.status, 0);
	lines = read_output("files");
	EXPECT_EQUAL(count_of(lines, "\n"), TIMED);
	EXPECT_EQUAL(count_of(lines, "\"channel_id\":0,\"kernel_start_ts\""), TIMED);
	EXPECT_THAT("calls have the wall clock's time",
		    times_are_between(lines, "\"coll_start_ts\":", first_us, last_us, TIMED));
	EXPECT_THAT(
		"so have starts and stops of kernels",
		times_are_between(lines, "\"kernel_start_ts\":", first_us, last_us, TIMED) &&
			times_are_between(lines, "\"kernel_stop_ts\":", first_us, last_us, TIMED));
	defect_release(&run);
}

int main(void)
{
	text_copy(output, sizeof(output), scratch_make());
	test_lines();
	test_verbose();
	test_metrics();
	return tap_done();
}
