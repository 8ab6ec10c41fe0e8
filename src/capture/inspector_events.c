#include "capture/inspector_events.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "capture/recorder.h"
#include "capture/ring_reader.h"

enum { NODES = 1 << 16, BATCH = 256, TRIES = 1000 };

/* One channel; index 0 is nobody. */
struct node {
	uint64_t number;
	uint64_t start_ns, stop_ns;
	uint32_t comm;
	uint32_t next; /* of the same list, or of those that are free */
	uint8_t channel;
};

struct inspector_events_pool {
	struct ring_reader reader;
	struct op_detail batch[BATCH];
	struct node nodes[NODES];
	uint32_t lists[NODES]; /* by hash of communicator and number */
	uint32_t free;
};

static void forget_all(struct inspector_events_pool *pool)
{
	memset(pool->lists, 0, sizeof(pool->lists));
	for (uint32_t i = 1; i < NODES; i++)
		pool->nodes[i].next = i + 1 < NODES ? i + 1 : 0;
	pool->free = 1;
}

struct inspector_events_pool *inspector_events_new(void)
{
	struct inspector_events_pool *pool = malloc(sizeof(*pool));

	if (pool == NULL)
		return NULL;
	pool->reader = (struct ring_reader){ .slots = (void *)recorder.region.details,
					     .count = recorder.region.detail_count,
					     .words = OP_DETAIL_WORDS,
					     .head = &recorder.region.header->details_head };
	forget_all(pool);
	return pool;
}

static uint32_t list_of(uint32_t comm, uint64_t number)
{
	return (uint32_t)(hash_word(comm, number) & (NODES - 1));
}

static void keep(struct inspector_events_pool *pool, const struct op_detail *detail)
{
	uint32_t list = list_of(detail->comm, detail->number), which;

	if (detail->kind != OP_DETAIL_KERNEL || detail->comm == 0)
		return;
	if (pool->free == 0)
		forget_all(pool);
	which = pool->free;
	pool->free = pool->nodes[which].next;
	pool->nodes[which] = (struct node){ .number = detail->number,
					    .start_ns = detail->time_ns[2],
					    .stop_ns = detail->time_ns[3],
					    .comm = detail->comm,
					    .next = pool->lists[list],
					    .channel = detail->channel };
	pool->lists[list] = which;
}

void inspector_events_read(struct inspector_events_pool *pool, uint64_t now_ns)
{
	uint64_t head = load_relaxed(pool->reader.head);
	struct ring_missed missed;

	/* A writer that is just at it takes a moment; one that is not coming back is not waited for. */
	for (int i = 0; i < TRIES && pool->reader.tail < head; i++) {
		uint32_t taken = ring_reader_take(&pool->reader, now_ns, i == TRIES - 1,
						  (uint64_t *)(void *)pool->batch, BATCH, &missed);

		for (uint32_t j = 0; j < taken; j++)
			keep(pool, &pool->batch[j]);
		if (taken == 0)
			sched_yield();
		else
			i = 0;
	}
}

static bool is_of(const struct node *node, const struct op_record *op)
{
	return node->comm == op->comm && node->number == op->number;
}

static int compare_channels(const void *left, const void *right)
{
	const struct inspector_channel *a = left, *b = right;

	return (int)a->channel - (int)b->channel;
}

size_t inspector_events_of(const struct inspector_events_pool *pool, const struct op_record *op,
			   struct inspector_channel channels[static INSPECTOR_CHANNELS])
{
	size_t count = 0;

	for (uint32_t at = pool->lists[list_of(op->comm, op->number)];
	     at != 0 && count < INSPECTOR_CHANNELS; at = pool->nodes[at].next) {
		const struct node *node = &pool->nodes[at];

		if (is_of(node, op))
			channels[count++] =
				(struct inspector_channel){ node->start_ns, node->stop_ns,
							    node->channel };
	}
	qsort(channels, count, sizeof(*channels), compare_channels);
	return count;
}

void inspector_events_forget(struct inspector_events_pool *pool, const struct op_record *op)
{
	uint32_t *link = &pool->lists[list_of(op->comm, op->number)];

	while (*link != 0) {
		uint32_t which = *link;

		if (!is_of(&pool->nodes[which], op)) {
			link = &pool->nodes[which].next;
			continue;
		}
		*link = pool->nodes[which].next;
		pool->nodes[which].next = pool->free;
		pool->free = which;
	}
}
