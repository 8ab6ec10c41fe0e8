/* Every operation is in the file of Inspector's lines or metrics, or in the summary with the reason. */
#include "plugin/threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "common/clock.h"
#include "format/inspector_write.h"
#include "tests/unit/plugin/defect_process.h"

enum { TIMED = 40, UNTIMED = 3, OTHERS = 2, CAPTURED = 5 };
static char output[64];
static char text[16 << 20];
static size_t text_length;

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

/* Channels start from the last to the first. */
static void play_timed(void *context, int count, uint8_t channels)
{
	for (int i = 0; i < count; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", channels);
		uint64_t gpu = play_gpu_now();
		void *kernels[4];

		for (uint8_t j = channels; j-- > 0;)
			kernels[j] = play_kernel_start(context, op.task, j, gpu);
		/* A time in the future, or of two kernels at once, would be rejected. */
		while (play_gpu_now() <= gpu + 1000)
			;
		for (uint8_t j = 0; j < channels; j++)
			play_kernel_stop(kernels[j], gpu + 1000);
	}
}

static void play(void)
{
	void *context = play_init(1, 1, 8, 3);
	struct abi_descr_v5 group = { .type = ABI_GROUP_API };
	void *group_api;

	play_timed(context, TIMED, 1);
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
	text_length = 0;
	if (file != NULL) {
		text_length = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[text_length] = '\0';
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

/* In the rest of the text. Under AddressSanitizer, strstr() measures the whole rest each time. */
static const char *find(const char *from, const char *what)
{
	return memmem(from, (size_t)(text + text_length - from), what, strlen(what));
}

static unsigned int count_of(const char *in, const char *what)
{
	unsigned int count = 0;

	for (const char *at = in; (at = find(at, what)) != NULL; at += strlen(what))
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

	for (const char *at = lines; (at = find(at, key)) != NULL; count++) {
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

/* ---- channels and communicators -------------------------------------------------------------- */

/* Two communicators take turns, so their calls have the same numbers. */
static void write_many_channels(void)
{
	void *one, *other;

	setenv("NCCL_INSPECTOR_DUMP_VERBOSE", "1", 1);
	set_up("0");
	one = play_init(0x11, 1, 8, 3);
	other = play_init(0x22, 1, 8, 3);
	for (int i = 0; i < TIMED; i++) {
		play_timed(one, 1, 4);
		play_timed(other, 1, 2);
	}
	ncclProfiler_v5.finalize(one);
	ncclProfiler_v5.finalize(other);
}

/* The channels of a line, from 1, as the digits of a number. */
static unsigned int channels_in(const char *line)
{
	static const char key[] = "\"channel_id\":";
	const char *end = strchr(line, '\n');
	unsigned int digits = 0;

	for (const char *at = line; (at = find(at, key)) != NULL && at < end;) {
		at += sizeof(key) - 1;
		digits = digits * 10 + (unsigned int)(*at - '0') + 1;
	}
	return digits;
}

static void test_channels(void)
{
	struct defect_run run;
	unsigned int fours = 0, twos = 0;

	empty_output("files");
	run = defect_run("flight", write_many_channels);
	EXPECT_EQUAL(run.status, 0);
	for (const char *line = read_output("files"); *line != '\0';
	     line = strchr(line, '\n') + 1) {
		/* Once with sequence numbers, once with times. */
		fours += strncmp(line + 11, "\"id\":\"0x11\"", 11) == 0 &&
			 channels_in(line) == 12341234;
		twos += strncmp(line + 11, "\"id\":\"0x22\"", 11) == 0 && channels_in(line) == 1212;
	}
	EXPECT_THAT("each line has the channels of its own call, in order",
		    fours == TIMED && twos == TIMED);
	expect_said("both communicators are counted", "80 operations, 80 lines, 0 lost\n");
	defect_release(&run);
}

/* Open calls with more channels than are kept: each has all of its kernels but one behind it. */
enum { OPEN = 1100, WIDE = 64 };

static void write_more_than_is_kept(void)
{
	static void *last[OPEN];
	void *context;

	setenv("NCCL_INSPECTOR_DUMP_VERBOSE", "1", 1);
	setenv("RINGSIDE_BUFFER", "64MiB", 1);
	set_up("0");
	context = play_init(1, 1, 8, 3);
	for (int i = 0; i < OPEN; i++) {
		struct play_op op = play_issue(context, "AllReduce", 1024, "ncclFloat32", WIDE);

		for (uint8_t j = 0; j < WIDE; j++) {
			void *kernel = play_kernel_start(context, op.task, j, play_gpu_now());

			if (j == WIDE - 1)
				last[i] = kernel;
			else
				play_kernel_stop(kernel, play_gpu_now());
		}
	}
	for (int i = 0; i < OPEN; i++)
		play_kernel_stop(last[i], play_gpu_now());
	ncclProfiler_v5.finalize(context);
}

static void test_too_many_channels(void)
{
	struct defect_run run;
	unsigned int all = 0, lines = 0;
	const char *said;

	empty_output("files");
	run = defect_run("flight", write_more_than_is_kept);
	EXPECT_EQUAL(run.status, 0);
	said = strstr(read_output("said"), "log: ");
	EXPECT(said != NULL && sscanf(said, "log: %u operations, %u lines", &all, &lines) == 2);
	EXPECT_EQUAL(all, OPEN);
	EXPECT_EQUAL(count_of(read_output("files"), "\n"), lines);
	EXPECT_THAT("channels are dropped, lines are not",
		    lines > 0 && count_of(text, "\"kernel_start_ts\"") < lines * WIDE);
	defect_release(&run);
}

/* ---- what lies in the way -------------------------------------------------------------------- */

/* The path of this process's log, whose directory exists. */
static void log_path(char *path, size_t size)
{
	char host[256] = "", name[INSPECTOR_NAME_BYTES];

	gethostname(host, sizeof(host) - 1);
	inspector_file_name(name, host, getpid());
	text_format(path, size, "%s/files/%s", output, name);
}

static void write_over(const char *before)
{
	char path[512];
	FILE *file;

	set_up("0");
	log_path(path, sizeof(path));
	file = fopen(path, "we");
	if (file == NULL || fputs(before, file) == EOF || fclose(file) == EOF)
		_exit(2);
	play();
}

static void write_after_half_a_line(void)
{
	write_over("{\"half");
}

static void write_after_a_line(void)
{
	write_over("{}\n");
}

static void test_appending(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
		const char *begin;
	} cases[] = {
		{ "half a line is ended", write_after_half_a_line, "{\"half\n{\"" },
		{ "a whole one is left as it is", write_after_a_line, "{}\n{\"" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct defect_run run;
		const char *lines;

		empty_output("files");
		run = defect_run("flight", cases[i].body);
		EXPECT_EQUAL(run.status, 0);
		lines = read_output("files");
		EXPECT_THAT(cases[i].name,
			    strncmp(lines, cases[i].begin, strlen(cases[i].begin)) == 0);
		EXPECT_EQUAL(count_of(lines, "\n"), TIMED + 1);
		defect_release(&run);
	}
}

static void find_a_link(void)
{
	char path[512], victim[128];

	set_up("0");
	log_path(path, sizeof(path));
	text_format(victim, sizeof(victim), "%s/victim", output);
	if (symlink(victim, path) == -1)
		_exit(2);
	play();
	if (access(victim, F_OK) == 0)
		_exit(3);
}

/* Opening it must not block. */
static void find_a_pipe(void)
{
	char path[512];

	set_up("0");
	log_path(path, sizeof(path));
	if (mkfifo(path, 0600) == -1)
		_exit(2);
	play();
}

static void find_no_directory(void)
{
	char path[128];

	set_up("0");
	text_format(path, sizeof(path), "%s/said/below", output);
	setenv("NCCL_INSPECTOR_DUMP_DIR", path, 1);
	play();
}

static void test_trouble(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
		const char *why;
	} cases[] = {
		{ "a link is not followed", find_a_link, " (Too many levels of symbolic links); " },
		{ "a pipe is not written", find_a_pipe, " (Operation not permitted); " },
		{ "nor what has no directory", find_no_directory, " (Not a directory); " },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		struct defect_run run;
		const char *said;

		empty_output("files");
		run = defect_run("flight", cases[i].body);
		said = read_output("said");
		EXPECT_THAT(cases[i].name, run.status == 0 && count_of(said, cases[i].why) == 1);
		EXPECT_THAT("that is printed once", count_of(said, "\n") == 2);
		EXPECT(strstr(said, "50 operations, 0 lines, 5 captured into graphs, 2 of other "
				    "functions, 3 without a time, 40 lost\n") != NULL);
		EXPECT_EQUAL(run.process != NULL ? run.process->lost[LOST_INSPECTOR] : 0, TIMED);
		defect_release(&run);
	}
}

/* ---- limits ---------------------------------------------------------------------------------- */

enum { MANY = 4000, LIMIT = 10001 };

/* The limit ends in the middle of a line. */
static void write_to_a_full_disk(void)
{
	struct rlimit limit = { LIMIT, LIMIT };
	void *context;

	set_up("0");
	context = play_init(1, 1, 8, 3);
	if (setrlimit(RLIMIT_FSIZE, &limit) == -1)
		_exit(2);
	play_timed(context, MANY, 1);
	ncclProfiler_v5.finalize(context);
}

static void write_past_the_quota(void)
{
	void *context;

	setenv("RINGSIDE_QUOTA", "1MiB", 1);
	set_up("0");
	context = play_init(1, 1, 8, 3);
	play_timed(context, MANY, 1);
	ncclProfiler_v5.finalize(context);
}

static void test_limits(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
		size_t least, most;
		unsigned int said;
	} cases[] = {
		{ "a file that cannot grow ends with a whole line", write_to_a_full_disk,
		  LIMIT - 1000, LIMIT, 2 },
		{ "and so does one of the quota", write_past_the_quota, 1 << 18, 1 << 20, 1 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		unsigned int all = 0, lines = 0, lost = 0, written;
		struct defect_run run;
		const char *said;
		size_t length;

		empty_output("files");
		run = defect_run("flight", cases[i].body);
		written = count_of(read_output("files"), "\n");
		length = strlen(text);
		EXPECT_THAT(cases[i].name,
			    run.status == 0 && length > 2 && strcmp(text + length - 2, "}\n") == 0);
		EXPECT_THAT("it is as long as it can be",
			    length >= cases[i].least && length <= cases[i].most);
		said = strstr(read_output("said"), "log: ");
		EXPECT(said != NULL && sscanf(said, "log: %u operations, %u lines, %u lost", &all,
					      &lines, &lost) == 3);
		EXPECT_EQUAL(count_of(text, "\n"), cases[i].said);
		EXPECT_EQUAL(count_of(text, "(no room)"), cases[i].said - 1);
		EXPECT_EQUAL(all, MANY);
		EXPECT_EQUAL(lines, written);
		EXPECT_EQUAL(lines + lost, MANY);
		EXPECT_EQUAL(run.process != NULL ? run.process->lost[LOST_INSPECTOR] : 0, lost);
		defect_release(&run);
	}
}

int main(void)
{
	text_copy(output, sizeof(output), scratch_make());
	test_lines();
	test_verbose();
	test_metrics();
	test_channels();
	test_too_many_channels();
	test_appending();
	test_trouble();
	test_limits();
	return tap_done();
}
