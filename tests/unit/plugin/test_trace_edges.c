/*
 * The trace thread, pass by pass: which blocks it writes when, what they contain, and how what it
 * cannot write is counted.
 */
#include <pthread.h>

#include "format/trace_read.h"
#include "format/trace_write.h"
#include "tests/unit/plugin/thread_play.h"

enum { MOST = 3000, LINKS_MOST = 64 };

static struct trace_place place = { .name = "it", .group = (gid_t)-1 };
static struct op_record ops[MOST];
static uint64_t now_ns; /* since the beginning */

/* What a file has. */
static struct {
	char types[1024]; /* a letter per block */
	size_t blocks;
	uint64_t ops, details, last_op, last_detail; /* records, and their last sequence */
	struct trace_counts counts;		     /* the last ones, with their communicators: */
	struct trace_comm_counts comms[8];
	struct comm_info comm; /* the last one */
	struct region_link links[LINKS_MOST];
	uint32_t link_count;
	struct clock_anchor anchor;
	struct trace_name name;
} file;

static void no_rename(const char *path)
{
	(void)path;
	_exit(9);
}

static void start(uint64_t quota)
{
	text_format(place.dir, sizeof(place.dir), "%s/traces", thread_dir);
	expect(trace_thread_start(&place, quota, no_rename) == OK);
}

static void pass_at(uint64_t ns)
{
	now_ns = ns;
	thread_now(THREAD_BEGIN_NS + ns);
	thread_pass(trace_thread_save_comms);
}

static void read_counts(const struct trace_item *item)
{
	struct trace_records records;

	expect(trace_records_init(&records, item) == OK);
	expect(trace_records_counts(&records, &file.counts) == OK);
	for (uint64_t i = 0; i < file.counts.comms; i++)
		expect(trace_records_comm_counts(&records, &file.comms[i % 8]) == OK);
}

static void read_block(const struct trace_item *item)
{
	struct trace_records records;
	struct op_detail detail;
	struct op_record op;

	if (item->type == TRACE_PROCESS)
		return;
	if (item->type == TRACE_COUNTS || item->type == TRACE_CLOSE) {
		read_counts(item);
		return;
	}
	expect(trace_records_init(&records, item) == OK);
	if (item->type == TRACE_LINKS)
		file.link_count = item->records;
	for (uint32_t i = 0; i < item->records; i++)
		switch (item->type) {
		case TRACE_OPS:
			expect(trace_records_op(&records, &op) == OK && op.sequence > file.last_op);
			file.last_op = op.sequence;
			file.ops++;
			break;
		case TRACE_DETAILS:
			expect(trace_records_detail(&records, &detail) == OK &&
			       detail.sequence > file.last_detail);
			file.last_detail = detail.sequence;
			file.details++;
			break;
		case TRACE_COMM:
			expect(trace_records_comm(&records, &file.comm) == OK);
			break;
		case TRACE_LINKS:
			expect(trace_records_link(&records, &file.links[i % LINKS_MOST]) == OK);
			break;
		case TRACE_ANCHOR:
			expect(trace_records_anchor(&records, &file.anchor) == OK);
			break;
		case TRACE_NAME:
			expect(trace_records_name(&records, &file.name) == OK);
			break;
		default:
			expect(false);
		}
}

static void read_trace(void)
{
	static const char letters[] = "?PCODANKXL";
	struct trace_reader reader;
	struct trace_item item;
	char path[1200];

	memset(&file, 0, sizeof(file));
	trace_place_path(path, sizeof(path), &place, 0);
	expect(trace_open(&reader, path, NULL) == OK);
	while (trace_next(&reader, &item) != TRACE_END) {
		if (item.found == TRACE_CUT) /* it grows */
			continue;
		expect(item.found == TRACE_BLOCK && item.type < sizeof(letters) - 1);
		expect(file.blocks < sizeof(file.types) - 1);
		file.types[file.blocks++] = letters[item.type];
		read_block(&item);
	}
	trace_close(&reader);
}

