/*
 *	doctor --- requests ---> ringside-fetch ---> servers
 *	       <--- frames -----
 *
 * All requests are written before the first frame is read, because the child reads all of them first. It dies with
 * its parent (PR_SET_PDEATHSIG), and is killed if it is silent for longer than a request may take.
 */
#include "cli/cli_ask.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "common/clock.h"
#include "common/text.h"
#include "fetch/fetch.h"

enum { ARGUMENTS_MAX = 20, READ_BYTES = 1 << 16 };

/* A shorter limit for connecting: with thousands of hosts, each one that is down must not take the full timeout. */
#define CONNECT_NS ((uint64_t)2000000000)
#define PATIENCE_NS ((uint64_t)5000000000)

/* The child and our ends of its pipes. */
struct fetcher {
	pid_t pid;
	int requests; /* write */
	int frames;   /* read */
};

struct asking {
	const struct cli_fetch *how;
	size_t count;
	bool *is_answered;
	size_t answered;
	cli_fetch_answer *take;
	void *context;
};

/* ---- the child ------------------------------------------------------------------------------- */

struct arguments {
	char *list[ARGUMENTS_MAX];
	size_t count;
	char numbers[4][24];
};

static void fetch_argument(struct arguments *arguments, const char *name, const char *value)
{
	arguments->list[arguments->count++] = (char *)name;
	if (value)
		arguments->list[arguments->count++] = (char *)value;
	arguments->list[arguments->count] = NULL;
}

static void make_arguments(struct arguments *arguments, const char *path,
			   const struct cli_fetch *how)
{
	char(*numbers)[24] = arguments->numbers;

	arguments->count = 0;
	text_format(numbers[0], sizeof(numbers[0]), "%u", how->parallel);
	text_format(numbers[1], sizeof(numbers[1]), "%" PRIu64,
		    how->timeout_ns < 1000000 ? 1 : how->timeout_ns / 1000000);
	text_format(numbers[2], sizeof(numbers[2]), "%" PRIu64, how->limit_bytes);
	text_format(numbers[3], sizeof(numbers[3]), "%" PRIu64,
		    (how->timeout_ns < CONNECT_NS ? how->timeout_ns : CONNECT_NS) / 1000000);
	fetch_argument(arguments, path, NULL);
	fetch_argument(arguments, "--parallel", numbers[0]);
	fetch_argument(arguments, "--timeout", numbers[1]);
	fetch_argument(arguments, "--limit", numbers[2]);
	fetch_argument(arguments, "--connect", numbers[3]);
	if (how->auth)
		fetch_argument(arguments, "--auth", how->auth);
	if (how->ca_file)
		fetch_argument(arguments, "--cacert", how->ca_file);
	if (how->is_insecure)
		fetch_argument(arguments, "--insecure", NULL);
}

static void fetch_become(const char *path, char *const *arguments, int requests, int frames,
			 pid_t parent) __attribute__((noreturn));
