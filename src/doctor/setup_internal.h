/* Shared by the files of the set-up rules: who there is, which variables they had, how a rule speaks. */
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
	bool has_init;	      /* it completed an init in the log: what it reads, it has read */
	bool has_environment; /* its variables were recorded, all of them */
	uint32_t team;	      /* the same for who shares a communicator, also through others */
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
	uint32_t *by_team;		  /* indices into whos, those of a team together */
	uint32_t *who_of_logged;	  /* by index into log->processes */
	struct setup_variable *variables; /* by name, then who; the environment before the log */
	size_t variable_count;
	char **copies; /* what variables of recordings point into */
	size_t copy_count;
};

/* ---- variables ------------------------------------------------------------------------------- */

/* All entries of this name: a range. */
size_t setup_find_variable(const struct setup *setup, const char *name, size_t *count);
/* Of anybody; NULL when nobody has it. */
const struct setup_variable *setup_any(const struct setup *setup, const char *name);
bool setup_is_true(const char *value);
/* The whole value as a number. */
bool setup_number(const char *value, int64_t *number);

/* ---- how rules speak ------------------------------------------------------------------------- */

/* A verdict of this rule, its page set. */
struct verdict *setup_verdict(const struct setup *setup, const char *rule,
			      enum verdict_severity severity);
void setup_cite(const struct setup *setup, struct verdict *verdict, struct nccl_log_place place,
		const char *format, ...) PRINTF_LIKE(4, 5);
void setup_cite_variable(const struct setup *setup, struct verdict *verdict,
			 const struct setup_variable *variable);
/* The same of the first who has it, if anybody has. */
void setup_cite_any(const struct setup *setup, struct verdict *verdict, const char *name);

/* Whom a finding is about. One: the verdict names it. Of one host: the host. */
struct setup_group {
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

/* ---- the rules ------------------------------------------------------------------------------- */

enum status setup_find_network(const struct setup *setup);
void setup_find_node(const struct setup *setup);
enum status setup_find_init(const struct setup *setup);
void setup_find_plugins(const struct setup *setup);
void setup_find_warnings(const struct setup *setup);
void setup_find_reports(const struct setup *setup);

#endif