/* The blocks of the file since this was called last. */
static bool has_new(const char *types)
{
	static size_t before;
	const char *new;

	read_trace();
	new = file.types + before;
	before = file.blocks;
	if (strcmp(new, types) == 0)
		return true;
	printf("# %s instead of %s\n", new, types);
	return false;
}

static struct op_record op_of(uint64_t number)
{
	return (struct op_record){ .comm = 1,
				   .number = number,
				   .function = OP_ALL_REDUCE,
				   .bytes = number * UINT64_C(0x9e3779b97f4a7c15) >> 4,
				   .signature = number * UINT64_C(0xd6e8feb86659fd93),
				   .issue_ns = THREAD_BEGIN_NS,
				   .state = OP_DONE };
}

static void put(uint32_t count)
{
	static uint64_t number;

	for (uint32_t i = 0; i < count; i++)
		ops[i] = op_of(++number);
	thread_put_ops(ops, count);
}

static void begin(void)
{
	play_init(0x11, 1, 2, 0);
	thread_freeze();
	start(0);
	pass_at(0);
	expect(has_new("PACA"));
}

/* ---- when ---------------------------------------------------------------------------------------- */

/* Ten seconds after another, a sign that it is alive; counts only if they changed. */
static void write_rarely_while_nothing_ends(void)
{
	begin();
	expect(file.anchor.clock_ns == THREAD_BEGIN_NS && file.anchor.wall_ns == THREAD_WALL_NS);
	pass_at(10 * SECOND_NS);
	expect(has_new(""));
	pass_at(10 * SECOND_NS + 1);
	expect(has_new("A"));
	expect(file.anchor.clock_ns == THREAD_BEGIN_NS + 10 * SECOND_NS + 1);
	expect(load_relaxed(&recorder.region.header->last_anchor.clock_ns) == file.anchor.clock_ns);
	expect(load_relaxed(&recorder.region.header->last_anchor.wall_ns) == THREAD_WALL_NS);
	store_relaxed(&recorder.region.comms[0].counts.issued, 5);
	pass_at(20 * SECOND_NS + 1);
	expect(has_new(""));
	pass_at(20 * SECOND_NS + 2);
	expect(has_new("AK") && file.comms[0].counts.issued == 5);
	pass_at(30 * SECOND_NS + 3);
	expect(has_new("A"));
	play_init(0x22, 1, 2, 0);
	store_relaxed(&recorder.region.comms[1].counts.issued, 2);
	store_relaxed(&recorder.region.comms[0].counts.issued, 3); /* the same in total */
	pass_at(40 * SECOND_NS + 4);
	expect(has_new("CA"));
	trace_thread_finish();
	expect(has_new("CCAX"));
}

static void write_every_second_while_something_ends(void)
{
	begin();
	put(1);
	pass_at(SECOND_NS);
	expect(has_new("O"));
	pass_at(SECOND_NS + 1);
	expect(has_new("AK"));
	pass_at(3 * SECOND_NS);
	expect(has_new(""));
	put(2);
	pass_at(3 * SECOND_NS);
	expect(has_new("OAK") && file.ops == 3);
	put(1);
	pass_at(4 * SECOND_NS);
	expect(has_new("O"));
	pass_at(4 * SECOND_NS + 1);
	expect(has_new("AK"));
	trace_thread_finish();
	expect(has_new("CAX"));
}

/* ---- what ---------------------------------------------------------------------------------------- */

static bool counts_are(uint64_t comms)
{
	bool is_right =
		file.counts.comms == comms && file.counts.clock_ns == THREAD_BEGIN_NS + now_ns;

	for (int i = 0; i < LOST_REASONS; i++)
		is_right = is_right && file.counts.lost[i] == (uint64_t)i + 1;
	for (int i = 0; i < ODD_REASONS; i++)
		is_right = is_right && file.counts.odd[i] == (uint64_t)i + 100;
	return is_right;
}