static void fetch_become(const char *path, char *const *arguments, int requests, int frames,
			 pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* If standard streams were closed, pipes may have their numbers: move them first. */
	requests = fcntl(requests, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	frames = fcntl(frames, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* The parent may have exited already. */
	if (getppid() == parent && dup2(requests, STDIN_FILENO) != -1 &&
	    dup2(frames, STDOUT_FILENO) != -1)
		execv(path, arguments);
	_exit(127);
}

static int fetch_start(struct fetcher *child, const char *path, char *const *arguments)
{
	int to[2], from[2] = { -1, -1 };
	pid_t parent = getpid();

	if (pipe2(to, O_CLOEXEC) == -1)
		return cli_error("cannot create a pipe: %s", strerror(errno));
	if (pipe2(from, O_CLOEXEC) == -1 || (child->pid = fork()) == -1) {
		cli_error("cannot start %s: %s", path, strerror(errno));
		close(to[0]);
		close(to[1]);
		if (from[0] != -1) {
			close(from[0]);
			close(from[1]);
		}
		return CLI_EXIT_UNKNOWN;
	}
	if (child->pid == 0)
		fetch_become(path, arguments, to[0], from[1], parent);
	close(to[0]);
	close(from[1]);
	child->requests = to[1];
	child->frames = from[0];
	return 0;
}

/* A second at most. False: it has not ended. */
static bool has_ended(pid_t pid, int *status)
{
	pid_t gone = 0;

	for (int tries = 0; gone == 0 && tries < 100; tries++) {
		gone = waitpid(pid, status, WNOHANG);
		if (gone == 0)
			poll(NULL, 0, 10);
	}
	return gone != 0;
}

/*
 * Returns its exit code, or 128 + signal. If it has closed its end but does not exit, waits only briefly, and no longer for
 * one that cannot be killed.
 */
static int fetch_end(struct fetcher *child, bool is_killed)
{
	int status = 0;

	if (child->requests != -1)
		close(child->requests);
	close(child->frames);
	if (!is_killed && has_ended(child->pid, &status))
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	kill(child->pid, SIGKILL);
	if (!has_ended(child->pid, &status))
		return 128 + SIGKILL;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* ---- talking to it --------------------------------------------------------------------------- */

static bool write_all(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);

		if (written == -1 && errno == EINTR)
			continue;
		if (written == -1)
			return false;
		bytes += written;
		length -= (size_t)written;
	}
	return true;
}

static void write_requests(struct fetcher *child, const struct cli_fetch_request *requests,
			   size_t count)
{
	char line[FETCH_LINE_MAX];
	bool is_good = true;

	for (size_t i = 0; i < count && is_good; i++) {
		const char *socket = requests[i].socket;

		/* A request that does not fit gets no answer, which is reported. */
		if (text_format(line, sizeof(line), "%zu %s%s%s\n", i, requests[i].url,
				socket ? " " : "", socket ? socket : ""))
			is_good = write_all(child->requests, line, strlen(line));
	}
	close(child->requests);
	child->requests = -1;
}

static bool take_frames(struct asking *asking, struct fetch_frames *frames)
{
	struct fetch_frame frame;
	enum status status;

	while ((status = fetch_frames_next(frames, &frame)) == OK) {
		if (frame.id >= asking->count || asking->is_answered[frame.id])
			return false;
		asking->is_answered[frame.id] = true;
		asking->answered++;
		asking->take(asking->context, frame.id, frame.status, frame.bytes, frame.length);
	}
	return status == ERR_GONE;
}

enum read_result { READ_MORE, READ_END, READ_BROKEN, READ_STOPPED };

static enum read_result read_once(struct asking *asking, struct fetch_frames *frames, int fd)
{
	struct pollfd wait[2] = { { fd, POLLIN, 0 }, { asking->how->stop_fd, POLLIN, 0 } };
	int patience_ms = (int)((asking->how->timeout_ns + PATIENCE_NS) / 1000000);
	char bytes[READ_BYTES];
	ssize_t length;
	int found = poll(wait, asking->how->stop_fd == -1 ? 1 : 2, patience_ms);

	if (found == -1 && errno == EINTR)
		return READ_MORE;
	if (found <= 0)
		return READ_BROKEN;
	if (wait[1].revents != 0)
		return READ_STOPPED;
	length = read(fd, bytes, sizeof(bytes));
	if (length == -1)
		return errno == EINTR ? READ_MORE : READ_BROKEN;
	if (length == 0)
		return READ_END;
	if (fetch_frames_add(frames, bytes, (size_t)length) == ERR_NO_SPACE)
		cli_no_memory();
	return take_frames(asking, frames) ? READ_MORE : READ_BROKEN;
}

static enum read_result read_frames(struct asking *asking, int fd)
{
	uint64_t rounds = asking->count / asking->how->parallel + 2;
	uint64_t patience = rounds * asking->how->timeout_ns + 60 * PATIENCE_NS;
	uint64_t began = clock_system_ns(CLOCK_MONOTONIC);
	enum read_result result = READ_MORE;
	struct fetch_frames frames;

	fetch_frames_init(&frames, asking->how->limit_bytes);
	while (result == READ_MORE && asking->answered < asking->count) {
		result = read_once(asking, &frames, fd);
		if (result == READ_MORE && clock_system_ns(CLOCK_MONOTONIC) - began > patience)
			result = READ_BROKEN;
	}
	fetch_frames_release(&frames);
	return result;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void answer_the_rest(struct asking *asking, int code)
{
	char why[120];

	text_format(why, sizeof(why), "ringside-fetch ended before it answered (%s %d)",
		    code >= 128 ? "signal" : "exit code", code >= 128 ? code - 128 : code);
	for (size_t i = 0; i < asking->count; i++)
		if (!asking->is_answered[i])
			asking->take(asking->context, i, 0, why, strlen(why));
}

static int fetch_run(struct asking *asking, const char *path,
		     const struct cli_fetch_request *requests)
{
	struct arguments arguments;
	enum read_result result;
	struct fetcher child = { -1, -1, -1 };
	int code;

	make_arguments(&arguments, path, asking->how);
	code = fetch_start(&child, path, arguments.list);
	if (code != 0)
		return code;
	write_requests(&child, requests, asking->count);
	result = read_frames(asking, child.frames);
	code = fetch_end(&child, result != READ_END);
	if (result == READ_STOPPED)
		return FETCH_STOPPED;
	/* It reports problems with its options (such as credentials) itself. */
	if (asking->answered == 0 && code == CLI_EXIT_USAGE)
		return CLI_EXIT_USAGE;
	if (code == 127)
		return cli_error("cannot run %s", path);
	answer_the_rest(asking, code);
	return 0;
}

int cli_fetch(const struct cli_fetch *how, const struct cli_fetch_request *requests, size_t count,
	      cli_fetch_answer *take, void *context)
{
	struct asking asking = { .how = how, .count = count, .take = take, .context = context };
	void (*before)(int);
	char path[4096], missing[CLI_MISSING_BYTES];
	int code;

	if (count == 0)
		return 0;
	if (!cli_become_find("ringside-fetch", path, sizeof(path))) {
		cli_missing(missing, "ringside-fetch", path);
		return cli_error("%s", missing);
	}
	asking.is_answered = cli_realloc(NULL, count * sizeof(*asking.is_answered));
	memset(asking.is_answered, 0, count * sizeof(*asking.is_answered));
	/* If the child exits early, write() fails instead of raising SIGPIPE. */
	before = signal(SIGPIPE, SIG_IGN);
	code = fetch_run(&asking, path, requests);
	signal(SIGPIPE, before);
	free(asking.is_answered);
	return code;
}
