/* Facts of hosts, joined with verdicts by host, GPU, port and time. */
#include "doctor/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "import/json_scan.h"

enum {
	LINE = 400,
	NOTE_LINES = 8,
	LEVEL_OLD_S = 300,  /* a level that was last read before this says nothing about now */
	DEATH_BEFORE_S = 5, /* heartbeats come every second; clocks differ a little */
	DEATH_AFTER_S = 60,
	SOFT_LEAST = 1000,	/* counters that healthy networks move, too */
	CORRECTED_LEAST = 1000, /* ECC: some are normal */
	SYMBOLS_LEAST = 10,
	NEIGHBOUR_FACTOR = 10,
	STARVED_PERCENT = 2,
	DISK_FULL = 5, /* thousandths */
};

/* ---- facts of a host ---------------------------------------------------------------------------- */

static void take_lines(struct json_scan *scan, struct host_facts *facts)
{
	enum json_scan_token token;
	char line[HOST_LINE_BYTES];

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while ((token = json_scan_next(scan)) != JSON_SCAN_ARRAY_END && token != JSON_SCAN_ERROR) {
		if (token == JSON_SCAN_STRING && json_scan_text(scan, line, sizeof(line)))
			host_facts_take_line(facts, line, 0);
		else if (token == JSON_SCAN_OBJECT || token == JSON_SCAN_ARRAY)
			json_scan_skip(scan);
	}
}

/* From agent.json or host.json; ERR_FORMAT: it has no facts. Release in every case. */
static enum status read_facts(struct host_facts *facts, const struct recording_note *note)
{
	static const struct json_scan_key keys[] = { JSON_SCAN_KEY_OF("host"),
						     JSON_SCAN_KEY_OF("host_facts") };
	bool has_facts = false;
	struct json_scan scan;
	int key, hint = 0;

	host_facts_init(facts);
	json_scan_init(&scan, note->text, note->length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT)
		return ERR_FORMAT;
	while ((key = json_scan_next_key(&scan, keys, ARRAY_LENGTH(keys), &hint)) >=
	       JSON_SCAN_KEY_UNKNOWN) {
		if (key == 0)
			json_scan_read_text(&scan, facts->host, sizeof(facts->host));
		else if (key == 1)
			take_lines(&scan, facts);
		else
			json_scan_skip(&scan);
		has_facts |= key == 1;
	}
	text_from_field(facts->host, sizeof(facts->host), facts->host, sizeof(facts->host));
	return has_facts && scan.problem == NULL && facts->begin_ns > 0 ? OK : ERR_FORMAT;
}

/* ---- one verdict --------------------------------------------------------------------------------- */

/*
 * The same object on the hosts of a job: the least two values and the largest. One that has the least value alone differs
 * from all others. Only what has the same name everywhere is compared: hosts of one job are mostly built alike, and
 * where they are not, the values of the others differ, too.
 */
struct peer {
	enum host_kind kind;
	char object[HOST_OBJECT_BYTES];
	size_t hosts;
	int64_t least, next, most;
};

enum { PEERS_MAX = 1024, PEER_HOSTS_LEAST = 3 };

struct peers {
	struct peer *list;
	size_t count;
};

struct support {
	const struct peers *peers;
	struct verdict *verdict;
	const struct job *job;
	const struct job_rank *rank; /* of the verdict; NULL: unknown */
	const struct host_facts *facts;
	const char *gpu; /* PCI address of the rank's GPU; NULL: unknown */
	uint64_t from_ns;
	uint64_t to_ns;
	bool is_now;  /* the last reading was in that time: levels count */
	bool is_note; /* lines name the host, and only hard facts count */
};

static void tell(struct support *support, const char *format, ...) PRINTF_LIKE(2, 3);
static void tell(struct support *support, const char *format, ...)
{
	const struct verdict_lines *lines = &support->verdict->evidence;
	char text[LINE];
	va_list values;

	va_start(values, format);
	vsnprintf(text, sizeof(text) - 1, format, values);
	va_end(values);
	if (text[0] != '\0' && text[strlen(text) - 1] != '.')
		text_append(text, sizeof(text), ".");
	for (size_t i = 0; i < lines->count; i++)
		if (strcmp(lines->list[i], text) == 0)
			return;
	if (!support->is_note || lines->count < NOTE_LINES)
		verdict_evidence(support->verdict, "%s", text);
}

static const struct job_rank *rank_of(const struct job *job, const struct verdict *verdict)
{
	const struct job_rank *found = NULL;

	for (size_t i = 0; i < job->rank_count && verdict->rank >= 0; i++) {
		const struct job_rank *rank = &job->ranks[i];

		if (rank->rank == verdict->rank &&
		    strcmp(job->groups[rank->group].name, verdict->job) == 0 &&
		    strcmp(job->hosts[rank->host].name, verdict->host) == 0)
			found = rank;
	}
	return found;
}

/*
 * The time of the job on this host: from the start of its first process to the last sign of life there, or open if one
 * is alive. False: unknown.
 */
