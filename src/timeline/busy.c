#include "timeline/busy.h"

#include <string.h>

enum { CLOSED_AT_ONCE = BUSY_PIECES / 2 };

/* The oldest pieces leave the list: nothing that reaches so far back is expected any more. */
static void close_oldest(struct busy *busy)
{
	for (uint32_t i = 0; i < CLOSED_AT_ONCE; i++)
		busy->closed_ns += busy->pieces[i].end_ns - busy->pieces[i].start_ns;
	busy->floor_ns = busy->pieces[CLOSED_AT_ONCE - 1].end_ns;
	busy->count -= CLOSED_AT_ONCE;
	memmove(&busy->pieces[0], &busy->pieces[CLOSED_AT_ONCE],
		busy->count * sizeof(busy->pieces[0]));
}

static void insert(struct busy *busy, uint32_t at, uint64_t start_ns, uint64_t end_ns)
{
	memmove(&busy->pieces[at + 1], &busy->pieces[at],
		(busy->count - at) * sizeof(busy->pieces[0]));
	busy->pieces[at] = (struct busy_piece){ start_ns, end_ns };
	if (++busy->count == BUSY_PIECES)
		close_oldest(busy);
}

/* From the newest piece back: take in all that touch. */
static void add_slow(struct busy *busy, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t to = busy->count, from;

	while (to > 0 && busy->pieces[to - 1].start_ns > end_ns)
		to--;
	from = to;
	while (from > 0 && busy->pieces[from - 1].end_ns >= start_ns)
		from--;
	if (from == to) {
		insert(busy, to, start_ns, end_ns);
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
	add_slow(busy, start_ns, end_ns);
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
