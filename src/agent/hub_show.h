/* What the hub shows: jobs as JSON for its page and scripts, metrics for Prometheus; and the alerts it takes. */
#ifndef HUB_SHOW_H
#define HUB_SHOW_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent_hook.h"
#include "agent/agent_verdicts.h"
#include "agent/hub_agents.h"
#include "agent/hub_jobs.h"
#include "agent/hub_options.h"
#include "common/status.h"
#include "output/sink.h"

struct hub_state {
	const struct hub_options *options;
	struct hub_agents agents;
	struct hub_jobs jobs;
	struct agent_verdicts verdicts; /* reported */
	struct agent_hook hook;
	uint64_t alerts; /* taken from webhooks */
	uint64_t start_wall_ns;
};

/* All jobs and, of the job with this key (NULL none), its nodes. docs/JSON.md lists the fields. */
void hub_show_jobs(struct sink *sink, const struct hub_state *hub, const char *key, uint64_t now_ns,
		   uint64_t wall_ns);

/* Prometheus text format. docs/HUB.md lists the names. */
void hub_show_metrics(struct sink *sink, const struct hub_state *hub);

/*
 * A webhook of Alertmanager: each firing alert with a label nccl_job calls hub_jobs_alert(). ERR_FORMAT
 * if it is not one. *known and *unknown count the jobs.
 */
enum { HUB_ALERTS_BYTES = 256 * 1024, HUB_ALERTS_MAX = 256 };
enum status hub_alerts_take(struct hub_jobs *jobs, const char *bytes, size_t length,
			    uint64_t now_ns, unsigned int *known, unsigned int *unknown);

#endif
