#include "doctor/blind.h"

#include <inttypes.h>

#include "common/op.h"
#include "common/text.h"
#include "doctor/agent_notes.h"

enum { NAMED = 24 }; /* of a kind; the rest is counted */

/* ---- agents ---------------------------------------------------------------------------------- */

static bool is_blamed_already(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdicts->list[i].class == VERDICT_AGENT_DEAD)
			return true;
	return false;
}

static void find_silent(struct verdicts *verdicts, const struct blind_options *options)
{
	const char *asked = options->asked ? options->asked : "sources";
	size_t silent = 0, told = 0;
	struct verdict *verdict;

	for (size_t i = 0; i < options->source_count; i++)
		silent += options->sources[i].is_silent;
	if (silent == 0)
		return;
	verdict = verdicts_add(verdicts, VERDICT_BLIND,
			       is_blamed_already(verdicts) ? VERDICT_NOTE : VERDICT_WARNING);
	text_copy(verdict->rule, sizeof(verdict->rule), "silent");
	verdict->is_unjudged = true;
	verdict_title(verdict, "%zu of %zu %s did not answer", silent, options->source_count,
		      asked);
	for (size_t i = 0; i < options->source_count && told < NAMED; i++) {
		const struct hang_source *source = &options->sources[i];

		if (!source->is_silent)
			continue;
		verdict_evidence(verdict, "%s: %s", source->name,
				 source->problem ? source->problem : "no answer");
		told++;
	}
	if (silent > told)
		verdict_evidence(verdict, "and %zu more", silent - told);
	verdict_missing(verdict,
			"the ranks behind them; who waits for one of these seems to wait for "
			"nobody");
	verdict_advice(verdict, "Is the node up, and does the agent run there?");
	verdict_advice(verdict, "$ systemctl status ringside-agent");
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/RingsideAgentDown.md");
}

