/*
 * The tape recorder: a plugin that writes every call of NCCL to a file. Lines are written one by one, under one
 * lock, in the order of their numbers; docs/HACKING.md documents the format. A diagnostic tool: it can block, and it
 * writes to disk from NCCL's threads. Not part of the always-on plugin.
 *
 * tape_record.inc converts a descriptor of each version to the words of a line.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/order.h"
#include "common/text.h"
#include "plugin/abi_v1.h"
#include "plugin/abi_v2.h"
#include "plugin/abi_v3.h"
#include "plugin/abi_v4.h"
#include "plugin/abi_v5.h"
#include "plugin/abi_v6.h"
#include "plugin/abi_v7.h"

/* A line being assembled. */
struct tape_text {
	char bytes[1024];
	size_t length;
};

enum { TAPE_CLOSED = -1, TAPE_FAILED = -2 };

static struct {
	pthread_mutex_t lock;
	int fd;
	int version; /* of the last INIT: written as a comment when it changes */
	pid_t pid;   /* a forked child records nothing */
	uint64_t last_id;
} tape = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = TAPE_CLOSED };

/* ---- text ------------------------------------------------------------------------------------ */

static void PRINTF_LIKE(2, 3) tape_text_put(struct tape_text *text, const char *format, ...)
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

/* A pointer as printf writes it: (nil), or 0x... */
static void tape_text_id(struct tape_text *text, const char *before, const void *id)
{
	if (id)
		tape_text_put(text, "%s0x%llx", before, (unsigned long long)(uintptr_t)id);
	else
		tape_text_put(text, "%s(nil)", before);
}

/* A word: characters that would break a line or word become %XX; NULL is (null), an empty one "-". */
static void tape_text_word(struct tape_text *text, const char *before, const char *word)
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

/* ---- the file -------------------------------------------------------------------------------- */

static const char *first_set(const char *const *names)
{
	for (; *names; names++)
		if (getenv(*names))
			return getenv(*names);
	return "none";
}

/* Never overwrite an existing file of that name, from an earlier process with our pid. */
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

static void tape_tell(abi_log_fn log, const char *message)
{
	if (log)
		log(ABI_LOG_INFO, ABI_LOG_SUBSYSTEM_INIT, "tape", 0, "%s", message);
	else
		fprintf(stderr, "%s\n", message);
}

/* The file is open, or could not be opened and is not tried again. */
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
		tape_tell(log, message);
		return true;
	}
	tape.fd = TAPE_FAILED;
	/* Requested but impossible: worth a line even if NCCL's log is off. */
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

/* One write per line: the tape of a killed process is complete up to its last call. */
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

/* INIT: opens the file if necessary and assigns an id to the context. False: nothing is recorded. */
static bool tape_write_init(uint64_t time_ns, int version, const struct tape_text *fields,
			    void **context, abi_log_fn log)
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

/* START: assigns an id to the event. */
static void tape_write_start(uint64_t time_ns, const struct tape_text *fields, void **handle)
{
	int saved = errno;

	pthread_mutex_lock(&tape.lock);
	*handle = (void *)(uintptr_t)++tape.last_id;
	if (is_recording())
		line_write(time_ns, "START ", *handle, fields);
	pthread_mutex_unlock(&tape.lock);
	errno = saved;
}

/* Any other line, unchanged. */
static void tape_write_line(uint64_t time_ns, const struct tape_text *line)
{
	int saved = errno;

	pthread_mutex_lock(&tape.lock);
	if (is_recording())
		line_write(time_ns, NULL, NULL, line);
	pthread_mutex_unlock(&tape.lock);
	errno = saved;
}

/*
 * Which events to request: RINGSIDE_TAPE_EVENTS, or all that are harmless in that version. Before 2.27 NCCL sends
 * ProxyCtrl in every iteration of its loop; before 2.28 requesting KernelCh can break a job.
 */
static int tape_events(int version)
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

/* ---- v1's numbers ---------------------------------------------------------------------------- */

/* `known` is what the number stands for. A number without a name is written as #N. */
static void name_put(struct tape_text *text, const char *before, enum op_name_table table,
		     uint8_t known, uint8_t number)
{
	if (known != 0)
		tape_text_put(text, "%s%s", before, op_name_of_nccl(table, known));
	else
		tape_text_put(text, "%s#%u", before, number);
}

