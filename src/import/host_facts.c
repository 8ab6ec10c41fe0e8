/* Series, events and gaps, and the lines that they are written as and read from. */
#include "import/host_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"

#define LEVEL(name, object, tolerance)                     \
	{                                                  \
		name, object, false, tolerance, NULL, NULL \
	}
#define COUNTER(name, object, words)               \
	{                                          \
		name, object, true, 0, words, NULL \
	}
#define PORT(name, words, file)                              \
	{                                                    \
		name, HOST_OBJECT_PORT, true, 0, words, file \
	}
#define INTERFACE(name, words, file)                              \
	{                                                         \
		name, HOST_OBJECT_INTERFACE, true, 0, words, file \
	}

const struct host_kind_info host_kinds[HOST_KINDS] = {
	[HOST_GPU_CLOCK] = LEVEL("gpu_clock", HOST_OBJECT_GPU, 5),
	[HOST_GPU_CLOCK_MAX] = LEVEL("gpu_clock_max", HOST_OBJECT_GPU, 0),
	[HOST_GPU_THROTTLE] = LEVEL("gpu_throttle", HOST_OBJECT_GPU, 0),
	[HOST_GPU_TEMPERATURE] = LEVEL("gpu_temperature", HOST_OBJECT_GPU, 10),
	[HOST_GPU_POWER] = LEVEL("gpu_power", HOST_OBJECT_GPU, 20),
	[HOST_GPU_POWER_LIMIT] = LEVEL("gpu_power_limit", HOST_OBJECT_GPU, 0),
	[HOST_GPU_ECC_CORRECTED] =
		COUNTER("gpu_ecc_corrected", HOST_OBJECT_GPU, "corrected memory errors (ECC)"),
	[HOST_GPU_ECC_UNCORRECTED] = COUNTER("gpu_ecc_uncorrected", HOST_OBJECT_GPU,
					     "uncorrectable memory errors (ECC)"),
	[HOST_GPU_REMAP_PENDING] = LEVEL("gpu_remap_pending", HOST_OBJECT_GPU, 0),
	[HOST_GPU_NVLINKS] = LEVEL("gpu_nvlinks", HOST_OBJECT_GPU, 0),
	[HOST_GPU_NVLINK_REPLAY] =
		COUNTER("gpu_nvlink_replay", HOST_OBJECT_GPU, "NVLink replay errors"),
	[HOST_GPU_NVLINK_RECOVERY] =
		COUNTER("gpu_nvlink_recovery", HOST_OBJECT_GPU, "NVLink recoveries"),
	[HOST_GPU_NVLINK_CRC] = COUNTER("gpu_nvlink_crc", HOST_OBJECT_GPU, "NVLink CRC errors"),
	[HOST_GPU_PCIE_WIDTH] = LEVEL("gpu_pcie_width", HOST_OBJECT_GPU, 0),
	[HOST_GPU_PCIE_WIDTH_MAX] = LEVEL("gpu_pcie_width_max", HOST_OBJECT_GPU, 0),
	[HOST_PORT_STATE] = { "port_state", HOST_OBJECT_PORT, false, 0, NULL, "state" },
	[HOST_PORT_RATE] = { "port_rate", HOST_OBJECT_PORT, false, 0, NULL, "rate" },
	[HOST_PORT_SYMBOL_ERROR] =
		PORT("port_symbol_error", "symbol errors", "counters/symbol_error"),
	[HOST_PORT_LINK_RECOVERY] =
		PORT("port_link_recovery", "link recoveries", "counters/link_error_recovery"),
	[HOST_PORT_LINK_DOWNED] = PORT("port_link_downed", "link failures", "counters/link_downed"),
	[HOST_PORT_RECEIVE_ERRORS] =
		PORT("port_receive_errors", "receive errors", "counters/port_rcv_errors"),
	[HOST_PORT_REMOTE_ERRORS] = PORT("port_remote_errors", "remote physical errors",
					 "counters/port_rcv_remote_physical_errors"),
	[HOST_PORT_DISCARDS] =
		PORT("port_discards", "discarded packets", "counters/port_xmit_discards"),
	[HOST_PORT_INTEGRITY_ERRORS] = PORT("port_integrity_errors", "link integrity errors",
					    "counters/local_link_integrity_errors"),
	[HOST_PORT_OVERRUNS] = PORT("port_overruns", "buffer overruns",
				    "counters/excessive_buffer_overrun_errors"),
	[HOST_PORT_OUT_OF_SEQUENCE] = PORT("port_out_of_sequence", "packets out of sequence",
					   "hw_counters/out_of_sequence"),
	[HOST_PORT_SEQUENCE_ERRORS] = PORT("port_sequence_errors", "packet sequence errors",
					   "hw_counters/packet_seq_err"),
	[HOST_PORT_ACK_TIMEOUTS] = PORT("port_ack_timeouts", "acknowledgement timeouts",
					"hw_counters/local_ack_timeout_err"),
	[HOST_PORT_NOT_READY_RETRIES] = PORT("port_not_ready_retries", "receiver-not-ready retries",
					     "hw_counters/rnr_nak_retry_err"),
	[HOST_PORT_ICRC_ERRORS] = PORT("port_icrc_errors", "packets with a wrong checksum (ICRC)",
				       "hw_counters/rx_icrc_encapsulated"),
	[HOST_INTERFACE_SPEED] = { "interface_speed", HOST_OBJECT_INTERFACE, false, 0, NULL,
				   "speed" },
	[HOST_INTERFACE_RECEIVE_ERRORS] =
		INTERFACE("interface_receive_errors", "receive errors", "statistics/rx_errors"),
	[HOST_INTERFACE_SEND_ERRORS] =
		INTERFACE("interface_send_errors", "transmit errors", "statistics/tx_errors"),
	[HOST_INTERFACE_CRC_ERRORS] =
		INTERFACE("interface_crc_errors", "CRC errors", "statistics/rx_crc_errors"),
	[HOST_INTERFACE_MISSED] =
		INTERFACE("interface_missed", "packets missed for want of buffers",
			  "statistics/rx_missed_errors"),
	[HOST_INTERFACE_CARRIER_ERRORS] = INTERFACE("interface_carrier_errors", "carrier errors",
						    "statistics/tx_carrier_errors"),
	[HOST_INTERFACE_LINK_DOWNED] =
		INTERFACE("interface_link_downed", "link failures", "carrier_down_count"),
	[HOST_MEMORY_AVAILABLE] = LEVEL("memory_available", HOST_OBJECT_HOST, 10),
	[HOST_MEMORY_STALL_US] =
		COUNTER("memory_stall_us", HOST_OBJECT_HOST, "microseconds waiting for memory"),
	[HOST_PROCESSORS] = LEVEL("processors", HOST_OBJECT_HOST, 0),
	[HOST_STEAL_MS] = COUNTER("steal_ms", HOST_OBJECT_HOST, "milliseconds of steal time"),
	[HOST_OOM_KILLS] = COUNTER("oom_kills", HOST_OBJECT_HOST, "processes killed for memory"),
	[HOST_DISK_FREE] = LEVEL("disk_free", HOST_OBJECT_DISK, 10),
	[HOST_PROCESS_THROTTLED_US] =
		COUNTER("process_throttled_us", HOST_OBJECT_PROCESS, "microseconds throttled"),
	[HOST_PROCESS_OOM_KILLS] =
		COUNTER("process_oom_kills", HOST_OBJECT_PROCESS, "processes killed for memory"),
};

