#include "programs/tape/tape_write.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

enum { TAPE_CLOSED = -1, TAPE_FAILED = -2 };

static struct {
	pthread_mutex_t lock;
	int fd;
	int version; /* of the last INIT: named in a comment when it changes */
	pid_t pid;   /* a forked child records nothing */
	uint64_t last_id;
} tape = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = TAPE_CLOSED };

/* ---- text ------------------------------------------------------------------------------------ */

void tape_text_put(struct tape_text *text, const char *format, ...)
{
	size_t room = sizeof(text->bytes) - text->length;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(text->bytes + text->length, room, format, args);
	va_end(args);
	if (length > 0)
		text->length += (size_t)length < room ? (size_t)length : room - 1;
}

void tape_text_id(struct tape_text *text, const char *before, const void *id)
{
	if (id)
		tape_text_put(text, "%s0x%llx", before, (unsigned long long)(uintptr_t)id);
	else
		tape_text_put(text, "%s(nil)", before);
}

void tape_text_word(struct tape_text *text, const char *before, const char *word)
{
	enum { WORD_MAX = 128 };

	if (word == NULL || word[0] == '\0') {
		tape_text_put(text, "%s%s", before, word ? "-" : "(null)");
		return;
	}
	tape_text_put(text, "%s", before);
	for (size_t i = 0; i < WORD_MAX && word[i] != '\0'; i++) {
		unsigned char byte = (unsigned char)word[i];
		bool is_first_special = i == 0 && (byte == '(' || byte == '-' || byte == '#');

		if (byte <= ' ' || byte >= 127 || byte == '%' || byte == '=' || is_first_special)
			tape_text_put(text, "%%%02X", byte);
		else
			tape_text_put(text, "%c", byte);
	}
}

uint64_t tape_time(void)
{
	return clock_system_ns(CLOCK_REALTIME);
}

/* ---- the file -------------------------------------------------------------------------------- */

static const char *first_set(const char *const *names)
{
	for (; *names; names++)
		if (getenv(*names))
			return getenv(*names);
	return "none";
}

/* A file of that name may be there, from a process that had our pid before: never overwrite it. */
static int file_create(char *path, size_t size)
{
	size_t length = strlen(path);
	int fd = -1;

	for (unsigned int i = 1; i < 1000; i++) {
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
			  0600);
		if (fd >= 0 || errno != EEXIST ||
		    !text_format(path + length, size - length, ".%u", i))
			break;
	}
	return fd;
}

static int tape_open(char *path, size_t size)
{
	static const char *const ranks[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					     "PMI_RANK", NULL };
	static const char *const jobs[] = { "RINGSIDE_JOB", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID",
					    NULL };
	const char *pattern = getenv("RINGSIDE_TAPE");
	char host[256] = "localhost";
	struct text_names names = {
		.host = host,
		.job = first_set(jobs),
		.rank = first_set(ranks),
		.pid = getpid(),
	};

	(void)gethostname(host, sizeof(host) - 1);
	if (pattern == NULL || pattern[0] == '\0')
		pattern = "ringside-%h-%p.tap";
	if (text_expand(path, size, pattern, &names) != OK) {
		text_copy(path, size, pattern);
		errno = EINVAL;
		return -1;
	}
	return file_create(path, size - 8);
}

static void tell(abi_log_fn log, const char *message)
{
	if (log)
		log(ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT, "tape", 0, "%s", message);
	else
		fprintf(stderr, "%s\n", message);
}

/* The file is open, or could not be opened and nobody tries again. */
static bool tape_is_open(abi_log_fn log)
{
	char path[3800], message[4096];

	if (tape.fd >= 0)
		return tape.pid == getpid();
	if (tape.fd == TAPE_FAILED)
		return false;
	tape.fd = tape_open(path, sizeof(path));
	tape.pid = getpid();
	if (tape.fd >= 0) {
		text_format(message, sizeof(message), "ringside tape: recording to %s", path);
		tell(log, message);
		return true;
	}
	tape.fd = TAPE_FAILED;
	/* Asked for and not possible: that is worth a line even where NCCL is told to be quiet. */
	fprintf(stderr, "ringside tape: cannot create %s: %s; set RINGSIDE_TAPE to a file\n", path,
		strerror(errno));
	return false;
}

static void bytes_write(const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(tape.fd, bytes, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			fprintf(stderr, "ringside tape: writing failed: %s; the tape ends here\n",
				strerror(errno));
			close(tape.fd);
			tape.fd = TAPE_FAILED;
			return;
		}
		bytes += written;
		length -= (size_t)written;
	}
}

/* One write per line: a process that is killed has its tape up to its last call. */
static void line_write(uint64_t time_ns, const char *what, const void *id,
		       const struct tape_text *rest)
{
	struct tape_text line = { .length = 0 };
	size_t room = sizeof(line.bytes) - 1;

	tape_text_put(&line, "%llu %d ", (unsigned long long)time_ns, (int)syscall(SYS_gettid));
	if (what)
		tape_text_id(&line, what, id);
	if (rest->length < room - line.length)
		room = line.length + rest->length;
	memcpy(line.bytes + line.length, rest->bytes, room - line.length);
	line.bytes[room] = '\n';
	bytes_write(line.bytes, room + 1);
}

static bool is_recording(void)
{
	return tape.fd >= 0 && tape.pid == getpid();
}

bool tape_write_init(uint64_t time_ns, int version, const struct tape_text *fields, void **context,
		     abi_log_fn log)
{
	int saved = errno;
	char comment[32];
	bool is_open;

	pthread_mutex_lock(&tape.lock);
	*context = (void *)(uintptr_t)++tape.last_id;
	is_open = tape_is_open(log);
	if (is_open && tape.version != version) {
		tape.version = version;
		text_format(comment, sizeof(comment), "# interface v%d\n", version);
		bytes_write(comment, strlen(comment));
	}
	if (is_open)
		line_write(time_ns, "INIT ctx=", *context, fields);
	pthread_mutex_unlock(&tape.lock);
	errno = saved;
	return is_open;
}

void tape_write_start(uint64_t time_ns, const struct tape_text *fields, void **handle)
{
	int saved = errno;

	pthread_mutex_lock(&tape.lock);
	*handle = (void *)(uintptr_t)++tape.last_id;
	if (is_recording())
		line_write(time_ns, "START ", *handle, fields);
	pthread_mutex_unlock(&tape.lock);
	errno = saved;
}

void tape_write_line(uint64_t time_ns, const struct tape_text *line)
{
	int saved = errno;

	pthread_mutex_lock(&tape.lock);
	if (is_recording())
		line_write(time_ns, NULL, NULL, line);
	pthread_mutex_unlock(&tape.lock);
	errno = saved;
}

/* Below 2.27 NCCL sends ProxyCtrl in every turn of its loop; below 2.28 asking for KernelCh can
 * break a job. */
int tape_events(int version)
{
	static const int all[] = { 0, 0x1f, 0x1f, 0x9f, 0xbf, 0xfff, 0x7fff, 0xffff };
	const char *text = getenv("RINGSIDE_TAPE_EVENTS");
	char *end = NULL;
	long events;

	if (text == NULL || text[0] == '\0')
		return all[version];
	events = strtol(text, &end, 0);
	return *end == '\0' && events >= 0 && events <= 0xffff ? (int)events : all[version];
}
