/* Finds our plugin, our other programs and recordings; runs programs and captures their output. */
#include "cli/cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"

#if defined(__aarch64__)
#define TRIPLET "aarch64-linux-gnu"
#else
#define TRIPLET "x86_64-linux-gnu"
#endif

/*
 * The directory of this program, with links resolved: a link in ~/bin finds the files next to the real program, too.
 */
static bool own_directory(char *to, size_t size)
{
	ssize_t length = readlink("/proc/self/exe", to, size - 1);
	char *slash;

	if (length <= 0)
		return false;
	to[length] = '\0';
	slash = strrchr(to, '/');
	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

bool cli_plugin_find(char *path, size_t size, char *looked, size_t looked_size)
{
	static const char in_triplet[] = "../lib/" TRIPLET;
	static const char in_triplet_own[] = "../lib/" TRIPLET "/ringside";
	static const char *const places[] = {
		".", "../lib/ringside", "../lib", in_triplet_own, in_triplet, "../lib64",
	};
	char directory[4000], candidate[4096], whole[4096];
	size_t used = 0;

	looked[0] = '\0';
	if (!own_directory(directory, sizeof(directory)))
		return false;
	for (size_t i = 0; i < ARRAY_LENGTH(places); i++) {
		text_format(candidate, sizeof(candidate), "%s/%s", directory, places[i]);
		/* Resolve only the directory: NCCL needs the file name unchanged. */
		if (realpath(candidate, whole) &&
		    text_format(path, size, "%s/%s", whole, CLI_PLUGIN_FILE) &&
		    access(path, R_OK) == 0)
			return true;
		text_format(looked + used, looked_size - used, "%s%s/%s", used ? ", " : "",
			    directory, places[i]);
		used = strlen(looked);
	}
	return false;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat of_a, of_b;

	return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
	       of_a.st_ino == of_b.st_ino;
}

bool cli_plugin_is_on_path(const char *path)
{
	struct link_map *map = NULL;
	bool is_same = false;
	void *handle;

	handle = dlopen(CLI_PLUGIN_FILE, RTLD_LAZY | RTLD_LOCAL);
	if (handle == NULL)
		return false;
	if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != NULL)
		is_same = is_same_file(path, map->l_name);
	dlclose(handle);
	return is_same;
}

bool cli_plugin_is_hidden(const char *path)
{
	const char *at = getenv("LD_LIBRARY_PATH");
	char candidate[4096];

	while (at && *at != '\0') {
		size_t length = strcspn(at, ":;");

		text_format(candidate, sizeof(candidate), "%.*s/%s", (int)length, at,
			    CLI_PLUGIN_FILE);
		if (access(candidate, R_OK) == 0)
			return !is_same_file(path, candidate);
		at += length + (at[length] != '\0');
	}
	return false;
}

bool cli_plugin_is_ours(const char *value)
{
	const char *slash = strrchr(value, '/');

	return strcmp(value, "ringside") == 0 ||
	       strcmp(slash ? slash + 1 : value, CLI_PLUGIN_FILE) == 0;
}

int cli_traces_find(const char *pattern, char *found, size_t size)
{
	struct stat st;

	if (!text_copy(found, size, pattern))
		return ENAMETOOLONG;
	found[strcspn(found, "%")] = '\0';
	while (stat(found, &st) == -1) {
		char *slash = strrchr(found, '/');

		if (errno != ENOENT || slash == NULL)
			return errno;
		slash[slash == found] = '\0';
	}
	if (!S_ISDIR(st.st_mode))
		return ENOTDIR;
	return access(found, W_OK | X_OK) == -1 ? errno : 0;
}

static bool become_find_in(const char *directory, const char *program, char *path, size_t size)
{
	static const char *const places[] = { ".", "../libexec/ringside", "../lib/ringside" };

	for (size_t i = 0; i < ARRAY_LENGTH(places); i++)
		if (text_format(path, size, "%s/%s/%s", directory, places[i], program) &&
		    access(path, X_OK) == 0)
			return true;
	return false;
}

bool cli_become_find(const char *program, char *path, size_t size)
{
	char directory[4000];

	if (!own_directory(directory, sizeof(directory)))
		directory[0] = '\0';
	if (become_find_in(directory, program, path, size))
		return true;
	text_copy(path, size, directory);
	return false;
}

