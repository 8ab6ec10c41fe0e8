/*
 * The process beside a job of `ringside run`: when it scans, asks the doctor and writes, and which of several does. Time,
 * scans and the doctor are played; the file is included for that.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cmds/commands.h"
#include "cmds/run_processes.h"
#include "common/clock.h"
#include "recording/watch.h"

static uint64_t play_clock(clockid_t clock);
static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms);
static enum status play_look(struct watch *watch, unsigned int flags);
static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes);
static ssize_t play_write(int fd, const void *bytes, size_t length);
static unsigned int play_alarm(unsigned int seconds);
static pid_t play_fork(void);
static void play_processes(struct run_processes *found, pid_t command);

#define run_processes_look play_processes
#define cmd_run report_included_run
#define cmd_env report_included_env
#define clock_system_ns play_clock
#define poll play_poll
#define watch_look play_look
#define cli_capture(capture, words, fd, timeout_s, most) \
	play_capture(capture, words, fd, timeout_s, most)
#define write play_write
#define alarm play_alarm
#define fork play_fork
#include "cmds/cmd_run.c"
#undef cmd_run
#undef cmd_env
#undef clock_system_ns
#undef poll
#undef watch_look
#undef cli_capture
#undef write
#undef alarm
#undef fork
#undef run_processes_look

#include "tests/support/command_play.h"
#include "tests/tap.h"

/* ---- the stage -------------------------------------------------------------------------------- */

enum { PROCESSES = 4 };

static struct {
	uint64_t now_ns;
	int turn, last; /* CMD ends at the last one */
	void (*at)(int turn);
	bool is_real; /* in a reporter that was really started: its own processes, and no log */
	enum status look;
	const char *doctor; /* what it prints */
	int doctor_code;
	bool is_cut;
	enum status doctor_status;
	int write_error; /* of the first write to standard error */
	size_t write_most;
	int forks;
	int nice; /* before */
	struct run_processes loaded;
} play;
static struct sink happened;
static struct recording_process processes[PROCESSES], *list[PROCESSES];
static struct recording_comm comms[PROCESSES][2];
static struct reporter reporter;

static uint64_t play_clock(clockid_t clock)
{
	return play.now_ns + (play.is_real ? clock_system_ns(clock) : 0);
}

static int play_poll(struct pollfd *fds, nfds_t count, int wait_ms)
{
	play.now_ns += (uint64_t)wait_ms * MS_NS;
	/* As soon as possible, and a little less busy than that. */
	if (play.is_real)
		return poll(fds, count, 5);
	sink_format(&happened, "wait %d ms\n", wait_ms);
	if (play.at)
		play.at(play.turn);
	return play.turn++ == play.last;
}

static enum status play_look(struct watch *watch, unsigned int flags)
{
	if (play.is_real)
		return watch_look(watch, flags);
	sink_format(&happened, "scan%s\n", flags ? " with flags" : "");
	return play.look;
}

