/*
 * Histories are mostly numbers, so these are kept short: four significant digits and a power of ten, "1234e8".
 * Times are milliseconds after the answer's from_ms.
 */
#include "output/live_json.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/text.h"
#include "output/json.h"
#include "output/recorded.h"
#include "output/verdict_show.h"

/* Not finite or negative: null. */
static void write_short(struct sink *sink, float number)
{
	double value = (double)number;
	int power = 0;
	uint64_t digits;

	if (!isfinite(value) || value < 0) {
		sink_write(sink, "null", 4);
		return;
	}
	if (value < 1e-6) {
		sink_byte(sink, '0');
		return;
	}
	for (; value >= 9999.5; power++)
		value /= 10;
	for (; value < 999.95; power--)
		value *= 10;
	for (digits = (uint64_t)(value + 0.5); digits % 10 == 0; power++)
		digits /= 10;
	sink_unsigned(sink, digits);
	if (power == 0)
		return;
	sink_write(sink, "e-", power < 0 ? 2 : 1);
	sink_unsigned(sink, (uint64_t)(power < 0 ? -power : power));
}

/* The first point newer than `after_ns`. Points are in order of time, unless the wall clock was set back; then
 * older points are useless. */
static uint32_t first_after(const struct live_history *history, uint64_t after_ns)
{
	uint32_t from = history->count;

	while (from > 0 && live_point(history, from - 1)->wall_ns > after_ns)
		from--;
	return from;
}

static void put_history(struct json *json, const struct live_history *history, uint64_t after_ns,
			uint64_t from_ms)
{
	static const struct {
		const char *name;
		size_t offset;
	} values[] = {
		{ "operations_per_s", offsetof(struct live_point, operations_per_s) },
		{ "busbw", offsetof(struct live_point, busbw) },
		{ "algbw", offsetof(struct live_point, algbw) },
		{ "busy", offsetof(struct live_point, busy_share) },
		{ "wait", offsetof(struct live_point, wait_share) },
	};
	uint32_t first = first_after(history, after_ns);

	json_put_array(json, "time_ms");
	for (uint32_t i = first; i < history->count; i++) {
		uint64_t ms = live_point(history, i)->wall_ns / 1000000;

		json_unsigned(json, ms > from_ms ? ms - from_ms : 0);
	}
	json_end(json);
	for (size_t which = 0; which < ARRAY_LENGTH(values); which++) {
		json_put_array(json, values[which].name);
		for (uint32_t i = first; i < history->count; i++) {
			const char *point = (const char *)live_point(history, i);
			float value;

			if (i > first)
				sink_byte(json->sink, ',');
			memcpy(&value, point + values[which].offset, sizeof(value));
			write_short(json->sink, value);
		}
		json_end(json);
	}
}

static void put_members(struct json *json, const struct live *live, const struct job_comm *comm,
			uint64_t after_ns, uint64_t from_ms)
{
	json_put_array(json, "members");
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct job_seat *seat = &live->job.seats[comm->seats[i]];

		json_object(json);
		json_put_natural_or_null(json, "rank", seat->comm_rank);
		put_history(json, &live->seats[comm->seats[i]].history, after_ns, from_ms);
		json_end(json);
	}
	json_end(json);
}

/* The earliest time in the answer: times are relative to it. */
static uint64_t earliest_ms(const struct live *live, uint64_t after_ns)
{
	uint64_t earliest_ns = live->wall_ns;

	for (size_t i = 0; i < live->job.comm_count + live->job.seat_count; i++) {
		const struct live_history *history =
			i < live->job.comm_count ? &live->comms[i].history
						 : &live->seats[i - live->job.comm_count].history;
		uint32_t first = first_after(history, after_ns);

		if (first < history->count && live_point(history, first)->wall_ns < earliest_ns)
			earliest_ns = live_point(history, first)->wall_ns;
	}
	return earliest_ns / 1000000;
}

