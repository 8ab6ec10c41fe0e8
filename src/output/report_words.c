/* The words of a report, the same in text, JSON and HTML. */
#include "output/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/nccl_interface.h"
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

/* Unnamed communicators of the same size share a row. */
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

/* An index into the report's own lists. */
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

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

void report_family_name(char to[static REPORT_KEY_TEXT], const char *name)
{
	size_t used = 0;

	while (*name != '\0' && used + 1 < REPORT_KEY_TEXT) {
		to[used++] = is_digit(*name) ? '*' : *name;
		if (is_digit(*name))
			while (is_digit(*name))
				name++;
		else
			name++;
	}
	to[used] = '\0';
}

static int by_identity(const void *left, const void *right)
{
	const struct report_family *a = left, *b = right;

	return ORDER(a->group, b->group) ?: strcmp(a->name, b->name) ?: ORDER(a->kind, b->kind);
}

static int by_time(const void *left, const void *right)
{
	const struct report_family *a = left, *b = right;

	if (tally_total_ns(&a->row) != tally_total_ns(&b->row))
		return tally_total_ns(&a->row) > tally_total_ns(&b->row) ? -1 : 1;
	return by_identity(left, right);
}

/* Unnamed communicators are distinguished by their size, so its digits are kept. */
static void family_identify(struct report_family *family, const struct timeline_report *report,
			    const struct tally_key *key, bool is_each)
{
	const unsigned int name_bit = (unsigned int)__builtin_ctz(TALLY_BY_COMM_NAME);
	const struct job *job = &report->job;

	family->group = key->group;
	family->kind = key->kind;
	if (!is_each && key->comm < job->comm_count && job->comms[key->comm].name[0] != '\0')
		report_family_name(family->name, job->comms[key->comm].name);
	else
		report_key_text(report, key, name_bit, family->name);
}

static bool is_alike(const struct job_comm *a, const struct job_comm *b)
{
	if (a->group != b->group || strcmp(a->name, b->name) != 0)
		return false;
	return a->name[0] != '\0' || (a->nranks == b->nranks && a->nnodes == b->nnodes);
}

struct report_alike report_count_alike(const struct job *job, const struct tally_key *key,
				       uint32_t by)
{
	struct report_alike found = { 0, INT32_MAX, 0 };

	for (size_t i = 0; i < job->comm_count; i++) {
		const struct job_comm *comm = &job->comms[i];

		if (!is_alike(comm, &job->comms[key->comm]) ||
		    (by & TALLY_BY_KIND && comm->kind != (enum job_comm_kind)key->kind))
			continue;
		found.comms++;
		found.least = comm->nranks < found.least ? comm->nranks : found.least;
		found.most = comm->nranks > found.most ? comm->nranks : found.most;
	}
	return found;
}

static enum status families_collect(struct report_families *families,
				    const struct timeline_report *report, bool is_each)
{
	const struct tally *tally = &report->by_comm_name;
	enum status status = OK;

	for (size_t i = 0; i < tally->count && status == OK; i++) {
		struct report_family *family = &families->list[families->count++];

		family_identify(family, report, &tally->rows[i].key, is_each);
		family->rows = 1;
		family->row.key = tally->rows[i].key;
		status = tally_merge(&family->row, &tally->rows[i]);
	}
	return status;
}

/* Expects the list sorted by identity; merges equal neighbours. */
static enum status families_merge(struct report_families *families)
{
	enum status status = OK;
	size_t kept = 0;

	for (size_t i = 1; i < families->count; i++) {
		struct report_family *to = &families->list[kept], *from = &families->list[i];

		if (by_identity(to, from) == 0) {
			if (status == OK)
				status = tally_merge(&to->row, &from->row);
			to->rows += from->rows;
			tally_row_release(&from->row);
		} else if (++kept != i) {
			families->list[kept] = *from;
			from->row = (struct tally_row){ .calls = 0 };
		}
	}
	if (families->count > 0)
		families->count = kept + 1;
	return status;
}