static bool find_time(struct support *support, const char *name)
{
	const struct recording_process *before = NULL;
	const struct job *job = support->job;

	support->from_ns = support->to_ns = 0;
	for (size_t i = 0; i < job->rank_count; i++) {
		const struct job_rank *rank = &job->ranks[i];
		const struct recording_process *process = job->recording->processes[rank->process];
		uint64_t start_ns = process->started_wall_ns, end_ns = 0;

		if (strcmp(job->hosts[rank->host].name, support->facts->host) != 0 ||
		    strcmp(job->groups[rank->group].name, name) != 0 || process == before)
			continue;
		before = process;
		if (start_ns != 0 && (support->from_ns == 0 || start_ns < support->from_ns))
			support->from_ns = start_ns;
		if (process->life == RECORDING_ALIVE && !process->is_snapshot)
			end_ns = UINT64_MAX;
		else if (recording_wall_ns(process, recording_last_ns(process), &end_ns))
			end_ns += (uint64_t)DEATH_AFTER_S * SECOND_NS;
		support->to_ns = end_ns > support->to_ns ? end_ns : support->to_ns;
	}
	support->is_now = support->facts->last_ns <= support->to_ns;
	return support->from_ns != 0 && support->to_ns != 0;
}

/* Lines of the kernel log name a GPU without the function of its PCI address: "0000:3b:00" is "0000:3b:00.0". */
static bool is_same_bus(const char *one, const char *other)
{
	size_t length = strlen(one) < strlen(other) ? strlen(one) : strlen(other);

	return length >= 7 && strncasecmp(one, other, length) == 0 &&
	       (one[length] == '\0' || one[length] == '.') &&
	       (other[length] == '\0' || other[length] == '.');
}

/* Through NVML's list, else as the recorder wrote it down. NULL: unknown. */
static const char *gpu_of(const struct support *support, const struct job_rank *rank)
{
	const struct host_facts *facts = support->facts;
	const struct recording_process *process;

	if (rank == NULL || rank->gpu_uuid[0] == '\0')
		return NULL;
	for (size_t i = 0; i < facts->gpu_count; i++)
		if (strcmp(facts->gpus[i].uuid, rank->gpu_uuid) == 0)
			return facts->gpus[i].bus;
	process = support->job->recording->processes[rank->process];
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct comm_info *info = &process->comms[i].info;

		if (strcmp(info->gpu_uuid, rank->gpu_uuid) == 0 && info->gpu_bus[0] != '\0')
			return info->gpu_bus;
	}
	return NULL;
}

static bool is_in_time(const struct support *support, const struct host_event *event)
{
	return event->last_ns >= support->from_ns && event->first_ns <= support->to_ns;
}

static bool is_current(const struct support *support, const struct host_series *series)
{
	return support->is_now && series != NULL &&
	       series->last_ns + (uint64_t)LEVEL_OLD_S * SECOND_NS >= support->facts->last_ns;
}

/* ---- the kernel log -------------------------------------------------------------------------------- */

/* What follows from another error of the same GPU explains nothing. */
static bool is_consequence(const struct support *support, const struct host_event *event)
{
	enum { REMOVED = 45 };

	if (event->number != REMOVED)
		return false;
	if (support->verdict->class == VERDICT_PROCESS_DEAD || support->is_note)
		return true;
	for (size_t i = 0; i < support->facts->event_count; i++) {
		const struct host_event *other = &support->facts->events[i];

		if (other->kind == HOST_EVENT_XID && other->number != REMOVED &&
		    is_same_bus(other->object, event->object) && is_in_time(support, other))
			return true;
	}
	return false;
}

/* The driver may know the process by its PID outside of a container, and with MPS it names the server. */
static bool is_of_another_process(const struct support *support, const struct host_event *event)
{
	return event->pid > 0 && support->rank != NULL && event->pid != support->verdict->pid &&
	       event->pid != support->job->recording->processes[support->rank->process]->pid;
}

static void tell_xid(struct support *support, const struct host_event *event, const char *whose)
{
	const char *meaning = host_xid_meaning(event->number);
	char first[UNITS_TEXT], last[UNITS_TEXT], again[100] = "", process[40] = "";

	if (!support->is_note && is_of_another_process(support, event))
		text_format(process, sizeof(process), " in process %" PRId64, event->pid);
	if (event->count > 1)
		text_format(again, sizeof(again), ", %" PRIu64 " times until %s", event->count,
			    units_clock(last, event->last_ns));
	tell(support, "%s%s%sXid %" PRId64 " on %s (%s) at %s%s%s: %s%s%s",
	     support->is_note ? "Host " : "", support->is_note ? support->facts->host : "",
	     support->is_note ? ": " : "", event->number, whose, event->object,
	     units_clock(first, event->first_ns), again, process, meaning ? meaning : event->text,
	     meaning && event->text[0] ? "; driver: " : "", meaning ? event->text : "");
}

static void tell_xids(struct support *support)
{
	for (size_t i = 0; i < support->facts->event_count; i++) {
		const struct host_event *event = &support->facts->events[i];

		if (event->kind != HOST_EVENT_XID || !is_in_time(support, event) ||
		    is_consequence(support, event))
			continue;
		if (support->gpu != NULL && is_same_bus(support->gpu, event->object))
			tell_xid(support, event, "its GPU");
		/* The driver names the process. */
		else if (support->verdict->pid > 0 && event->pid == support->verdict->pid)
			tell_xid(support, event, "a GPU that it uses");
		else if (support->gpu == NULL && !host_xid_is_software(event->number))
			tell_xid(support, event, "a GPU of this host");
	}
}

