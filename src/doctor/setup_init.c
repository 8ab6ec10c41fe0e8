/* Communicators that never came to be, or took long; plugins that were not loaded. */
#include <stdlib.h>
#include <string.h>

#include "common/text.h"
#include "doctor/setup_parts.h"

enum { INIT_SLOW_S = 30, RANKS_NAMED = 400 };

static const struct nccl_log_comm *comm_at(const struct setup *setup, const uint32_t *order,
					   size_t i)
{
	return &setup->log->comms[order[i]];
}

static int compare_comms(const void *one, const void *other, void *context)
{
	const struct nccl_log_comm *comms = context;
	const struct nccl_log_comm *a = &comms[*(const uint32_t *)one];
	const struct nccl_log_comm *b = &comms[*(const uint32_t *)other];

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	return *(const uint32_t *)one < *(const uint32_t *)other ? -1 : 1;
}

/* ---- inits that never ended ------------------------------------------------------------------ */

/* "3", "0-2,5": which are not there. Sorted by rank. */
static size_t missing_ranks(const struct setup *setup, const uint32_t *order, size_t first,
			    size_t end, char *to, size_t size)
{
	int32_t nranks = comm_at(setup, order, first)->nranks, expected = 0;
	size_t missing = 0, used = 0;

	to[0] = '\0';
	for (size_t i = first; i <= end; i++) {
		int32_t rank = i < end ? comm_at(setup, order, i)->rank : nranks;

		if (rank > expected) {
			missing += (size_t)(rank - expected);
			text_format(to + used, size - used,
				    rank - expected > 1 ? "%s%d-%d" : "%s%d", used > 0 ? "," : "",
				    expected, rank - 1);
			used += strlen(to + used);
		}
		expected = rank + 1 > expected ? rank + 1 : expected;
	}
	return missing;
}

static void tell_missing(struct verdict *verdict, size_t missing, const char *ranks,
			 const struct nccl_log_comm *comm)
{
	const char *word = missing == 1 ? "rank" : "ranks";
	int64_t rank;

	verdict_title(verdict, "%s %s never came to the init of a communicator of %d ranks", word,
		      ranks, comm->nranks);
	verdict_evidence(verdict, "no line says that %s %s began it", word, ranks);
	verdict_missing(verdict,
			"their logs may not be among these files: then they need not be the "
			"cause");
	verdict->confidence = 0.8;
	verdict_advice(verdict, "Look at %s %s: not started, crashed, or waiting elsewhere", word,
		       ranks);
	if (missing == 1 && setup_number(ranks, &rank))
		verdict->comm_rank = (int32_t)rank;
}

static void tell_unended(struct verdict *verdict, size_t missing, const char *ranks,
			 const struct nccl_log_comm *comm)
{
	verdict_title(verdict, "the init of a communicator of %d ranks never ended", comm->nranks);
	if (missing > 0) {
		verdict_missing(verdict, "no line is from ranks %s: give their logs, too", ranks);
		verdict->confidence = 0.6;
	}
	verdict_advice(verdict,
		       "Look at warnings, and whether every node reaches every other on the "
		       "interface of the bootstrap");
}

/* What was said on the way: connections that were tried again, the interface of the bootstrap. */
static void cite_notes(const struct setup *setup, struct verdict *verdict, uint32_t process)
{
	bool has_retry = false;

	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if ((note->kind == NCCL_LOG_KIND_RETRY && !has_retry) ||
		    (note->kind == NCCL_LOG_KIND_BOOTSTRAP && note->process == process))
			setup_cite(setup, verdict, note->place, "%s", note->text);
		has_retry |= note->kind == NCCL_LOG_KIND_RETRY;
	}
}

