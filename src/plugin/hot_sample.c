/*
 * Kernel events for some of the collectives ("sampling").
 *
 * NCCL reads its event mask, one int for the whole process, at every call. So kernel events can be
 * requested for a few collectives, which costs almost nothing on average. All ranks of a
 * communicator must time the same collectives; nccl_interface.h selects them by number. A decision
 * made at a call takes effect at the communicator's next call, because NCCL has already read the
 * mask for this one.
 *
 *	open    a communicator wants its next collective timed
 *	closed  none wants that any more, or one that is timed because of others has had enough
 *
 * Sampling has a hazard (NCCL 2.28 to 2.30). NCCL counts the works of each channel on the host and
 * on the GPU. The GPU writes a stamp into slot "count modulo 64", but only for works with kernel
 * events, and NCCL's proxy thread waits for the stamp using its own count. If the counts differ, it
 * may wait for a slot that is never written, and ncclCommDestroy never returns. The counts differ,
 * or a stamp is missing,
 *
 * - after a capture into a CUDA graph without kernel events (the host counts once, the GPU once per
 *   replay), and in a graph that was only partly captured with them
 * - after a send of a rank to itself (only the GPU counts it)
 * - if the mask changed between a Send and the Recv that NCCL fuses with it
 * - on NCCL 2.29 and later after Broadcasts from several roots in a group (only the GPU counts
 *   them)
 * - with NVLS and registered buffers in groups (the GPU misses flags)
 *
 * All of these were observed to hang real NCCL, except the last, which follows from its sources. So
 * sampling ends for good at the first sign of any of them, and it starts late, because jobs show
 * them in their first minutes. A capture inside an open window leaves the events on for good: then
 * all works are stamped and every slot is written, which is safe wherever sampling is allowed at
 * all.
 */
#include "common/clock.h"
#include "common/op.h"
#include "plugin/abi_common.h"
#include "plugin/recorder.h"

enum {
	/*
	 * What one timed collective costs the job, measured with ranks that share a GPU. With a GPU
	 * per rank it is less.
	 */
	TIMED_COST_NS = 4000,
	/* The cost may take this share of the time in collectives: 1/200. */
	BUDGET_SHARE = 200,
	/* Lower bound for a collective's time, and upper bound for bytes per nanosecond. */
	LEAST_NS = 8000,
	BYTES_PER_NS_SHIFT = 8,
	/* The proxy thread spins while it waits for a stamp, so time at most one block in eight. */
	LEAST_LEVEL = 3,
	/*
	 * Each of the first KIND_IS_NEW calls of a kind (function and size class) makes four times as
	 * many blocks be timed for the next NEW_KIND_COLLECTIVES, so that a new kind is caught soon.
	 */
	KIND_IS_NEW = 64,
	NEW_KIND_COLLECTIVES = 8192,
	/* A communicator that closed the windows of others owes at most this many blocks. */
	MOST_DEBT = 4,
	MOST_SECONDS = 3600, /* of a request */
};

/* Communicators with this much time between collectives may time all or half of them. */
#define RARE_NS (100 * MS_NS)
#define SELDOM_NS (10 * MS_NS)

static void set_mask(bool is_open)
{
	struct sampling *sampling = &recorder.sampling;
	int mask = sampling->mask_closed | (is_open ? ABI_KERNEL_CH : 0);

	store_relaxed(&sampling->is_open, is_open);
	store_relaxed(sampling->mask, mask);
}

static void sampling_enter(enum sampling_state state)
{
	store_relaxed(&recorder.sampling.state, state);
	store_relaxed(&recorder.region.header->sampling, state);
}

static void open_window(void)
{
	if (load_relaxed(&recorder.sampling.is_open))
		return;
	set_mask(true);
	/*
	 * Another thread may have ended sampling in the meantime: it sets the state first and then
	 * checks the window. Pairs with the fence in sampling_leave().
	 */
	fence_full();
	if (load_relaxed(&recorder.sampling.state) != SAMPLING_ACTIVE)
		set_mask(false);
}

static void close_window(void)
{
	if (load_relaxed(&recorder.sampling.is_open))
		set_mask(false);
}

/* True: a window was open, and from now on no thread opens or closes one. */
static bool sampling_leave(enum sampling_state state)
{
	sampling_enter(state);
	/* Pairs with the fence in open_window(). */
	fence_full();
	return load_relaxed(&recorder.sampling.is_open);
}

void hot_sample_end(enum sampling_state why)
{
	if (is_sampling() && sampling_leave(why))
		set_mask(false);
}

COLD void hot_sample_captured(void)
{
	/* Some or all of its calls were captured with kernel events. */
	if (is_sampling() && sampling_leave(SAMPLING_BY_GRAPH))
		sampling_enter(SAMPLING_STUCK);
}

COLD void hot_sample_p2p(const void *group)
{
	struct sampling *sampling = &recorder.sampling;

	if (!is_sampling())
		return;
	store_relaxed(&sampling->last_group, handle_decode(recorder.salt, group).raw);
	/* Not between Send and Recv: all calls of this group have kernel events. */
	if (sampling_leave(SAMPLING_BY_P2P))
		sampling_enter(SAMPLING_ENDING);
}

COLD void hot_sample_group_end(uint64_t group)
{
	if (group != load_relaxed(&recorder.sampling.last_group))
		return;
	sampling_enter(SAMPLING_BY_P2P);
	set_mask(false);
}

