#include "programs/cli/report_filter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/tally.h"
#include "common/op.h"
#include "common/text.h"
#include "programs/cli/cli_errors.h"
#include "programs/cli/cli_memory.h"

enum { COMMS_LISTED = 5 };

void report_filter_init(struct report_filter *chosen)
{
	*chosen = (struct report_filter){ .by = 0 };
}

void report_filter_release(struct report_filter *chosen)
{
	for (size_t i = 0; i < FILTER_FUNCTIONS_MAX; i++)
		free(chosen->functions[i]);
	report_filter_init(chosen);
}

/* ---- options --------------------------------------------------------------------------------- */

static int take_by(struct report_filter *chosen, const struct cli_page *page, const char *value)
{
	const char *names[TALLY_BYS], *bad = value, *nearest;
	char word[32] = "", all[256] = "";
	size_t length;

	if (tally_by_parse(value, &chosen->by, &bad) == OK && chosen->by != 0)
		return 0;
	chosen->by = 0;
	length = strcspn(bad, ",");
	for (unsigned int i = 0; i < TALLY_BYS; i++)
		names[i] = tally_by_name(i);
	if (length < sizeof(word))
		memcpy(word, bad, length);
	nearest = cli_nearest(word, names, TALLY_BYS);
	if (nearest != NULL)
		return cli_usage(page, "--by: unknown word '%.*s', did you mean '%s'?", (int)length,
				 bad, nearest);
	for (unsigned int i = 0; i < TALLY_BYS; i++)
		text_format(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i > 0 ? ", " : "",
			    names[i]);
	return cli_usage(page, "--by: unknown word '%.*s'; allowed are %s", (int)length, bad, all);
}

static int take_comm(struct report_filter *chosen, const struct cli_page *page, const char *value)
{
	if (chosen->filter.comm_count == FILTER_COMMS_MAX)
		return cli_usage(page, "--comm: more than %d communicators", FILTER_COMMS_MAX);
	chosen->filter.comms[chosen->filter.comm_count++] = value;
	return 0;
}

static int take_functions(struct report_filter *chosen, const struct cli_page *page,
			  const char *value)
{
	struct filter *filter = &chosen->filter;

	for (;;) {
		size_t length = strcspn(value, ",");
		char *copy;

		if (length == 0)
			return cli_usage(page, "--op: a name is missing");
		if (filter->function_count == FILTER_FUNCTIONS_MAX)
			return cli_usage(page, "--op: more than %d operations",
					 FILTER_FUNCTIONS_MAX);
		copy = cli_realloc(NULL, length + 1);
		memcpy(copy, value, length);
		copy[length] = '\0';
		chosen->functions[filter->function_count] = copy;
		filter->functions[filter->function_count++] = copy;
		if (value[length] == '\0')
			return 0;
		value += length + 1;
	}
}

static int take_ranks(struct report_filter *chosen, const struct cli_page *page, const char *value)
{
	enum status status = filter_add_ranks(&chosen->filter, value);

	if (status == OK)
		return 0;
	if (status == ERR_NO_SPACE)
		return cli_usage(page, "--rank: more than %d ranges", FILTER_RANGES_MAX);
	return cli_usage(page, "--rank '%s' is no list of ranks like 0-7,12", value);
}

static int take_time(struct filter_time *time, const struct cli_page *page, const char *option,
		     const char *value)
{
	if (filter_parse_time(time, value) == OK)
		return 0;
	return cli_usage(page,
			 "--%s '%s' is no time like 30s, -30s, 14:03:10 or 2026-01-31T14:03:10Z",
			 option, value);
}

static int take_tag(struct report_filter *chosen, const struct cli_page *page, const char *value)
{
	char *end = NULL;

	errno = 0;
	chosen->filter.tag = strtoull(value, &end, 0);
	chosen->filter.has_tag = true;
	if (value[0] >= '0' && value[0] <= '9' && *end == '\0' && errno == 0)
		return 0;
	return cli_usage(page, "--tag '%s' is no whole number", value);
}

int report_filter_take(struct report_filter *chosen, const struct cli_page *page, int id,
		       const char *value)
{
	switch (id) {
	case REPORT_BY:
		return take_by(chosen, page, value);
	case REPORT_COMM:
		return take_comm(chosen, page, value);
	case REPORT_OP:
		return take_functions(chosen, page, value);
	case REPORT_RANK:
		return take_ranks(chosen, page, value);
	case REPORT_SINCE:
		return take_time(&chosen->filter.since, page, "since", value);
	case REPORT_UNTIL:
		return take_time(&chosen->filter.until, page, "until", value);
	default:
		return take_tag(chosen, page, value);
	}
}

/* ---- is it there? ---------------------------------------------------------------------------- */

static int check_functions(const struct filter *filter, const struct cli_page *page,
			   const struct job *job)
{
	for (size_t i = 0; i < filter->function_count; i++) {
		const char *names[OP_FUNCTIONS], *nearest;

		if (filter_check_function(job, filter->functions[i]) == OK)
			continue;
		for (unsigned int n = 0; n < OP_FUNCTIONS; n++)
			names[n] = op_function_name((uint8_t)n);
		nearest = cli_nearest(filter->functions[i], names, OP_FUNCTIONS);
		if (nearest != NULL)
			return cli_usage(page, "--op: unknown operation '%s', did you mean '%s'?",
					 filter->functions[i], nearest);
		return cli_usage(page, "--op: unknown operation '%s'", filter->functions[i]);
	}
	return 0;
}

static int no_such_comm(const struct job *job, const char *name)
{
	struct sink text;
	int exit_code;

	sink_init_memory(&text);
	for (size_t i = 0; i < job->comm_count && i < COMMS_LISTED; i++)
		sink_format(&text, "%s%s", i > 0 ? ", " : "", job->comms[i].label);
	if (job->comm_count > COMMS_LISTED)
		sink_text(&text, ", ...");
	exit_code = cli_error("--comm: there is no communicator '%s' here; there is %s", name,
			      job->comm_count > 0 ? sink_string(&text) : "none at all");
	sink_release(&text);
	return exit_code;
}

static int check_comms(const struct filter *filter, const struct job *job)
{
	for (size_t i = 0; i < filter->comm_count; i++) {
		struct filter one = { .comms = { filter->comms[i] }, .comm_count = 1 };
		size_t c = 0;

		while (c < job->comm_count && !filter_has_comm(&one, &job->comms[c]))
			c++;
		if (c == job->comm_count)
			return no_such_comm(job, filter->comms[i]);
	}
	return 0;
}

static int check_ranks(const struct filter *filter, const struct job *job)
{
	if (filter->range_count == 0)
		return 0;
	for (size_t r = 0; r < job->rank_count; r++)
		if (filter_has_rank(filter, job->ranks[r].rank))
			return 0;
	return cli_error("--rank: none of these ranks is recorded here (%zu are)", job->rank_count);
}

int report_filter_check(const struct report_filter *chosen, const struct cli_page *page,
			const struct recording *recording)
{
	const struct filter *filter = &chosen->filter;
	struct job job;
	int exit_code;

	if (filter->function_count + filter->comm_count + filter->range_count == 0)
		return 0;
	if (job_make(&job, recording) != OK)
		cli_no_memory();
	exit_code = check_functions(filter, page, &job);
	if (exit_code == 0)
		exit_code = check_comms(filter, &job);
	if (exit_code == 0)
		exit_code = check_ranks(filter, &job);
	job_release(&job);
	return exit_code;
}