/* All in [first, end) are of one communicator. When all that can be seen completed it, it is fine. */
static void look_at_init(const struct setup *setup, const uint32_t *order, size_t first, size_t end)
{
	const struct nccl_log_comm *open = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t missing, completed = 0;
	char ranks[RANKS_NAMED];

	for (size_t i = first; i < end; i++) {
		const struct nccl_log_comm *comm = comm_at(setup, order, i);

		if (comm->complete.line != 0 || comm->start.line == 0) {
			completed++;
			continue;
		}
		open = open != NULL ? open : comm;
		setup_group_add(setup, &group, setup_who_of_process(setup, comm->process));
	}
	/* Aborted before it was complete: a warning says why. */
	if (open == NULL)
		return;
	missing = missing_ranks(setup, order, first, end, ranks, sizeof(ranks));
	verdict = setup_verdict(setup, "init-incomplete", VERDICT_ERROR);
	/* When most are missing, their logs are. */
	if (missing > 0 && missing * 2 <= (size_t)open->nranks)
		tell_missing(verdict, missing, ranks, open);
	else
		tell_unended(verdict, missing, ranks, open);
	verdict_advice(verdict, "$ NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,BOOTSTRAP,NET COMMAND");
	setup_cite(setup, verdict, open->start,
		   "%s rank %d nranks %d commId 0x%llx - Init START, and no Init COMPLETE",
		   open->function, open->rank, open->nranks, (unsigned long long)open->hash);
	if (open->end.line != 0)
		setup_cite(setup, verdict, open->end, "%s of rank %d", open->end_word, open->rank);
	verdict_evidence(verdict, "%zu of %d ranks began it, %zu completed it", end - first,
			 open->nranks, completed);
	cite_notes(setup, verdict, open->process);
	verdict->victims = (uint32_t)(group.count);
	verdict->comm_hash = open->hash;
	text_format(verdict->comm, sizeof(verdict->comm), "0x%llx", (unsigned long long)open->hash);
	/* Who waits is not to blame: only one job and host are told. */
	text_copy(verdict->job, sizeof(verdict->job), setup->whos[group.first].job);
}

/* ---- slow ones ------------------------------------------------------------------------------- */

static enum nccl_log_phase longest_phase(const struct nccl_log_comm *comm)
{
	int most = 0;

	for (int i = 1; i < NCCL_LOG_PHASES; i++)
		if (comm->phase_s[i] > comm->phase_s[most])
			most = i;
	return (enum nccl_log_phase)most;
}

static const char *phase_advice(enum nccl_log_phase phase)
{
	switch (phase) {
	case NCCL_LOG_KERNELS:
		return "Loading kernels is slow: look at the file system of the library, and set "
		       "CUDA_MODULE_LOADING=LAZY";
	case NCCL_LOG_BOOTSTRAP:
		return "Ranks wait for the last one to come, or the bootstrap network is slow: "
		       "start "
		       "all ranks together, and choose its interface with NCCL_SOCKET_IFNAME";
	case NCCL_LOG_ALLGATHERS:
		return "The bootstrap network is slow: choose its interface with "
		       "NCCL_SOCKET_IFNAME; "
		       "NCCL_OOB_NET_ENABLE=1 uses the fast one";
	case NCCL_LOG_TOPO:
		return "Finding the topology is slow: look at the machine's PCI and network cards";
	case NCCL_LOG_CONNECTIONS:
		return "Connecting is slow: NCCL_RUNTIME_CONNECT=1 connects when it is needed";
	default:
		return "Compare the phases with those of a good run";
	}
}

static void find_slow(const struct setup *setup)
{
	const struct nccl_log_comm *slowest = NULL;
	struct setup_group group = { .count = 0 };
	enum nccl_log_phase phase;
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->comm_count; i++) {
		const struct nccl_log_comm *comm = &setup->log->comms[i];

		if (comm->total_s < INIT_SLOW_S)
			continue;
		if (slowest == NULL || comm->total_s > slowest->total_s)
			slowest = comm;
		setup_group_add(setup, &group, setup_who_of_process(setup, comm->process));
	}
	if (slowest == NULL)
		return;
	phase = longest_phase(slowest);
	verdict = setup_verdict(setup, "init-slow", VERDICT_WARNING);
	verdict_title(verdict, "a communicator of %d ranks took %.0f s to make, %.0f s of it %s",
		      slowest->nranks, slowest->total_s, slowest->phase_s[phase],
		      nccl_log_phase_name(phase));
	setup_cite(setup, verdict, slowest->timings,
		   "Init timings: rank %d nranks %d total %.2f (%s %.2f)", slowest->rank,
		   slowest->nranks, slowest->total_s, nccl_log_phase_name(phase),
		   slowest->phase_s[phase]);
	verdict_evidence(verdict, "so it is for %zu ranks", group.count);
	verdict_advice(verdict, "%s", phase_advice(phase));
	setup_blame(setup, verdict, &group);
}

enum status setup_find_init(const struct setup *setup)
{
	size_t count = setup->log->comm_count, first = 0;
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (order == NULL)
		return ERR_NO_SPACE;
	for (size_t i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare_comms, setup->log->comms);
	for (size_t i = 1; i <= count; i++)
		if (i == count ||
		    comm_at(setup, order, i)->group != comm_at(setup, order, first)->group) {
			look_at_init(setup, order, first, i);
			first = i;
		}
	free(order);
	find_slow(setup);
	return OK;
}

/* ---- plugins --------------------------------------------------------------------------------- */