static void count_comms(struct report_families *families, const struct timeline_report *report,
			bool is_each)
{
	const struct job *job = &report->job;

	for (size_t i = 0; i < job->comm_count; i++) {
		const struct job_comm *comm = &job->comms[i];
		const struct tally_key key = { .comm = (uint32_t)i,
					       .group = comm->group,
					       .kind = (uint8_t)comm->kind };
		struct report_family like, *family;

		family_identify(&like, report, &key, is_each);
		family = bsearch(&like, families->list, families->count, sizeof(like), by_identity);
		if (family == NULL)
			continue;
		if (family->comms == 0 || comm->nranks < family->least_ranks)
			family->least_ranks = comm->nranks;
		if (comm->nranks > family->most_ranks)
			family->most_ranks = comm->nranks;
		family->comms++;
	}
}

/* A family of one keeps its name. */
static void name_single(struct report_families *families, const struct timeline_report *report)
{
	const unsigned int name_bit = (unsigned int)__builtin_ctz(TALLY_BY_COMM_NAME);

	for (size_t i = 0; i < families->count; i++)
		if (families->list[i].rows == 1)
			report_key_text(report, &families->list[i].row.key, name_bit,
					families->list[i].name);
}

enum status report_families_make(struct report_families *families,
				 const struct timeline_report *report, bool is_each)
{
	enum status status;

	families->count = 0;
	families->list = calloc(report->by_comm_name.count + 1, sizeof(*families->list));
	if (families->list == NULL)
		return ERR_NO_SPACE;
	status = families_collect(families, report, is_each);
	qsort(families->list, families->count, sizeof(*families->list), by_identity);
	if (status == OK)
		status = families_merge(families);
	if (status != OK) {
		report_families_release(families);
		return status;
	}
	count_comms(families, report, is_each);
	name_single(families, report);
	qsort(families->list, families->count, sizeof(*families->list), by_time);
	return OK;
}

void report_families_release(struct report_families *families)
{
	for (size_t i = 0; i < families->count; i++)
		tally_row_release(&families->list[i].row);
	free(families->list);
	*families = (struct report_families){ NULL, 0 };
}

#define DAY_NS (86400 * SECOND_NS)

/* Names listed in a sentence; the rest are only counted. */
enum { NAMES_LISTED = 3 };

const char *report_share(char to[static REPORT_SHARE], double part, double of)
{
	double percent = of > 0 ? part / of * 100 : 0;

	if (!(of > 0))
		text_copy(to, REPORT_SHARE, "-");
	else if (percent >= 9.95 || percent == 0)
		text_format(to, REPORT_SHARE, "%.0f%%", percent);
	else if (percent < 0.1)
		text_copy(to, REPORT_SHARE, "<0.1%");
	else
		text_format(to, REPORT_SHARE, "%.1f%%", percent);
	return to;
}

const char *report_hours(char to[static REPORT_SHARE], double hours)
{
	if (hours > 0 && hours < 0.001)
		text_copy(to, REPORT_SHARE, "<0.001");
	else if (!(hours > 0))
		text_copy(to, REPORT_SHARE, "0");
	else if (hours < 10)
		text_format(to, REPORT_SHARE, "%.3f", hours);
	else
		text_format(to, REPORT_SHARE, "%.*f", hours < 100 ? 1 : 0, hours);
	return to;
}

/* Three significant digits, never an exponent. */
static int shown_decimals(double number)
{
	return number >= 100 ? 0 : number >= 10 ? 1 : 2;
}

void report_words_lost(double hours_lost, double hours, char to[static REPORT_WORDS])
{
	double unit = hours < 1 ? 3600 : 1;
	double lost = hours_lost * unit, all = hours * unit;

	text_format(to, REPORT_WORDS, "%.*f of %.*f GPU-%s", shown_decimals(lost), lost,
		    shown_decimals(all), all, hours < 1 ? "seconds" : "hours");
}

/* ---- job ------------------------------------------------------------------------------------- */

