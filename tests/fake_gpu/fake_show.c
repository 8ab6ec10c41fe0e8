/*
 * The host's kernels wait at a gate for those that really run on the stream: each of these leaves its duration,
 * which the host's kernels take in order.
 */
#include "tests/fake_gpu/fake_show.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/order.h"
#include "plugin/abi_v5.h"
#include "sim/host.h"
#include "tests/fake_gpu/fake_number.h"

enum { REPLAYS = 4096, LOOK_NS = 5000000 };

/* The host's operation that waits at the gate. */
struct asker {
	struct fake_shown *shown;
	uint64_t taken;
};

struct fake_shown {
	struct fake_shown *next;
	struct fake_show *show;
	struct host_graph *graph; /* captured */
	uint64_t room;		  /* number of durations: 1, or REPLAYS */
	uint64_t *durations;	  /* the latest ones */
	uint64_t ended;		  /* how many have ended */
	size_t asker_count;
	struct asker *askers;
	int is_dropped;
};

struct fake_show {
	struct host_comm *comm;
	pthread_mutex_t lock; /* guards `first` and the graphs */
	struct fake_shown *first;
	int is_closing;
	int nranks;
	int rank;
};

static pthread_mutex_t host_lock = PTHREAD_MUTEX_INITIALIZER;
static struct host *the_host;
static _Thread_local struct host_user user;

/* The plugin's table with a start_event of ours, which launches the kernel. */
static const struct abi_plugin_v5 *their_plugin;
static struct abi_plugin_v5 our_plugin;
static _Thread_local struct {
	void (*launch)(void *arg);
	void *arg;
} waiting;

/* ---- launches -------------------------------------------------------------------------------- */

static void launch_now(void)
{
	void (*launch)(void *arg) = waiting.launch;

	waiting.launch = NULL;
	if (launch != NULL)
		launch(waiting.arg);
}

static int start_event(void *context, void **handle, struct abi_descr_v5 *descr)
{
	int result = their_plugin->start_event(context, handle, descr);

	if (descr->type == ABI_KERNEL_LAUNCH)
		launch_now();
	return result;
}

