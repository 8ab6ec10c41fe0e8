/* Filters: lists of ranks, names and limits of time are parsed, and rows are tested. */
#include "analysis/filter.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/clock.h"
#include "common/text.h"

static bool parse_rank(const char **at, int64_t *rank)
{
	uint64_t value = 0;

	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++) {
		value = value * 10 + (uint64_t)(**at - '0');
		if (value > INT32_MAX)
			return false;
	}
	*rank = (int64_t)value;
	return true;
}

enum status filter_add_ranks(struct filter *filter, const char *text)
{
	for (const char *at = text;; at++) {
		struct filter_range range;

		if (!parse_rank(&at, &range.first))
			return ERR_FORMAT;
		range.last = range.first;
		if (*at == '-') {
			at++;
			if (!parse_rank(&at, &range.last) || range.last < range.first)
				return ERR_FORMAT;
		}
		if (filter->range_count == FILTER_RANGES_MAX)
			return ERR_NO_SPACE;
		filter->ranks[filter->range_count++] = range;
		if (*at == '\0')
			return OK;
		if (*at != ',')
			return ERR_FORMAT;
	}
}

/* "12.5" in units of unit_ns; *end is after it. */
static bool parse_decimal(const char *text, uint64_t unit_ns, uint64_t *ns, const char **end)
{
	uint64_t whole = 0, part = 0, scale = unit_ns;
	const char *at = text;

	if (!isdigit((unsigned char)*at))
		return false;
	for (; isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(whole, UINT64_C(10), &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*at - '0'), &whole))
			return false;
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++) {
			scale /= 10;
			part += scale * (uint64_t)(*at - '0');
		}
	if (__builtin_mul_overflow(whole, unit_ns, &whole) ||
	    __builtin_add_overflow(whole, part, ns))
		return false;
	*end = at;
	return true;
}

static bool parse_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "ms", SECOND_NS / 1000 },
		{ "us", SECOND_NS / 1000000 },
		{ "ns", 1 },
		{ "s", SECOND_NS },
		{ "m", 60 * SECOND_NS },
		{ "min", 60 * SECOND_NS },
		{ "h", 3600 * SECOND_NS },
		{ "d", 86400 * SECOND_NS },
		{ "", SECOND_NS },
	};
	size_t digits = strspn(text, "0123456789.");
	const char *end;

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(text + digits, units[i].name) == 0)
			return parse_decimal(text, units[i].ns, ns, &end) && end == text + digits;
	return false;
}

/* "14:03:10.5" or "14:03"; *end is after it. */
static bool parse_clock(const char *text, uint64_t *ns, const char **end)
{
	unsigned int hours, minutes;
	uint64_t seconds_ns = 0;
	int used = 0;

	if (sscanf(text, "%2u:%2u%n", &hours, &minutes, &used) != 2 || used == 0 || hours > 23 ||
	    minutes > 59)
		return false;
	*end = text + used;
	if (**end == ':' && !parse_decimal(*end + 1, SECOND_NS, &seconds_ns, end))
		return false;
	if (seconds_ns > 60 * SECOND_NS)
		return false;
	*ns = (hours * UINT64_C(3600) + minutes * UINT64_C(60)) * SECOND_NS + seconds_ns;
	return true;
}

static bool parse_date(const char *text, uint64_t *ns)
{
	unsigned int year, month, day;
	uint64_t clock_ns = 0;
	struct tm date = { 0 };
	const char *end;
	int used = 0;

	if (sscanf(text, "%4u-%2u-%2u%n", &year, &month, &day, &used) != 3 || used == 0 ||
	    year < 1970 || month < 1 || month > 12 || day < 1 || day > 31)
		return false;
	end = text + used;
	if ((*end == 'T' || *end == ' ') && !parse_clock(end + 1, &clock_ns, &end))
		return false;
	if (*end == 'Z')
		end++;
	date.tm_year = (int)year - 1900;
	date.tm_mon = (int)month - 1;
	date.tm_mday = (int)day;
	*ns = (uint64_t)timegm(&date) * SECOND_NS + clock_ns;
	/* timegm() makes the 2nd of March of the 30th of February. */
	return *end == '\0' && date.tm_mday == (int)day;
}

enum status filter_parse_time(struct filter_time *time, const char *text)
{
	struct filter_time found = { .base = FILTER_NO_TIME };
	const char *end;

	if (text[0] == '@') {
		if (parse_decimal(text + 1, SECOND_NS, &found.ns, &end) && *end == '\0')
			found.base = FILTER_WALL;
	} else if (text[0] == '-') {
		if (parse_duration(text + 1, &found.ns))
			found.base = FILTER_FROM_END;
	} else if (parse_date(text, &found.ns)) {
		found.base = FILTER_WALL;
	} else if (parse_clock(text, &found.ns, &end) && (*end == '\0' || strcmp(end, "Z") == 0)) {
		found.base = FILTER_TIME_OF_DAY;
	} else if (parse_duration(text[0] == '+' ? text + 1 : text, &found.ns)) {
		found.base = FILTER_FROM_START;
	}
	if (found.base == FILTER_NO_TIME)
		return ERR_FORMAT;
	*time = found;
	return OK;
}

