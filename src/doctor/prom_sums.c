/* What slowness is told from, and who did not answer. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/prom_parts.h"

/* ---- agents that are down ---------------------------------------------------------------------- */

enum { NAMED_MAX = 512 };

static int by_rank(const void *left, const void *right)
{
	int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;

	return a < b ? -1 : a > b;
}

/* "8-15,17" */
static void say_ranks(char *text, size_t size, const int64_t *ranks, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used + 48 < size; i++) {
		size_t from = i;

		while (i + 1 < count && ranks[i + 1] <= ranks[i] + 1)
			i++;
		text_format(text + used, size - used,
			    ranks[i] > ranks[from] ? "%s%" PRId64 "-%" PRId64 : "%s%" PRId64,
			    used ? "," : "", ranks[from], ranks[i]);
		used += strlen(text + used);
	}
}

static void say_down(const struct prom *prom, const struct prom_down *down, int64_t *ranks,
		     char *text, size_t size)
{
	char list[200] = "";
	uint32_t job = 0;
	size_t count = 0;

	for (size_t i = 0; i < prom->unseen_count && count < NAMED_MAX; i++) {
		if (prom->unseen[i].instance != down->instance || prom->unseen[i].rank < 0)
			continue;
		ranks[count++] = prom->unseen[i].rank;
		job = prom->unseen[i].job;
	}
	if (count == 0) {
		text_copy(text, size, "Prometheus cannot scrape it");
		return;
	}
	qsort(ranks, count, sizeof(*ranks), by_rank);
	say_ranks(list, sizeof(list), ranks, count);
	text_format(text, size, "Prometheus cannot scrape it; it had rank%s %s%s%.60s",
		    strpbrk(list, "-,") ? "s" : "", list, job ? " of job " : "",
		    prom_text_of(prom, job));
}

enum status prom_make_sources(struct prom *prom)
{
	int64_t *ranks = malloc(NAMED_MAX * sizeof(*ranks));
	enum status status = OK;

	prom->sources = calloc(prom->down_count + 1, sizeof(*prom->sources));
	if (ranks == NULL || prom->sources == NULL)
		status = ERR_NO_SPACE;
	for (size_t i = 0; i < prom->down_count && status == OK; i++) {
		const struct prom_down *down = &prom->downs[i];
		const char *name = prom_text_of(prom, down->instance);
		char text[360];
		uint32_t problem;

		say_down(prom, down, ranks, text, sizeof(text));
		problem = prom_text(prom, (struct prom_slice){ text, strlen(text) });
		prom->sources[prom->source_count++] = (struct hang_source){
			.name = name, .is_silent = true, .problem = prom_text_of(prom, problem)
		};
		status = prom->status;
	}
	free(ranks);
	return status;
}

/* ---- sums -------------------------------------------------------------------------------------- */

static const char *comm_label(const struct prom *prom, const struct prom_member *member)
{
	if (member->name != 0)
		return prom_text_of(prom, member->name);
	return prom_text_of(prom, prom->comms[member->comm].comm);
}

static struct slow_member slow_member_of(const struct prom *prom, const struct prom_row *row)
{
	const struct prom_member *member = &prom->members[row->member];
	const struct prom_comm *comm = &prom->comms[member->comm];
	int is_known;

	return (struct slow_member){
		.job = prom_text_of(prom, comm->job),
		.comm = comm_label(prom, member),
		.comm_hash = comm->hash,
		.kind = job_comm_kind_of(member->nranks, member->nnodes),
		.nranks = member->nranks,
		.comm_rank = member->rank,
		.rank = member->global_rank,
		.host = prom_text_of(prom, member->host),
		.pid = member->pid,
		.gpu = member->gpu,
		.function = op_name_find(OP_NAMES_FUNCTION, prom_text_of(prom, row->function),
					 &is_known),
		.size = prom_text_of(prom, row->size),
		.operations = row->values[0],
		.seconds = row->values[1],
		.bus_bytes = row->values[2],
	};
}

static struct slow_edge slow_edge_of(const struct prom *prom, const struct prom_row *row)
{
	const struct prom_member *member = &prom->members[row->member];
	const struct prom_comm *comm = &prom->comms[member->comm];

	return (struct slow_edge){
		.job = prom_text_of(prom, comm->job),
		.comm = comm_label(prom, member),
		.comm_hash = comm->hash,
		.from = member->rank,
		.to = row->peer,
		.transfers = row->values[0],
		.wire_seconds = row->values[1],
		.bytes = row->values[2],
	};
}

/* A row of which one figure is missing (that query failed) would tell something wrong. */
static bool is_whole(const struct prom *prom, const struct prom_row *row)
{
	return prom->members[row->member].has_info && row->values[0] > 0;
}