void live_json_history_of(struct sink *sink, const struct live *live, uint64_t after_wall_ns,
			  const char *members)
{
	uint64_t from_ms = earliest_ms(live, after_wall_ns);
	char key[LIVE_JSON_KEY], until[24];
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-history");
	json_put_unsigned(&json, "version", 1);
	text_format(until, sizeof(until), "%" PRIu64, live->wall_ns);
	json_put_string(&json, "until_ns", until);
	json_put_unsigned(&json, "from_ms", from_ms);
	json_put_array(&json, "communicators");
	for (uint32_t i = 0; i < live->job.comm_count; i++) {
		json_object(&json);
		json_put_string(&json, "key", live_json_key(live, i, key));
		put_history(&json, &live->comms[i].history, after_wall_ns, from_ms);
		if (members == NULL || strcmp(members, key) == 0)
			put_members(&json, live, &live->job.comms[i], after_wall_ns, from_ms);
		json_end(&json);
	}
	json_end(&json);
	json_end(&json);
	json_line(&json);
}

/* ---- small parts ------------------------------------------------------------------------------ */

/* Whole bytes per second. */
static void put_rate(struct json *json, const char *key, double bytes_per_s)
{
	if (isfinite(bytes_per_s) && bytes_per_s >= 0 && bytes_per_s < 1e18)
		json_put_unsigned(json, key, (uint64_t)(bytes_per_s + 0.5));
	else
		json_put_null(json, key);
}

/* Four decimals: the rest of a float is noise. */
static void put_share(struct json *json, const char *key, double share)
{
	json_put_double(json, key, round(share * 1e4) / 1e4);
}

static bool is_same_comm(const struct job_comm *a, const struct job_comm *b)
{
	return a->group == b->group && a->hash == b->hash && a->nranks == b->nranks &&
	       a->generation == b->generation;
}

const char *live_json_key(const struct live *live, uint32_t comm, char to[static LIVE_JSON_KEY])
{
	const struct job *job = &live->job;
	const struct job_comm *of = &job->comms[comm];
	const char *group = job->groups[of->group].name;
	uint64_t key = hash_bytes(group, strlen(group));
	uint32_t twin = comm;

	key = hash_word(key, of->hash);
	key = hash_word(key, (uint64_t)of->generation << 32 | (uint32_t)of->nranks);
	if (of->hash == 0 && of->seat_count > 0) {
		const struct job_seat *seat = &job->seats[of->seats[0]];
		const struct recording_process *process = job->recording->processes[seat->process];

		key = hash_word(key, hash_bytes(process->host, strlen(process->host)));
		key = hash_word(key, (uint64_t)process->pid);
		key = hash_word(key, process->start_ticks);
		key = hash_word(key, seat->comm_id);
	}
	/* Two processes that claim the same rank: their communicators are adjacent. */
	while (twin > 0 && of->hash != 0 && is_same_comm(of, &job->comms[twin - 1]))
		twin--;
	text_format(to, LIVE_JSON_KEY, "%016" PRIx64, hash_word(key, comm - twin));
	return to;
}

/* ---- jobs and processes ----------------------------------------------------------------------- */

/* What is known about hangs, or about speed. `say` writes the sentence. */
static void put_judged(struct json *json, const char *key, const struct live_job *job,
		       const struct live_judged *judged,
		       void (*say)(char *text, size_t size, const struct live_job *job))
{
	char text[600] = "";

	say(text, sizeof(text), job);
	json_put_object(json, key);
	json_put_bool(json, "is_judged", judged->is_judged);
	json_put_bool(json, "is_fine", live_is_fine(judged));
	json_put_unsigned(json, "found", judged->found);
	json_put_known(json, "time_ms", judged->wall_ns > 0, judged->wall_ns / 1000000);
	json_put_known(json, "span_ns", judged->span_ns > 0, judged->span_ns);
	json_put_text_or_null(json, "unconfirmed", judged->once);
	json_put_text_or_null(json, "not_judged", judged->why);
	json_put_text_or_null(json, "advice", judged->how);
	json_put_string(json, "text", text);
	json_end(json);
}

