/*
 * Reads NCCL's log: names, parsing of numbers and words, storage of facts, line headers, and input.
 */
#include "import/nccl_log.h"
#include "common/text.h"
#include "import/nccl_log_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/hash.h"

const char *nccl_log_phase_name(enum nccl_log_phase phase)
{
	static const char *const names[NCCL_LOG_PHASES] = {
		[NCCL_LOG_KERNELS] = "kernels",
		[NCCL_LOG_ALLOC] = "alloc",
		[NCCL_LOG_BOOTSTRAP] = "bootstrap",
		[NCCL_LOG_ALLGATHERS] = "allgathers",
		[NCCL_LOG_TOPO] = "topo",
		[NCCL_LOG_GRAPHS] = "graphs",
		[NCCL_LOG_CONNECTIONS] = "connections",
		[NCCL_LOG_REST] = "rest",
	};

	return (size_t)phase < NCCL_LOG_PHASES ? names[phase] : "?";
}

const char *nccl_log_transport_name(enum nccl_log_transport transport)
{
	static const char *const names[NCCL_LOG_TRANSPORTS] = {
		[NCCL_LOG_P2P_DIRECT] = "P2P/direct pointer",
		[NCCL_LOG_P2P_IPC] = "P2P/IPC",
		[NCCL_LOG_P2P_CUMEM] = "P2P/CUMEM",
		[NCCL_LOG_P2P_INDIRECT] = "P2P/indirect",
		[NCCL_LOG_P2P_OTHER] = "P2P",
		[NCCL_LOG_SHM] = "SHM",
		[NCCL_LOG_NET] = "NET",
		[NCCL_LOG_COLLNET] = "COLLNET",
	};

	return (size_t)transport < NCCL_LOG_TRANSPORTS ? names[transport] : "?";
}

const char *nccl_log_kind_name(enum nccl_log_kind kind)
{
	static const char *const names[NCCL_LOG_KINDS] = {
		[NCCL_LOG_KIND_OTHER] = "other",
		[NCCL_LOG_KIND_VERSION] = "version",
		[NCCL_LOG_KIND_INIT] = "init",
		[NCCL_LOG_KIND_TIMING] = "timing",
		[NCCL_LOG_KIND_VARIABLE] = "variable",
		[NCCL_LOG_KIND_PLUGIN] = "plugin",
		[NCCL_LOG_KIND_NETWORK] = "network",
		[NCCL_LOG_KIND_NET_DEVICE] = "net_device",
		[NCCL_LOG_KIND_IB] = "ib",
		[NCCL_LOG_KIND_OFI] = "ofi",
		[NCCL_LOG_KIND_GDR] = "gdr",
		[NCCL_LOG_KIND_DMABUF] = "dmabuf",
		[NCCL_LOG_KIND_LINK] = "link",
		[NCCL_LOG_KIND_RING] = "ring",
		[NCCL_LOG_KIND_TREE] = "tree",
		[NCCL_LOG_KIND_CHANNELS] = "channels",
		[NCCL_LOG_KIND_NVLS] = "nvls",
		[NCCL_LOG_KIND_COLLNET] = "collnet",
		[NCCL_LOG_KIND_MNNVL] = "mnnvl",
		[NCCL_LOG_KIND_C2C] = "c2c",
		[NCCL_LOG_KIND_P2P] = "p2p",
		[NCCL_LOG_KIND_TOPOLOGY] = "topology",
		[NCCL_LOG_KIND_GRAPH] = "graph",
		[NCCL_LOG_KIND_TUNING] = "tuning",
		[NCCL_LOG_KIND_CHOICE] = "choice",
		[NCCL_LOG_KIND_OPERATION] = "operation",
		[NCCL_LOG_KIND_CALL] = "call",
		[NCCL_LOG_KIND_WARNING] = "warning",
		[NCCL_LOG_KIND_RETURN] = "return",
		[NCCL_LOG_KIND_BOOTSTRAP] = "bootstrap",
		[NCCL_LOG_KIND_RETRY] = "retry",
		[NCCL_LOG_KIND_PROXY] = "proxy",
		[NCCL_LOG_KIND_MEMORY] = "memory",
		[NCCL_LOG_KIND_REGISTRATION] = "registration",
		[NCCL_LOG_KIND_SHM] = "shm",
		[NCCL_LOG_KIND_AFFINITY] = "affinity",
		[NCCL_LOG_KIND_CONFIG] = "config",
		[NCCL_LOG_KIND_PROFILER] = "profiler",
		[NCCL_LOG_KIND_RAS] = "ras",
		[NCCL_LOG_KIND_TRACE] = "trace",
		[NCCL_LOG_KIND_ATTENTION] = "attention",
		[NCCL_LOG_KIND_LATENCY] = "latency",
		[NCCL_LOG_KIND_DIAGNOSIS] = "diagnosis",
	};

	return (size_t)kind < NCCL_LOG_KINDS ? names[kind] : "?";
}

