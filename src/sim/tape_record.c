/*
 * The tape recorder: a plugin that writes every call of NCCL to a file. Lines are written one by one, under one
 * lock, in the order of their numbers; docs/HACKING.md documents the format. A diagnostic tool: it can block, and it
 * writes to disk from NCCL's threads. Not part of the always-on plugin.
 *
 * Converts a descriptor of each version to the words of a line; the macros have what the versions share.
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

/* Which events to request: RINGSIDE_TAPE_EVENTS, or all that are harmless in that version. */
/*
 * Before 2.27 NCCL sends ProxyCtrl in every iteration of its loop; before 2.28 requesting KernelCh can break a job.
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

/* A number without a name is written as #N. */
static void number_put(struct tape_text *text, const char *before, const char *prefix,
		       const char *name, bool is_known, unsigned int number)
{
	if (is_known)
		tape_text_put(text, "%s%s%s", before, prefix, name);
	else
		tape_text_put(text, "%s#%u", before, number);
}

static void function_put(struct tape_text *text, uint8_t number)
{
	uint8_t function = op_function_from_v1(number);

	number_put(text, " ", "", op_function_name(function), function != OP_FUNCTION_UNKNOWN,
		   number);
}

/* "float32" is NCCL's "ncclFloat32". */
static void datatype_put(struct tape_text *text, uint8_t number)
{
	uint8_t datatype = op_datatype_from_nccl(number);
	char name[32];

	text_copy(name, sizeof(name), op_datatype_name(datatype));
	if (name[0] >= 'a' && name[0] <= 'z')
		name[0] = (char)(name[0] - 'a' + 'A');
	number_put(text, " dt=", "nccl", name, datatype != OP_DATATYPE_UNKNOWN, number);
}

static void algorithm_put(struct tape_text *text, uint8_t number)
{
	uint8_t algorithm = op_algorithm_from_v1(number);

	number_put(text, " ", "", op_algorithm_name(algorithm), algorithm != OP_ALGORITHM_UNKNOWN,
		   number);
}

static void protocol_put(struct tape_text *text, uint8_t number)
{
	uint8_t protocol = op_protocol_from_v1(number);

	number_put(text, " ", "", op_protocol_name(protocol), protocol != OP_PROTOCOL_UNKNOWN,
		   number);
}

/* ---- pieces that several versions share ------------------------------------------------------ */

static void buffers_put(struct tape_text *text, const void *send, const void *recv)
{
	tape_text_id(text, " sb=", send);
	tape_text_id(text, " rb=", recv);
}

/* Coll: the line as in the oldest tapes, then what was added. */
#define COLL_V1(text, coll)                                                                    \
	do {                                                                                   \
		tape_text_put(text, " Coll seq=%" PRIu64, (coll).sequence);                    \
		function_put(text, (coll).function);                                           \
		tape_text_put(text, " count=%zu", (coll).count);                               \
		datatype_put(text, (coll).datatype);                                           \
		tape_text_put(text, " root=%d nch=%u nw=%u", (coll).root, (coll).max_channels, \
			      (coll).warps);                                                   \
		algorithm_put(text, (coll).algorithm);                                         \
		protocol_put(text, (coll).protocol);                                           \
		tape_text_put(text, " pg=(nil)");                                              \
	} while (0)
#define COLL_STRINGS(text, coll, nchannels, group)                                     \
	do {                                                                           \
		tape_text_put(text, " Coll seq=%" PRIu64, (coll).sequence);            \
		tape_text_word(text, " ", (coll).function);                            \
		tape_text_put(text, " count=%zu", (coll).count);                       \
		tape_text_word(text, " dt=", (coll).datatype);                         \
		tape_text_put(text, " root=%d nch=%u nw=%u", (coll).root, (nchannels), \
			      (coll).warps);                                           \
		tape_text_word(text, " ", (coll).algorithm);                           \
		tape_text_word(text, " ", (coll).protocol);                            \
		tape_text_id(text, " pg=", group);                                     \
		buffers_put(text, (coll).send_buffer, (coll).recv_buffer);             \
	} while (0)
#define COMM_PUT(text, task)                                             \
	do {                                                             \
		tape_text_put(text, " hash=%" PRIx64, (task).comm_hash); \
		tape_text_word(text, " name=", (task).name);             \
	} while (0)

