/*
 * Reads a tape. A line is "time thread WHAT ..." followed by words: key=value in any order, and words without '='
 * whose meaning is their position (function, algorithm, protocol; the step's number). Unknown keys are skipped, so
 * that older readers accept newer tapes.
 */
#include "sim/host.h"
#include "sim/host_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/op.h"
#include "common/order.h"
#include "common/text.h"
#include "sim/host_event.h"

struct parse {
	struct tape *tape;
	struct tape_error *error;
	size_t line; /* current line, from 1 */
	int version;
	uint64_t *threads; /* recorded ids, by number */
};

static enum status parse_fail(struct parse *parse, const char *what, const char *word)
{
	parse->error->line = parse->line;
	text_format(parse->error->text, sizeof(parse->error->text), "%s%s%.60s%s", what,
		    word ? " \"" : "", word ? word : "", word ? "\"" : "");
	return ERR_FORMAT;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* The next word, terminated in place; NULL at the end of the line. */
static char *word_next(char **rest)
{
	char *word = *rest + strspn(*rest, " \t\r");

	if (*word == '\0')
		return NULL;
	*rest = word + strcspn(word, " \t\r");
	if (**rest != '\0')
		*(*rest)++ = '\0';
	return word;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes %XX in place; "(null)" is no word, "-" an empty one. */
static const char *word_decode(char *word)
{
	char *to = word;

	if (strcmp(word, "(null)") == 0)
		return NULL;
	if (strcmp(word, "-") == 0)
		return "";
	for (const char *from = word; *from; from++, to++) {
		int high = from[0] == '%' ? hex_digit(from[1]) : -1;
		int low = high >= 0 ? hex_digit(from[2]) : -1;

		*to = *from;
		if (low >= 0) {
			*to = (char)(high << 4 | low);
			from += 2;
		}
	}
	*to = '\0';
	return word;
}

/* Decimal with sign, 0x..., or (nil); base 0: detected from the text. */
static bool number_read(const char *word, int base, uint64_t *number)
{
	char *end = NULL;

	if (base == 0)
		base = strncmp(word, "0x", 2) == 0 ? 16 : 10;
	if (strcmp(word, "(nil)") == 0) {
		*number = 0;
		return true;
	}
	errno = 0;
	if (word[0] == '-')
		*number = (uint64_t)strtoll(word, &end, base);
	else
		*number = strtoull(word, &end, base);
	return end != word && *end == '\0' && errno == 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

enum key_kind { KEY_NUMBER, KEY_HEX, KEY_WORD };

#define KEY(text, kind, field)                                \
	{                                                     \
		text, kind, offsetof(struct tape_line, field) \
	}
static const struct {
	const char *key;
	enum key_kind kind;
	size_t offset;
} keys[] = {
	KEY("ctx", KEY_NUMBER, context),
	KEY("id", KEY_HEX, hash), /* INIT; NetPlugin has its own */
	KEY("name", KEY_WORD, name),
	KEY("nnodes", KEY_NUMBER, nnodes),
	KEY("nranks", KEY_NUMBER, nranks),
	KEY("rank", KEY_NUMBER, rank),
	KEY("type", KEY_NUMBER, type),
	KEY("parent", KEY_NUMBER, parent),
	KEY("arg", KEY_NUMBER, arg),
	KEY("steps", KEY_NUMBER, steps),
	KEY("captured", KEY_NUMBER, is_captured),
	KEY("depth", KEY_NUMBER, depth),
	KEY("seq", KEY_NUMBER, sequence),
	KEY("count", KEY_NUMBER, count),
	KEY("dt", KEY_WORD, datatype),
	KEY("root", KEY_NUMBER, root),
	KEY("nch", KEY_NUMBER, channels),
	KEY("nw", KEY_NUMBER, warps),
	KEY("pg", KEY_NUMBER, group),
	KEY("sb", KEY_NUMBER, send_buffer),
	KEY("rb", KEY_NUMBER, recv_buffer),
	KEY("stream", KEY_NUMBER, stream),
	KEY("tag", KEY_NUMBER, tag),
	KEY("traffic", KEY_NUMBER, traffic),
	KEY("hash", KEY_HEX, hash),
	KEY("peer", KEY_NUMBER, peer),
	KEY("ch", KEY_NUMBER, channel),
	KEY("pid", KEY_NUMBER, pid),
	KEY("nsteps", KEY_NUMBER, steps),
	KEY("chunk", KEY_NUMBER, chunk),
	KEY("send", KEY_NUMBER, is_send),
	KEY("pt", KEY_NUMBER, gpu_ns),
	KEY("sym", KEY_NUMBER, is_symmetric),
	KEY("variant", KEY_WORD, variant),
	KEY("collnet", KEY_NUMBER, is_collnet),
	KEY("nvls", KEY_NUMBER, is_nvls),
	KEY("redop", KEY_NUMBER, redop),
	KEY("complete", KEY_NUMBER, is_complete),
	KEY("ops", KEY_NUMBER, ops),
	KEY("bytes", KEY_NUMBER, bytes),
	KEY("intra", KEY_NUMBER, intra),
	KEY("batch", KEY_NUMBER, batch),
	KEY("batches", KEY_NUMBER, batches),
	KEY("ceseq", KEY_NUMBER, ce_sequence),
	KEY("sync", KEY_WORD, sync),
	KEY("phase", KEY_NUMBER, phase),
};

static enum status key_read(struct parse *parse, struct tape_line *line, const char *key,
			    char *value)
{
	uint64_t number;

	if (strcmp(key, "null") == 0) {
		line->has_args = false;
		return OK;
	}
	if (line->type == ABI_NET_PLUGIN && strcmp(key, "id") == 0)
		return number_read(value, 10, &line->net_id)
			       ? OK
			       : parse_fail(parse, "not a number:", value);
	for (size_t i = 0; i < ARRAY_LENGTH(keys); i++) {
		void *field = (char *)line + keys[i].offset;

		if (strcmp(keys[i].key, key) != 0)
			continue;
		if (keys[i].kind == KEY_WORD) {
			*(const char **)field = word_decode(value);
			return OK;
		}
		if (!number_read(value, keys[i].kind == KEY_HEX ? 16 : 0, &number))
			return parse_fail(parse, "not a number:", value);
		*(uint64_t *)field = number;
		return OK;
	}
	return OK;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *const event_names[HOST_EVENTS] = {
	"Group",    "Coll",	 "P2p",	     "ProxyOp",	    "ProxyStep", "ProxyCtrl",
	"KernelCh", "NetPlugin", "GroupApi", "CollApi",	    "P2pApi",	 "KernelLaunch",
	"CeColl",   "CeSync",	 "CeBatch",  "KernelPhase",
};

/* A word without '=': the event's name, which only repeats the type, then words by position. */
static enum status place_read(struct parse *parse, struct tape_line *line, char *word,
			      unsigned int place)
{
	const char **const places[] = { &line->function, &line->algorithm, &line->protocol };
	uint64_t number;

	if (place == 0) {
		for (unsigned int bit = 0; bit < HOST_EVENTS; bit++)
			if (line->type == 1u << bit && strcmp(word, event_names[bit]) == 0)
				return OK;
		return strcmp(word, "Unknown") == 0
			       ? OK
			       : parse_fail(parse, "the type and the event's name disagree:", word);
	}
	if (line->type == ABI_PROXY_STEP && place == 1) {
		if (!number_read(word, 10, &number))
			return parse_fail(parse, "not a step number:", word);
		line->step = (int64_t)number;
		return OK;
	}
	if (place > ARRAY_LENGTH(places))
		return parse_fail(parse, "unexpected word:", word);
	*places[place - 1] = word_decode(word);
	return OK;
}

static enum status words_read(struct parse *parse, struct tape_line *line, char *rest)
{
	unsigned int place = 0;
	enum status status = OK;
	char *word, *value;

	while (status == OK && (word = word_next(&rest)) != NULL) {
		value = strchr(word, '=');
		if (value) {
			*value = '\0';
			status = key_read(parse, line, word, value + 1);
		} else {
			status = place_read(parse, line, word, place++);
		}
	}
	return status;
}

/* Recorded thread ids become numbers from 0. */
static enum status thread_find(struct parse *parse, uint64_t id, uint32_t *number)
{
	struct tape *tape = parse->tape;

	for (*number = 0; *number < tape->threads; ++*number)
		if (parse->threads[*number] == id)
			return OK;
	if (!list_grow(&parse->threads, tape->threads, sizeof(*parse->threads)))
		return ERR_NO_SPACE;
	parse->threads[tape->threads++] = id;
	return OK;
}

static enum status head_read(struct parse *parse, struct tape_line *line, char **rest)
{
	static const char *const whats[] = { "INIT", "START", "STATE", "STOP", "FINI" };
	char *time = word_next(rest), *thread = word_next(rest), *what = word_next(rest);
	uint64_t id;

	if (what == NULL)
		return parse_fail(parse, "expected time, thread id and call", NULL);
	if (!number_read(time, 10, &line->time_ns))
		return parse_fail(parse, "not a time:", time);
	if (!number_read(thread, 10, &id))
		return parse_fail(parse, "not a thread id:", thread);
	for (line->what = 0; line->what < ARRAY_LENGTH(whats); line->what++)
		if (strcmp(what, whats[line->what]) == 0)
			return thread_find(parse, id, &line->thread);
	return parse_fail(parse, "not INIT, START, STATE, STOP or FINI:", what);
}

static enum status line_read(struct parse *parse, struct tape_line *line, char *rest)
{
	uint64_t state = 0;
	enum status status = head_read(parse, line, &rest);
	char *word;

	if (status != OK)
		return status;
	line->version = (uint8_t)parse->version;
	line->has_args = line->what == TAPE_STATE;
	if (line->what == TAPE_START || line->what == TAPE_STATE || line->what == TAPE_STOP) {
		word = word_next(&rest);
		if (word == NULL || !number_read(word, 0, &line->handle))
			return parse_fail(parse, "missing handle", word);
	}
	if (line->what == TAPE_STATE) {
		word = word_next(&rest);
		if (word == NULL || !number_read(word, 10, &state) || state >= HOST_STATES)
			return parse_fail(parse, "missing state", word);
		line->state = (int64_t)state;
	}
	status = words_read(parse, line, rest);
	if (status == OK && line->what == TAPE_START &&
	    (line->type == 0 || (line->type & (line->type - 1)) != 0))
		return parse_fail(parse, "START without type=", NULL);
	return status;
}

/* "# interface v6" applies to the following lines. Other comments are ignored. */
static enum status comment_read(struct parse *parse, const char *text)
{
	int version;

	if (sscanf(text, "# interface v%d", &version) != 1)
		return OK;
	if (version < 1 || version > 7)
		return parse_fail(parse, "unknown interface version:", text);
	parse->version = version;
	return OK;
}

static enum status line_add(struct parse *parse, char *text)
{
	struct tape *tape = parse->tape;
	enum status status;

	if (text[0] == '#')
		return comment_read(parse, text);
	if (text[strspn(text, " \t\r")] == '\0')
		return OK;
	if (!list_grow(&tape->lines, tape->count, sizeof(*tape->lines)))
		return ERR_NO_SPACE;
	tape->lines[tape->count] = (struct tape_line){ 0 };
	status = line_read(parse, &tape->lines[tape->count], text);
	if (status == OK)
		tape->count++;
	return status;
}

static enum status text_read(struct parse *parse, char *text, const char *end)
{
	enum status status = OK;

	while (status == OK && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		parse->line++;
		if (newline == NULL)
			break; /* truncated: the process was killed while writing */
		*newline = '\0';
		if (strlen(text) != (size_t)(newline - text))
			return parse_fail(parse, "not a text file: contains a NUL byte", NULL);
		status = line_add(parse, text);
		text = newline + 1;
	}
	return status;
}

enum status tape_parse(struct tape *tape, const char *text, size_t length, int version,
		       struct tape_error *error)
{
	struct tape made = { 0 };
	struct parse parse = { .tape = &made, .error = error, .version = version };
	enum status status = ERR_NO_SPACE;

	*error = (struct tape_error){ 0 };
	made.text = malloc(length + 1);
	if (made.text) {
		memcpy(made.text, text, length);
		made.text[length] = '\0';
		status = text_read(&parse, made.text, made.text + length);
	}
	if (status == ERR_NO_SPACE)
		text_copy(error->text, sizeof(error->text), "out of memory");
	free(parse.threads);
	if (status == OK)
		*tape = made;
	else
		tape_release(&made);
	return status;
}

enum status tape_read(struct tape *tape, const char *path, int version, struct tape_error *error)
{
	enum status status = ERR_SYSTEM;
	char *text = NULL;
	long length = -1;
	FILE *file = fopen(path, "re");

	*error = (struct tape_error){ 0 };
	if (file && fseek(file, 0, SEEK_END) == 0)
		length = ftell(file);
	if (length >= 0 && fseek(file, 0, SEEK_SET) == 0)
		text = malloc((size_t)length + 1);
	if (text && fread(text, 1, (size_t)length, file) == (size_t)length)
		status = tape_parse(tape, text, (size_t)length, version, error);
	else
		text_format(error->text, sizeof(error->text), "cannot read the file: %s",
			    strerror(errno));
	free(text);
	if (file)
		fclose(file);
	return status;
}

void tape_release(struct tape *tape)
{
	free(tape->lines);
	free(tape->text);
	*tape = (struct tape){ 0 };
}

static enum status tape_map_init(struct tape_map *map, size_t count)
{
	map->room = 16;
	while (map->room < 2 * count + 2)
		map->room *= 2;
	map->ids = calloc(map->room, sizeof(*map->ids));
	return map->ids ? OK : ERR_NO_SPACE;
}

static void tape_map_release(struct tape_map *map)
{
	free(map->ids);
	*map = (struct tape_map){ 0 };
}

/* Its entry, or the free one where it belongs. */
static struct tape_id *place_of(const struct tape_map *map, uint64_t recorded)
{
	size_t i = hash_word(0, recorded) & (map->room - 1);

	while (map->ids[i].recorded != 0 && map->ids[i].recorded != recorded)
		i = (i + 1) & (map->room - 1);
	return &map->ids[i];
}

/* NULL: not there. */
static struct tape_id *tape_map_find(const struct tape_map *map, uint64_t recorded)
{
	struct tape_id *id = place_of(map, recorded);

	return recorded != 0 && id->recorded == recorded ? id : NULL;
}

/* Adds or resets an entry. */
static struct tape_id *tape_map_put(struct tape_map *map, uint64_t recorded)
{
	struct tape_id *id = place_of(map, recorded);

	*id = (struct tape_id){ .recorded = recorded };
	return id;
}

/*
 * From a line to the recorded call: ids are replaced by those that the plugin returned, names by numbers for v1,
 * GPU timestamps are shifted to now.
 */

/* ---- names into v1's numbers ----------------------------------------------------------------- */

/* "#17" is a number that had no name when it was recorded. */
static bool is_bare_number(const char *word, uint8_t *number)
{
	if (word == NULL || word[0] != '#')
		return false;
	*number = (uint8_t)strtoul(word + 1, NULL, 10);
	return true;
}

static uint8_t number_v1(enum op_name_table table, const char *word)
{
	uint8_t (*const from_v1[])(uint8_t) = {
		[OP_NAMES_FUNCTION] = op_function_from_v1,
		[OP_NAMES_DATATYPE] = op_datatype_from_nccl,
		[OP_NAMES_ALGORITHM] = op_algorithm_from_v1,
		[OP_NAMES_PROTOCOL] = op_protocol_from_v1,
	};
	uint8_t number, ours;
	int is_known;

	if (is_bare_number(word, &number))
		return number;
	ours = op_name_find(table, word, &is_known);
	for (number = 0; number < 32; number++)
		if (ours != 0 && from_v1[table](number) == ours)
			return number;
	return UINT8_MAX;
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void *id_pointer(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/* What the plugin returned for it; ids that were not started in this tape are passed unchanged. */
static void *given_for(const struct tape_map *map, uint64_t recorded)
{
	const struct tape_id *id = tape_map_find(map, recorded);

	return id ? id->given : id_pointer(recorded);
}

static uint64_t player_stamp(const struct player *player, uint64_t gpu_ns)
{
	return gpu_ns ? gpu_ns + player->shift_ns : 0;
}

/* ---- starts ---------------------------------------------------------------------------------- */

static void coll_start(const struct player *player, const struct tape_line *line,
		       struct host_call call, void **handle)
{
	void *parent = given_for(&player->handles, line->parent);
	struct host_coll coll = {
		.parent_api = parent,
		.parent_group =
			line->version < 5 ? parent : given_for(&player->handles, line->group),
		.sequence = line->sequence,
		.function = line->function,
		.datatype = line->datatype,
		.algorithm = line->algorithm,
		.protocol = line->protocol,
		.send_buffer = id_pointer(line->send_buffer),
		.recv_buffer = id_pointer(line->recv_buffer),
		.count = line->count,
		.root = (int)line->root,
		.channels = (uint8_t)line->channels,
		.warps = (uint8_t)line->warps,
		.is_symmetric = line->is_symmetric != 0,
		.kernel_variant = line->variant,
		.user_tag = line->tag,
		.comm_name = line->name,
		.comm_hash = line->hash,
		.traffic_bytes = line->traffic,
		.redop = (uint32_t)line->redop,
		.is_collnet = line->is_collnet != 0,
		.is_nvls = line->is_nvls != 0,
	};

	if (player->plugin.version == 1) {
		coll.function_v1 = number_v1(OP_NAMES_FUNCTION, line->function);
		coll.datatype_v1 = number_v1(OP_NAMES_DATATYPE, line->datatype);
		coll.algorithm_v1 = number_v1(OP_NAMES_ALGORITHM, line->algorithm);
		coll.protocol_v1 = number_v1(OP_NAMES_PROTOCOL, line->protocol);
	}
	host_start_coll(&player->plugin, call, handle, &coll);
}

static void p2p_start(const struct player *player, const struct tape_line *line,
		      struct host_call call, void **handle)
{
	void *parent = given_for(&player->handles, line->parent);
	struct host_p2p p2p = {
		.parent_api = parent,
		.parent_group =
			line->version < 5 ? parent : given_for(&player->handles, line->group),
		.function = line->function,
		.datatype = line->datatype,
		.buffer = id_pointer(line->send_buffer),
		.count = line->count,
		.peer = (int)line->peer,
		.channels = (uint8_t)line->channels,
		.user_tag = line->tag,
		.comm_name = line->name,
		.comm_hash = line->hash,
	};

	if (player->plugin.version == 1) {
		p2p.function_v1 = number_v1(OP_NAMES_FUNCTION, line->function);
		p2p.datatype_v1 = number_v1(OP_NAMES_DATATYPE, line->datatype);
	}
	host_start_p2p(&player->plugin, call, handle, &p2p);
}

static void proxy_op_start(const struct player *player, const struct tape_line *line,
			   struct host_call call, void **handle)
{
	struct host_proxy_op op = {
		.parent = given_for(&player->handles, line->parent),
		.pid = (int32_t)line->pid,
		.channel = (uint8_t)line->channel,
		.peer = (int)line->peer,
		.steps = (int)line->steps,
		.chunk_bytes = (int)line->chunk,
		.is_send = line->is_send != 0,
	};

	host_start_proxy_op(&player->plugin, call, handle, &op);
}

static void api_start(const struct player *player, const struct tape_line *line,
		      struct host_call call, void **handle)
{
	struct host_api api = {
		.parent = given_for(&player->handles, line->parent),
		.function = line->function,
		/* The oldest tapes have no datatype here. */
		.datatype = line->datatype ? line->datatype : "Unknown",
		.count = line->count,
		.root = (int)line->root,
		.is_captured = line->is_captured != 0,
		.stream = id_pointer(line->stream),
		.user_tag = line->tag,
	};

	if (line->type == ABI_COLL_API)
		host_start_coll_api(&player->plugin, call, handle, &api);
	else
		host_start_p2p_api(&player->plugin, call, handle, &api);
}

static void ce_coll_start(const struct player *player, const struct tape_line *line,
			  struct host_call call, void **handle)
{
	struct host_ce_coll ce = {
		.parent = given_for(&player->handles, line->parent),
		.sequence = line->sequence,
		.function = line->function,
		.datatype = line->datatype,
		.sync_strategy = line->sync,
		.send_buffer = id_pointer(line->send_buffer),
		.recv_buffer = id_pointer(line->recv_buffer),
		.count = line->count,
		.root = (int)line->root,
		.has_intra_batch_sync = line->intra != 0,
		.batch_size = (uint32_t)line->batch,
		.batches = (uint32_t)line->batches,
		.ce_sequence = (uint32_t)line->ce_sequence,
		.stream = id_pointer(line->stream),
		.user_tag = line->tag,
	};

	host_start_ce_coll(&player->plugin, call, handle, &ce);
}

static void phase_start(const struct player *player, const struct tape_line *line,
			struct host_call call, void **handle)
{
	struct host_phase phase = {
		.parent = given_for(&player->handles, line->parent),
		.channel = (uint8_t)line->channel,
		.phase = (uint8_t)line->phase,
		.name = line->name,
		.gpu_ns = player_stamp(player, line->gpu_ns),
	};

	host_start_kernel_phase(&player->plugin, call, handle, &phase);
}

/* What the transport pointed to was not recorded: replaced by zeros. */
static uint64_t net_data[16];

static void event_start(const struct player *player, const struct tape_line *line, void **handle)
{
	const struct host_plugin *plugin = &player->plugin;
	void *parent = given_for(&player->handles, line->parent);
	struct host_call call = { given_for(&player->contexts, line->context), (int)line->rank };
	struct host_ce_batch batch = { parent, (int)line->ops, (uint64_t)line->bytes,
				       line->intra != 0 };

	switch (line->type) {
	case ABI_GROUP:
		return host_start_group(plugin, call, handle);
	case ABI_COLL:
		return coll_start(player, line, call, handle);
	case ABI_P2P:
		return p2p_start(player, line, call, handle);
	case ABI_PROXY_OP:
		return proxy_op_start(player, line, call, handle);
	case ABI_PROXY_STEP:
		return host_start_proxy_step(plugin, call, handle, parent, (int)line->step);
	case ABI_PROXY_CTRL:
		return host_start_proxy_ctrl(plugin, call, handle);
	case ABI_KERNEL_CH:
		return host_start_kernel_ch(plugin, call, handle, parent, (uint8_t)line->channel,
					    player_stamp(player, line->gpu_ns));
	case ABI_NET_PLUGIN:
		return host_start_net_plugin(plugin, call, handle, parent, (int64_t)line->net_id,
					     net_data);
	case ABI_GROUP_API:
		return host_start_group_api(plugin, call, handle, line->is_captured != 0,
					    (int)line->depth);
	case ABI_COLL_API:
	case ABI_P2P_API:
		return api_start(player, line, call, handle);
	case ABI_KERNEL_LAUNCH:
		return host_start_kernel_launch(plugin, call, handle, parent,
						id_pointer(line->stream));
	case ABI_CE_COLL:
		return ce_coll_start(player, line, call, handle);
	case ABI_CE_SYNC:
		return host_start_ce_sync(plugin, call, handle, parent, line->is_complete != 0,
					  (int)line->nranks);
	case ABI_CE_BATCH:
		return host_start_ce_batch(plugin, call, handle, &batch);
	case ABI_KERNEL_PHASE:
		return phase_start(player, line, call, handle);
	}
}

/* ---- the other calls ------------------------------------------------------------------------- */

static void state_record(const struct player *player, const struct tape_line *line, void *handle)
{
	const struct host_plugin *plugin = &player->plugin;
	enum abi_state state = (enum abi_state)line->state;

	if (!line->has_args || state == ABI_GROUP_START_API_STOP ||
	    state == ABI_GROUP_END_API_START)
		host_state_null(plugin, handle, state);
	else if (state <= ABI_OP_RECV_DONE)
		host_state_proxy_op_old(plugin, handle, state, line->arg, (int)line->steps);
	else if (state <= ABI_STEP_RECV_GPU_WAIT || state == ABI_STEP_SEND_PEER_WAIT)
		host_state_proxy_step(plugin, handle, state, line->arg);
	else if (state <= ABI_CTRL_APPEND_END)
		host_state_proxy_ctrl(plugin, handle, state, (int)line->arg);
	else if (state == ABI_NET_PLUGIN_UPDATE)
		host_state_net_plugin(plugin, handle, net_data);
	else if (state == ABI_KERNEL_CH_STOP)
		host_state_kernel_ch(plugin, handle, player_stamp(player, line->arg));
	else if (state == ABI_KERNEL_PHASE_STOP)
		host_state_kernel_phase(plugin, handle, player_stamp(player, line->arg));
	else
		host_state_proxy_op(plugin, handle, state);
}

static void line_init(struct player *player, const struct tape_line *line)
{
	struct host *host = player->host;
	struct host_identity who = {
		.name = line->name,
		.hash = line->hash,
		.nnodes = (int)line->nnodes,
		.nranks = (int)line->nranks,
		.rank = (int)line->rank,
		.log = host->config.log,
	};

	pthread_mutex_lock(&host->lock);
	host_load(host);
	player->plugin = host->plugin;
	pthread_mutex_unlock(&host->lock);
	if (player->plugin.version == 0)
		return;
	player->counts->version = player->plugin.version;
	player->counts->inits++;
	(void)host_init(&player->plugin, &tape_map_put(&player->contexts, line->context)->given,
			&host->mask, &who);
}

static void line_start(struct player *player, const struct tape_line *line)
{
	struct tape_id *id = tape_map_put(&player->handles, line->handle);
	int mask = load_relaxed(&player->host->mask);

	id->is_unasked = line->type > ABI_KERNEL_PHASE ||
			 !host_version_has(player->plugin.version, (enum abi_event)line->type) ||
			 !host_is_asked(player->host->asks, mask, (enum abi_event)line->type);
	if (id->is_unasked) {
		player->counts->unasked++;
		return;
	}
	player->counts->starts++;
	event_start(player, line, &id->given);
}

static void line_fini(struct player *player, const struct tape_line *line)
{
	player->counts->finalizes++;
	(void)host_finalize(&player->plugin, given_for(&player->contexts, line->context));
	pthread_mutex_lock(&player->host->lock);
	if (player->host->references > 0) /* a tape can have more FINI than INIT lines */
		host_unload(player->host);
	pthread_mutex_unlock(&player->host->lock);
}

static void line_other(struct player *player, const struct tape_line *line)
{
	const struct tape_id *id = tape_map_find(&player->handles, line->handle);
	void *handle = id ? id->given : id_pointer(line->handle);

	if (id && id->is_unasked) {
		player->counts->unasked++;
	} else if (line->what == TAPE_STATE) {
		player->counts->states++;
		state_record(player, line, handle);
	} else {
		player->counts->stops++;
		(void)host_stop(&player->plugin, handle);
	}
}

/* Makes the call. Called by the thread that holds the ticket. */
static void tape_call(struct player *player, const struct tape_line *line)
{
	if (line->what == TAPE_INIT)
		line_init(player, line);
	else if (player->plugin.version == 0)
		return;
	else if (line->what == TAPE_START)
		line_start(player, line);
	else if (line->what == TAPE_FINI)
		line_fini(player, line);
	else
		line_other(player, line);
}

/*
 * Replays a tape: one thread per recorded thread, and a ticket that goes from line to line. The thread of the
 * current line makes the call and passes the ticket on; all others sleep.
 */

/* ---- threads --------------------------------------------------------------------------------- */

static void wait_as_recorded(const struct player *player, const struct tape_line *line)
{
	uint64_t first = player->tape->lines[0].time_ns;
	uint64_t due = player->start_mono_ns + (line->time_ns > first ? line->time_ns - first : 0);
	struct timespec at = { (time_t)(due / 1000000000u), (long)(due % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
		;
}

struct part {
	struct player *player;
	uint32_t thread;
	pthread_t id;
};

static void *part_main(void *arg)
{
	const struct part *part = arg;
	struct player *player = part->player;
	const struct tape *tape = player->tape;

	for (size_t i = 0; i < tape->count; i++) {
		if (tape->lines[i].thread != part->thread)
			continue;
		pthread_mutex_lock(&player->lock);
		while (player->next != i && !player->is_cancelled)
			pthread_cond_wait(&player->turns[part->thread], &player->lock);
		pthread_mutex_unlock(&player->lock);
		if (player->is_cancelled)
			break;
		if (player->config->is_timed)
			wait_as_recorded(player, &tape->lines[i]);
		tape_call(player, &tape->lines[i]);
		pthread_mutex_lock(&player->lock);
		player->next = i + 1;
		if (i + 1 < tape->count && tape->lines[i + 1].thread != part->thread)
			pthread_cond_signal(&player->turns[tape->lines[i + 1].thread]);
		pthread_mutex_unlock(&player->lock);
	}
	return NULL;
}

/* To the thread of that line; SIZE_MAX: all threads exit. */
static void ticket_give(struct player *player, size_t line)
{
	pthread_mutex_lock(&player->lock);
	player->next = line;
	player->is_cancelled = line == SIZE_MAX;
	for (uint32_t i = 0; i < player->tape->threads; i++)
		pthread_cond_signal(&player->turns[i]);
	pthread_mutex_unlock(&player->lock);
}

/* The ticket is issued when all threads are running; if one cannot be started, to nobody. */
static enum status parts_run(struct player *player)
{
	uint32_t count = player->tape->threads, made;
	struct part *parts = calloc(count, sizeof(*parts));

	if (parts == NULL)
		return ERR_NO_SPACE;
	player->next = SIZE_MAX;
	for (made = 0; made < count; made++) {
		parts[made] = (struct part){ .player = player, .thread = made };
		if (pthread_create(&parts[made].id, NULL, part_main, &parts[made]) != 0)
			break;
	}
	ticket_give(player, made == count ? 0 : SIZE_MAX);
	for (uint32_t i = 0; i < made; i++)
		pthread_join(parts[i].id, NULL);
	free(parts);
	return made == count ? OK : ERR_SYSTEM;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int release_of(const struct tape *tape)
{
	char version[8];
	int release = HOST_NCCL_2_28;

	text_format(version, sizeof(version), "v%d", tape->lines[0].version);
	(void)host_release_parse(version, &release);
	return release;
}

static enum status player_init(struct player *player)
{
	const struct tape_config *config = player->config;
	struct host_config host = {
		.release = config->release ? config->release : release_of(player->tape),
		.newest = player->tape->lines[0].version,
		.plugin = config->plugin,
		.linked = config->linked,
		.log = config->log,
	};
	size_t starts[2] = { 0, 0 };

	for (size_t i = 0; i < player->tape->count; i++)
		if (player->tape->lines[i].what <= TAPE_START)
			starts[player->tape->lines[i].what]++;
	player->turns = calloc(player->tape->threads, sizeof(*player->turns));
	for (uint32_t i = 0; player->turns && i < player->tape->threads; i++)
		pthread_cond_init(&player->turns[i], NULL);
	if (player->turns == NULL || host_new(&player->host, &host) != OK ||
	    tape_map_init(&player->contexts, starts[TAPE_INIT]) != OK ||
	    tape_map_init(&player->handles, starts[TAPE_START]) != OK)
		return ERR_NO_SPACE;
	player->start_mono_ns = clock_system_ns(CLOCK_MONOTONIC);
	if (!config->keeps_stamps)
		player->shift_ns = clock_system_ns(CLOCK_REALTIME) - player->tape->lines[0].time_ns;
	return OK;
}

enum status tape_play(const struct tape *tape, const struct tape_config *config,
		      struct tape_counts *counts, struct tape_error *error)
{
	struct player player = {
		.tape = tape,
		.config = config,
		.counts = counts,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	enum status status;

	*counts = (struct tape_counts){ 0 };
	*error = (struct tape_error){ 0 };
	if (tape->count == 0)
		return OK;
	status = player_init(&player);
	if (status == OK)
		status = parts_run(&player);
	if (status == OK && counts->version == 0) {
		text_copy(error->text, sizeof(error->text),
			  host_load_error(player.host)[0] ? host_load_error(player.host)
							  : "the tape has no INIT");
		status = ERR_UNKNOWN;
	}
	tape_map_release(&player.contexts);
	tape_map_release(&player.handles);
	host_free(player.host);
	for (uint32_t i = 0; player.turns && i < tape->threads; i++)
		pthread_cond_destroy(&player.turns[i]);
	free(player.turns);
	return status;
}
