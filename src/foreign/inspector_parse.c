/*
 * The objects of a line of NCCL Inspector, in whatever order they and their fields come:
 *
 *	header      id, comm_name, rank, n_ranks, nnodes
 *	metadata    inspector_output_format_version, dump_timestamp_us, hostname, pid, ...
 *	coll_perf   see inspector_perf.c, p2p_perf as well
 *	dump_stats  (v4.1) what follows, and what was dropped
 *	proxy_trace (v4.3) see inspector_proxy.c
 *
 * A field that is missing is unknown. A field that is there and of another kind than it should be
 * makes the line a damaged one.
 */
#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/text.h"
#include "foreign/inspector.h"

#define KEY JSON_SCAN_KEY_OF

/* ---- header and metadata --------------------------------------------------------------------- */

/* "0x7f8c496ae9f661": the communicator's hash, of which Inspector keeps 14 digits. Anything else is
 * a name all the same: equal where the communicator is. */
static uint64_t comm_hash(const char *text)
{
	uint64_t value = 0;
	size_t length = strlen(text);

	if (length < 3 || length > 18 || text[0] != '0' || text[1] != 'x')
		return length == 0 ? 0 : hash_bytes(text, length);
	for (const char *at = text + 2; *at != '\0'; at++) {
		char lower = (char)(*at | 0x20);

		if (*at >= '0' && *at <= '9')
			value = value << 4 | (uint64_t)(*at - '0');
		else if (lower >= 'a' && lower <= 'f')
			value = value << 4 | (uint64_t)(lower - 'a' + 10);
		else
			return hash_bytes(text, length);
	}
	return value;
}

static bool parse_name(struct foreign_reading *reading, struct comm_info *comm)
{
	char name[sizeof(comm->name) + 4] = "";

	if (!foreign_take_text(reading, name, sizeof(name)))
		return false;
	if (strcmp(name, "unknown") == 0)
		name[0] = '\0';
	if (!text_copy(comm->name, sizeof(comm->name), name))
		comm->flags |= COMM_FLAG_NAME_CUT;
	return true;
}

static bool parse_header_field(struct foreign_reading *reading, int key, struct comm_info *comm)
{
	char id[64] = "";

	switch (key) {
	case 0:
		if (!foreign_take_text(reading, id, sizeof(id)))
			return false;
		comm->hash = comm_hash(id);
		return true;
	case 1:
		return parse_name(reading, comm);
	case 2:
		return foreign_take_int32(reading, &comm->rank);
	case 3:
		return foreign_take_int32(reading, &comm->nranks);
	case 4:
		return foreign_take_int32(reading, &comm->nnodes);
	default:
		return foreign_take_skip(reading);
	}
}

static bool parse_header(struct foreign_reading *reading, struct inspector_kept *kept,
			 struct inspector_line *line)
{
	static const struct json_scan_key keys[] = { KEY("id"), KEY("comm_name"), KEY("rank"),
						     KEY("n_ranks"), KEY("nnodes") };
	const char *start = reading->scan.at;
	int key, hint = 0;

	line->has_header = true;
	line->is_same_header = json_scan_again(&reading->scan, kept->header, kept->header_length);
	if (line->is_same_header)
		return true;
	kept->header_length = 0;
	line->comm = (struct comm_info){ .rank = -1 };
	if (!foreign_take_object(reading, &line->has_header))
		return false;
	if (!line->has_header)
		return true;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_header_field(reading, key, &line->comm))
			return false;
	if (line->comm.nranks < 0 || line->comm.nnodes < 0 || line->comm.rank < -1) {
		reading->problem = "a communicator of negative size";
		return false;
	}
	if (reading->problem == NULL && *start == '{' &&
	    (size_t)(reading->scan.at - start) <= sizeof(kept->header)) {
		kept->header_length = (size_t)(reading->scan.at - start);
		memcpy(kept->header, start, kept->header_length);
	}
	return reading->problem == NULL;
}

/* Where the time of writing stands in the text, so that the rest can be kept. */
struct place {
	const char *text;
	size_t length;
};

static bool parse_dump_time(struct foreign_reading *reading, uint64_t *ns, struct place *place)
{
	if (!foreign_take_us(reading, ns))
		return false;
	if (reading->scan.token == JSON_SCAN_NUMBER && reading->scan.is_plain)
		*place = (struct place){ reading->scan.text, reading->scan.length };
	return true;
}

static bool parse_metadata_field(struct foreign_reading *reading, int key,
				 struct inspector_metadata *metadata, struct place *place)
{
	switch (key) {
	case 0:
		return foreign_take_text(reading, metadata->version, sizeof(metadata->version));
	case 3:
		return parse_dump_time(reading, &metadata->dump_ns, place);
	case 4:
		return foreign_take_text(reading, metadata->host, sizeof(metadata->host));
	case 5:
		return foreign_take_signed(reading, &metadata->pid);
	default:
		return foreign_take_skip(reading);
	}
}

static void keep_metadata(struct inspector_kept *kept, const char *start, const char *end,
			  const struct place *place)
{
	const char *after;

	if (place->text == NULL || *start != '{')
		return;
	after = place->text + place->length;
	if ((size_t)(place->text - start) > sizeof(kept->before) ||
	    (size_t)(end - after) > sizeof(kept->after))
		return;
	kept->before_length = (size_t)(place->text - start);
	kept->after_length = (size_t)(end - after);
	memcpy(kept->before, start, kept->before_length);
	memcpy(kept->after, after, kept->after_length);
}