#define P2P_STRINGS(text, p2p)                                  \
	do {                                                    \
		tape_text_put(text, " P2p");                    \
		tape_text_word(text, " ", (p2p).function);      \
		tape_text_put(text, " count=%zu", (p2p).count); \
		tape_text_word(text, " dt=", (p2p).datatype);   \
		tape_text_put(text, " peer=%d", (p2p).peer);    \
	} while (0)
#define P2P_MORE(text, p2p, group)                              \
	do {                                                    \
		tape_text_put(text, " nch=%u", (p2p).channels); \
		tape_text_id(text, " pg=", group);              \
		tape_text_id(text, " sb=", (p2p).buffer);       \
	} while (0)

/* ---- what each version has beyond the common events ------------------------------------------ */

/* The words after "START ... rank=R". False: an event that all versions share. */
static bool tape_fields_v1(struct tape_text *text, const struct abi_descr_v1 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_V1(text, d->coll);
		buffers_put(text, d->coll.send_buffer, d->coll.recv_buffer);
		tape_text_put(text, " traffic=%zu redop=%u collnet=%d nvls=%d",
			      d->coll.traffic_bytes, d->coll.redop, d->coll.is_collnet,
			      d->coll.is_nvls);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		tape_text_put(text, " P2p");
		function_put(text, d->p2p.function);
		tape_text_put(text, " count=%zu", d->p2p.count);
		datatype_put(text, d->p2p.datatype);
		tape_text_put(text, " peer=%d nch=0 pg=(nil)", d->p2p.peer);
		tape_text_id(text, " sb=", d->p2p.buffer);
		COMM_PUT(text, d->p2p);
		return true;
	default:
		return false;
	}
}

#define FIELDS_P2P_OLD(text, d)                              \
	do {                                                 \
		P2P_STRINGS(text, (d)->p2p);                 \
		tape_text_put(text, " nch=0 pg=(nil)");      \
		tape_text_id(text, " sb=", (d)->p2p.buffer); \
		COMM_PUT(text, (d)->p2p);                    \
	} while (0)

static bool tape_fields_v2(struct tape_text *text, const struct abi_descr_v2 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.max_channels, NULL);
		tape_text_put(text, " traffic=%zu", d->coll.traffic_bytes);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		FIELDS_P2P_OLD(text, d);
		return true;
	default:
		return false;
	}
}

/* Kernel channels and transport events: v3 and later. What the transport points to is invalid after the call. */
#define FIELDS_NET(text, d) tape_text_put(text, " NetPlugin id=%" PRId64, (d)->net_plugin.id)

static bool tape_fields_v3(struct tape_text *text, const struct abi_descr_v3 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.max_channels, NULL);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		FIELDS_P2P_OLD(text, d);
		return true;
	case ABI_KERNEL_CH:
		tape_text_put(text, " KernelCh ch=%u pt=0", d->kernel_ch.channel);
		return true;
	case ABI_NET_PLUGIN:
		FIELDS_NET(text, d);
		return true;
	default:
		return false;
	}
}

#define FIELDS_KERNEL(text, d)                                                     \
	tape_text_put(text, " KernelCh ch=%u pt=%" PRIu64, (d)->kernel_ch.channel, \
		      (d)->kernel_ch.gpu_ns)

static bool tape_fields_v4(struct tape_text *text, const struct abi_descr_v4 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.channels, NULL);
		return true;
	case ABI_P2P:
		P2P_STRINGS(text, d->p2p);
		P2P_MORE(text, d->p2p, NULL);
		return true;
	case ABI_KERNEL_CH:
		FIELDS_KERNEL(text, d);
		return true;
	case ABI_NET_PLUGIN:
		FIELDS_NET(text, d);
		return true;
	default:
		return false;
	}
}

/* API events: v5 and later. */
#define FIELDS_API(text, api, event)                                                           \
	do {                                                                                   \
		tape_text_put(text, " " event);                                                \
		tape_text_word(text, " ", (api).function);                                     \
		tape_text_put(text, " count=%zu captured=%d", (api).count, (api).is_captured); \
		tape_text_word(text, " dt=", (api).datatype);                                  \
		tape_text_id(text, " stream=", (api).stream);                                  \
	} while (0)