static void tell_switches(struct support *support)
{
	char at[UNITS_TEXT];

	for (size_t i = 0; i < support->facts->event_count; i++) {
		const struct host_event *event = &support->facts->events[i];

		if (event->kind == HOST_EVENT_SXID && is_in_time(support, event))
			tell(support, "NVSwitch error (SXid %" PRId64 ", %s) at %s: %s",
			     event->number, event->object, units_clock(at, event->first_ns),
			     event->text);
	}
}

/* The last sign of life of the rank's process, wall time; 0: unknown. */
static uint64_t last_of(const struct support *support)
{
	const struct recording_process *process;
	uint64_t wall_ns = 0;

	if (support->rank == NULL)
		return 0;
	process = support->job->recording->processes[support->rank->process];
	return recording_wall_ns(process, recording_last_ns(process), &wall_ns) ? wall_ns : 0;
}

static bool is_around(uint64_t at_ns, uint64_t death_ns)
{
	return at_ns + (uint64_t)DEATH_BEFORE_S * SECOND_NS >= death_ns &&
	       at_ns <= death_ns + (uint64_t)DEATH_AFTER_S * SECOND_NS;
}

/* Was the rank's process, which is dead, killed? A PID alone is not enough: they are used again. */
static const struct host_event *find_kill(const struct support *support, uint64_t death_ns)
{
	const struct host_facts *facts = support->facts;

	for (size_t i = 0; i < facts->event_count; i++)
		if (facts->events[i].kind == HOST_EVENT_OOM &&
		    facts->events[i].number == support->rank->pid &&
		    is_around(facts->events[i].first_ns, death_ns))
			return &facts->events[i];
	return NULL;
}

static void tell_kill(struct support *support)
{
	const struct host_facts *facts = support->facts;
	const struct host_series *kills;
	const struct host_event *kill;
	uint64_t death_ns = last_of(support);
	char at[UNITS_TEXT], pid[24];

	if (death_ns == 0)
		return;
	kill = find_kill(support, death_ns);
	if (kill != NULL) {
		tell(support, "Killed by the OOM killer at %s: %s (kernel log)",
		     units_clock(at, kill->first_ns), kill->text);
		return;
	}
	text_format(pid, sizeof(pid), "%" PRId64, support->rank->pid);
	kills = host_facts_find(facts, HOST_PROCESS_OOM_KILLS, pid);
	if (kills == NULL)
		kills = host_facts_find(facts, HOST_OOM_KILLS, "-");
	for (uint32_t i = 1; kills != NULL && i < kills->count; i++)
		if (kills->points[i].value > kills->points[i - 1].value &&
		    is_around(kills->points[i].wall_ns, death_ns))
			tell(support,
			     "The OOM killer killed a process %s around that time (counted at %s)",
			     kills->kind == HOST_OOM_KILLS ? "of this host" : "of its cgroup",
			     units_clock(at, kills->points[i].wall_ns));
}

/* ---- GPUs -------------------------------------------------------------------------------------------- */

static int by_value(const void *one, const void *other)
{
	return ORDER(*(const int64_t *)one, *(const int64_t *)other);
}

/* The median of what other objects of this kind have or grew by; their number is returned. */
static size_t neighbours(const struct support *support, enum host_kind kind, const char *object,
			 int64_t *median)
{
	const struct host_facts *facts = support->facts;
	int64_t values[HOST_GPUS_MAX];
	size_t count = 0;

	*median = 0;
	for (size_t i = 0; i < facts->series_count && count < HOST_GPUS_MAX; i++) {
		const struct host_series *series = &facts->series[i], *throttle;
		uint64_t since_ns;

		if (series->kind != kind || strcmp(series->object, object) == 0)
			continue;
		if (host_kinds[kind].is_counter) {
			values[count++] = (int64_t)host_series_increase(series, support->from_ns,
									support->to_ns, &since_ns);
			continue;
		}
		throttle = host_facts_find(facts, HOST_GPU_THROTTLE, series->object);
		/* An idle GPU has a low clock. */
		if (is_current(support, series) &&
		    (throttle == NULL || !(throttle->value & HOST_THROTTLE_IDLE)))
			values[count++] = series->value;
	}
	if (count > 0) {
		qsort(values, count, sizeof(values[0]), by_value);
		*median = values[count / 2];
	}
	return count;
}

static bool is_compared(enum host_kind kind)
{
	return kind == HOST_PORT_STATE || kind == HOST_PORT_RATE || kind == HOST_INTERFACE_SPEED ||
	       kind == HOST_GPU_CLOCK;
}

static struct peer *find_peer(const struct peers *peers, const struct host_series *series)
{
	for (size_t i = 0; i < peers->count; i++)
		if (peers->list[i].kind == series->kind &&
		    strcmp(peers->list[i].object, series->object) == 0)
			return &peers->list[i];
	return NULL;
}