static void put_jobs(struct json *json, const struct live *live)
{
	json_put_array(json, "jobs");
	for (size_t i = 0; i < live->job.group_count; i++) {
		const struct job_group *group = &live->job.groups[i];
		const struct live_job *job = &live->jobs[i];

		json_object(json);
		json_put_text_or_null(json, "name", group->name);
		json_put_known_signed(json, "world_size", group->world_size > 0, group->world_size);
		json_put_unsigned(json, "ranks", group->known_ranks);
		json_put_unsigned(json, "processes", group->process_count);
		json_put_unsigned(json, "hosts", group->host_count);
		json_put_bool(json, "is_alive", job->is_alive);
		json_put_bool(json, "is_earlier_run", group->is_earlier_run);
		json_put_known(json, "started_ms", group->started_wall_ns > 0,
			       group->started_wall_ns / 1000000);
		json_put_unsigned(json, "hang_ns", live_hang_ns(live, (uint32_t)i));
		put_judged(json, "hangs", job, &job->hangs, live_say_hangs);
		put_judged(json, "speed", job, &job->speed, live_say_speed);
		json_end(json);
	}
	json_end(json);
}

static void put_losses(struct json *json, const struct recording_process *process)
{
	uint64_t operations = 0, details = 0;

	for (unsigned int i = 0; i < LOST_REASONS; i++)
		*(op_lost_is_whole(i) ? &operations : &details) += process->lost[i];
	json_put_unsigned(json, "lost_operations", operations);
	json_put_unsigned(json, "lost_details", details);
	json_put_object(json, "lost");
	for (unsigned int i = 0; i < LOST_REASONS; i++)
		if (process->lost[i] > 0 && op_lost_name(i))
			json_put_unsigned(json, op_lost_name(i), process->lost[i]);
	json_end(json);
}

static uint64_t issued_by(const struct recording_process *process)
{
	uint64_t issued = 0;

	for (size_t i = 0; i < process->comm_count; i++)
		issued += process->comms[i].counts.issued;
	return issued;
}

static void put_process(struct json *json, const struct job *job, size_t index)
{
	const struct recording_process *process = job->recording->processes[index];
	const struct job_rank *rank =
		job->rank_count > 0 ? &job->ranks[job->process_rank[index]] : NULL;

	json_object(json);
	json_put_known_signed(json, "job_index", rank != NULL, rank ? rank->group : 0);
	json_put_natural_or_null(json, "rank", rank ? rank->rank : -1);
	json_put_string(json, "label", rank ? rank->label : NULL);
	json_put_natural_or_null(json, "local_rank", process->local_rank);
	json_put_text_or_null(json, "host", process->host);
	json_put_natural_or_null(json, "pid", process->pid);
	json_put_natural_or_null(json, "gpu", rank ? rank->gpu : -1);
	json_put_text_or_null(json, "gpu_uuid", rank ? rank->gpu_uuid : "");
	json_put_string(json, "state", recording_life_name(process->life));
	json_put_text_or_null(json, "mode", process->mode);
	json_put_known_signed(json, "interface", process->interface > 0, process->interface);
	json_put_unsigned(json, "issued", issued_by(process));
	json_put_unsigned(json, "recorded", process->recorded);
	put_losses(json, process);
	json_end(json);
}

static void put_processes(struct json *json, const struct job *job)
{
	json_put_array(json, "processes");
	for (size_t i = 0; job->recording && i < job->recording->count; i++)
		put_process(json, job, i);
	json_end(json);
}

/* ---- communicators ---------------------------------------------------------------------------- */

/* The point added by the last scan; NULL if it was the first scan of this communicator. */
static const struct live_point *newest_point(const struct live *live,
					     const struct live_history *history)
{
	const struct live_point *point;

	if (history->count == 0)
		return NULL;
	point = live_point(history, history->count - 1);
	return point->wall_ns == live->wall_ns ? point : NULL;
}

static void put_point(struct json *json, const struct live_point *point)
{
	double rate = point ? (double)point->operations_per_s : NAN;

	json_put_double(json, "operations_per_s", round(rate * 100) / 100);
	put_rate(json, "busbw", point ? (double)point->busbw : NAN);
	put_rate(json, "algbw", point ? (double)point->algbw : NAN);
	put_share(json, "busy_share", point ? (double)point->busy_share : NAN);
	put_share(json, "wait_share", point ? (double)point->wait_share : NAN);
}

static void put_sums(struct json *json, const struct live_sums *sums)
{
	json_put_unsigned(json, "operations", sums->operations);
	json_put_unsigned(json, "timed", sums->timed);
	json_put_unsigned(json, "not_timed", sums->not_timed);
	json_put_unsigned(json, "bytes", sums->bytes);
}

