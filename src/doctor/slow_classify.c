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
#include <string.h>

#include "base/text.h"
#include "doctor/slow_find.h"

enum { BIG = 2 + 18 /* 256 KiB */, ALIKE_CLASSES = 2 };
enum { EVIDENCE_ROWS = 8 };

/* What the slow ones have in common. */
struct common {
	const struct slow_rows *rows;
	const struct slow_cells *cells;
	const bool *is_taken; /* rows that are slow and explained by nobody else */
	const struct slow_row *worst;
	size_t slow;
	bool is_one_size, is_one_choice, is_one_comm, is_one_name, is_switched, is_all_over;
	bool has_net, has_nvlink, has_other;
	uint8_t least_class, most_class;
	double lost_ns, switched_ns, confidence, percent;
	uint32_t ranks;
	uint32_t host; /* of all slow ones within nodes; UINT32_MAX several */
	struct slow_wire wire;
};

static bool is_over_network(enum job_comm_kind kind)
{
	return kind == JOB_COMM_NET || kind == JOB_COMM_MIXED;
}

static void add_common(struct common *common, const struct slow_row *row)
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

static struct common find_common(const struct slow_rows *rows, const bool *is_taken)
{
	struct common common = { .rows = rows, .is_taken = is_taken };

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
static bool would_show(const struct common *common, const struct slow_row *row)
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
static bool is_on_worst(const struct common *common, const struct slow_row *row)
{
	for (size_t i = 0; i < common->cells->count; i++) {
		const struct slow_cell *cell = &common->cells->list[i];

		if (cell->comm == common->worst->comm && cell->function == row->function &&
		    cell->size_class == row->size_class)
			return true;
	}
	return false;
}

static bool is_contrast(const struct common *common, const struct slow_row *row,
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
static bool has_fine(const struct common *common, enum contrast contrast)
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
static bool is_everywhere(const struct common *common)
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
static bool is_wire_fine(const struct common *common)
{
	return common->wire.is_known &&
	       common->wire.after_ns <
		       common->wire.before_ns * (1 + (common->worst->ratio - 1) / 4);
}

static bool is_wire_slow(const struct common *common)
{
	return common->wire.is_known && !is_wire_fine(common);
}

static enum verdict_class narrow_class(const struct common *common)
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

static enum verdict_class class_of(const struct common *common)
{
	enum verdict_class narrow = narrow_class(common);
	bool is_measured =
		common->rows->against == SLOW_PAST || common->rows->against == SLOW_BASELINE;

	if (narrow != VERDICT_CLASSES)
		return narrow;
	if (common->has_nvlink && !common->has_other &&
	    (!common->has_net || common->host != UINT32_MAX || has_fine(common, NETWORK_FINE) ||
	     is_wire_fine(common)))
		return VERDICT_SLOW_NVLINK;
	if ((common->is_one_comm || common->is_one_name) && has_fine(common, OTHER_COMM))
		return VERDICT_SLOW_COMM;
	if (common->has_net && !common->has_nvlink && !common->has_other && is_wire_fine(common) &&
	    common->worst->kind == JOB_COMM_MIXED)
		return VERDICT_SLOW_NVLINK;
	/* A data sheet says nothing about what a job can reach: only contrast does. */
	if (common->has_net && !common->has_nvlink && !common->has_other &&
	    (is_measured || has_fine(common, NVLINK_FINE)) && is_everywhere(common))
		return VERDICT_SLOW_NETWORK;
	return VERDICT_BELOW_EXPECTED;
}

/* The row over nodes that lost most tells where its time went. */
static void look_at_wire(struct slow_search *search, struct common *common)
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
	if (common->host == UINT32_MAX && is_wire_fine(common))
		common->host = common->wire.host;
}

static void tell_wire(struct verdict *verdict, const struct common *common)
{
	const struct slow_wire *wire = &common->wire;

	if (verdict->class == VERDICT_SLOW_NETWORK && is_wire_slow(common))
		verdict_evidence(verdict,
				 "Their transfers are with the network for %s each, %s before: it "
				 "is not NVLink.",
				 slow_duration(wire->after_ns).text,
				 slow_duration(wire->before_ns).text);
	if (verdict->class == VERDICT_SLOW_NVLINK && is_wire_fine(common))
		verdict_evidence(verdict,
				 "Transfers over nodes are with the network for %s each, %s "
				 "before: it is not the network.",
				 slow_duration(wire->after_ns).text,
				 slow_duration(wire->before_ns).text);
	if (verdict->class == VERDICT_SLOW_NVLINK && is_wire_fine(common) &&
	    wire->host != UINT32_MAX)
		verdict_evidence(verdict,
				 "What arrives at %.100s waits longer than elsewhere until "
				 "the GPU has taken it over.",
				 verdict->host);
}

/* ---- words ------------------------------------------------------------------------------------ */

static void choice_text(char *to, size_t size, const struct job *job, const struct slow_row *row)
{
	text_format(to, size, "%s %s", job_name(job, OP_NAMES_ALGORITHM, row->algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, row->protocol));
}

static void title_of(struct verdict *verdict, const struct common *common, const struct job *job)
{
	const struct slow_row *worst = common->worst;
	const char *function = job_name(job, OP_NAMES_FUNCTION, worst->function);
	const char *tail = slow_than(common->rows->against);
	const char *is = common->is_all_over ? "was" : "is";
	char size[16], most[16], choice[64];

	baseline_size_text(size, sizeof(size), worst->size_class);
	baseline_size_text(most, sizeof(most), common->most_class);
	choice_text(choice, sizeof(choice), job, worst);
	if (verdict->class == VERDICT_SLOW_NETWORK)
		verdict_title(verdict, "the network between nodes %s slower than %s, for all", is,
			      tail);
	else if (verdict->class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX)
		verdict_title(verdict, "NVLink within %.80s %s slower than %s",
			      job->hosts[common->host].name, is, tail);
	else if (verdict->class == VERDICT_SLOW_NVLINK)
		verdict_title(verdict, "NVLink %s slower than %s, within nodes", is, tail);
	else if (verdict->class == VERDICT_SLOW_COMM)
		verdict_title(verdict, "communicator %.80s %s slower than %s, others are not",
			      verdict->comm, is, tail);
	else if (verdict->class == VERDICT_SLOW_SIZE && !common->is_one_size)
		verdict_title(verdict, "messages up to %s are slower than %s, larger ones are not",
			      most, tail);
	else if (verdict->class == VERDICT_SLOW_SIZE)
		verdict_title(verdict, "messages of %s are slower than %s, other sizes are not",
			      size, tail);
	else if (verdict->class == VERDICT_SLOW_ALGORITHM && worst->was[0] != '\0')
		verdict_title(verdict,
			      "NCCL chose %.40s instead of %.40s for %.20s of %s, and it %s slower",
			      choice, worst->was, function, size, is);
	else if (verdict->class == VERDICT_SLOW_ALGORITHM)
		verdict_title(verdict, "what runs as %.40s %s slower than %s, other ways are not",
			      choice, is, tail);
	else
		verdict_title(
			verdict, "%.20s of %s and %zu more kinds of transfers %s slower than %s",
			function, size, common->slow - 1, common->slow > 1 ? "are" : is, tail);
	if (verdict->class == VERDICT_BELOW_EXPECTED && common->slow == 1)
		verdict_title(verdict, "%.20s of %s %s slower than %s", function, size, is, tail);
}

static void tell_send(struct slow_search *search, struct verdict *verdict,
		      const struct slow_row *row)
{
	char size[16];

	baseline_size_text(size, sizeof(size), row->size_class);
	verdict_evidence(
		verdict,
		"Sends of %s on %s communicators, %u of %u of them: those that hardly wait "
		"take %.2f times as long, %s.",
		size, job_comm_kind_name(row->kind), row->comms_slow, row->comms, row->ratio,
		slow_when(search->report, &row->span).text);
	verdict_missing(verdict, "Waiting cannot be left out of Sends, so the quickest tenth was "
				 "compared.");
}

static void tell_row(struct slow_search *search, struct verdict *verdict,
		     const struct slow_row *row)
{
	const struct job *job = &search->report->job;
	char size[16], choice[64], interval[64] = "";

	baseline_size_text(size, sizeof(size), row->size_class);
	choice_text(choice, sizeof(choice), job, row);
	if (row->ratio_high > row->ratio_low)
		text_format(interval, sizeof(interval), " (%.2f to %.2f)", row->ratio_low,
			    row->ratio_high);
	if (row->is_send) {
		tell_send(search, verdict, row);
		return;
	}
	verdict_evidence(
		verdict,
		"%s of %s (%s) on %s communicators, %u of %u of them: %.2f GB/s of bus "
		"bandwidth instead of %.2f, %.2f times as long%s, %s; waiting is left out.",
		job_name(job, OP_NAMES_FUNCTION, row->function), size, choice,
		job_comm_kind_name(row->kind), row->comms_slow, row->comms, row->after / 1e9,
		row->before / 1e9, row->ratio, interval,
		slow_when(search->report, &row->span).text);
	if (row->was[0] != '\0')
		verdict_evidence(verdict, "NCCL chose %s for it, and %s before.", choice, row->was);
}

static void tell_rows(struct slow_search *search, struct verdict *verdict,
		      const struct common *common)
{
	size_t told = 0;

	tell_row(search, verdict, common->worst);
	for (size_t i = 0; i < common->rows->count; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (!common->is_taken[i] || row == common->worst)
			continue;
		if (++told < EVIDENCE_ROWS)
			tell_row(search, verdict, row);
	}
	if (told >= EVIDENCE_ROWS)
		verdict_evidence(verdict, "And %zu more kinds of transfers.",
				 told - EVIDENCE_ROWS + 1);
}

static void advise(struct verdict *verdict, const struct common *common)
{
	switch (verdict->class) {
	case VERDICT_SLOW_NETWORK:
		verdict_advice(verdict, "Look at the fabric: congestion by other jobs, a switch or "
					"uplink that failed, adaptive routing.");
		text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclNetworkDegraded.md");
		break;
	case VERDICT_SLOW_NVLINK:
		verdict_advice(verdict, "Look at NVLink and at the GPUs' clocks.");
		verdict_advice(verdict, "$ ssh %.200s nvidia-smi nvlink --status",
			       verdict->host[0] ? verdict->host : "NODE");
		verdict_advice(verdict, "$ ssh %.200s nvidia-smi -q -d PERFORMANCE,CLOCK",
			       verdict->host[0] ? verdict->host : "NODE");
		text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclNvlinkDegraded.md");
		break;
	case VERDICT_SLOW_ALGORITHM:
		verdict_advice(verdict, "Compare NCCL's version, its tuner plugin, NCCL_ALGO and "
					"NCCL_PROTO with those of the faster run.");
		break;
	case VERDICT_SLOW_SIZE:
		verdict_advice(verdict, "Try other sizes of messages (bucket sizes of the "
					"framework), and NCCL_ALGO or NCCL_PROTO for this one.");
		break;
	case VERDICT_SLOW_COMM:
		verdict_advice(verdict, "Look at what its ranks have in common: rail, switch, "
					"nodes.");
		break;
	default:
		verdict_advice(verdict, "It is not one link, size, algorithm or communicator: "
					"compare settings, versions and GPU clocks of the two.");
		break;
	}
	if (common->rows->against == SLOW_EXPECTED || common->rows->against == SLOW_PEAK)
		verdict_advice(verdict, "Measured alone, nothing else uses the links and the GPUs; "
					"some loss against that is usual.");
	if (verdict->page[0] == '\0')
		text_copy(verdict->page, sizeof(verdict->page), "DOCTOR.md#slowness");
}

static void tell_missing(struct verdict *verdict, const struct common *common)
{
	const struct slow_rows *rows = common->rows;
	bool has_nvlink = false;

	for (size_t i = 0; i < rows->count; i++)
		has_nvlink |= rows->list[i].kind == JOB_COMM_NVLINK;
	if (verdict->class == VERDICT_SLOW_NETWORK && !has_nvlink && !is_wire_slow(common)) {
		verdict_missing(verdict, "No communicator stays within a node: whether NVLink is "
					 "slower, too, cannot be seen.");
		verdict->confidence *= 0.9;
	}
	if (rows->is_other_ranks) {
		verdict_missing(verdict, "It was compared with another number of ranks: by bus "
					 "bandwidth, which falls a little with more of them.");
		verdict->confidence *= 0.8;
	}
	if (rows->unmatched > 0)
		verdict_missing(verdict,
				"%zu kinds of transfers have nothing that they could be compared "
				"with.",
				rows->unmatched);
}

/* ------------------------------------------------------------------------------------------------ */

/* Shorter changes come and go in any network. */
#define BRIEF_NS UINT64_C(5000000000)

static bool is_brief(const struct timeline_report *report, uint64_t for_ns)
{
	return for_ns < BRIEF_NS && for_ns < (report->end_ns - report->start_ns) / 5;
}

static bool is_past(const struct timeline_report *report, const struct slow_span *span)
{
	uint64_t length_ns = report->end_ns - report->start_ns;

	return span->until_ns != 0 && span->until_ns + length_ns / 20 < report->end_ns;
}

static void fill(struct slow_search *search, struct verdict *verdict, const struct common *common)
{
	const struct job *job = &search->report->job;
	const struct slow_row *worst = common->worst;

	if (verdict->class == VERDICT_SLOW_COMM || common->is_one_comm)
		slow_fill_comm(verdict, job, worst->comm, UINT32_MAX);
	if (verdict->class == VERDICT_SLOW_COMM && !common->is_one_comm)
		text_copy(verdict->comm, sizeof(verdict->comm), job->comms[worst->comm].name);
	if (common->slow == 1 || verdict->class == VERDICT_SLOW_SIZE)
		text_copy(verdict->function, sizeof(verdict->function),
			  job_name(job, OP_NAMES_FUNCTION, worst->function));
	if (verdict->class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX)
		text_copy(verdict->host, sizeof(verdict->host), job->hosts[common->host].name);
	slow_fill_span(verdict, search->report, &worst->span);
	slow_fill_cost(search, verdict, common->lost_ns);
	verdict->confidence = common->confidence;
	verdict->percent = common->percent;
	verdict->victims = common->ranks;
	/* It is over, or has only begun: what it cost stays, and nobody has to be woken up. */
	if (common->is_all_over ||
	    (common->rows->against == SLOW_PAST && is_brief(search->report, verdict->for_ns)))
		verdict->severity = VERDICT_NOTE;
}

/* An earlier comparison named the same cause. */
static struct verdict *same_cause(struct slow_search *search, const struct common *common,
				  enum verdict_class class)
{
	const struct job *job = &search->report->job;
	const char *host = class == VERDICT_SLOW_NVLINK && common->host != UINT32_MAX
				   ? job->hosts[common->host].name
				   : "";

