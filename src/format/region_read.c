/*
 * The contents of a region: its info text, the slots of its copied parts, and its ring, record by
 * record.
 */
#include "format/region_read.h"

#include <string.h>

#include "common/op.h"
#include "common/text.h"

/* The line that begins at `at`; returns where the next one begins. */
static size_t line_end(const char *text, size_t text_bytes, size_t at)
{
	const char *end = memchr(text + at, '\n', text_bytes - at);

	return end != NULL ? (size_t)(end - text) : text_bytes;
}

bool info_next(const char *text, size_t text_bytes, size_t *at, char *key, size_t key_size,
	       char *value, size_t value_size)
{
	while (*at < text_bytes) {
		const char *line = text + *at;
		size_t length = line_end(text, text_bytes, *at) - *at;
		const char *equals = memchr(line, '=', length);
		size_t key_bytes = equals != NULL ? (size_t)(equals - line) : 0;

		*at += length + 1;
		if (key_bytes == 0)
			continue;
		text_from_field(key, key_size, line, key_bytes);
		text_from_field(value, value_size, equals + 1, length - key_bytes - 1);
		return true;
	}
	return false;
}

/* Where the value of the first line with this key is; NULL: there is none. */
static const char *info_find(const char *text, size_t text_bytes, const char *key, size_t *length)
{
	size_t key_bytes = strlen(key);
	size_t end;

	for (size_t at = 0; at < text_bytes; at = end + 1) {
		const char *line = text + at;

		end = line_end(text, text_bytes, at);
		if (end - at <= key_bytes || line[key_bytes] != '=' ||
		    memcmp(line, key, key_bytes) != 0)
			continue;
		*length = end - at - key_bytes - 1;
		return line + key_bytes + 1;
	}
	return NULL;
}

bool info_get(const char *text, size_t text_bytes, const char *key, char *value, size_t size)
{
	size_t length;
	const char *found = info_find(text, text_bytes, key, &length);

	value[0] = '\0';
	if (found != NULL)
		text_from_field(value, size, found, length);
	return found != NULL;
}

bool info_get_path(const char *text, size_t text_bytes, const char *key, char *path, size_t size)
{
	size_t length;
	const char *found = info_find(text, text_bytes, key, &length);

	path[0] = '\0';
	return found != NULL && length < size && memchr(found, '\0', length) == NULL &&
	       text_format(path, size, "%.*s", (int)length, found);
}

int64_t info_get_number(const char *text, size_t text_bytes, const char *key, int64_t otherwise)
{
	char value[32];
	int64_t number;

	if (!info_get(text, text_bytes, key, value, sizeof(value)) ||
	    text_number(value, INT64_MIN, INT64_MAX, &number) != OK)
		return otherwise;
	return number;
}

uint32_t region_slots(const struct region *region, enum region_part_index part)
{
	return region->copies[part].count;
}

/* What an older recorder's slots are too short for is 0: unknown. */
static bool slot_read(const struct region *region, enum region_part_index part, uint32_t index,
		      void *to, size_t size)
{
	const unsigned char *slot = region_copy_slot(&region->copies[part], index);
	size_t found = region->copies[part].stride;

	if (slot == NULL)
		return false;
	found = found < size ? found : size;
	memcpy(to, slot, found);
	memset((unsigned char *)to + found, 0, size - found);
	return true;
}

static bool slot_verdict(const char *what, const char **problem)
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

/* Terminate in place and clean, see text_clean(). */
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
	struct region_comm found;

	if (!slot_read(region, REGION_COMMS, index, &found, sizeof(found)))
		return no_slot(problem);
	/* The slot of a finalized communicator is free, but readable until it is reused. */
	if (!region_slot_is_used(found.word) && !(found.info.flags & COMM_FLAG_FINALIZED))
		return no_slot(problem);
	/* The slot of an ended one is cleared before the next one is written. */
	if (found.word & COMM_ENDED && found.info.id == 0)
		return no_slot(problem);
	if (!slot_verdict(op_check_comm(&found.info), problem))
		return false;
	region_clean_comm(&found.info);
	*comm = found;
	return true;
}

/*
 * A slot is retiring from its claim until its operation is filled in: at this moment, or for good
 * if the writer was killed.
 */
static bool is_filling(const struct region_live *live)
{
	return live->word & LIVE_RETIRING &&
	       (!region_slot_is_used(live->word) || live->op.number == 0 ||
		live->op.state == OP_STATE_NONE);
}

bool region_live_is_filling(const struct region *region, uint32_t index)
{
	struct region_live live;

	return slot_read(region, REGION_LIVE, index, &live, sizeof(live)) && is_filling(&live);
}

bool region_live_at(const struct region *region, uint32_t index, struct region_live *live,
		    const char **problem)
{
	struct region_live found;

	if (!slot_read(region, REGION_LIVE, index, &found, sizeof(found)) ||
	    !region_slot_is_used(found.word) || is_filling(&found))
		return no_slot(problem);
	if (!slot_verdict(op_check_live(&found.op), problem))
		return false;
	found.op.sequence = 0;
	/* Finished, but its record is only completed when it leaves the table. */
	if (found.op.state == OP_DONE)
		found.op.time_source = op_choose_time_source(&found.op);
	*live = found;
	return true;
}

