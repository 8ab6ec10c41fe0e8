/* Stragglers as text, every field of each, for files of expected results; and noise that is the same every time. */
#ifndef STRAGGLER_SHOW_H
#define STRAGGLER_SHOW_H

#include <inttypes.h>
#include <math.h>
#include <stdint.h>

#include "analysis/straggler.h"
#include "common/hash.h"
#include "output/sink.h"
#include "tests/support/expected_output.h"

/* value, up to a fifth less or more. */
static inline uint64_t noisy(uint64_t value, int one, int other)
{
	uint64_t drawn = hash_word(hash_word((uint64_t)one + 1, (uint64_t)other + 1), value);

	return (uint64_t)((double)value * (0.8 + 0.4 * (double)(drawn >> 11) / 9007199254740992.0));
}

static inline void straggler_show_index(struct sink *to, const char *name, uint32_t index)
{
	if (index != UINT32_MAX)
		sink_format(to, " %s %" PRIu32, name, index);
}

/* Times begin at from_ns. */
static inline void straggler_show_one(struct sink *to, const struct straggler *one,
				      uint64_t from_ns)
{
	const struct {
		const char *word;
		bool is_set;
	} flags[] = { { "of sends", one->is_of_sends },
		      { "either", one->is_either },
		      { "uplink", one->is_uplink },
		      { "rail", one->is_rail },
		      { "bursty", one->is_bursty },
		      { "starved", one->is_starved },
		      { "origin", one->is_origin },
		      { "stage", one->is_stage },
		      { "by network", one->is_by_network },
		      { "each", one->is_each },
		      { "any", one->is_any },
		      { "wire", one->has_wire } };

	sink_format(to, "%s, %s,", straggler_class_name(one->class),
		    straggler_pattern_name(one->pattern));
	straggler_show_index(to, "rank", one->rank);
	straggler_show_index(to, "host", one->host);
	straggler_show_index(to, "peer", one->peer);
	sink_format(to, " comm %" PRIu32 " channel %d:", one->comm, (int)one->channel);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (flags[i].is_set)
			sink_format(to, " [%s]", flags[i].word);
	sink_format(to,
		    "\n  %" PRIu64 " matches, last in %" PRIu64 ", %.3f ms late, caused %.3f ms\n",
		    one->matches, one->last_in, (double)one->late_ns / 1e6,
		    (double)one->caused_ns / 1e6);
	sink_format(to,
		    "  cost %.6f, slowdown %.4f, slow share %.4f, own slowdown %.4f, excess %.5f\n",
		    one->cost_share, one->slowdown, one->slow_share, one->own_slowdown,
		    one->own_excess);
	/* What is left is rounding. */
	sink_format(to, "  doubt 10^%.2f, of the peer %.4f, share of time %.4f",
		    log10(1 - one->confidence + 1e-9), 1 - one->peer_confidence,
		    one->share_of_time);
	if (one->has_times)
		sink_format(to, ", from %.3f to %.3f s", (double)(one->first_ns - from_ns) / 1e9,
			    (double)(one->last_ns - from_ns) / 1e9);
	sink_text(to, "\n");
}

/* Links of one sender that cost as much are listed in any order: here by receiver. */
static inline bool straggler_show_after(const struct straggler *a, const struct straggler *b)
{
	return a->caused_ns == b->caused_ns && a->class == b->class && a->rank == b->rank &&
	       a->peer > b->peer;
}

static inline void straggler_show(struct sink *to, const char *scene, const struct straggler *list,
				  size_t count, uint64_t from_ns)
{
	const struct straggler *order[64];

	sink_format(to, "=== %s\n", scene);
	for (size_t i = 0; i < count && i < 64; i++) {
		size_t at = i;

		for (; at > 0 && straggler_show_after(order[at - 1], &list[i]); at--)
			order[at] = order[at - 1];
		order[at] = &list[i];
	}
	for (size_t i = 0; i < count && i < 64; i++)
		straggler_show_one(to, order[i], from_ns);
}

#endif
