/* Commands about running processes: one of our own, with a region, and none. */
#include <inttypes.h>
#include <stdarg.h>

#include "tests/support/command_play.h"
#include "tests/tap.h"

static pid_t sleeper;

static uint64_t start_ticks_of(pid_t pid)
{
	unsigned long long ticks = 0;
	char path[64], *text, *at;
	size_t length = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "re");
	text = calloc(1, 4096);
	if (file == NULL || text == NULL)
		abort();
	length = fread(text, 1, 4095, file);
	fclose(file);
	text[length] = '\0';
	at = strrchr(text, ')');
	/* The 22nd field; the third follows the parenthesis. */
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (at == NULL || sscanf(at, " %llu", &ticks) != 1)
		abort();
	free(text);
	return ticks;
}

/* Runs until the test ends. Returns when it is no longer a copy of this test. */
static void start_sleeper(void)
{
	char path[64], name[16] = "";

	fflush(NULL);
	sleeper = fork();
	if (sleeper == 0) {
		execlp("sleep", "sleep", "1000", NULL);
		_exit(1);
	}
	snprintf(path, sizeof(path), "/proc/%d/comm", (int)sleeper);
	while (strcmp(name, "sleep\n") != 0 && waitpid(sleeper, NULL, WNOHANG) == 0) {
		FILE *file = fopen(path, "re");

		if (file == NULL || fgets(name, sizeof(name), file) == NULL)
			name[0] = '\0';
		if (file != NULL)
			fclose(file);
	}
}

static bool says(const char *line, int code, const char *format, ...)
{
	char wanted[512];
	bool is_right;
	va_list values;

	va_start(values, format);
	vsnprintf(wanted, sizeof(wanted), format, values);
	va_end(values);
	command_run(cmds_main, "ringside", line);
	is_right = command_play.code == code && (strstr(command_play.out, wanted) != NULL ||
						 strstr(command_play.err, wanted) != NULL);
	if (!is_right)
		printf("# %s: exit %d\n# %s\n# %s\n", line, command_play.code, command_play.out,
		       command_play.err);
	return is_right;
}

static void stacks_of_a_process(void)
{
	char line[128];

	snprintf(line, sizeof(line), "stacks --no-stop @%d", (int)sleeper);
	EXPECT(says(line, 0, "pid %d: ", (int)sleeper));
	EXPECT(says(line, 0, "  thread %d sleep (main): ", (int)sleeper));
	snprintf(line, sizeof(line), "stacks --no-stop --brief @%d", (int)sleeper);
	EXPECT(says(line, 0, "pid %d: ", (int)sleeper));
	EXPECT(strstr(command_play.out, "thread") == NULL);
	EXPECT_THAT("one line", strchr(command_play.out, '\n')[1] == '\0');
	snprintf(line, sizeof(line), "stacks --no-stop --json @%d", (int)sleeper);
	EXPECT(says(line, 0, "{\"processes\":[{\"pid\":%d,\"start_ticks\":", (int)sleeper));
	EXPECT(strstr(command_play.out, "\"rank\":null,\"job\":null,\"place\":") != NULL);
	EXPECT(strstr(command_play.out,
		      "\"name\":\"sleep\",\"is_main\":true,\"owns_gil\":false,") != NULL);
	snprintf(line, sizeof(line), "stacks --no-stop --json --brief %d", (int)sleeper);
	EXPECT(says(line, 0, "\"threads\":[],\"threads_left_out\":0}]}"));
	snprintf(line, sizeof(line), "stacks --no-stop --brief @%d @%d", (int)sleeper,
		 (int)sleeper);
	EXPECT(says(line, 0, "\npid %d: ", (int)sleeper));
	EXPECT(says("stacks --no-stop @999999999", 3, "pid 999999999: could not tell: "));
	EXPECT(says("stacks x", 2, "'x' is not a process: use @PID"));
	EXPECT(says("stacks @0", 2, "'@0' is not a process: use @PID"));
	EXPECT(says("stacks @2147483648", 2, "'@2147483648' is not a process: use @PID"));
}

/* A region of the sleeper, as if it was a rank that called eight operations. */
static void make_region(const char *directory, const char *times)
{
	struct command_sample sample = { 0, "flight", "", "on", times };

	command_directory(directory);
	command_pid = sleeper;
	command_ticks = start_ticks_of(sleeper);
	command_write_region(command_path(directory), &sample, true);
	command_pid = 0;
	command_ticks = 4242;
}

static void a_live_region(void)
{
	make_region("live", "");
	EXPECT(says("ls --json live", 0, "\"pid\":%d,\"pid_here\":%d,", (int)sleeper,
		    (int)sleeper));
	EXPECT(strstr(command_play.out, "\"state\":\"alive\"") != NULL);
	EXPECT(says("ps --json live", 0, "\"number\":6,"));
	EXPECT(says("verify live", 0, "nothing is missing so far: 1 process, 8 operations issued"));
	EXPECT(says("record live", 2, "nothing to record: use --times TIME"));
	EXPECT(says("record --times 999ms live", 2, "--times 999ms"));
	EXPECT(says("record --times 61m live", 2, "--times 61m"));
	EXPECT(says("record --times 10s --wait 1ms live", 0,
		    "rank 0 (pid %d on nodea, job 77): every operation is timed already\n",
		    (int)sleeper));
	EXPECT(says("record --kernel 10s --wait 1ms live", 0, "use --times instead of --kernel"));
	EXPECT(strstr(command_play.out, "every operation is timed already") != NULL);
	EXPECT(says("record --kernel 10s --times 10s live", 2, "use one of them"));
	EXPECT(says("record --times 10s --wait 1ms --json live", 0,
		    "{\"processes\":[{\"job\":\"77\",\"rank\":0,"));
	EXPECT(says("record --times 10s live --rank 5", 3,
		    "--rank: no rank '5' here; available: 0"));
	EXPECT(says("record --times 10s dead", 3, "no running process is recorded here"));
	EXPECT(says("record --times 10s nowhere", 3, "nowhere: cannot be read"));
}

/* What its recorder says of times counts, not what it requests of NCCL. */
static void a_live_region_without_times(void)
{
	make_region("untimed", "times=off\ntimes_reason=set by RINGSIDE_TIMES\n");
	EXPECT(says("record --times 10s untimed", 3, "not timed: set by RINGSIDE_TIMES\n"));
	EXPECT(strstr(command_play.err,
		      "ringside run --times all -- COMMAND, or RINGSIDE_TIMES=all") != NULL);
	EXPECT(says("ls untimed", 0, "operations are not timed: set by RINGSIDE_TIMES\n"));
	EXPECT(says("ls --json untimed", 0,
		    "\"times\":\"off\",\"times_reason\":\"set by RINGSIDE_TIMES\","
		    "\"timed_launches\":null,"));
	EXPECT(strstr(command_play.out, "\"kernel_events\":\"on\"") != NULL);
	EXPECT(says("verify untimed", 0, "times: off: set by RINGSIDE_TIMES; so operations"));
	make_region("all", "times=all\n");
	EXPECT(says("record --times 10s all", 0, "every operation is timed already\n"));
	EXPECT(strstr(command_play.err, "ringside run") == NULL);
	EXPECT(says("verify all", 0, "times: all; "));
}

int main(void)
{
	command_begin();
	start_sleeper();
	command_directory("dead");
	command_samples("ended", command_path("dead"));
	stacks_of_a_process();
	a_live_region();
	a_live_region_without_times();
	kill(sleeper, SIGKILL);
	waitpid(sleeper, NULL, 0);
	return tap_done();
}
