/* Shared by the files of the set-up rules: processes, their variables, and how rules create verdicts. */
#ifndef SETUP_INTERNAL_H
#define SETUP_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/status.h"
#include "doctor/verdict.h"
#include "import/nccl_log.h"
#include "recording/recording.h"

/* A process, from the log, from the recording, or from both. */
struct setup_who {
	int64_t logged;	      /* index into log->processes, -1 */
	int64_t recorded;     /* index into recording->processes, -1 */
	int64_t rank;	      /* global, -1 unknown */
	const char *host;     /* "" unknown */
	int64_t pid;	      /* -1 unknown */
	const char *job;      /* "" unknown */
	int32_t nranks;	      /* of its largest communicator in the log, -1 */
	bool has_init;	      /* it completed an init in the log: variables it reads have been
				 read */
	bool has_environment; /* all its variables were recorded */
	uint32_t team;	      /* one of those that share a communicator, also indirectly: for all
				 of them the same one, which has the next three */
	uint32_t team_first;  /* where they begin in by_team */
	size_t team_count;    /* 0: another one has it */
	size_t team_compared; /* the last variable that was compared, counted from 1 */
	uint64_t group;	      /* the number of the last group that it was added to */
};

struct setup_variable {
	const char *name;
	const char *value;
	uint32_t who;
	const struct nccl_log_variable *line; /* NULL: from its environment */
};

struct setup {
	struct verdicts *verdicts;
	const struct nccl_log *log;	   /* NULL none */
	const struct recording *recording; /* NULL none */
	struct setup_who *whos;
	size_t who_count;
	uint32_t *by_team;		  /* indices into whos, sorted by team */
	uint32_t *who_of_logged;	  /* by index into log->processes */
	struct setup_variable *variables; /* by name, then process; the environment before the
					     log */
	size_t variable_count;
	char **copies; /* the strings that recorded variables point into */
	size_t copy_count;
	uint64_t *group_count; /* groups so far: their numbers */
};

/* ---- variables ------------------------------------------------------------------------------- */

/* All entries of this name: a range. */
size_t setup_find_variable(const struct setup *setup, const char *name, size_t *count);
/* Of a process that belongs with this one of the log; NULL if none has it. */
const struct setup_variable *setup_of_team(const struct setup *setup, const char *name,
					   uint32_t process);
/* Of any process; NULL if none has it. */
const struct setup_variable *setup_any(const struct setup *setup, const char *name);
bool setup_is_true(const char *value);
/* The whole value as a number. */
bool setup_number(const char *value, int64_t *number);

/* ---- creating verdicts ----------------------------------------------------------------------- */

/* A verdict of this rule, with its page set. */
struct verdict *setup_verdict(const struct setup *setup, const char *rule,
			      enum verdict_severity severity);
void setup_cite(const struct setup *setup, struct verdict *verdict, struct nccl_log_place place,
		const char *format, ...) PRINTF_LIKE(4, 5);
void setup_cite_variable(const struct setup *setup, struct verdict *verdict,
			 const struct setup_variable *variable);
/* The same for the first process that has it, if any. */
void setup_cite_any(const struct setup *setup, struct verdict *verdict, const char *name);

/* "node1" and "node1.cluster" are the same host. */
bool setup_same_host(const char *one, const char *other);

/* The processes a finding is about. One: the verdict names it. All on one host: the host. */
struct setup_group {
	uint64_t number;
	size_t count;
	uint32_t first;
	bool is_one_host;
	uint32_t last;
};
/* By index into log->processes. */
void setup_group_add_process(const struct setup *setup, struct setup_group *group,
			     uint32_t process);
void setup_blame(const struct setup *setup, struct verdict *verdict,
		 const struct setup_group *group);

/* "on 3 ranks", "on rank 3 (node1)" */
const char *setup_group_text(const struct setup *setup, const struct setup_group *group, char *to,
			     size_t size);

enum { SETUP_CITED = 4 }; /* lines of one kind in a verdict */

/* Advice that several rules give. */
#define SETUP_SAME_RELEASE                                                                      \
	"Install the same NCCL release on all nodes and in all containers and environments of " \
	"the job"
#define SETUP_SAME_BUILD "Use the same libnccl.so on all nodes and in all containers of the job"

/* ---- the rules ------------------------------------------------------------------------------- */

enum status setup_find_network(const struct setup *setup);
void setup_find_node(const struct setup *setup);
enum status setup_find_init(const struct setup *setup);
void setup_find_plugins(const struct setup *setup);
void setup_find_warnings(const struct setup *setup);
void setup_find_diagnoses(const struct setup *setup);
/* Also adds to verdicts on hangs that are in the list. */
enum status setup_find_queues(const struct setup *setup);
void setup_find_reports(const struct setup *setup);

#endif