static const char *const event_names[HOST_EVENT_KINDS] = { "xid", "sxid", "oom" };
static const char *const source_names[HOST_SOURCES] = { "log", "gpu", "system" };

void host_facts_init(struct host_facts *facts)
{
	memset(facts, 0, sizeof(*facts));
}

void host_facts_release(struct host_facts *facts)
{
	free(facts->series);
	host_facts_init(facts);
}

/* ---- series ----------------------------------------------------------------------------------- */

/* Objects are words in lines, and are shown on terminals. */
static void copy_object(char to[HOST_OBJECT_BYTES], const char *from)
{
	size_t length = 0;

	for (; from[length] != '\0' && length < HOST_OBJECT_BYTES - 1; length++)
		to[length] = from[length] > ' ' && from[length] < 0x7f ? from[length] : '_';
	to[length] = '\0';
}

static bool is_change(const struct host_series *series, int64_t value)
{
	int64_t before = series->points[series->count - 1].value, least;
	uint64_t difference = value > before ? (uint64_t)value - (uint64_t)before
					     : (uint64_t)before - (uint64_t)value;

	least = (before < 0 ? 0 : before) / 100 * host_kinds[series->kind].tolerance;
	return difference > (uint64_t)least;
}

/* Drop the point that is missed least: old ones may be further apart. The first one is what growth counts from. */
static void drop_point(struct host_series *series, uint64_t now_ns)
{
	double best = 0;
	uint32_t drop = 1;

	for (uint32_t i = 1; i + 1 < series->count; i++) {
		const struct host_point *at = &series->points[i];
		double age = (double)(now_ns - at->wall_ns) + 1;
		double gap = (double)(at[1].wall_ns - at[-1].wall_ns) / age;

		if (i == 1 || gap < best) {
			best = gap;
			drop = i;
		}
	}
	memmove(&series->points[drop], &series->points[drop + 1],
		(series->count - drop - 1) * sizeof(series->points[0]));
	series->count--;
}

