/*
 * The kernel log as events. Lines as drivers and the kernel write them:
 *
 *	NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
 *	NVRM: Xid (PCI:0000:3b:00): 94, pid='<unknown>', name=<unknown>, Contained: ...
 *	NVRM: GPU at PCI:0000:3b:00: GPU-efbdfde9-5798-a6e7-4c46-12518fa15375
 *	nvidia-nvswitch1: SXid (PCI:0000:84:00.0): 12028, Non-fatal, Link 32 ...
 *	Out of memory: Killed process 4711 (python3) total-vm:...
 *	Memory cgroup out of memory: Killed process 4711 (python3) total-vm:...
 */
#include "import/host_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/text.h"

enum { RECORD_BYTES = 8192, READ_MOST = 4 << 20 };

bool host_log_open(struct host_log *log, const char *root)
{
	char path[512];

	*log = (struct host_log){ .fd = -1 };
	text_format(path, sizeof(path), "%s/dev/kmsg", root);
	log->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return log->fd != -1;
}

void host_log_close(struct host_log *log)
{
	if (log->fd != -1)
		close(log->fd);
	log->fd = -1;
}

/* ---- one line ---------------------------------------------------------------------------------- */

/* Digits at `at`, bounded; -1 none. */
static int64_t number_at(const char *at, const char **end)
{
	char *stop = NULL;
	long long number;

	if (*at < '0' || *at > '9')
		return -1;
	errno = 0;
	number = strtoll(at, &stop, 10);
	if (end)
		*end = stop;
	return errno == 0 ? number : -1;
}

/* "PCI:0000:3b:00): 79, ..." to the address; the position behind it, or NULL. */
static const char *take_address(const char *at, char to[HOST_OBJECT_BYTES])
{
	size_t length;

	if (strncmp(at, "PCI:", 4) == 0)
		at += 4;
	length = strspn(at, "0123456789abcdefABCDEF:.");
	if (length < 7 || length >= HOST_OBJECT_BYTES)
		return NULL;
	memcpy(to, at, length);
	to[length] = '\0';
	return at + length;
}

static bool take_xid(const char *line, struct host_event *event)
{
	const char *at = strstr(line, "Xid ("), *pid;

	if (at == NULL)
		return false;
	event->kind = at > line && at[-1] == 'S' ? HOST_EVENT_SXID : HOST_EVENT_XID;
	/* Anyone who may write to the log may write such words; the driver's own lines begin so. */
	if (event->kind == HOST_EVENT_XID ? strncmp(line, "NVRM: ", 6) != 0
					  : strncmp(line, "nvidia-nvswitch", 15) != 0)
		return false;
	at = take_address(at + 5, event->object);
	if (at == NULL || strncmp(at, "): ", 3) != 0)
		return false;
	event->number = number_at(at + 3, &at);
	if (event->number < 0)
		return false;
	pid = strstr(at, "pid=");
	event->pid = pid ? number_at(pid + 4, NULL) : -1;
	at += strspn(at, ", ");
	/* The words after process and name, if there are any. */
	pid = pid ? strstr(at, "name=") : NULL;
	if (pid != NULL && strchr(pid, ',') != NULL)
		at = strchr(pid, ',') + 2;
	if (!text_copy(event->text, sizeof(event->text), at))
		memcpy(event->text + sizeof(event->text) - 4, "...", 4);
	return true;
}

static bool take_kill(const char *line, struct host_event *event)
{
	const char *at = strstr(line, "Killed process ");

	if (at == NULL || (strncmp(line, "Out of memory", 13) != 0 &&
			   strncmp(line, "Memory cgroup out of memory", 27) != 0))
		return false;
	event->kind = HOST_EVENT_OOM;
	event->number = event->pid = number_at(at + 15, NULL);
	if (event->number <= 0)
		return false;
	text_copy(event->text, sizeof(event->text),
		  line[0] == 'M' ? "memory limit of its cgroup" : "memory of the host");
	return true;
}

