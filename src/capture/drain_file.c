#include "capture/drain_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/own_thread.h"

enum {
	SLOW_NS = 1000 * 1000 * 1000, /* anchors and counts */
	STILL_SLOWS = 10,	      /* of these, while nothing ends: an anchor says "alive" */
	LINKS_SLOWS = 10,	      /* of these, from links to links */
	LINKS_SHARE = 16,	      /* and links are at most such a part of the file */
};

static void save_counts_of(struct drain_file *file, enum trace_block_type type,
			   const struct trace_comm_counts *comms, uint64_t comm_count)
{
	struct region_header *header = recorder.region.header;
	struct trace_counts counts = { .clock_ns = recorder_now(),
				       .trace_records = header->trace_records,
				       .ring_head = load_relaxed(&header->ring_head),
				       .comms = comm_count };

	for (int i = 0; i < LOST_REASONS; i++)
		counts.lost[i] = load_relaxed(&header->lost[i]);
	for (int i = 0; i < ODD_REASONS; i++)
		counts.odd[i] = load_relaxed(&header->odd[i]);
	trace_write_counts(&file->writer, type, &counts, comms);
}

/* The last that there is to say of a communicator. Should it not fit (quota), its slot can be used
 * again all the same. */
static void save_comm_end(struct drain_file *file, uint32_t slot, const struct region_comm *comm)
{
	struct trace_comm_counts counts = { comm->info.id, comm->counts };

	trace_write_records(&file->writer, TRACE_COMM, &comm->info, sizeof(comm->info), 1);
	save_counts_of(file, TRACE_COUNTS, &counts, 1);
	store_release(&file->ended_comms[slot], comm->info.id);
}

/* A description is written when it is new, and once more, complete, when its communicator has ended
 * or when `all` is asked for. */
static void save_comms(struct drain_file *file, bool all)
{
	struct region_comm comm;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm) ||
		    file->ended_comms[i] == comm.info.id)
			continue;
		if (comm.word & COMM_ENDED)
			save_comm_end(file, i, &comm);
		else if ((all || file->saved_comms[i] != comm.info.id) &&
			 trace_write_records(&file->writer, TRACE_COMM, &comm.info,
					     sizeof(comm.info), 1) == OK)
			file->saved_comms[i] = comm.info.id;
	}
}

static void save_names(struct drain_file *file)
{
	uint64_t used = load_relaxed(&recorder.region.header->names_used);

	for (; file->names_saved < used && file->names_saved < OP_NAMES_INTERNED_MAX;
	     file->names_saved++) {
		const struct region_name *from = &recorder.region.names[file->names_saved];
		struct trace_name name = { .id = (uint32_t)(OP_NAME_INTERNED + file->names_saved) };

		/* Pairs with the release in put_name(): not complete yet. */
		if (load_acquire((const uint64_t *)(const void *)from) == 0)
			return;
		memcpy(name.text, from->text, sizeof(name.text));
		if (trace_write_records(&file->writer, TRACE_NAME, &name, sizeof(name), 1) != OK)
			return;
	}
}

static void save_counts(struct drain_file *file, enum trace_block_type type)
{
	struct region_comm comm;
	uint64_t count = 0;

	file->counts_head = load_relaxed(&recorder.region.header->ring_head);
	file->counts_issued = 0;
	for (uint32_t i = 0; i < recorder.region.comm_count; i++) {
		if (!own_thread_read_comm(&recorder.region.comms[i], &comm))
			continue;
		file->counts[count++] = (struct trace_comm_counts){ comm.info.id, comm.counts };
		file->counts_issued += comm.counts.issued;
	}
	save_counts_of(file, type, file->counts, count);
}

static uint64_t issued_so_far(void)
{
	struct region_comm comm;
	uint64_t issued = 0;

	for (uint32_t i = 0; i < recorder.region.comm_count; i++)
		if (own_thread_read_comm(&recorder.region.comms[i], &comm))
			issued += comm.counts.issued;
	return issued;
}

static void copy_link(struct region_link *to, const struct region_link *from)
{
	to->key = load_relaxed(&from->key);
	to->proxies = load_relaxed(&from->proxies);
	to->steps = load_relaxed(&from->steps);
	to->bytes = load_relaxed(&from->bytes);
	for (int i = 0; i < 3; i++)
		to->wait_ns[i] = load_relaxed(&from->wait_ns[i]);
	to->reserved = 0;
}

/* Those that are in use, "other" first; how many. A slot that changes hands meanwhile, which takes a
 * communicator that is forgotten, may be of both: it is left out. */
