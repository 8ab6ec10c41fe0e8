/* Shared by the readers of operations; others use foreign.h. */
#ifndef FOREIGN_INTERNAL_H
#define FOREIGN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/attributes.h"
#include "common/op.h"
#include "common/op_layout.h"
#include "common/status.h"
#include "import/foreign.h"
#include "import/json_scan.h"

/* NCCL has a few dozen names, and a line usually has the same ones as the line before. */
enum { FOREIGN_NAMES_KEPT = 8, FOREIGN_NAME_BYTES = 24 };

struct foreign_names {
	struct {
		char quoted[FOREIGN_NAME_BYTES]; /* with its quotes, terminated */
		uint8_t length;			 /* with its quotes; 0: none yet */
		uint8_t number;
	} kept[FOREIGN_NAMES_KEPT];
	unsigned int next;
};

/* Details of a line, before their operation is known. */
struct foreign_details {
	struct op_detail *list;
	size_t count;
	size_t room;
	size_t total;	/* including unwanted ones */
	bool is_wanted; /* else they are only counted */
};

struct foreign_reading {
	struct foreign_log *log;
	const struct foreign_request *request;
	struct foreign_line line;
	struct json_scan scan;
	struct foreign_details details;
	struct foreign_names names[OP_NAME_TABLES];
	const char *problem; /* of this line; static; NULL: none */
	bool is_over;	     /* the visitor stopped the reading */
	enum status status;  /* ERR_NO_SPACE: memory */
};

/* Report that this line cannot be read because of reading->problem. */
void foreign_damage_line(struct foreign_reading *reading);
/* Report damage that is not about a line. */
void foreign_damage_note(struct foreign_reading *reading, const struct foreign_damage *damage);

/*
 * The value of the key that was just read. False: it has the wrong type, or the JSON is damaged;
 * see reading->problem. `null` counts as missing: true, and nothing is written.
 */
bool foreign_take_any_unsigned(struct foreign_reading *reading, uint64_t *value);
bool foreign_take_signed(struct foreign_reading *reading, int64_t *value);
bool foreign_take_int32(struct foreign_reading *reading, int32_t *value);
bool foreign_take_bool(struct foreign_reading *reading, bool *value);
/* Microseconds, converted to nanoseconds. */
bool foreign_take_any_us(struct foreign_reading *reading, uint64_t *ns);
bool foreign_take_text(struct foreign_reading *reading, char *to, size_t size);
bool foreign_take_skip(struct foreign_reading *reading);
/* "0x7f8c496ae9f661", up to 16 digits; false: something else. */
bool foreign_hash(const char *text, uint64_t *hash);
/*
 * Start parsing reading->line, which must be an object. Clears details and problems of earlier
 * lines.
 */
bool foreign_begin_line(struct foreign_reading *reading);
/* Enter an object (an array). False without a problem: it is missing. */
bool foreign_enter_object(struct foreign_reading *reading);
bool foreign_enter_array(struct foreign_reading *reading);
/*
 * The next object of the current array; false at its end or with a problem: `problem` if it is
 * something else.
 */
bool foreign_next_object(struct foreign_reading *reading, const char *problem);
/* A name of NCCL or of another tool; unknown names are 0. */
bool foreign_take_name(struct foreign_reading *reading, enum op_name_table table, uint8_t *number);

/* Which of these strings it is, each given with its quotes; `count` if it is another one. */
bool foreign_take_choice(struct foreign_reading *reading, const char *const *quoted, uint8_t count,
			 uint8_t *choice);

/*
 * json_scan_next_key(); for damaged JSON it is also JSON_SCAN_KEY_NONE, with reading->problem set.
 */
static inline int foreign_next_key(struct foreign_reading *reading,
				   const struct json_scan_key *keys, int count, int *hint)
{
	int key = json_scan_next_key(&reading->scan, keys, count, hint);

	if (LIKELY(key != JSON_SCAN_KEY_ERROR))
		return key;
	reading->problem = reading->scan.problem;
	return JSON_SCAN_KEY_NONE;
}

