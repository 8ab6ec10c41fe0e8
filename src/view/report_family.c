#include "view/report_family.h"

#include <stdlib.h>
#include <string.h>

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
	int names = strcmp(a->name, b->name);

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (names != 0)
		return names;
	return a->kind < b->kind ? -1 : a->kind > b->kind;
}

static int by_time(const void *left, const void *right)
{
	const struct report_family *a = left, *b = right;

	if (tally_total_ns(&a->row) != tally_total_ns(&b->row))
		return tally_total_ns(&a->row) > tally_total_ns(&b->row) ? -1 : 1;
	return by_identity(left, right);
}

/* Those without a name are told apart by their shape: its numbers matter. */
static void identify(struct report_family *family, const struct timeline_report *report,
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

static enum status collect(struct report_families *families, const struct timeline_report *report,
			   bool is_each)
{
	const struct tally *tally = &report->by_comm_name;
	enum status status = OK;

	for (size_t i = 0; i < tally->count && status == OK; i++) {
		struct report_family *family = &families->list[families->count++];

		identify(family, report, &tally->rows[i].key, is_each);
		family->rows = 1;
		family->row.key = tally->rows[i].key;
		status = tally_merge(&family->row, &tally->rows[i]);
	}
	return status;
}

/* Sorted by identity: neighbours that are the same become one. */
static enum status merge(struct report_families *families)
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

		identify(&like, report, &key, is_each);
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
	status = collect(families, report, is_each);
	qsort(families->list, families->count, sizeof(*families->list), by_identity);
	if (status == OK)
		status = merge(families);
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