unsigned int report_interfaces(const struct recording *recording)
{
	unsigned int found = 0;

	for (size_t p = 0; p < recording->count; p++) {
		const struct recording_process *process = recording->processes[p];

		if (process->interface <= OP_INTERFACES)
			found |= 1u << process->interface;
		for (size_t c = 0; c < process->comm_count; c++)
			if (process->comms[c].info.interface <= OP_INTERFACES)
				found |= 1u << process->comms[c].info.interface;
	}
	return found & ~1u;
}

void report_words_nccl(const struct recording *recording, char to[static REPORT_WORDS])
{
	unsigned int found = report_interfaces(recording);
	size_t used = strlen("NCCL");

	text_copy(to, REPORT_WORDS, found ? "NCCL" : "NCCL (unknown release)");
	for (unsigned int version = 1; found != 0 && version <= OP_INTERFACES; version++) {
		if (!(found & 1u << version))
			continue;
		text_format(to + used, REPORT_WORDS - used, "%s %s",
			    used > strlen("NCCL") ? " and" : "", op_interface_releases(version));
		used = strlen(to);
	}
}

static void list_hosts(const struct job *job, struct sink *to)
{
	if (job->host_count == 1 && job->hosts[0].name[0] != '\0')
		sink_format(to, " on %s", job->hosts[0].name);
	else
		sink_format(to, " on %zu host%s", job->host_count, job->host_count == 1 ? "" : "s");
}

static void list_jobs(const struct job *job, struct sink *to)
{
	if (job->group_count == 1) {
		if (job->groups[0].name[0] != '\0')
			sink_format(to, "job %s: ", job->groups[0].name);
		return;
	}
	sink_format(to, "%zu jobs (", job->group_count);
	for (size_t i = 0; i < job->group_count && i < NAMES_LISTED; i++)
		sink_format(to, "%s%s", i > 0 ? ", " : "",
			    job->groups[i].name[0] ? job->groups[i].name : "(no name)");
	sink_text(to, job->group_count > NAMES_LISTED ? ", ...): " : "): ");
}

/* As the launchers said, of all jobs. */
static int64_t all_ranks(const struct job *job)
{
	int64_t world = 0;

	for (size_t i = 0; i < job->group_count; i++)
		world += job->groups[i].world_size;
	return world;
}

void report_words_job(const struct timeline_report *report, char to[static REPORT_WORDS])
{
	const struct job *job = &report->job;
	int64_t world = all_ranks(job);
	struct sink sink;

	sink_init_memory(&sink);
	if (job->group_count > 0)
		list_jobs(job, &sink);
	if (world > (int64_t)job->known_ranks)
		sink_format(&sink, "%zu of %" PRId64 " ranks", job->known_ranks, world);
	else
		sink_format(&sink, "%zu %s", job->known_ranks,
			    text_which(job->known_ranks, "rank", "ranks"));
	list_hosts(job, &sink);
	text_copy(to, REPORT_WORDS, sink_string(&sink));
	sink_release(&sink);
}

/* ---- time ------------------------------------------------------------------------------------ */

void report_words_span(const struct timeline_report *report, char to[static REPORT_WORDS])
{
	char duration[UNITS_TEXT], from[UNITS_TEXT];

	text_copy(to, REPORT_WORDS, "");
	if (report->start_ns == 0 || report->end_ns < report->start_ns)
		return;
	units_duration(duration, report->end_ns - report->start_ns);
	if (report->has_wall)
		text_format(to, REPORT_WORDS, "%s from %s UTC", duration,
			    units_date(from, report->start_ns));
	else
		text_copy(to, REPORT_WORDS, duration);
}

void report_words_moment(const struct timeline_report *report, uint64_t ns,
			 char to[static REPORT_WORDS])
{
	uint64_t duration = report->end_ns - report->start_ns;
	char text[UNITS_TEXT];

	if (report->has_wall) {
		if (duration < DAY_NS)
			units_clock(text, ns);
		else
			units_date(text, ns);
		if (duration < 60 * SECOND_NS)
			text_format(to, REPORT_WORDS, "%s.%03u", text,
				    (unsigned int)(ns % SECOND_NS / 1000000));
		else
			text_copy(to, REPORT_WORDS, text);
		return;
	}
	if (ns < report->start_ns)
		text_format(to, REPORT_WORDS, "%s before the start",
			    units_duration(text, report->start_ns - ns));
	else
		text_format(to, REPORT_WORDS, "%s after the start",
			    units_duration(text, ns - report->start_ns));
}