static void put_wait(struct json *json, const struct flight_wait *wait, uint64_t now_ns)
{
	char words[FLIGHT_WORDS], channels[FLIGHT_CHANNELS_TEXT];

	json_object(json);
	json_put_string(json, "reason", flight_reason_name(wait->reason));
	json_put_signed(json, "peer", wait->peer);
	json_put_string(json, "channels", flight_words_channels(wait->channels, channels));
	json_put_unsigned(json, "waiting_ns",
			  now_ns > wait->since_ns ? now_ns - wait->since_ns : 0);
	json_put_unsigned(json, "steps_done", wait->steps_done);
	json_put_unsigned(json, "steps", wait->steps);
	json_put_string(json, "text", flight_words_wait(wait, words));
	json_end(json);
}

static void put_oldest(struct json *json, const struct live *live, uint32_t index)
{
	const struct recording_process *process =
		live->job.recording->processes[live->job.seats[index].process];
	const struct live_seat *seat = &live->seats[index];
	const struct recording_flight *flight = seat->oldest;
	const struct op_record *op = &flight->op;
	uint64_t now_ns = flight_since_ns(flight) + seat->oldest_age_ns;
	char words[FLIGHT_WORDS], absent[120] = "";

	live_say_absent(absent, sizeof(absent), live, index);
	json_put_object(json, "oldest");
	json_put_string(json, "function", recording_name(process, OP_NAMES_FUNCTION, op->function));
	json_put_string(json, "text", flight_words_operation(process, flight, words));
	json_put_unsigned(json, "number", op->number);
	json_put_known(json, "match", op->match > 0, op->match);
	json_put_string(json, "state", op_state_name(op->state));
	json_put_unsigned(json, "age_ns", seat->oldest_age_ns);
	json_put_known(json, "bytes", op->bytes != OP_BYTES_UNKNOWN, op->bytes);
	json_put_text_or_null(json, "kernel", flight_words_kernel(process, flight, words));
	json_put_text_or_null(json, "absent", absent);
	json_put_array(json, "waits");
	for (uint32_t i = 0; i < seat->wait_count && i < LIVE_WAITS_MAX; i++)
		put_wait(json, &seat->waits[i], now_ns);
	json_end(json);
	json_end(json);
}

static void put_member(struct json *json, const struct live *live, uint32_t index)
{
	const struct job_seat *seat = &live->job.seats[index];
	const struct live_seat *of = &live->seats[index];
	const struct job_rank *rank = &live->job.ranks[seat->rank];

	json_object(json);
	json_put_natural_or_null(json, "rank", seat->comm_rank);
	json_put_natural_or_null(json, "global_rank", rank->rank);
	json_put_string(json, "label", rank->label);
	json_put_unsigned(json, "process_index", seat->process);
	put_sums(json, &of->sums);
	put_point(json, newest_point(live, &of->history));
	json_put_known(json, "wait_ns", of->knows_wait, of->wait_ns);
	json_put_unsigned(json, "in_flight", of->in_flight);
	json_put_unsigned(json, "still_ns", of->still_ns);
	json_put_bool(json, "is_behind", of->is_behind);
	json_put_bool(json, "is_over", of->is_over);
	json_put_string(json, "state", live_state_name(live_state(live, index)));
	if (of->oldest)
		put_oldest(json, live, index);
	json_end(json);
}

static bool is_finalized(const struct live *live, const struct job_comm *comm)
{
	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct recording_comm *of = live->seats[comm->seats[i]].comm;

		if (of == NULL || !(of->info.flags & COMM_FLAG_FINALIZED))
			return false;
	}
	return comm->seat_count > 0;
}

/* The current straggler, by its rank in the communicator. */
static void put_straggler(struct json *json, const struct live *live, const struct live_comm *comm)
{
	const struct job_seat *seat =
		comm->straggler < live->job.seat_count ? &live->job.seats[comm->straggler] : NULL;

	json_put_natural_or_null(json, "straggler", seat ? seat->comm_rank : -1);
	put_share(json, "straggler_share", seat ? comm->straggler_share : NAN);
}