static void write_all_counts(void)
{
	void *second;

	begin();
	for (int i = 0; i < LOST_REASONS; i++)
		store_relaxed(&recorder.region.header->lost[i], (uint64_t)i + 1);
	for (int i = 0; i < ODD_REASONS; i++)
		store_relaxed(&recorder.region.header->odd[i], (uint64_t)i + 100);
	second = play_init(0x22, 1, 2, 0);
	play_init(0x33, 1, 2, 0);
	store_relaxed(&recorder.region.comms[0].counts.issued, 11);
	store_relaxed(&recorder.region.comms[1].counts.issued, 22);
	store_relaxed(&recorder.region.comms[2].counts.issued, 33);
	put(7);
	pass_at(2 * SECOND_NS);
	expect(has_new("CCOAK") && counts_are(3));
	expect(file.counts.trace_records == 7 && file.counts.ring_head == 7);
	for (uint64_t i = 0; i < 3; i++)
		expect(file.comms[i].id == i + 1 && file.comms[i].counts.issued == 11 * (i + 1));
	/* One that has ended: its description and its counts, once. */
	expect(!trace_thread_has_comm(1, 2));
	ncclProfiler_v5.finalize(second);
	pass_at(2 * SECOND_NS);
	expect(has_new("CK") && counts_are(1) && file.comms[0].id == 2);
	expect(file.comm.id == 2 && file.comm.finalize_ns == THREAD_BEGIN_NS + 2 * SECOND_NS);
	expect(file.comms[0].counts.issued == 22);
	expect(trace_thread_has_comm(1, 2) && !trace_thread_has_comm(1, 1));
	expect(!trace_thread_has_comm(0, 1) && !trace_thread_has_comm(2, 3));
	/* A slot that is free again has no counts. */
	store_release(&recorder.region.comms[0].word, UINT64_C(2) << 32);
	put(1);
	pass_at(4 * SECOND_NS);
	expect(has_new("OAK") && counts_are(2));
	expect(file.comms[0].id == 2 && file.comms[1].id == 3);
	trace_thread_finish();
	expect(has_new("CAX") && counts_are(2) && file.comm.id == 3);
	expect(file.counts.trace_records == 8 && file.counts.ring_head == 8);
	expect(load_relaxed(&recorder.region.header->trace_records) == 8 &&
	       load_relaxed(&recorder.region.header->drained) == 8);
}

static void write_names_when_complete(void)
{
	struct region_name *names = recorder.region.names;

	begin();
	names = recorder.region.names;
	memcpy(names[0].text, "SPIRAL", 7);
	memcpy(names[1].text, "ZIGZAG", 7);
	store_release(&recorder.region.header->names_used, UINT64_C(3));
	pass_at(0);
	expect(has_new("NN") && file.name.id == OP_NAME_INTERNED + 1);
	expect(strcmp(file.name.text, "ZIGZAG") == 0);
	pass_at(0);
	expect(has_new(""));
	/* More than there is room for. */
	for (int i = 2; i < OP_NAMES_INTERNED_MAX; i++) {
		uint64_t word;

		text_format(names[i].text + 8, 8, "name%d", i);
		memcpy(&word, "complete", 8);
		store_release((uint64_t *)(void *)names[i].text, word);
	}
	store_release(&recorder.region.header->names_used, (uint64_t)OP_NAMES_INTERNED_MAX + 1);
	pass_at(0);
	read_trace();
	expect(file.blocks == 4 + OP_NAMES_INTERNED_MAX);
	expect(file.name.id == OP_NAME_INTERNED + OP_NAMES_INTERNED_MAX - 1);
	trace_thread_finish();
}

static void put_link(uint32_t slot, uint64_t key, uint64_t value)
{
	struct region_link *link = &recorder.region.links[slot];

	store_relaxed(&link->proxies, value);
	store_relaxed(&link->steps, value + 1);
	store_relaxed(&link->bytes, value + 2);
	for (int i = 0; i < 3; i++)
		store_relaxed(&link->wait_ns[i], value + 3 + (uint64_t)i);
	store_relaxed(&link->wire_ns, value + 7);
	store_release(&link->key, key);
}

