/* What a proxy operation moved, summed up by communicator, peer and direction. */
#include "base/hash.h"
#include "capture/recorder.h"

enum { LINK_TRIES = 16, LINK_STATES = 3 };

/* The slot with this key, else a free one that now has it, else "other". */
static struct region_link *link_find(uint64_t key)
{
	struct region_link *links = recorder.region.links;
	uint32_t mask = recorder.region.link_count - 1;
	uint32_t at = (uint32_t)hash_word(key, key) & mask;
	struct region_link *free = NULL;
	uint64_t found;

	for (int i = 0; i < LINK_TRIES; i++, at = (at + 1) & mask) {
		found = load_relaxed(&links[at].key);
		if (LIKELY(found == key && at != 0))
			return &links[at];
		if (found <= SLOT_FORGOTTEN && at != 0 && free == NULL)
			free = &links[at];
		if (found == 0 && at != 0)
			break;
	}
	if (free == NULL)
		return &links[0];
	found = load_relaxed(&free->key);
	if (found <= SLOT_FORGOTTEN && swap_if_acquire(&free->key, &found, key))
		return free;
	return found == key ? free : &links[0];
}

/* Atomic: "other" belongs to all proxy threads, and a communicator may have several: see struct live_others. */
void link_add(const struct region_proxy *proxy)
{
	uint32_t comm = load_relaxed(&proxy->comm);
	bool is_receive = !(load_relaxed(&proxy->flags) & PROXY_IS_SEND);
	struct region_link *link = &recorder.region.links[0];

	if (LIKELY(comm != 0))
		link = link_find(REGION_LINK_KEY(comm, is_receive, load_relaxed(&proxy->peer)));
	add_relaxed(&link->proxies, 1);
	add_relaxed(&link->steps, load_relaxed(&proxy->done));
	add_relaxed(&link->bytes, load_relaxed(&proxy->bytes));
	for (int i = 0; i < LINK_STATES; i++)
		if (load_relaxed(&proxy->wait_ns[i]) != 0)
			add_relaxed(&link->wait_ns[i], load_relaxed(&proxy->wait_ns[i]));
}
