/* The thread behind a communicator: its turns, and its sleep. See host_engine.h. */
#include <stdlib.h>
#include <time.h>

#include "programs/sim/host_engine.h"

enum { BIT_CTRL = 5 };

/* ---- ProxyCtrl ------------------------------------------------------------------------------- */

/* The context is that of whoever made the proxy, even after that communicator is gone. */
static void *ctrl_start(struct host_engine *engine)
{
	struct host_comm *owner = engine->owner;
	struct host_call call = { owner->context, owner->config.rank };
	void *handle = NULL;

	if (engine->kind != ENGINE_PROXY || !(load_relaxed(&engine->host->mask) & ABI_PROXY_CTRL) ||
	    owner->plugin.version == 0)
		return NULL;
	host_start_proxy_ctrl(&owner->plugin, call, &handle);
	bump_relaxed(&owner->counts[LANE_PROXY].starts[BIT_CTRL], 1);
	return handle;
}

static void ctrl_state(struct host_engine *engine, void *handle, enum abi_state state, int appended)
{
	if (handle == NULL)
		return;
	host_state_proxy_ctrl(&engine->owner->plugin, handle, state, appended);
	bump_relaxed(&engine->owner->counts[LANE_PROXY].states[state], 1);
}

static void ctrl_stop(struct host_engine *engine, void *handle)
{
	if (handle == NULL)
		return;
	(void)host_stop(&engine->owner->plugin, handle);
	bump_relaxed(&engine->owner->counts[LANE_PROXY].stops[BIT_CTRL], 1);
}

/* ---- taking works ---------------------------------------------------------------------------- */

static struct host_active *active_take(struct host_engine *engine)
{
	struct host_active *active = engine->spare;

	if (active == NULL)
		return calloc(1, sizeof(*active));
	engine->spare = active->next;
	active->next = NULL;
	return active;
}

static void active_set_up(struct host_engine *engine, struct host_active *active)
{
	const struct host_work *work = &active->work;
	const struct host_asks *asks = engine->host->asks;
	int version = work->comm->plugin.version;

	active->plugin = work->comm->plugin;
	active->is_old = active->plugin.release < 22700;
	active->call = (struct host_call){ work->context, work->comm->config.rank };
	active->transfer = engine->host->config.transfer;
	active->transfer_arg = engine->host->config.transfer_arg;
	active->counts = &work->comm->counts[work->is_foreign ? LANE_FOREIGN : engine->lane];
	active->wants = (struct host_wishes){
		.op = version >= 1 && host_is_asked(asks, work->mask, ABI_PROXY_OP),
		.step = version >= 1 && host_is_asked(asks, work->mask, ABI_PROXY_STEP),
		.net = version >= 3 && work->has_net_events &&
		       host_is_asked(asks, work->mask, ABI_NET_PLUGIN),
		.kernel = version >= 3 && host_is_asked(asks, work->mask, ABI_KERNEL_CH),
		.phase = version >= 7 && host_is_asked(asks, work->mask, ABI_KERNEL_PHASE),
	};
	for (unsigned int i = 0; i < work->channels; i++)
		active->channel_open[i] = 0;
}

static void active_finish(struct host_engine *engine, struct host_active *active);

/* Out of memory: the work is dropped, as if its communicator had been aborted. */
static void engine_append(struct host_engine *engine, const struct host_work *work)
{
	struct host_active *active = active_take(engine);

	if (active == NULL) {
		add_release(&work->comm->unfinished[engine->kind], (uint64_t)-1);
		return;
	}
	active->work = *work;
	active_set_up(engine, active);
	if (host_proxy_append(engine, active) != OK || host_device_append(engine, active) != OK) {
		active_finish(engine, active);
		return;
	}
	*engine->last = active;
	engine->last = &active->next;
	engine->active_count++;
}

static bool engine_has_appetite(const struct host_engine *engine, size_t taken)
{
	if (engine->active_count >= ENGINE_ACTIVE_MAX)
		return false;
	return engine->is_real || engine->moved_count + taken < ENGINE_AT_ONCE;
}