/* Set whether a communicator wants its next collective timed. */
static void want_kernels(struct comm_state *comm, bool is_wanted)
{
	struct sampling *sampling = &recorder.sampling;

	if (load_relaxed(&comm->wants_kernels) != is_wanted &&
	    swap_relaxed(&comm->wants_kernels, is_wanted) != is_wanted) {
		if (is_wanted)
			add_relaxed(&sampling->wanting, 1);
		else if (add_relaxed(&sampling->wanting, (uint32_t)-1) == 1)
			close_window();
	}
	if (is_wanted)
		open_window();
}

void hot_sample_forget(struct comm_state *comm)
{
	if (recorder.sampling.mask != NULL && is_sampling())
		want_kernels(comm, false);
	store_relaxed(&comm->sample_at, UINT64_MAX);
}

/*
 * The smallest k for which timing every 2^k-th block stays within the budget. All ranks must arrive
 * at the same k, so the duration of collectives is estimated from what all ranks know: sizes. The
 * estimate is low, so the real cost is below the budget.
 */
static unsigned int budget_level(const struct comm_state *comm, uint64_t collective)
{
	uint64_t mean_ns = LEAST_NS + load_relaxed(&comm->estimated_ns) / collective;
	uint64_t ratio = (uint64_t)TIMED_COST_NS * BUDGET_SHARE / mean_ns;
	unsigned int level = ratio <= 1 ? 0 : 64 - (unsigned int)__builtin_clzll(ratio - 1);

	return level < LEAST_LEVEL ? LEAST_LEVEL : level;
}

static unsigned int choose_level(const struct comm_state *comm, unsigned int budget,
				 uint64_t collective, uint64_t interval_ns)
{
	if (interval_ns >= RARE_NS)
		return 0;
	if (interval_ns >= SELDOM_NS)
		return 1;
	if (collective < load_relaxed(&comm->new_until))
		return budget >= LEAST_LEVEL + 2 ? budget - 2 : LEAST_LEVEL;
	return budget;
}

/* At every collective while sampling, from values that are the same on all ranks. */
void hot_sample_call(struct comm_state *comm, const struct op_record *op, uint64_t now)
{
	uint64_t bytes = load_relaxed(&op->bytes), collective = load_relaxed(&op->match);
	uint8_t *calls = &comm->kinds[load_relaxed(&op->function) % ARRAY_LENGTH(comm->kinds)]
				     [op_size_class(bytes) / 2 % ARRAY_LENGTH(comm->kinds[0])];
	uint8_t before = load_relaxed(calls);

	if (bytes != OP_BYTES_UNKNOWN)
		store_relaxed(&comm->estimated_ns,
			      load_relaxed(&comm->estimated_ns) + (bytes >> BYTES_PER_NS_SHIFT));
	/* Nothing is timed before sampling begins. */
	if (LIKELY(before >= KIND_IS_NEW) || now < load_relaxed(&recorder.sampling.begin_ns))
		return;
	store_relaxed(calls, (uint8_t)(before + 1));
	store_relaxed(&comm->new_until, collective + NEW_KIND_COLLECTIVES);
}

/*
 * Windows opened by other communicators cost this one, too. In the long run it is timed as often as
 * its own budget allows; beyond that it closes windows that others opened.
 */
static void pay_for_window(struct comm_state *comm, unsigned int budget, bool is_wanted)
{
	int32_t price = 1 << budget;
	int32_t credit = load_relaxed(&comm->credit) + 1;

	if (load_relaxed(&recorder.sampling.is_open))
		credit -= price;
	if (credit > price)
		credit = price;
	if (credit < -MOST_DEBT * price) {
		credit = -MOST_DEBT * price;
		if (!is_wanted)
			close_window();
	}
	store_relaxed(&comm->credit, credit);
}

/* Serial << 32 | seconds, written by anyone with write access to the region. */
static void look_for_request(uint64_t now)
{
	struct sampling *sampling = &recorder.sampling;
	uint64_t request = load_relaxed(&recorder.region.header->kernel_request);
	uint32_t seconds = (uint32_t)request;

	if (request == load_relaxed(&sampling->request))
		return;
	/* Limit the cost, whatever value was written. */
	if (seconds > MOST_SECONDS)
		seconds = MOST_SECONDS;
	store_relaxed(&sampling->request, request);
	store_relaxed(&sampling->until_ns, now + seconds * SECOND_NS);
	store_relaxed(&recorder.region.header->kernel_answer, request);
}

COLD void hot_sample(struct comm_state *comm, uint64_t collective, uint64_t now)
{
	struct sampling *sampling = &recorder.sampling;
	uint64_t first_ns = load_relaxed(&comm->first_ns), interval_ns, next;
	unsigned int budget = budget_level(comm, collective);
	bool is_wanted;

	if (!is_sampling()) {
		/* Never again. */
		store_relaxed(&comm->sample_at, UINT64_MAX);
		return;
	}
	look_for_request(now);
	/* The mean since the first collective, which is nearly the same on all ranks. */
	if (first_ns == 0)
		store_relaxed(&comm->first_ns, first_ns = now);
	interval_ns = (now - first_ns) / collective;
	if (now < load_relaxed(&sampling->until_ns))
		is_wanted = true;
	else
		is_wanted = now >= load_relaxed(&sampling->begin_ns) &&
			    sample_level(comm->shared->info.hash, collective + 1) >=
				    choose_level(comm, budget, collective, interval_ns);
	want_kernels(comm, is_wanted);
	if (now >= load_relaxed(&sampling->until_ns))
		pay_for_window(comm, budget, is_wanted);
	/* Decide again before the next block begins. */
	next = (sample_block(collective + 1) + 1) * SAMPLE_BLOCK - 1;
	if (collective == 1 || interval_ns >= SELDOM_NS)
		next = collective + 1;
	store_relaxed(&comm->sample_at, next);
}