static bool is_link(const struct region_link *link, uint64_t key, uint64_t value)
{
	return link->key == key && link->proxies == value && link->steps == value + 1 &&
	       link->bytes == value + 2 && link->wait_ns[0] == value + 3 &&
	       link->wait_ns[1] == value + 4 && link->wait_ns[2] == value + 5 &&
	       link->wire_ns == value + 7;
}

/* The links in use, "other" first, and none that were forgotten. */
static void write_links_at_the_end(void)
{
	uint32_t last;

	begin();
	last = recorder.region.link_count - 1;
	put_link(0, 0, 1000);
	put_link(1, REGION_LINK_KEY(1, 0, 1), 2000);
	put_link(3, SLOT_FORGOTTEN, 3000);
	put_link(4, SLOT_FORGOTTEN + 1, 4000);
	put_link(last, REGION_LINK_KEY(1, 1, 3), 5000);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(1));
	trace_thread_finish();
	expect(has_new("CALX") && file.link_count == 4);
	expect(is_link(&file.links[0], 0, 1000));
	expect(is_link(&file.links[1], REGION_LINK_KEY(1, 0, 1), 2000));
	expect(is_link(&file.links[2], SLOT_FORGOTTEN + 1, 4000));
	expect(is_link(&file.links[3], REGION_LINK_KEY(1, 1, 3), 5000));
}

static void write_no_links_without_transfers(void)
{
	begin();
	put_link(1, REGION_LINK_KEY(1, 0, 1), 2000);
	trace_thread_finish();
	expect(has_new("CAX"));
}

/* What lies behind a table does not belong to it. */
static void keep_to_the_tables(void)
{
	for (uint64_t i = 1; i <= 4; i++)
		play_init(i, 1, 2, 0);
	thread_freeze();
	recorder.region.comm_count = 3;
	recorder.region.link_count = 5;
	for (uint32_t i = 0; i < 6; i++)
		put_link(i, i == 0 ? 0 : REGION_LINK_KEY(1, 0, i), i);
	for (int i = 0; i < 4; i++) {
		memcpy(recorder.region.names[i].text, "SPIRAL", 7);
		store_relaxed(&recorder.region.comms[i].counts.issued, 1);
	}
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(1));
	store_relaxed(&recorder.region.header->names_used, UINT64_C(2));
	start(0);
	pass_at(0);
	expect(has_new("PACCCNNAK") && file.counts.comms == 3);
	store_relaxed(&recorder.region.comms[3].counts.issued, 2);
	pass_at(11 * SECOND_NS);
	expect(has_new("A"));
	trace_thread_finish();
	expect(has_new("CCCALX") && file.link_count == 5 && file.counts.comms == 3);
	expect(is_link(&file.links[4], REGION_LINK_KEY(1, 0, 4), 4));
}

/* One block has all links, or those that it has room for. */
static void write_as_many_links_as_fit(void)
{
	static struct region_link links[TRACE_LINKS_MAX + 3];

	play_init(1, 1, 2, 0);
	thread_freeze();
	recorder.region.links = links;
	recorder.region.link_count = TRACE_LINKS_MAX + 3;
	for (uint32_t i = 0; i < TRACE_LINKS_MAX + 3; i++)
		put_link(i, i == 0 ? 0 : REGION_LINK_KEY(1, 0, i), i);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(1));
	start(0);
	pass_at(0);
	trace_thread_finish();
	expect(has_new("PACACALX") && file.link_count == TRACE_LINKS_MAX);
	expect(is_link(&file.links[LINKS_MOST - 1], REGION_LINK_KEY(1, 0, TRACE_LINKS_MAX - 1),
		       TRACE_LINKS_MAX - 1));
}