/* Half of the queue at a time: who waits would otherwise be woken for each single slot. */
static void tell_about_room(struct host_engine *engine)
{
	if (!load_relaxed(&engine->waits_for_room) ||
	    load_relaxed(&engine->tail) - engine->head > ENGINE_QUEUE / 2)
		return;
	pthread_mutex_lock(&engine->lock);
	store_relaxed(&engine->waits_for_room, 0);
	pthread_cond_broadcast(&engine->room);
	pthread_mutex_unlock(&engine->lock);
}

static size_t engine_fetch(struct host_engine *engine)
{
	uint64_t head = engine->head;
	size_t taken = 0, appended = 0;
	void *ctrl = NULL;

	/* Pairs with the release in host_engine_post(). */
	while (head != load_acquire(&engine->tail) && engine_has_appetite(engine, taken)) {
		const struct host_work *work = &engine->queue[head % ENGINE_QUEUE];

		if (taken++ == 0) {
			ctrl = ctrl_start(engine);
			ctrl_state(engine, ctrl, ABI_CTRL_APPEND, 0);
		}
		appended += (size_t)work->channels * work->edge_count + work->kernel_channels;
		engine_append(engine, work);
		/* The slot is free once it was copied. Pairs with queue_is_full(). */
		store_release(&engine->head, ++head);
	}
	if (taken) {
		ctrl_state(engine, ctrl, ABI_CTRL_APPEND_END, (int)appended);
		ctrl_stop(engine, ctrl);
		tell_about_room(engine);
	}
	return taken;
}

/* ---- moving works on ------------------------------------------------------------------------- */

static void null_calls(struct host_active *active)
{
	if (!active_is_quirky(active, HOST_QUIRK_STOP_NULL) || active->plugin.version == 0)
		return;
	(void)host_stop(&active->plugin, NULL);
	host_state_null(&active->plugin, NULL, ABI_STEP_SEND_WAIT);
	bump_relaxed(&active->counts->null_calls, 2);
}

static void active_finish(struct host_engine *engine, struct host_active *active)
{
	null_calls(active);
	free(active->work.many);
	active->work.many = NULL;
	active->next = engine->spare;
	engine->spare = active;
	/* What was counted is visible to whoever sees 0. Pairs with host_engine_wait(). */
	add_release(&active->work.comm->unfinished[engine->kind], (uint64_t)-1);
	if (load_relaxed(&engine->watchers) > 0) {
		pthread_mutex_lock(&engine->lock);
		pthread_cond_broadcast(&engine->quiet);
		pthread_mutex_unlock(&engine->lock);
	}
}

/* Nothing but stamps is left to wait for. */
static bool active_is_starved(const struct host_active *active)
{
	return active->subs_open == 0 && active->kernels_open > 0 && active->is_gpu_done;
}

static bool active_is_over(struct host_engine *engine, struct host_active *active)
{
	const struct host_comm *comm = active->work.comm;

	if (active->subs_open == 0 && active->kernels_open == 0 && active->is_gpu_done)
		return true;
	if (load_relaxed(&comm->is_aborted))
		return true;
	if (!active_is_starved(active) || !(engine->is_purging || load_relaxed(&comm->is_purged)))
		return false;
	bump_relaxed(engine->kind == ENGINE_PROXY ? &active->counts->would_hang
						  : &active->counts->purged,
		     active->kernels_open);
	return true;
}

/* One look at everything. True when something moved. */
static bool engine_turn(struct host_engine *engine)
{
	struct host_active **link = &engine->first, *active;
	bool has_stuck = false;

	engine->pass++;
	engine->moved_count = 0;
	engine->next_due_ns = ENGINE_NEVER;
	if (load_relaxed(&engine->hurries))
		engine->is_real = false;
	if (engine->is_real)
		engine->now_ns = host_now(engine->host);
	while ((active = *link) != NULL) {
		bool has_moved = host_proxy_progress(engine, active);

		has_moved |= host_device_progress(engine, active);
		has_stuck |= active->work.stuck != HOST_STUCK_NONE;
		if (has_moved)
			engine->moved_count++;
		if (!active_is_over(engine, active)) {
			link = &active->next;
			continue;
		}
		*link = active->next;
		if (*link == NULL)
			engine->last = link;
		engine->active_count--;
		active_finish(engine, active);
		engine->moved_count += !has_moved;
	}
	engine->has_stuck = has_stuck;
	engine->is_lag_over = false;
	return engine->moved_count > 0;
}

