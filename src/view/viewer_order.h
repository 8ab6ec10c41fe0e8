/*
 * Puts what comes roughly in the order of ends into the order of begins, through a heap of fixed
 * size: what comes out is in order as long as nothing came more than VIEWER_ORDER_MAX places late.
 */
#ifndef VIEWER_ORDER_H
#define VIEWER_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "view/viewer_place.h"

enum { VIEWER_ORDER_MAX = 1024 };

struct viewer_item {
	struct viewer_place place;
	union {
		struct op_record op;
		struct op_detail detail;
	};
};

struct viewer_order {
	struct viewer_item *items;
	size_t count;
};

/* False: no memory. */
bool viewer_order_init(struct viewer_order *order);
void viewer_order_release(struct viewer_order *order);

static inline bool viewer_order_is_full(const struct viewer_order *order)
{
	return order->count == VIEWER_ORDER_MAX;
}

/* There must be room. */
void viewer_order_put(struct viewer_order *order, const struct viewer_item *item);
/* The one that begins first; there must be one. */
void viewer_order_take(struct viewer_order *order, struct viewer_item *item);

#endif