static bool is_ignored(int number)
{
	struct sigaction now;

	return sigaction(number, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static enum status play_capture(struct cli_capture *capture, const char *const *words, int fd,
				unsigned int timeout_s, size_t most_bytes)
{
	struct sink asked;

	sink_init_memory(&asked);
	for (; *words != NULL; words++)
		sink_format(&asked, "%s ", *words);
	sink_format(&asked, "(%d, up to %u s, %zu bytes)\n", fd, timeout_s, most_bytes);
	*capture = (struct cli_capture){ .exit_code = play.doctor_code, .is_cut = play.is_cut };
	if (play.is_real) {
		/* What the process is like, in place of a verdict. */
		char score[16] = "", name[16] = "";
		int descriptors = 0;

		file_read_text("/proc/self/oom_score_adj", score, sizeof(score));
		prctl(PR_GET_NAME, name);
		for (int i = STDERR_FILENO + 1; i < 1024; i++)
			descriptors += fcntl(i, F_GETFD) != -1;
		sink_format(
			&asked,
			"dead %s, session %s, oom %.4s, nice %s, RINGSIDE_PAGER='%s', input "
			"%s, signals %s, descriptors %s\n",
			name, getsid(0) == getpid() ? "own" : "of others", score,
			getpriority(PRIO_PROCESS, 0) > play.nice || play.nice == 19 ? "more"
										    : "as before",
			getenv("RINGSIDE_PAGER"),
			lseek(STDIN_FILENO, 0, SEEK_CUR) == 0 ? "none" : "of the job",
			is_ignored(SIGHUP) && is_ignored(SIGUSR2) && is_ignored(SIGPIPE) ? "ignored"
											 : "taken",
			descriptors < 6 ? "few" : "many");
	} else {
		sink_format(&happened, "ask: %s", sink_string(&asked));
	}
	capture->bytes = strdup(play.is_real ? sink_string(&asked) : play.doctor);
	sink_release(&asked);
	return play.doctor_status;
}

static ssize_t play_write(int fd, const void *bytes, size_t length)
{
	if (play.is_real || fd != STDERR_FILENO)
		return write(fd, bytes, length);
	if (play.write_error != 0) {
		errno = play.write_error;
		play.write_error = play.write_error == EINTR ? 0 : play.write_error;
		sink_format(&happened, "write: %s\n", strerror(errno));
		return -1;
	}
	length = play.write_most != 0 && length > play.write_most ? play.write_most : length;
	sink_format(&happened, "write %zu: %.*s\n", length, (int)length, (const char *)bytes);
	return (ssize_t)length;
}

static unsigned int play_alarm(unsigned int seconds)
{
	if (play.is_real) {
		/* While CMD runs, nothing is wrong, however long it takes to end. */
		if (seconds == REPORT_LAST_SECONDS)
			play.doctor_code = CLI_EXIT_TROUBLE;
		return alarm(seconds);
	}
	sink_format(&happened, "alarm %u\n", seconds);
	return 0;
}

static pid_t play_fork(void)
{
	play.forks++;
	errno = EAGAIN;
	return play.is_real ? fork() : -1;
}

static void play_processes(struct run_processes *found, pid_t command)
{
	(void)command;
	*found = play.loaded;
}

static const char *lock_path(void)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/.ringside-report-%u-%016" PRIx64, command_path("shm"),
		 (unsigned int)geteuid(), hash_bytes("train", 5));
	return path;
}

/* Two ranks that CMD started and that call operations, one of another job and one of an earlier run. */
static void begin(pid_t child)
{
	unlink(lock_path());
	memset(&play, 0, sizeof(play));
	play.now_ns = 1000 * SECOND_NS;
	play.doctor = "ok\n";
	memset(&reporter, 0, sizeof(reporter));
	reporter.pid = getpid();
	reporter.start_ticks = start_of(getpid());
	reporter.lock = reporter.pidfd = reporter.quiet_lock = -1;
	reporter.watch.settings.directory = command_path("shm");
	reporter.watch.recording.processes = list;
	reporter.watch.recording.count = PROCESSES;
	memset(comms, 0, sizeof(comms));
	for (int i = 0; i < PROCESSES; i++) {
		processes[i] = (struct recording_process){ .job = "train",
							   .mode = "flight",
							   .pid_here = child,
							   .interface = 5,
							   .life = RECORDING_ALIVE,
							   .comms = comms[i],
							   .comm_count = 2,
							   .started_wall_ns = 2000 * SECOND_NS,
							   .region_path = "/dev/shm/ringside-0/r" };
		list[i] = &processes[i];
	}
	processes[0] = (struct recording_process){ .job = "other",
						   .life = RECORDING_ALIVE,
						   .interface = 5,
						   .pid_here = getppid(),
						   .started_wall_ns = SECOND_NS };
	processes[3].is_earlier_run = true;
	processes[3].started_wall_ns = SECOND_NS;
	processes[3].life = RECORDING_KILLED;
	processes[3].pid_here = -1;
}

/* Plays this many turns, and what follows the end of CMD. */
static void play_report(const char *heading, int turns, void (*at)(int turn))
{
	char said[16] = "";
	struct stat st;

	sink_format(&happened, "=== %s\n", heading);
	play.last = turns;
	play.at = at;
	report(&reporter);
	if (reporter.lock != -1)
		close(reporter.lock);
	if (lstat(lock_path(), &st) == 0 && S_ISREG(st.st_mode) &&
	    file_read_text(lock_path(), said, sizeof(said)))
		sink_format(&happened, "left: '%s'\n", said);
}

static void calls_go_on(int turn)
{
	comms[1][1].counts.issued = 10 + (uint64_t)turn;
	comms[2][0].counts.recorded = 5;
}

/* Processes come at the second turn, and end before CMD does. */
static void come_and_go(int turn)
{
	calls_go_on(turn);
	reporter.watch.recording.count = turn > 0 ? PROCESSES : 0;
	if (turn == 17)
		processes[1].life = processes[2].life = RECORDING_ENDED;
}

