#include "capture/inspector_comms.h"

#include <stdlib.h>

#include "capture/own_thread.h"
#include "capture/recorder.h"

bool inspector_comms_init(struct inspector_comms *comms, uint32_t count)
{
	*comms = (struct inspector_comms){ .count = count };
	comms->slots = calloc(count, sizeof(*comms->slots));
	comms->done = calloc(count, sizeof(*comms->done));
	return comms->slots != NULL && comms->done != NULL;
}

static bool refresh_one(struct inspector_comm *own, const struct region_comm *shared)
{
	/* Pairs with the release in fill_comm() and in setup_comm_end(). */
	uint64_t word = load_acquire(&shared->word);
	struct region_comm copy;

	if (!region_slot_is_used(word))
		return false;
	if (own->info.id != load_relaxed(&shared->info.id)) {
		if (!own_thread_read_comm(shared, &copy))
			return false;
		*own = (struct inspector_comm){ .info = copy.info };
		word = copy.word;
	}
	if (!(word & COMM_ENDED) || own->is_ending)
		return false;
	own->is_ending = true;
	return true;
}

bool inspector_comms_refresh(struct inspector_comms *comms)
{
	bool is_one_ending = false;

	for (uint32_t i = 0; i < comms->count; i++)
		is_one_ending |= refresh_one(&comms->slots[i], &recorder.region.comms[i]);
	return is_one_ending;
}

void inspector_comms_settle(struct inspector_comms *comms)
{
	for (uint32_t i = 0; i < comms->count; i++)
		if (comms->slots[i].is_ending && comms->done[i] != comms->slots[i].info.id)
			/* Pairs with the acquire below. */
			store_release(&comms->done[i], comms->slots[i].info.id);
}

struct inspector_comm *inspector_comms_find(struct inspector_comms *comms, uint32_t id)
{
	if (comms->slots[comms->last].info.id == id)
		return &comms->slots[comms->last];
	for (uint32_t i = 0; i < comms->count; i++)
		if (comms->slots[i].info.id == id) {
			comms->last = i;
			return &comms->slots[i];
		}
	return NULL;
}

bool inspector_comms_is_done(const struct inspector_comms *comms, uint32_t slot, uint32_t id)
{
	return load_acquire(&comms->done[slot]) == id;
}