static void add_point(struct host_series *series, int64_t value, uint64_t wall_ns)
{
	if (series->count > 0 && !is_change(series, value))
		return;
	if (series->count == HOST_POINTS)
		drop_point(series, wall_ns);
	series->points[series->count++] = (struct host_point){ wall_ns, value };
}

static struct host_series *find_series(const struct host_facts *facts, enum host_kind kind,
				       const char object[HOST_OBJECT_BYTES])
{
	for (size_t i = 0; i < facts->series_count; i++)
		if (facts->series[i].kind == kind && strcmp(facts->series[i].object, object) == 0)
			return &facts->series[i];
	return NULL;
}

/* NULL: no room. */
static struct host_series *need_series(struct host_facts *facts, enum host_kind kind,
				       const char *object)
{
	char name[HOST_OBJECT_BYTES];
	struct host_series *series;

	copy_object(name, object);
	series = find_series(facts, kind, name);
	if (series != NULL)
		return series;
	if (facts->series_count >= HOST_SERIES_MAX ||
	    !list_grow(&facts->series, facts->series_count, sizeof(*series))) {
		facts->left_out++;
		return NULL;
	}
	series = &facts->series[facts->series_count++];
	*series = (struct host_series){ .kind = kind };
	memcpy(series->object, name, sizeof(name));
	return series;
}

static void note_time(struct host_facts *facts, uint64_t wall_ns)
{
	if (facts->begin_ns == 0 || wall_ns < facts->begin_ns)
		facts->begin_ns = wall_ns;
	if (wall_ns > facts->last_ns)
		facts->last_ns = wall_ns;
}

void host_facts_value(struct host_facts *facts, enum host_kind kind, const char *object,
		      int64_t value, uint64_t wall_ns)
{
	struct host_series *series = need_series(facts, kind, object);

	if (series == NULL || wall_ns < series->last_ns)
		return;
	note_time(facts, wall_ns);
	add_point(series, value, wall_ns);
	series->value = value;
	series->last_ns = wall_ns;
}

const struct host_series *host_facts_find(const struct host_facts *facts, enum host_kind kind,
					  const char *object)
{
	char name[HOST_OBJECT_BYTES];

	copy_object(name, object);
	return find_series(facts, kind, name);
}

uint64_t host_series_increase(const struct host_series *series, uint64_t from_ns, uint64_t to_ns,
			      uint64_t *since_ns)
{
	uint64_t grown = 0;

	for (uint32_t i = 1; i < series->count; i++) {
		const struct host_point *at = &series->points[i];

		/* A smaller value: the counter was reset. */
		if (at->wall_ns <= from_ns || at->wall_ns > to_ns || at->value <= at[-1].value)
			continue;
		if (grown == 0)
			*since_ns = at->wall_ns;
		grown += (uint64_t)at->value - (uint64_t)at[-1].value;
	}
	return grown;
}

void host_facts_keep_processes(struct host_facts *facts, const int64_t *pids, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < facts->series_count; i++) {
		const struct host_series *series = &facts->series[i];
		bool is_kept = host_kinds[series->kind].object != HOST_OBJECT_PROCESS;

		for (size_t j = 0; j < count && !is_kept; j++)
			is_kept = strtoll(series->object, NULL, 10) == pids[j];
		if (is_kept)
			facts->series[kept++] = *series;
	}
	facts->series_count = kept;
}

/* ---- events, GPUs, gaps ------------------------------------------------------------------------ */

static bool is_same_event(const struct host_event *one, const struct host_event *other)
{
	return one->kind == other->kind && one->number == other->number && one->pid == other->pid &&
	       strcmp(one->object, other->object) == 0;
}

static void clean_text(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
			*text = '?';
}

