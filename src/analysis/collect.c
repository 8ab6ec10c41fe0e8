/* What is collected per operation and kept small: covered time, links, time windows, estimates. */
#include "analysis/collect.h"

#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/search.h"

enum { LINKS_MAX = 1 << 19 };

enum { CLOSED_AT_ONCE = BUSY_PIECES / 2 };

/* The oldest pieces leave the list: nothing that reaches back that far is expected any more. */
static void close_oldest(struct busy *busy)
{
	for (uint32_t i = 0; i < CLOSED_AT_ONCE; i++)
		busy->closed_ns += busy->pieces[i].end_ns - busy->pieces[i].start_ns;
	busy->floor_ns = busy->pieces[CLOSED_AT_ONCE - 1].end_ns;
	busy->count -= CLOSED_AT_ONCE;
	memmove(&busy->pieces[0], &busy->pieces[CLOSED_AT_ONCE],
		busy->count * sizeof(busy->pieces[0]));
}

static void busy_insert(struct busy *busy, uint32_t at, uint64_t start_ns, uint64_t end_ns)
{
	memmove(&busy->pieces[at + 1], &busy->pieces[at],
		(busy->count - at) * sizeof(busy->pieces[0]));
	busy->pieces[at] = (struct busy_piece){ start_ns, end_ns };
	if (++busy->count == BUSY_PIECES)
		close_oldest(busy);
}

/* From the newest piece backwards: absorb all that touch. */
static void busy_merge(struct busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t to = busy->count, from;

	while (to > 0 && busy->pieces[to - 1].start_ns > end_ns)
		to--;
	from = to;
	while (from > 0 && busy->pieces[from - 1].end_ns >= start_ns)
		from--;
	if (from == to) {
		busy_insert(busy, to, start_ns, end_ns);
		return;
	}
	if (busy->pieces[from].start_ns < start_ns)
		start_ns = busy->pieces[from].start_ns;
	if (busy->pieces[to - 1].end_ns > end_ns)
		end_ns = busy->pieces[to - 1].end_ns;
	busy->pieces[from] = (struct busy_piece){ start_ns, end_ns };
	memmove(&busy->pieces[from + 1], &busy->pieces[to],
		(busy->count - to) * sizeof(busy->pieces[0]));
	busy->count -= to - from - 1;
}

void busy_add_slowly(struct busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	if (start_ns < busy->first_ns)
		busy->first_ns = start_ns;
	if (start_ns < busy->floor_ns) {
		busy->cut++;
		start_ns = busy->floor_ns;
		if (end_ns <= start_ns)
			return;
	}
	if (busy->count == BUSY_PIECES)
		close_oldest(busy);
	busy_merge(busy, start_ns, end_ns);
}

uint64_t busy_last_ns(const struct busy *busy)
{
	return busy->count > 0 ? busy->pieces[busy->count - 1].end_ns : busy->floor_ns;
}

uint64_t busy_total_ns(const struct busy *busy)
{
	uint64_t total_ns = busy->closed_ns;

	for (uint32_t i = 0; i < busy->count; i++)
		total_ns += busy->pieces[i].end_ns - busy->pieces[i].start_ns;
	return total_ns;
}

static size_t link_place(const struct links *links, uint32_t comm, uint32_t from, int32_t to)
{
	size_t mask = links->room * 2 - 1;
	size_t place = (size_t)hash_word(hash_word(3, (uint64_t)comm << 32 | from), (uint32_t)to);

	for (place &= mask; links->table[place] != 0; place = (place + 1) & mask) {
		const struct link *link = &links->list[links->table[place] - 1];

		if (link->comm == comm && link->from == from && link->to == to)
			break;
	}
	return place;
}

static bool links_grow(struct links *links)
{
	size_t room = links->room ? links->room * 2 : 64;
	struct link *list = realloc(links->list, room * sizeof(*list));
	uint32_t *table = calloc(room * 2, sizeof(*table));

	if (list != NULL)
		links->list = list;
	if (list == NULL || table == NULL) {
		free(table);
		links->status = ERR_NO_SPACE;
		return false;
	}
	free(links->table);
	links->table = table;
	links->room = room;
	for (size_t i = 0; i < links->count; i++)
		table[link_place(links, list[i].comm, list[i].from, list[i].to)] = (uint32_t)i + 1;
	return true;
}