static void add_peers(struct peers *peers, const struct job *job, const struct host_facts *facts)
{
	struct support support = { .job = job, .facts = facts };

	if (!find_time(&support, job->groups[0].name))
		return;
	for (size_t i = 0; i < facts->series_count; i++) {
		const struct host_series *series = &facts->series[i], *throttle;
		struct peer *peer;

		if (!is_compared(series->kind) || !is_current(&support, series))
			continue;
		throttle = host_facts_find(facts, HOST_GPU_THROTTLE, series->object);
		if (throttle != NULL && throttle->value & HOST_THROTTLE_IDLE)
			continue;
		peer = find_peer(peers, series);
		if (peer == NULL && peers->count < PEERS_MAX) {
			peer = &peers->list[peers->count++];
			*peer = (struct peer){ .kind = series->kind,
					       .least = INT64_MAX,
					       .next = INT64_MAX,
					       .most = INT64_MIN };
			text_copy(peer->object, sizeof(peer->object), series->object);
		}
		if (peer == NULL)
			continue;
		peer->hosts++;
		if (series->value < peer->least) {
			peer->next = peer->least;
			peer->least = series->value;
		} else if (series->value < peer->next) {
			peer->next = series->value;
		}
		peer->most = series->value > peer->most ? series->value : peer->most;
	}
}

/* The number of other hosts if this one is below all of them; *least and *most: their values. 0: it is not. */
static size_t is_below_peers(const struct support *support, const struct host_series *series,
			     int64_t *least, int64_t *most)
{
	const struct peer *peer = support->peers ? find_peer(support->peers, series) : NULL;

	if (peer == NULL || peer->hosts < PEER_HOSTS_LEAST || series->value != peer->least ||
	    peer->next == peer->least)
		return 0;
	*least = peer->next;
	*most = peer->most;
	return peer->hosts - 1;
}

/* Since when a level is as it is: has a bit of `mask`, or is below a limit. Nothing if it always was. */
static void say_since(char *text, size_t size, const struct host_series *series, int64_t mask,
		      int64_t below)
{
	char at[UNITS_TEXT];
	uint32_t first = series->count;

	while (first > 0 && (mask ? (series->points[first - 1].value & mask) != 0
				  : series->points[first - 1].value < below))
		first--;
	if (first < series->count && first > 0)
		text_append(text, size, " since %s",
			    units_clock(at, series->points[first].wall_ns));
}

/* What its clock should be: that of the other GPUs; else its own before; else half of what it can do. */
static int64_t good_clock(const struct support *support, const struct host_series *clock,
			  char *text, size_t size)
{
	const struct host_series *most =
		host_facts_find(support->facts, HOST_GPU_CLOCK_MAX, clock->object);
	char count[UNITS_TEXT];
	int64_t median, best = 0;
	size_t others = neighbours(support, HOST_GPU_CLOCK, clock->object, &median);

	for (uint32_t i = 0; i < clock->count; i++)
		if (clock->points[i].wall_ns >= support->from_ns && clock->points[i].value > best)
			best = clock->points[i].value;
	if (others > 0) {
		text_format(text, size, ", the other %zu %s of its host at %s MHz", others,
			    text_which(others, "GPU", "GPUs"),
			    units_count(count, (uint64_t)median));
		return median / 10 * 9;
	}
	if (best > clock->value) {
		text_format(text, size, ", before at %s MHz", units_count(count, (uint64_t)best));
		return best / 10 * 9;
	}
	if (most == NULL)
		return 0;
	text_format(text, size, " of %s MHz", units_count(count, (uint64_t)most->value));
	return most->value / 2;
}

static void tell_clock(struct support *support, const char *gpu, const char *whose)
{
	const struct host_series *clock = host_facts_find(support->facts, HOST_GPU_CLOCK, gpu);
	const struct host_series *why = host_facts_find(support->facts, HOST_GPU_THROTTLE, gpu);
	int64_t bits = is_current(support, why) ? why->value : 0, good;
	char line[LINE] = "", than[100] = "", since[40] = "", reason[160] = "", count[UNITS_TEXT];
	int64_t least = 0, most = 0;
	size_t others;
	bool is_low;

	if (!is_current(support, clock) || bits & HOST_THROTTLE_IDLE)
		return;
	good = good_clock(support, clock, than, sizeof(than));
	is_low = clock->value < good;
	/* All GPUs of the host may be slow. */
	if (!is_low) {
		others = is_below_peers(support, clock, &least, &most);
		good = others > 0 ? least / 10 * 9 : 0;
		is_low = clock->value < good;
		text_format(than, sizeof(than), ", that of the other %zu hosts at %s MHz or more",
			    others, units_count(count, (uint64_t)(others > 0 ? least : 0)));
	}
	if (!is_low && !(bits & HOST_THROTTLE_BAD))
		return;
	if (is_low)
		say_since(since, sizeof(since), clock, 0, good);
	else
		say_since(since, sizeof(since), why, HOST_THROTTLE_BAD, 0);
	host_throttle_say(reason, sizeof(reason), bits);
	text_format(line, sizeof(line), "%s%s%s%s (%s) runs at %s MHz%s%s%s%s",
		    support->is_note ? "Host " : "", support->is_note ? support->facts->host : "",
		    support->is_note ? ": " : "", whose, gpu,
		    units_count(count, (uint64_t)clock->value), since, is_low ? than : "",
		    reason[0] ? "; throttle reason: " : "", reason);
	tell(support, "%s", line);
}