static uint32_t copy_links(struct drain_file *file)
{
	const struct region_link *links = recorder.region.links;
	uint32_t count = 0;

	for (uint32_t i = 0; i < recorder.region.link_count && count < TRACE_LINKS_MAX; i++) {
		if (i != 0 && load_relaxed(&links[i].key) <= SLOT_FORGOTTEN)
			continue;
		copy_link(&file->links[count], &links[i]);
		/* Pairs with the release in forget_links(). */
		fence_acquire();
		count += load_relaxed(&links[i].key) == file->links[count].key;
	}
	return count;
}

/* At the end in any case; before that now and then, when there is news and it does not make the file much
 * longer. */
static void save_links(struct drain_file *file, bool is_last)
{
	uint64_t proxies = load_relaxed(&recorder.region.header->proxy_cursor);
	uint64_t grown = file->writer.bytes - file->links_bytes;
	uint32_t count;

	file->links_age++;
	if (proxies == 0 ||
	    (!is_last && (file->links_age < LINKS_SLOWS || proxies == file->links_proxies)))
		return;
	count = copy_links(file);
	if (!is_last && count * sizeof(struct region_link) * LINKS_SHARE > grown)
		return;
	if (trace_write_records(&file->writer, TRACE_LINKS, file->links, sizeof(*file->links),
				count) != OK)
		return;
	file->links_age = 0;
	file->links_proxies = proxies;
	file->links_bytes = file->writer.bytes;
}

static void save_anchor(struct drain_file *file)
{
	struct clock_anchor anchor = clock_anchor_take(&recorder.clock);

	store_relaxed(&recorder.region.header->last_anchor.clock_ns, anchor.clock_ns);
	store_relaxed(&recorder.region.header->last_anchor.wall_ns, anchor.wall_ns);
	trace_write_records(&file->writer, TRACE_ANCHOR, &anchor, sizeof(anchor), 1);
}

/*
 * Now and then what is known besides records. While nothing ends an anchor is enough, and counts when
 * something was issued: a job that is killed after it hung for an hour has a file that says so.
 */
void drain_file_save_slowly(struct drain_file *file, uint64_t now)
{
	uint64_t age_ns = now - file->slow_ns;

	if (age_ns <= SLOW_NS)
		return;
	if (load_relaxed(&recorder.region.header->ring_head) != file->counts_head) {
		file->slow_ns = now;
		save_anchor(file);
		save_links(file, false);
		save_counts(file, TRACE_COUNTS);
	} else if (age_ns > (uint64_t)STILL_SLOWS * SLOW_NS) {
		file->slow_ns = now;
		save_anchor(file);
		if (issued_so_far() != file->counts_issued)
			save_counts(file, TRACE_COUNTS);
	}
}

void drain_file_save_news(struct drain_file *file)
{
	save_comms(file, false);
	save_names(file);
}

void drain_file_close(struct drain_file *file)
{
	save_comms(file, true);
	save_anchor(file);
	save_links(file, true);
	save_counts(file, TRACE_CLOSE);
	store_relaxed(&recorder.region.header->trace_bytes, file->writer.bytes);
	trace_writer_close(&file->writer);
}

bool drain_file_init(struct drain_file *file)
{
	const struct region_writer *region = &recorder.region;

	file->saved_comms = calloc(region->comm_count, sizeof(*file->saved_comms));
	file->ended_comms = calloc(region->comm_count, sizeof(*file->ended_comms));
	file->counts = calloc(region->comm_count, sizeof(*file->counts));
	file->links = calloc((size_t)region->link_count + 1, sizeof(*file->links));
	return file->saved_comms && file->ended_comms && file->counts && file->links;
}

/* The group may read, if there is one and it is the user's to give. */
static void share(int fd, gid_t group)
{
	if (group != (gid_t)-1 && fchown(fd, (uid_t)-1, group) == 0)
		fchmod(fd, 0640);
}

enum status drain_file_open(struct drain_file *file, const char *path, gid_t group, uint64_t quota)
{
	enum status status = trace_writer_open(&file->writer, path, 0600, quota);

	if (status == OK)
		share(file->writer.fd, group);
	return status;
}

enum status drain_file_begin(struct drain_file *file)
{
	const struct region_writer *region = &recorder.region;
	enum status status = trace_write_text(&file->writer, TRACE_PROCESS, region->info,
					      region->header->info_bytes);

	if (status == OK)
		status = trace_write_records(&file->writer, TRACE_ANCHOR,
					     &region->header->first_anchor,
					     sizeof(struct clock_anchor), 1);
	return status;
}

void drain_file_discard(struct drain_file *file, const char *path)
{
	int error = errno;

	trace_writer_close(&file->writer);
	unlink(path);
	errno = error;
}