struct link *links_get(struct links *links, uint32_t comm, uint32_t from, int32_t to)
{
	size_t place;

	if (links->room > 0) {
		place = link_place(links, comm, from, to);
		if (links->table[place] != 0)
			return &links->list[links->table[place] - 1];
	}
	if (links->count == LINKS_MAX) {
		links->left_out++;
		return NULL;
	}
	if (links->count == links->room && !links_grow(links))
		return NULL;
	links->list[links->count] = (struct link){ .comm = comm, .from = from, .to = to };
	links->table[link_place(links, comm, from, to)] = (uint32_t)links->count + 1;
	return &links->list[links->count++];
}

/* All parts are full: two become one. */
static void link_halve(struct link *link)
{
	for (unsigned int i = 0; i < LINK_PARTS / 2; i++) {
		link->part_net_ns[i] = link->part_net_ns[2 * i] + link->part_net_ns[2 * i + 1];
		link->part_steps[i] = link->part_steps[2 * i] + link->part_steps[2 * i + 1];
	}
	for (unsigned int i = LINK_PARTS / 2; i < LINK_PARTS; i++)
		link->part_net_ns[i] = link->part_steps[i] = 0;
	link->part_sends *= 2;
}

void link_add(struct link *link, uint32_t steps, uint64_t net_ns, uint64_t bytes)
{
	uint64_t part;

	if (link->part_sends == 0)
		link->part_sends = 1;
	if (link->sends == LINK_PARTS * link->part_sends)
		link_halve(link);
	part = link->sends / link->part_sends;
	link->part_net_ns[part] += (float)net_ns;
	link->part_steps[part] += (float)steps;
	link->sends++;
	link->send_net_ns += net_ns;
	link->send_steps += steps;
	link->bytes += bytes;
}

void links_release(struct links *links)
{
	free(links->list);
	free(links->table);
	*links = (struct links){ .list = NULL };
}

void windows_local_init(struct windows_local *local, uint32_t room)
{
	*local = (struct windows_local){ .room = room, .width_ns = WINDOWS_LOCAL_FIRST_NS };
}

void windows_local_release(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++)
		free(local->stretches[i]);
	*local = (struct windows_local){ .room = 0 };
}

uint32_t windows_local_series(struct windows_local *local, uint16_t id)
{
	for (uint32_t i = 0; i < local->series_count; i++)
		if (local->series_id[i] == id)
			return i;
	if (local->series_count == WINDOWS_LOCAL_SERIES) {
		local->left_out++;
		return UINT32_MAX;
	}
	local->stretches[local->series_count] = calloc(local->room, sizeof(*local->stretches[0]));
	if (local->stretches[local->series_count] == NULL) {
		local->status = ERR_NO_SPACE;
		return UINT32_MAX;
	}
	local->series_id[local->series_count] = id;
	return local->series_count++;
}

static void stretch_add(struct windows_stretch *to, const struct windows_stretch *from)
{
	to->calls += from->calls;
	to->bytes += from->bytes;
	to->time_ns += from->time_ns;
	to->bus_bytes += from->bus_bytes;
}

void windows_local_add(struct windows_local *local, uint32_t series,
		       const struct windows_stretch *what)
{
	stretch_add(&local->stretches[series][local->current], what);
	if (local->current >= local->used)
		local->used = local->current + 1;
}

/* Two become one. */
static void stretches_halve(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++) {
		struct windows_stretch *list = local->stretches[i];

		for (uint32_t j = 0; j < local->room / 2; j++) {
			struct windows_stretch both = list[2 * j];

			stretch_add(&both, &list[2 * j + 1]);
			list[j] = both;
		}
		memset(&list[local->room / 2], 0, (local->room - local->room / 2) * sizeof(*list));
	}
	local->width_ns *= 2;
	local->used = (local->used + 1) / 2;
}

void windows_local_move(struct windows_local *local, uint64_t end_ns)
{
	uint64_t index;

	if (local->current_end_ns == 0)
		local->origin_ns = end_ns;
	index = end_ns > local->origin_ns ? (end_ns - local->origin_ns) / local->width_ns : 0;
	while (index >= local->room) {
		stretches_halve(local);
		index = (end_ns - local->origin_ns) / local->width_ns;
	}
	local->current = (uint32_t)index;
	local->current_end_ns = local->origin_ns + (index + 1) * local->width_ns;
}

