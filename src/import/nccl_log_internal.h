/* Shared by the nccl_log files: the current line, and how facts are stored. */
#ifndef NCCL_LOG_INTERNAL_H
#define NCCL_LOG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/status.h"
#include "import/nccl_log.h"

enum nccl_log_level {
	NCCL_LOG_LEVEL_VERSION = 0,
	NCCL_LOG_LEVEL_WARN = 1,
	NCCL_LOG_LEVEL_INFO = 2,
	NCCL_LOG_LEVEL_TRACE = 3,
	NCCL_LOG_LEVEL_CALL = 4,
	NCCL_LOG_LEVEL_ABORT = 5,
	NCCL_LOG_LEVEL_ATTN = 6,
	NCCL_LOG_LEVEL_DIAG = 7, /* not a level of NCCL_DEBUG: its diagnostics print it */
};

/* A cursor in one message: nothing is read past `end`. */
struct log_text {
	const char *at;
	const char *end;
};

static inline size_t log_left(const struct log_text *text)
{
	return (size_t)(text->end - text->at);
}

/* Skip this literal; false and unmoved if it is not there. */
static inline bool log_skip_bytes(struct log_text *text, const char *literal, size_t length)
{
	if (log_left(text) < length || memcmp(text->at, literal, length) != 0)
		return false;
	text->at += length;
	return true;
}
#define LOG_SKIP(text, literal) log_skip_bytes((text), (literal), sizeof(literal) - 1)

/* Move past the first occurrence of this literal; false and unmoved if there is none. */
bool log_find(struct log_text *text, const char *literal);
bool log_has(struct log_text text, const char *literal);
bool log_number(struct log_text *text, int64_t *number); /* decimal, may be negative */
bool log_int(struct log_text *text, int32_t *number);
bool log_hex(struct log_text *text, uint64_t *number); /* with or without 0x */
bool log_real(struct log_text *text, double *number);
/* Everything up to this byte or the end; moves past it. */
struct log_text log_until(struct log_text *text, char stop);
struct log_text log_trim(struct log_text text);

/* One message: a line of NCCL without its header. */
struct log_line {
	struct nccl_log *log;
	struct log_text message;
	struct log_text source; /* "transport/net.cc:123", of warnings */
	struct nccl_log_place place;
	uint32_t process;
	uint64_t thread;
	enum nccl_log_level level;
};

/* ---- storing facts (nccl_log.c) --------------------------------------------------------- */

enum log_list {
	LOG_FILES,
	LOG_PROCESSES,
	LOG_COMMS,
	LOG_LINKS,
	LOG_CHANNELS,
	LOG_NETS,
	LOG_GDRS,
	LOG_VARIABLES,
	LOG_PLUGINS,
	LOG_CHOICES,
	LOG_COSTS,
	LOG_OPERATIONS,
	LOG_WARNINGS,
	LOG_QUEUES,
	LOG_DIAGNOSES,
	LOG_REPORTS,
	LOG_NOTES,
	LOG_OTHERS,
	LOG_LISTS,
	/* Not lists, but also in the index. */
	LOG_POINTER = LOG_LISTS, /* process and pointer: a communicator */
	LOG_THREAD,		 /* process and thread: the communicator it works for */
};

enum { LOG_NONE = -1, LOG_HEADS = 64 };

struct log_slot {
	uint64_t key;
	uint32_t list; /* + 1; 0: free */
	uint32_t index;
};

struct log_block {
	struct log_block *next;
	size_t used;
	char bytes[65536];
};

struct nccl_log_work {
	struct log_slot *slots;
	size_t slot_count; /* a power of two */
	size_t slots_used;
	struct log_block *blocks;
	const char **texts; /* interned, open addressing */
	uint32_t *lengths;
	size_t text_room;
	size_t text_count;
	enum status status; /* the first failure sticks */

	/* Headers of earlier lines: usually the next line has one of them. */
	struct log_head {
		char bytes[192];
		size_t length; /* 0: free */
		uint32_t process;
		uint64_t thread;
	} heads[LOG_HEADS], *last_head; /* NULL none */
	uint32_t nobody; /* process of lines without a header in this file; UINT32_MAX: none yet */
	/* The tuning table: which algorithms its columns are for. */
	const char *columns[8];
	size_t column_count;
	uint32_t column_process;
	/* Rules for messages by their first byte: [first, last). */
	uint16_t rules[256][2];
};

/* Intern a text; control bytes as '?', at most 4 KiB. Never NULL. */
const char *log_keep(struct nccl_log *log, struct log_text text);

/* A new, zeroed entry of this list; NULL: limit reached or out of memory, which is counted. */
void *log_add(struct nccl_log *log, enum log_list list);

/* The index stored for this key; LOG_NONE if there is none. */
int64_t log_find_key(const struct nccl_log *log, uint32_t list, uint64_t key);
void log_set_key(struct nccl_log *log, uint32_t list, uint64_t key, uint32_t index);

/* The entry with this key, created if there is none (*is_new). NULL as for log_add(). */
void *log_entry(struct nccl_log *log, enum log_list list, uint64_t key, bool *is_new);

/* A hash that ignores the values of numbers: the same for lines of one kind. */
uint64_t log_shape(struct log_text text);

/* ---- the meaning of lines -------------------------------------------------------------------- */

void log_rules_init(struct nccl_log_work *work);

/* Turn a message into facts, or count it. */
void log_take(struct log_line *line);

/* A line that is not from NCCL: is it about NCCL? */
void log_take_report(struct nccl_log *log, struct log_text text, struct nccl_log_place place);

/* Keep the message. Does not count its kind. */
void log_note(struct log_line *line, enum nccl_log_kind kind);

/* The communicator that this line's thread works for; LOG_NONE. `from` or `to` is its rank. */
int32_t log_comm_of(struct log_line *line, int32_t from, int32_t to);

/* Each reads a message of its kind; false if it turns out to be something else. */
typedef bool log_taker(struct log_line *line);
log_taker log_take_init, log_take_timings, log_take_bootstrap_timings, log_take_channel_counts,
	log_take_connected, log_take_version, log_take_git, log_take_driver;
log_taker log_take_link, log_take_collnet_link, log_take_ring, log_take_trees, log_take_tree;
log_taker log_take_net_using, log_take_net_gdr, log_take_gdr, log_take_virtual_device,
	log_take_variable, log_take_plugin, log_take_plugin_words, log_take_plugin_state;
log_taker log_take_operation, log_take_choice, log_take_table_head, log_take_table_row,
	log_take_call;

#endif
