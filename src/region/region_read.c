#include "region/region_read.h"

#include <string.h>

#include "base/text.h"
#include "op/op_check.h"
#include "op/op_time.h"
#include "region/info_text.h"
#include "region/region_alive.h"

uint32_t region_slots(const struct region *region, enum region_part_index part)
{
	return region->copies[part].count;
}

static const unsigned char *slot_at(const struct region *region, enum region_part_index part,
				    uint32_t index)
{
	return region_copy_slot(&region->copies[part], index);
}

static bool verdict(const char *what, const char **problem)
{
	if (problem != NULL)
		*problem = what;
	return what == NULL;
}

static bool no_slot(const char **problem)
{
	if (problem != NULL)
		*problem = NULL;
	return false;
}

/* In place: terminated and without control bytes. */
#define CLEAN_TEXT(field)                                                          \
	do {                                                                       \
		char clean[sizeof(field)];                                         \
		text_from_field(clean, sizeof(clean), (field), sizeof(field) - 1); \
		memset((field), 0, sizeof(field));                                 \
		memcpy((field), clean, strlen(clean));                             \
	} while (0)

void region_clean_comm(struct comm_info *info)
{
	CLEAN_TEXT(info->name);
	CLEAN_TEXT(info->gpu_uuid);
	CLEAN_TEXT(info->gpu_bus);
}

bool region_comm_at(const struct region *region, uint32_t index, struct region_comm *comm,
		    const char **problem)
{
	const unsigned char *slot = slot_at(region, REGION_COMMS, index);
	struct region_comm found;

	if (slot == NULL)
		return no_slot(problem);
	memcpy(&found, slot, sizeof(found));
	/* A finalized communicator's slot is free for the next, and until then still tells. */
	if (!region_slot_is_used(found.word) && !(found.info.flags & COMM_FLAG_FINALIZED))
		return no_slot(problem);
	/* An ended one's slot is cleared before the next one is written there. */
	if (found.word & COMM_ENDED && found.info.id == 0)
		return no_slot(problem);
	if (!verdict(op_check_comm(&found.info), problem))
		return false;
	region_clean_comm(&found.info);
	*comm = found;
	return true;
}

/* A slot is retiring from its claim on until its operation is written down: just so, or left so by a
 * writer that was killed. */
static bool is_filling(const struct region_live *live)
{
	return live->word & LIVE_RETIRING &&
	       (!region_slot_is_used(live->word) || live->op.number == 0 ||
		live->op.state == OP_STATE_NONE);
}

bool region_live_is_filling(const struct region *region, uint32_t index)
{
	const unsigned char *slot = slot_at(region, REGION_LIVE, index);
	struct region_live live;

	if (slot == NULL)
		return false;
	memcpy(&live, slot, sizeof(live));
	return is_filling(&live);
}

bool region_live_at(const struct region *region, uint32_t index, struct region_live *live,
		    const char **problem)
{
	const unsigned char *slot = slot_at(region, REGION_LIVE, index);
	struct region_live found;

	if (slot == NULL)
		return no_slot(problem);
	memcpy(&found, slot, sizeof(found));
	if (!region_slot_is_used(found.word))
		return no_slot(problem);
	if (is_filling(&found))
		return no_slot(problem);
	if (!verdict(op_check_live(&found.op), problem))
		return false;
	found.op.sequence = 0;
	/* Finished, but its record is only completed when it leaves the table. */
	if (found.op.state == OP_DONE)
		found.op.time_source = op_choose_time_source(&found.op);
	*live = found;
	return true;
}

/* What the recorder leaves to readers: how many transfers are over or under way, and when anything
 * last happened. Sending, a transfer is out in state 9; receiving, it has come in 11 and 12. */
static void complete_proxy(struct region_proxy *proxy)
{
	proxy->transmitted = proxy->done;
	for (unsigned int i = 0; i < WINDOW_STEPS; i++) {
		const struct region_step *step = &proxy->open[i];

		if (step->step_plus_1 == 0)
			continue;
		proxy->transmitted += step->state == 9 || step->state == 11 || step->state == 12;
		for (unsigned int state = 0; state < ARRAY_LENGTH(step->time_ns); state++)
			if (step->time_ns[state] > proxy->since_ns)
				proxy->since_ns = step->time_ns[state];
	}
}