static void find_left_out(struct verdicts *verdicts, const struct agent_notes *notes)
{
	size_t count = notes ? notes->gap_count + notes->gaps_left_out : 0;
	bool is_warning = false;
	struct verdict *verdict;
	size_t told = 0;

	if (count == 0)
		return;
	for (size_t i = 0; i < notes->gap_count; i++)
		is_warning |= notes->gaps[i].is_warning;
	verdict =
		verdicts_add(verdicts, VERDICT_BLIND, is_warning ? VERDICT_WARNING : VERDICT_NOTE);
	text_copy(verdict->rule, sizeof(verdict->rule), "agents");
	verdict_title(verdict, "%zu %s not in what agents answered", count,
		      text_which(count, "thing is", "things are"));
	/* What is missing before what could be better. */
	for (int turn = 1; turn >= 0; turn--)
		for (size_t i = 0; i < notes->gap_count; i++)
			if (notes->gaps[i].is_warning == turn && told < NAMED) {
				verdict_evidence(verdict, "%s: %s", notes->gaps[i].host,
						 notes->gaps[i].text);
				told++;
			}
	if (count > told)
		verdict_evidence(verdict, "and %zu more", count - told);
	verdict_missing(verdict,
			"the processes that are left out, and what others' files would say");
	verdict_advice(verdict, "$ journalctl -u ringside-agent");
	text_copy(verdict->page, sizeof(verdict->page), "SNAPSHOT.md");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

static void find_missing(struct verdicts *verdicts, const struct scene *scene,
			 const struct blind_options *options)
{
	struct verdict *verdict;

	if (scene->missing == 0)
		return;
	verdict = verdicts_add(verdicts, VERDICT_BLIND,
			       options->is_whole ? VERDICT_WARNING : VERDICT_NOTE);
	text_copy(verdict->rule, sizeof(verdict->rule), "ranks");
	verdict->is_unjudged = true;
	verdict_title(verdict, "%zu of %zu ranks cannot be seen from here", scene->missing,
		      scene->missing + scene->ranks);
	verdict_evidence(verdict,
			 "%zu ranks are recorded here; the launcher or the largest "
			 "communicator counts %zu",
			 scene->ranks, scene->missing + scene->ranks);
	verdict_advice(verdict, "Ask all nodes of the job at once, through their agents:");
	verdict_advice(verdict, "$ ringside doctor --agents 'node[001-064]'");
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclRanksUnseen.md");
}

/* ---- losses ---------------------------------------------------------------------------------- */

static uint64_t whole_lost(const struct recording *recording, uint64_t lost[LOST_REASONS],
			   size_t *processes)
{
	uint64_t sum = 0;

	*processes = 0;
	for (size_t i = 0; i < recording->count; i++) {
		const struct recording_process *process = recording->processes[i];
		uint64_t here = 0;

		for (unsigned int reason = 0; reason < LOST_REASONS; reason++) {
			/* Switched off on purpose. */
			if (reason == LOST_OFF || !op_lost_is_whole(reason))
				continue;
			lost[reason] += process->lost[reason];
			here += process->lost[reason];
		}
		*processes += here > 0;
		sum += here;
	}
	return sum;
}

static void find_lost(struct verdicts *verdicts, const struct recording *recording,
		      const struct scene *scene)
{
	uint64_t lost[LOST_REASONS] = { 0 };
	size_t processes;
	uint64_t sum = whole_lost(recording, lost, &processes);
	struct verdict *verdict;

	if (sum == 0)
		return;
	/* One of a hundred changes no figure that is told here. */
	verdict = verdicts_add(verdicts, VERDICT_BLIND,
			       scene && sum < scene->operations / 100 ? VERDICT_NOTE
								      : VERDICT_WARNING);
	text_copy(verdict->rule, sizeof(verdict->rule), "lost");
	verdict_title(verdict, "%" PRIu64 " %s lost by the %s of %zu %s", sum,
		      text_which(sum, "operation was", "operations were"),
		      text_which(processes, "recorder", "recorders"), processes,
		      text_which(processes, "process", "processes"));
	for (unsigned int reason = 0; reason < LOST_REASONS; reason++)
		if (lost[reason] > 0)
			verdict_evidence(verdict, "%s: %" PRIu64, op_lost_name(reason),
					 lost[reason]);
	verdict_missing(verdict, "whatever these operations would have shown");
	verdict_advice(verdict, "$ ringside verify");
	text_copy(verdict->page, sizeof(verdict->page), "runbooks/NcclRecordingLosses.md");
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_told(const struct recording_trouble *trouble, const struct blind_options *options)
{
	if (options->is_trouble)
		return options->is_trouble(trouble, options->context);
	return trouble->kind != RECORDING_CUT && trouble->kind != RECORDING_FOREIGN;
}

static void find_damage(struct verdicts *verdicts, const struct recording *recording,
			const struct blind_options *options)
{
	struct verdict *verdict;
	size_t count = 0, told = 0;

	for (size_t i = 0; i < recording->trouble_count; i++)
		count += is_told(&recording->troubles[i], options);
	if (count == 0)
		return;
	count += recording->troubles_left_out;
	verdict = verdicts_add(verdicts, VERDICT_BLIND, VERDICT_WARNING);
	text_copy(verdict->rule, sizeof(verdict->rule), "files");
	verdict_title(verdict, "%zu %s could not be read as %s should be", count,
		      text_which(count, "place", "places"), text_which(count, "it", "they"));
	for (size_t i = 0; i < recording->trouble_count && told < NAMED; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (!is_told(trouble, options))
			continue;
		verdict_evidence(verdict, "%s: %s", trouble->path, trouble->what);
		told++;
	}
	if (count > told)
		verdict_evidence(verdict, "and %zu more", count - told);
	verdict_missing(verdict, "whatever is in there");
	verdict_advice(verdict, "$ ringside verify PATH");
}

void blind_find(struct verdicts *verdicts, const struct recording *recording,
		const struct scene *scene, const struct blind_options *options)
{
	find_silent(verdicts, options);
	find_left_out(verdicts, options->notes);
	if (scene)
		find_missing(verdicts, scene, options);
	find_lost(verdicts, recording, scene);
	find_damage(verdicts, recording, options);
}