/* The communicator keeps the plugin, which is the same for all of this process. */
static void launches_watch(struct host_comm *comm)
{
	if (comm->plugin.version != 5)
		return;
	pthread_mutex_lock(&host_lock);
	if (their_plugin != comm->plugin.v5) {
		their_plugin = comm->plugin.v5;
		our_plugin = *their_plugin;
		our_plugin.start_event = start_event;
	}
	pthread_mutex_unlock(&host_lock);
	comm->plugin.v5 = &our_plugin;
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct host *host_get(void)
{
	struct host_config config = {
		.release = HOST_NCCL_2_28,
		.plugin = getenv("NCCL_PROFILER_PLUGIN"),
		.time = HOST_TIME_REAL,
		.seed = 1,
	};

	pthread_mutex_lock(&host_lock);
	if (the_host == NULL && host_new(&the_host, &config) != OK)
		the_host = NULL;
	pthread_mutex_unlock(&host_lock);
	return the_host;
}

int fake_show_open(struct fake_show **show, uint64_t hash, int nranks, int nodes, int rank)
{
	struct host_comm_config config = {
		.hash = hash,
		.nranks = nranks,
		.nnodes = nodes,
		.rank = rank,
	};
	struct fake_show *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return -1;
	made->nranks = nranks;
	made->rank = rank;
	pthread_mutex_init(&made->lock, NULL);
	if (host_get() == NULL || host_comm_new(the_host, &made->comm, &config) != OK) {
		free(made);
		return -1;
	}
	launches_watch(made->comm);
	*show = made;
	return 0;
}

static void shown_free(struct fake_shown *shown)
{
	host_graph_free(shown->graph);
	free(shown->durations);
	free(shown->askers);
	free(shown);
}

static bool is_finished(const struct fake_shown *shown)
{
	if (!load_acquire(&shown->is_dropped)) /* pairs with fake_shown_drop() */
		return false;
	for (size_t i = 0; i < shown->asker_count; i++) {
		/* Pairs with gate(). */
		if (load_acquire(&shown->askers[i].taken) != shown->ended)
			return false;
	}
	return true;
}

static void shown_sweep(struct fake_show *show)
{
	struct fake_shown **link = &show->first;

	while (*link != NULL) {
		struct fake_shown *shown = *link;

		if (!is_finished(shown)) {
			link = &shown->next;
			continue;
		}
		*link = shown->next;
		shown_free(shown);
	}
}

void fake_show_close(struct fake_show *show, bool is_abort)
{
	if (show == NULL)
		return;
	store_relaxed(&show->is_closing, 1);
	host_tick(the_host);
	if (is_abort)
		host_comm_abort(show->comm);
	else
		host_comm_destroy(show->comm);
	pthread_mutex_lock(&show->lock);
	while (show->first != NULL) {
		struct fake_shown *next = show->first->next;

		shown_free(show->first);
		show->first = next;
	}
	pthread_mutex_unlock(&show->lock);
	pthread_mutex_destroy(&show->lock);
	free(show);
}

/* ---- the gate -------------------------------------------------------------------------------- */

/* Called by the host's threads: is the kernel over? */
static bool gate(void *arg, uint64_t now_ns, struct host_gate *answer)
{
	struct asker *asker = arg;
	struct fake_shown *shown = asker->shown;
	uint64_t ended = load_acquire(&shown->ended); /* pairs with fake_shown_end() */
	uint64_t taken = asker->taken;

	if (taken == ended && !load_relaxed(&shown->show->is_closing)) {
		answer->poll_ns = now_ns + LOOK_NS;
		return false;
	}
	/* begin_ns 0: from when the host let it start. */
	if (taken < ended) {
		answer->duration_ns = load_relaxed(&shown->durations[taken % shown->room]);
		/* It can be freed from here on. Pairs with is_finished(). */
		store_release(&asker->taken, taken + 1);
	}
	return true;
}

void fake_shown_end(struct fake_shown *shown, uint64_t duration_ns)
{
	if (shown == NULL)
		return;
	store_relaxed(&shown->durations[shown->ended % shown->room], duration_ns);
	/* The duration is written before the count. Pairs with gate(). */
	store_release(&shown->ended, shown->ended + 1);
	host_tick(the_host);
}

void fake_shown_replay(struct fake_shown *shown)
{
	if (shown != NULL)
		(void)host_graph_replay(shown->graph);
}

void fake_shown_drop(struct fake_shown *shown)
{
	/* Not accessed from here on. Pairs with is_finished(). */
	if (shown != NULL)
		store_release(&shown->is_dropped, 1);
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct fake_shown *fake_shown_new(struct fake_show *show, size_t calls, bool is_captured)
{
	struct fake_shown *shown;
	/* AlltoAll is a Send and a Recv per rank. */
	size_t askers = calls * 2 * (size_t)show->nranks;

	if (host_plugin(the_host)->version == 0)
		return NULL;
	pthread_mutex_lock(&show->lock);
	shown_sweep(show);
	pthread_mutex_unlock(&show->lock);
	shown = calloc(1, sizeof(*shown));
	if (shown == NULL)
		return NULL;
	shown->show = show;
	shown->room = is_captured ? REPLAYS : 1;
	shown->durations = calloc(shown->room, sizeof(*shown->durations));
	shown->askers = calloc(askers, sizeof(*shown->askers));
	if (shown->durations == NULL || shown->askers == NULL ||
	    (is_captured && host_graph_new(the_host, &shown->graph) != OK)) {
		shown_free(shown);
		return NULL;
	}
	pthread_mutex_lock(&show->lock);
	shown->next = show->first;
	show->first = shown;
	pthread_mutex_unlock(&show->lock);
	return shown;
}

/* Address of the part for or from `peer`: in place, both are the same for a rank's own part. */
static const void *part_address(const struct fake_call *call, bool is_send, int peer)
{
	const unsigned char *buffer = is_send ? call->send : call->recv;
	bool has_parts = call->function == OP_ALL_TO_ALL ||
			 (call->function == OP_GATHER && !is_send) ||
			 (call->function == OP_SCATTER && is_send);

	if (has_parts && buffer != NULL)
		buffer += (size_t)peer * call->count * fake_type_bytes(call->type);
	return buffer;
}

static void op_add(struct fake_shown *shown, const struct fake_call *call, uint8_t function,
		   int peer, struct host_op *op)
{
	struct fake_show *show = shown->show;
	bool is_p2p = function == OP_SEND || function == OP_RECV;

	*op = host_op_make(show->comm, (enum op_function)function, call->count,
			   (enum op_datatype)op_datatype_from_nccl((uint8_t)call->type));
	op->algorithm = is_p2p ? OP_RING : call->choice.algorithm;
	op->protocol = is_p2p ? OP_SIMPLE : call->choice.protocol;
	op->channels = 2;
	op->root = call->root;
	op->send_buffer = part_address(call, true, peer);
	op->recv_buffer = part_address(call, false, peer);
	op->stream = call->stream;
	if (is_p2p)
		op->peer = peer;
	/* A transfer within this rank has no visible kernel. */
	if (is_p2p && peer == show->rank)
		return;
	shown->askers[shown->asker_count].shown = shown;
	op->gate = gate;
	op->gate_arg = &shown->askers[shown->asker_count++];
}

/* Whether this rank sends a part to `peer`, or receives one, in this AlltoAll, Gather or Scatter. */
static bool has_part(const struct fake_call *call, bool is_send, int peer)
{
	bool is_root = call->comm->rank == call->root, is_with_root = peer == call->root;

	switch (call->function) {
	case OP_ALL_TO_ALL:
		return true;
	case OP_GATHER:
		return is_send ? is_with_root : is_root;
	default:
		return is_send ? is_root : is_with_root;
	}
}

static size_t ops_add(struct fake_shown *shown, const struct fake_call *call, struct host_op *ops)
{
	size_t count = 0;

	if (call->function != OP_ALL_TO_ALL && call->function != OP_GATHER &&
	    call->function != OP_SCATTER) {
		op_add(shown, call, call->function, call->peer, &ops[0]);
		return 1;
	}
	for (int peer = 0; peer < call->comm->nranks; peer++) {
		if (has_part(call, true, peer))
			op_add(shown, call, OP_SEND, peer, &ops[count++]);
		if (has_part(call, false, peer))
			op_add(shown, call, OP_RECV, peer, &ops[count++]);
	}
	return count;
}

static void group_play(struct fake_shown *shown, const struct fake_call *calls, size_t count)
{
	struct host_group group = { .depth = count > 1 ? 2 : 1 };
	struct host_op *ops;

	if (shown == NULL)
		return;
	ops = calloc(count * 2 * (size_t)shown->show->nranks, sizeof(*ops));
	if (ops == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		group.count += ops_add(shown, &calls[i], &ops[group.count]);
	group.ops = ops;
	group.capture = shown->graph;
	(void)host_play_group(&user, &group);
	free(ops);
}

void fake_shown_play(struct fake_shown *shown, const struct fake_call *calls, size_t count,
		     void (*launch)(void *arg), void *arg)
{
	waiting.launch = launch;
	waiting.arg = arg;
	/* Calls can block until earlier kernels have ended: without need this one does not wait for them. */
	if (shown == NULL || host_plugin(the_host)->version != 5 ||
	    !(load_relaxed(host_mask(the_host)) & ABI_KERNEL_LAUNCH))
		launch_now();
	group_play(shown, calls, count);
	launch_now();
}