/* "GPU at PCI:0000:00:05: GPU-efbd..." */
static void take_gpu(struct host_facts *facts, const char *line)
{
	static const char start[] = "NVRM: GPU at ";
	char bus[HOST_OBJECT_BYTES], copy[HOST_LINE_BYTES];
	const char *at;
	size_t length;

	if (strncmp(line, start, sizeof(start) - 1) != 0)
		return;
	at = take_address(line + sizeof(start) - 1, bus);
	length = at ? strlen(bus) : 0;
	/* The colon after the address was taken for a part of it. */
	if (length == 0 || bus[length - 1] != ':' || strncmp(at, " GPU-", 5) != 0)
		return;
	bus[length - 1] = '\0';
	text_format(copy, sizeof(copy), "gpu %s.0 %.*s", bus, (int)strcspn(at + 1, " \n"), at + 1);
	host_facts_take_line(facts, copy, 0);
}

void host_log_line(struct host_facts *facts, const char *line, int64_t offset_ns, uint64_t least_ns,
		   uint64_t most_ns)
{
	struct host_event event = { .count = 1, .pid = -1 };
	const char *comma = strchr(line, ','), *words = strchr(line, ';');
	int64_t us;

	/* "priority,number,microseconds,flags;text". Programs write with a facility, the kernel with none. */
	if (words == NULL || comma == NULL || comma > words || number_at(line, NULL) < 0 ||
	    number_at(line, NULL) > 7)
		return;
	comma = strchr(comma + 1, ',');
	us = comma != NULL && comma < words ? number_at(comma + 1, NULL) : -1;
	if (us < 0 || us > INT64_MAX / 4000)
		return;
	words++;
	take_gpu(facts, words);
	if (!take_xid(words, &event) && !take_kill(words, &event))
		return;
	event.first_ns = offset_ns + us * 1000 > 0 ? (uint64_t)(offset_ns + us * 1000) : 0;
	if (event.first_ns < least_ns)
		event.first_ns = least_ns;
	if (event.first_ns > most_ns)
		event.first_ns = most_ns;
	event.last_ns = event.first_ns;
	host_facts_event(facts, &event);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static void take_bytes(struct host_log *log, const char *bytes, size_t length,
		       host_log_visit *visit, void *context)
{
	for (size_t i = 0; i < length; i++) {
		if (bytes[i] != '\n') {
			if (log->rest_length < sizeof(log->rest) - 1)
				log->rest[log->rest_length++] = bytes[i] ? bytes[i] : '?';
			continue;
		}
		log->rest[log->rest_length] = '\0';
		log->rest_length = 0;
		/* Lines that begin with a blank belong to the record before. */
		if (log->rest[0] != ' ')
			visit(context, log->rest);
	}
}

enum status host_log_each(struct host_log *log, host_log_visit *visit, void *context)
{
	char bytes[RECORD_BYTES];
	size_t total = 0;
	ssize_t got = -1;

	while (total < READ_MOST) {
		got = read(log->fd, bytes, sizeof(bytes));
		/* EPIPE: records were overwritten before they were read; the next is the oldest that is left. */
		if (got == -1 && (errno == EPIPE || errno == EINTR)) {
			total++;
			continue;
		}
		if (got <= 0)
			break;
		total += (size_t)got;
		take_bytes(log, bytes, (size_t)got, visit, context);
	}
	if (total >= READ_MOST)
		return ERR_TRUNCATED;
	return got == -1 && errno != EAGAIN ? ERR_SYSTEM : OK;
}

struct reading {
	struct host_facts *facts;
	int64_t offset_ns;
	uint64_t least_ns, most_ns;
};

static void take_record(void *context, const char *line)
{
	const struct reading *reading = context;

	host_log_line(reading->facts, line, reading->offset_ns, reading->least_ns,
		      reading->most_ns);
}

/*
 * The log's clock drifts from the wall clock over weeks. Records that are new since the last reading happened since
 * then, whatever it says.
 */
void host_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns)
{
	struct reading reading = { facts, (int64_t)(wall_ns - clock_system_ns(CLOCK_MONOTONIC)),
				   log->read_ns, wall_ns };
	enum status status;

	if (log->fd == -1)
		return;
	status = host_log_each(log, take_record, &reading);
	if (status == ERR_SYSTEM)
		host_facts_gap(facts, HOST_SOURCE_LOG, strerror(errno));
	/* If there is more, it is not new the next time either. */
	if (status != ERR_TRUNCATED)
		log->read_ns = wall_ns;
}
