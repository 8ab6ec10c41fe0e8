/* The state of all processes as an archive, and the budget of CPU time for such answers. */
#include "agent/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/text.h"
#include "format/tar.h"
#include "output/json.h"
#include "recording/recording.h"

enum { AGENT_BUDGET_SHARE = 10 };

bool agent_budget_allows(struct agent_budget *budget, uint64_t now_ns)
{
	uint64_t made_up_ns = (now_ns - budget->since_ns) / AGENT_BUDGET_SHARE;

	budget->spent_ns -= made_up_ns < budget->spent_ns ? made_up_ns : budget->spent_ns;
	budget->since_ns = now_ns;
	return budget->spent_ns < AGENT_BUDGET_BURST_NS;
}

void agent_budget_spend(struct agent_budget *budget, uint64_t spent_ns)
{
	budget->spent_ns += spent_ns;
}

enum { REFUSED_TOLD = 100, NOTE_BYTES = 1024 * 1024 };

struct pack {
	struct sink *sink;
	const struct agent_look *look;
	char host[64]; /* safe as a name in the archive */
	struct agent_snapshot_wanted wanted;
	uint64_t wall_s;
	uint64_t until_ns; /* CPU time and monotonic time after which nothing is read again */
	uint64_t until_wall_ns;
	struct json note;
	size_t bytes; /* written to the sink */
	size_t packed;
	size_t left_out;
};

static void put_file(struct pack *pack, const char *name, const void *bytes, size_t length)
{
	static const unsigned char zeros[TAR_BLOCK];
	unsigned char block[TAR_BLOCK];

	if (tar_header(block, name, length, pack->wall_s) != OK)
		return;
	sink_write(pack->sink, block, sizeof(block));
	sink_write(pack->sink, bytes, length);
	sink_write(pack->sink, zeros, tar_padding(length));
	pack->bytes += sizeof(block) + length + tar_padding(length);
}

/* Processes in different namespaces may have the same PID. */
static size_t count_same(const struct recording *recording, size_t index)
{
	const struct recording_process *process = recording->processes[index];
	size_t same = 0;

	for (size_t i = index; i-- > 0;)
		same += recording->processes[i]->rank == process->rank &&
			recording_pid(recording->processes[i]) == recording_pid(process);
	return same;
}

static void name_of(const struct pack *pack, size_t index, char name[TAR_NAME_MAX])
{
	const struct recording_process *process = pack->look->watch.recording.processes[index];
	size_t same = count_same(&pack->look->watch.recording, index);
	char rank[24] = "x", again[24] = "";

	if (process->rank >= 0)
		text_format(rank, sizeof(rank), "%" PRId64, process->rank);
	if (same > 0)
		text_format(again, sizeof(again), "-%zu", same + 1);
	text_format(name, TAR_NAME_MAX, "%s/r%s-%" PRId64 "%s.ringside", pack->host, rank,
		    recording_pid(process), again);
}

static void note_process(struct pack *pack, const struct recording_process *process,
			 const char *name, size_t bytes, const char *left_out)
{
	char state[2] = { process->process_state, '\0' };

	json_object(&pack->note);
	json_put_string(&pack->note, "file", left_out ? NULL : name);
	json_put_signed(&pack->note, "pid", recording_pid(process));
	json_put_string(&pack->note, "job", process->job);
	json_put_signed(&pack->note, "rank", process->rank);
	json_put_string(&pack->note, "life", recording_life_name(process->life));
	json_put_string(&pack->note, "state", state[0] ? state : NULL);
	json_put_unsigned(&pack->note, "bytes", left_out ? 0 : bytes);
	if (left_out)
		json_put_string(&pack->note, "left_out", left_out);
	json_end(&pack->note);
	pack->packed += left_out == NULL;
	pack->left_out += left_out != NULL;
}

static bool is_in_time(const struct pack *pack)
{
	return clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) < pack->until_ns &&
	       clock_system_ns(CLOCK_MONOTONIC) < pack->until_wall_ns;
}

