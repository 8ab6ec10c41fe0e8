#include <stdlib.h>

#include "common/order.h"
#include "programs/sim/host_engine.h"
#include "programs/sim/host_event.h"

static void comm_set_up(struct host *host, struct host_comm *comm,
			const struct host_comm_config *config)
{
	comm->host = host;
	comm->config = *config;
	if (comm->config.nnodes == 0)
		comm->config.nnodes = 1;
	if (comm->config.nranks == 0)
		comm->config.nranks = 2;
	comm->random = host->config.seed ^ config->hash ^ (uint64_t)config->rank << 48;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->changed, NULL);
	host_worker_init(&comm->group);
}

void host_comm_free(struct host_comm *comm)
{
	host_device_free(comm->streams[ENGINE_PROXY].device);
	host_device_free(comm->streams[ENGINE_PROFILER].device);
	host_worker_release(&comm->group);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->lock);
	free(comm);
}

static enum status comm_engines(struct host_comm *comm)
{
	struct host_comm *share = comm->config.share;
	bool has_profiler = comm->host->config.release >= 23100;

	if (share) {
		host_engine_share(share->proxy);
		comm->proxy = share->proxy;
	} else if (host_engine_new(&comm->proxy, comm, ENGINE_PROXY) != OK) {
		return ERR_NO_SPACE;
	}
	comm->profiler = comm->proxy;
	if (has_profiler && host_engine_new(&comm->profiler, comm, ENGINE_PROFILER) != OK) {
		host_engine_leave(comm->proxy, true);
		return ERR_NO_SPACE;
	}
	return OK;
}

/* Concurrent inits are not serialised against each other: the lock covers loading alone. */
static void comm_init(struct host_comm *comm)
{
	struct host *host = comm->host;
	const struct host_comm_config *config = &comm->config;
	struct host_identity who = {
		.name = config->name,
		.hash = config->hash,
		.nnodes = config->nnodes,
		.nranks = config->nranks,
		.rank = config->rank,
		.log = host->config.log,
	};

	pthread_mutex_lock(&host->lock);
	host_load(host);
	comm->plugin = host->plugin;
	pthread_mutex_unlock(&host->lock);
	(void)host_init(&comm->plugin, &comm->context, &host->mask, &who);
}

enum status host_comm_new(struct host *host, struct host_comm **comm,
			  const struct host_comm_config *config)
{
	struct host_comm *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	comm_set_up(host, made, config);
	if (made->config.rank < 0 || made->config.rank >= made->config.nranks) {
		host_comm_free(made);
		return ERR_RANGE;
	}
	if (comm_engines(made) != OK) {
		host_comm_free(made);
		return ERR_NO_SPACE;
	}
	comm_init(made);
	pthread_mutex_lock(&host->lock);
	made->next = host->comms;
	host->comms = made;
	pthread_mutex_unlock(&host->lock);
	*comm = made;
	return OK;
}

void *host_comm_context(const struct host_comm *comm)
{
	return comm->context;
}

static void comm_finalize(struct host_comm *comm)
{
	struct host *host = comm->host;
	void *context = comm->context;

	if (comm->is_finalized)
		return;
	comm->is_finalized = true;
	if (comm->config.flags & HOST_COMM_NULL_CONTEXT)
		context = NULL;
	/* Since 2.28 NCCL tests for a context. */
	if (context || host->config.release < 22800)
		(void)host_finalize(&comm->plugin, context);
	pthread_mutex_lock(&host->lock);
	host_unload(host);
	pthread_mutex_unlock(&host->lock);
}

static void comm_wake(struct host_comm *comm)
{
	host_engine_wake(comm->proxy);
	if (comm->profiler != comm->proxy)
		host_engine_wake(comm->profiler);
}

/* From now on nobody plays on it; whoever waits in it returns. False: it was so already. */
static bool comm_kill(struct host_comm *comm, bool is_abort)
{
	bool was_dead;

	pthread_mutex_lock(&comm->lock);
	was_dead = comm->is_dead;
	store_relaxed(&comm->is_dead, 1);
	if (is_abort)
		store_relaxed(&comm->is_aborted, 1);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	comm_wake(comm);
	return !was_dead;
}

static void comm_leave_engines(struct host_comm *comm, bool is_abort)
{
	bool is_purged = comm->config.flags & HOST_COMM_LAST_STOP_LOST;

	if (comm->profiler != comm->proxy)
		host_engine_leave(comm->profiler, is_abort || is_purged);
	host_engine_leave(comm->proxy, is_abort);
}

void host_comm_revoke(struct host_comm *comm)
{
	if (!comm_kill(comm, true))
		return;
	host_worker_stop(&comm->group);
	comm_leave_engines(comm, true);
}

void host_comm_abort(struct host_comm *comm)
{
	host_comm_revoke(comm);
	comm_finalize(comm);
}

void host_comm_destroy(struct host_comm *comm)
{
	if (load_relaxed(&comm->is_dead)) {
		comm_finalize(comm);
		return;
	}
	host_comm_release(comm);
	host_worker_stop(&comm->group);
	host_worker_wait(&comm->host->callback);
	if (comm->host->config.clock && comm->config.share == NULL) {
		host_engine_hurry(comm->proxy);
		host_engine_hurry(comm->profiler);
	}
	/* With a proxy of its own it ends before finalize; a shared one goes on. */
	if (comm->config.share == NULL)
		host_engine_wait(comm->proxy, comm, 0);
	/* Here NCCL would wait for ever. */
	if (comm->config.share == NULL && load_acquire(&comm->unfinished[ENGINE_PROXY]) > 0) {
		store_relaxed(&comm->is_purged, 1);
		host_engine_wake(comm->proxy);
		host_engine_wait(comm->proxy, comm, 0);
	}
	if (comm_kill(comm, false))
		comm_leave_engines(comm, false);
	comm_finalize(comm);
}

void host_comm_release(struct host_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	add_relaxed(&comm->releases, 1);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	comm_wake(comm);
}

static uint64_t comm_unfinished(struct host_comm *comm)
{
	uint64_t proxy = load_acquire(&comm->unfinished[ENGINE_PROXY]);
	uint64_t profiler = load_acquire(&comm->unfinished[ENGINE_PROFILER]);

	return proxy > profiler ? proxy : profiler;
}

size_t host_comm_settle(struct host_comm *comm)
{
	host_worker_wait(&comm->group);
	host_worker_wait(&comm->host->callback);
	host_engine_settle(comm->proxy);
	if (comm->profiler != comm->proxy)
		host_engine_settle(comm->profiler);
	return (size_t)comm_unfinished(comm);
}

bool host_comm_wait(struct host_comm *comm, size_t limit)
{
	if (limit == 0) {
		host_worker_wait(&comm->group);
		host_worker_wait(&comm->host->callback);
	}
	host_engine_wait(comm->proxy, comm, limit);
	if (comm->profiler != comm->proxy)
		host_engine_wait(comm->profiler, comm, limit);
	return !load_relaxed(&comm->is_dead);
}