/* NCCL_NET_PLUGIN for NET, and so on: was it asked for? */
static const struct setup_variable *asked_for(const struct setup *setup, const char *kind)
{
	char name[64];

	text_format(name, sizeof(name), "NCCL_%s_PLUGIN", kind);
	return setup_any(setup, name);
}

static bool is_internal(const struct nccl_log_plugin *plugin)
{
	return strcmp(plugin->name, "IB") == 0 || strcmp(plugin->name, "Socket") == 0;
}

static bool is_ours(const char *text)
{
	return strcasestr(text, "ringside") != NULL;
}

static bool plugin_is_wrong(const struct setup *setup, const struct nccl_log_plugin *plugin)
{
	const struct setup_variable *asked = asked_for(setup, plugin->kind);

	if (plugin->state == NCCL_LOG_PLUGIN_FAILED)
		return !is_internal(plugin);
	return plugin->state == NCCL_LOG_PLUGIN_NOT_FOUND && asked != NULL &&
	       strcasecmp(asked->value, "none") != 0;
}

static void tell_plugin(const struct setup *setup, const struct nccl_log_plugin *plugin,
			const struct setup_group *group)
{
	const struct setup_variable *asked = asked_for(setup, plugin->kind);
	bool ours = strcmp(plugin->kind, "PROFILER") == 0 &&
		    (is_ours(plugin->text) || (asked != NULL && is_ours(asked->value)));
	struct verdict *verdict =
		setup_verdict(setup, ours ? "profiler-plugin" : "plugin-failed", VERDICT_WARNING);
	char where[400];

	verdict_title(verdict, "%s plugin %s %s %s", plugin->kind, plugin->name,
		      plugin->state == NCCL_LOG_PLUGIN_FAILED ? "could not be used"
							      : "was not found",
		      setup_group_text(setup, group, where, sizeof(where)));
	setup_cite(setup, verdict, plugin->place, "%s", plugin->text);
	if (asked != NULL)
		setup_cite_variable(setup, verdict, asked);
	verdict_advice(verdict, "$ LD_DEBUG=libs COMMAND 2>&1 | grep nccl");
	verdict_advice(
		verdict,
		ours ? "Take the lines of `ringside env`: they name the plugin by its whole path"
		     : "Put its directory into LD_LIBRARY_PATH, or name it by its whole "
		       "path; see that it was built for this release of NCCL");
	setup_blame(setup, verdict, group);
}

/* Another profiler in our place: then nothing is recorded. */
static void find_other_profiler(const struct setup *setup)
{
	const struct nccl_log_plugin *first = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;

	for (size_t i = 0; i < setup->log->plugin_count; i++) {
		const struct nccl_log_plugin *plugin = &setup->log->plugins[i];

		if (strcmp(plugin->kind, "PROFILER") != 0 ||
		    plugin->state != NCCL_LOG_PLUGIN_LOADED)
			continue;
		if (is_ours(plugin->text))
			return;
		first = first != NULL ? first : plugin;
		setup_group_add(setup, &group, setup_who_of_process(setup, plugin->process));
	}
	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "profiler-plugin", VERDICT_NOTE);
	verdict_title(verdict, "another profiler is loaded, so Ringside records nothing");
	setup_cite(setup, verdict, first->place, "%s", first->text);
	if (setup_any(setup, "NCCL_PROFILER_PLUGIN") != NULL)
		setup_cite_variable(setup, verdict, setup_any(setup, "NCCL_PROFILER_PLUGIN"));
	verdict_advice(verdict, "Set NCCL_PROFILER_PLUGIN as `ringside env` prints it");
	setup_blame(setup, verdict, &group);
}

void setup_find_plugins(const struct setup *setup)
{
	const struct nccl_log *log = setup->log;

	for (size_t i = 0; i < log->plugin_count; i++) {
		const struct nccl_log_plugin *plugin = &log->plugins[i];
		struct setup_group group = { .count = 0 };
		bool is_first = true;

		if (!plugin_is_wrong(setup, plugin))
			continue;
		for (size_t j = 0; j < i && is_first; j++)
			is_first = log->plugins[j].kind != plugin->kind ||
				   log->plugins[j].state != plugin->state ||
				   log->plugins[j].name != plugin->name;
		for (size_t j = i; is_first && j < log->plugin_count; j++)
			if (log->plugins[j].kind == plugin->kind &&
			    log->plugins[j].state == plugin->state &&
			    log->plugins[j].name == plugin->name)
				setup_group_add(
					setup, &group,
					setup_who_of_process(setup, log->plugins[j].process));
		if (is_first)
			tell_plugin(setup, plugin, &group);
	}
	find_other_profiler(setup);
}