enum status filter_check_function(const struct job *job, const char *name)
{
	for (unsigned int i = 0; i < OP_FUNCTIONS; i++)
		if (strcasecmp(op_function_name((uint8_t)i), name) == 0)
			return OK;
	for (uint32_t i = 0; i < job->name_count; i++)
		if (strcasecmp(job->names[i], name) == 0)
			return OK;
	return ERR_FORMAT;
}

bool filter_has_rank(const struct filter *filter, int64_t rank)
{
	if (filter->range_count == 0)
		return true;
	for (size_t i = 0; i < filter->range_count; i++)
		if (rank >= filter->ranks[i].first && rank <= filter->ranks[i].last)
			return true;
	return false;
}

static bool is_hash_prefix(const char *text, uint64_t hash)
{
	char digits[24];

	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		text += 2;
	if (text[0] == '\0' || hash == 0)
		return false;
	text_format(digits, sizeof(digits), "%016" PRIx64, hash);
	return strncasecmp(digits, text, strlen(text)) == 0;
}

bool filter_has_comm(const struct filter *filter, const struct job_comm *comm)
{
	if (filter->comm_count == 0)
		return true;
	for (size_t i = 0; i < filter->comm_count; i++)
		if (strcmp(filter->comms[i], comm->name) == 0 ||
		    strcmp(filter->comms[i], comm->label) == 0 ||
		    is_hash_prefix(filter->comms[i], comm->hash))
			return true;
	return false;
}

bool filter_has_function(const struct filter *filter, const struct job *job, uint8_t function)
{
	const char *name = job_name(job, OP_NAMES_FUNCTION, function);

	if (filter->function_count == 0)
		return true;
	for (size_t i = 0; i < filter->function_count; i++)
		if (strcasecmp(filter->functions[i], name) == 0)
			return true;
	return false;
}

/* Compares the times of operations with the limits of a filter, and selects the rows of a process. */

/* ---- limits ---------------------------------------------------------------------------------- */

/* Wall time of the job's first and last activity, by the hosts' own clocks. */
static void wall_span(const struct recording *recording, uint64_t *first_ns, uint64_t *last_ns)
{
	*first_ns = UINT64_MAX;
	*last_ns = 0;
	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];
		uint64_t wall_ns;

		if (process->anchor_count == 0)
			continue;
		if (process->anchors[0].wall_ns < *first_ns)
			*first_ns = process->anchors[0].wall_ns;
		if (process->anchors[process->anchor_count - 1].wall_ns > *last_ns)
			*last_ns = process->anchors[process->anchor_count - 1].wall_ns;
		for (size_t i = 0; i < process->comm_count; i++)
			if (recording_wall_ns(process, process->comms[i].counts.last_done_ns,
					      &wall_ns) &&
			    wall_ns > *last_ns)
				*last_ns = wall_ns;
	}
}

#define DAY_NS (UINT64_C(86400) * 1000000000)

uint64_t filter_time_of_day(uint64_t ns, uint64_t first_ns, uint64_t last_ns)
{
	uint64_t last = last_ns - last_ns % DAY_NS + ns;

	if (last > last_ns)
		last -= DAY_NS;
	return last >= first_ns && last <= last_ns ? last : first_ns - first_ns % DAY_NS + ns;
}

static uint64_t limit_wall(const struct filter_time *time, uint64_t first_ns, uint64_t last_ns)
{
	switch (time->base) {
	case FILTER_FROM_START:
		return first_ns == UINT64_MAX ? 0 : first_ns + time->ns;
	case FILTER_FROM_END:
		return last_ns > time->ns ? last_ns - time->ns : 1;
	case FILTER_WALL:
		return time->ns;
	case FILTER_TIME_OF_DAY:
		return first_ns == UINT64_MAX ? 0 : filter_time_of_day(time->ns, first_ns, last_ns);
	default:
		return 0;
	}
}

void filter_wall_limits(const struct filter *filter, const struct recording *recording,
			uint64_t *since_ns, uint64_t *until_ns)
{
	uint64_t first_ns, last_ns;

	wall_span(recording, &first_ns, &last_ns);
	*since_ns = limit_wall(&filter->since, first_ns, last_ns);
	*until_ns = limit_wall(&filter->until, first_ns, last_ns);
	/* From 23:50 until 00:10: of the day before. */
	if (filter->since.base == FILTER_TIME_OF_DAY && filter->until.base == FILTER_TIME_OF_DAY &&
	    *since_ns > *until_ns && *until_ns != 0 && *since_ns - DAY_NS < *until_ns)
		*since_ns -= DAY_NS;
}

void filter_clock_limits(const struct recording_process *process, uint64_t since_wall_ns,
			 uint64_t until_wall_ns, uint64_t *since_ns, uint64_t *until_ns)
{
	*since_ns = 0;
	*until_ns = UINT64_MAX;
	if (since_wall_ns != 0)
		recording_clock_ns(process, since_wall_ns, since_ns);
	if (until_wall_ns != 0)
		recording_clock_ns(process, until_wall_ns, until_ns);
}