/* Parsing numbers and words in a message. */

/* memmem builds a table first, which is too slow for such short texts. */
bool log_find(struct log_text *text, const char *literal)
{
	size_t length = strlen(literal);
	const char *at = text->at;

	while ((size_t)(text->end - at) >= length) {
		at = memchr(at, literal[0], (size_t)(text->end - at) - length + 1);
		if (at == NULL)
			return false;
		if (memcmp(at, literal, length) == 0) {
			text->at = at + length;
			return true;
		}
		at++;
	}
	return false;
}

bool log_has(struct log_text text, const char *literal)
{
	return log_find(&text, literal);
}

bool log_number(struct log_text *text, int64_t *number)
{
	const char *at = text->at;
	bool is_negative = at < text->end && *at == '-';
	int64_t value = 0;
	const char *first;

	first = at += is_negative;
	for (; at < text->end && *at >= '0' && *at <= '9' && at - first < 18; at++)
		value = value * 10 + (*at - '0');
	if (at == first || (at < text->end && *at >= '0' && *at <= '9'))
		return false;
	*number = is_negative ? -value : value;
	text->at = at;
	return true;
}

bool log_int(struct log_text *text, int32_t *number)
{
	struct log_text copy = *text;
	int64_t value;

	if (!log_number(&copy, &value) || value < INT32_MIN || value > INT32_MAX)
		return false;
	*number = (int32_t)value;
	*text = copy;
	return true;
}

static int hex_digit(char byte)
{
	if (byte >= '0' && byte <= '9')
		return byte - '0';
	if ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f')
		return (byte | 0x20) - 'a' + 10;
	return -1;
}

bool log_hex(struct log_text *text, uint64_t *number)
{
	struct log_text copy = *text;
	const char *first;
	uint64_t value = 0;

	if (LOG_SKIP(&copy, "(nil)")) { /* how printf writes a NULL pointer */
		*number = 0;
		*text = copy;
		return true;
	}
	LOG_SKIP(&copy, "0x");
	for (first = copy.at; copy.at < copy.end && hex_digit(*copy.at) >= 0; copy.at++)
		value = value << 4 | (uint64_t)hex_digit(*copy.at);
	if (copy.at == first || copy.at - first > 16)
		return false;
	*number = value;
	*text = copy;
	return true;
}

/* As written by printf("%.2f"); no exponents, no locale. */
bool log_real(struct log_text *text, double *number)
{
	struct log_text copy = *text;
	double value = 0, scale = 1;
	int64_t whole;
	bool is_negative = log_left(&copy) > 0 && *copy.at == '-';

	if (!log_number(&copy, &whole))
		return false;
	if (LOG_SKIP(&copy, "."))
		for (; copy.at < copy.end && *copy.at >= '0' && *copy.at <= '9'; copy.at++) {
			scale /= 10;
			value += (*copy.at - '0') * scale;
		}
	*number = (double)whole + (is_negative ? -value : value);
	*text = copy;
	return true;
}

struct log_text log_until(struct log_text *text, char stop)
{
	const char *found = memchr(text->at, stop, log_left(text));
	struct log_text part = { text->at, found != NULL ? found : text->end };

	text->at = found != NULL ? found + 1 : text->end;
	return part;
}

struct log_text log_trim(struct log_text text)
{
	while (text.at < text.end && (*text.at == ' ' || *text.at == '\t'))
		text.at++;
	while (text.at < text.end &&
	       (text.end[-1] == ' ' || text.end[-1] == '\t' || text.end[-1] == '\r'))
		text.end--;
	return text;
}

/*
 * Facts and texts are stored once. One index for all lists maps a hash of a fact's identity to its
 * place; texts are interned. So a gigabyte of repeated lines takes no more memory than the first of
 * them.
 */

enum { TEXT_MOST = 4096 };