void host_facts_event(struct host_facts *facts, const struct host_event *new_event)
{
	struct host_event copy = *new_event, *event = &copy, *at;

	copy_object(copy.object, new_event->object[0] ? new_event->object : "-");
	clean_text(copy.text);
	for (size_t i = 0; i < facts->event_count; i++) {
		at = &facts->events[i];
		if (!is_same_event(at, event))
			continue;
		at->count += event->count;
		if (event->first_ns < at->first_ns)
			at->first_ns = event->first_ns;
		if (event->last_ns > at->last_ns)
			at->last_ns = event->last_ns;
		return;
	}
	if (facts->event_count == HOST_EVENTS_MAX) {
		memmove(&facts->events[0], &facts->events[1],
			(HOST_EVENTS_MAX - 1) * sizeof(facts->events[0]));
		facts->event_count--;
		facts->left_out++;
	}
	at = &facts->events[facts->event_count++];
	*at = *event;
}

static void add_gpu(struct host_facts *facts, const char *bus, const char *uuid)
{
	struct host_gpu gpu;

	copy_object(gpu.bus, bus);
	text_from_field(gpu.uuid, sizeof(gpu.uuid), uuid, sizeof(gpu.uuid));
	for (size_t i = 0; i < facts->gpu_count; i++)
		if (strcmp(facts->gpus[i].bus, gpu.bus) == 0) {
			facts->gpus[i] = gpu;
			return;
		}
	if (facts->gpu_count < HOST_GPUS_MAX)
		facts->gpus[facts->gpu_count++] = gpu;
	else
		facts->left_out++;
}

void host_facts_gap(struct host_facts *facts, enum host_source source, const char *why)
{
	text_copy(facts->gaps[source], HOST_GAP_BYTES, why);
	clean_text(facts->gaps[source]);
}

/* ---- lines ------------------------------------------------------------------------------------- */

/*
 *	time BEGIN LAST                        seconds since 1970, like all times here
 *	gpu BUS UUID
 *	value KIND OBJECT VALUE                of this moment, from the child process
 *	series KIND OBJECT VALUE LAST TIME:VALUE ...
 *	event KIND OBJECT NUMBER PID FIRST LAST COUNT TEXT
 *	gap SOURCE WHY
 *	left_out COUNT
 */
static void write_series(const struct host_series *series, char line[HOST_LINE_BYTES])
{
	text_format(line, HOST_LINE_BYTES, "series %s %s %" PRId64 " %" PRIu64,
		    host_kinds[series->kind].name, series->object, series->value,
		    series->last_ns / SECOND_NS);
	for (uint32_t i = 0; i < series->count; i++)
		text_append(line, HOST_LINE_BYTES, " %" PRIu64 ":%" PRId64,
			    series->points[i].wall_ns / SECOND_NS, series->points[i].value);
}

static void write_event(const struct host_event *event, char line[HOST_LINE_BYTES])
{
	text_format(line, HOST_LINE_BYTES,
		    "event %s %s %" PRId64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %s",
		    event_names[event->kind], event->object, event->number, event->pid,
		    event->first_ns / SECOND_NS, event->last_ns / SECOND_NS, event->count,
		    event->text);
}

bool host_facts_next_line(const struct host_facts *facts, size_t *at, char line[HOST_LINE_BYTES])
{
	for (;;) {
		size_t i = (*at)++;

		if (i == 0) {
			text_format(line, HOST_LINE_BYTES, "time %" PRIu64 " %" PRIu64,
				    facts->begin_ns / SECOND_NS, facts->last_ns / SECOND_NS);
			return true;
		}
		i -= 1;
		if (i < facts->gpu_count) {
			text_format(line, HOST_LINE_BYTES, "gpu %s %s", facts->gpus[i].bus,
				    facts->gpus[i].uuid);
			return true;
		}
		i -= facts->gpu_count;
		if (i < facts->series_count) {
			if (host_kinds[facts->series[i].kind].is_counter &&
			    facts->series[i].count < 2)
				continue;
			write_series(&facts->series[i], line);
			return true;
		}
		i -= facts->series_count;
		if (i < facts->event_count) {
			write_event(&facts->events[i], line);
			return true;
		}
		i -= facts->event_count;
		if (i < HOST_SOURCES) {
			if (facts->gaps[i][0] == '\0')
				continue;
			text_format(line, HOST_LINE_BYTES, "gap %s %s", source_names[i],
				    facts->gaps[i]);
			return true;
		}
		if (i > HOST_SOURCES || facts->left_out == 0)
			return false;
		text_format(line, HOST_LINE_BYTES, "left_out %zu", facts->left_out);
		return true;
	}
}