void cli_missing(char text[CLI_MISSING_BYTES], const char *program, const char *directory)
{
	static const struct {
		const char *program;
		const char *package;
		bool is_in_wheel;
	} known[] = {
		{ "ringside-agent", "ringside-agent", false },
		{ "ringside-fetch", "ringside", false },
		{ "ringside-top", "ringside", true },
		{ "ringside-bench", "ringside-bench", true },
		{ "ringside-sim", "ringside-sim", true },
	};
	size_t i = 0;

	while (strcmp(known[i].program, program) != 0)
		i++;
	text_format(text, CLI_MISSING_BYTES,
		    "no %s beside %s/ringside. Install the package %s (apt install ./%s_*.deb, dnf "
		    "install ./%s-[0-9]*.rpm)%s; in the source tree: scripts/install-deps build && "
		    "make",
		    program, directory, known[i].package, known[i].package, known[i].package,
		    known[i].is_in_wheel ? "" : "; the Python wheel does not have it");
}

int cli_become(const char *program, char **argv)
{
	char path[4096], missing[CLI_MISSING_BYTES];

	if (!cli_become_find(program, path, sizeof(path))) {
		cli_missing(missing, program, path);
		return cli_error("%s", missing);
	}
	argv[0] = path;
	execv(path, argv);
	return cli_error("cannot run %s: %s", path, strerror(errno));
}

#define KILL_NS SECOND_NS /* time allowed after SIGKILL */
enum { ERROR_BYTES = 256 };

struct child {
	pid_t pid;
	int out;
	int err;
};

/* In the child. */
static _Noreturn void capture_become(const char *const *words, int fd, int out, int err)
{
	int null = open("/dev/null", O_RDONLY);

	/* Descriptor 3 may be in use by another pipe, or the reverse: move them first. */
	if (fd != -1)
		fd = fcntl(fd, F_DUPFD, 16);
	out = fcntl(out, F_DUPFD, 16);
	err = fcntl(err, F_DUPFD, 16);
	setpgid(0, 0);
	if (dup2(null, STDIN_FILENO) == -1 || dup2(out, STDOUT_FILENO) == -1 ||
	    dup2(err, STDERR_FILENO) == -1 || (fd != -1 && dup2(fd, 3) == -1))
		_exit(126);
	for (int other = fd == -1 ? 3 : 4; other < 256; other++)
		close(other);
	execvp(words[0], (char *const *)words);
	_exit(errno == ENOENT ? 127 : 126);
}

static enum status capture_start(struct child *child, const char *const *words, int fd)
{
	int out[2] = { -1, -1 }, err[2] = { -1, -1 };
	int error;

	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0) {
		child->pid = fork();
		if (child->pid == 0)
			capture_become(words, fd, out[1], err[1]);
	} else {
		child->pid = -1;
	}
	error = errno;
	for (int i = 0; i < 2; i++) {
		int *end = i == 0 ? out : err;

		if (end[1] != -1)
			close(end[1]);
		if (child->pid == -1 && end[0] != -1)
			close(end[0]);
	}
	errno = error;
	if (child->pid == -1)
		return ERR_SYSTEM;
	setpgid(child->pid, child->pid);
	child->out = out[0];
	child->err = err[0];
	return OK;
}

/* Bytes beyond `most` are read and dropped. False: end of file. */
static bool read_some(int fd, char *to, size_t *used, size_t most, bool *is_cut)
{
	char bytes[16384];
	ssize_t got = read(fd, bytes, sizeof(bytes));
	size_t part;

	if (got <= 0)
		return got == -1 && errno == EINTR;
	part = (size_t)got < most - *used ? (size_t)got : most - *used;
	memcpy(to + *used, bytes, part);
	*used += part;
	*is_cut = *is_cut || part < (size_t)got;
	return true;
}