/* ---- completeness ---------------------------------------------------------------------------- */

/* "; 3 processes were killed" */
static void write_count(struct sink *to, uint64_t count, const char *one, const char *many)
{
	char text[UNITS_TEXT];

	if (count > 0)
		sink_format(to, "; %s %s", units_count(text, count), count == 1 ? one : many);
}

static void write_lost(const struct timeline_completeness *from, struct sink *to)
{
	const char *between = " (";

	if (from->lost_operations == 0)
		return;
	write_count(to, from->lost_operations, "operation lost while recording",
		    "operations lost while recording");
	for (unsigned int i = 0; i < LOST_REASONS; i++) {
		if (from->lost[i] == 0 || !op_lost_is_whole(i))
			continue;
		sink_format(to, "%s%s: %" PRIu64, between, op_lost_words(i), from->lost[i]);
		between = ", ";
	}
	sink_text(to, ")");
}

static void write_share(const struct timeline_report *report, struct sink *to)
{
	const struct timeline_completeness *from = &report->completeness;
	const struct job *job = &report->job;
	int64_t world = all_ranks(job);
	char read[UNITS_TEXT], issued[UNITS_TEXT], share[REPORT_SHARE];

	units_count(read, from->read);
	if (from->is_complete && world > (int64_t)job->known_ranks)
		sink_format(to, "recordings of %zu of %" PRId64 " ranks complete (%s %s)",
			    job->known_ranks, world, read,
			    text_which(from->read, "operation", "operations"));
	else if (from->is_complete)
		sink_format(to, "recording complete (%s %s)", read,
			    text_which(from->read, "operation", "operations"));
	else if (from->with_counts == 0 && from->issued == 0)
		sink_format(to, "%s %s; the total is unknown", read,
			    text_which(from->read, "operation", "operations"));
	else if (from->issued > from->read)
		sink_format(to, "recording incomplete: %s of %s operations (%s)", read,
			    units_count(issued, from->issued),
			    report_share(share, (double)from->read, (double)from->issued));
	else
		sink_format(to, "all %s recorded %s read", read,
			    text_which(from->read, "operation", "operations"));
}

/* Truncated files are reported with their processes. */
static uint64_t count_unreadable_files(const struct recording *recording)
{
	const char *last = "";
	uint64_t count = 0;

	for (size_t i = 0; i < recording->trouble_count; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (trouble->kind == RECORDING_CUT || strcmp(trouble->path, last) == 0)
			continue;
		last = trouble->path;
		count++;
	}
	return count;
}

void report_words_completeness(const struct timeline_report *report, struct sink *to)
{
	const struct timeline_completeness *from = &report->completeness;
	uint64_t looked_at = report->total.calls + report->total.captured;

	write_share(report, to);
	if (from->snapshots > 0)
		write_count(to, from->overwritten, "older operation not in the snapshot",
			    "older operations not in the snapshots");
	else
		write_count(to, from->overwritten,
			    "older operation overwritten (flight mode keeps the most recent)",
			    "older operations overwritten (flight mode keeps the most recent)");
	write_lost(from, to);
	write_count(to, from->killed, "process killed", "processes killed");
	if (from->snapshots > 0)
		write_count(to, from->alive, "process was running", "processes were running");
	else
		write_count(to, from->alive, "process still running", "processes still running");
	write_count(to, from->unknown_life - from->without_end_mark, "recording is truncated",
		    "recordings are truncated");
	write_count(to, from->in_flight, "operation in flight", "operations in flight");
	write_count(to, from->refused, "record rejected", "records rejected");
	write_count(to, from->damages, "damaged block or line", "damaged blocks or lines");
	write_count(to, count_unreadable_files(report->recording),
		    "file could not be read completely", "files could not be read completely");
	if (looked_at < from->read)
		write_count(to, looked_at, "matches the filter", "match the filter");
	if (looked_at == 0 && from->read > 0)
		sink_text(to, "; none match the filter");
}