/* One rank begins after the other, and one more when the start was printed. */
static void come_one_by_one(int turn)
{
	static const size_t counts[] = { 2, 3, 3, 3, 3, PROCESSES };

	calls_go_on(turn);
	reporter.watch.recording.count = counts[turn];
}

static void stop_after_two(int turn)
{
	calls_go_on(turn < 2 ? turn : 2);
}

static void die_at_three(int turn)
{
	calls_go_on(turn);
	if (turn == 3)
		processes[2].life = RECORDING_KILLED;
	if (turn == 9)
		processes[1].life = RECORDING_KILLED;
}

/* The doctor knows only after CMD has ended. */
static void die_at_the_end(int turn)
{
	calls_go_on(turn);
	if (turn == 5) {
		processes[1].life = processes[2].life = RECORDING_KILLED;
		play.doctor_code = CLI_EXIT_TROUBLE;
	}
}

static int others_lock = -1;

static void free_the_lock(int turn)
{
	calls_go_on(turn);
	if (turn == 3) {
		close(others_lock);
		others_lock = -1;
	}
}

static void reports(pid_t child)
{
	begin(child);
	play_report("a job that runs", 18, come_and_go);

	begin(child);
	processes[1].world_size = 16;
	processes[3].is_earlier_run = false;
	play_report("a job whose ranks begin one after the other", 5, come_one_by_one);

	begin(child);
	processes[1].world_size = 2;
	play_report("a job whose ranks are all here", 2, come_one_by_one);

	begin(child);
	play.doctor = "job train\nerror hang: rank 1\n";
	play.doctor_code = CLI_EXIT_TROUBLE;
	processes[1].world_size = 16;
	processes[1].info = "trace=/data/traces/a.rst\n";
	processes[1].info_bytes = strlen(processes[1].info);
	play_report("a job that hangs", 8, stop_after_two);

	begin(child);
	play.doctor = "job train\nerror slow\n";
	processes[1].region_path = "here";
	play_report("no trouble while it moves, nor when it does not", 11, stop_after_two);

	begin(child);
	play.doctor = "job train\nwarning slow\n";
	play.doctor_code = CLI_EXIT_TROUBLE;
	processes[1].interface = 0;
	play_report("ranks die, but not of what is reported here", 15, die_at_three);

	begin(child);
	play.doctor = "job train\ndead rank 2\n";
	play.is_cut = true;
	play_report("ranks are dead at the end", 5, die_at_the_end);

	begin(child);
	play.doctor = "warning slow\n\nnote error \n";
	play.doctor_code = CLI_EXIT_TROUBLE;
	processes[1].region_path = NULL;
	play_report("only slow", 7, stop_after_two);

	begin(child);
	play.doctor = "x\nerror hang\n";
	play.doctor_code = CLI_EXIT_TROUBLE;
	play.doctor_status = ERR_SYSTEM;
	play_report("the doctor does not answer", 7, stop_after_two);

	begin(child);
	play.look = ERR_NO_SPACE;
	play_report("no memory", 3, calls_go_on);

	begin(child);
	for (int i = 0; i < PROCESSES; i++)
		processes[i].pid_here = i == 1 ? -1 : getppid();
	processes[2].life = RECORDING_ENDED;
	processes[2].pid_here = child;
	play_report("nothing that it started", 2, calls_go_on);

	begin(child);
	reporter.start_ticks++;
	play_report("the PID is that of another process", 2, calls_go_on);
}

/* A file with what was reported before, written at this time. */
static void nobody_comes(int turn)
{
	(void)turn;
	reporter.watch.recording.count = 0;
}

static void old_nccl_comes(int turn)
{
	reporter.watch.recording.count = 0;
	if (turn == 40)
		play.loaded = (struct run_processes){ .state = RUN_TOO_OLD,
						      .pid = 77,
						      .program = "python",
						      .value = "/lib/libnccl.so.2.18.5",
						      .version = 21805 };
}

static void comes_late(int turn)
{
	calls_go_on(turn);
	reporter.watch.recording.count = turn > 20 ? PROCESSES : 0;
	play.loaded.state = RUN_NO_COMM;
	play.loaded.pid = 77;
}

static void came_and_went(int turn)
{
	nobody_comes(turn);
	if (turn < play.last - 1)
		return;
	reporter.watch.recording.count = PROCESSES;
	for (int i = 0; i < PROCESSES; i++) {
		processes[i].pid_here = -1;
		processes[i].started_wall_ns = reporter.begun_ns;
	}
}

