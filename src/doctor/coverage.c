/* What is seen of each rank, and what is not: gaps of recordings, agents and processes. */
#include "doctor/doctor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/flight.h"
#include "common/attributes.h"
#include "common/op.h"
#include "common/text.h"
#include "import/json_scan.h"
#include "recording/recording.h"

static uint64_t time_since(uint64_t now_ns, uint64_t then_ns)
{
	if (then_ns == 0)
		return UINT64_MAX;
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool goes_on(const struct recording_process *process, const struct recording_comm *comm)
{
	return (process->life == RECORDING_ALIVE || process->life == RECORDING_UNKNOWN) &&
	       !(comm->info.flags & COMM_FLAG_FINALIZED);
}

/* ---- one rank -------------------------------------------------------------------------------- */

static void add_counts(struct scene_comm *to, const struct recording_comm *comm, uint64_t now_ns)
{
	const struct comm_counts *counts = &comm->counts;

	to->open++;
	if (!comm->has_counts)
		return;
	to->still_ns = least_of(to->still_ns, time_since(now_ns, counts->last_issue_ns));
	to->still_ns = least_of(to->still_ns, time_since(now_ns, counts->last_done_ns));
	if (counts->collectives > to->most_issued)
		to->most_issued = counts->collectives;
	to->least_issued = least_of(to->least_issued, counts->collectives);
}

/* Flights are sorted by communicator: the first open one is the oldest. */
static void add_flights(struct scene_comm *to, const struct recording_process *process,
			const uint8_t *kinds, uint32_t id, uint64_t now_ns)
{
	const struct recording_flight *oldest = NULL;
	uint64_t age;

	for (size_t i = 0; i < process->flight_count && oldest == NULL; i++)
		if (process->flights[i].op.comm == id && kinds[i] == FLIGHT_OPEN)
			oldest = &process->flights[i];
	if (oldest == NULL)
		return;
	to->inside++;
	age = time_since(now_ns, flight_since_ns(oldest));
	if (age == UINT64_MAX || (age <= to->age_ns && to->function[0] != '\0'))
		return;
	to->age_ns = process->is_undated ? 0 : age > 0 ? age : 1;
	to->number = op_shown_number(oldest->op.match);
	text_copy(to->function, sizeof(to->function),
		  recording_name(process, OP_NAMES_FUNCTION, oldest->op.function));
}

static enum status scene_add_process(struct scene *scene, const struct job *job, uint32_t p,
				     uint64_t now_ns)
{
	const struct recording_process *process = job->recording->processes[p];
	uint8_t *kinds = calloc(process->flight_count + 1, sizeof(*kinds));

	if (kinds == NULL)
		return ERR_NO_SPACE;
	flight_kinds(process, kinds);
	for (uint32_t s = job->first_seat[p]; s < job->first_seat[p + 1]; s++) {
		const struct recording_comm *comm = recording_comm(process, job->seats[s].comm_id);
		struct scene_comm *to = &scene->comms[job->seats[s].comm];

		if (comm == NULL)
			continue;
		if (comm->has_counts)
			scene->operations += comm->counts.issued;
		if (!goes_on(process, comm))
			continue;
		add_counts(to, comm, now_ns);
		add_flights(to, process, kinds, comm->info.id, now_ns);
	}
	free(kinds);
	return OK;
}

/* ---- entry points ---------------------------------------------------------------------------- */

static void count_ranks(struct scene *scene, const struct job *job)
{
	scene->processes = job->recording->count;
	scene->hosts = job->host_count;
	for (size_t i = 0; i < job->rank_count; i++)
		scene->ranks += job->ranks[i].attempt == 0 && job->ranks[i].is_counted;
	for (size_t i = 0; i < job->group_count; i++) {
		const struct job_group *group = &job->groups[i];
		size_t seen = 0;

		for (uint32_t r = 0; r < group->rank_count; r++)
			seen += job->ranks[group->first_rank + r].attempt == 0 &&
				job->ranks[group->first_rank + r].is_counted;
		if (group->rank_count == 0)
			continue;
		if (scene->jobs++ == 0)
			text_copy(scene->job, sizeof(scene->job), group->name);
		if (group->world_size > 0 && (uint64_t)group->world_size > seen)
			scene->missing += (size_t)group->world_size - seen;
	}
	if (scene->jobs > 1)
		scene->job[0] = '\0';
	for (size_t i = 0; i < job->recording->count; i++) {
		enum recording_life life = job->recording->processes[i]->life;

		scene->alive += life == RECORDING_ALIVE;
		scene->ended += life == RECORDING_ENDED;
		scene->killed += life == RECORDING_KILLED;
	}
}

static int by_age(const void *one, const void *other)
{
	const struct scene_comm *a = one, *b = other;

	return ORDER(b->inside > 0, a->inside > 0) ?:
	       ORDER(b->age_ns, a->age_ns) ?:
	       ORDER(a->comm, b->comm);
}

/* Leaves out what is over. */
static void scene_sum_up(struct scene *scene, const struct job *job, uint64_t hang_ns)
{
	size_t kept = 0;

	scene->last_ns = UINT64_MAX;
	for (size_t i = 0; i < job->comm_count; i++) {
		const struct scene_comm *comm = &scene->comms[i];

		if (comm->open == 0)
			continue;
		scene->last_ns = least_of(scene->last_ns, comm->still_ns);
		if (comm->age_ns > scene->age_ns)
			scene->age_ns = comm->age_ns;
		scene->standing +=
			comm->inside > 0 && comm->age_ns >= hang_ns && comm->still_ns >= hang_ns;
		scene->comms[kept++] = *comm;
	}
	scene->comm_count = kept;
	scene->communicators = kept > 0 ? kept : job->comm_count;
	if (kept > 1)
		qsort(scene->comms, kept, sizeof(*scene->comms), by_age);
}

enum status scene_make(struct scene *scene, const struct job *job, const uint64_t *now_ns,
		       uint64_t hang_ns)
{
	enum status status = OK;

	*scene = (struct scene){ .comms = calloc(job->comm_count + 1, sizeof(*scene->comms)) };
	if (scene->comms == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < job->comm_count; i++) {
		scene->comms[i].comm = (uint32_t)i;
		scene->comms[i].still_ns = scene->comms[i].least_issued = UINT64_MAX;
	}
	for (uint32_t p = 0; p < job->recording->count && status == OK; p++)
		status = scene_add_process(scene, job, p,
					   now_ns ? now_ns[p]
						  : hang_now_ns(job->recording->processes[p]));
	if (status != OK) {
		scene_release(scene);
		return status;
	}
	count_ranks(scene, job);
	scene_sum_up(scene, job, hang_ns);
	return OK;
}

void scene_release(struct scene *scene)
{
	free(scene->comms);
	scene->comms = NULL;
	scene->comm_count = 0;
}

bool scene_is_dead(const struct scene *scene)
{
	return scene->killed > 0 && scene->killed + scene->ended == scene->processes;
}

enum scene_answer scene_answer(const struct scene *scene, const struct verdicts *verdicts)
{
	size_t stuck = 0, hangs = 0, others = 0, blind = 0;

	for (size_t i = 0; i < verdicts->count; i++) {
		const struct verdict *verdict = &verdicts->list[i];

		if (verdict->severity < VERDICT_WARNING)
			continue;
		stuck += verdict->class == VERDICT_STUCK;
		hangs += verdict_is_hang(verdict->class);
		blind += verdict->class == VERDICT_BLIND;
		others += verdict->class != VERDICT_BLIND;
	}
	if (stuck > 0 && stuck == hangs)
		return SCENE_STUCK;
	if (others > 0 || (scene && scene_is_dead(scene)))
		return SCENE_TROUBLE;
	return blind > 0 ? SCENE_UNKNOWN : SCENE_NOTHING_WRONG;
}

const char *scene_answer_name(enum scene_answer answer)
{
	static const char *const names[] = {
		[SCENE_NOTHING_WRONG] = "nothing_wrong",
		[SCENE_TROUBLE] = "trouble",
		[SCENE_STUCK] = "stuck_cause_unknown",
		[SCENE_UNKNOWN] = "could_not_tell",
	};

	return names[answer];
}

bool scene_is_healthy(const struct scene *scene, const struct verdicts *verdicts)
{
	return scene_answer(scene, verdicts) == SCENE_NOTHING_WRONG &&
	       !verdicts_has_unjudged(verdicts);
}

enum { WORDS = 200 };

/* ---- lists ----------------------------------------------------------------------------------- */

/* A zeroed entry at the end of a list that grows by doubling; NULL: out of memory. */
static void *add_place(void **list, size_t *count, size_t bytes)
{
	if (!list_grow(list, *count, bytes))
		return NULL;
	return memset((char *)*list + (*count)++ * bytes, 0, bytes);
}

/* ---- agent.json ------------------------------------------------------------------------------ */

enum agent_key {
	KEY_HOST,
	KEY_IS_FAILING,
	KEY_PROCESSES,
	KEY_LEFT_OUT,
	KEY_IS_TIME_UP,
	KEY_REFUSED,
	KEY_REFUSED_COUNT,
	KEY_UNREADABLE,
	KEY_NOT_FOLLOWED,
	KEYS,
};

static const struct json_scan_key agent_keys[KEYS] = {
	[KEY_HOST] = JSON_SCAN_KEY_OF("host"),
	[KEY_IS_FAILING] = JSON_SCAN_KEY_OF("is_failing"),
	[KEY_PROCESSES] = JSON_SCAN_KEY_OF("processes"),
	[KEY_LEFT_OUT] = JSON_SCAN_KEY_OF("processes_left_out"),
	[KEY_IS_TIME_UP] = JSON_SCAN_KEY_OF("is_time_up"),
	[KEY_REFUSED] = JSON_SCAN_KEY_OF("refused_files"),
	[KEY_REFUSED_COUNT] = JSON_SCAN_KEY_OF("refused_files_count"),
	[KEY_UNREADABLE] = JSON_SCAN_KEY_OF("unreadable_files"),
	[KEY_NOT_FOLLOWED] = JSON_SCAN_KEY_OF("processes_not_followed"),
};

struct agent {
	struct agent_notes *notes;
	enum status status; /* ERR_NO_SPACE: permanent, nothing more is added */
	char host[128];
	bool is_failing;
	bool is_time_up;
	uint64_t left_out, refused, unreadable, not_followed;
	char why_left_out[WORDS]; /* of the first */
	char refused_path[WORDS];
	char why_refused[WORDS];
};

/* What is missing of it: one line. */
PRINTF_LIKE(3, 4)
static void add_gap(struct agent *agent, bool is_warning, const char *format, ...)
{
	struct agent_notes *notes = agent->notes;
	struct agent_gap *gap;
	va_list arguments;
	char text[400];

	if (agent->status != OK)
		return;
	if (notes->gap_count >= AGENT_NOTES_GAPS_MAX) {
		notes->gaps_left_out++;
		return;
	}
	gap = add_place((void **)&notes->gaps, &notes->gap_count, sizeof(*gap));
	if (gap == NULL) {
		agent->status = ERR_NO_SPACE;
		return;
	}
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	text_from_field(gap->host, sizeof(gap->host), agent->host, sizeof(gap->host));
	text_from_field(gap->text, sizeof(gap->text), text, sizeof(gap->text));
	gap->is_warning = is_warning;
}

/* The first string of each of two keys, in the objects of an array. */
static void take_reasons(struct json_scan *scan, const struct json_scan_key wanted[2], char *first,
			 char *second)
{
	char unused[8];

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return;
	while (json_scan_next_object(scan)) {
		bool is_known = first[0] != '\0';
		int key, hint = 0;

		while ((key = json_scan_next_key(scan, wanted, 2, &hint)) >=
		       JSON_SCAN_KEY_UNKNOWN) {
			if (key == JSON_SCAN_KEY_UNKNOWN)
				json_scan_skip(scan);
			else if (is_known)
				json_scan_read_text(scan, unused, sizeof(unused));
			else
				json_scan_read_text(scan, key == 0 ? first : second, WORDS);
		}
	}
}

static void take_value(struct json_scan *scan, int key, struct agent *agent)
{
	static const struct json_scan_key of_process[2] = { JSON_SCAN_KEY_OF("left_out"),
							    JSON_SCAN_KEY_OF("-") };
	static const struct json_scan_key of_refused[2] = { JSON_SCAN_KEY_OF("path"),
							    JSON_SCAN_KEY_OF("why") };
	char unused[WORDS] = "";

	switch (key) {
	case KEY_HOST:
		json_scan_read_text(scan, agent->host, sizeof(agent->host));
		return;
	case KEY_IS_FAILING:
		agent->is_failing = json_scan_read_truth(scan);
		return;
	case KEY_IS_TIME_UP:
		agent->is_time_up = json_scan_read_truth(scan);
		return;
	case KEY_PROCESSES:
		take_reasons(scan, of_process, agent->why_left_out, unused);
		return;
	case KEY_REFUSED:
		take_reasons(scan, of_refused, agent->refused_path, agent->why_refused);
		return;
	case KEY_LEFT_OUT:
		json_scan_read_unsigned(scan, &agent->left_out);
		return;
	case KEY_REFUSED_COUNT:
		json_scan_read_unsigned(scan, &agent->refused);
		return;
	case KEY_UNREADABLE:
		json_scan_read_unsigned(scan, &agent->unreadable);
		return;
	case KEY_NOT_FOLLOWED:
		json_scan_read_unsigned(scan, &agent->not_followed);
		return;
	default:
		json_scan_skip(scan);
	}
}

static void tell_agent(struct agent *agent)
{
	if (agent->left_out > 0)
		add_gap(agent, true, "%" PRIu64 " %s not in its answer%s%s", agent->left_out,
			text_which(agent->left_out, "process is", "processes are"),
			agent->why_left_out[0] ? ": " : "", agent->why_left_out);
	if (agent->not_followed > 0)
		add_gap(agent, true, "%" PRIu64 " %s over its limits and not tracked",
			agent->not_followed,
			text_which(agent->not_followed, "process is", "processes are"));
	if (agent->refused > 0)
		add_gap(agent, true, "%" PRIu64 " %s not be tracked%s%.150s%s%.150s",
			agent->refused, text_which(agent->refused, "file can", "files can"),
			agent->refused_path[0] ? ": " : "", agent->refused_path,
			agent->why_refused[0] ? ": " : "", agent->why_refused);
	/* Files of other users: a shared host always has some. */
	if (agent->unreadable > 0)
		add_gap(agent, false, "no permission to read %" PRIu64 " %s", agent->unreadable,
			text_which(agent->unreadable, "file", "files"));
	if (agent->is_failing)
		add_gap(agent, true, "its last scan failed, so its data may be old");
	if (agent->is_time_up)
		add_gap(agent, false,
			"it ran out of time: the last processes show the state of its previous "
			"scan, without finished operations");
}

/* The display name if the note has none: where it was found. */
static void name_agent(struct agent *agent, const char *path)
{
	const char *slash = strrchr(path, '/');

	text_format(agent->host, sizeof(agent->host), "%.*s",
		    slash ? (int)(slash - path) : (int)strlen(path), path);
}

/* ---- agents.json ----------------------------------------------------------------------------- */

static enum status take_agents(struct json_scan *scan, struct agent_notes *notes)
{
	static const struct json_scan_key wanted[2] = { JSON_SCAN_KEY_OF("name"),
							JSON_SCAN_KEY_OF("problem") };
	struct agent_asked *agent;

	if (!json_scan_enter(scan, JSON_SCAN_ARRAY))
		return OK;
	while (json_scan_next_object(scan)) {
		char name[sizeof(agent->name)] = "", problem[sizeof(agent->problem)] = "";
		int key, hint = 0;

		while ((key = json_scan_next_key(scan, wanted, 2, &hint)) >=
		       JSON_SCAN_KEY_UNKNOWN) {
			if (key == JSON_SCAN_KEY_UNKNOWN)
				json_scan_skip(scan);
			else
				json_scan_read_text(scan, key == 0 ? name : problem,
						    key == 0 ? sizeof(name) : sizeof(problem));
		}
		if (notes->agent_count >= AGENT_NOTES_AGENTS_MAX)
			continue;
		agent = add_place((void **)&notes->agents, &notes->agent_count, sizeof(*agent));
		if (agent == NULL)
			return ERR_NO_SPACE;
		text_from_field(agent->name, sizeof(agent->name), name, sizeof(name));
		text_from_field(agent->problem, sizeof(agent->problem), problem, sizeof(problem));
	}
	return OK;
}

/* ---- all notes ------------------------------------------------------------------------------- */

static enum status read_note(struct agent_notes *notes, const struct recording_note *note)
{
	static const struct json_scan_key agents = JSON_SCAN_KEY_OF("agents");
	const char *slash = strrchr(note->path, '/');
	bool is_bundle = strcmp(slash ? slash + 1 : note->path, "agents.json") == 0;
	struct agent agent = { .notes = notes, .status = OK };
	struct json_scan scan;
	int key, hint = 0;

	name_agent(&agent, note->path);
	json_scan_init(&scan, note->text, note->length);
	if (json_scan_next(&scan) != JSON_SCAN_OBJECT) {
		add_gap(&agent, true, "its list of omissions is not valid");
		return agent.status;
	}
	while (agent.status == OK &&
	       (key = json_scan_next_key(&scan, is_bundle ? &agents : agent_keys,
					 is_bundle ? 1 : KEYS, &hint)) >= JSON_SCAN_KEY_UNKNOWN) {
		if (is_bundle && key == 0)
			agent.status = take_agents(&scan, notes);
		else
			take_value(&scan, is_bundle ? KEYS : key, &agent);
	}
	if (scan.problem != NULL)
		add_gap(&agent, true, "its list of omissions is damaged: %s", scan.problem);
	if (agent.host[0] == '\0')
		name_agent(&agent, note->path);
	tell_agent(&agent);
	return agent.status;
}

enum status agent_notes_read(struct agent_notes *notes, const struct recording *recording)
{
	enum status status = OK;

	*notes = (struct agent_notes){ .gaps = NULL };
	for (size_t i = 0; i < recording->note_count && status == OK; i++)
		if (strstr(recording->notes[i].path, "/ras/status.") == NULL)
			status = read_note(notes, &recording->notes[i]);
	return status;
}

void agent_notes_release(struct agent_notes *notes)
{
	free(notes->gaps);
	free(notes->agents);
	*notes = (struct agent_notes){ .gaps = NULL };
}

/* ---- what limits the visibility -------------------------------------------------------------- */

enum { NAMED = 24 }; /* of a kind; the rest is counted */

static struct verdict *add_blind(struct verdicts *verdicts, bool is_warning, const char *rule,
				 const char *page)
{
	struct verdict *verdict =
		verdicts_add(verdicts, VERDICT_BLIND, is_warning ? VERDICT_WARNING : VERDICT_NOTE);

	text_copy(verdict->rule, sizeof(verdict->rule), rule);
	text_copy(verdict->page, sizeof(verdict->page), page);
	return verdict;
}

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
	verdict = add_blind(verdicts, !is_blamed_already(verdicts), "silent",
			    "runbooks/RingsideAgentDown.md");
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
	verdict_missing(
		verdict,
		"Their ranks are not visible; ranks that wait for them seem to wait for nothing.");
	verdict_advice(verdict, "Check that the node is up and that the agent is running:");
	verdict_advice(verdict, "$ systemctl status ringside-agent");
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
	verdict = add_blind(verdicts, is_warning, "agents", "FORMATS.md");
	verdict_title(verdict, "%zu %s in the agents' answers", count,
		      text_which(count, "gap", "gaps"));
	/* What is missing comes before what is only incomplete. */
	for (int turn = 1; turn >= 0; turn--)
		for (size_t i = 0; i < notes->gap_count; i++)
			if (notes->gaps[i].is_warning == turn && told < NAMED) {
				verdict_evidence(verdict, "%s: %s", notes->gaps[i].host,
						 notes->gaps[i].text);
				told++;
			}
	if (count > told)
		verdict_evidence(verdict, "and %zu more", count - told);
	verdict_missing(verdict, "Omitted processes and files of other users are not visible.");
	verdict_advice(verdict, "$ journalctl -u ringside-agent");
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* One node of a running job shows whether its ranks wait. When a job has ended, whoever has only a part of its files
 * lacks most of what could have happened: the ranks that failed may be those without a file. */
static bool has_too_few(const struct recording *recording, const struct scene *scene)
{
	for (size_t i = 0; i < recording->count; i++)
		if (recording->processes[i]->life != RECORDING_ENDED)
			return false;
	return scene->missing * 3 > scene->missing + scene->ranks;
}

static void find_missing(struct verdicts *verdicts, const struct recording *recording,
			 const struct scene *scene, const struct blind_options *options)
{
	bool are_few = has_too_few(recording, scene);
	struct verdict *verdict;

	if (scene->missing == 0)
		return;
	verdict = add_blind(verdicts, options->is_whole || are_few, "ranks",
			    "runbooks/NcclRanksUnseen.md");
	verdict->is_unjudged = true;
	verdict_title(verdict, "%zu of %zu ranks are not visible from here", scene->missing,
		      scene->missing + scene->ranks);
	verdict_evidence(
		verdict,
		"%zu ranks are recorded here; the launcher or the largest communicator reports %zu",
		scene->ranks, scene->missing + scene->ranks);
	if (are_few) {
		verdict_missing(verdict, "What the other ranks did is unknown: one of them may "
					 "have failed.");
		verdict_advice(verdict, "Copy the files of all nodes into one directory and run "
					"the doctor on it.");
		return;
	}
	verdict_advice(verdict, "Query the agents of all nodes of the job at once:");
	verdict_advice(verdict, "$ ringside doctor --agents 'node[001-064]'");
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
	/* Less than 1% changes no reported value. */
	verdict = add_blind(verdicts, !(scene && sum < scene->operations / 100), "lost",
			    "runbooks/NcclRecordingLosses.md");
	verdict_title(verdict, "%" PRIu64 " %s lost by the %s of %zu %s", sum,
		      text_which(sum, "operation was", "operations were"),
		      text_which(processes, "recorder", "recorders"), processes,
		      text_which(processes, "process", "processes"));
	for (unsigned int reason = 0; reason < LOST_REASONS; reason++)
		if (lost[reason] > 0)
			verdict_evidence(verdict, "%s: %" PRIu64, op_lost_words(reason),
					 lost[reason]);
	verdict_missing(verdict, "What these operations would have shown is missing.");
	verdict_advice(verdict, "$ ringside verify");
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_trouble_told(const struct recording_trouble *trouble,
			    const struct blind_options *options)
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
		count += is_trouble_told(&recording->troubles[i], options);
	if (count == 0)
		return;
	count += recording->troubles_left_out - recording->cuts_left_out;
	verdict = add_blind(verdicts, true, "files", "");
	verdict_title(verdict, "%zu recording %s could not be fully read", count,
		      text_which(count, "file", "files"));
	for (size_t i = 0; i < recording->trouble_count && told < NAMED; i++) {
		const struct recording_trouble *trouble = &recording->troubles[i];

		if (!is_trouble_told(trouble, options))
			continue;
		verdict_evidence(verdict, "%s: %s", trouble->path, trouble->what);
		told++;
	}
	if (count > told)
		verdict_evidence(verdict, "and %zu more", count - told);
	verdict_missing(verdict, "Their contents are missing.");
	verdict_advice(verdict, "$ ringside verify PATH");
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Or that it may hang. */
static bool is_hang_reported(const struct verdicts *verdicts)
{
	for (size_t i = 0; i < verdicts->count; i++)
		if (verdict_is_hang(verdicts->list[i].class) ||
		    (verdicts->list[i].is_unjudged && strcmp(verdicts->list[i].rule, "hang") == 0))
			return true;
	return false;
}

/* Nothing shows what it did after its last record, at *last_wall_ns (0: unknown). */
static bool is_endless(const struct recording_process *process, const struct blind_options *options,
		       uint64_t *last_wall_ns)
{
	enum { WRITTEN_EVERY_S = 10 }; /* by a recorder that has nothing new */
	uint64_t late_ns = options->hang_ns + WRITTEN_EVERY_S * SECOND_NS, last_ns;

	*last_wall_ns = 0;
	if (process->life != RECORDING_UNKNOWN ||
	    (process->file_count == 0 && process->region_path == NULL && !process->foreign))
		return false;
	last_ns = hang_now_ns(process);
	if (last_ns == 0 || !recording_wall_ns(process, last_ns, last_wall_ns))
		return true;
	return options->wall_ns == 0 || *last_wall_ns + late_ns < options->wall_ns;
}

static void tell_endless(struct verdict *verdict, uint64_t first_wall_ns, uint64_t last_wall_ns)
{
	char first[UNITS_TEXT], last[UNITS_TEXT];

	if (first_wall_ns == 0)
		verdict_evidence(verdict, "At least one of them has no record with a time.");
	if (last_wall_ns == 0)
		return;
	units_date(last, last_wall_ns);
	units_date(first, first_wall_ns);
	if (first_wall_ns == 0 || strcmp(first, last) == 0)
		verdict_evidence(verdict, "Last record: %s UTC.", last);
	else
		verdict_evidence(verdict, "Last records: %s to %s UTC.", first, last);
}

/*
 * A file without its closing record was truncated, or its process was killed or still runs elsewhere. Up to
 * its last record nothing may be wrong, but a hang can begin right there: it shows only in what follows.
 */
static bool find_endless(struct verdicts *verdicts, const struct recording *recording,
			 const struct blind_options *options)
{
	uint64_t first_wall_ns = UINT64_MAX, last_wall_ns = 0;
	size_t count = 0, logs = 0;
	struct verdict *verdict;

	/* A hung job has no end either. */
	if (is_hang_reported(verdicts))
		return false;
	for (size_t i = 0; i < recording->count; i++) {
		uint64_t wall_ns;

		if (!is_endless(recording->processes[i], options, &wall_ns))
			continue;
		count++;
		logs += recording->processes[i]->foreign != NULL;
		first_wall_ns = least_of(first_wall_ns, wall_ns);
		last_wall_ns = wall_ns > last_wall_ns ? wall_ns : last_wall_ns;
	}
	if (count == 0)
		return false;
	verdict = add_blind(verdicts, true, "end", "DOCTOR.md#not-judged");
	verdict->is_unjudged = true;
	verdict_title(verdict, "not judged: %zu of %zu %s no end", count, recording->count,
		      text_which(recording->count, "recording has", "recordings have"));
	tell_endless(verdict, first_wall_ns, last_wall_ns);
	if (logs > 0)
		verdict_missing(verdict, "Logs of other tools do not show how a process ended.");
	verdict_missing(verdict, "Nothing shows what happened after that: the files may be "
				 "truncated, and the processes may have hung, crashed or gone on.");
	verdict_advice(verdict, "$ ringside verify PATH");
	verdict_advice(verdict, "Copy truncated files again; diagnose a running job on its nodes:");
	verdict_advice(verdict, "$ ringside doctor --agents 'node[001-064]'");
	return true;
}

static bool has_answer(const struct blind_options *options)
{
	for (size_t i = 0; i < options->source_count; i++)
		if (!options->sources[i].is_silent)
			return true;
	return false;
}

static void find_nothing(struct verdicts *verdicts, const struct recording *recording,
			 const struct scene *scene, const struct blind_options *options)
{
	bool is_empty = recording->count == 0;
	struct verdict *verdict;

	if (is_empty ? !has_answer(options) : scene == NULL || scene->communicators > 0)
		return;
	verdict = add_blind(verdicts, true, "nothing", "DOCTOR.md#not-judged");
	verdict->is_unjudged = true;
	verdict_title(verdict, "not judged: no %s recorded",
		      is_empty ? "process is being" : "communicator was");
	if (is_empty) {
		verdict_missing(verdict,
				"No job runs on these hosts, or it runs without Ringside.");
		verdict_advice(verdict, "$ ringside ls");
		return;
	}
	verdict_missing(verdict, "The processes have not used NCCL yet, or the recordings are "
				 "truncated.");
	verdict_advice(verdict, "$ ringside verify PATH");
}

void blind_find(struct verdicts *verdicts, const struct recording *recording,
		const struct scene *scene, const struct blind_options *options)
{
	if (!find_endless(verdicts, recording, options))
		find_nothing(verdicts, recording, scene, options);
	find_silent(verdicts, options);
	find_left_out(verdicts, options->notes);
	if (scene)
		find_missing(verdicts, recording, scene, options);
	find_lost(verdicts, recording, scene);
	find_damage(verdicts, recording, options);
}