static bool is_same_metadata(struct foreign_reading *reading, const struct inspector_kept *kept,
			     struct inspector_metadata *metadata)
{
	uint64_t us;

	if (!json_scan_again_but(&reading->scan, kept->before, kept->before_length, kept->after,
				 kept->after_length, &us))
		return false;
	metadata->dump_ns = us < UINT64_MAX / 1000 ? us * 1000 : 0;
	return true;
}

static bool parse_metadata(struct foreign_reading *reading, struct inspector_kept *kept,
			   struct inspector_line *line)
{
	static const struct json_scan_key keys[] = {
		KEY("inspector_output_format_version"),
		KEY("git_rev"),
		KEY("rec_mechanism"),
		KEY("dump_timestamp_us"),
		KEY("hostname"),
		KEY("pid"),
	};
	struct inspector_metadata *metadata = &line->metadata;
	const char *start = reading->scan.at;
	struct place place = { NULL, 0 };
	int key, hint = 0;

	line->has_metadata = true;
	line->is_same_metadata = is_same_metadata(reading, kept, metadata);
	if (line->is_same_metadata)
		return true;
	kept->before_length = 0;
	*metadata = (struct inspector_metadata){ .pid = -1 };
	if (!foreign_take_object(reading, &line->has_metadata) || !line->has_metadata)
		return reading->problem == NULL;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_metadata_field(reading, key, metadata, &place))
			return false;
	if (reading->problem != NULL)
		return false;
	keep_metadata(kept, start, reading->scan.at, &place);
	return true;
}

/* ---- dump_stats ------------------------------------------------------------------------------ */

static bool parse_stats_field(struct foreign_reading *reading, int key,
			      struct inspector_stats *stats)
{
	uint64_t *const fields[] = {
		&stats->records[INSPECTOR_COLL],  &stats->dropped_colls,
		&stats->records[INSPECTOR_P2P],	  &stats->dropped_p2ps,
		&stats->records[INSPECTOR_PROXY], &stats->dropped_proxies,
		&stats->dropped_proxy_ops,	  &stats->foreign_ops,
	};

	return key < 0 ? foreign_take_skip(reading) : foreign_take_unsigned(reading, fields[key]);
}

static bool parse_stats(struct foreign_reading *reading, struct inspector_line *line)
{
	static const struct json_scan_key keys[] = {
		KEY("coll_records"),
		KEY("coll_dropped_total"),
		KEY("p2p_records"),
		KEY("p2p_dropped_total"),
		KEY("proxy_records"),
		KEY("proxy_dropped_total"),
		KEY("proxy_ops_dropped_total"),
		KEY("proxy_pxn_skipped_process_total"),
	};
	int key, hint = 0;

	line->stats = (struct inspector_stats){ .records = { 0, INSPECTOR_UNKNOWN,
							     INSPECTOR_UNKNOWN, 0 } };
	if (!foreign_take_object(reading, &line->has_stats) || !line->has_stats)
		return reading->problem == NULL;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_stats_field(reading, key, &line->stats))
			return false;
	return reading->problem == NULL;
}

/* ---- the line -------------------------------------------------------------------------------- */

static bool parse_part(struct foreign_reading *reading, int key, struct inspector_kept *kept,
		       struct inspector_line *line)
{
	bool is_body = key == 2 || key == 3 || key == 5;

	if ((key == 0 && line->has_header) || (key == 1 && line->has_metadata) ||
	    (key == 4 && line->has_stats) || (is_body && line->body != INSPECTOR_NO_BODY)) {
		reading->problem = "a part of it comes twice";
		return false;
	}
	switch (key) {
	case 0:
		return parse_header(reading, kept, line);
	case 1:
		return parse_metadata(reading, kept, line);
	case 2:
		return inspector_parse_perf(reading, INSPECTOR_COLL, line);
	case 3:
		return inspector_parse_perf(reading, INSPECTOR_P2P, line);
	case 4:
		return parse_stats(reading, line);
	case 5:
		line->body = INSPECTOR_PROXY;
		return inspector_parse_proxy(reading);
	default:
		return foreign_take_skip(reading);
	}
}

bool inspector_parse(struct foreign_reading *reading, struct inspector_kept *kept,
		     struct inspector_line *line)
{
	static const struct json_scan_key keys[] = { KEY("header"),	KEY("metadata"),
						     KEY("coll_perf"),	KEY("p2p_perf"),
						     KEY("dump_stats"), KEY("proxy_trace") };
	int key, hint = 0;

	line->body = INSPECTOR_NO_BODY;
	line->has_header = line->has_metadata = line->has_stats = false;
	if (!foreign_begin_line(reading))
		return false;
	while ((key = foreign_next_key(reading, keys, ARRAY_LENGTH(keys), &hint)) !=
	       JSON_SCAN_KEY_NONE)
		if (!parse_part(reading, key, kept, line))
			return false;
	if (reading->problem == NULL && json_scan_next(&reading->scan) == JSON_SCAN_ERROR)
		reading->problem = reading->scan.problem;
	return reading->problem == NULL;
}
