/* What a hub reads from others: summaries of agents, service discovery, the doctor's document, alerts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "hub/hub.h"
#include "fuzz/fuzz_main.h"
#include "output/sink.h"

static struct hub_options options = { .interval_ns = 1000000000, .hang_ns = 20000000000 };

/* The summary of one agent becomes jobs, which are shown. */
static void show(struct hub_summary *summary)
{
	struct hub_agent agent = { .target = { "node:1", "http://node:1", NULL },
				   .summary = *summary };
	struct hub_agent *list[] = { &agent };
	struct hub_state hub = { .options = &options };
	struct sink sink;

	hub_jobs_init(&hub.jobs, &options, "/bin/false");
	hub.agents.list = list;
	hub.agents.count = 1;
	hub_jobs_update(&hub.jobs, &hub.agents, 1000000000);
	if (hub.jobs.count > summary->count)
		abort();
	sink_init_memory(&sink);
	hub_show_jobs(&sink, &hub, hub.jobs.count > 0 ? hub.jobs.list[0]->key : NULL, 2000000000,
		      1);
	hub_show_metrics(&sink, &hub);
	sink_release(&sink);
	hub_jobs_release(&hub.jobs);
}

static void check_summary(const char *text, size_t size)
{
	struct hub_summary summary;
	const char *why;

	if (hub_summary_read(&summary, text, size, &why) != OK)
		return;
	if (summary.count > HUB_SUMMARY_JOBS)
		abort();
	for (size_t i = 0; i < summary.count; i++) {
		const struct hub_row *row = &summary.rows[i];

		if (memchr(row->job, '\0', sizeof(row->job)) == NULL ||
		    row->alive > row->processes || row->world_size < 0 ||
		    (!isnan(row->wait_share) && row->wait_share > 1))
			abort();
	}
	show(&summary);
	hub_summary_release(&summary);
}

static void check_queries(const char *text, size_t size)
{
	struct hub_agents agents;

	hub_agents_init(&agents, &options, "/bin/false", -1);
	for (int i = 0; i < HUB_QUERIES; i++)
		hub_query_take(&agents, (enum hub_query)i, text, size, 1);
	for (size_t i = 0; i < agents.count; i++)
		if (agents.list[i]->coming.count > HUB_SUMMARY_JOBS)
			abort();
	hub_agents_release(&agents);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* A copy of the exact size, so that reads past the end are caught. */
	char *text = malloc(size == 0 ? 1 : size);
	struct fetch_targets targets;
	struct verdicts verdicts;
	struct hub_jobs jobs;
	unsigned int known, unknown;
	char why[200];

	if (size > 0)
		memcpy(text, data, size);
	check_summary(text, size);
	check_queries(text, size);
	fetch_targets_init(&targets);
	hub_agents_read_sd(&targets, text, size, why, sizeof(why));
	fetch_targets_release(&targets);
	if (hub_verdicts_read(&verdicts, text, size) == OK)
		verdicts_release(&verdicts);
	hub_jobs_init(&jobs, &options, "/bin/false");
	hub_alerts_take(&jobs, text, size, 1, &known, &unknown);
	if (known > 0)
		abort();
	hub_jobs_release(&jobs);
	free(text);
	return 0;
}