	for (size_t i = search->first; i < search->verdicts->count; i++) {
		struct verdict *verdict = &search->verdicts->list[i];

		if (verdict->class == class && verdict->severity >= VERDICT_WARNING &&
		    strcmp(verdict->host, host) == 0 && class != VERDICT_SLOW_COMM &&
		    class != VERDICT_BELOW_EXPECTED)
			return verdict;
	}
	return NULL;
}

static void remember(struct slow_search *search, const struct common *common, size_t verdict)
{
	for (size_t i = 0; i < common->rows->count && !common->is_all_over; i++) {
		const struct slow_row *row = &common->rows->list[i];

		if (common->is_taken[i] && search->told_count < SLOW_ROWS_MAX)
			search->told[search->told_count++] =
				(struct slow_told){ row->kind, row->function, row->size_class,
						    verdict };
	}
}

static void tell(struct slow_search *search, const struct common *common)
{
	enum verdict_class class = class_of(common);
	struct verdict *verdict = same_cause(search, common, class);

	if (verdict != NULL) {
		verdict_evidence(verdict, "The same is seen against what was %s:",
				 slow_than(common->rows->against));
		tell_rows(search, verdict, common);
		remember(search, common, (size_t)(verdict - search->verdicts->list));
		return;
	}
	verdict = slow_verdict(search, class, common->rows->against);
	remember(search, common, search->verdicts->count - 1);
	fill(search, verdict, common);
	title_of(verdict, common, &search->report->job);
	tell_rows(search, verdict, common);
	tell_wire(verdict, common);
	advise(verdict, common);
	tell_missing(verdict, common);
	slow_fill_missing(search, verdict);
}

void slow_classify(struct slow_search *search, const struct slow_rows *rows,
		   const struct slow_cells *cells)
{
	bool is_taken[SLOW_ROWS_MAX] = { false };
	struct common common;

	for (size_t i = 0; i < rows->count; i++)
		is_taken[i] = rows->list[i].is_slow &&
			      !slow_is_explained(search, &rows->list[i], rows->against);
	common = find_common(rows, is_taken);
	common.cells = cells;
	if (common.slow == 0)
		return;
	common.is_all_over |= is_past(search->report, &common.worst->span);
	look_at_wire(search, &common);
	tell(search, &common);
}