/* Without the lines about waiting and scanning. */
static void play_brief(const char *heading, int turns, void (*at)(int turn))
{
	struct sink all = happened;
	char *text, *rest, *line;

	sink_init_memory(&happened);
	play_report(heading, turns, at);
	text = rest = strdup(sink_string(&happened));
	sink_release(&happened);
	happened = all;
	while ((line = strsep(&rest, "\n")) != NULL)
		if (line[0] != '\0' && strncmp(line, "wait ", 5) != 0 && strcmp(line, "scan") != 0)
			sink_format(&happened, "%s\n", line);
	free(text);
}

/* Why nothing is recorded is printed as soon as it is known, and again at the end. */
static void nothing_recorded(pid_t child)
{
	char path[512];
	int lock;

	begin(child);
	play_brief("a command without NCCL", 60, nobody_comes);
	begin(child);
	play_brief("a short one", 8, nobody_comes);
	begin(child);
	play_brief("its job came and went between two scans", 60, came_and_went);
	begin(child);
	play.loaded.is_elsewhere = true;
	play_brief("one that starts its processes elsewhere", 60, nobody_comes);
	begin(child);
	play_brief("NCCL is too old", 60, old_nccl_comes);
	begin(child);
	play_brief("the first communicator comes late", 40, comes_late);
	begin(child);
	play.loaded.state = RUN_NO_COMM;
	play.loaded.pid = 77;
	play_brief("NCCL is loaded and not used", 60, nobody_comes);

	begin(child);
	reporter.parent = 4711;
	snprintf(path, sizeof(path), "%s/.ringside-report-%u-p4711", command_path("shm"),
		 (unsigned int)geteuid());
	lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	EXPECT(lock != -1 && flock(lock, LOCK_EX) == 0);
	play_brief("another reporter of this launcher says it", 60, nobody_comes);
	EXPECT_THAT("and removes its file itself", access(path, F_OK) == 0);
	close(lock);
	begin(child);
	reporter.parent = 4711;
	play_brief("nobody else does", 60, nobody_comes);
	EXPECT_THAT("no file is left", access(path, F_OK) == -1);
}

static void put_lock_file(const char *text, time_t seconds)
{
	struct timespec times[2] = { { seconds, 0 }, { seconds, 0 } };
	int fd = open(lock_path(), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd == -1 || write(fd, text, strlen(text)) != (ssize_t)strlen(text) ||
	    futimens(fd, times) != 0)
		abort();
	close(fd);
}

static void elections(pid_t child)
{
	begin(child);
	put_lock_file("", 3000);
	others_lock = open(lock_path(), O_RDWR | O_CLOEXEC);
	if (others_lock == -1 || flock(others_lock, LOCK_EX) != 0)
		abort();
	play_report("another one reports, for a while", 8, free_the_lock);

	begin(child);
	put_lock_file("sv", 1999);
	play_report("a file of an earlier run", 4, calls_go_on);

	begin(child);
	put_lock_file("sv", 2000);
	play_report("another one of this run has reported", 8, stop_after_two);

	begin(child);
	put_lock_file("s", 2000);
	play.doctor = "x\nerror\nerror hang\n";
	play.doctor_code = CLI_EXIT_TROUBLE;
	play_report("another one has reported the start", 8, stop_after_two);

	begin(child);
	if (symlink(command_path("target"), lock_path()) != 0)
		abort();
	play_report("a link of somebody", 4, calls_go_on);
	EXPECT_THAT("a link is neither followed nor removed",
		    access(command_path("target"), F_OK) != 0 && unlink(lock_path()) == 0);

	begin(child);
	if (mkfifo(lock_path(), 0600) != 0)
		abort();
	processes[1].life = processes[2].life = RECORDING_ENDED;
	processes[2].life = RECORDING_ALIVE;
	play_report("no file", 4, calls_go_on);
	EXPECT_THAT("what is no file is not removed", unlink(lock_path()) == 0);
}

/* Standard error may be slow, interrupted or closed. */
static void writing(pid_t child)
{
	static char text[1300];

	begin(child);
	memset(text, '-', sizeof(text));
	memcpy(text, "x\nerror ", 8);
	sink_format(&happened, "=== in pieces\n");
	play.write_error = EINTR;
	say(text, 1100);
	play.write_most = 300;
	say(text, 512);
	sink_format(&happened, "=== closed\n");
	play.write_error = EPIPE;
	say(text, 1100);
}

