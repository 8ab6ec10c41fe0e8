/*
 * Histories are mostly numbers, so these are short and quick to write: four digits that count and a power of
 * ten, "1234e8". Times are milliseconds after the answer's from_ms.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/text.h"
#include "view/json.h"
#include "view/live_json.h"

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

static float value_of(const struct live_point *point, size_t which)
{
	switch (which) {
	case 0:
		return point->operations_per_s;
	case 1:
		return point->busbw;
	case 2:
		return point->algbw;
	case 3:
		return point->busy_share;
	default:
		return point->wait_share;
	}
}

/* The first point that is newer than `after_ns`: points come in the order of time, unless the wall clock was
 * set back, and then those before that are of no more use. */
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
	static const char *const names[] = { "operations_per_s", "busbw", "algbw", "busy", "wait" };
	uint32_t first = first_after(history, after_ns);

	json_put_array(json, "time_ms");
	for (uint32_t i = first; i < history->count; i++) {
		uint64_t ms = live_point(history, i)->wall_ns / 1000000;

		json_unsigned(json, ms > from_ms ? ms - from_ms : 0);
	}
	json_end(json);
	for (size_t which = 0; which < sizeof(names) / sizeof(names[0]); which++) {
		json_put_array(json, names[which]);
		for (uint32_t i = first; i < history->count; i++) {
			if (i > first)
				sink_byte(json->sink, ',');
			write_short(json->sink, value_of(live_point(history, i), which));
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
		if (seat->comm_rank >= 0)
			json_put_signed(json, "rank", seat->comm_rank);
		else
			json_put_null(json, "rank");
		put_history(json, &live->seats[comm->seats[i]].history, after_ns, from_ms);
		json_end(json);
	}
	json_end(json);
}

/* The oldest moment in the answer: times are counted from it. */
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