/* ---- durations ------------------------------------------------------------------------------- */

bool report_has_mixed_sources(const struct tally_row *row)
{
	unsigned int kinds = 0;

	for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SHOWN_SOURCES; i++)
		kinds += op_is_duration(i) && row->by_source[i] > 0;
	return kinds > 1;
}

void report_words_sources(const struct tally_row *row, char to[static REPORT_WORDS])
{
	static const char *const names[OP_TIME_SHOWN_SOURCES] = {
		[OP_TIME_KERNEL_GPU] = "the GPU clock",
		[OP_TIME_CUDA_EVENT] = "CUDA events",
		[OP_TIME_TOOL] = "another tool, as it measured",
	};
	bool is_mixed = report_has_mixed_sources(row);
	char share[REPORT_SHARE], shared[UNITS_TEXT];
	size_t used = 0;

	text_copy(to, REPORT_WORDS, "none (no call was timed)");
	for (uint8_t i = OP_TIME_NONE + 1; i < OP_TIME_SHOWN_SOURCES; i++) {
		if (row->by_source[i] == 0 || !op_is_duration(i))
			continue;
		report_share(share, (double)row->by_source[i], (double)row->timed);
		text_format(to + used, REPORT_WORDS - used, "%s%s%s%s", used > 0 ? ", " : "",
			    names[i], is_mixed ? " " : "", is_mixed ? share : "");
		used = strlen(to);
	}
	if (row->shared > 0)
		text_format(to + used, REPORT_WORDS - used,
			    "; %s %s the time of a launch with other calls, not in algbw and busbw",
			    units_count(shared, row->shared),
			    text_which(row->shared, "call has", "calls have"));
}

double report_rank_seconds(const struct timeline_report *report)
{
	double ns = 0;

	for (size_t r = 0; r < report->job.rank_count; r++)
		if (report->ranks[r].is_shown && report->job.ranks[r].is_counted)
			ns += (double)report->ranks[r].span_ns;
	return ns / 1e9;
}

void report_words_rates(const struct timeline_report *report, char to[static REPORT_WORDS])
{
	const struct iterations *iterations = &report->iterations;
	const struct tally_row *total = &report->total;
	double seconds = report_rank_seconds(report);
	char bytes[UNITS_TEXT], time[UNITS_TEXT];

	text_copy(to, REPORT_WORDS, "");
	if (total->timed > 0 || total->calls == 0 || seconds <= 0)
		return;
	text_format(to, REPORT_WORDS, "%s of messages and %.4g calls per second%s",
		    units_bytes(bytes, units_whole((double)total->bytes / seconds)),
		    (double)total->calls / seconds,
		    total->unknown_size > 0 ? " (without those of unknown size)" : "");
	if (iterations->is_found)
		text_append(to, REPORT_WORDS, "; an iteration takes %s (median of %zu)",
			    units_duration(time, iterations->median_ns), iterations->regular);
}

void report_words_spans(const struct tally_row *row, char to[static REPORT_WORDS])
{
	char proxies[UNITS_TEXT], hosts[UNITS_TEXT];
	uint64_t by_network = row->by_source[OP_TIME_PROXY], by_host = row->by_source[OP_TIME_HOST];

	text_copy(to, REPORT_WORDS, "");
	if (by_network > 0)
		text_append(to, REPORT_WORDS, "%s network %s", units_count(proxies, by_network),
			    text_which(by_network, "span", "spans"));
	if (by_host > 0)
		text_append(to, REPORT_WORDS, "%s%s %s of the host clock",
			    by_network > 0 ? ", " : "", units_count(hosts, by_host),
			    text_which(by_host, "upper bound", "upper bounds"));
}