#define LIST(member, most)                                                                       \
	{                                                                                        \
		offsetof(struct nccl_log, member##s), offsetof(struct nccl_log, member##_count), \
			sizeof(*((struct nccl_log *)0)->member##s), most                         \
	}

/* Where each list is, and how long it may become. */
static const struct {
	size_t list;
	size_t count;
	size_t size;
	size_t most;
} lists[LOG_LISTS] = {
	[LOG_FILES] = LIST(file, 1 << 20),
	[LOG_PROCESSES] = { offsetof(struct nccl_log, processes),
			    offsetof(struct nccl_log, process_count),
			    sizeof(struct nccl_log_process), 1 << 18 },
	[LOG_COMMS] = LIST(comm, 1 << 20),
	[LOG_LINKS] = LIST(link, 1 << 20),
	[LOG_CHANNELS] = LIST(channel, 1 << 20),
	[LOG_NETS] = LIST(net, 1 << 18),
	[LOG_GDRS] = LIST(gdr, 1 << 18),
	[LOG_VARIABLES] = LIST(variable, 1 << 20),
	[LOG_PLUGINS] = LIST(plugin, 1 << 18),
	[LOG_CHOICES] = LIST(choice, 1 << 16),
	[LOG_COSTS] = LIST(cost, 1 << 12),
	[LOG_OPERATIONS] = LIST(operation, 1 << 20),
	[LOG_WARNINGS] = LIST(warning, 1 << 16),
	[LOG_QUEUES] = LIST(queue, 1 << 18),
	[LOG_DIAGNOSES] = { offsetof(struct nccl_log, diagnoses),
			    offsetof(struct nccl_log, diagnosis_count),
			    sizeof(struct nccl_log_diagnosis), 1 << 14 },
	[LOG_REPORTS] = LIST(report, 1 << 16),
	[LOG_NOTES] = LIST(note, 1 << 18),
	[LOG_OTHERS] = LIST(other, 1024),
};

static void log_fail(struct nccl_log *log)
{
	if (log->work->status == OK)
		log->work->status = ERR_NO_SPACE;
}

void *log_add(struct nccl_log *log, enum log_list list)
{
	char **start = (void *)((char *)log + lists[list].list);
	size_t *count = (void *)((char *)log + lists[list].count);
	char *entry;

	if (*count == lists[list].most) {
		log->left_out += list != LOG_OTHERS;
		return NULL;
	}
	if (!list_grow(start, *count, lists[list].size)) {
		log_fail(log);
		return NULL;
	}
	entry = *start + *count * lists[list].size;
	memset(entry, 0, lists[list].size);
	++*count;
	return entry;
}

/* ---- the index ------------------------------------------------------------------------------- */

static struct log_slot *find_slot(struct log_slot *slots, size_t count, uint32_t list, uint64_t key)
{
	size_t at = (size_t)hash_word(key, list) & (count - 1);

	while (slots[at].list != 0 && !(slots[at].key == key && slots[at].list == list + 1))
		at = (at + 1) & (count - 1);
	return &slots[at];
}

static bool grow_index(struct nccl_log_work *work)
{
	size_t count = work->slot_count == 0 ? 1024 : work->slot_count * 2;
	struct log_slot *slots = calloc(count, sizeof(*slots));

	if (slots == NULL)
		return false;
	for (size_t i = 0; i < work->slot_count; i++)
		if (work->slots[i].list != 0)
			*find_slot(slots, count, work->slots[i].list - 1, work->slots[i].key) =
				work->slots[i];
	free(work->slots);
	work->slots = slots;
	work->slot_count = count;
	return true;
}

int64_t log_find_key(const struct nccl_log *log, uint32_t list, uint64_t key)
{
	const struct nccl_log_work *work = log->work;
	const struct log_slot *slot;

	if (work->slot_count == 0)
		return LOG_NONE;
	slot = find_slot(work->slots, work->slot_count, list, key);
	return slot->list != 0 ? (int64_t)slot->index : LOG_NONE;
}

void log_set_key(struct nccl_log *log, uint32_t list, uint64_t key, uint32_t index)
{
	struct nccl_log_work *work = log->work;
	struct log_slot *slot;

	/* Threads come and go without a limit of their own. */
	if (work->slots_used >= (size_t)1 << 23) {
		log->left_out++;
		return;
	}
	if ((work->slots_used + 1) * 4 > work->slot_count * 3 && !grow_index(work)) {
		log_fail(log);
		return;
	}
	slot = find_slot(work->slots, work->slot_count, list, key);
	work->slots_used += slot->list == 0;
	*slot = (struct log_slot){ .key = key, .list = list + 1, .index = index };
}

void *log_entry(struct nccl_log *log, enum log_list list, uint64_t key, bool *is_new)
{
	int64_t index = log_find_key(log, list, key);
	char **start = (void *)((char *)log + lists[list].list);
	const size_t *count = (void *)((char *)log + lists[list].count);
	void *entry;

	*is_new = index == LOG_NONE;
	if (index != LOG_NONE)
		return *start + (size_t)index * lists[list].size;
	entry = log_add(log, list);
	if (entry != NULL)
		log_set_key(log, list, key, (uint32_t)(*count - 1));
	return entry;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static char *take_bytes(struct nccl_log *log, size_t length)
{
	struct log_block *block = log->work->blocks;

	if (block == NULL || sizeof(block->bytes) - block->used < length) {
		block = malloc(sizeof(*block));
		if (block == NULL) {
			log_fail(log);
			return NULL;
		}
		block->next = log->work->blocks;
		block->used = 0;
		log->work->blocks = block;
	}
	block->used += length;
	return block->bytes + block->used - length;
}

static size_t find_text(const struct nccl_log_work *work, const char *text, size_t length)
{
	size_t at = (size_t)hash_bytes(text, length) & (work->text_room - 1);

	while (work->texts[at] != NULL &&
	       !(work->lengths[at] == length && memcmp(work->texts[at], text, length) == 0))
		at = (at + 1) & (work->text_room - 1);
	return at;
}

static bool grow_texts(struct nccl_log_work *work)
{
	struct nccl_log_work grown = { .text_room =
					       work->text_room == 0 ? 256 : work->text_room * 2 };

	grown.texts = calloc(grown.text_room, sizeof(*grown.texts));
	grown.lengths = calloc(grown.text_room, sizeof(*grown.lengths));
	if (grown.texts == NULL || grown.lengths == NULL) {
		free(grown.texts);
		free(grown.lengths);
		return false;
	}
	for (size_t i = 0; i < work->text_room; i++) {
		size_t at;

		if (work->texts[i] == NULL)
			continue;
		at = find_text(&grown, work->texts[i], work->lengths[i]);
		grown.texts[at] = work->texts[i];
		grown.lengths[at] = work->lengths[i];
	}
	free(work->texts);
	free(work->lengths);
	work->texts = grown.texts;
	work->lengths = grown.lengths;
	work->text_room = grown.text_room;
	return true;
}

const char *log_keep(struct nccl_log *log, struct log_text text)
{
	struct nccl_log_work *work = log->work;
	char clean[TEXT_MOST];
	size_t length = log_left(&text), at;
	char *copy;

	if (length == 0)
		return "";
	length = length < sizeof(clean) ? length : sizeof(clean) - 1;
	memcpy(clean, text.at, length);
	length = text_clean_bytes(clean, length);
	if ((work->text_count + 1) * 4 > work->text_room * 3 && !grow_texts(work)) {
		log_fail(log);
		return "";
	}
	at = find_text(work, clean, length);
	if (work->texts[at] != NULL)
		return work->texts[at];
	copy = take_bytes(log, length + 1);
	if (copy == NULL)
		return "";
	memcpy(copy, clean, length);
	copy[length] = '\0';
	work->texts[at] = copy;
	work->lengths[at] = (uint32_t)length;
	work->text_count++;
	return copy;
}

static bool is_digit(unsigned char byte, bool is_in_number)
{
	return (byte >= '0' && byte <= '9') ||
	       (is_in_number && ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'f'));
}

/* 0x7f00 and 1234 are equal; letters count as digits only within a number. */
uint64_t log_shape(struct log_text text)
{
	uint64_t hash = 1;
	bool is_number = false;

	for (; text.at < text.end; text.at++) {
		unsigned char byte = (unsigned char)*text.at;
		bool was_number = is_number;

		is_number = is_digit(byte, is_number) || (is_number && byte == 'x');
		if (!is_number)
			hash = (hash ^ byte) * UINT64_C(0x100000001b3);
		else if (!was_number)
			hash = (hash ^ '#') * UINT64_C(0x100000001b3);
	}
	return hash;
}

void nccl_log_release(struct nccl_log *log)
{
	struct nccl_log_work *work = log->work;

	for (size_t i = 0; i < LOG_LISTS; i++) {
		char *start;

		memcpy(&start, (char *)log + lists[i].list, sizeof(start));
		free(start);
	}
	while (work != NULL && work->blocks != NULL) {
		struct log_block *next = work->blocks->next;

		free(work->blocks);
		work->blocks = next;
	}
	if (work != NULL) {
		free(work->slots);
		free(work->texts);
		free(work->lengths);
	}
	free(work);
	*log = (struct nccl_log){ .files = NULL };
}

/*
 * The header of a line: who wrote it.
 *
 *	[1,3]<stdout>:[2026-01-02 10:00:00] node7:4711:4800 [3] transport/net.cc:12 NCCL WARN text
 *	prefix                              host  pid  tid  device  source      ^ label
 *
 * It is read backwards from the label, because launchers, clocks and other programs put anything
 * before it.
 */

struct head {
	struct log_text host;
	int64_t pid;
	uint64_t thread;
	int32_t device;
	const char *start; /* where the hostname begins */
};

static bool is_host_byte(char byte)
{
	return isalnum((unsigned char)byte) || byte == '.' || byte == '-' || byte == '_';
}

/* ":123" that ends at `end`; returns where the colon is; NULL if there is none. */
static const char *number_back(const char *start, const char *end, int64_t *number)
{
	const char *at = end;
	struct log_text digits;

	while (at > start && at[-1] >= '0' && at[-1] <= '9')
		at--;
	digits = (struct log_text){ at, end };
	if (at == start || at[-1] != ':' || !log_number(&digits, number))
		return NULL;
	return at - 1;
}

/* Does "host:pid:tid" end here? Diagnostics have "host:pid". */
static bool read_head_word(const char *start, const char *end, bool is_diagnosis, struct head *head)
{
	const char *second, *first;
	int64_t thread;

	second = number_back(start, end, &thread);
	first = second != NULL ? number_back(start, second, &head->pid) : NULL;
	if (first == NULL && second != NULL && is_diagnosis) {
		first = second;
		head->pid = thread;
		thread = 0;
	}
	if (first == NULL)
		return false;
	head->thread = (uint64_t)thread;
	head->start = first;
	while (head->start > start && is_host_byte(head->start[-1]) && first - head->start < 255)
		head->start--;
	head->host = (struct log_text){ head->start, first };
	return head->start < first;
}

/* Words between the header and "NCCL": "[3]", "12.345", "net.cc:12 (function)". */
enum { WORDS_BETWEEN = 8 };

static bool read_head(const char *start, const char *label, bool is_diagnosis, struct head *head,
		      struct log_text *between)
{
	const char *end = label;

	head->device = -1;
	for (int i = 0; i < WORDS_BETWEEN && end > start; i++) {
		const char *word;

		while (end > start && end[-1] == ' ')
			end--;
		if (read_head_word(start, end, is_diagnosis, head)) {
			*between = log_trim((struct log_text){ end, label });
			if (LOG_SKIP(between, "[") && log_int(between, &head->device))
				LOG_SKIP(between, "]");
			*between = log_trim(*between);
			return true;
		}
		for (word = end; word > start && word[-1] != ' '; word--)
			;
		end = word;
	}
	return false;
}

/* What launchers put before a line: "[1,3]<stdout>:", "[rank3]:", "3: ". */
static int64_t launcher_rank(const char *start, const char *end)
{
	struct log_text text = log_trim((struct log_text){ start, end });
	int64_t number;

	if (LOG_SKIP(&text, "[rank"))
		return log_number(&text, &number) && LOG_SKIP(&text, "]") ? number : -1;
	if (LOG_SKIP(&text, "[")) {
		if (!log_number(&text, &number) || !LOG_SKIP(&text, ","))
			return -1;
		return log_number(&text, &number) && LOG_SKIP(&text, "]<std") ? number : -1;
	}
	return log_number(&text, &number) && LOG_SKIP(&text, ":") ? number : -1;
}

static uint64_t process_key(struct log_text host, int64_t pid)
{
	return hash_word(hash_bytes(host.at, log_left(&host)), (uint64_t)pid);
}

/* In a truncated line other text may precede the hostname: prefer a process that is known. */
static void shorten_host(const struct nccl_log *log, struct head *head)
{
	struct log_text host = head->host;

	for (; host.at < host.end; host.at++)
		if (log_find_key(log, LOG_PROCESSES, process_key(host, head->pid)) != LOG_NONE) {
			head->host = host;
			head->start = host.at;
			return;
		}
}

static uint32_t find_process(struct nccl_log *log, const struct head *head, int64_t launcher)
{
	struct nccl_log_process *process;
	bool is_new;

	process = log_entry(log, LOG_PROCESSES, process_key(head->host, head->pid), &is_new);
	if (process == NULL)
		return UINT32_MAX;
	if (is_new)
		*process = (struct nccl_log_process){ .host = log_keep(log, head->host),
						      .pid = head->pid,
						      .launcher_rank = -1,
						      .cuda_device = -1,
						      .version = "",
						      .cuda_version = "",
						      .git = "",
						      .last_comm = LOG_NONE };
	if (process->launcher_rank < 0)
		process->launcher_rank = launcher;
	if (process->cuda_device < 0)
		process->cuda_device = head->device;
	return (uint32_t)(process - log->processes);
}

/* Lines without a header: one process per file represents all of them. */
static uint32_t find_nobody(struct nccl_log *log, uint32_t file)
{
	struct nccl_log_work *work = log->work;
	struct head head = { .pid = -1 - (int64_t)file, .device = -1, .host = { "", "" } };

	if (work->nobody == UINT32_MAX) {
		work->nobody = find_process(log, &head, -1);
		if (work->nobody != UINT32_MAX)
			log->processes[work->nobody].pid = -1;
	}
	return work->nobody;
}

/* A header that was read before. Truncated ones are not among them. */
static struct log_head *head_slot(struct nccl_log_work *work, const char *start, size_t length)
{
	return &work->heads[hash_bytes(start, length) % LOG_HEADS];
}

static bool is_head(const struct log_head *head, const char *start, size_t length)
{
	return head->length == length && memcmp(head->bytes, start, length) == 0;
}

/*
 * Determine who wrote the message with "NCCL" at `label`: fills in process, thread and source.
 * Returns where its header begins. is_cut: another message precedes it in the line.
 */
static const char *log_read_whose(struct log_line *line, const char *start, const char *label,
				  bool is_cut)
{
	struct nccl_log_work *work = line->log->work;
	size_t length = (size_t)(label - start);
	bool is_short = !is_cut && length > 0 && length <= sizeof(work->heads[0].bytes);
	struct log_head *known = is_short ? head_slot(work, start, length) : NULL;
	struct head head = { .pid = -1 };

	line->source = (struct log_text){ label, label };
	if (known != NULL && is_head(known, start, length)) {
		line->process = known->process;
		line->thread = known->thread;
		work->last_head = known;
		return start;
	}
	line->thread = 0;
	if (!read_head(start, label, line->level == NCCL_LOG_LEVEL_DIAG, &head, &line->source)) {
		line->process = find_nobody(line->log, line->place.file);
		return label;
	}
	if (is_cut)
		shorten_host(line->log, &head);
	line->process = find_process(line->log, &head, launcher_rank(start, head.start));
	line->thread = head.thread;
	/* A header with a source belongs to a warning and is not repeated. */
	if (known != NULL && log_left(&line->source) == 0) {
		memcpy(known->bytes, start, length);
		known->length = length;
		known->process = line->process;
		known->thread = line->thread;
		work->last_head = known;
	}
	return head.start;
}

/*
 * From bytes to messages.
 *
 *	[1,3]<stdout>:[2026-01-02 10:00:00] node7:4711:4800 [3] transport/net.cc:12 NCCL WARN text
 *	prefix                              host  pid  tid  device  source      ^ level    message
 *
 * Every line is searched for the word "NCCL" followed by a level; then the text before it is
 * parsed. A line can hold two messages if two processes wrote at once; then the first ends where
 * the second's header begins.
 */

enum {
	LINE_MOST = 8192,     /* NCCL's own have at most 1024 bytes */
	READ_BYTES = 1 << 18, /* for descriptors */
	LABEL_BYTES = 5,      /* "NCCL " */
};

void nccl_log_init(struct nccl_log *log)
{
	*log = (struct nccl_log){ .work = calloc(1, sizeof(struct nccl_log_work)) };
	if (log->work != NULL)
		log_rules_init(log->work);
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool read_level(struct log_text *text, enum nccl_log_level *level)
{
	static const struct {
		const char *word;
		enum nccl_log_level level;
	} levels[] = {
		{ "INFO ", NCCL_LOG_LEVEL_INFO },   { "WARN ", NCCL_LOG_LEVEL_WARN },
		{ "TRACE ", NCCL_LOG_LEVEL_TRACE }, { "CALL ", NCCL_LOG_LEVEL_CALL },
		{ "ABORT ", NCCL_LOG_LEVEL_ABORT }, { "ATTN ", NCCL_LOG_LEVEL_ATTN },
		{ "DIAG ", NCCL_LOG_LEVEL_DIAG },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(levels); i++)
		if (log_skip_bytes(text, levels[i].word, strlen(levels[i].word))) {
			*level = levels[i].level;
			return true;
		}
	return false;
}

/* memmem is slow for a word this short. */
static const char *find_word(const char *at, const char *end)
{
	while (end - at > LABEL_BYTES &&
	       (at = memchr(at, 'N', (size_t)(end - at - LABEL_BYTES))) != NULL) {
		if (memcmp(at, "NCCL ", LABEL_BYTES) == 0)
			return at;
		at++;
	}
	return NULL;
}

/*
 * What precedes it is a header, the end of one, or nothing: other programs mention "NCCL INFO",
 * too.
 */
static bool may_be_label(const char *start, const char *label)
{
	if (label == start)
		return true;
	if (label[-1] != ' ' || label - start < 2)
		return label[-1] == ':' || label[-1] == '>';
	return label[-2] == ']' || label[-2] == ')' || label[-2] == ':' ||
	       isdigit((unsigned char)label[-2]);
}

/* The next "NCCL LEVEL " of this line: where "NCCL" is; *text is moved past the level. */
static const char *find_label(const char *start, struct log_text *text, enum nccl_log_level *level)
{
	const char *label;

	while ((label = find_word(text->at, text->end)) != NULL) {
		text->at = label + LABEL_BYTES;
		if (!may_be_label(start, label))
			continue;
		if (read_level(text, level))
			return label;
		/* Level VERSION has no header and no word for its level. */
		if (log_left(text) > 9 && memcmp(text->at, "version ", 8) == 0 &&
		    isdigit((unsigned char)text->at[8])) {
			text->at = label;
			*level = NCCL_LOG_LEVEL_VERSION;
			return label;
		}
	}
	return NULL;
}

static void count_line(struct log_line *line)
{
	struct nccl_log_process *process = &line->log->processes[line->process];

	line->log->nccl_lines++;
	line->log->files[line->place.file].nccl_lines++;
	if (process->lines++ == 0)
		process->first = line->place;
	process->last = line->place;
	process->levels[line->level]++;
}

static void take_message(struct log_line *line, struct log_text message)
{
	if (line->process == UINT32_MAX) {
		/* No room for its process: still counted. */
		line->log->nccl_lines++;
		line->log->files[line->place.file].nccl_lines++;
		line->log->kinds[NCCL_LOG_KIND_OTHER]++;
		line->log->others_left_out++;
		return;
	}
	line->message = message;
	while (line->message.at < line->message.end && (line->message.end[-1] == '\r'))
		line->message.end--;
	count_line(line);
	log_take(line);
}

static void take_messages(struct log_line *line, struct log_text rest, const char *label)
{
	const char *start = rest.at;
	struct log_text text = { label, rest.end };
	enum nccl_log_level next;

	if (find_label(start, &text, &line->level) == NULL)
		return;
	log_read_whose(line, start, label, false);
	for (;;) {
		struct log_line after = *line;
		struct log_text message = text;

		if (line->level == NCCL_LOG_LEVEL_VERSION)
			text.at += LABEL_BYTES;
		label = find_label(start, &text, &next);
		if (label != NULL) {
			after.level = next;
			message.end = log_read_whose(&after, message.at, label, true);
			line->log->cut_lines++;
		}
		take_message(line, message);
		if (label == NULL)
			break;
		*line = after;
	}
}

/* ANSI colors: ESC [ ... letter. */
static struct log_text without_colours(struct log_text text, char *to)
{
	char *out = to;

	while (text.at < text.end) {
		if (*text.at != '\x1b') {
			*out++ = *text.at++;
			continue;
		}
		text.at++;
		if (text.at < text.end && *text.at == '[') {
			text.at++;
			while (text.at < text.end && (*text.at < '@' || *text.at > '~'))
				text.at++;
			text.at += text.at < text.end;
		}
	}
	return (struct log_text){ to, out };
}

/* Where "NCCL" is; usually at the same offset as in the previous line. */
static const char *find_first_label(const struct nccl_log_work *work, struct log_text text)
{
	const struct log_head *head = work->last_head;
	enum nccl_log_level level;

	if (head != NULL && log_left(&text) > head->length + LABEL_BYTES &&
	    memcmp(text.at, head->bytes, head->length) == 0) {
		struct log_text rest = { text.at + head->length, text.end };

		if (LOG_SKIP(&rest, "NCCL ") && read_level(&rest, &level))
			return text.at + head->length;
	}
	return find_label(text.at, &text, &level);
}

static void take_line(struct nccl_log *log, uint32_t file, struct log_text text)
{
	struct log_line line = { .log = log, .place = { .file = file } };
	char plain[LINE_MOST];
	const char *label;

	log->lines++;
	line.place.line = ++log->files[file].lines;
	if (log_left(&text) > LINE_MOST) {
		log->long_lines++;
		text.end = text.at + LINE_MOST;
	}
	if (memchr(text.at, '\x1b', log_left(&text)) != NULL)
		text = without_colours(text, plain);
	label = find_first_label(log->work, text);
	if (label != NULL)
		take_messages(&line, text, label);
	else
		log_take_report(log, text, line.place);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static enum status begin_file(struct nccl_log *log, const char *name, uint32_t *index)
{
	struct nccl_log_file *file;

	if (log->work == NULL)
		return ERR_NO_SPACE;
	file = log_add(log, LOG_FILES);
	if (file == NULL)
		return ERR_NO_SPACE;
	file->name = log_keep(log, (struct log_text){ name, name + strlen(name) });
	*index = (uint32_t)(file - log->files);
	memset(log->work->heads, 0, sizeof(log->work->heads));
	log->work->last_head = NULL;
	log->work->nobody = UINT32_MAX;
	log->work->column_count = 0;
	return log->work->status;
}

/* Process all whole lines; returns their number of bytes. */
static size_t take_lines(struct nccl_log *log, uint32_t file, const char *bytes, size_t length)
{
	const char *at = bytes, *end = bytes + length, *stop;

	while (at < end && (stop = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		take_line(log, file, (struct log_text){ at, stop });
		at = stop + 1;
	}
	return (size_t)(at - bytes);
}

enum status nccl_log_add_memory(struct nccl_log *log, const char *name, const void *bytes,
				size_t length)
{
	enum status status;
	uint32_t file;
	size_t taken;

	status = begin_file(log, name, &file);
	if (status != OK)
		return status;
	log->files[file].bytes = length;
	if (length == 0)
		return OK;
	taken = take_lines(log, file, bytes, length);
	if (taken < length)
		take_line(log, file,
			  (struct log_text){ (const char *)bytes + taken,
					     (const char *)bytes + length });
	return log->work->status;
}

/* A line that fills the buffer is processed once and skipped to its end. */
static enum status take_all(struct nccl_log *log, uint32_t file, int fd, char *buffer)
{
	bool is_passing = false;
	size_t used = 0;

	for (;;) {
		ssize_t got = read(fd, buffer + used, READ_BYTES - used);
		const char *stop = NULL;
		size_t taken = 0;

		if (got == -1 && errno == EINTR)
			continue;
		if (got == -1)
			return ERR_SYSTEM;
		if (got == 0)
			break;
		log->files[file].bytes += (uint64_t)got;
		used += (size_t)got;
		if (is_passing) {
			stop = memchr(buffer, '\n', used);
			taken = stop != NULL ? (size_t)(stop - buffer) + 1 : used;
			is_passing = stop == NULL;
		}
		taken += take_lines(log, file, buffer + taken, used - taken);
		if (taken == 0 && used == READ_BYTES) {
			take_line(log, file, (struct log_text){ buffer, buffer + used });
			taken = used;
			is_passing = true;
		}
		memmove(buffer, buffer + taken, used - taken);
		used -= taken;
	}
	if (used > 0)
		take_line(log, file, (struct log_text){ buffer, buffer + used });
	return log->work->status;
}

enum status nccl_log_add_fd(struct nccl_log *log, const char *name, int fd)
{
	char *buffer = malloc(READ_BYTES);
	enum status status;
	uint32_t file;

	status = buffer != NULL ? begin_file(log, name, &file) : ERR_NO_SPACE;
	if (status == OK)
		status = take_all(log, file, fd, buffer);
	free(buffer);
	return status;
}

const struct nccl_log_variable *nccl_log_variable(const struct nccl_log *log, uint32_t process,
						  const char *name)
{
	for (size_t i = 0; i < log->variable_count; i++)
		if (log->variables[i].process == process &&
		    strcmp(log->variables[i].name, name) == 0)
			return &log->variables[i];
	return NULL;
}