/* What a counter grew by in that time; 0: not at all, or it is not there. */
static uint64_t growth_of(const struct support *support, enum host_kind kind, const char *object,
			  uint64_t *since_ns)
{
	const struct host_series *series = host_facts_find(support->facts, kind, object);

	if (series == NULL)
		return 0;
	return host_series_increase(series, support->from_ns, support->to_ns, since_ns);
}

static void tell_gpu_counters(struct support *support, const char *gpu)
{
	static const enum host_kind kinds[] = { HOST_GPU_ECC_UNCORRECTED, HOST_GPU_ECC_CORRECTED,
						HOST_GPU_NVLINK_CRC, HOST_GPU_NVLINK_REPLAY,
						HOST_GPU_NVLINK_RECOVERY };
	char count[UNITS_TEXT], at[UNITS_TEXT];
	uint64_t grown, since_ns = 0;
	int64_t median;

	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++) {
		grown = growth_of(support, kinds[i], gpu, &since_ns);
		neighbours(support, kinds[i], gpu, &median);
		if (grown == 0 || grown < (uint64_t)median * NEIGHBOUR_FACTOR ||
		    (kinds[i] == HOST_GPU_ECC_CORRECTED && grown < CORRECTED_LEAST))
			continue;
		tell(support, "Its GPU (%s): %s %s since %s", gpu, units_count(count, grown),
		     host_kinds[kinds[i]].words, units_clock(at, since_ns));
	}
}

static void tell_gpu_levels(struct support *support, const char *gpu)
{
	const struct host_series *width = host_facts_find(support->facts, HOST_GPU_PCIE_WIDTH, gpu);
	const struct host_series *most =
		host_facts_find(support->facts, HOST_GPU_PCIE_WIDTH_MAX, gpu);
	const struct host_series *remap =
		host_facts_find(support->facts, HOST_GPU_REMAP_PENDING, gpu);
	const struct host_series *links = host_facts_find(support->facts, HOST_GPU_NVLINKS, gpu);
	int64_t median;

	if (is_current(support, width) && most != NULL && width->value < most->value &&
	    (neighbours(support, HOST_GPU_PCIE_WIDTH, gpu, &median) == 0 || width->value < median))
		tell(support, "Its GPU (%s) uses %" PRId64 " of %" PRId64 " PCIe lanes", gpu,
		     width->value, most->value);
	if (is_current(support, remap) && remap->value > 0)
		tell(support, "Its GPU (%s) has memory rows that %s", gpu,
		     remap->value == 2 ? "could not be replaced"
				       : "are replaced at the next reset");
	if (is_current(support, links) && neighbours(support, HOST_GPU_NVLINKS, gpu, &median) > 0 &&
	    links->value < median)
		tell(support, "Its GPU (%s): %" PRId64 " NVLinks are up, %" PRId64 " on other GPUs",
		     gpu, links->value, median);
}

static void tell_gpu(struct support *support)
{
	if (support->gpu == NULL)
		return;
	tell_clock(support, support->gpu, "Its GPU");
	tell_gpu_counters(support, support->gpu);
	tell_gpu_levels(support, support->gpu);
}

/* ---- ports ------------------------------------------------------------------------------------------ */

/* A healthy network moves these now and then. */
static bool is_soft(enum host_kind kind)
{
	return kind == HOST_PORT_OUT_OF_SEQUENCE || kind == HOST_PORT_SEQUENCE_ERRORS ||
	       kind == HOST_PORT_DISCARDS || kind == HOST_PORT_NOT_READY_RETRIES ||
	       kind == HOST_PORT_OVERRUNS || kind == HOST_INTERFACE_MISSED ||
	       kind == HOST_PORT_REMOTE_ERRORS || kind == HOST_PORT_ACK_TIMEOUTS;
}

/* "mlx5_3/1" is "mlx5_3 port 1". */
static void say_object(char *text, size_t size, const struct host_series *series)
{
	const char *slash = strchr(series->object, '/');

	if (host_kinds[series->kind].object == HOST_OBJECT_PORT && slash != NULL)
		text_append(text, size, "%.*s port %s", (int)(slash - series->object),
			    series->object, slash + 1);
	else
		text_append(text, size, "%s", series->object);
}

/* How many other ports or interfaces this host has, whether their counters moved or not. */
static size_t count_others(const struct support *support, const struct host_series *series)
{
	enum host_kind kind = host_kinds[series->kind].object == HOST_OBJECT_PORT
				      ? HOST_PORT_STATE
				      : HOST_INTERFACE_SPEED;
	size_t count = 0;

	for (size_t i = 0; i < support->facts->series_count; i++)
		count += support->facts->series[i].kind == kind &&
			 strcmp(support->facts->series[i].object, series->object) != 0;
	return count;
}

