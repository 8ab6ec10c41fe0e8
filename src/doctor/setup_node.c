/* Within a node: P2P or shared memory, NVLink SHARP, the fabric, the topology, values that were not taken. */
#include <string.h>

#include "common/text.h"
#include "doctor/setup_parts.h"

/* All notes whose text has this in it, as one finding. */
struct note_rule {
	const char *rule;
	enum nccl_log_kind kind;
	const char *has;
	const char *has_not; /* NULL none */
	enum verdict_severity severity;
	const char *title; /* "%s" where */
	const char *advice;
};

static const struct note_rule rules[] = {
	{ "nvls-failed", NCCL_LOG_KIND_NVLS, "Failed to bind NVLink SHARP", NULL, VERDICT_WARNING,
	  "NVLink SHARP is there and could not be used %s",
	  "Look at the Fabric Manager and the NVSwitches of that node; NCCL goes on without it" },
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "is not a PCI device", NULL, VERDICT_NOTE,
	  "network cards have no place in the PCI topology %s",
	  "In a virtual machine ask the provider for a topology file and give it as "
	  "NCCL_TOPO_FILE" },
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "Could not find real path of", NULL,
	  VERDICT_NOTE, "devices have no place in the PCI topology %s",
	  "In a virtual machine ask the provider for a topology file and give it as "
	  "NCCL_TOPO_FILE; in a container see that /sys is mounted" },
	/* What is below /sys/devices/system is about processors. */
	{ "virtual-topology", NCCL_LOG_KIND_TOPOLOGY, "could not read /sys/devices/",
	  "/sys/devices/system/", VERDICT_NOTE,
	  "the PCI topology cannot be read as on a real machine %s",
	  "In a virtual machine ask the provider for a topology file and give it as "
	  "NCCL_TOPO_FILE" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "Invalid ", "Invalid NCCL_SOCKET", VERDICT_NOTE,
	  "NCCL did not take a value as it was given %s", "Give a value that is allowed, or none" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is too low", NULL, VERDICT_NOTE,
	  "NCCL did not take a value as it was given %s", "Give a value that is allowed, or none" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is not valid", NULL, VERDICT_NOTE,
	  "NCCL did not take a value as it was given %s", "Give a value that is allowed, or none" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "User asked for", NULL, VERDICT_NOTE,
	  "NCCL did not take a value as it was given %s", "Give a value that is allowed, or none" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "Setting it has no effect", NULL, VERDICT_NOTE,
	  "a variable has no effect in this release %s", "Unset it" },
	{ "value-ignored", NCCL_LOG_KIND_CONFIG, "is deprecated", NULL, VERDICT_NOTE,
	  "a variable is deprecated in this release %s", "Use the one that took its place" },
};

static bool note_fits(const struct note_rule *rule, const struct nccl_log_note *note)
{
	return note->kind == rule->kind && strstr(note->text, rule->has) != NULL &&
	       (rule->has_not == NULL || strstr(note->text, rule->has_not) == NULL);
}

static void apply(const struct setup *setup, const struct note_rule *rule)
{
	const struct nccl_log_note *cited[SETUP_CITED];
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	size_t shown = 0;
	char where[400], title[512];

	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if (!note_fits(rule, note))
			continue;
		setup_group_add(setup, &group, setup_who_of_process(setup, note->process));
		if (shown < SETUP_CITED)
			cited[shown++] = note;
	}
	if (group.count == 0)
		return;
	/* With a file that says how it is, what cannot be read does not matter. */
	if (strcmp(rule->rule, "virtual-topology") == 0 &&
	    setup_any(setup, "NCCL_TOPO_FILE") != NULL)
		return;
	verdict = setup_verdict(setup, rule->rule, rule->severity);
	setup_group_text(setup, &group, where, sizeof(where));
	text_format(title, sizeof(title), rule->title, where);
	verdict_title(verdict, "%s", title);
	for (size_t i = 0; i < shown; i++)
		setup_cite(setup, verdict, cited[i]->place, "%s", cited[i]->text);
	verdict_advice(verdict, "%s", rule->advice);
	setup_blame(setup, verdict, &group);
}