/* The metadata of a process without its environment variables. NULL: out of memory. */
static char *without_environment(const struct recording_process *process, size_t *length)
{
	static const char start[] = "env.", hidden[] = "env_hidden=1\n";
	char *to = malloc(process->info_bytes + 1 + sizeof(hidden));
	bool had_one = false;

	*length = 0;
	for (size_t at = 0, bytes; to != NULL && at < process->info_bytes; at += bytes + 1) {
		const char *line = process->info + at;
		const char *end = memchr(line, '\n', process->info_bytes - at);

		bytes = end ? (size_t)(end - line) : process->info_bytes - at;
		if (bytes >= sizeof(start) - 1 && memcmp(line, start, sizeof(start) - 1) == 0) {
			had_one = true;
			continue;
		}
		memcpy(to + *length, line, bytes);
		to[*length + bytes] = '\n';
		*length += bytes + 1;
	}
	if (had_one) {
		memcpy(to + *length, hidden, sizeof(hidden) - 1);
		*length += sizeof(hidden) - 1;
	}
	return to;
}

/* `known`: the same process at the last scan. Where it is in its program, and its past, are only there. */
static enum status make_snapshot(const struct pack *pack, const struct recording_process *process,
				 const struct recording_process *known, size_t operations,
				 unsigned char **bytes, size_t *length)
{
	size_t past = operations > 0 ? pack->wanted.past : 0;
	struct recording_process shown = *process;
	enum status status;

	shown.stack = known->stack;
	shown.past = known->past;
	if (pack->wanted.has_environment)
		return recording_snapshot(&shown, operations, past, bytes, length);
	shown.info = without_environment(process, &shown.info_bytes);
	if (shown.info == NULL)
		return ERR_NO_SPACE;
	status = recording_snapshot(&shown, operations, past, bytes, length);
	free(shown.info);
	return status;
}

/* The current state of the process, or that of the last scan if it has ended or time is short. */
static enum status snapshot_take_process(struct pack *pack, const struct recording_process *known,
					 unsigned char **bytes, size_t *length)
{
	const struct recording_process *process = known;
	bool may_read = is_in_time(pack);
	enum status status;
	struct recording now;

	recording_init(&now);
	if (may_read && recording_add_again(&now, known) == OK && now.count == 1)
		process = now.processes[0];
	status = make_snapshot(pack, process, known, may_read ? pack->wanted.operations : 0, bytes,
			       length);
	recording_release(&now);
	return status;
}

static void put_process(struct pack *pack, size_t index)
{
	const struct recording_process *process = pack->look->watch.recording.processes[index];
	unsigned char *bytes = NULL;
	char name[TAR_NAME_MAX];
	const char *why = NULL;
	size_t length = 0;

	name_of(pack, index, name);
	/* Reserve room for the note. */
	if (pack->bytes + NOTE_BYTES > AGENT_SNAPSHOT_BYTES_MAX)
		why = "the archive has reached its maximum size";
	else if (snapshot_take_process(pack, process, &bytes, &length) != OK)
		why = "out of memory";
	else if (pack->bytes + length + NOTE_BYTES > AGENT_SNAPSHOT_BYTES_MAX)
		why = "the archive would exceed its maximum size";
	if (why == NULL)
		put_file(pack, name, bytes, length);
	note_process(pack, process, name, length, why);
	free(bytes);
}

static void note_refused(struct pack *pack)
{
	const struct watch *watch = &pack->look->watch;

	json_put_array(&pack->note, "refused_files");
	for (size_t i = 0; i < watch->refused_count && i < REFUSED_TOLD; i++) {
		json_object(&pack->note);
		json_put_string(&pack->note, "path", watch->refused[i].path);
		json_put_string(&pack->note, "why", watch->refused[i].why);
		json_end(&pack->note);
	}
	json_end(&pack->note);
	json_put_unsigned(&pack->note, "refused_files_count", watch->refused_count);
	json_put_unsigned(&pack->note, "unreadable_files", watch->unreadable);
	json_put_unsigned(&pack->note, "processes_not_followed", watch->left_out);
}

static void note_begin(struct pack *pack, const char *host)
{
	struct json *note = &pack->note;

	json_object(note);
	json_put_string(note, "version", RINGSIDE_VERSION);
	json_put_string(note, "host", host);
	json_put_unsigned(note, "time_ns", clock_system_ns(CLOCK_REALTIME));
	json_put_unsigned(note, "looks", pack->look->number);
	json_put_unsigned(note, "looks_failed", pack->look->failures);
	json_put_bool(note, "is_failing", pack->look->status != OK);
	json_put_unsigned(note, "operations_asked", pack->wanted.operations);
	json_put_unsigned(note, "past_asked", pack->wanted.past);
	json_put_bool(note, "environment_left_out", !pack->wanted.has_environment);
	json_put_object(note, "limits");
	json_put_unsigned(note, "bytes", AGENT_SNAPSHOT_BYTES_MAX);
	json_put_unsigned(note, "operations", AGENT_SNAPSHOT_OPERATIONS_MAX);
	json_put_unsigned(note, "milliseconds", AGENT_SNAPSHOT_MS);
	json_end(note);
	json_put_array(note, "processes");
}

