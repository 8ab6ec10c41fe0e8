/*
 * Transfers against the job's own past, from sums: the rule of the alerts NcclNetworkDegraded and
 * NcclNvlinkDegraded (deploy/prometheus). The member that waits least tells the speed; per communicator, the time
 * that its transfers take over the time they would have taken at the speeds of before.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/slow_sums_find.h"

static const double time_that_matters = 0.01; /* of the stretch */

struct move {
	const struct slow_member *of;
	double now_s;
	double then_s;
	bool is_counted; /* it spends enough time in transfers to tell */
	bool is_slow;
};

static double ratio_of(const struct move *move)
{
	return move->now_s / move->then_s;
}

/* Groups of both are sorted alike. */
static const struct sums_group *group_before(const struct sums_table *before,
					     const struct sums_group *group, size_t *at)
{
	while (*at < before->group_count && sums_by_kind(before->groups[*at].of, group->of) < 0)
		++*at;
	return *at < before->group_count && sums_by_kind(before->groups[*at].of, group->of) == 0
		       ? &before->groups[*at]
		       : NULL;
}

static size_t find_moves(const struct sums_search *search, struct move *moves)
{
	const struct sums_table *table = &search->table;
	size_t count = 0, at = 0;

	for (size_t i = 0; i < table->group_count; i++) {
		const struct sums_group *now = &table->groups[i];
		const struct sums_group *then = group_before(&search->before, now, &at);

		if (then == NULL || now->busbw <= 0 || then->busbw <= 0)
			continue;
		if (count == 0 || sums_by_comm(moves[count - 1].of, now->of) != 0)
			moves[count++] = (struct move){ .of = now->of };
		moves[count - 1].now_s += now->bus_bytes / now->busbw;
		moves[count - 1].then_s += now->bus_bytes / then->busbw;
	}
	for (size_t i = 0; i < count; i++) {
		moves[i].is_counted = moves[i].now_s > time_that_matters * search->now->seconds;
		moves[i].is_slow =
			moves[i].is_counted && ratio_of(&moves[i]) > 1 + search->threshold;
	}
	return count;
}

static bool is_over_network(const struct move *move)
{
	return move->of->kind == JOB_COMM_NET || move->of->kind == JOB_COMM_MIXED;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

struct tally_of {
	size_t all, slow;
	double worst, lost_s;
	uint32_t ranks;
	const struct move *example;
	bool is_one_host;
};

static struct tally_of tally(const struct move *moves, size_t count, bool over_network)
{
	struct tally_of sum = { .is_one_host = true };

	for (size_t i = 0; i < count; i++) {
		const struct move *move = &moves[i];

		if (over_network ? !is_over_network(move) : move->of->kind != JOB_COMM_NVLINK)
			continue;
		sum.all += move->is_counted;
		if (!move->is_slow)
			continue;
		sum.slow++;
		sum.ranks += move->of->nranks > 0 ? (uint32_t)move->of->nranks : 0;
		sum.lost_s += (move->now_s - move->then_s) *
			      (move->of->nranks > 0 ? move->of->nranks : 1);
		if (sum.example != NULL)
			sum.is_one_host &= strcmp(sum.example->of->host, move->of->host) == 0;
		if (sum.example == NULL || ratio_of(move) > ratio_of(sum.example))
			sum.example = move;
	}
	return sum;
}

static bool is_link_named(const struct sums_search *search, const char *job)
{
	for (size_t i = search->first; i < search->verdicts->count; i++)
		if (search->verdicts->list[i].class == VERDICT_SLOW_LINK &&
		    strcmp(search->verdicts->list[i].job, job) == 0)
			return true;
	return false;
}

static void tell(struct sums_search *search, enum verdict_class class, const struct tally_of *sum)
{
	const struct slow_member *of = sum->example->of;
	struct verdict *verdict = sums_verdict(search, class, of->job, "past");
	bool is_network = class == VERDICT_SLOW_NETWORK;

	verdict->percent = 100 * (ratio_of(sum->example) - 1);
	verdict->victims = sum->ranks;
	verdict->confidence = 0.85;
	verdict->since_wall_ns = verdict->for_ns = 0;
	sums_fill_cost(search, verdict, sum->lost_s);
	if (!is_network && sum->is_one_host)
		text_copy(verdict->host, sizeof(verdict->host), of->host);
	if (is_network)
		verdict_title(verdict, "the network between nodes is slower than before, for all");
	else if (verdict->host[0] != '\0')
		verdict_title(verdict, "NVLink within %.80s is slower than before", verdict->host);
	else
		verdict_title(verdict, "NVLink is slower than before, within nodes");
	verdict_evidence(verdict,
			 "Collectives of %zu of %zu communicators that %s take longer than before, "
			 "those of %.100s %.2f times as long; waiting is left out.",
			 sum->slow, sum->all, is_network ? "span nodes" : "stay within a node",
			 of->comm, ratio_of(sum->example));
	verdict_missing(verdict,
			"From sums: since when exactly needs a look at the rates over time.");
	verdict_advice(verdict, "%s",
		       is_network ? "Look at the fabric: congestion by other jobs, a "
				    "switch or uplink that failed, adaptive routing."
				  : "Look at NVLink and at the GPUs' clocks.");
	text_copy(verdict->page, sizeof(verdict->page),
		  is_network ? "runbooks/NcclNetworkDegraded.md"
			     : "runbooks/NcclNvlinkDegraded.md");
}

/* moves[0 .. count - 1] are of one job. */
static void look_at_job(struct sums_search *search, const struct move *moves, size_t count)
{
	struct tally_of network = tally(moves, count, true);
	struct tally_of nvlink = tally(moves, count, false);

	if (nvlink.slow > 0)
		tell(search, VERDICT_SLOW_NVLINK, &nvlink);
	else if (network.slow > 0 && network.slow * 5 >= network.all * 4 &&
		 !is_link_named(search, moves[0].of->job))
		tell(search, VERDICT_SLOW_NETWORK, &network);
}

void sums_find_moves(struct sums_search *search)
{
	struct move *moves = calloc(search->table.group_count + 1, sizeof(*moves));
	size_t count, next;

	if (moves == NULL) {
		search->status = ERR_NO_SPACE;
		return;
	}
	count = find_moves(search, moves);
	for (size_t i = 0; i < count; i = next) {
		for (next = i; next < count && strcmp(moves[i].of->job, moves[next].of->job) == 0;)
			next++;
		look_at_job(search, &moves[i], next - i);
	}
	free(moves);
}