/* ---- pieces that several versions share ------------------------------------------------------ */

static void buffers_put(struct tape_text *text, const void *send, const void *recv)
{
	tape_text_id(text, " sb=", send);
	tape_text_id(text, " rb=", recv);
}

static void comm_put(struct tape_text *text, uint64_t hash, const char *name)
{
	tape_text_put(text, " hash=%" PRIx64, hash);
	tape_text_word(text, " name=", name);
}

/* The tape recorder as NCCL sees it: one plugin with seven versions. */

struct identity {
	uint64_t hash;
	const char *name;
	int nnodes, nranks, rank;
};

static int record_init(int version, void **context, int *mask, struct identity who, abi_log_fn log)
{
	uint64_t time_ns = clock_system_ns(CLOCK_REALTIME);
	struct tape_text text = { .length = 0 };
	bool is_open;

	tape_text_put(&text, " id=%" PRIx64, who.hash);
	tape_text_word(&text, " name=", who.name);
	tape_text_put(&text, " nnodes=%d nranks=%d rank=%d", who.nnodes, who.nranks, who.rank);
	is_open = tape_write_init(time_ns, version, &text, context, log);
	/* Threads of other communicators may be reading it. */
	store_relaxed(mask, is_open ? tape_events(version) : 0);
	return NCCL_SUCCESS;
}

static int record_stop(void *handle)
{
	uint64_t time_ns = clock_system_ns(CLOCK_REALTIME);
	struct tape_text text = { .length = 0 };

	tape_text_id(&text, "STOP ", handle);
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

static int record_finalize(void *context)
{
	uint64_t time_ns = clock_system_ns(CLOCK_REALTIME);
	struct tape_text text = { .length = 0 };

	tape_text_id(&text, "FINI ctx=", context);
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

/* `size` bytes of argument; proxy operations of v1 to v3 have a step count after the first 8. */
static int record_state(void *handle, int state, const void *args, size_t size)
{
	uint64_t time_ns = clock_system_ns(CLOCK_REALTIME), arg = 0;
	struct tape_text text = { .length = 0 };
	int steps = 0;

	tape_text_id(&text, "STATE ", handle);
	if (args)
		memcpy(&arg, args, sizeof(arg));
	if (args && state >= ABI_CTRL_IDLE && state <= ABI_CTRL_APPEND_END)
		arg = (uint32_t)arg; /* an int: ignore the bytes after it */
	if (state == ABI_NET_PLUGIN_UPDATE)
		arg = 0; /* a pointer, invalid after the call */
	tape_text_put(&text, " %d arg=%" PRIu64, state, arg);
	if (args == NULL)
		tape_text_put(&text, " null=1");
	if (args && size > sizeof(arg) && state <= ABI_OP_RECV_DONE) {
		memcpy(&steps, (const char *)args + sizeof(arg), sizeof(steps));
		tape_text_put(&text, " steps=%d", steps);
	}
	tape_write_line(time_ns, &text);
	return NCCL_SUCCESS;
}

/* ---- one recorder per version ---------------------------------------------------------------- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define ABI_VERSION 1
#include "sim/tape_record.inc"
#define ABI_VERSION 2
#include "sim/tape_record.inc"
#define ABI_VERSION 3
#include "sim/tape_record.inc"
#define ABI_VERSION 4
#include "sim/tape_record.inc"
#define ABI_VERSION 5
#include "sim/tape_record.inc"
#define ABI_VERSION 6
#include "sim/tape_record.inc"
#define ABI_VERSION 7
#include "sim/tape_record.inc"

#define CALLS(N)                                                                                 \
	{                                                                                        \
		"Ringside tape", init_v##N, start_v##N, record_stop, state_v##N, record_finalize \
	}

#define EXPORT(N)                                                       \
	EXPORTED extern const struct abi_plugin_v##N ncclProfiler_v##N; \
	const struct abi_plugin_v##N ncclProfiler_v##N = CALLS(N)

EXPORT(1);
EXPORT(2);
EXPORT(3);
EXPORT(4);
EXPORT(5);
EXPORT(6);

/* Forks of NCCL with another v7 find NULL past its end. */
struct padded_v7 {
	struct abi_plugin_v7 plugin;
	void *nothing[8];
};
EXPORTED extern const struct padded_v7 ncclProfiler_v7;
const struct padded_v7 ncclProfiler_v7 = { .plugin = CALLS(7) };