/* ProxyCtrl tells when the loop gets something to do and when it has nothing more; before 2.27, and
 * by quirk, it tells in every turn. */
static void ctrl_turn(struct host_engine *engine, bool is_idle)
{
	bool is_each = engine->host->config.release < 22700 ||
		       (engine->host->config.quirks & HOST_QUIRK_CTRL_EACH_PASS);
	void *handle;

	if (is_idle == engine->was_idle && !is_each)
		return;
	handle = ctrl_start(engine);
	if (is_idle != engine->was_idle)
		ctrl_state(engine, handle, is_idle ? ABI_CTRL_IDLE : ABI_CTRL_ACTIVE, 0);
	ctrl_stop(engine, handle);
	engine->was_idle = is_idle;
}

static bool has_lagging(const struct host_engine *engine)
{
	for (const struct host_active *active = engine->first; active; active = active->next)
		if (active->is_lagging && active->kernels_open > 0)
			return true;
	return false;
}

static bool engine_is_starving(const struct host_engine *engine)
{
	for (const struct host_active *active = engine->first; active; active = active->next)
		if (!active_is_starved(active))
			return false;
	return engine->first != NULL;
}

/* Late polls stay late until somebody waits for the end. */
static bool has_audience(const struct host_engine *engine)
{
	return load_relaxed(&engine->watchers) > 0 || load_relaxed(&engine->stop) != ENGINE_RUN;
}

static void sleep_until(struct host_engine *engine, uint64_t ns)
{
	struct timespec deadline = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	if (ns == ENGINE_NEVER || engine->host->config.clock)
		pthread_cond_wait(&engine->arrived, &engine->lock);
	else
		pthread_cond_timedwait(&engine->arrived, &engine->lock, &deadline);
}

/* False when the thread is to leave. */
static bool engine_sleep(struct host_engine *engine)
{
	bool is_over, has_new, is_starving = engine_is_starving(engine);
	void *ctrl = NULL;

	if (engine->first == NULL && load_relaxed(&engine->stop) == ENGINE_RUN)
		ctrl = ctrl_start(engine);
	ctrl_state(engine, ctrl, ABI_CTRL_SLEEP, 0);
	pthread_mutex_lock(&engine->lock);
	has_new = engine->tail != engine->head && engine_has_appetite(engine, 0);
	is_over = engine->stop == ENGINE_ABORT ||
		  (engine->stop == ENGINE_DRAIN && !has_new && engine->first == NULL);
	if (!is_over && !has_new && !engine->is_kicked) {
		engine->is_sleeping = true;
		engine->is_starved = is_starving;
		engine->wakes_at_ns = engine->next_due_ns;
		pthread_cond_broadcast(&engine->quiet);
		pthread_cond_broadcast(&engine->room);
		sleep_until(engine, engine->next_due_ns);
		engine->is_sleeping = false;
	}
	engine->is_kicked = false;
	pthread_mutex_unlock(&engine->lock);
	ctrl_state(engine, ctrl, ABI_CTRL_WAKEUP, 0);
	ctrl_stop(engine, ctrl);
	return !is_over;
}

void *host_engine_main(void *arg)
{
	struct host_engine *engine = arg;
	bool has_moved;

	do {
		has_moved = engine_turn(engine);
		ctrl_turn(engine, !has_moved);
		has_moved |= engine_fetch(engine) > 0;
		if (has_moved) {
			engine->was_lag_over = false;
		} else if (!engine->was_lag_over && has_audience(engine) && has_lagging(engine)) {
			engine->is_lag_over = engine->was_lag_over = true;
			has_moved = true;
		} else if (load_relaxed(&engine->stop) == ENGINE_DRAIN && !engine->is_purging &&
			   engine_is_starving(engine)) {
			engine->is_purging = true;
			has_moved = true;
		}
		if (load_relaxed(&engine->stop) == ENGINE_ABORT)
			break;
	} while (has_moved || engine_sleep(engine));

	pthread_mutex_lock(&engine->lock);
	pthread_cond_broadcast(&engine->quiet);
	pthread_cond_broadcast(&engine->room);
	pthread_mutex_unlock(&engine->lock);
	return NULL;
}
