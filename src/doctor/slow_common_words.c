/* A verdict about slow kinds of transfers, in words. */
#include "common/op.h"
#include "common/text.h"
#include "doctor/slow_common.h"

enum { EVIDENCE_ROWS = 8 };

static void choice_text(char *to, size_t size, const struct job *job, const struct slow_row *row)
{
	text_format(to, size, "%s %s", job_name(job, OP_NAMES_ALGORITHM, row->algorithm),
		    job_name(job, OP_NAMES_PROTOCOL, row->protocol));
}

void slow_common_title(struct verdict *verdict, const struct slow_common *common,
		       const struct job *job)
{
	const struct slow_row *worst = common->worst;
	const char *function = job_name(job, OP_NAMES_FUNCTION, worst->function);
	const char *tail = slow_than(common->rows->against);
	const char *is = common->is_all_over ? "was" : "is";
	char size[16], most[16], choice[64];

	op_size_text(size, sizeof(size), worst->size_class);
	op_size_text(most, sizeof(most), common->most_class);
	choice_text(choice, sizeof(choice), job, worst);
	if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_either(common))
		verdict_title(verdict,
			      "the network between nodes, or NVLink, %s slower than %s, for all",
			      is, tail);
	else if (verdict->class == VERDICT_SLOW_NETWORK)
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

	op_size_text(size, sizeof(size), row->size_class);
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

	op_size_text(size, sizeof(size), row->size_class);
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

void slow_common_rows(struct slow_search *search, struct verdict *verdict,
		      const struct slow_common *common)
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

void slow_common_advise(struct verdict *verdict, const struct slow_common *common)
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
		if (slow_common_is_wire_partial(common)) {
			verdict_advice(verdict, "Look for one link within a node, which only some "
						"rings use, and for one rail of the network.");
			verdict_advice(verdict, "$ ssh NODE nvidia-smi nvlink --status");
			break;
		}
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

void slow_common_missing(struct verdict *verdict, const struct slow_common *common)
{
	const struct slow_rows *rows = common->rows;
	bool has_nvlink = false;

	for (size_t i = 0; i < rows->count; i++)
		has_nvlink |= rows->list[i].kind == JOB_COMM_NVLINK;
	if (verdict->class == VERDICT_SLOW_NETWORK && !has_nvlink &&
	    !slow_common_is_wire_slow(common)) {
		verdict_missing(verdict, "No communicator stays within a node: whether NVLink is "
					 "slower, too, cannot be seen.");
		verdict->confidence *= 0.9;
	}
	if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_either(common)) {
		verdict_missing(verdict, "They are slower by so little that NVLink which became "
					 "about as slow as the network would look the same, and no "
					 "communicator stays within a node to compare with.");
		verdict->confidence *= 0.6;
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

void slow_common_tell_wire(struct verdict *verdict, const struct slow_common *common)
{
	const struct slow_wire *wire = &common->wire;

	if (verdict->class == VERDICT_SLOW_NETWORK && slow_common_is_wire_slow(common))
		verdict_evidence(
			verdict, "Their transfers are with the network for %s each, %s before%s.",
			units_of_ns(wire->after_ns).text, units_of_ns(wire->before_ns).text,
			slow_common_is_either(common) ? "" : ": it is not NVLink");
	if (verdict->class == VERDICT_BELOW_EXPECTED && slow_common_is_wire_partial(common))
		verdict_evidence(verdict,
				 "What %u of %u ranks send over nodes is with the network for "
				 "longer, what %u send is not: some rings are held up and others "
				 "are not, so it is not the network for all.",
				 wire->senders_slower, wire->senders, wire->senders_same);
	if (verdict->class == VERDICT_SLOW_NVLINK && slow_common_is_wire_fine(common))
		verdict_evidence(verdict,
				 "Transfers over nodes are with the network for %s each, %s "
				 "before: it is not the network.",
				 units_of_ns(wire->after_ns).text,
				 units_of_ns(wire->before_ns).text);
	if (verdict->class == VERDICT_SLOW_NVLINK && slow_common_is_wire_fine(common) &&
	    wire->host != UINT32_MAX)
		verdict_evidence(verdict,
				 "What arrives at %.100s waits longer than elsewhere until "
				 "the GPU has taken it over.",
				 verdict->host);
}
