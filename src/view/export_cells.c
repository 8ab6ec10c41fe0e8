#include "view/export_cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/job.h"
#include "common/op.h"
#include "common/text.h"
#include "view/json.h"

/* ---- text ------------------------------------------------------------------------------------ */

void export_string_free(struct export_string **strings)
{
	while (*strings != NULL) {
		struct export_string *next = (*strings)->next;

		free(*strings);
		*strings = next;
	}
}

static char *text_room(struct export_string **strings, size_t bytes)
{
	struct export_string *text = malloc(sizeof(*text) + bytes);

	if (text == NULL)
		return NULL;
	text->next = *strings;
	*strings = text;
	return text->bytes;
}

/* Bytes of the character at `at`; 0 when it is not UTF-8. */
static size_t character(const char *at)
{
	return (unsigned char)*at < 0x80 ? 1 : json_utf8_length((const unsigned char *)at);
}

const char *export_string_clean(struct export_string **strings, const char *text)
{
	static const char unknown[] = "\xef\xbf\xbd"; /* U+FFFD */
	const char *at = text;
	char *clean, *to;

	while (*at != '\0' && character(at) > 0)
		at += character(at);
	if (*at == '\0')
		return text;
	clean = to = text_room(strings, 3 * strlen(text) + 1);
	for (at = text; clean != NULL && *at != '\0';) {
		size_t length = character(at);

		memcpy(to, length ? at : unknown, length ? length : 3);
		to += length ? length : 3;
		at += length ? length : 1;
	}
	if (clean != NULL)
		*to = '\0';
	return clean;
}

/* ---- cells ----------------------------------------------------------------------------------- */

struct filling {
	struct export_cell *next;
	struct export_string **strings;
	const struct recording_process *process;
	enum status status;
};

static void put(struct filling *filling, struct export_cell cell)
{
	*filling->next++ = cell;
}

static void put_number(struct filling *filling, int64_t number)
{
	put(filling, (struct export_cell){ .number = (uint64_t)number });
}

static void put_number_unless(struct filling *filling, int64_t number, bool is_null)
{
	put(filling,
	    (struct export_cell){ .number = is_null ? 0 : (uint64_t)number, .is_null = is_null });
}

/* NULL: not known. Valid for as long as the process's recording is. */
static void put_text(struct filling *filling, const char *text)
{
	const char *clean = text ? export_string_clean(filling->strings, text) : NULL;

	if (text != NULL && clean == NULL)
		filling->status = ERR_NO_SPACE;
	put(filling, (struct export_cell){ .text = clean, .is_null = clean == NULL });
}

static void put_text_unless_empty(struct filling *filling, const char *text)
{
	put_text(filling, text[0] ? text : NULL);
}

static void put_name(struct filling *filling, enum op_name_table table, uint64_t word,
		     unsigned int shift)
{
	uint8_t number = (uint8_t)(word >> shift);

	/* 0 is "unknown" in all four tables. */
	put_text(filling, number ? recording_name(filling->process, table, number) : NULL);
}

/* "0x" and 16 digits, as in `ringside dump`: no reader rounds it. */
static void put_hash(struct filling *filling, uint64_t hash)
{
	char *text = hash ? text_room(filling->strings, 20) : NULL;

	if (hash != 0 && text == NULL)
		filling->status = ERR_NO_SPACE;
	if (text != NULL)
		text_format(text, 20, "0x%016" PRIx64, hash);
	put_text(filling, text);
}

/* As src/analysis/job.c tells them apart. */
/* NULL: not known. */
static const char *comm_kind(const struct comm_info *info)
{
	enum job_comm_kind kind = job_comm_kind_of(info->nranks, info->nnodes);

	return kind == JOB_COMM_UNKNOWN ? NULL : job_comm_kind_name(kind);
}

static void put_comm(struct filling *filling, uint32_t id)
{
	static const struct comm_info unknown = { .rank = -1, .gpu = -1 };
	const struct recording_comm *comm = recording_comm(filling->process, id);
	const struct comm_info *info = comm ? &comm->info : &unknown;

	put_number(filling, id);
	put_hash(filling, info->hash);
	put_text_unless_empty(filling, info->name);
	put_number_unless(filling, info->rank, info->rank == -1);
	put_number_unless(filling, info->nranks, info->nranks <= 0);
	put_number_unless(filling, info->nnodes, info->nnodes <= 0);
	put_text(filling, comm_kind(info));
	put_number_unless(filling, info->gpu, info->gpu == -1);
	put_text_unless_empty(filling, info->gpu_uuid);
	put_number_unless(filling, info->interface, info->interface == 0);
}

static void put_who(struct filling *filling, uint64_t word)
{
	const struct recording_process *process = filling->process;

	put_text_unless_empty(filling, process->job);
	put_text_unless_empty(filling, process->host);
	put_number_unless(filling, process->rank, process->rank == -1);
	put_number_unless(filling, process->pid, process->pid == -1);
	put_comm(filling, op_kind_comm(word));
	put_name(filling, OP_NAMES_FUNCTION, word, 32);
	put_name(filling, OP_NAMES_DATATYPE, word, 40);
	put_name(filling, OP_NAMES_ALGORITHM, word, 48);
	put_name(filling, OP_NAMES_PROTOCOL, word, 56);
}

/* "replay,stamp_zero"; a bit that only a newer version knows is "bit20". */
static void put_flags(struct filling *filling, uint32_t flags)
{
	char text[32 * 20] = "", number[16];
	size_t used = 0;
	char *kept;

	for (unsigned int bit = 0; bit < 32; bit++) {
		const char *name = op_flag_name(bit);

		if (!(flags >> bit & 1))
			continue;
		text_format(number, sizeof(number), "bit%u", bit);
		text_format(text + used, sizeof(text) - used, "%s%s", used ? "," : "",
			    name ? name : number);
		used += strlen(text + used);
	}
	kept = used ? text_room(filling->strings, used + 1) : NULL;
	if (kept != NULL)
		memcpy(kept, text, used + 1);
	else if (used > 0)
		filling->status = ERR_NO_SPACE;
	put_text(filling, kept ? kept : "");
}

static void put_state(struct filling *filling, uint64_t word)
{
	put_number(filling, (op_state_flags(word) & OP_FLAG_REPLAY) != 0);
	put_text(filling, op_state_name(op_state_state(word)));
	put_flags(filling, op_state_flags(word));
	put_text(filling, op_time_source_name(op_state_source(word)));
	put_number(filling, (uint8_t)(word >> 48));
	put_number(filling, (uint8_t)(word >> 56));
}

enum status export_cells_fill(struct export_cell *cells, enum export_group group, uint64_t word,
			      const struct recording_process *process,
			      struct export_string **strings)
{
	struct filling filling = { .next = cells, .strings = strings, .process = process };

	switch (group) {
	case EXPORT_WHO:
		put_who(&filling, word);
		break;
	case EXPORT_STATE:
		put_state(&filling, word);
		break;
	case EXPORT_ENDS:
		for (unsigned int shift = 0; shift < 64; shift += 32)
			put_number_unless(&filling, (int32_t)(word >> shift),
					  (int32_t)(word >> shift) == OP_NOBODY);
		break;
	case EXPORT_CHILDREN:
		for (unsigned int shift = 0; shift < 64; shift += 16)
			put_number(&filling, (uint16_t)(word >> shift));
		break;
	default:
		break;
	}
	return filling.status;
}