/* ---- rows ------------------------------------------------------------------------------------ */

bool filter_is_empty(const struct filter *filter)
{
	return filter->comm_count + filter->function_count + filter->range_count == 0 &&
	       filter->since.base == FILTER_NO_TIME && filter->until.base == FILTER_NO_TIME &&
	       !filter->has_tag;
}

bool filter_rows_start(struct filter_rows *rows, const struct filter *filter, const struct job *job,
		       uint32_t process)
{
	uint64_t since_ns, until_ns;
	bool has_rank = false;

	*rows = (struct filter_rows){ .filter = filter, .job = job, .process = process };
	filter_wall_limits(filter, job->recording, &since_ns, &until_ns);
	filter_clock_limits(job->recording->processes[process], since_ns, until_ns, &rows->since_ns,
			    &rows->until_ns);
	for (size_t r = 0; r < job->rank_count; r++)
		has_rank |= job->ranks[r].process == process &&
			    filter_has_rank(filter, job->ranks[r].rank);
	return has_rank;
}

/* Checks communicator, function and rank, for all operations with this OP_WORD_KIND. */
static bool is_kind_passing(const struct filter_rows *rows, uint64_t kind)
{
	const struct job *job = rows->job;
	const struct job_seat *seat = job_seat(job, rows->process, op_kind_comm(kind));
	uint8_t function = job_name_number(job, rows->process, (uint8_t)op_kind_names(kind));

	return seat != NULL && filter_has_rank(rows->filter, job->ranks[seat->rank].rank) &&
	       filter_has_comm(rows->filter, &job->comms[seat->comm]) &&
	       filter_has_function(rows->filter, job, function);
}

bool filter_rows_has_comm(const struct filter_rows *rows, uint32_t comm)
{
	const struct job *job = rows->job;
	const struct job_seat *seat = comm != 0 ? job_seat(job, rows->process, comm) : NULL;

	if (seat == NULL)
		return rows->filter->comm_count == 0;
	return filter_has_rank(rows->filter, job->ranks[seat->rank].rank) &&
	       filter_has_comm(rows->filter, &job->comms[seat->comm]);
}

bool filter_rows_has_op(const struct filter_rows *rows, const struct op_record *op)
{
	uint8_t function = job_name_number(rows->job, rows->process, op->function);

	return filter_rows_has_comm(rows, op->comm) &&
	       filter_has_function(rows->filter, rows->job, function) &&
	       (!rows->filter->has_tag || op->user_tag == rows->filter->tag) &&
	       filter_is_within(rows->since_ns, rows->until_ns, op->done_ns, op->issue_ns);
}

/* Time span of a process on the recorder's clock: from its start to its last record. */
static void process_span(const struct recording_process *process, uint64_t *first_ns,
			 uint64_t *last_ns)
{
	*first_ns = process->anchor_count > 0 ? process->anchors[0].clock_ns : 0;
	*last_ns = *first_ns;
	if (process->anchor_count > 0)
		*last_ns = process->anchors[process->anchor_count - 1].clock_ns;
	for (size_t i = 0; i < process->comm_count; i++) {
		const struct recording_comm *comm = &process->comms[i];

		if (comm->counts.last_done_ns > *last_ns)
			*last_ns = comm->counts.last_done_ns;
		if (comm->counts.last_issue_ns > *last_ns)
			*last_ns = comm->counts.last_issue_ns;
	}
}

bool filter_has_process(const struct filter *filter, const struct job *job, uint32_t process)
{
	bool has_comm = filter->comm_count == 0;
	uint64_t first_ns, last_ns;
	struct filter_rows rows;

	if (!filter_rows_start(&rows, filter, job, process))
		return false;
	for (uint32_t i = job->first_seat[process]; i < job->first_seat[process + 1]; i++)
		has_comm |= filter_has_comm(filter, &job->comms[job->seats[i].comm]);
	process_span(job->recording->processes[process], &first_ns, &last_ns);
	/* A process without known times passes, like an operation without times. */
	return has_comm && (last_ns == 0 || (last_ns >= rows.since_ns && first_ns < rows.until_ns));
}

uint32_t filter_rows_choose(struct filter_rows *rows, const struct op_batch *batch,
			    uint32_t *places)
{
	const uint64_t *kinds = batch->column[OP_WORD_KIND],
		       *tags = batch->column[OP_WORD_USER_TAG];
	uint32_t count = 0;

	for (uint32_t i = 0; i < batch->rows; i++) {
		if (kinds[i] != rows->last_kind) {
			rows->last_kind = kinds[i];
			rows->is_last_passing = is_kind_passing(rows, kinds[i]);
		}
		if (rows->is_last_passing &&
		    (!rows->filter->has_tag || tags[i] == rows->filter->tag) &&
		    filter_is_within(rows->since_ns, rows->until_ns, batch->column[OP_WORD_DONE][i],
				     batch->column[OP_WORD_ISSUE][i]))
			places[count++] = i;
	}
	return count;
}
