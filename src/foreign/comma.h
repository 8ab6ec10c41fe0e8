/* CoMMA's latency file, one line at a time: what comma_parse.c finds in it. */
#ifndef COMMA_H
#define COMMA_H

#include <stdbool.h>
#include <stdint.h>

#include "foreign/foreign_parts.h"

/* What a number is when the line does not have it. */
#define COMMA_UNKNOWN UINT64_MAX

enum comma_category {
	COMMA_CATEGORY_NONE,
	COMMA_CATEGORY_COLL,
	COMMA_CATEGORY_P2P,
	COMMA_CATEGORY_PROXY,
	COMMA_CATEGORY_OTHER
};

struct comma_event {
	enum comma_category category;
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	bool is_send;
	bool is_reclaimed; /* it was given up: no end was seen */
	int32_t rank;
	int32_t peer;
	int32_t channel; /* -1 unknown */
	int32_t steps;
	int64_t pid;
	uint64_t hash;
	uint64_t number;
	uint64_t bytes;
	uint64_t channels;
	uint64_t start_ns; /* COMMA_UNKNOWN where it is not there, these four */
	uint64_t time_ns;
	uint64_t child_start_ns;
	uint64_t child_time_ns;
};

/* reading->line into *event; details go to reading->details. False: damaged, reading->problem says how. */
bool comma_parse(struct foreign_reading *reading, struct comma_event *event);

#endif