void report_words_timed(const struct tally_row *row, char to[static REPORT_WORDS])
{
	char timed[UNITS_TEXT], over[UNITS_TEXT], share[REPORT_SHARE];

	text_copy(to, REPORT_WORDS, "");
	if (!tally_is_sampled(row))
		return;
	text_format(to, REPORT_WORDS, "%s of %s calls (%s)", units_count(timed, row->timed),
		    units_count(over, tally_over(row)),
		    report_share(share, (double)row->timed, (double)tally_over(row)));
}

/* Sentences leave out datatype, algorithm and protocol. */
static bool is_same_kind(const struct timeline_untimed *a, const struct timeline_untimed *b)
{
	return a->comm == b->comm && (uint8_t)a->names == (uint8_t)b->names &&
	       a->size_class == b->size_class;
}

static bool is_listed(const struct timeline_untimed *kind,
		      const struct timeline_untimed *const *listed, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_same_kind(kind, listed[i]))
			return true;
	return false;
}

void report_words_not_timed(const struct timeline_report *report, char to[static REPORT_WORDS])
{
	const struct timeline_untimed *listed[NAMES_LISTED];
	size_t count = 0, used = 0, more = 0;

	text_copy(to, REPORT_WORDS, "");
	for (size_t i = 0; i < report->untimed_count; i++) {
		const struct timeline_untimed *kind = &report->untimed[i];
		char size[REPORT_KEY_TEXT], text[UNITS_TEXT];
		uint64_t calls = 0;

		if (is_listed(kind, listed, count))
			continue;
		if (count == NAMES_LISTED) {
			more++;
			continue;
		}
		for (size_t j = i; j < report->untimed_count; j++)
			calls += is_same_kind(kind, &report->untimed[j]) ? report->untimed[j].calls
									 : 0;
		listed[count++] = kind;
		text_format(to + used, REPORT_WORDS - used, "%s%.30s of %s in %.40s (%s %s)",
			    used > 0 ? ", " : "",
			    job_name(&report->job, OP_NAMES_FUNCTION, (uint8_t)kind->names),
			    kind->size_class != 0 ? report_size_text(kind->size_class, size)
						  : "unknown size",
			    report->job.comms[kind->comm].label, units_count(text, calls),
			    text_which(calls, "call", "calls"));
		used = strlen(to);
	}
	if (more > 0)
		text_format(to + used, REPORT_WORDS - used, " and %zu more %s", more,
			    text_which(more, "kind", "kinds"));
}

const char *report_estimate_mark(const struct tally_row *row)
{
	bool is_least = row->timed > 0 && tally_not_timed(row) > 0;

	if (row->covered > 0)
		return is_least ? ">~" : "~";
	return is_least ? ">" : "";
}

bool report_knows_waiting(const struct timeline_report *report, const struct tally_row *row)
{
	return row->joined > 0 && report->matches.complete + report->matches.partial > 0;
}

/* ---- changes and stragglers ------------------------------------------------------------------ */

static bool is_network_slow(const struct stragglers *stragglers)
{
	for (size_t i = 0; i < stragglers->count; i++)
		if (stragglers->list[i].class == STRAGGLER_NETWORK)
			return true;
	return false;
}

/* Where a change was seen, and what that means. A single communicator is not enough to blame the network. */
static void where_words(const struct timeline_report *report, const struct windows_change *change,
			char *to, size_t size)
{
	bool is_net = change->kind == JOB_COMM_NET || change->kind == JOB_COMM_MIXED;
	const char *example = change->example_comm < report->job.comm_count
				      ? report->job.comms[change->example_comm].label
				      : "?";

	if (change->is_everywhere && is_net &&
	    (change->comms > 1 || is_network_slow(&report->stragglers)))
		text_copy(to, size, "on all ranks: network, not a single rank");
	else if (change->is_everywhere && change->comms > 1)
		text_copy(to, size, "on all nodes, not a single one");
	else if (change->comms > 1)
		text_format(to, size, "on %u of %u communicators (%u %s, for example %s)",
			    change->comms_changed, change->comms, change->ranks_changed,
			    text_which(change->ranks_changed, "rank", "ranks"), example);
	else
		text_format(to, size, "on %s, the only communicator with this operation", example);
}

