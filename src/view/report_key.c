#include "view/report_key.h"

#include <inttypes.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"

const char *report_size_text(unsigned int size_class, char to[static REPORT_KEY_TEXT])
{
	char low[UNITS_TEXT], high[UNITS_TEXT];
	uint64_t least, most;

	if (!op_size_range(size_class, &least, &most))
		text_copy(to, REPORT_KEY_TEXT, "-");
	else if (least == most)
		units_bytes(to, least);
	else if (most == UINT64_MAX)
		text_format(to, REPORT_KEY_TEXT, "%s and more", units_bytes(low, least));
	else
		text_format(to, REPORT_KEY_TEXT, "%s - %s", units_bytes(low, least),
			    units_bytes(high, most + 1));
	return to;
}

static const char *comm_text(const struct job *job, uint32_t comm)
{
	return comm < job->comm_count ? job->comms[comm].label : "-";
}

/* Communicators without a name that are shaped alike are one row. */
static void comm_name_text(const struct job *job, uint32_t index, char to[static REPORT_KEY_TEXT])
{
	const struct job_comm *comm = index < job->comm_count ? &job->comms[index] : NULL;

	if (comm == NULL)
		text_copy(to, REPORT_KEY_TEXT, "-");
	else if (comm->name[0] != '\0')
		text_copy(to, REPORT_KEY_TEXT, comm->name);
	else if (comm->nranks <= 0 || comm->nnodes <= 0)
		text_copy(to, REPORT_KEY_TEXT, "(no name)");
	else
		text_format(to, REPORT_KEY_TEXT, "(%d rank%s, %d node%s)", comm->nranks,
			    comm->nranks == 1 ? "" : "s", comm->nnodes,
			    comm->nnodes == 1 ? "" : "s");
}

static const char *group_text(const struct job *job, uint32_t group)
{
	if (group >= job->group_count)
		return "-";
	return job->groups[group].name[0] ? job->groups[group].name : "(no name)";
}

static const char *fixed_text(const struct job *job, const struct tally_key *key, unsigned int bit)
{
	switch (1u << bit) {
	case TALLY_BY_COMM:
		return comm_text(job, key->comm);
	case TALLY_BY_KIND:
		return job_comm_kind_name(key->kind);
	case TALLY_BY_FUNCTION:
		return job_name(job, OP_NAMES_FUNCTION, key->function);
	case TALLY_BY_DATATYPE:
		return job_name(job, OP_NAMES_DATATYPE, key->datatype);
	case TALLY_BY_ALGORITHM:
		return job_name(job, OP_NAMES_ALGORITHM, key->algorithm);
	case TALLY_BY_PROTOCOL:
		return job_name(job, OP_NAMES_PROTOCOL, key->protocol);
	case TALLY_BY_RANK:
		return key->rank < job->rank_count ? job->ranks[key->rank].label : "-";
	case TALLY_BY_HOST:
		return key->host < job->host_count ? job->hosts[key->host].name : "-";
	case TALLY_BY_SOURCE:
		return op_time_source_name(key->source);
	case TALLY_BY_GROUP:
		return group_text(job, key->group);
	default:
		return "-";
	}
}

bool report_key_is_known(const struct tally_key *key, unsigned int bit)
{
	switch (1u << bit) {
	case TALLY_BY_FUNCTION:
		return key->function != OP_FUNCTION_UNKNOWN;
	case TALLY_BY_DATATYPE:
		return key->datatype != OP_DATATYPE_UNKNOWN;
	case TALLY_BY_ALGORITHM:
		return key->algorithm != OP_ALGORITHM_UNKNOWN;
	case TALLY_BY_PROTOCOL:
		return key->protocol != OP_PROTOCOL_UNKNOWN;
	case TALLY_BY_SIZE:
		return key->size_class != 0;
	case TALLY_BY_KIND:
		return key->kind != JOB_COMM_UNKNOWN;
	default:
		return true;
	}
}

const char *report_key_text(const struct timeline_report *report, const struct tally_key *key,
			    unsigned int bit, char to[static REPORT_KEY_TEXT])
{
	if (1u << bit == TALLY_BY_SIZE)
		return report_size_text(key->size_class, to);
	if (!report_key_is_known(key, bit))
		text_copy(to, REPORT_KEY_TEXT, "-");
	else if (1u << bit == TALLY_BY_COMM_NAME)
		comm_name_text(&report->job, key->comm, to);
	else if (1u << bit == TALLY_BY_TAG)
		text_format(to, REPORT_KEY_TEXT, "%" PRIu64, key->tag);
	else
		text_copy(to, REPORT_KEY_TEXT, fixed_text(&report->job, key, bit));
	return to;
}

const char *report_key_title(unsigned int bit)
{
	static const char *const titles[TALLY_BYS] = {
		"COMMUNICATOR", "COMMUNICATORS", "KIND",     "OPERATION", "SIZE",
		"DATATYPE",	"ALGORITHM",	 "PROTOCOL", "RANK",	  "HOST",
		"TAG",		"TIME FROM",	 "JOB",
	};

	return bit < ARRAY_LENGTH(titles) ? titles[bit] : "-";
}

static void put_size(struct json *json, unsigned int size_class)
{
	char text[REPORT_KEY_TEXT];
	uint64_t least, most;

	if (!op_size_range(size_class, &least, &most)) {
		json_put_null(json, "size");
		json_put_null(json, "size_least");
		json_put_null(json, "size_most");
		return;
	}
	json_put_string(json, "size", report_size_text(size_class, text));
	json_put_unsigned(json, "size_least", least);
	json_put_unsigned(json, "size_most", most);
}

/* The index leads into the report's own lists. */
static void put_index(struct json *json, unsigned int bit, const struct tally_key *key)
{
	if (1u << bit == TALLY_BY_COMM)
		json_put_unsigned(json, "comm_index", key->comm);
	else if (1u << bit == TALLY_BY_RANK)
		json_put_unsigned(json, "rank_index", key->rank);
	else if (1u << bit == TALLY_BY_HOST)
		json_put_unsigned(json, "host_index", key->host);
	else if (1u << bit == TALLY_BY_GROUP)
		json_put_unsigned(json, "job_index", key->group);
}

void report_key_json(struct json *json, const struct timeline_report *report,
		     const struct tally_key *key, uint32_t by)
{
	char text[REPORT_KEY_TEXT];

	for (unsigned int bit = 0; bit < TALLY_BYS; bit++) {
		if (!(by & 1u << bit))
			continue;
		if (1u << bit == TALLY_BY_SIZE)
			put_size(json, key->size_class);
		else if (1u << bit == TALLY_BY_TAG)
			json_put_unsigned(json, "tag", key->tag);
		else if (!report_key_is_known(key, bit))
			json_put_null(json, tally_by_name(bit));
		else
			json_put_string(json, tally_by_name(bit),
					report_key_text(report, key, bit, text));
		put_index(json, bit, key);
	}
}