/* One second later, with an operation that has ended. */
static const char *next_second(uint32_t count)
{
	static char types[1024];
	size_t before;

	read_trace();
	before = file.blocks;
	put(count);
	pass_at(now_ns + SECOND_NS + 1);
	read_trace();
	text_copy(types, sizeof(types), file.types + before);
	return types;
}

/* Every ten seconds, if there is news. */
static void write_links_now_and_then(void)
{
	begin();
	put_link(1, REGION_LINK_KEY(1, 0, 1), 2000);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(1));
	for (int i = 1; i < 10; i++)
		expect(strcmp(next_second(100), "OAK") == 0);
	expect(strcmp(next_second(100), "OALK") == 0);
	expect(file.link_count == 2 && is_link(&file.links[1], REGION_LINK_KEY(1, 0, 1), 2000));
	for (int i = 0; i < 14; i++)
		expect(strcmp(next_second(100), "OAK") == 0);
	put_link(1, REGION_LINK_KEY(1, 0, 1), 6000);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(2));
	expect(strcmp(next_second(100), "OALK") == 0);
	expect(is_link(&file.links[1], REGION_LINK_KEY(1, 0, 1), 6000));
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(3));
	for (int i = 1; i < 10; i++)
		expect(strcmp(next_second(100), "OAK") == 0);
	expect(strcmp(next_second(100), "OALK") == 0);
	trace_thread_finish();
}

/* At most a sixteenth of what was written since. */
static void write_many_links_rarely(void)
{
	enum { LINKS = 63, BYTES = LINKS * 64 * 16 };
	uint64_t begun, grown, bytes = 0;
	int seconds = 0;

	begin();
	begun = load_relaxed(&recorder.region.header->trace_bytes);
	for (uint32_t i = 1; i < LINKS; i++)
		put_link(i, REGION_LINK_KEY(1, 0, i), i);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(1));
	/* From the beginning of the file. */
	for (begun = 0, grown = 0; strchr(next_second(50), 'L') == NULL; seconds++) {
		bytes = load_relaxed(&recorder.region.header->trace_bytes);
		expect(seconds < 1000);
	}
	/* The second before, there was not enough yet. */
	grown = bytes - begun;
	expect(seconds > 9 && grown < BYTES + 1024);
	expect(load_relaxed(&recorder.region.header->trace_bytes) - begun > BYTES);
	expect(file.link_count == LINKS);
	begun = load_relaxed(&recorder.region.header->trace_bytes);
	store_relaxed(&recorder.region.header->proxy_cursor, UINT64_C(2));
	for (seconds = 0; strchr(next_second(50), 'L') == NULL; seconds++) {
		bytes = load_relaxed(&recorder.region.header->trace_bytes);
		expect(seconds < 1000);
	}
	expect(seconds > 9 && bytes - begun < BYTES + 1024);
	expect(load_relaxed(&recorder.region.header->trace_bytes) - begun > BYTES);
	trace_thread_finish();
}

/* ---- records ------------------------------------------------------------------------------------- */

static void write_whole_blocks(void)
{
	begin();
	put(2 * TRACE_OPS_PER_BLOCK + 10);
	pass_at(0);
	expect(has_new("OOO") && file.ops == 2 * TRACE_OPS_PER_BLOCK + 10);
	put(TRACE_OPS_PER_BLOCK);
	pass_at(0);
	expect(has_new("O") && file.last_op == 3 * TRACE_OPS_PER_BLOCK + 10);
	expect(load_relaxed(&recorder.region.header->trace_records) ==
	       3 * TRACE_OPS_PER_BLOCK + 10);
	expect(load_relaxed(&recorder.region.header->drained) == 3 * TRACE_OPS_PER_BLOCK + 10);
	put(5);
	trace_thread_finish();
	read_trace();
	expect(file.ops == 3 * TRACE_OPS_PER_BLOCK + 15);
	expect(file.types[file.blocks - 1] == 'X');
}

