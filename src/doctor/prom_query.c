/*
 * What Prometheus is asked. All joining of ranks is left to who reads the answers; what is done here is to
 * leave out what nobody needs: of thousands of communicators only those with an operation that is old.
 *
 *	old      communicators with an operation in flight for more than a quarter of what is called a hang
 *	near     all members of processes that are in one of these and have nothing in flight there: the
 *	         others wait for one of them, and what it did last, wherever, says why
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor/prom_parts.h"

/* A text that grows; after the first failure it stays as it is. */
struct text {
	char *bytes;
	size_t length;
	size_t room;
	bool has_failed;
};

static void put_bytes(struct text *text, const char *bytes, size_t length)
{
	if (text->length + length + 1 > text->room && !text->has_failed) {
		size_t room = (text->length + length + 1) * 2;
		char *more = realloc(text->bytes, room);

		text->has_failed = more == NULL;
		if (more != NULL) {
			text->bytes = more;
			text->room = room;
		}
	}
	if (text->has_failed)
		return;
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
	text->bytes[text->length] = '\0';
}

static void put(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(struct text *text, const char *format, ...)
{
	char piece[1024];
	va_list values;
	int length;

	va_start(values, format);
	length = vsnprintf(piece, sizeof(piece), format, values);
	va_end(values);
	if (length < 0 || (size_t)length >= sizeof(piece))
		text->has_failed = true;
	else
		put_bytes(text, piece, (size_t)length);
}

/* A selector: only the job that was asked for. */
static void put_series(struct text *text, const struct prom *prom, const char *name,
		       const char *matchers)
{
	put(text, "%s{", name);
	if (prom->job[0] != '\0') {
		put(text, "nccl_job=\"");
		for (const char *at = prom->job; *at != '\0'; at++) {
			if (*at == '"' || *at == '\\')
				put_bytes(text, "\\", 1);
			if (*at == '\n')
				put(text, "\\n");
			else
				put_bytes(text, at, 1);
		}
		put(text, "\"%s", matchers[0] != '\0' ? "," : "");
	}
	put(text, "%s}", matchers);
}

#define NO_OTHER "comm!=\"other\""

static void put_old(struct text *text, const struct prom *prom)
{
	put(text, " and on (nccl_job, comm) (");
	put_series(text, prom, "nccl_oldest_operation_age_seconds", NO_OTHER);
	put(text, " > %.3f)", (double)prom->hang_ns / 4e9);
}

/* Members of communicators that are old, and those near them. */
static void put_members(struct text *text, const struct prom *prom)
{
	put(text, " and on (nccl_job, comm, rank) (");
	put_series(text, prom, "nccl_operations_in_flight", NO_OTHER);
	put_old(text, prom);
	put(text, " or ");
	put_series(text, prom, "nccl_communicator_info", NO_OTHER);
	put(text, " and on (nccl_job, host, pid) (");
	put_series(text, prom, "nccl_communicator_info", NO_OTHER);
	put(text, " and on (nccl_job, comm, rank) (");
	put_series(text, prom, "nccl_operations_in_flight", NO_OTHER);
	put(text, " == 0");
	put_old(text, prom);
	put(text, ")))");
}

static void put_who(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	if (ask == PROM_PROCESSES) {
		put(text, "max by (nccl_job, host, pid, global_rank, local_rank, world_size, gpu, "
			  "gpu_uuid, mode, interface, state) (timestamp(");
		put_series(text, prom, "nccl_process_info", "");
		put(text, "))");
	} else {
		put(text, "group by (nccl_job, comm, rank, comm_name, nranks, nnodes, global_rank, "
			  "host, pid, gpu, finalized) (");
		put_series(text, prom, "nccl_communicator_info", NO_OTHER);
		put(text, ")");
	}
}

static void put_state(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	if (ask == PROM_NUMBERS) {
		put(text, "max by (__name__, nccl_job, comm, rank) (");
		put_series(text, prom, "",
			   "__name__=~\"nccl_collective_number_(issued|replayed)|nccl_operation_"
			   "number_(issued|done)|nccl_collective_signature|nccl_oldest_operation_"
			   "age_seconds|nccl_last_activity_age_seconds\"," NO_OTHER);
		put_members(text, prom);
	} else {
		put(text, "max without (instance, job) (");
		put_series(text, prom,
			   ask == PROM_OLDEST  ? "nccl_oldest_operation_info"
			   : ask == PROM_WAITS ? "nccl_oldest_operation_wait_seconds"
					       : "nccl_last_collective_info",
			   NO_OTHER);
		if (ask == PROM_LAST)
			put_members(text, prom);
		else
			put_old(text, prom);
	}
	put(text, ")");
}

/* Agents that do not answer. Of one job: those that told of it within the last hour; else also those that
 * never told anything. A target that is down has no series, so its last ones are asked for. */
static void put_agents(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	if (ask == PROM_DOWN) {
		put(text, "max by (instance, node) (");
		if (prom->job[0] == '\0')
			put(text, "up{job=~\"ringside.*\"} == 0 or ");
		put(text, "up == 0 and on (job, instance) last_over_time(");
		put_series(text, prom, "nccl_process_info", "");
		put(text, "[1h]))");
		return;
	}
	put(text, "group by (instance, nccl_job, comm, rank, global_rank, host, pid) (last_over_"
		  "time(");
	put_series(text, prom, "nccl_communicator_info", NO_OTHER);
	put(text, "[1h]) and on (job, instance) (up == 0)");
	put_old(text, prom);
	put(text, ")");
}

/* A job that is younger than the stretch did what it did in less time. */
static void put_since(struct text *text, const struct prom *prom)
{
	enum { STEPS = 30 };

	put(text, "min by (nccl_job) (min_over_time(timestamp(");
	put_series(text, prom, "nccl_process_info", "");
	put(text, ")[%us:%us]))", prom->window_s,
	    prom->window_s < 2 * STEPS ? 1 : prom->window_s / STEPS);
}

static void put_increase(struct text *text, const struct prom *prom, const char *name,
			 const char *matchers, bool is_before)
{
	enum { OTHERWISE_S = 900 };

	put(text, "increase(");
	put_series(text, prom, name, matchers);
	put(text, "[%us]", prom->window_s);
	if (!is_before) {
		put(text, ")");
		return;
	}
	put(text, " offset %us)", prom->past_s);
	if (prom->has_past)
		return;
	put(text, " or increase(");
	put_series(text, prom, name, matchers);
	put(text, "[%us] offset %us)", prom->window_s, (unsigned int)OTHERWISE_S);
}

static void put_sums(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	static const char *const names[] = { "nccl_operations_total",
					     "nccl_operation_seconds_total",
					     "nccl_operation_bus_bytes_total" };
	bool is_before = ask >= PROM_SUMS_BEFORE;

	put(text, "sum by (nccl_job, comm, rank, function, size) (");
	put_increase(text, prom, names[ask - (is_before ? PROM_SUMS_BEFORE : PROM_SUMS_NOW)],
		     NO_OTHER ",function=~\"AllReduce|AllGather|ReduceScatter|AlltoAll\","
			      "size!~\"unknown|other\"",
		     is_before);
	put(text, ") > 0");
}

static void put_edges(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	static const char *const names[] = { "nccl_proxy_transfers_total",
					     "nccl_proxy_wait_seconds_total",
					     "nccl_proxy_bytes_total" };
	bool is_before = ask >= PROM_EDGES_BEFORE;
	unsigned int which = ask - (is_before ? PROM_EDGES_BEFORE : PROM_EDGES_NOW);

	put(text, "sum by (nccl_job, comm, rank, peer) (");
	put_increase(text, prom, names[which],
		     which == 1 ? NO_OTHER ",direction=\"send\",peer!=\"other\",state=\"net\""
				: NO_OTHER ",direction=\"send\",peer!=\"other\"",
		     is_before);
	put(text, ") > 0");
}

static void put_query(struct text *text, const struct prom *prom, enum prom_ask ask)
{
	if (ask <= PROM_MEMBERS)
		put_who(text, prom, ask);
	else if (ask <= PROM_LAST)
		put_state(text, prom, ask);
	else if (ask <= PROM_UNSEEN)
		put_agents(text, prom, ask);
	else if (ask == PROM_SINCE)
		put_since(text, prom);
	else if (ask < PROM_EDGES_NOW)
		put_sums(text, prom, ask);
	else
		put_edges(text, prom, ask);
}

static void put_encoded(struct text *text, const char *query)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
				    "-_.~";

	put(text, "/api/v1/query?query=");
	for (const char *at = query; *at != '\0'; at++) {
		if (strchr(plain, *at) != NULL)
			put_bytes(text, at, 1);
		else
			put(text, "%%%02X", (unsigned int)(unsigned char)*at);
	}
}

bool prom_make_queries(struct prom *prom)
{
	for (enum prom_ask ask = 0; ask < PROM_ASKS; ask++) {
		struct text query = { 0 }, path = { 0 };

		put_query(&query, prom, ask);
		if (!query.has_failed)
			put_encoded(&path, query.bytes);
		prom->queries[ask] = query.bytes;
		prom->paths[ask] = path.bytes;
		if (query.has_failed || path.has_failed)
			return false;
	}
	return true;
}