/* ---- GPUs that talk through shared memory ------------------------------------------------------ */

static bool was_told_so(const struct setup *setup)
{
	const struct setup_variable *variable = setup_any(setup, "NCCL_P2P_DISABLE");

	return (variable != NULL && setup_is_true(variable->value)) ||
	       setup_any(setup, "NCCL_P2P_LEVEL") != NULL;
}

static void cite_reason(const struct setup *setup, struct verdict *verdict)
{
	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];

		if (note->kind != NCCL_LOG_KIND_P2P || strstr(note->text, "Check P2P Type") != NULL)
			continue;
		setup_cite(setup, verdict, note->place, "%s", note->text);
		return;
	}
}

static void find_shm_links(const struct setup *setup)
{
	const struct nccl_log_link *first = NULL;
	struct setup_group group = { .count = 0 };
	struct verdict *verdict;
	char where[400];

	for (size_t i = 0; i < setup->log->link_count; i++)
		if (setup->log->links[i].transport == NCCL_LOG_SHM) {
			first = first != NULL ? first : &setup->log->links[i];
			setup_group_add(setup, &group,
					setup_who_of_process(setup, setup->log->links[i].process));
		}
	if (first == NULL)
		return;
	verdict = setup_verdict(setup, "p2p-not-used",
				was_told_so(setup) ? VERDICT_NOTE : VERDICT_WARNING);
	verdict_title(verdict, "GPUs of a node talk through shared memory %s",
		      setup_group_text(setup, &group, where, sizeof(where)));
	setup_cite(setup, verdict, first->place, "%d -> %d via SHM/%s", first->from, first->to,
		   first->detail);
	cite_reason(setup, verdict);
	verdict_advice(verdict, "$ nvidia-smi topo -p2p r");
	verdict_advice(verdict,
		       "Where it says OK or the GPUs have NVLink: unset NCCL_P2P_DISABLE and "
		       "NCCL_P2P_LEVEL, turn PCI ACS off, give containers the same IPC "
		       "namespace");
	setup_blame(setup, verdict, &group);
}

/* ---- the fabric ------------------------------------------------------------------------------ */

/* "MNNVL busId 0x.. fabric UUID .. cliqueId .. state 3 healthMask ..": 3 is what NVML calls completed. */
static void find_fabric(const struct setup *setup)
{
	for (size_t i = 0; i < setup->log->note_count; i++) {
		const struct nccl_log_note *note = &setup->log->notes[i];
		const char *state = strstr(note->text, " state ");
		struct setup_group group = { .count = 0 };
		struct verdict *verdict;
		char where[400];

		if (note->kind != NCCL_LOG_KIND_MNNVL || state == NULL ||
		    strncmp(note->text, "MNNVL busId", 11) != 0 || state[7] == '3' ||
		    state[7] == '\0')
			continue;
		setup_group_add(setup, &group, setup_who_of_process(setup, note->process));
		verdict = setup_verdict(setup, "fabric-state", VERDICT_WARNING);
		verdict_title(verdict, "the NVLink fabric is not ready %s",
			      setup_group_text(setup, &group, where, sizeof(where)));
		setup_cite(setup, verdict, note->place, "%s", note->text);
		verdict_advice(verdict, "$ nvidia-smi -q | grep -A 4 Fabric");
		verdict_advice(verdict, "Look at the Fabric Manager and, between nodes, at IMEX");
		setup_blame(setup, verdict, &group);
		return;
	}
}

void setup_find_node(const struct setup *setup)
{
	for (size_t i = 0; i < ARRAY_LENGTH(rules); i++)
		apply(setup, &rules[i]);
	find_shm_links(setup);
	find_fabric(setup);
}
