#include "programs/sim/host.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/order.h"
#include "programs/sim/host_engine.h"

static void log_nothing(int level, unsigned long flags, const char *file, int line, const char *fmt,
			...)
{
	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	(void)fmt;
}

static bool is_off_by_environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && strcmp(value, "0") == 0;
}

enum status host_new(struct host **host, const struct host_config *config)
{
	struct host *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	made->config = *config;
	if (made->config.release == 0)
		made->config.release = HOST_NCCL_NEWEST;
	if (made->config.log == NULL)
		made->config.log = log_nothing;
	made->config.no_allgatherv |= is_off_by_environment("NCCL_ALLGATHERV_ENABLE");
	made->plugin.release = made->config.release;
	made->asks = host_asks_of(made->config.release);
	made->pid = getpid();
	pthread_mutex_init(&made->lock, NULL);
	host_worker_init(&made->callback);
	*host = made;
	return OK;
}

const struct host_plugin *host_plugin(const struct host *host)
{
	return &host->plugin;
}

const char *host_load_error(const struct host *host)
{
	return host->error;
}

int *host_mask(struct host *host)
{
	return &host->mask;
}

uint64_t host_now(const struct host *host)
{
	if (host->config.clock)
		return host->config.clock(host->config.clock_arg);
	return clock_system_ns(CLOCK_REALTIME);
}

/* Words of a struct of nothing but uint64_t; the lanes' threads may still write theirs. */
static void counts_add(struct host_counts *sum, const struct host_counts *more)
{
	const uint64_t *from = (const uint64_t *)more;
	uint64_t *to = (uint64_t *)sum;

	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "host_counts is all uint64_t");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += load_relaxed(&from[i]);
}

static void comm_counts_add(struct host_counts *sum, const struct host_comm *comm)
{
	for (unsigned int lane = 0; lane < HOST_LANES; lane++)
		if (lane != LANE_FOREIGN)
			counts_add(sum, &comm->counts[lane]);
	for (unsigned int event = 0; event < HOST_EVENTS; event++)
		sum->foreign_starts += load_relaxed(&comm->counts[LANE_FOREIGN].starts[event]);
}

void host_comm_counts(const struct host_comm *comm, struct host_counts *counts)
{
	*counts = (struct host_counts){ 0 };
	comm_counts_add(counts, comm);
}

void host_counts(struct host *host, struct host_counts *counts)
{
	*counts = (struct host_counts){ 0 };
	pthread_mutex_lock(&host->lock);
	for (const struct host_comm *comm = host->comms; comm; comm = comm->next)
		comm_counts_add(counts, comm);
	pthread_mutex_unlock(&host->lock);
}

void host_tick(struct host *host)
{
	pthread_mutex_lock(&host->lock);
	for (struct host_engine *engine = host->engines; engine; engine = engine->next)
		host_engine_wake(engine);
	pthread_mutex_unlock(&host->lock);
}

void host_free(struct host *host)
{
	if (host == NULL)
		return;
	host_worker_release(&host->callback);
	while (host->engines) {
		struct host_engine *next = host->engines->next;

		host_engine_free(host->engines);
		host->engines = next;
	}
	while (host->comms) {
		struct host_comm *next = host->comms->next;

		host_comm_free(host->comms);
		host->comms = next;
	}
	pthread_mutex_destroy(&host->lock);
	free(host);
}