static void tell_port_counter(struct support *support, const struct host_series *series)
{
	char line[LINE] = "", count[UNITS_TEXT], at[UNITS_TEXT];
	uint64_t since_ns = 0, grown, worst = 0;
	size_t others = count_others(support, series), moved = 0;

	grown = host_series_increase(series, support->from_ns, support->to_ns, &since_ns);
	for (size_t i = 0; i < support->facts->series_count; i++) {
		const struct host_series *other = &support->facts->series[i];
		uint64_t ignored_ns, by;

		if (other->kind != series->kind || other == series)
			continue;
		by = host_series_increase(other, support->from_ns, support->to_ns, &ignored_ns);
		moved += by > 0;
		worst = by > worst ? by : worst;
	}
	/* If most ports have it, it distinguishes none. */
	if (grown == 0 || (others > 0 && moved * 2 > others && grown < worst * NEIGHBOUR_FACTOR))
		return;
	if (is_soft(series->kind) && (grown < SOFT_LEAST || grown < worst * NEIGHBOUR_FACTOR))
		return;
	if (series->kind == HOST_PORT_SYMBOL_ERROR && grown < SYMBOLS_LEAST)
		return;
	text_format(line, sizeof(line), "Host %s, ", support->facts->host);
	say_object(line, sizeof(line), series);
	text_append(line, sizeof(line), ": %s %s since %s", units_count(count, grown),
		    host_kinds[series->kind].words, units_clock(at, since_ns));
	if (others > 0 && moved == 0)
		text_append(line, sizeof(line), " (the other %zu: none)", others);
	else if (others > 0)
		text_append(line, sizeof(line), " (at most %s on the other %zu)",
			    units_count(count, worst), others);
	tell(support, "%s", line);
}

/* Slower than it once was, or than the same port of all other hosts: ports of one host need not have one speed. */
static void tell_port_level(struct support *support, const struct host_series *series)
{
	char line[LINE] = "", at[UNITS_TEXT];
	int64_t best = 0, least = 0, most = 0;
	size_t others;

	if (!is_current(support, series))
		return;
	others = is_below_peers(support, series, &least, &most);
	/* They must agree. */
	if (least != most || !is_compared(series->kind))
		others = 0;
	for (uint32_t i = 0; i < series->count; i++)
		best = series->points[i].value > best ? series->points[i].value : best;
	text_format(line, sizeof(line), "Host %s, ", support->facts->host);
	say_object(line, sizeof(line), series);
	if (series->kind == HOST_PORT_STATE && series->value != 4 && best == 4)
		tell(support, "%s is down since %s", line,
		     units_clock(at, series->points[series->count - 1].wall_ns));
	else if (series->kind != HOST_PORT_STATE && series->value > 0 && series->value < best)
		tell(support, "%s runs at %g Gb/s since %s, before at %g Gb/s", line,
		     (double)series->value / 1000,
		     units_clock(at, series->points[series->count - 1].wall_ns),
		     (double)best / 1000);
	else if (others > 0 && series->kind == HOST_PORT_STATE && least == 4)
		tell(support, "%s is down, and up on the other %zu hosts", line, others);
	else if (others > 0 && series->kind != HOST_PORT_STATE && series->value > 0)
		tell(support, "%s runs at %g Gb/s, on the other %zu hosts at %g Gb/s", line,
		     (double)series->value / 1000, others, (double)least / 1000);
}

static void tell_ports(struct support *support)
{
	for (size_t i = 0; i < support->facts->series_count; i++) {
		const struct host_series *series = &support->facts->series[i];
		enum host_object object = host_kinds[series->kind].object;

		if (object != HOST_OBJECT_PORT && object != HOST_OBJECT_INTERFACE)
			continue;
		if (host_kinds[series->kind].is_counter)
			tell_port_counter(support, series);
		else
			tell_port_level(support, series);
	}
}

/* ---- processor and memory ----------------------------------------------------------------------------- */

/* The time that a counter could have grown in, ns; at least 1. */
static double span_of(const struct support *support)
{
	const struct host_facts *facts = support->facts;
	uint64_t from = facts->begin_ns > support->from_ns ? facts->begin_ns : support->from_ns;
	uint64_t to = facts->last_ns < support->to_ns ? facts->last_ns : support->to_ns;

	return to > from ? (double)(to - from) : 1;
}

static void tell_starving(struct support *support)
{
	const struct host_facts *facts = support->facts;
	const struct host_series *processors = host_facts_find(facts, HOST_PROCESSORS, "-");
	char pid[24], lost[UNITS_TEXT], at[UNITS_TEXT];
	double span = span_of(support), share;
	uint64_t since_ns = 0, grown;

	text_format(pid, sizeof(pid), "%" PRId64, support->verdict->pid);
	grown = growth_of(support, HOST_PROCESS_THROTTLED_US, pid, &since_ns);
	if (grown > 0 && (double)grown * 1e3 / span * 100 >= STARVED_PERCENT)
		tell(support, "The CPU quota of its cgroup stopped its threads for %s since %s",
		     units_duration(lost, grown * 1000), units_clock(at, since_ns));
	grown = growth_of(support, HOST_STEAL_MS, "-", &since_ns);
	share = processors && processors->value > 0
			? (double)grown * 1e6 / span / (double)processors->value * 100
			: 0;
	if (share >= STARVED_PERCENT)
		tell(support,
		     "%.0f%% of the processor time of %s went to other virtual machines "
		     "(steal) since %s",
		     share, facts->host, units_clock(at, since_ns));
	grown = growth_of(support, HOST_MEMORY_STALL_US, "-", &since_ns);
	share = (double)grown * 1e3 / span * 100;
	if (share >= STARVED_PERCENT)
		tell(support, "Tasks of %s waited for memory %.0f%% of the time since %s",
		     facts->host, share, units_clock(at, since_ns));
}

/* ---- verdicts ------------------------------------------------------------------------------------------- */