void report_words_change(const struct timeline_report *report, const struct windows_change *change,
			 char to[static REPORT_WORDS])
{
	char size[REPORT_KEY_TEXT], when[REPORT_WORDS], where[REPORT_WORDS / 2];

	report_words_moment(report, change->at_ns, when);
	where_words(report, change, where, sizeof(where));
	if (change->is_wire) {
		text_format(
			to, REPORT_WORDS,
			"%s of %s on %s communicators: a transfer's time on the wire %s %.0f%% at "
			"%.30s, from %s to %s, %s",
			job_name(&report->job, OP_NAMES_FUNCTION, change->function),
			report_size_text(change->size_class, size),
			job_comm_kind_name(change->kind), change->percent < 0 ? "rose" : "fell",
			100 * fabs(change->before / change->after - 1), when,
			units_of_ns(1e9 / change->before).text,
			units_of_ns(1e9 / change->after).text, where);
		return;
	}
	text_format(
		to, REPORT_WORDS,
		"%s of %s on %s communicators: busbw without waiting %s %.0f%% at %.30s, from %.4g "
		"to %.4g GB/s, %s",
		job_name(&report->job, OP_NAMES_FUNCTION, change->function),
		report_size_text(change->size_class, size), job_comm_kind_name(change->kind),
		change->percent < 0 ? "fell" : "rose", fabs(change->percent), when,
		change->before / 1e9, change->after / 1e9, where);
}

static const char *rank_label(const struct timeline_report *report, uint32_t rank)
{
	return rank < report->job.rank_count ? report->job.ranks[rank].label : "?";
}

static const char *host_name(const struct timeline_report *report, uint32_t host)
{
	return host < report->job.host_count ? report->job.hosts[host].name : "?";
}

void report_words_straggler(const struct timeline_report *report, const struct straggler *one,
			    char to[static REPORT_WORDS])
{
	char late[UNITS_TEXT], share[REPORT_SHARE];
	const char *host = host_name(report, one->host);
	bool is_peer;

	if (one->is_origin) {
		bool is_host = one->class == STRAGGLER_SLOW_HOST;

		text_format(to, REPORT_WORDS,
			    "%s%s%s%.64s (%.1f%% more of the time outside of communication than "
			    "its peers)",
			    is_host ? "host " : "rank ",
			    is_host ? "" : rank_label(report, one->rank), is_host ? "" : " on ",
			    host, 100 * one->own_excess);
		return;
	}
	switch (one->class) {
	case STRAGGLER_SLOW_RANK:
		units_duration(late, one->late_ns);
		text_format(to, REPORT_WORDS, "rank %s on %.64s ", rank_label(report, one->rank),
			    host);
		if (one->late_ns == 0)
			text_append(to, REPORT_WORDS,
				    "(short of CPU time; its transfers take %.1fx longer)",
				    one->slowdown);
		else if (one->is_by_network)
			text_append(to, REPORT_WORDS,
				    "(its GPU comes %s late, as the network shows)", late);
		else if (one->is_behind)
			text_append(to, REPORT_WORDS, "(%s late, hidden by a later one)", late);
		else
			text_append(to, REPORT_WORDS,
				    "(%s late, last in %s of %" PRIu64 " collectives)", late,
				    report_share(share, (double)one->last_in, (double)one->matches),
				    one->matches);
		break;
	case STRAGGLER_SLOW_HOST:
		text_format(to, REPORT_WORDS, "host %.64s (its ranks arrive %s late)", host,
			    units_duration(late, one->late_ns));
		break;
	case STRAGGLER_SLOW_LINK:
		if (one->is_uplink || one->is_rail) {
			text_format(to, REPORT_WORDS, "links of %s%.64s (%.1fx longer on the wire)",
				    one->is_uplink ? "host "
						   : "several hosts, of the same GPU as rank ",
				    one->is_uplink ? host : rank_label(report, one->rank),
				    one->slowdown);
			break;
		}
		is_peer = one->peer < report->job.rank_count;
		text_format(to, REPORT_WORDS, "link from rank %s%s%s (%.1fx longer on the wire)",
			    rank_label(report, one->rank), is_peer ? " to rank " : "",
			    is_peer ? rank_label(report, one->peer) : "", one->slowdown);
		break;
	case STRAGGLER_NETWORK:
		text_format(to, REPORT_WORDS,
			    one->is_by_network
				    ? "the network (transfers are on the wire %.2fx longer on all "
				      "ranks)"
				    : "the network (transfers take %.2fx longer on all ranks)",
			    one->slowdown);
		break;
	case STRAGGLER_HELD_UP:
		text_format(to, REPORT_WORDS,
			    "ranks of %.64s that wait elsewhere, for an unknown rank (%s late)",
			    report->job.comms[one->comm].label, units_duration(late, one->late_ns));
		break;
	default:
		text_copy(to, REPORT_WORDS, "none");
		break;
	}
}