/* Does this line of facts belong to a process that is not in the archive? */
static bool is_of_others(const struct pack *pack, const char *line)
{
	const struct recording *recording = &pack->look->watch.recording;
	char object[24];

	if (!pack->wanted.has_job || sscanf(line, "series process_%*s %23s", object) != 1)
		return false;
	for (size_t i = 0; i < recording->count; i++)
		if (recording_is_job(recording->processes[i], pack->wanted.job) &&
		    recording_pid(recording->processes[i]) == strtoll(object, NULL, 10))
			return false;
	return true;
}

/* Lines of import/host_facts.h. Processes of other jobs are not mentioned. */
static void note_facts(struct pack *pack)
{
	char line[HOST_LINE_BYTES];

	if (pack->look->host == NULL || pack->look->host->facts.begin_ns == 0)
		return;
	json_put_array(&pack->note, "host_facts");
	for (size_t at = 0; host_facts_next_line(&pack->look->host->facts, &at, line);)
		if (!is_of_others(pack, line))
			json_string(&pack->note, line);
	json_end(&pack->note);
}

static void note_end(struct pack *pack)
{
	json_end(&pack->note);
	json_put_unsigned(&pack->note, "processes_packed", pack->packed);
	json_put_unsigned(&pack->note, "processes_left_out", pack->left_out);
	/* When time runs out, the remaining processes have the state of the last scan, without finished operations. */
	json_put_bool(&pack->note, "is_time_up", !is_in_time(pack));
	note_refused(pack);
	note_facts(pack);
	json_end(&pack->note);
	json_line(&pack->note);
}

/* A safe path component, whatever the host name is. */
static void name_host(char name[64], const char *host)
{
	text_copy(name, 64, host);
	for (char *at = name; *at != '\0'; at++)
		if (*at == '/' || (unsigned char)*at <= ' ' || *at == 0x7f)
			*at = '_';
	if (name[0] == '\0' || name[0] == '.')
		text_copy(name, 64, "host");
}

static size_t round_up(uint64_t asked, const size_t *steps, size_t count, size_t most)
{
	for (size_t i = 0; i < count; i++)
		if (asked <= steps[i])
			return steps[i];
	return most;
}

size_t agent_snapshot_operations(uint64_t asked)
{
	static const size_t steps[] = { 0, 512, 1024, 2048, 4096 };

	return round_up(asked, steps, ARRAY_LENGTH(steps), AGENT_SNAPSHOT_OPERATIONS_MAX);
}

size_t agent_snapshot_past(uint64_t asked)
{
	static const size_t steps[] = { 0, 1024, 4096 };

	return round_up(asked, steps, ARRAY_LENGTH(steps), AGENT_SNAPSHOT_PAST_MAX);
}

void agent_snapshot_write(struct sink *sink, const struct agent_look *look, const char *host,
			  const struct agent_snapshot_wanted *wanted)
{
	static const unsigned char end[2 * TAR_BLOCK];
	struct pack pack = { .sink = sink, .look = look, .wanted = *wanted };
	struct sink note;
	char name[TAR_NAME_MAX];

	pack.wall_s = clock_system_ns(CLOCK_REALTIME) / 1000000000;
	pack.until_ns = clock_system_ns(CLOCK_PROCESS_CPUTIME_ID) + AGENT_SNAPSHOT_MS * MS_NS;
	pack.until_wall_ns = clock_system_ns(CLOCK_MONOTONIC) + AGENT_SNAPSHOT_WALL_MS * MS_NS;
	name_host(pack.host, host);
	sink_init_memory(&note);
	json_init(&pack.note, &note);
	note_begin(&pack, host);
	for (size_t i = 0; i < look->watch.recording.count; i++)
		if (!wanted->has_job ||
		    recording_is_job(look->watch.recording.processes[i], wanted->job))
			put_process(&pack, i);
	note_end(&pack);
	text_format(name, sizeof(name), "%s/agent.json", pack.host);
	put_file(&pack, name, sink_string(&note), note.status == OK ? note.used : 0);
	sink_write(sink, end, sizeof(end));
	sink_release(&note);
}