static bool has_gpu_cause(enum verdict_class class)
{
	return class == VERDICT_SLOW_RANK || class == VERDICT_GPU_STUCK ||
	       class == VERDICT_GPU_NOT_REACHED || class == VERDICT_NOT_LAUNCHED;
}

static bool has_network_cause(enum verdict_class class)
{
	return class == VERDICT_SLOW_LINK || class == VERDICT_NETWORK_STUCK ||
	       class == VERDICT_SLOW_HOST;
}

static bool has_host_cause(enum verdict_class class)
{
	return class == VERDICT_SLOW_RANK || class == VERDICT_SLOW_HOST ||
	       class == VERDICT_NEVER_ISSUED || class == VERDICT_NOT_LAUNCHED;
}

/* Of a slow host, any GPU counts. */
static void tell_host_gpus(struct support *support)
{
	for (size_t i = 0; i < support->facts->gpu_count; i++)
		tell_clock(support, support->facts->gpus[i].bus, "A GPU");
}

static void support_own(struct support *support)
{
	enum verdict_class class = support->verdict->class;

	if (verdict_is_hang(class) || class == VERDICT_SLOW_RANK || class == VERDICT_SLOW_HOST)
		tell_xids(support);
	if (class == VERDICT_GPU_STUCK || class == VERDICT_SLOW_NVLINK || class == VERDICT_STUCK)
		tell_switches(support);
	if (class == VERDICT_PROCESS_DEAD)
		tell_kill(support);
	if (has_gpu_cause(class))
		tell_gpu(support);
	if (class == VERDICT_SLOW_HOST)
		tell_host_gpus(support);
	if (has_network_cause(class))
		tell_ports(support);
	if (has_host_cause(class))
		tell_starving(support);
}

static void caveat(struct verdict *verdict, const char *host, const char *why)
{
	char text[LINE];

	text_format(
		text, sizeof(text),
		"Kernel log of %.200s not readable (%.100s): GPU errors (Xid) and OOM kills are "
		"not known.",
		host, why);
	for (size_t i = 0; i < verdict->missing.count; i++)
		if (strcmp(verdict->missing.list[i], text) == 0)
			return;
	verdict_missing(verdict, "%s", text);
}

/* A verdict can have one host at each end. */
static void support_verdict(struct verdict *verdict, const struct job *job,
			    const struct host_facts *facts, const struct peers *peers)
{
	struct support support = { .peers = peers, .verdict = verdict, .job = job, .facts = facts };
	enum verdict_class class = verdict->class;

	if (!verdict_is_hang(class) && !verdict_is_slow(class))
		return;
	if (!find_time(&support, verdict->job))
		return;
	if (strcmp(verdict->host, facts->host) == 0) {
		support.rank = rank_of(job, verdict);
		support.gpu = gpu_of(&support, support.rank);
		support_own(&support);
		if (facts->gaps[HOST_SOURCE_LOG][0] != '\0' &&
		    (has_gpu_cause(class) || class == VERDICT_PROCESS_DEAD) &&
		    verdict_is_hang(class))
			caveat(verdict, facts->host, facts->gaps[HOST_SOURCE_LOG]);
	} else if (strcmp(verdict->peer_host, facts->host) == 0 && has_network_cause(class)) {
		tell_ports(&support);
	}
}

/* ---- notes --------------------------------------------------------------------------------------------- */

enum note { NOTE_KILL, NOTE_XID, NOTE_GPU, NOTE_PORT, NOTE_DISK, NOTES };

struct notes {
	struct verdicts *verdicts;
	struct verdicts own; /* one of each kind: those with evidence are added to the others */
	struct peers peers;
	bool is_wanted;
};

static const struct {
	const char *rule;
	const char *title;
	const char *advice;
} note_words[NOTES] = {
	[NOTE_KILL] = { "host-oom", "the OOM killer killed processes of the job",
			"give the job more memory, or find out which rank needs more than before" },
	[NOTE_XID] = { "host-xid", "GPU errors (Xid) on hosts of the job",
		       "no rank hangs or is slow because of them: check these GPUs before the next "
		       "job" },
	[NOTE_GPU] = { "host-gpu", "GPUs of the job are throttled",
		       "no rank is slow because of it: check cooling and power" },
	[NOTE_PORT] = { "host-port", "network ports of the job's hosts count errors",
			"no link is slow because of them: check cables and transceivers" },
	[NOTE_DISK] = { "host-disk", "full file systems on hosts of the job",
			"traces, checkpoints and shared memory need room there" },
};

static bool is_told(const struct verdicts *verdicts, const char *host)
{
	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if ((verdict_is_hang(verdict->class) || verdict_is_slow(verdict->class)) &&
		    (strcmp(verdict->host, host) == 0 || strcmp(verdict->peer_host, host) == 0))
			return true;
	}
	return false;
}

static void note_disks(struct support *support)
{
	for (size_t i = 0; i < support->facts->series_count; i++) {
		const struct host_series *series = &support->facts->series[i];

		if (series->kind == HOST_DISK_FREE && series->value < DISK_FULL &&
		    is_current(support, series))
			tell(support, "Host %s: %s is full (%.1f%% free)", support->facts->host,
			     series->object, (double)series->value / 10);
	}
}