/*
 * What the recorder leaves to readers: how many transfers are done or in flight, and when anything
 * last happened. A send has left in state 9; a receive has arrived in states 11 and 12.
 */
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
	struct region_proxy found;

	if (!slot_read(region, REGION_PROXIES, index, &found, sizeof(found)) ||
	    !region_slot_is_used(found.word))
		return no_slot(problem);
	slot_verdict(NULL, problem);
	complete_proxy(&found);
	*proxy = found;
	return true;
}

bool region_total_at(const struct region *region, uint32_t index, struct region_total *total)
{
	struct region_total found;

	if (!slot_read(region, REGION_TOTALS, index, &found, sizeof(found)))
		return false;
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
	struct region_link found;

	if (!slot_read(region, REGION_LINKS, index, &found, sizeof(found)))
		return false;
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
	       proxy->live == index && /* 31 bits, like a handle */
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
	char name[sizeof(struct region_name)];

	text[0] = '\0';
	if (id >= OP_NAME_INTERNED &&
	    slot_read(region, REGION_NAMES, id - OP_NAME_INTERNED, name, sizeof(name)))
		text_from_field(text, size, name, sizeof(name) - 1);
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

/*
 * Sequence s is in slot (s - 1) % slots, so the slots from the oldest on are the records by
 * sequence. They are copied PIECE slots at a time; a piece ends where the ring wraps.
 */

enum { PIECE = 2048 };

static uint64_t head_of(const struct region_header *header, enum region_part_index part)
{
	return part == REGION_RING ? header->ring_head : header->details_head;
}

enum status region_ring_open(struct region_ring *ring, const struct region *region,
			     enum region_part_index part, uint64_t after)
{
	uint64_t slots = region->header.parts[part].count;
	struct region_header now;
	enum status status;
	uint64_t oldest;

	memset(ring, 0, sizeof(*ring));
	ring->region = region;
	ring->part = part;
	status = region_pread(region, &now, sizeof(now), 0);
	if (status != OK || slots == 0)
		return status;
	ring->head = head_of(&now, part);
	/*
	 * A head this large is false, because no process finishes that many; it must not overflow.
	 */
	if (ring->head & RING_BUSY)
		ring->head = 0;
	oldest = ring->head > slots ? ring->head - slots + 1 : 1;
	ring->next = after >= oldest ? after + 1 : oldest;
	return OK;
}

/*
 * Make the slot of ring->next available: copy the piece that begins there unless it is the current
 * one.
 */
static enum status ring_fetch(struct region_ring *ring, const unsigned char **slot)
{
	uint32_t slots = ring->region->header.parts[ring->part].count;
	uint32_t index = (uint32_t)((ring->next - 1) % slots);
	uint64_t count = ring->head - ring->next + 1;
	enum status status;

	if (ring->copy.bytes == NULL || index < ring->copy.first ||
	    index - ring->copy.first >= ring->copy.count) {
		if (count > PIECE)
			count = PIECE;
		if (count > slots - index)
			count = slots - index;
		region_copy_release(&ring->copy);
		status = region_copy_slots(ring->region, ring->part, index, (uint32_t)count,
					   &ring->copy);
		if (status != OK)
			return status;
	}
	*slot = region_copy_slot(&ring->copy, index - ring->copy.first);
	return OK;
}

static void ring_refuse(struct region_ring *ring, const char *problem)
{
	ring->refused++;
	ring->problem = problem;
}

/* Determine why the slot of `wanted` does not hold it. */
static void ring_explain(struct region_ring *ring, uint64_t wanted, uint64_t found)
{
	uint32_t slots = ring->region->header.parts[ring->part].count;
	uint64_t sequence = found & ~RING_BUSY;

	if (sequence != 0 && (sequence - 1) % slots != (wanted - 1) % slots)
		ring_refuse(ring, "its sequence belongs in another slot");
	else if (sequence > wanted)
		ring->overwritten++;
	else
		ring->torn++;
}

/* The next whole record with the sequence that belongs there, valid or not. */
static enum status next_slot(struct region_ring *ring, const unsigned char **slot)
{
	while (ring->next != 0 && ring->next <= ring->head) {
		enum status status = ring_fetch(ring, slot);
		uint64_t found;

		if (status != OK)
			return status;
		ring->next++;
		if (*slot == NULL) {
			ring->overwritten++;
			continue;
		}
		memcpy(&found, *slot, sizeof(found));
		if (found == ring->next - 1)
			return OK;
		ring_explain(ring, ring->next - 1, found);
	}
	return ERR_GONE;
}

enum status region_ring_next_op(struct region_ring *ring, struct op_record *op)
{
	const unsigned char *slot;
	struct op_record found;
	const char *problem;
	enum status status;

	while ((status = next_slot(ring, &slot)) == OK) {
		memcpy(&found, slot, sizeof(found));
		problem = op_check(&found);
		if (problem == NULL) {
			*op = found;
			return OK;
		}
		ring_refuse(ring, problem);
	}
	return status;
}

enum status region_ring_next_detail(struct region_ring *ring, struct op_detail *detail)
{
	const unsigned char *slot;
	struct op_detail found;
	const char *problem;
	enum status status;

	while ((status = next_slot(ring, &slot)) == OK) {
		memcpy(&found, slot, sizeof(found));
		problem = op_check_detail(&found);
		if (problem == NULL) {
			*detail = found;
			return OK;
		}
		ring_refuse(ring, problem);
	}
	return status;
}

void region_ring_close(struct region_ring *ring)
{
	region_copy_release(&ring->copy);
	ring->next = 0;
	ring->head = 0;
}