static bool are_taken(const struct prom *prom, enum prom_ask first)
{
	return prom->is_taken[first] && prom->is_taken[first + 1] && prom->is_taken[first + 2];
}

static int members_by_job(const void *left, const void *right)
{
	return strcmp(((const struct slow_member *)left)->job,
		      ((const struct slow_member *)right)->job);
}

static int edges_by_job(const void *left, const void *right)
{
	return strcmp(((const struct slow_edge *)left)->job,
		      ((const struct slow_edge *)right)->job);
}

static enum status make_stretch(struct prom *prom, unsigned int stretch)
{
	static const enum prom_ask asks[PROM_ROWS_STRETCHES][2] = {
		{ PROM_SUMS_NOW, PROM_EDGES_NOW }, { PROM_SUMS_BEFORE, PROM_EDGES_BEFORE }
	};
	const struct prom_rows *sums = &prom->sums[stretch], *edges = &prom->edges[stretch];
	struct slow_sums *slow = &prom->slow[stretch];
	struct slow_member *members = calloc(sums->count + 1, sizeof(*members));
	struct slow_edge *list = calloc(edges->count + 1, sizeof(*list));

	prom->slow_members[stretch] = members;
	prom->slow_edges[stretch] = list;
	if (members == NULL || list == NULL)
		return ERR_NO_SPACE;
	*slow = (struct slow_sums){ .members = members, .edges = list, .seconds = prom->window_s };
	for (size_t i = 0; are_taken(prom, asks[stretch][0]) && i < sums->count; i++)
		if (is_whole(prom, &sums->list[i]))
			members[slow->member_count++] = slow_member_of(prom, &sums->list[i]);
	for (size_t i = 0; are_taken(prom, asks[stretch][1]) && i < edges->count; i++)
		if (is_whole(prom, &edges->list[i]))
			list[slow->edge_count++] = slow_edge_of(prom, &edges->list[i]);
	qsort(members, slow->member_count, sizeof(*members), members_by_job);
	qsort(list, slow->edge_count, sizeof(*list), edges_by_job);
	return OK;
}

enum status prom_make_sums(struct prom *prom)
{
	for (unsigned int stretch = 0; stretch < PROM_ROWS_STRETCHES; stretch++) {
		enum status status = make_stretch(prom, stretch);

		if (status != OK)
			return status;
	}
	return OK;
}

/* ---- job by job -------------------------------------------------------------------------------- */

static struct slow_sums of_job(const struct slow_sums *all, const char *job)
{
	struct slow_sums sums = { .seconds = all->seconds };
	size_t at = 0;

	while (at < all->member_count && strcmp(all->members[at].job, job) < 0)
		at++;
	sums.members = all->members + at;
	while (at + sums.member_count < all->member_count &&
	       strcmp(sums.members[sums.member_count].job, job) == 0)
		sums.member_count++;
	for (at = 0; at < all->edge_count && strcmp(all->edges[at].job, job) < 0;)
		at++;
	sums.edges = all->edges + at;
	while (at + sums.edge_count < all->edge_count &&
	       strcmp(sums.edges[sums.edge_count].job, job) == 0)
		sums.edge_count++;
	return sums;
}

/* How much of the stretch the job was there for. */
static double covered_s(const struct prom *prom, const char *job)
{
	double covered = prom->window_s;

	for (size_t i = 0; i < prom->since_count; i++) {
		uint64_t first_ns = prom->since[i].first_ns;

		if (strcmp(prom_text_of(prom, prom->since[i].job), job) == 0 && first_ns != 0 &&
		    first_ns < prom->wall_ns)
			covered = (double)(prom->wall_ns - first_ns) / 1e9;
	}
	if (covered > prom->window_s)
		return prom->window_s;
	return covered < 1 ? 1 : covered;
}

enum status prom_slow(const struct prom *prom, struct verdicts *verdicts,
		      const struct slow_sums_options *options)
{
	const struct slow_sums *all = prom_now(prom);
	enum status status = OK;

	for (size_t i = 0; i < all->member_count && status == OK;) {
		const char *job = all->members[i].job;
		struct slow_sums now = of_job(all, job);
		struct slow_sums before = of_job(&prom->slow[PROM_ROWS_BEFORE], job);
		struct slow_sums_options these = *options;

		now.seconds = covered_s(prom, job);
		these.before = before.member_count > 0 || before.edge_count > 0 ? &before : NULL;
		these.now_wall_ns = prom->wall_ns;
		status = slow_find_sums(verdicts, &now, &these);
		i += now.member_count;
	}
	return status;
}