/* Events of v5 in any later version: N is the version. */
#define FIELDS_V5(N, name)                                                                   \
	static bool name(struct tape_text *text, const struct abi_descr_v##N *d)             \
	{                                                                                    \
		switch (d->type) {                                                           \
		case ABI_COLL:                                                               \
			COLL_STRINGS(text, d->coll, d->coll.channels, d->coll.parent_group); \
			return true;                                                         \
		case ABI_P2P:                                                                \
			P2P_STRINGS(text, d->p2p);                                           \
			P2P_MORE(text, d->p2p, d->p2p.parent_group);                         \
			return true;                                                         \
		case ABI_KERNEL_CH:                                                          \
			FIELDS_KERNEL(text, d);                                              \
			return true;                                                         \
		case ABI_NET_PLUGIN:                                                         \
			FIELDS_NET(text, d);                                                 \
			return true;                                                         \
		case ABI_GROUP_API:                                                          \
			tape_text_put(text, " GroupApi captured=%d depth=%d",                \
				      d->group_api.is_captured, d->group_api.depth);         \
			return true;                                                         \
		case ABI_COLL_API:                                                           \
			FIELDS_API(text, d->coll_api, "CollApi");                            \
			tape_text_put(text, " root=%d", d->coll_api.root);                   \
			return true;                                                         \
		case ABI_P2P_API:                                                            \
			FIELDS_API(text, d->p2p_api, "P2pApi");                              \
			return true;                                                         \
		case ABI_KERNEL_LAUNCH:                                                      \
			tape_text_put(text, " KernelLaunch");                                \
			tape_text_id(text, " stream=", d->kernel_launch.stream);             \
			return true;                                                         \
		default:                                                                     \
			return false;                                                        \
		}                                                                            \
	}
FIELDS_V5(5, tape_fields_v5)
FIELDS_V5(6, fields_since_v5_6)
FIELDS_V5(7, fields_since_v5_7)

/* Copy-engine events: v6 and later. */
#define FIELDS_V6(N, name)                                                                         \
	static bool name(struct tape_text *text, const struct abi_descr_v##N *d)                   \
	{                                                                                          \
		switch (d->type) {                                                                 \
		case ABI_CE_COLL:                                                                  \
			tape_text_put(text, " CeColl seq=%" PRIu64, d->ce_coll.sequence);          \
			tape_text_word(text, " ", d->ce_coll.function);                            \
			tape_text_put(text, " count=%zu", d->ce_coll.count);                       \
			tape_text_word(text, " dt=", d->ce_coll.datatype);                         \
			tape_text_put(text, " root=%d intra=%d batch=%u batches=%u ceseq=%u",      \
				      d->ce_coll.root, d->ce_coll.has_intra_batch_sync,            \
				      d->ce_coll.batch_size, d->ce_coll.batches,                   \
				      d->ce_coll.ce_sequence);                                     \
			tape_text_word(text, " sync=", d->ce_coll.sync_strategy);                  \
			buffers_put(text, d->ce_coll.send_buffer, d->ce_coll.recv_buffer);         \
			tape_text_id(text, " stream=", d->ce_coll.stream);                         \
			return true;                                                               \
		case ABI_CE_SYNC:                                                                  \
			tape_text_put(text, " CeSync complete=%d nranks=%d",                       \
				      d->ce_sync.is_complete, d->ce_sync.nranks);                  \
			return true;                                                               \
		case ABI_CE_BATCH:                                                                 \
			tape_text_put(text, " CeBatch ops=%d bytes=%zu intra=%d", d->ce_batch.ops, \
				      d->ce_batch.total_bytes, d->ce_batch.use_intra_sync);        \
			return true;                                                               \
		default:                                                                           \
			return fields_since_v5_##N(text, d);                                       \
		}                                                                                  \
	}
FIELDS_V6(6, tape_fields_v6)
FIELDS_V6(7, fields_since_v6_7)

static void tag_put(struct tape_text *text, uint64_t tag)
{
	tape_text_put(text, " tag=%" PRIu64, tag);
}

static bool tape_fields_v7(struct tape_text *text, const struct abi_descr_v7 *d)
{
	bool is_known = fields_since_v6_7(text, d);

	if (d->type == ABI_COLL) {
		tag_put(text, d->coll.user_tag);
		tape_text_put(text, " sym=%d", d->coll.is_symmetric);
		tape_text_word(text, " variant=", d->coll.kernel_variant);
	} else if (d->type == ABI_P2P) {
		tag_put(text, d->p2p.user_tag);
	} else if (d->type == ABI_COLL_API) {
		tag_put(text, d->coll_api.user_tag);
	} else if (d->type == ABI_P2P_API) {
		tag_put(text, d->p2p_api.user_tag);
	} else if (d->type == ABI_CE_COLL) {
		tag_put(text, d->ce_coll.user_tag);
	} else if (d->type == ABI_KERNEL_PHASE) {
		tape_text_put(text, " KernelPhase ch=%u phase=%u pt=%" PRIu64,
			      d->kernel_phase.channel, d->kernel_phase.phase,
			      d->kernel_phase.gpu_ns);
		tape_text_word(text, " name=", d->kernel_phase.name);
		is_known = true;
	}
	return is_known;
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

/* Events that are the same in all versions. */
#define FIELDS_COMMON(text, d)                                                            \
	do {                                                                              \
		switch ((d)->type) {                                                      \
		case ABI_GROUP:                                                           \
			tape_text_put(text, " Group");                                    \
			break;                                                            \
		case ABI_PROXY_OP:                                                        \
			tape_text_put(text,                                               \
				      " ProxyOp pid=%d ch=%u peer=%d nsteps=%d chunk=%d " \
				      "send=%d",                                          \
				      (d)->proxy_op.pid, (d)->proxy_op.channel,           \
				      (d)->proxy_op.peer, (d)->proxy_op.steps,            \
				      (d)->proxy_op.chunk_bytes, (d)->proxy_op.is_send);  \
			break;                                                            \
		case ABI_PROXY_STEP:                                                      \
			tape_text_put(text, " ProxyStep %d", (d)->proxy_step.step);       \
			break;                                                            \
		case ABI_PROXY_CTRL:                                                      \
			tape_text_put(text, " ProxyCtrl");                                \
			break;                                                            \
		default:                                                                  \
			tape_text_put(text, " Unknown");                                  \
		}                                                                         \
	} while (0)

#define RECORDER(N, log, who, ...)                                                    \
	static int init_v##N(__VA_ARGS__)                                             \
	{                                                                             \
		return record_init(N, context, mask, (struct identity)who, log);      \
	}                                                                             \
	static int start_v##N(void *context, void **handle, struct abi_descr_v##N *d) \
	{                                                                             \
		uint64_t time_ns = clock_system_ns(CLOCK_REALTIME);                   \
		struct tape_text text = { .length = 0 };                              \
                                                                                      \
		tape_text_id(&text, " ctx=", context);                                \
		tape_text_put(&text, " type=%" PRIu64, (uint64_t)d->type);            \
		tape_text_id(&text, " parent=", d->parent);                           \
		tape_text_put(&text, " rank=%d", d->rank);                            \
		if (!tape_fields_v##N(&text, d))                                      \
			FIELDS_COMMON(&text, d);                                      \
		tape_write_start(time_ns, &text, handle);                             \
		return NCCL_SUCCESS;                                                  \
	}                                                                             \
	static int state_v##N(void *handle, int state, union abi_args_v##N *args)     \
	{                                                                             \
		return record_state(handle, state, args, sizeof(*args));              \
	}

#define CALLS(N)                                                                                  \
	{                                                                                         \
		"Ringside tape", init_v##N, start_v##N, record_stop, state_v##N, record_finalize, \
	}

#define NOBODY                    \
	{                         \
		0, NULL, 0, 0, -1 \
	}
#define SOMEBODY                                           \
	{                                                  \
		comm_hash, comm_name, nnodes, nranks, rank \
	}

RECORDER(1, NULL, NOBODY, void **context, int *mask)
RECORDER(2, NULL, NOBODY, void **context, int *mask)
RECORDER(3, NULL, NOBODY, void **context, int *mask)
RECORDER(4, log, SOMEBODY, void **context, int *mask, const char *comm_name, uint64_t comm_hash,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(5, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(6, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)
RECORDER(7, log, SOMEBODY, void **context, uint64_t comm_hash, int *mask, const char *comm_name,
	 int nnodes, int nranks, int rank, abi_log_fn log)

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