/* The next word of a line; "" at its end. */
static const char *next_word(char **line)
{
	char *word = *line + strspn(*line, " "), *end = word + strcspn(word, " ");

	*line = *end ? end + 1 : end;
	*end = '\0';
	return word;
}

static bool next_number(char **line, int64_t least, int64_t *number)
{
	return text_number(next_word(line), least, INT64_MAX, number) == OK;
}

static bool next_time(char **line, uint64_t *wall_ns)
{
	int64_t seconds;

	if (!next_number(line, 0, &seconds) || seconds > INT64_MAX / 2000000000)
		return false;
	*wall_ns = (uint64_t)seconds * SECOND_NS;
	return true;
}

static int find_name(const char *word, const char *const *names, int count)
{
	for (int i = 0; i < count; i++)
		if (strcmp(word, names[i]) == 0)
			return i;
	return -1;
}

static int find_kind(const char *word)
{
	for (int i = 0; i < HOST_KINDS; i++)
		if (strcmp(word, host_kinds[i].name) == 0)
			return i;
	return -1;
}

static void take_value(struct host_facts *facts, char *line, uint64_t wall_ns)
{
	int kind = find_kind(next_word(&line));
	const char *object = next_word(&line);
	int64_t value;

	if (kind >= 0 && object[0] != '\0' && next_number(&line, INT64_MIN, &value))
		host_facts_value(facts, (enum host_kind)kind, object, value, wall_ns);
}

static void take_series(struct host_facts *facts, char *line)
{
	int kind = find_kind(next_word(&line));
	const char *object = next_word(&line), *word;
	struct host_series read = { .count = 0 }, *series;

	if (kind < 0 || object[0] == '\0' || !next_number(&line, INT64_MIN, &read.value) ||
	    !next_time(&line, &read.last_ns))
		return;
	while ((word = next_word(&line))[0] != '\0' && read.count < HOST_POINTS) {
		char *colon = strchr(word, ':'), *time = (char *)word;
		struct host_point point;

		if (colon == NULL)
			return;
		*colon = '\0';
		if (!next_time(&time, &point.wall_ns) ||
		    text_number(colon + 1, INT64_MIN, INT64_MAX, &point.value) != OK ||
		    point.wall_ns > read.last_ns ||
		    (read.count > 0 && point.wall_ns < read.points[read.count - 1].wall_ns))
			return;
		read.points[read.count++] = point;
	}
	series = read.count > 0 ? need_series(facts, (enum host_kind)kind, object) : NULL;
	/* The first one counts. */
	if (series == NULL || series->count > 0)
		return;
	series->value = read.value;
	series->last_ns = read.last_ns;
	series->count = read.count;
	memcpy(series->points, read.points, sizeof(read.points));
}

static void take_event(struct host_facts *facts, char *line)
{
	int kind = find_name(next_word(&line), event_names, HOST_EVENT_KINDS);
	struct host_event event = { .kind = (enum host_event_kind)kind };
	int64_t count;

	text_copy(event.object, sizeof(event.object), next_word(&line));
	if (kind < 0 || !next_number(&line, INT64_MIN, &event.number) ||
	    !next_number(&line, -1, &event.pid) || !next_time(&line, &event.first_ns) ||
	    !next_time(&line, &event.last_ns) || !next_number(&line, 1, &count))
		return;
	event.count = (uint64_t)count;
	text_copy(event.text, sizeof(event.text), line);
	host_facts_event(facts, &event);
}

void host_facts_take_line(struct host_facts *facts, const char *line, uint64_t wall_ns)
{
	char copy[HOST_LINE_BYTES], *rest = copy;
	const char *what, *word;
	uint64_t begin_ns, last_ns;
	int64_t number;
	int source;

	if (!text_copy(copy, sizeof(copy), line))
		return;
	what = next_word(&rest);
	if (strcmp(what, "value") == 0) {
		take_value(facts, rest, wall_ns);
	} else if (strcmp(what, "series") == 0) {
		take_series(facts, rest);
	} else if (strcmp(what, "event") == 0) {
		take_event(facts, rest);
	} else if (strcmp(what, "gpu") == 0) {
		word = next_word(&rest);
		if (word[0] != '\0')
			add_gpu(facts, word, next_word(&rest));
	} else if (strcmp(what, "gap") == 0) {
		source = find_name(next_word(&rest), source_names, HOST_SOURCES);
		if (source >= 0)
			host_facts_gap(facts, (enum host_source)source, rest);
	} else if (strcmp(what, "time") == 0) {
		if (next_time(&rest, &begin_ns) && next_time(&rest, &last_ns) && begin_ns > 0) {
			note_time(facts, begin_ns);
			note_time(facts, last_ns);
		}
	} else if (strcmp(what, "left_out") == 0 && next_number(&rest, 0, &number)) {
		facts->left_out = (size_t)number;
	}
}