/* ---- figures of a row ------------------------------------------------------------------------ */

void report_figures(struct report_figure to[static REPORT_FIGURES], const struct tally_row *row,
		    bool knows_waiting)
{
	const bool is_timed = row->timed > 0;
	const double algbw = tally_algbw(row), busbw = tally_busbw(row);
	const double wait_ns = tally_total_wait_ns(row);
	const struct report_figure figures[] = {
		REPORT_WHOLE("calls", true, row->calls),
		REPORT_WHOLE("in_flight", true, row->open),
		REPORT_WHOLE("captured", true, row->captured),
		REPORT_WHOLE("unknown_size", true, row->unknown_size),
		REPORT_WHOLE("untrusted", true, row->untrusted),
		REPORT_WHOLE("bytes", row->calls > row->unknown_size || row->calls == 0,
			     row->bytes),
		REPORT_WHOLE("timed", true, row->timed),
		REPORT_WHOLE("estimated", true, row->covered),
		REPORT_WHOLE("not_timed", true, tally_not_timed(row)),
		REPORT_WHOLE("sum_ns", is_timed, row->sum_ns),
		REPORT_WHOLE("total_ns", row->timed + row->covered > 0,
			     units_whole(tally_total_ns(row))),
		REPORT_WHOLE("min_ns", is_timed, row->min_ns),
		REPORT_WHOLE("median_ns", is_timed, tally_quantile_ns(row, 0.5)),
		REPORT_REAL("mean_ns", is_timed, tally_mean_ns(row)),
		REPORT_WHOLE("p90_ns", row->timed >= TALLY_P90_LEAST, tally_quantile_ns(row, 0.9)),
		REPORT_WHOLE("p99_ns", row->timed >= TALLY_P99_LEAST, tally_quantile_ns(row, 0.99)),
		REPORT_WHOLE("max_ns", is_timed, row->max_ns),
		REPORT_REAL("deviation_ns", row->timed > 1, tally_deviation_ns(row)),
		REPORT_REAL("algbw_bytes_per_second", algbw > 0, round(algbw)),
		REPORT_REAL("busbw_bytes_per_second", busbw > 0, round(busbw)),
		REPORT_WHOLE("shared_time", true, row->shared),
		REPORT_WHOLE("joined", true, row->joined),
		REPORT_WHOLE("joined_ns", knows_waiting, row->joined_ns),
		REPORT_WHOLE("wait_ns", knows_waiting, row->wait_ns),
		REPORT_WHOLE("total_wait_ns", knows_waiting, units_whole(wait_ns)),
		{ .name = "wait_share",
		  .is_known = knows_waiting && row->joined_ns > 0,
		  .is_real = true,
		  .is_json = true,
		  .real = tally_wait_share(row) },
		REPORT_REAL("gpu_hours_lost", knows_waiting, wait_ns / 3.6e12),
	};

	_Static_assert(ARRAY_LENGTH(figures) == REPORT_FIGURES, "as many as the header says");
	memcpy(to, figures, sizeof(figures));
}
