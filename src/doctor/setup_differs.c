/* What should be the same on all ranks and is not: variables, releases of NCCL. */
#include <stdlib.h>
#include <string.h>

#include "doctor/setup_parts.h"

/* These are meant to differ, or it does no harm. */
static bool may_differ(const char *name)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES",  "NCCL_HOSTID",
		"NCCL_COMM_ID",		"NCCL_TOPO_FILE",	   "NCCL_GRAPH_FILE",
		"SLURM_CPU_BIND",	"SLURM_GPUS_ON_NODE",	   "SLURM_NTASKS_PER_NODE",
		"SLURM_STEP_ID",	"CUDA_MPS_PIPE_DIRECTORY",
	};
	static const char *const prefixes[] = { "NCCL_DEBUG", "RINGSIDE_", "NCCL_INSPECTOR_" };
	size_t length = strlen(name);

	for (size_t i = 0; i < ARRAY_LENGTH(names); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	for (size_t i = 0; i < ARRAY_LENGTH(prefixes); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return (length > 5 && strcmp(name + length - 5, "_PORT") == 0) ||
	       (length > 10 && strcmp(name + length - 10, "_DUMP_FILE") == 0);
}

/* Of these each rank may have its own, by its place in the node: only when ranks of different nodes with the same
 * pattern disagree it is a mistake, which nobody can tell from here. Two values among many ranks are. */
enum { VALUES_MOST = 4 };

struct value {
	const char *text; /* NULL: not set */
	struct setup_group group;
	const struct setup_variable *first;
};

struct difference {
	struct value values[VALUES_MOST];
	size_t count;
	bool is_many;
};

static void add_value(const struct setup *setup, struct difference *difference, const char *text,
		      uint32_t who, const struct setup_variable *variable)
{
	struct value *value = NULL;

	for (size_t i = 0; i < difference->count && value == NULL; i++) {
		const char *known = difference->values[i].text;

		if (known == text || (known != NULL && text != NULL && strcmp(known, text) == 0))
			value = &difference->values[i];
	}
	if (value == NULL) {
		if (difference->count == VALUES_MOST) {
			difference->is_many = true;
			return;
		}
		value = &difference->values[difference->count++];
		*value = (struct value){ .text = text, .first = variable };
	}
	setup_group_add(setup, &value->group, who);
}

/* Can we know that it is not set there? A log shows what was read, and not all is read before an init ends; a
 * recording has it all, unless there was no room. */
static bool is_surely_unset(const struct setup_who *who, const char *name)
{
	if (who->recorded >= 0)
		return who->has_environment;
	return who->has_init && strncmp(name, "NCCL_", 5) == 0;
}

/* A team, and what each of its members has for the variable at hand. */
struct team {
	const uint32_t *whos;
	size_t count;
	const char *name;
	const struct setup_variable *const *has; /* by who; NULL nothing */
};

static void compare_team(const struct setup *setup, const struct team *team,
			 struct difference *difference)
{
	*difference = (struct difference){ .count = 0 };
	for (size_t i = 0; i < team->count; i++) {
		uint32_t who = team->whos[i];

		if (team->has[who] != NULL)
			add_value(setup, difference, team->has[who]->value, who, team->has[who]);
		else if (is_surely_unset(&setup->whos[who], team->name))
			add_value(setup, difference, NULL, who, NULL);
	}
}

static const struct value *largest(const struct difference *difference)
{
	const struct value *most = &difference->values[0];

	for (size_t i = 1; i < difference->count; i++)
		if (difference->values[i].group.count > most->group.count)
			most = &difference->values[i];
	return most;
}

static void cite_value(const struct setup *setup, struct verdict *verdict, const char *name,
		       const struct value *value)
{
	char who[320];

	if (value->first != NULL)
		setup_cite_variable(setup, verdict, value->first);
	else
		verdict_evidence(verdict, "%s: %s is not set",
				 setup_who_text(setup, value->group.first, who, sizeof(who)), name);
}

static void tell_difference(const struct setup *setup, const struct team *team,
			    const struct difference *difference)
{
	const char *name = team->name;
	const struct value *most = largest(difference);
	struct setup_group others = { .count = 0 };
	struct verdict *verdict = setup_verdict(setup, "environment-differs", VERDICT_WARNING);
	char where[400];
	bool is_guess = false;

	for (size_t i = 0; i < difference->count; i++) {
		const struct value *value = &difference->values[i];

		is_guess |= value->text == NULL && setup->whos[value->group.first].recorded < 0;
		if (value == most)
			continue;
		if (others.count == 0)
			others = value->group;
		else {
			others.is_one_host &= value->group.is_one_host &&
					      setup_same_host(setup->whos[others.first].host,
							      setup->whos[value->group.first].host);
			others.count += value->group.count;
		}
	}
	verdict_title(verdict, "%s differs %s from the others", name,
		      setup_group_text(setup, &others, where, sizeof(where)));
	for (size_t i = 0; i < difference->count; i++)
		if (&difference->values[i] != most) {
			cite_value(setup, verdict, name, &difference->values[i]);
			verdict_evidence(verdict, "so it is on %zu of %zu ranks",
					 difference->values[i].group.count, team->count);
		}
	cite_value(setup, verdict, name, most);
	verdict_evidence(verdict, "so it is on %zu of %zu ranks", most->group.count, team->count);
	if (is_guess) {
		verdict->confidence = 0.7;
		verdict_missing(verdict, "a log shows a variable only where NCCL read it");
	}
	verdict_advice(verdict, "Set %s to the same value everywhere, or nowhere", name);
	setup_blame(setup, verdict, &others);
}

static size_t team_end(const struct setup *setup, size_t first)
{
	uint32_t team = setup->whos[setup->by_team[first]].team;
	size_t end = first + 1;

	while (end < setup->who_count && setup->whos[setup->by_team[end]].team == team)
		end++;
	return end;
}

/* All teams, so that of a variable only those are looked at in which somebody has it. */
struct teams {
	struct team_place {
		size_t first;
		size_t count;
		size_t done; /* the last variable that was compared there, counted from 1 */
	} * list;
	uint32_t *of; /* by who: its place in the list */
};

static enum status find_teams(const struct setup *setup, struct teams *teams)
{
	size_t found = 0, end;

	teams->list = calloc(setup->who_count + 1, sizeof(*teams->list));
	teams->of = calloc(setup->who_count + 1, sizeof(*teams->of));
	if (teams->list == NULL || teams->of == NULL)
		return ERR_NO_SPACE;
	for (size_t first = 0; first < setup->who_count; first = end, found++) {
		end = team_end(setup, first);
		teams->list[found] = (struct team_place){ first, end - first, 0 };
		for (size_t i = first; i < end; i++)
			teams->of[setup->by_team[i]] = (uint32_t)found;
	}
	return OK;
}

static void compare_place(const struct setup *setup, const struct team_place *place,
			  const char *name, const struct setup_variable *const *has)
{
	struct team team = { setup->by_team + place->first, place->count, name, has };
	struct difference difference;

	if (team.count < 2)
		return;
	compare_team(setup, &team, &difference);
	/* As many values as ranks: each has its own, and was meant to. */
	if (difference.count > 1 && !difference.is_many &&
	    (difference.count < team.count || team.count == 2))
		tell_difference(setup, &team, &difference);
}

/* The variables [at, at + count) have one name. */
static void compare_variable(const struct setup *setup, struct teams *teams, size_t at,
			     size_t count, const struct setup_variable **has)
{
	for (size_t i = at; i < at + count; i++)
		has[setup->variables[i].who] = &setup->variables[i];
	for (size_t i = at; i < at + count; i++) {
		struct team_place *place = &teams->list[teams->of[setup->variables[i].who]];

		if (place->done != at + 1)
			compare_place(setup, place, setup->variables[at].name, has);
		place->done = at + 1;
	}
	for (size_t i = at; i < at + count; i++)
		has[setup->variables[i].who] = NULL;
}

enum status setup_find_differences(const struct setup *setup)
{
	const struct setup_variable **has = calloc(setup->who_count + 1, sizeof(*has));
	struct teams teams = { .list = NULL };
	enum status status = find_teams(setup, &teams);
	size_t count;

	if (has == NULL)
		status = ERR_NO_SPACE;
	for (size_t at = 0; at < setup->variable_count && status == OK; at += count) {
		const char *name = setup->variables[at].name;

		setup_find_variable(setup, name, &count);
		if (!may_differ(name))
			compare_variable(setup, &teams, at, count, has);
	}
	free(has);
	free(teams.list);
	free(teams.of);
	return status;
}

/* ---- releases -------------------------------------------------------------------------------- */

/* Texts are kept once: the same version is the same pointer. */
static const char *version_of(const struct setup *setup, uint32_t who)
{
	int64_t process = setup->whos[who].logged;

	return process >= 0 ? setup->log->processes[process].version : "";
}

/* What most of a team have. A few releases among many ranks: the first 64 have it. */
static uint32_t most_common(const struct setup *setup, const uint32_t *whos, size_t count)
{
	uint32_t most = whos[0];
	size_t most_count = 0;

	for (size_t i = 0; i < count && i < 64; i++) {
		const char *version = version_of(setup, whos[i]);
		size_t same = 0;

		for (size_t j = 0; version[0] != '\0' && j < count; j++)
			same += version_of(setup, whos[j]) == version;
		if (same > most_count) {
			most = whos[i];
			most_count = same;
		}
	}
	return most;
}

static void tell_versions(const struct setup *setup, uint32_t most, const struct setup_group *group)
{
	struct verdict *verdict = setup_verdict(setup, "version-mismatch", VERDICT_ERROR);
	const struct nccl_log_process *one = &setup->log->processes[setup->whos[most].logged];
	const struct nccl_log_process *other =
		&setup->log->processes[setup->whos[group->first].logged];
	char where[400];

	verdict_title(verdict, "NCCL is %s %s and %s elsewhere", other->version,
		      setup_group_text(setup, group, where, sizeof(where)), one->version);
	setup_cite(setup, verdict, other->version_place, "NCCL version %s+cuda%s", other->version,
		   other->cuda_version);
	setup_cite(setup, verdict, one->version_place, "NCCL version %s+cuda%s", one->version,
		   one->cuda_version);
	verdict_advice(verdict, "Install one release of NCCL on all nodes, in all containers and "
				"environments of the job");
	verdict_advice(verdict, "$ python -c 'import torch; print(torch.cuda.nccl.version())'");
	setup_blame(setup, verdict, group);
}

static bool find_logged_versions(const struct setup *setup, const uint32_t *whos, size_t count)
{
	uint32_t most = most_common(setup, whos, count);
	struct setup_group group = { .count = 0 };

	for (size_t i = 0; i < count; i++) {
		const char *version = version_of(setup, whos[i]);

		if (version[0] != '\0' && version != version_of(setup, most))
			setup_group_add(setup, &group, whos[i]);
	}
	if (group.count > 0)
		tell_versions(setup, most, &group);
	return group.count > 0;
}

/* Without a log there is the version of the interface by which NCCL called: no proof that two releases are the
 * same, but that they are not. */
static void find_recorded_versions(const struct setup *setup, const uint32_t *whos, size_t count)
{
	const struct recording_process *first = NULL;

	for (size_t i = 0; i < count; i++) {
		int64_t number = setup->whos[whos[i]].recorded;
		const struct recording_process *process =
			number >= 0 ? setup->recording->processes[number] : NULL;
		struct setup_group group = { .count = 0 };
		struct verdict *verdict;
		char where[400];

		if (process == NULL || process->interface == 0 || process->foreign != NULL)
			continue;
		first = first != NULL ? first : process;
		if (process->interface == first->interface)
			continue;
		setup_group_add(setup, &group, whos[i]);
		verdict = setup_verdict(setup, "version-mismatch", VERDICT_ERROR);
		verdict_title(verdict, "another release of NCCL runs %s",
			      setup_group_text(setup, &group, where, sizeof(where)));
		verdict_evidence(verdict,
				 "NCCL called the profiler by interface v%u there and by v%u on "
				 "rank %lld (%s)",
				 process->interface, first->interface, (long long)first->rank,
				 first->host);
		verdict_advice(verdict, "Install one release of NCCL on all nodes, in all "
					"containers and environments of the job");
		setup_blame(setup, verdict, &group);
		return;
	}
}

void setup_find_versions(const struct setup *setup)
{
	size_t end;

	for (size_t first = 0; first < setup->who_count; first = end) {
		const uint32_t *whos = setup->by_team + first;

		end = team_end(setup, first);
		if (end - first > 1 && !find_logged_versions(setup, whos, end - first))
			find_recorded_versions(setup, whos, end - first);
	}
}