/* A region with details, and nobody who reads them yet. */
static void begin_full(uint64_t quota)
{
	setenv("RINGSIDE_MODE", "full", 1);
	setenv("RINGSIDE_DIR", "/%q", 1); /* no usable path */
	setenv("RINGSIDE_BUFFER", "256KiB", 1);
	play_init(0x11, 1, 2, 0);
	thread_freeze();
	start(quota);
	pass_at(0);
	expect(has_new("PACA"));
}

static void put_details(uint32_t count)
{
	static struct op_detail details[MOST];

	for (uint32_t i = 0; i < count; i++)
		details[i] = (struct op_detail){ .comm = 1,
						 .kind = OP_DETAIL_STEP,
						 .number = i * UINT64_C(0x9e3779b97f4a7c15),
						 .bytes = i * UINT64_C(0xd6e8feb86659fd93) };
	thread_put_details(details, count);
}

static void write_details(void)
{
	const struct region_header *header;

	begin_full(0);
	header = recorder.region.header;
	put(2);
	put_details(3);
	pass_at(0);
	expect(has_new("OD") && file.ops == 2 && file.details == 3);
	expect(load_relaxed(&header->drained) == 2 && load_relaxed(&header->details_drained) == 3 &&
	       load_relaxed(&header->trace_records) == 2);
	put_details(1);
	pass_at(0);
	expect(has_new("D") && file.last_detail == 4 && load_relaxed(&header->trace_records) == 2);
	put_details(recorder.region.detail_count + 7);
	pass_at(0);
	expect(load_relaxed(&header->lost[LOST_DETAIL_OVERRUN]) == 7 &&
	       load_relaxed(&header->lost[LOST_RING_OVERRUN]) == 0);
	put(recorder.region.ring_count + 5);
	pass_at(0);
	expect(load_relaxed(&header->lost[LOST_DETAIL_OVERRUN]) == 7 &&
	       load_relaxed(&header->lost[LOST_RING_OVERRUN]) == 5);
	expect(load_relaxed(&header->details_drained) == load_relaxed(&header->details_head));
	expect(load_relaxed(&header->drained) == load_relaxed(&header->ring_head));
	read_trace();
	expect(file.details == recorder.region.detail_count + 4 &&
	       file.last_detail == recorder.region.detail_count + 11);
	expect(file.ops == recorder.region.ring_count + 2);
	trace_thread_finish();
}

/* One whose writer never finishes is passed after a second, or at the end. */
static void pass_unfinished_ones(void)
{
	struct region_header *header;

	begin_full(0);
	header = recorder.region.header;
	store_release(&header->ring_head, 1);
	store_release(&header->details_head, 1);
	put(1);
	put_details(1);
	pass_at(0);
	pass_at(SECOND_NS - 1);
	expect(has_new(""));
	pass_at(SECOND_NS);
	expect(has_new("OD"));
	expect(load_relaxed(&header->lost[LOST_RING_BUSY]) == 1 &&
	       load_relaxed(&header->lost[LOST_DETAIL_OVERRUN]) == 1);
	store_release(&header->ring_head, 3);
	store_release(&header->details_head, 3);
	trace_thread_finish();
	expect(load_relaxed(&header->lost[LOST_RING_BUSY]) == 2 &&
	       load_relaxed(&header->lost[LOST_DETAIL_OVERRUN]) == 2);
	expect(load_relaxed(&header->lost[LOST_RING_OVERRUN]) == 0 &&
	       load_relaxed(&header->drained) == 3);
}

static void fail(int error, enum lost_reason reason)
{
	struct region_header *header;
	uint64_t lost = 0;
	int plan[2] = { error, error };

	begin_full(0);
	header = recorder.region.header;
	thread_plan_writes(2, plan);
	put(3);
	put_details(5);
	pass_at(0);
	expect(load_relaxed(&thread_writes) == 2 && has_new(""));
	expect(load_relaxed(&header->lost[reason]) == 3 &&
	       load_relaxed(&header->lost[LOST_DETAIL_QUOTA]) == 5);
	for (int i = 0; i < LOST_REASONS; i++)
		lost += load_relaxed(&header->lost[i]);
	expect(lost == 8 && load_relaxed(&header->trace_records) == 0);
	expect(load_relaxed(&header->drained) == 3 && load_relaxed(&header->details_drained) == 5);
	put(2);
	pass_at(0);
	expect(has_new("O") && file.ops == 2 && file.last_op == 5);
	expect(load_relaxed(&header->trace_records) == 2 && load_relaxed(&header->drained) == 5);
	trace_thread_finish();
	expect(load_relaxed(&header->lost[reason]) == 3);
}