static void no_reporter(void)
{
	static const struct {
		const char *report, *mode;
		int forks;
	} cases[] = {
		{ NULL, NULL, 1 },   { "1", NULL, 1 },	 { "", "flight", 1 },
		{ "0", "trace", 0 }, { NULL, "off", 0 },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++) {
		begin(0);
		unsetenv("RINGSIDE_REPORT");
		unsetenv("RINGSIDE_MODE");
		if (cases[i].report)
			setenv("RINGSIDE_REPORT", cases[i].report, 1);
		if (cases[i].mode)
			setenv("RINGSIDE_MODE", cases[i].mode, 1);
		start_reporter();
		EXPECT_THAT("a reporter is started unless it is switched off",
			    play.forks == cases[i].forks);
	}
	unsetenv("RINGSIDE_REPORT");
	unsetenv("RINGSIDE_MODE");
}

/* ---- a real one ------------------------------------------------------------------------------- */

/* CMD, which has a region as if NCCL had loaded the plugin in it. Ends when its input does. */
static _Noreturn void be_command(int input, int output)
{
	char *words[] = { "run", "--plugin", (char *)command_path("plugin.so"), "--", "cat", NULL };
	struct command_sample sample = { 0, "flight", "", "on", "" };

	begin(0);
	play.is_real = true;
	play.nice = getpriority(PRIO_PROCESS, 0);
	command_pid = getpid();
	command_ticks = start_of(getpid());
	command_write_region(command_path("shm"), &sample, true);
	if (dup2(input, STDIN_FILENO) == -1 || dup2(output, STDERR_FILENO) == -1)
		_exit(99);
	close(input);
	close(output);
	for (int fd = 20; fd < 40; fd++)
		dup2(STDIN_FILENO, fd);
	_exit(report_included_run(5, words));
}

/* Reads from the reporter until it ends, or only a line. */
static void hear(int fd, bool is_line)
{
	char byte;

	while (read(fd, &byte, 1) == 1) {
		sink_byte(&happened, byte);
		if (is_line && byte == '\n')
			return;
	}
}

static void a_real_one(void)
{
	int input[2], output[2], status = 0;
	struct sink tidy;
	pid_t command;

	sink_format(&happened, "=== a real one\n");
	if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0)
		abort();
	fflush(NULL);
	command = fork();
	if (command == 0) {
		close(input[1]);
		close(output[0]);
		be_command(input[0], output[1]);
	}
	close(input[0]);
	close(output[1]);
	hear(output[0], true);
	/* CMD ends without ending its recording. */
	close(input[1]);
	EXPECT(waitpid(command, &status, 0) == command && status == 0);
	hear(output[0], false);
	close(output[0]);
	sink_init_memory(&tidy);
	command_tidy(&tidy, sink_string(&happened));
	sink_release(&happened);
	happened = tidy;
}

/* A rank is seldom a child of CMD itself: a process two steps below. Its parent writes its PID into the pipe. */
static pid_t start_rank(int *hold)
{
	int answer[2], wait[2];
	pid_t rank = 0, child;

	if (pipe2(answer, O_CLOEXEC) != 0 || pipe2(wait, O_CLOEXEC) != 0)
		abort();
	fflush(NULL);
	child = fork();
	if (child == 0) {
		close(wait[1]);
		rank = fork();
		if (rank != 0 && write(answer[1], &rank, sizeof(rank)) != sizeof(rank))
			_exit(1);
		/* Both until the test ends. */
		_exit(read(wait[0], &rank, 1) != 0);
	}
	if (child == -1 || read(answer[0], &rank, sizeof(rank)) != sizeof(rank))
		abort();
	close(answer[0]);
	close(answer[1]);
	close(wait[0]);
	*hold = wait[1];
	return rank;
}

int main(void)
{
	int hold;
	pid_t rank;

	command_begin();
	command_directory("shm");
	command_write_text("plugin.so", "x");
	sink_init_memory(&happened);
	rank = start_rank(&hold);
	reports(rank);
	elections(rank);
	nothing_recorded(rank);
	writing(rank);
	no_reporter();
	a_real_one();
	EXPECT_THAT("what a reporter does and writes",
		    expected_text(&happened, "tests/unit/cmds/expected/run-report"));
	close(hold);
	while (wait(NULL) > 0)
		;
	return tap_done();
}