static void note_kill(struct notes *notes, struct support *support)
{
	uint64_t death_ns = last_of(support);
	const struct host_event *kill = death_ns ? find_kill(support, death_ns) : NULL;
	char at[UNITS_TEXT];

	support->verdict = &notes->own.list[NOTE_KILL];
	if (kill != NULL)
		tell(support, "Rank %s (pid %" PRId64 ") on %s was killed at %s: %s (kernel log)",
		     support->rank->label, support->rank->pid, support->facts->host,
		     units_clock(at, kill->first_ns), kill->text);
}

/* Of a rank's own GPU. */
static void note_rank(struct notes *notes, struct support *support)
{
	support->verdict = &notes->own.list[NOTE_XID];
	for (size_t i = 0; i < support->facts->event_count; i++) {
		const struct host_event *event = &support->facts->events[i];

		if (event->kind == HOST_EVENT_XID && is_in_time(support, event) &&
		    !host_xid_is_software(event->number) &&
		    is_same_bus(support->gpu, event->object))
			tell_xid(support, event, "a GPU of the job");
	}
	support->verdict = &notes->own.list[NOTE_GPU];
	if (is_current(support, host_facts_find(support->facts, HOST_GPU_THROTTLE, support->gpu)) &&
	    host_facts_find(support->facts, HOST_GPU_THROTTLE, support->gpu)->value &
		    HOST_THROTTLE_BAD)
		tell_clock(support, support->gpu, "GPU");
}

static void note_host(struct notes *notes, const struct job *job, const struct host_facts *facts)
{
	struct support support = {
		.peers = &notes->peers, .job = job, .facts = facts, .is_note = true
	};
	const struct job_rank *timed = NULL; /* the time is that of its job */
	bool is_ours = false, has_time = false;

	if (is_told(notes->verdicts, facts->host))
		return;
	for (size_t i = 0; i < job->rank_count; i++) {
		const struct job_rank *rank = &job->ranks[i];

		if (strcmp(job->hosts[rank->host].name, facts->host) != 0)
			continue;
		if (timed == NULL || rank->group != timed->group)
			has_time = find_time(&support, job->groups[rank->group].name);
		timed = rank;
		if (!has_time)
			continue;
		support.gpu = gpu_of(&support, rank);
		is_ours = true;
		support.rank = rank;
		if (rank->life == RECORDING_KILLED)
			note_kill(notes, &support);
		if (support.gpu != NULL)
			note_rank(notes, &support);
	}
	if (!is_ours)
		return;
	support.verdict = &notes->own.list[NOTE_PORT];
	tell_ports(&support);
	support.verdict = &notes->own.list[NOTE_DISK];
	note_disks(&support);
}

static void end_notes(struct notes *notes)
{
	for (int i = 0; i < NOTES; i++) {
		struct verdict *verdict = &notes->own.list[i];

		if (verdict->evidence.count == 0)
			continue;
		text_copy(verdict->rule, sizeof(verdict->rule), note_words[i].rule);
		text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#host-facts");
		verdict_title(verdict, "%s", note_words[i].title);
		verdict_advice(verdict, "%s", note_words[i].advice);
		verdicts_add_copy(notes->verdicts, verdict);
	}
}

/* ---- all of it ------------------------------------------------------------------------------------------- */

static void support_all(struct notes *notes, const struct job *job, const struct host_facts *facts)
{
	for (size_t i = 0; i < notes->verdicts->count; i++)
		support_verdict(&notes->verdicts->list[i], job, facts, &notes->peers);
	if (notes->is_wanted)
		note_host(notes, job, facts);
}

/* Of one job, so that all hosts have the same task. */
static void find_peers(struct peers *peers, const struct job *job, const struct host_facts *own)
{
	const struct recording *recording = job->recording;
	struct host_facts facts;

	if (job->group_count != 1 || recording->note_count + (own != NULL) < PEER_HOSTS_LEAST)
		return;
	peers->list = calloc(PEERS_MAX, sizeof(*peers->list));
	if (peers->list == NULL)
		return;
	if (own != NULL && own->begin_ns > 0)
		add_peers(peers, job, own);
	for (size_t i = 0; i < recording->note_count; i++) {
		if (read_facts(&facts, &recording->notes[i]) == OK)
			add_peers(peers, job, &facts);
		host_facts_release(&facts);
	}
}

/* One host after the other: thousands of them need not be in memory at once. */
void host_support(struct verdicts *verdicts, const struct job *job, const struct host_facts *own,
		  bool has_notes)
{
	const struct recording *recording = job->recording;
	struct notes notes = { .verdicts = verdicts, .is_wanted = has_notes };
	struct host_facts facts;

	verdicts_init(&notes.own);
	for (int i = 0; i < NOTES; i++)
		verdicts_add(&notes.own, VERDICT_SETUP, VERDICT_NOTE);
	if (notes.own.count < NOTES) {
		verdicts_release(&notes.own);
		return;
	}
	find_peers(&notes.peers, job, own);
	if (own != NULL && own->begin_ns > 0)
		support_all(&notes, job, own);
	for (size_t i = 0; i < recording->note_count; i++) {
		if (read_facts(&facts, &recording->notes[i]) == OK)
			support_all(&notes, job, &facts);
		host_facts_release(&facts);
	}
	end_notes(&notes);
	verdicts_release(&notes.own);
	free(notes.peers.list);
}