static void put_comm(struct json *json, const struct live *live, uint32_t index)
{
	const struct job_comm *comm = &live->job.comms[index];
	const struct live_comm *of = &live->comms[index];
	uint64_t in_flight = 0, oldest_age_ns = 0;
	bool knows_wait = false;
	char key[LIVE_JSON_KEY];

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		knows_wait |= seat->knows_wait;
		in_flight += seat->in_flight;
		if (seat->oldest_age_ns > oldest_age_ns)
			oldest_age_ns = seat->oldest_age_ns;
	}
	json_object(json);
	json_put_string(json, "key", live_json_key(live, index, key));
	comm_json_put_identity(json, comm);
	json_put_known(json, "user_tag", of->user_tag != 0, of->user_tag);
	json_put_bool(json, "is_finalized", is_finalized(live, comm));
	put_sums(json, &of->sums);
	put_point(json, newest_point(live, &of->history));
	json_put_known(json, "wait_ns", knows_wait, of->wait_ns);
	put_straggler(json, live, of);
	json_put_unsigned(json, "last_issued", of->last_issued);
	json_put_unsigned(json, "last_done", of->last_done);
	json_put_unsigned(json, "in_flight", in_flight);
	json_put_unsigned(json, "oldest_age_ns", oldest_age_ns);
	json_put_unsigned(json, "hang_ns", live_hang_ns(live, comm->group));
	json_put_array(json, "members");
	for (uint32_t i = 0; i < comm->seat_count; i++)
		put_member(json, live, comm->seats[i]);
	json_end(json);
	json_end(json);
}

/* ---- notices ---------------------------------------------------------------------------------- */

/* The group of a notice, UINT32_MAX: of no job. */
static uint32_t notice_group(const struct job *job, const struct live_notice *notice)
{
	if (notice->comm < job->comm_count)
		return job->comms[notice->comm].group;
	if (notice->seat < job->seat_count && job->seats[notice->seat].rank < job->rank_count)
		return job->ranks[job->seats[notice->seat].rank].group;
	return UINT32_MAX;
}

static void put_notice(struct json *json, const struct live *live, const struct live_notice *notice)
{
	const struct job *job = &live->job;
	const struct job_seat *seat =
		notice->seat < job->seat_count ? &job->seats[notice->seat] : NULL;
	const struct job_rank *rank = seat ? &job->ranks[seat->rank] : NULL;
	uint32_t group = notice_group(job, notice);
	bool has_comm = notice->comm < job->comm_count;
	char key[LIVE_JSON_KEY];

	json_object(json);
	json_put_string(json, "kind", live_notice_name(notice->kind));
	json_put_text_or_null(json, "job", group != UINT32_MAX ? job->groups[group].name : "");
	json_put_string(json, "title", notice->title);
	json_put_text_or_null(json, "text", notice->text);
	json_put_text_or_null(json, "hint", notice->hint);
	json_put_unsigned(json, "since_ms", notice->since_wall_ns / 1000000);
	json_put_unsigned(json, "first_ms", notice->first_wall_ns / 1000000);
	json_put_string(json, "comm", has_comm ? live_json_key(live, notice->comm, key) : NULL);
	json_put_string(json, "comm_label", has_comm ? job->comms[notice->comm].label : NULL);
	json_put_natural_or_null(json, "rank", rank ? rank->rank : -1);
	json_put_string(json, "rank_label", rank ? rank->label : NULL);
	json_put_natural_or_null(json, "comm_rank", seat ? seat->comm_rank : -1);
	json_end(json);
}

static void put_limits(struct json *json, const struct live_limits *limits)
{
	json_put_object(json, "limits");
	json_put_unsigned(json, "hang_ns", limits->hang_ns);
	json_put_unsigned(json, "lag_ns", limits->lag_ns);
	json_put_double(json, "straggler_share", limits->straggler_share);
	json_put_unsigned(json, "straggler_ns", limits->straggler_ns);
	json_end(json);
}

/* What the agent does not follow, by user. */
static void put_left_out(struct json *json, const struct recording *recording)
{
	json_put_array(json, "left_out");
	for (size_t i = 0; recording && i < recording->left_out_count && i < LIVE_JSON_USERS; i++) {
		json_object(json);
		json_put_unsigned(json, "uid", recording->left_out[i].owner);
		json_put_unsigned(json, "processes", recording->left_out[i].processes);
		json_put_unsigned(json, "directories", recording->left_out[i].directories);
		json_put_bool(json, "silent", recording->left_out[i].is_silent);
		json_end(json);
	}
	json_end(json);
	json_put_unsigned(json, "left_out_users", recording ? recording->left_out_count : 0);
}

