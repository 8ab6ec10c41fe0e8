/* NCCL Inspector's log, one line at a time: what inspector_parse.c finds in it. */
#ifndef INSPECTOR_H
#define INSPECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/op_layout.h"
#include "foreign/foreign_parts.h"

/* What a number is when the line does not have it. */
#define INSPECTOR_UNKNOWN UINT64_MAX

enum inspector_body {
	INSPECTOR_NO_BODY = 0,
	INSPECTOR_COLL = 1,
	INSPECTOR_P2P = 2,
	INSPECTOR_PROXY = 3,
	INSPECTOR_BODIES = 4,
};

enum inspector_source {
	INSPECTOR_SOURCE_UNKNOWN = 0,
	INSPECTOR_KERNEL_GPU = 1,
	INSPECTOR_KERNEL_CPU = 2,
	INSPECTOR_COLLECTIVE_CPU = 3,
};

struct inspector_metadata {
	char version[32];
	char host[256];
	int64_t pid;
	uint64_t dump_ns; /* 0 unknown */
};

/* coll_perf and p2p_perf have the same fields under two names. */
struct inspector_perf {
	uint8_t function;
	uint8_t algorithm;
	uint8_t protocol;
	uint8_t source; /* enum inspector_source */
	int32_t peer;
	uint64_t number; /* coll_sn, p2p_sn */
	uint64_t bytes;
	uint64_t time_ns;
	/* Verbose: wall time, 0 unknown. */
	uint64_t start_ns;
	uint64_t first_kernel_ns;
	uint64_t last_kernel_ns; /* its stop was recorded */
	uint64_t last_stop_ns;	 /* and seen */
	uint32_t kernels_started;
	uint32_t kernels_stopped;
};

/* dump_stats */
struct inspector_stats {
	uint64_t records[INSPECTOR_BODIES]; /* that follow, by enum inspector_body */
	uint64_t dropped_colls;		    /* since the communicator began */
	uint64_t dropped_p2ps;
	uint64_t dropped_proxies;
	uint64_t dropped_proxy_ops;
	uint64_t foreign_ops;
};

struct inspector_line {
	enum inspector_body body;
	bool has_header;
	bool has_metadata;
	bool has_stats;
	/* Byte for byte what the line before had: `comm` is not filled, `metadata` is still good. */
	bool is_same_header;
	bool is_same_metadata;
	struct comm_info comm;
	struct inspector_metadata metadata;
	struct inspector_perf perf;
	struct inspector_stats stats;
};

/* What repeats on every line: a header; metadata around the time of writing. Length 0: none kept. */
enum { INSPECTOR_KEPT_BYTES = 512 };
struct inspector_kept {
	char header[INSPECTOR_KEPT_BYTES];
	char before[INSPECTOR_KEPT_BYTES];
	char after[INSPECTOR_KEPT_BYTES];
	size_t header_length;
	size_t before_length;
	size_t after_length;
};

/* reading->line into *line, which holds the line before; details go to reading->details. False:
 * damaged, reading->problem says how. *kept is used and brought up to date. */
bool inspector_parse(struct foreign_reading *reading, struct inspector_kept *kept,
		     struct inspector_line *line);

/* Nothing is kept any more. */
static inline void inspector_forget(struct inspector_kept *kept)
{
	kept->header_length = kept->before_length = 0;
}

/* The value of the key coll_perf or p2p_perf: line->perf, and details. */
bool inspector_parse_perf(struct foreign_reading *reading, enum inspector_body body,
			  struct inspector_line *line);

/* The value of the key proxy_trace: details. */
bool inspector_parse_proxy(struct foreign_reading *reading);

#endif