/* ---- words ------------------------------------------------------------------------------------- */

bool host_throttle_say(char *text, size_t size, int64_t bits)
{
	static const struct {
		int64_t bit;
		const char *words;
	} reasons[] = {
		{ HOST_THROTTLE_HARD_THERMAL, "hardware thermal slowdown" },
		{ HOST_THROTTLE_THERMAL, "thermal slowdown" },
		{ HOST_THROTTLE_POWER_BRAKE, "power brake of the power supply" },
		{ HOST_THROTTLE_SLOWDOWN, "hardware slowdown" },
		{ HOST_THROTTLE_POWER_CAP, "power cap" },
		{ HOST_THROTTLE_SETTING, "clocks set by the administrator" },
		{ HOST_THROTTLE_SYNC, "sync boost" },
	};
	bool has_one = false;

	for (size_t i = 0; i < ARRAY_LENGTH(reasons); i++) {
		if (!(bits & reasons[i].bit))
			continue;
		text_append(text, size, "%s%s", has_one ? ", " : "", reasons[i].words);
		has_one = true;
	}
	return has_one;
}

static const struct {
	int number;
	bool is_software;
	const char *meaning;
} xids[] = {
	{ 13, true, "exception in the graphics engine, most often a fault of the program" },
	{ 31, true, "invalid memory access, most often a fault of the program" },
	{ 32, false, "corrupted push buffer" },
	{ 38, false, "driver firmware error" },
	{ 43, true, "the GPU stopped processing for a fault of the program" },
	{ 45, true, "the channels of an ended process were removed" },
	{ 46, false, "the GPU stopped processing" },
	{ 48, false, "uncorrectable memory error (double-bit ECC)" },
	{ 61, false, "internal microcontroller warning" },
	{ 62, false, "internal microcontroller halted" },
	{ 63, false, "a memory row or page is to be retired" },
	{ 64, false, "retiring a memory row or page failed" },
	{ 69, true, "class error in the graphics engine, most often a fault of the program" },
	{ 74, false, "NVLink error" },
	{ 79, false, "the GPU has fallen off the bus" },
	{ 92, false, "high rate of corrected memory errors" },
	{ 94, false, "contained memory error (ECC): the program that used that memory is ended" },
	{ 95, false, "uncontained memory error (ECC): the GPU needs a reset" },
	{ 109, false, "timeout of a context switch" },
	{ 110, false, "security fault" },
	{ 119, false, "the GPU's system processor (GSP) does not answer" },
	{ 120, false, "error in the GPU's system processor (GSP)" },
	{ 121, false, "corrected error on the link to the CPU (C2C)" },
	{ 136, false, "training of an NVLink failed" },
	{ 137, false, "invalid access over NVLink" },
	{ 140, false, "unrecovered memory error (ECC)" },
	{ 143, false, "the GPU could not be initialized" },
	{ 144, false, "NVLink error" },
	{ 145, false, "NVLink error" },
	{ 146, false, "NVLink error" },
	{ 147, false, "NVLink error" },
	{ 148, false, "NVLink error" },
	{ 149, false, "NVLink error" },
	{ 150, false, "NVLink error" },
	{ 154, false, "the driver asks for a recovery of the GPU" },
	{ 155, false, "NVLink went down" },
	{ 158, false, "fatal timeout of the GPU" },
};

const char *host_xid_meaning(int64_t number)
{
	for (size_t i = 0; i < ARRAY_LENGTH(xids); i++)
		if (xids[i].number == number)
			return xids[i].meaning;
	return NULL;
}

bool host_xid_is_software(int64_t number)
{
	for (size_t i = 0; i < ARRAY_LENGTH(xids); i++)
		if (xids[i].number == number)
			return xids[i].is_software;
	return false;
}