void live_json_now(struct sink *sink, const struct live *live, const char *host)
{
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-now");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "ringside", RINGSIDE_VERSION);
	json_put_string(&json, "host", host);
	json_put_unsigned(&json, "looks", live->looks);
	json_put_unsigned(&json, "time_ms", live->wall_ns / 1000000);
	json_put_unsigned(&json, "elapsed_ns", live->elapsed_ns);
	put_limits(&json, &live->limits);
	json_put_array(&json, "notices");
	for (size_t i = 0; i < live->notice_count; i++)
		put_notice(&json, live, &live->notices[i]);
	json_end(&json);
	json_put_unsigned(&json, "notices_left_out", live->notices_left_out);
	put_left_out(&json, live->job.recording);
	json_put_array(&json, "verdicts");
	for (size_t i = 0; i < live->verdicts.count; i++)
		verdict_json_one(&json, &live->verdicts.list[i]);
	json_end(&json);
	put_jobs(&json, live);
	put_processes(&json, &live->job);
	json_put_array(&json, "communicators");
	for (size_t i = 0; i < live->job.comm_count; i++)
		put_comm(&json, live, (uint32_t)i);
	json_end(&json);
	json_end(&json);
	json_line(&json);
}

/* ---- the summary ------------------------------------------------------------------------------ */

/* What a hub needs to know about a job on this node. */
struct job_summary {
	uint32_t alive;
	uint64_t stuck_ns;
	uint64_t operations;
	uint64_t wait_ns;
	double wait_share; /* total of those that know it */
	uint32_t waiters;
	bool is_stuck;
	bool is_slow;
};

/* Time since any rank here called or finished an operation of this communicator; 0 if none is in flight. */
static uint64_t stuck_ns_of(const struct live *live, const struct job_comm *comm)
{
	uint64_t least_ns = UINT64_MAX;
	bool is_in_flight = false;

	for (uint32_t i = 0; i < comm->seat_count; i++) {
		const struct live_seat *seat = &live->seats[comm->seats[i]];

		if (seat->is_over)
			continue;
		is_in_flight |= seat->in_flight > 0;
		if (seat->still_ns < least_ns)
			least_ns = seat->still_ns;
	}
	return is_in_flight ? least_ns : 0;
}

/* Communicators of one process may wait at the same time, so its share is at most 1. */
static void add_process(struct job_summary *summary, const struct live *live, size_t process)
{
	const struct job *job = &live->job;
	uint64_t grown_ns = 0;
	bool has_wait = false;

	for (uint32_t i = job->first_seat[process]; i < job->first_seat[process + 1]; i++) {
		const struct live_seat *seat = &live->seats[i];

		summary->operations += seat->sums.operations;
		summary->wait_ns += seat->knows_wait ? seat->wait_ns : 0;
		grown_ns += seat->has_wait ? seat->wait_grown_ns : 0;
		has_wait |= seat->has_wait;
	}
	summary->alive += job->recording->processes[process]->life == RECORDING_ALIVE ||
			  job->recording->processes[process]->life == RECORDING_UNKNOWN;
	if (!has_wait || live->elapsed_ns == 0)
		return;
	summary->waiters++;
	summary->wait_share += fmin(1, (double)grown_ns / (double)live->elapsed_ns);
}

static struct job_summary summarize(const struct live *live, uint32_t group)
{
	const struct job *job = &live->job;
	struct job_summary summary = { 0 };

	for (size_t i = 0; job->recording && i < job->recording->count; i++)
		if (job->ranks[job->process_rank[i]].group == group)
			add_process(&summary, live, i);
	for (size_t i = 0; i < job->comm_count; i++) {
		uint64_t stuck_ns =
			job->comms[i].group == group ? stuck_ns_of(live, &job->comms[i]) : 0;

		summary.stuck_ns = stuck_ns > summary.stuck_ns ? stuck_ns : summary.stuck_ns;
	}
	summary.is_stuck = summary.stuck_ns >= live_hang_ns(live, group);
	return summary;
}