static void fail_with_an_error(void)
{
	fail(-EIO, LOST_WRITE_ERROR);
}

static void fail_on_a_full_disk(void)
{
	fail(-ENOSPC, LOST_NO_SPACE);
}

/* A disk that does not answer: the exit goes on, and what reaches the file after all is not lost. */
static void exit_without_the_disk(uint32_t more)
{
	struct region_header *header;
	uint32_t overrun = 0;

	begin_full(0);
	header = recorder.region.header;
	put(4);
	put_details(6);
	pass_at(0);
	store_release(&thread_is_stuck, 1);
	put(2);
	thread_wait_until_stuck();
	put(more);
	put_details(more);
	if (more > recorder.region.ring_count)
		overrun = more - recorder.region.ring_count;
	trace_thread_finish();
	expect(load_relaxed(&header->lost[LOST_WRITE_ERROR]) == 2 &&
	       load_relaxed(&header->lost[LOST_DETAIL_QUOTA]) == 0);
	expect(load_relaxed(&header->lost[LOST_RING_OVERRUN]) == overrun &&
	       load_relaxed(&header->drained) == 6 + overrun);
	expect(load_relaxed(&header->details_drained) + recorder.region.detail_count >=
	       load_relaxed(&header->details_head));
	expect(load_relaxed(&header->lost[LOST_DETAIL_OVERRUN]) ==
	       load_relaxed(&header->details_drained) - 6);
	store_release(&thread_is_stuck, 0);
	while (load_relaxed(&header->lost[LOST_WRITE_ERROR]) != 0)
		sched_yield();
	while (load_relaxed(&header->trace_records) != 6)
		sched_yield();
	expect(load_relaxed(&header->drained) == 6 + overrun);
}

static void exit_with_a_few(void)
{
	exit_without_the_disk(3);
}

static void exit_with_many(void)
{
	exit_without_the_disk(2900);
}

static void keep_to_the_quota(void)
{
	struct region_header *header;
	char path[1200];
	struct stat st;

	begin_full(128 * 1024);
	header = recorder.region.header;
	for (int i = 0; i < 20; i++) {
		put(200);
		put_details(200);
		pass_at(0);
	}
	read_trace();
	expect(file.ops > 0 && load_relaxed(&header->lost[LOST_QUOTA]) == 4000 - file.ops);
	expect(file.details > 0 &&
	       load_relaxed(&header->lost[LOST_DETAIL_QUOTA]) == 4000 - file.details);
	expect(load_relaxed(&header->lost[LOST_WRITE_ERROR]) == 0 &&
	       load_relaxed(&header->lost[LOST_NO_SPACE]) == 0);
	expect(load_relaxed(&header->trace_records) == file.ops);
	trace_thread_finish();
	read_trace();
	expect(file.types[file.blocks - 1] == 'X');
	trace_place_path(path, sizeof(path), &place, 0);
	expect(stat(path, &st) == 0 && (uint64_t)st.st_size == load_relaxed(&header->trace_bytes));
	expect(st.st_size < 128 * 1024);
}

/* ---- the file ------------------------------------------------------------------------------------ */

static void share_with(gid_t group, mode_t mode)
{
	char path[1200];
	struct stat st;

	place.group = group;
	play_init(0x11, 1, 2, 0);
	thread_freeze();
	start(0);
	pass_at(0);
	trace_place_path(path, sizeof(path), &place, 0);
	expect(stat(path, &st) == 0 && (st.st_mode & 07777) == mode);
	trace_thread_finish();
}

