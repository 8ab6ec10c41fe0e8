/*
 * The queue of the thread behind a communicator, for those who post and wait. See host_engine.h.
 *
 * The queue has one consumer and producers that hold `lock`. The thread takes works without the
 * lock; it takes the lock only to sleep, to tell somebody who waits, and to stop. Whoever waits is
 * told at the latest when the thread goes to sleep, so that a flag that was seen too late costs
 * time and nothing else.
 */
#include "programs/sim/host_engine.h"

#include <stdlib.h>
#include <time.h>

/* ---- life ------------------------------------------------------------------------------------ */

enum status host_engine_new(struct host_engine **engine, struct host_comm *owner,
			    enum host_engine_kind kind)
{
	struct host_engine *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	made->host = owner->host;
	made->owner = owner;
	made->kind = kind;
	made->lane = kind == ENGINE_PROXY ? LANE_PROXY : LANE_PROFILER;
	made->references = 1;
	made->is_real = owner->host->config.time == HOST_TIME_REAL;
	made->last = &made->first;
	made->wakes_at_ns = made->next_due_ns = ENGINE_NEVER;
	made->random = owner->random ^ (uint64_t)kind;
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->arrived, NULL);
	pthread_cond_init(&made->room, NULL);
	pthread_cond_init(&made->quiet, NULL);
	pthread_mutex_lock(&made->host->lock);
	made->next = made->host->engines;
	made->host->engines = made;
	pthread_mutex_unlock(&made->host->lock);
	*engine = made;
	return OK;
}

void host_engine_share(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->references++;
	pthread_mutex_unlock(&engine->lock);
}

static void active_free(struct host_active *active)
{
	while (active) {
		struct host_active *next = active->next;

		free(active->subs);
		free(active->kernels);
		free(active->work.many);
		free(active);
		active = next;
	}
}

/* What only the thread and its queue needed. */
static void engine_empty(struct host_engine *engine)
{
	active_free(engine->first);
	active_free(engine->spare);
	/* An abort leaves some behind. */
	for (; engine->head != engine->tail; engine->head++)
		free(engine->queue[engine->head % ENGINE_QUEUE].many);
	free(engine->queue);
	free(engine->connections);
	engine->first = engine->spare = NULL;
	engine->queue = NULL;
	engine->connections = NULL;
}

void host_engine_free(struct host_engine *engine)
{
	engine_empty(engine);
	pthread_cond_destroy(&engine->arrived);
	pthread_cond_destroy(&engine->room);
	pthread_cond_destroy(&engine->quiet);
	pthread_mutex_destroy(&engine->lock);
	free(engine);
}

void host_engine_leave(struct host_engine *engine, bool is_abort)
{
	bool is_last, has_thread;

	pthread_mutex_lock(&engine->lock);
	is_last = --engine->references == 0;
	has_thread = engine->has_thread;
	if (is_last)
		store_relaxed(&engine->stop, is_abort ? ENGINE_ABORT : ENGINE_DRAIN);
	pthread_mutex_unlock(&engine->lock);
	host_engine_wake(engine);
	if (!is_last)
		return;
	if (has_thread)
		pthread_join(engine->thread, NULL);
	pthread_mutex_lock(&engine->lock);
	engine->has_thread = false;
	engine_empty(engine);
	pthread_mutex_unlock(&engine->lock);
}

/* ---- what others call ------------------------------------------------------------------------ */

static enum status engine_start(struct host_engine *engine)
{
	if (engine->has_thread)
		return OK;
	if (engine->stop != ENGINE_RUN)
		return ERR_GONE;
	if (engine->queue == NULL)
		engine->queue = calloc(ENGINE_QUEUE, sizeof(*engine->queue));
	if (engine->connections == NULL)
		engine->connections = calloc(ENGINE_CONNECTIONS, sizeof(*engine->connections));
	if (engine->queue == NULL || engine->connections == NULL)
		return ERR_NO_SPACE;
	if (pthread_create(&engine->thread, NULL, host_engine_main, engine) != 0)
		return ERR_SYSTEM;
	pthread_setname_np(engine->thread,
			   engine->kind == ENGINE_PROXY ? "NCCL Progress 0" : "NCCL Profiler 0");
	engine->has_thread = true;
	return OK;
}

static bool queue_is_full(const struct host_engine *engine)
{
	return engine->tail - load_acquire(&engine->head) == ENGINE_QUEUE;
}

enum status host_engine_post(struct host_engine *engine, const struct host_work *work)
{
	enum status status;

	pthread_mutex_lock(&engine->lock);
	status = engine_start(engine);
	while (status == OK && queue_is_full(engine)) {
		if (load_relaxed(&work->comm->is_dead)) {
			status = ERR_GONE;
			break;
		}
		store_relaxed(&engine->waits_for_room, 1);
		pthread_cond_wait(&engine->room, &engine->lock);
		status = engine_start(engine); /* or it has ended meanwhile */
	}
	if (status == OK) {
		engine->queue[engine->tail % ENGINE_QUEUE] = *work;
		add_relaxed(&work->comm->unfinished[engine->kind], 1);
		/* The work is there before the count says so. Pairs with engine_fetch(). */
		store_release(&engine->tail, engine->tail + 1);
		if (engine->is_sleeping)
			pthread_cond_signal(&engine->arrived);
	}
	pthread_mutex_unlock(&engine->lock);
	return status;
}

void host_engine_wake(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	engine->is_kicked = true;
	pthread_cond_signal(&engine->arrived);
	pthread_cond_broadcast(&engine->room);
	pthread_cond_broadcast(&engine->quiet);
	pthread_mutex_unlock(&engine->lock);
}

void host_engine_hurry(struct host_engine *engine)
{
	store_relaxed(&engine->hurries, 1);
	host_engine_wake(engine);
}

/* From here on the engine tells what it has finished. It looks once more before it sleeps. */
static void watch_begin(struct host_engine *engine)
{
	pthread_mutex_lock(&engine->lock);
	add_relaxed(&engine->watchers, 1);
	engine->is_kicked = engine->has_thread;
	pthread_cond_signal(&engine->arrived);
}

static void watch_end(struct host_engine *engine)
{
	add_relaxed(&engine->watchers, -1);
	pthread_mutex_unlock(&engine->lock);
}

/* Asleep, and no work that it has will ever move again. */
static bool engine_is_starved(const struct host_engine *engine)
{
	return engine->has_thread && engine->is_sleeping && !engine->is_kicked &&
	       engine->tail == load_acquire(&engine->head) && engine->is_starved;
}

void host_engine_wait(struct host_engine *engine, struct host_comm *comm, uint64_t limit)
{
	watch_begin(engine);
	while (load_acquire(&comm->unfinished[engine->kind]) > limit &&
	       !load_relaxed(&comm->is_dead) && !engine_is_starved(engine))
		pthread_cond_wait(&engine->quiet, &engine->lock);
	watch_end(engine);
}

/* With a clock of the user's own, what is due later counts as nothing to do. */
static bool engine_is_settled(const struct host_engine *engine)
{
	if (!engine->has_thread)
		return true;
	if (!engine->is_sleeping || engine->is_kicked ||
	    engine->tail != load_acquire(&engine->head))
		return false;
	return engine->wakes_at_ns == ENGINE_NEVER || engine->host->config.clock != NULL;
}

void host_engine_settle(struct host_engine *engine)
{
	watch_begin(engine);
	while (!engine_is_settled(engine) && load_relaxed(&engine->stop) != ENGINE_ABORT)
		pthread_cond_wait(&engine->quiet, &engine->lock);
	watch_end(engine);
}
