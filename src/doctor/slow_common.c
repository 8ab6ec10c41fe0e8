/*
 * What several slow kinds of transfers have in common is the cause. From the narrow to the wide:
 *
 *	another algorithm or protocol was chosen        slow_algorithm
 *	one communicator of several                     slow_communicator (within a node: slow_nvlink)
 *	one size, others of the same calls are fine     slow_size
 *	one algorithm or protocol, others are fine      slow_algorithm
 *	over nodes, everywhere, not within nodes        slow_network
 *	within nodes                                    slow_nvlink, with the host if it is one
 *	anything else                                   below_expected
 *
 * A row that is not slow speaks against a wide cause only where it would have shown it: small messages do
 * not get slower with less bandwidth, so those much smaller than the slow ones say nothing.
 */
#include "doctor/slow_common.h"

enum { BIG = 2 + 18 /* 256 KiB */, ALIKE_CLASSES = 2, SENDERS_LEAST = 4 };
static const double ratio_that_empties = 1.25;

static bool is_over_network(enum job_comm_kind kind)
{
	return kind == JOB_COMM_NET || kind == JOB_COMM_MIXED;
}

static void add_common(struct slow_common *common, const struct slow_row *row)
{
	const struct slow_row *worst = common->worst;

	if (worst == NULL) {
		common->is_one_size = common->is_one_choice = common->is_one_comm = true;
		common->is_one_name = common->is_all_over = true;
		common->least_class = common->most_class = row->size_class;
		common->host = row->host;
		worst = row;
	}
	common->slow++;
	common->is_one_size &= row->size_class == worst->size_class;
	common->is_one_choice &=
		row->algorithm == worst->algorithm && row->protocol == worst->protocol;
	common->is_one_comm &= row->comms_slow == 1 && row->comm == worst->comm;
	common->is_one_name &= row->is_one_name;
	common->is_all_over &= row->is_over;
	common->has_net |= is_over_network(row->kind);
	common->has_nvlink |= row->kind == JOB_COMM_NVLINK;
	common->has_other |= !is_over_network(row->kind) && row->kind != JOB_COMM_NVLINK;
	if (row->size_class < common->least_class)
		common->least_class = row->size_class;
	if (row->size_class > common->most_class)
		common->most_class = row->size_class;
	common->lost_ns += row->lost_ns;
	common->switched_ns += row->was[0] != '\0' ? row->lost_ns : 0;
	common->percent += 100 * (row->ratio - 1) * row->lost_ns;
	common->ranks = row->ranks > common->ranks ? row->ranks : common->ranks;
	common->host = common->host == row->host ? common->host : UINT32_MAX;
	if (row->confidence > common->confidence)
		common->confidence = row->confidence;
	if (common->worst == NULL || row->lost_ns > worst->lost_ns)
		common->worst = row;
}

struct slow_common slow_common_find(const struct slow_rows *rows, const bool *is_taken)
{
	struct slow_common common = { .rows = rows, .is_taken = is_taken };

	for (size_t i = 0; i < rows->count; i++)
		if (is_taken[i])
			add_common(&common, &rows->list[i]);
	common.is_switched = common.switched_ns > 0 && common.switched_ns >= 0.8 * common.lost_ns;
	common.percent = common.lost_ns > 0	? common.percent / common.lost_ns
			 : common.worst != NULL ? 100 * (common.worst->ratio - 1)
						: 0;
	return common;
}

/* ---- what is not slow ------------------------------------------------------------------------- */

/* It moves as much as the slow ones, nearly, so it would be slow for the same reason. */
static bool would_show(const struct slow_common *common, const struct slow_row *row)
{
	if (row->size_class > common->most_class)
		return true;
	return row->size_class >= BIG && row->size_class + ALIKE_CLASSES >= common->least_class;
}

enum contrast {
	OTHER_COMM,
	OTHER_SIZE,
	LARGER,
	OTHER_CHOICE,
	SAME_CHOICE,
	NVLINK_FINE,
	NETWORK_FINE,
};

/* Does the communicator that lost most do this, too? Else it is no contrast but another one's. */
static bool is_on_worst(const struct slow_common *common, const struct slow_row *row)
{
	for (size_t i = 0; i < common->cells->count; i++) {
		const struct slow_cell *cell = &common->cells->list[i];

		if (cell->comm == common->worst->comm && cell->function == row->function &&
		    cell->size_class == row->size_class)
			return true;
	}
	return false;
}

static bool is_contrast(const struct slow_common *common, const struct slow_row *row,
			enum contrast contrast)
{
	const struct slow_row *worst = common->worst;
	bool is_same_choice =
		row->algorithm == worst->algorithm && row->protocol == worst->protocol;

	switch (contrast) {
	case OTHER_COMM:
		return row->kind == worst->kind && (row->comms > 1 || row->comm != worst->comm);
	case OTHER_SIZE:
		return row->kind == worst->kind && row->function == worst->function &&
		       is_same_choice && row->size_class != worst->size_class &&
		       is_on_worst(common, row);
	case LARGER:
		return row->kind == worst->kind && row->function == worst->function &&
		       row->size_class > common->most_class && is_on_worst(common, row);
	case OTHER_CHOICE:
		return row->kind == worst->kind && !is_same_choice && is_on_worst(common, row);
	case SAME_CHOICE:
		return row->kind == worst->kind && is_same_choice;
	case NVLINK_FINE:
		return row->kind == JOB_COMM_NVLINK;
	case NETWORK_FINE:
		return is_over_network(row->kind);
	}
	return false;
}