/* Each class or kind once. */
static void put_verdict_classes(struct json *json, const struct live *live, const char *name,
				struct job_summary *summary)
{
	uint64_t written = 0;

	json_put_array(json, "verdicts");
	for (size_t i = 0; i < live->verdicts.count; i++) {
		const struct verdict *verdict = &live->verdicts.list[i];

		if (strcmp(verdict->job, name) != 0 || written >> verdict->class & 1)
			continue;
		written |= UINT64_C(1) << verdict->class;
		summary->is_stuck |=
			verdict_is_hang(verdict->class) && verdict->severity == VERDICT_ERROR;
		summary->is_slow |=
			verdict_is_slow(verdict->class) && verdict->severity != VERDICT_NOTE;
		json_string(json, verdict_class_name(verdict->class));
	}
	json_end(json);
}

static void put_notice_kinds(struct json *json, const struct live *live, uint32_t group,
			     struct job_summary *summary)
{
	uint64_t written = 0;

	json_put_array(json, "notices");
	for (size_t i = 0; i < live->notice_count; i++) {
		const struct live_notice *notice = &live->notices[i];

		if (notice_group(&live->job, notice) != group || written >> notice->kind & 1)
			continue;
		written |= UINT64_C(1) << notice->kind;
		summary->is_slow |= notice->kind == LIVE_STRAGGLER;
		json_string(json, live_notice_name(notice->kind));
	}
	json_end(json);
}

static void put_job_summary(struct json *json, const struct live *live, uint32_t index)
{
	const struct job_group *group = &live->job.groups[index];
	struct job_summary summary = summarize(live, index);

	json_object(json);
	json_put_text_or_null(json, "name", group->name);
	json_put_natural_or_null(json, "owner", group->owner);
	json_put_known_signed(json, "world_size", group->world_size > 0, group->world_size);
	json_put_unsigned(json, "ranks", group->known_ranks);
	json_put_unsigned(json, "processes", group->process_count);
	json_put_unsigned(json, "processes_alive", summary.alive);
	json_put_unsigned(json, "operations", summary.operations);
	json_put_unsigned(json, "stuck_ns", summary.stuck_ns);
	json_put_unsigned(json, "hang_after_ns", group->hang_after_ns);
	put_share(json, "wait_share",
		  summary.waiters > 0 ? summary.wait_share / summary.waiters : NAN);
	json_put_unsigned(json, "wait_ns", summary.wait_ns);
	put_verdict_classes(json, live, group->name, &summary);
	put_notice_kinds(json, live, index, &summary);
	json_put_string(json, "state",
			summary.alive == 0 ? "ended"
			: summary.is_stuck ? "stuck"
			: summary.is_slow  ? "slow"
					   : "running");
	json_end(json);
}

/* If there are too many jobs, those of one user are at most half of them. */
static bool has_its_share(const struct job *job, uint32_t group)
{
	size_t before = 0;

	for (uint32_t i = 0; i < group && job->group_count > LIVE_JSON_SUMMARY_JOBS; i++)
		before += job->groups[i].owner == job->groups[group].owner &&
			  !job->groups[i].is_earlier_run;
	return before >= LIVE_JSON_SUMMARY_JOBS / 2;
}

void live_json_summary(struct sink *sink, const struct live *live, const char *host)
{
	size_t count = 0, left_out = 0;
	struct json json;

	json_init(&json, sink);
	json_object(&json);
	json_put_string(&json, "format", "ringside-summary");
	json_put_unsigned(&json, "version", 1);
	json_put_string(&json, "ringside", RINGSIDE_VERSION);
	json_put_string(&json, "host", host);
	json_put_unsigned(&json, "time_ms", live->wall_ns / 1000000);
	json_put_array(&json, "jobs");
	for (uint32_t i = 0; i < live->job.group_count; i++) {
		/* A job that was started again is its last run. */
		if (live->job.groups[i].is_earlier_run)
			continue;
		if (count < LIVE_JSON_SUMMARY_JOBS && !has_its_share(&live->job, i)) {
			put_job_summary(&json, live, i);
			count++;
		} else {
			left_out++;
		}
	}
	json_end(&json);
	json_put_unsigned(&json, "jobs_left_out", left_out);
	json_end(&json);
	json_line(&json);
}