bool region_proxy_at(const struct region *region, uint32_t index, struct region_proxy *proxy,
		     const char **problem)
{
	const unsigned char *slot = slot_at(region, REGION_PROXIES, index);
	struct region_proxy found;

	if (slot == NULL)
		return no_slot(problem);
	memcpy(&found, slot, sizeof(found));
	if (!region_slot_is_used(found.word))
		return no_slot(problem);
	verdict(NULL, problem);
	complete_proxy(&found);
	*proxy = found;
	return true;
}

bool region_total_at(const struct region *region, uint32_t index, struct region_total *total)
{
	const unsigned char *slot = slot_at(region, REGION_TOTALS, index);
	struct region_total found;

	if (slot == NULL)
		return false;
	memcpy(&found, slot, sizeof(found));
	/* Index 0 has key 0 and is "other". */
	if (found.count == 0 || (found.key <= SLOT_FORGOTTEN && index != 0))
		return false;
	*total = found;
	return true;
}

bool region_link_is_used(const struct region_link *link)
{
	return link->key > SLOT_FORGOTTEN && link->proxies != 0;
}

bool region_link_at(const struct region *region, uint32_t index, struct region_link *link)
{
	const unsigned char *slot = slot_at(region, REGION_LINKS, index);
	struct region_link found;

	if (slot == NULL)
		return false;
	memcpy(&found, slot, sizeof(found));
	/* Index 0 has key 0 and is "other". */
	if (index == 0 ? found.proxies == 0 : !region_link_is_used(&found))
		return false;
	*link = found;
	return true;
}

bool region_proxy_is_of(const struct region_proxy *proxy, uint32_t index,
			const struct region_live *live)
{
	return !(proxy->flags & PROXY_IS_FOREIGN) && proxy->live_generation != 0 &&
	       proxy->live == index && /* 31 bits: as many as a handle holds */
	       ((proxy->live_generation ^ REGION_GENERATION(live->word)) & 0x7fffffff) == 0;
}

/* The states of abi_common.h that a transfer can be in. */
static bool is_step_state(uint8_t state)
{
	return (state >= 8 && state <= 12) || state == 20;
}

unsigned int region_steps(const struct region_proxy *proxy, struct region_step steps[WINDOW_STEPS])
{
	unsigned int count = 0;

	for (unsigned int i = 0; i < WINDOW_STEPS; i++) {
		const struct region_step *step = &proxy->open[i];
		unsigned int at = count;

		if (step->step_plus_1 == 0 || !is_step_state(step->state))
			continue;
		for (; at > 0 && steps[at - 1].step_plus_1 > step->step_plus_1; at--)
			steps[at] = steps[at - 1];
		steps[at] = *step;
		count++;
	}
	return count;
}

bool region_name(const struct region *region, uint8_t id, char *text, size_t size)
{
	const unsigned char *slot = NULL;

	text[0] = '\0';
	if (id >= OP_NAME_INTERNED)
		slot = slot_at(region, REGION_NAMES, id - OP_NAME_INTERNED);
	if (slot != NULL)
		text_from_field(text, size, (const char *)slot, sizeof(struct region_name) - 1);
	return text[0] != '\0';
}

static bool is_clock_known(const struct region *region)
{
	const struct clock_source *clock = &region->header.clock;
	char boot_id[sizeof(region->header.boot_id)];

	region_boot_id(boot_id);
	if (boot_id[0] == '\0' || memcmp(boot_id, region->header.boot_id, sizeof(boot_id)) != 0)
		return false;
	return clock->kind == CLOCK_KIND_SYSTEM ||
	       (clock->kind == CLOCK_KIND_COUNTER && clock->multiplier != 0);
}

bool region_now(const struct region *region, uint64_t *now_ns)
{
	if (!is_clock_known(region))
		return false;
	*now_ns = clock_now(&region->header.clock);
	return true;
}

bool region_anchor(const struct region *region, struct clock_anchor *anchor)
{
	if (!is_clock_known(region))
		return false;
	*anchor = clock_anchor_take(&region->header.clock);
	return true;
}

bool region_info(const struct region *region, const char *key, char *value, size_t size)
{
	return info_get(region->info, region->info_bytes, key, value, size);
}