static inline bool foreign_take_unsigned(struct foreign_reading *reading, uint64_t *value)
{
	return LIKELY(json_scan_take(&reading->scan, value)) ||
	       foreign_take_any_unsigned(reading, value);
}

static inline bool foreign_take_us(struct foreign_reading *reading, uint64_t *ns)
{
	uint64_t us;

	if (!LIKELY(json_scan_take(&reading->scan, &us)))
		return foreign_take_any_us(reading, ns);
	if (UNLIKELY(us > UINT64_MAX / 1000 - 1)) {
		reading->problem = "a value is not a time in microseconds";
		return false;
	}
	*ns = us * 1000;
	return true;
}

/* How foreign_read_members() reads a value, by the type of its field. */
enum foreign_how {
	FOREIGN_SKIP = 0,
	FOREIGN_U64,
	FOREIGN_I64,
	FOREIGN_I32,
	FOREIGN_BOOL,
	FOREIGN_US, /* uint64_t, in nanoseconds */
	FOREIGN_TEXT,
	FOREIGN_FUNCTION, /* these three: uint8_t, see foreign_take_name() */
	FOREIGN_ALGORITHM,
	FOREIGN_PROTOCOL,
	FOREIGN_CALL, /* take(), with the object */
};

#define FOREIGN_FIELD(text, kind, type, member)                                                 \
	{                                                                                       \
		JSON_SCAN_KEY_NAMED(text), .how = FOREIGN_##kind, .at = offsetof(type, member), \
					   .size = sizeof(((type *)NULL)->member)               \
	}
#define FOREIGN_CALLS(text, function)                                              \
	{                                                                          \
		JSON_SCAN_KEY_NAMED(text), .how = FOREIGN_CALL, .take = (function) \
	}

/*
 * Read the rest of the current object into *object. Keys that are not listed are skipped. False:
 * see reading->problem.
 */
bool foreign_read_members(struct foreign_reading *reading, const struct json_scan_key *keys,
			  int count, void *object);
/* The same for the value of the key that was just read; true also if it is missing. */
bool foreign_read_object(struct foreign_reading *reading, const struct json_scan_key *keys,
			 int count, void *object);
/* Its value is an array: take() reads the rest of each of its objects. */
bool foreign_read_array(struct foreign_reading *reading, const char *not_an_object,
			bool (*take)(struct foreign_reading *reading, void *object), void *object);

/* The process, created if new. ERR_RANGE: there are too many. */
enum status foreign_process_of(struct foreign_log *log, const char *host, int64_t pid,
			       uint32_t *process);

/* The communicator of this process with this hash and rank, created if new. */
enum status foreign_comm_of(struct foreign_log *log, uint32_t process, const struct comm_info *info,
			    uint32_t *comm);

/* Add a detail of this line; NULL: only counted, or out of memory (reading->status). */
struct op_detail *foreign_add_detail(struct foreign_reading *reading);

/*
 * The operation is complete except for its sequence, its communicator and, if it is 0, its number:
 * count it and pass it to the visitor.
 */
void foreign_give_op(struct foreign_reading *reading, uint32_t comm, struct op_record *op);
/*
 * Pass on the details of this line: of the communicator with this id (0: of another process), of
 * operation `number` (0: unknown).
 */
void foreign_give_details(struct foreign_reading *reading, uint32_t process, uint32_t comm_id,
			  uint64_t number);

/* Message bytes as nccl-tests counts them, from one rank's part as NCCL reports it. */
uint64_t foreign_message_bytes(uint8_t function, uint64_t rank_bytes, int32_t nranks);

/*
 * NCCL's number of this collective, from 0. Returns the match number derived from it; 0 if there is
 * none, or if the number was seen before.
 */
uint64_t foreign_count_collective(struct foreign_comm *comm, uint8_t function,
				  uint64_t nccl_number);

/* One reader per format: all lines. */
void foreign_read_inspector(struct foreign_reading *reading, struct foreign_lines *lines);
void foreign_read_comma(struct foreign_reading *reading, struct foreign_lines *lines);
/* Not lines, but one value; at most `limit` bytes. */
void foreign_read_torch_dump(struct foreign_reading *reading, int fd, uint64_t limit);

#endif
