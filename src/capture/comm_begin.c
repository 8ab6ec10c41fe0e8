/*
 * Slots of the table of communicators are used again, that of the communicator that ended first first.
 * What the last owner left in tables that all share is cleared away, but its sums stay.
 */
#include "capture/comm_begin.h"

#include <string.h>

#include "abi/abi_common.h"
#include "capture/drain.h"
#include "capture/identity.h"
#include "capture/inspector_thread.h"

static void forget_peers(uint32_t id)
{
	for (uint32_t i = 0; i < recorder.region.peer_count; i++)
		if (load_relaxed(&recorder.region.peers[i].key) >> 34 == id) {
			store_relaxed(&recorder.region.peers[i].count, 0);
			store_release(&recorder.region.peers[i].key, SLOT_FORGOTTEN);
		}
}

/* Words [0, count) of one slot are added to those of another; late ones may still come. */
static void move_sums(uint64_t *to, uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_relaxed(&to[i], swap_relaxed(&from[i], 0));
}

static void forget_links(uint32_t id)
{
	struct region_link *links = recorder.region.links;

	for (uint32_t i = 1; i < recorder.region.link_count; i++) {
		if (load_relaxed(&links[i].key) >> 34 != id)
			continue;
		move_sums(&links[0].proxies, &links[i].proxies, sizeof(*links) / 8 - 1);
		store_release(&links[i].key, SLOT_FORGOTTEN);
	}
}

static void forget_totals(uint32_t id)
{
	for (uint32_t i = 1; i < recorder.region.total_count; i++) {
		struct region_total *from = &recorder.region.totals[i], *to;
		uint64_t key = load_relaxed(&from->key);

		if (key >> 40 != (id & 0xffffff) || key <= SLOT_FORGOTTEN)
			continue;
		to = record_total_find(key & UINT64_C(0xffffffffff));
		to = to != NULL ? to : &recorder.region.totals[0];
		if (load_relaxed(&from->max_ns) > load_relaxed(&to->max_ns))
			store_relaxed(&to->max_ns, from->max_ns);
		store_relaxed(&from->max_ns, 0);
		move_sums(&to->count, &from->count, sizeof(*from) / 8 - 1);
		store_release(&from->key, SLOT_FORGOTTEN);
	}
}

/* What a communicator that is gone left in shared tables makes room, but its sums stay. */
static void forget_comm(uint32_t id)
{
	forget_peers(id);
	forget_totals(id);
	forget_links(id);
}

/* A free slot, else that of the communicator that ended first. comm_count: none. */
static uint32_t choose_comm_slot(bool must_be_saved)
{
	uint32_t best = recorder.region.comm_count;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		const struct region_comm *comm = &recorder.region.comms[i];

		if (!region_slot_is_used(comm->word))
			return i;
		if (!(comm->word & COMM_ENDED) ||
		    (must_be_saved &&
		     !(drain_has_comm(i, comm->info.id) && inspector_has_comm(i, comm->info.id))))
			continue;
		if (best == recorder.region.comm_count ||
		    comm->info.finalize_ns < recorder.region.comms[best].info.finalize_ns)
			best = i;
	}
	return best;
}

/* Files should know all of a communicator before its slot goes to another one. When the disk does not
 * let them, operations are worth more than a description. */
static uint32_t take_comm_slot(void)
{
	uint32_t slot = choose_comm_slot(true);

	if (slot == recorder.region.comm_count) {
		drain_save_comms();
		inspector_save_comms();
		slot = choose_comm_slot(true);
	}
	return slot != recorder.region.comm_count ? slot : choose_comm_slot(false);
}

/* What other communicators learned about the same GPU's clock is a start. */
static void inherit_gpu_offset(struct comm_info *info)
{
	for (uint32_t i = 0; i < recorder.region.comm_count && info->gpu_uuid[0] != '\0'; i++) {
		const struct comm_info *other = &recorder.region.comms[i].info;
		uint64_t at = load_relaxed(&other->gpu_offset_at_ns);

		if (at > info->gpu_offset_at_ns && strcmp(other->gpu_uuid, info->gpu_uuid) == 0) {
			info->gpu_offset_ns = load_relaxed(&other->gpu_offset_ns);
			info->gpu_offset_at_ns = at;
		}
	}
}

static void fill_comm(struct region_comm *comm, const struct comm_start *start, int mask)
{
	struct region_comm made = { .word = comm->word };
	uint32_t generation = REGION_GENERATION(made.word);

	/* R3: nobody takes the old owner's description, half overwritten, for whole. Pairs with the
	 * acquire fence of whoever copies the slot. */
	if (region_slot_is_used(made.word))
		store_relaxed(&comm->word, (uint64_t)(generation + 1) << 32);
	fence_release();
	made.info.id = (uint32_t)++recorder.region.header->comms_made;
	made.info.interface = start->interface;
	made.info.hash = start->hash;
	made.info.rank = start->rank;
	made.info.nranks = start->nranks > 0 ? start->nranks : 0;
	made.info.nnodes = start->nnodes > 0 ? start->nnodes : 0;
	made.info.init_ns = recorder_now();
	made.info.mask = (uint32_t)mask;
	identity_comm_name(&made.info, start->name);
	identity_gpu(&made.info);
	inherit_gpu_offset(&made.info);
	words_copy(&comm->reserved, &made.reserved, sizeof(made) / sizeof(uint64_t) - 1);
	/* Pairs with the acquire in the trace thread. */
	store_release(&comm->word, (uint64_t)((generation + 1) | 1) << 32);
}

/* Children of the slot's last owner may still come by: they follow `shared`, which never changes. */
static void begin_comm_state(struct comm_state *state, uint32_t slot, int mask, int nnodes,
			     bool is_sampled)
{
	struct comm_state fresh = {
		.expects_kernels = mask & ABI_KERNEL_CH,
		.expects_proxies = mask & ABI_PROXY_OP && nnodes != 1,
		.live_hint = slot * 16,
		/* Without sampling there is never anything to decide. */
		.sample_at = is_sampled ? 1 : UINT64_MAX,
	};

	words_copy((uint64_t *)(void *)state + 1, (uint64_t *)(void *)&fresh + 1,
		   sizeof(fresh) / sizeof(uint64_t) - 1);
}

uint32_t comm_begin_alive(void)
{
	uint32_t alive = 0;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		uint64_t word = load_relaxed(&recorder.region.comms[i].word);

		alive += region_slot_is_used(word) && !(word & COMM_ENDED);
	}
	return alive;
}

void *comm_begin(const struct comm_start *start, int mask, bool is_sampled)
{
	uint32_t slot = take_comm_slot();
	struct region_comm *comm;

	if (slot == recorder.region.comm_count)
		return handle_make(HANDLE_CONTEXT, 0, slot, 0);
	comm = &recorder.region.comms[slot];
	if (comm->info.id != 0) {
		forget_comm(comm->info.id);
		/* A stop that came while it ended may have kept a slot. */
		hot_proxy_forget(&recorder.comms[slot]);
	}
	begin_comm_state(&recorder.comms[slot], slot, mask, start->nnodes, is_sampled);
	fill_comm(comm, start, mask);
	return handle_make(HANDLE_CONTEXT, REGION_GENERATION(comm->word), slot, 0);
}
