#include "programs/cli/trace_window.h"

#include <errno.h>
#include <string.h>

#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "view/viewer_find.h"

#define SECOND_NS UINT64_C(1000000000)
#define DAY_NS (24 * 3600 * SECOND_NS)

int trace_window_width(struct trace_window *window, const struct cli_page *page, const char *text)
{
	struct filter_time time = { FILTER_NO_TIME, 0 };

	if (filter_parse_time(&time, text) != OK || time.base != FILTER_FROM_START || time.ns == 0)
		return cli_usage(page, "--window '%s' is no duration like 2s or 500ms", text);
	window->width_ns = time.ns;
	return 0;
}

static uint64_t common_ns(const struct viewer_plan *plan, const struct filter_time *time)
{
	switch (time->base) {
	case FILTER_FROM_START:
		return plan->first_ns + time->ns;
	case FILTER_FROM_END:
		return plan->last_ns > time->ns ? plan->last_ns - time->ns : 0;
	case FILTER_TIME_OF_DAY:
		return plan->first_ns - plan->first_ns % DAY_NS + time->ns;
	case FILTER_WALL:
		return time->ns;
	case FILTER_NO_TIME:
		break;
	}
	return 0;
}

static bool is_name(const struct viewer_plan *plan, const char *text)
{
	for (size_t i = 0; i < plan->job->comm_count; i++)
		if (strcmp(plan->job->comms[i].name, text) == 0 ||
		    strcmp(plan->job->comms[i].label, text) == 0)
			return true;
	return false;
}

static bool is_comm(const struct viewer_plan *plan, const char *text)
{
	struct filter filter = { .comms = { text }, .comm_count = 1 };

	for (size_t i = 0; i < plan->job->comm_count; i++)
		if (filter_has_comm(&filter, &plan->job->comms[i]))
			return true;
	return false;
}

/*
 * COMM:NUMBER, RANK:NUMBER or RANK:COMM:NUMBER. Names may hold colons and look like ranks, and the
 * first digit of a hash looks like a rank, too: a name comes first, then a rank, then a hash.
 */
static bool parse_around(const struct viewer_plan *plan, char *text, struct viewer_find *find)
{
	char *number = strrchr(text, ':');
	char *comm = strchr(text, ':');
	int64_t value;

	if (number == NULL || text_number(number + 1, 1, INT64_MAX, &value) != OK)
		return false;
	find->number = (uint64_t)value;
	find->rank = -1;
	*number = '\0';
	if (!is_name(plan, text)) {
		if (comm == number && text_number(text, 0, INT32_MAX, &find->rank) == OK)
			return true;
		if (comm != number) {
			*comm = '\0';
			find->comm = comm + 1;
			return is_comm(plan, find->comm) &&
			       text_number(text, 0, INT32_MAX, &find->rank) == OK;
		}
	}
	find->comm = text;
	return is_comm(plan, text);
}

static int complain_of_many(const struct viewer_plan *plan, const struct viewer_find *find,
			    const char *around)
{
	char list[256] = "";
	size_t at = 0;

	for (size_t i = 0; i < find->comm_count && i < VIEWER_FIND_COMMS; i++) {
		const struct job_comm *comm = &plan->job->comms[find->comms[i]];

		text_format(list + at, sizeof(list) - at, "%s0x%016llx", i > 0 ? ", " : "",
			    (unsigned long long)comm->hash);
		at += strlen(list + at);
	}
	return cli_error("--around %s: %zu communicators have it (%s%s); say which by its hash, or "
			 "as RANK:COMM:NUMBER",
			 around, find->comm_count, list,
			 find->comm_count > VIEWER_FIND_COMMS ? ", ..." : "");
}

static int apply_around(const struct trace_window *window, struct viewer_plan *plan)
{
	uint64_t half_ns = (window->width_ns ? window->width_ns : SECOND_NS) / 2;
	struct viewer_find find = { .rank = -1 };
	char text[256];
	enum status status;

	if (!text_copy(text, sizeof(text), window->around) || !parse_around(plan, text, &find))
		return cli_error("--around '%s' is no operation of this recording: COMM:NUMBER (a "
				 "communicator's name or hash), RANK:NUMBER or RANK:COMM:NUMBER",
				 window->around);
	status = viewer_find(plan, &find);
	if (status != OK)
		return cli_error("cannot read: %s",
				 status == ERR_SYSTEM ? strerror(errno) : status_text(status));
	if (find.count == 0)
		return cli_error("--around %s: no such operation is recorded, or it has no time",
				 window->around);
	if (find.comm_count > 1)
		return complain_of_many(plan, &find, window->around);
	plan->from_ns = find.start_ns > half_ns ? find.start_ns - half_ns : 0;
	plan->to_ns = find.end_ns + half_ns;
	return 0;
}

int trace_window_apply(const struct trace_window *window, struct viewer_plan *plan)
{
	if (window->around)
		return apply_around(window, plan);
	if (window->since.base != FILTER_NO_TIME)
		plan->from_ns = common_ns(plan, &window->since);
	if (window->until.base != FILTER_NO_TIME)
		plan->to_ns = common_ns(plan, &window->until);
	if (window->width_ns == 0)
		return 0;
	/* From the time that was given; without one, the last of it. */
	if (window->since.base != FILTER_NO_TIME)
		plan->to_ns = plan->from_ns + window->width_ns;
	else if (window->until.base != FILTER_NO_TIME)
		plan->from_ns = plan->to_ns > window->width_ns ? plan->to_ns - window->width_ns : 0;
	else if (plan->last_ns > window->width_ns)
		plan->from_ns = plan->last_ns - window->width_ns;
	return 0;
}