/* Reads until both are closed. False: timeout. */
static bool read_all(struct cli_capture *capture, const struct child *child, char *error,
		     size_t most, uint64_t until_ns)
{
	struct pollfd ends[2] = { { .fd = child->out, .events = POLLIN },
				  { .fd = child->err, .events = POLLIN } };
	size_t room = 0, error_used = 0;
	bool is_dropped = false;

	while (ends[0].fd != -1 || ends[1].fd != -1) {
		uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC);

		if (now_ns >= until_ns)
			return false;
		if (poll(ends, 2, (int)((until_ns - now_ns) / MS_NS) + 1) <= 0)
			continue;
		while (room < capture->length + 16384 + 1 && room <= most) {
			room = room * 2 + 65536;
			capture->bytes = cli_realloc(capture->bytes, room);
		}
		if (ends[0].revents && !read_some(ends[0].fd, capture->bytes, &capture->length,
						  most, &capture->is_cut))
			ends[0].fd = -1;
		if (ends[1].revents &&
		    !read_some(ends[1].fd, error, &error_used, ERROR_BYTES - 1, &is_dropped))
			ends[1].fd = -1;
		error[error_used] = '\0';
	}
	return true;
}

static bool has_ended(pid_t pid, int *how, uint64_t until_ns)
{
	do {
		if (waitpid(pid, how, WNOHANG) == pid)
			return true;
		poll(NULL, 0, 2);
	} while (clock_system_ns(CLOCK_MONOTONIC) < until_ns);
	return false;
}

enum ending { ENDED, KILLED, LEFT_BEHIND };

/*
 * A program that closed both pipes is about to exit. One that is blocked in the kernel (in a hung driver, for
 * example) cannot be killed: do not wait for it.
 */
static enum ending wait_for(pid_t pid, int *how, uint64_t until_ns)
{
	if (until_ns > 0 && has_ended(pid, how, until_ns))
		return ENDED;
	kill(-pid, SIGKILL);
	return has_ended(pid, how, clock_system_ns(CLOCK_MONOTONIC) + KILL_NS) ? KILLED
									       : LEFT_BEHIND;
}

static void capture_tell(struct cli_capture *capture, const char *program, const char *error,
			 int how)
{
	if (WIFEXITED(how))
		capture->exit_code = WEXITSTATUS(how);
	if (capture->exit_code == 127 && error[0] == '\0')
		text_format(capture->why, sizeof(capture->why), "program '%s' not found", program);
	else if (WIFSIGNALED(how))
		text_format(capture->why, sizeof(capture->why), "'%s' was killed by signal %d",
			    program, WTERMSIG(how));
	else if (capture->exit_code != 0)
		text_format(capture->why, sizeof(capture->why), "'%s' exited with %d%s%.*s",
			    program, capture->exit_code, error[0] ? ": " : "",
			    (int)strcspn(error, "\n"), error);
}

static enum status capture_it(struct cli_capture *capture, const char *const *words, int fd,
			      unsigned int timeout_s, size_t most_bytes)
{
	uint64_t until_ns = clock_system_ns(CLOCK_MONOTONIC) + timeout_s * SECOND_NS;
	char error[ERROR_BYTES] = "";
	enum ending ending;
	struct child child;
	bool is_in_time;
	int how = 0;

	*capture = (struct cli_capture){ .exit_code = -1 };
	if (capture_start(&child, words, fd) != OK) {
		text_format(capture->why, sizeof(capture->why), "'%s' cannot be started: %s",
			    words[0], strerror(errno));
		return ERR_SYSTEM;
	}
	is_in_time = read_all(capture, &child, error, most_bytes, until_ns);
	ending = wait_for(child.pid, &how, is_in_time ? until_ns : 0);
	close(child.out);
	close(child.err);
	capture->bytes = cli_realloc(capture->bytes, capture->length + 1);
	capture->bytes[capture->length] = '\0';
	if (ending != ENDED) {
		text_format(capture->why, sizeof(capture->why), "'%s' took longer than %u s%s",
			    words[0], timeout_s,
			    ending == KILLED ? "" : " and could not be killed");
		return ERR_SYSTEM;
	}
	capture_tell(capture, words[0], error, how);
	return capture->exit_code == 127 ? ERR_SYSTEM : OK;
}

enum status cli_capture(struct cli_capture *capture, const char *const *words, int fd,
			unsigned int timeout_s, size_t most_bytes)
{
	/* SIGCHLD may be ignored by our parent: then exit codes of children would be lost. */
	void (*before)(int) = signal(SIGCHLD, SIG_DFL);
	enum status status = capture_it(capture, words, fd, timeout_s, most_bytes);

	signal(SIGCHLD, before);
	return status;
}