/* Is there something of this kind that is as fast as it should be? */
static bool has_fine(const struct slow_common *common, enum contrast contrast)
{
	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];
		/* In a slow row, too, there are communicators that are fine. */
		bool is_fine =
			!row->is_slow || (contrast == OTHER_COMM && row->comms_slow < row->comms);

		/* Not found slow is not the same as found fine. */
		is_fine = is_fine && row->bound < 1 + (common->worst->ratio - 1) / 2;
		if (is_fine && would_show(common, row) && is_contrast(common, row, contrast))
			return true;
	}
	return false;
}

/* On four of five communicators over nodes, of what would show it. */
static bool is_everywhere(const struct slow_common *common)
{
	uint64_t slow = 0, all = 0;

	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (!is_over_network(row->kind) || (!row->is_slow && !would_show(common, row)))
			continue;
		slow += row->comms_slow;
		all += row->comms;
	}
	return slow * 5 >= all * 4;
}

/* Transfers over nodes got slower, and the network does not have them any longer than before. */
bool slow_common_is_wire_fine(const struct slow_common *common)
{
	return common->wire.is_known &&
	       common->wire.after_ns <
		       common->wire.before_ns * (1 + (common->worst->ratio - 1) / 4);
}

bool slow_common_is_wire_slow(const struct slow_common *common)
{
	return common->wire.is_known && !slow_common_is_wire_fine(common);
}

/* Some ranks' sends are with the network for longer, and those of others clearly are not. */
bool slow_common_is_wire_partial(const struct slow_common *common)
{
	const struct slow_wire *wire = &common->wire;

	return wire->is_known && wire->senders >= SENDERS_LEAST &&
	       wire->senders_same * 10 >= wire->senders &&
	       wire->senders_slower * 10 >= wire->senders &&
	       (wire->senders_same + wire->senders_slower) * 20 >= wire->senders * 19;
}

/*
 * A full pipeline has as many transfers on the wire as fit, and they live as long as the slowest of its links lets
 * them. A link within a node that became about as slow as the network does that, too; only one that is clearly
 * slower lets the network run empty.
 */
bool slow_common_is_either(const struct slow_common *common)
{
	return slow_common_is_wire_slow(common) && common->worst->kind == JOB_COMM_MIXED &&
	       common->worst->ratio < ratio_that_empties && !has_fine(common, NVLINK_FINE);
}

static enum verdict_class narrow_class(const struct slow_common *common)
{
	if (common->is_switched)
		return VERDICT_SLOW_ALGORITHM;
	if (common->is_one_size && has_fine(common, OTHER_SIZE))
		return VERDICT_SLOW_SIZE;
	/* Links that move large messages as they should are not slow: it is latency. */
	if (has_fine(common, LARGER))
		return VERDICT_SLOW_SIZE;
	if (common->is_one_choice && has_fine(common, OTHER_CHOICE) &&
	    !has_fine(common, SAME_CHOICE))
		return VERDICT_SLOW_ALGORITHM;
	return VERDICT_CLASSES;
}

enum verdict_class slow_common_class(const struct slow_common *common)
{
	enum verdict_class narrow = narrow_class(common);
	bool is_measured =
		common->rows->against == SLOW_PAST || common->rows->against == SLOW_BASELINE;

	if (narrow != VERDICT_CLASSES)
		return narrow;
	if (common->has_nvlink && !common->has_other &&
	    (!common->has_net || common->host != UINT32_MAX || has_fine(common, NETWORK_FINE) ||
	     slow_common_is_wire_fine(common)))
		return VERDICT_SLOW_NVLINK;
	if ((common->is_one_comm || common->is_one_name) && has_fine(common, OTHER_COMM))
		return VERDICT_SLOW_COMM;
	if (common->has_net && !common->has_nvlink && !common->has_other &&
	    slow_common_is_wire_fine(common) && common->worst->kind == JOB_COMM_MIXED)
		return VERDICT_SLOW_NVLINK;
	/* A data sheet says nothing about what a job can reach: only contrast does. */
	if (common->has_net && !common->has_nvlink && !common->has_other &&
	    (is_measured || has_fine(common, NVLINK_FINE)) && is_everywhere(common) &&
	    !slow_common_is_wire_partial(common))
		return VERDICT_SLOW_NETWORK;
	return VERDICT_BELOW_EXPECTED;
}

/* The row over nodes that lost most tells where its time went. */
void slow_common_wire(struct slow_search *search, struct slow_common *common)
{
	const struct slow_row *over = NULL;

	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (common->is_taken[i] && is_over_network(row->kind) && !row->is_send &&
		    (over == NULL || row->lost_ns > over->lost_ns))
			over = row;
	}
	common->wire = (struct slow_wire){ .host = UINT32_MAX };
	if (over == NULL || common->rows->against > SLOW_BASELINE)
		return;
	search->status = slow_wire(&common->wire, search->report, over);
	if (common->host == UINT32_MAX && slow_common_is_wire_fine(common))
		common->host = common->wire.host;
}
