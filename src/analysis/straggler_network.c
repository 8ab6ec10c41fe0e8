/*
 * Transfers between nodes became slower everywhere: is it the network? Not if transfers within nodes did so
 * at the same time, and not if sends were not on the network longer than before: then they were held up
 * within nodes.
 */
#include "analysis/straggler_internal.h"

#include <math.h>

#include "analysis/timeline_report.h"

static const double slowdown_that_tells = 1.25;

static bool has_link(const struct straggler_search *search)
{
	for (size_t i = 0; i < search->count; i++)
		if (search->found[i].class == STRAGGLER_SLOW_LINK)
			return true;
	return false;
}

static bool is_network(const struct straggler_search *search, const struct windows_change *change)
{
	/* Time on the wire varies more than durations do. */
	if (change->is_wire && change->before < slowdown_that_tells * change->after)
		return false;
	return (change->is_wire || job_comm_is_over_network(change->kind)) &&
	       change->is_everywhere && change->percent < 0 &&
	       !job_is_on_one_host(search->job, change->example_comm);
}

/* The mean time on the wire of a transfer, of all seats; 0 unknown. */
static double mean_wire(const struct straggler_table *table, uint64_t from_ns, uint64_t until_ns)
{
	double sum = 0, count = 0;

	for (uint32_t b = 0; b < table->blocks; b++) {
		if (table->start_ns[b] < from_ns || table->end_ns[b] > until_ns)
			continue;
		for (uint32_t seat = 0; seat < table->seats; seat++) {
			double wire_ns = table->wire_ns[(size_t)seat * table->blocks + b];

			if (isnan(wire_ns))
				continue;
			sum += wire_ns;
			count++;
		}
	}
	return count > 0 ? sum / count : 0;
}

/* Times of blocks are those of its matches, and a change is between two of them. */
void straggler_network_wire(struct straggler_search *search, const struct straggler_table *table)
{
	const struct windows *windows = search->windows;

	if (table->start_ns[0] == 0)
		return;
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];
		double before_ns, after_ns;

		if (!is_network(search, change) || change->example_comm != table->lane->comm ||
		    change->size_class != table->wire_class)
			continue;
		before_ns = mean_wire(table, 1, change->at_ns);
		after_ns = mean_wire(table, change->at_ns, UINT64_MAX);
		if (before_ns > 0 && after_ns > 0)
			search->wire_rise[i] = after_ns / before_ns;
	}
}

/* The network accounts for less than a quarter of the additional time of transfers. */
static bool is_wire_fine(const struct windows_change *change, double rise)
{
	return rise > 0 && change->after > 0 && rise < 1 + (change->before / change->after - 1) / 4;
}

/* Did transfers within nodes slow down at the same time? Then it is not the network. */
static bool is_nvlink_too(const struct windows *windows, const struct windows_change *change)
{
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *other = &windows->changes[i];
		uint32_t apart = other->window > change->window ? other->window - change->window
								: change->window - other->window;

		if (other->kind == JOB_COMM_NVLINK && other->percent < 0 && apart <= 2)
			return true;
	}
	return false;
}

void straggler_network(struct straggler_search *search)
{
	const struct windows *windows = search->windows;
	const struct windows_change *worst = NULL;
	struct straggler straggler = { .class = STRAGGLER_NETWORK,
				       .pattern = STRAGGLER_SINCE,
				       .rank = UINT32_MAX,
				       .host = UINT32_MAX,
				       .peer = UINT32_MAX,
				       .channel = -1,
				       .has_times = true };

	if (has_link(search))
		return;
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (!is_network(search, change) || is_nvlink_too(windows, change) ||
		    is_wire_fine(change, search->wire_rise[i]))
			continue;
		if (worst == NULL || change->matches_after > worst->matches_after)
			worst = change;
	}
	if (worst == NULL)
		return;
	straggler.comm = worst->example_comm;
	straggler.matches = worst->matches_before + worst->matches_after;
	straggler.slowdown = worst->after > 0 ? worst->before / worst->after : 0;
	straggler.confidence = worst->confidence;
	straggler.first_ns = worst->at_ns;
	straggler.last_ns = windows->end_ns;
	straggler.caused_ns = worst->lost_ns;
	straggler.is_by_network = worst->is_wire;
	/* With such a small change, links within nodes that became about as slow as the network would have
	 * the same effect. */
	straggler.has_wire = search->wire_rise[worst - windows->changes] > 0 &&
			     straggler.slowdown >= slowdown_that_tells;
	/* Did it recover? */
	for (size_t i = 0; i < windows->change_count; i++) {
		const struct windows_change *change = &windows->changes[i];

		if (windows_is_same_kind(change, worst) && change->percent > 0 &&
		    change->at_ns > worst->at_ns) {
			straggler.pattern = STRAGGLER_BURSTS;
			straggler.last_ns = change->at_ns;
		}
	}
	if (windows->end_ns > windows->start_ns)
		straggler.share_of_time = (double)(straggler.last_ns - straggler.first_ns) /
					  (double)(windows->end_ns - windows->start_ns);
	straggler_add(search, &straggler);
}