static void share_with_a_group(void)
{
	share_with(getegid(), 0640);
}

static void share_with_nobody(void)
{
	share_with((gid_t)-1, 0600);
}

static void need_a_ring(void)
{
	setenv("RINGSIDE_MODE", "profile", 1);
	play_init(0x11, 1, 2, 0);
	expect(trace_thread_start(&place, 0, no_rename) == ERR_NO_SPACE);
	expect(trace_thread_has_comm(0, 1));
	trace_thread_save_comms();
	trace_thread_finish();
}

static void paths(void)
{
	struct settings settings = { .dir = "/a/%j/%h/%r/%p", .group = 7 };
	struct identity identity = {
		.host = "n1", .job = "j", .rank = "3", .pid = 5, .start_ticks = 99
	};
	struct trace_place made;
	char path[1200];

	EXPECT_EQUAL(trace_place_choose(&made, &settings, &identity), OK);
	EXPECT_EQUAL(made.group, 7);
	trace_place_path(path, sizeof(path), &made, 0);
	EXPECT(strcmp(path, "/a/j/n1/3/5/r3-n1-5-99.ringside") == 0);
	trace_place_path(path, sizeof(path), &made, 1);
	EXPECT(strcmp(path, "/a/j/n1/3/5/r3-n1-5-99-1.ringside") == 0);
	text_copy(identity.rank, sizeof(identity.rank), "a/b");
	memset(identity.host, 'h', 240);
	EXPECT_EQUAL(trace_place_choose(&made, &settings, &identity), OK);
	EXPECT_THAT("no part of a name is a directory, and none is too long",
		    strchr(made.name, '/') == NULL && strlen(made.name) == 3 + 200 + 6 + 1);
	text_copy(settings.dir, sizeof(settings.dir), "/a/%x");
	EXPECT_EQUAL(trace_place_choose(&made, &settings, &identity), ERR_FORMAT);
}

static void explanations(void)
{
	char line[1024];

	trace_thread_explain(line, sizeof(line), "/x", ERR_SYSTEM, EIO);
	EXPECT(strcmp(line, "ringside: /x cannot be written (Input/output error); recording "
			    "without a trace file\n") == 0);
	trace_thread_explain(line, sizeof(line), "/x", ERR_NO_SPACE, EIO);
	EXPECT(strcmp(line, "ringside: /x cannot be written (no room); recording without a trace "
			    "file\n") == 0);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*body)(void);
	} cases[] = {
		{ "a hung job's file has a sign of life every ten seconds",
		  write_rarely_while_nothing_ends },
		{ "a working one's has counts every second",
		  write_every_second_while_something_ends },
		{ "of everything", write_all_counts },
		{ "a name is written when it is complete", write_names_when_complete },
		{ "links are in the file at the end", write_links_at_the_end },
		{ "and no others", keep_to_the_tables },
		{ "as many as a block can have", write_as_many_links_as_fit },
		{ "but not without transfers", write_no_links_without_transfers },
		{ "and every ten seconds, if they changed", write_links_now_and_then },
		{ "if they do not take much of the file", write_many_links_rarely },
		{ "a pass writes all there is", write_whole_blocks },
		{ "details have a ring of their own", write_details },
		{ "a record that is never finished is passed", pass_unfinished_ones },
		{ "what could not be written is counted", fail_with_an_error },
		{ "and what the disk has no room for", fail_on_a_full_disk },
		{ "the exit does not wait for a disk that does not answer", exit_with_a_few },
		{ "and counts what was overwritten", exit_with_many },
		{ "and what is over the quota", keep_to_the_quota },
		{ "a group may read the file", share_with_a_group },
		{ "if the user wants that", share_with_nobody },
		{ "without a ring there is no file", need_a_ring },
	};

	paths();
	explanations();
	for (size_t i = 0; i < ARRAY_LENGTH(cases); i++)
		thread_test(cases[i].name, cases[i].body);
	return tap_done();
}
