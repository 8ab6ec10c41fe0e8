/*
 * Whole parts, slot by slot (region_slots.c). Their order matters: live before ring, see region_read.h.
 */
#include "region/region_copy.h"

#include "region/region_slots.h"

/* A counter of the header, as it is now. */
static enum status read_counter(const struct region *region, size_t offset, uint64_t *value)
{
	return region_pread(region, value, sizeof(*value), offset);
}

/* How many slots, from the first on, can be in use. These are given out one after the other until all
 * have been used once, and then again from the first. */
static enum status slots_used(const struct region *region, unsigned int part, uint32_t *count)
{
	uint64_t made = UINT64_MAX;
	enum status status = OK;

	if (part == REGION_COMMS)
		status = read_counter(region, offsetof(struct region_header, comms_made), &made);
	else if (part == REGION_PROXIES)
		status = read_counter(region, offsetof(struct region_header, proxy_cursor), &made);
	*count = region->header.parts[part].count;
	if (made < *count)
		*count = (uint32_t)made;
	return status;
}

static enum status copy_brief(const struct region *region, unsigned int part,
			      struct region_copy *copy)
{
	uint32_t count;
	enum status status = slots_used(region, part, &count);

	if (status != OK)
		return status;
	if (part == REGION_LIVE || part == REGION_PROXIES || part == REGION_LINKS)
		return region_gather(region, part, count, copy);
	return region_copy_slots(region, part, 0, count, copy);
}

static enum status copy_part(struct region *region, unsigned int part, bool is_brief)
{
	struct region_copy copy = { .bytes = NULL };
	enum status status = is_brief ? copy_brief(region, part, &copy)
				      : region_copy_slots(region, part, 0,
							  region->header.parts[part].count, &copy);

	if (status != OK)
		return status;
	region_copy_release(&region->copies[part]);
	region->copies[part] = copy;
	return OK;
}

/* Have operations been issued or finished between two copies of the communicators? */
static bool has_moved(const struct region_copy *one, const struct region_copy *other)
{
	size_t issued = offsetof(struct region_comm, counts.issued);
	size_t recorded = offsetof(struct region_comm, counts.recorded);

	if (one->count != other->count)
		return true;
	for (uint32_t i = 0; i < one->count; i++) {
		const unsigned char *a = one->bytes + (size_t)i * one->stride;
		const unsigned char *b = other->bytes + (size_t)i * other->stride;

		if (region_slot_word(a) != region_slot_word(b) ||
		    region_slot_word(a + issued) != region_slot_word(b + issued) ||
		    region_slot_word(a + recorded) != region_slot_word(b + recorded))
			return true;
	}
	return false;
}

/* Communicators, what is in flight, communicators again: until both agree. The first copy stays:
 * what it counts as issued is in the live table that was copied after it, or in the ring. */
static enum status copy_flights(struct region *region, unsigned int parts)
{
	bool is_brief = parts & REGION_COPY_BRIEF;
	int tries = is_brief ? 1 : REGION_COPY_TRIES;
	enum status status = OK;

	region->is_moving = true;
	for (int i = 0; i < tries && status == OK && region->is_moving; i++) {
		struct region_copy first;

		status = copy_part(region, REGION_COMMS, is_brief);
		for (unsigned int part = REGION_LIVE; part <= REGION_PROXIES; part++)
			if (status == OK && parts & 1u << part)
				status = copy_part(region, part, is_brief);
		if (status != OK)
			break;
		first = region->copies[REGION_COMMS];
		region->copies[REGION_COMMS] = (struct region_copy){ 0 };
		status = copy_part(region, REGION_COMMS, is_brief);
		if (status == OK)
			region->is_moving = has_moved(&first, &region->copies[REGION_COMMS]);
		region_copy_release(&region->copies[REGION_COMMS]);
		region->copies[REGION_COMMS] = first;
	}
	return status;
}

/* The header from its second cache line of counters on; what was checked at opening stays. */
static enum status refresh_counters(struct region *region)
{
	size_t from = offsetof(struct region_header, last_anchor);

	return region_pread(region, (char *)&region->header + from, sizeof(region->header) - from,
			    from);
}

enum status region_copy(struct region *region, unsigned int parts)
{
	const unsigned int flights = REGION_COPY_COMMS | REGION_COPY_LIVE | REGION_COPY_PROXIES;
	enum status status = OK;

	if (parts & flights)
		status = copy_flights(region, parts);
	for (unsigned int part = 0; part < REGION_PARTS && status == OK; part++)
		if (parts & ~flights & 1u << part)
			status = copy_part(region, part, parts & REGION_COPY_BRIEF);
	return status == OK ? refresh_counters(region) : status;
}

void region_copy_drop(struct region *region, unsigned int parts)
{
	for (unsigned int part = 0; part < REGION_PARTS; part++)
		if (parts & 1u << part)
			region_copy_release(&region->copies[part]);
}