void windows_local_finish(struct windows_local *local)
{
	for (uint32_t i = 0; i < local->series_count; i++) {
		void *less = realloc(local->stretches[i], (local->used ? local->used : 1) *
								  sizeof(*local->stretches[0]));

		if (less != NULL)
			local->stretches[i] = less;
	}
	local->room = local->used;
}

/*
 * Parts are appended while a process is read, several times for one key if cells were flushed early, and
 * sorted and merged when it is done (earlier, if there are many). Seats ascend from process to process, so
 * the whole array is sorted then, and a kind is found by bisection.
 */

enum { SORT_LEAST = 4096 };

void estimate_release(struct estimate *estimate)
{
	free(estimate->parts);
	*estimate = (struct estimate){ .parts = NULL };
}

static int by_kind(const struct estimate_part *a, const struct estimate_part *b)
{
	return ORDER(a->seat, b->seat) ?:
	       ORDER(a->names, b->names) ?:
	       ORDER(a->size_class, b->size_class);
}

static int by_kind_and_tag(const void *left, const void *right)
{
	const struct estimate_part *a = left, *b = right;

	return by_kind(a, b) ?: ORDER(a->tag, b->tag);
}

/* Sorts the current process's parts and merges equal ones. */
static void estimate_settle(struct estimate *estimate)
{
	struct estimate_part *parts = estimate->parts + estimate->first;
	size_t count = estimate->count - estimate->first, kept = 0;

	if (count == 0)
		return;
	qsort(parts, count, sizeof(*parts), by_kind_and_tag);
	for (size_t i = 1; i < count; i++) {
		if (by_kind_and_tag(&parts[kept], &parts[i]) != 0) {
			parts[++kept] = parts[i];
			continue;
		}
		parts[kept].timed += parts[i].timed;
		parts[kept].sum_ns += parts[i].sum_ns;
		parts[kept].untimed += parts[i].untimed;
		parts[kept].joined_ns += parts[i].joined_ns;
		parts[kept].least_ns += parts[i].least_ns;
	}
	estimate->count = estimate->first + kept + 1;
}

enum status estimate_add(struct estimate *estimate, const struct estimate_part *part)
{
	if (estimate->count - estimate->first > SORT_LEAST &&
	    estimate->count >= estimate->next_sort) {
		estimate_settle(estimate);
		estimate->next_sort = estimate->first + 2 * (estimate->count - estimate->first);
	}
	if (estimate->count == estimate->room) {
		size_t room = estimate->room ? estimate->room * 2 : 256;
		void *grown = realloc(estimate->parts, room * sizeof(*estimate->parts));

		if (grown == NULL)
			return ERR_NO_SPACE;
		estimate->parts = grown;
		estimate->room = room;
	}
	estimate->parts[estimate->count++] = *part;
	return OK;
}

void estimate_end_process(struct estimate *estimate)
{
	uint64_t untimed = 0;

	for (size_t i = estimate->first; i < estimate->count; i++)
		untimed += estimate->parts[i].untimed;
	if (untimed == 0)
		estimate->count = estimate->first;
	else
		estimate_settle(estimate);
	estimate->first = estimate->count;
	estimate->next_sort = 0;
}

struct estimate_part *estimate_find(struct estimate *estimate, const struct estimate_part *like)
{
	size_t first = SEARCH_FIRST(i, estimate->count, by_kind(&estimate->parts[i], like) >= 0);

	return first < estimate->count && by_kind(&estimate->parts[first], like) == 0
		       ? &estimate->parts[first]
		       : NULL;
}

struct estimate_kind estimate_kind(const struct estimate *estimate, size_t first)
{
	struct estimate_kind kind = { .first = first, .next = first };

	for (; kind.next < estimate->count &&
	       by_kind(&estimate->parts[first], &estimate->parts[kind.next]) == 0;
	     kind.next++) {
		const struct estimate_part *part = &estimate->parts[kind.next];

		kind.timed += part->timed;
		kind.sum_ns += part->sum_ns;
		kind.untimed += part->untimed;
		kind.joined_ns += part->joined_ns;
		kind.least_ns += part->least_ns;
	}
	return kind;
}
