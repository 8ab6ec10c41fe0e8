#include "view/viewer_order.h"

#include <stdlib.h>

bool viewer_order_init(struct viewer_order *order)
{
	order->count = 0;
	order->items = malloc(VIEWER_ORDER_MAX * sizeof(*order->items));
	return order->items != NULL;
}

void viewer_order_release(struct viewer_order *order)
{
	free(order->items);
	order->items = NULL;
	order->count = 0;
}

/* Of two that begin together, the longer one first: it could hold the other. */
static bool is_before(const struct viewer_item *a, const struct viewer_item *b)
{
	if (a->place.start_ns != b->place.start_ns)
		return a->place.start_ns < b->place.start_ns;
	return a->place.end_ns > b->place.end_ns;
}

void viewer_order_put(struct viewer_order *order, const struct viewer_item *item)
{
	size_t at = order->count++;

	while (at > 0 && is_before(item, &order->items[(at - 1) / 2])) {
		order->items[at] = order->items[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	order->items[at] = *item;
}

void viewer_order_take(struct viewer_order *order, struct viewer_item *item)
{
	const struct viewer_item *last = &order->items[--order->count];
	size_t at = 0, child;

	*item = order->items[0];
	while ((child = 2 * at + 1) < order->count) {
		if (child + 1 < order->count &&
		    is_before(&order->items[child + 1], &order->items[child]))
			child++;
		if (!is_before(&order->items[child], last))
			break;
		order->items[at] = order->items[child];
		at = child;
	}
	order->items[at] = *last;
}
