/* Extracts facts from each kind of message, one section per subject. */
#include "import/nccl_log.h"
#include "import/nccl_log_internal.h"

#include <string.h>

#include "common/attributes.h"
#include "common/hash.h"
#include "common/secret.h"
#include "common/text.h"

static uint64_t hash_log_text(uint64_t before, struct log_text text)
{
	return hash_word(before, hash_bytes(text.at, log_left(&text)));
}

static struct log_text text_of(const char *text)
{
	return (struct log_text){ text, text + strlen(text) };
}

/* Communicators: start and end of init, how long it took, number of channels. */

static uint64_t pointer_key(uint32_t process, uint64_t pointer)
{
	return hash_word(hash_word(2, process), pointer);
}

static uint64_t thread_key(const struct log_line *line)
{
	return hash_word(hash_word(3, line->process), line->thread);
}

static int32_t log_comm_by_pointer(struct log_line *line, uint64_t pointer)
{
	return (int32_t)log_find_key(line->log, LOG_POINTER, pointer_key(line->process, pointer));
}

static bool comm_has_member(const struct nccl_log_comm *comm, int32_t from, int32_t to)
{
	return comm->rank == from || comm->rank == to;
}

int32_t log_comm_of(struct log_line *line, int32_t from, int32_t to)
{
	int32_t index = (int32_t)log_find_key(line->log, LOG_THREAD, thread_key(line));
	const struct nccl_log_comm *comms = line->log->comms;

	if (index != LOG_NONE && (from < 0 || comm_has_member(&comms[index], from, to)))
		return index;
	/*
	 * Connections are also made by threads that do not identify themselves: the latest one that
	 * fits.
	 */
	index = line->log->processes[line->process].last_comm;
	for (int i = 0; i < 16 && index != LOG_NONE; i++, index = comms[index].previous)
		if (from < 0 || comm_has_member(&comms[index], from, to))
			return index;
	return LOG_NONE;
}

/* ---- "... comm 0x5581 rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 60 commId 0x8cda - Init START" ------- */

struct words {
	uint64_t pointer, bus_id, hash, parent;
	int32_t rank, nranks, cuda_device, nvml_device, count, color;
	int32_t nnodes, local_ranks, local_rank, mnnvl;
};

static const struct {
	const char *word;
	size_t at;
	bool is_hex; /* a uint64_t; else an int32_t */
} init_words[] = {
	{ "rank ", offsetof(struct words, rank), false },
	{ "nranks ", offsetof(struct words, nranks), false },
	{ "nRanks ", offsetof(struct words, nranks), false },
	{ "cudaDev ", offsetof(struct words, cuda_device), false },
	{ "nvmlDev ", offsetof(struct words, nvml_device), false },
	{ "splitCount ", offsetof(struct words, count), false },
	{ "childCount ", offsetof(struct words, count), false },
	{ "color ", offsetof(struct words, color), false },
	{ "nNodes ", offsetof(struct words, nnodes), false },
	{ "localRanks ", offsetof(struct words, local_ranks), false },
	{ "localRank ", offsetof(struct words, local_rank), false },
	{ "MNNVL ", offsetof(struct words, mnnvl), false },
	{ "comm ", offsetof(struct words, pointer), true },
	{ "busId ", offsetof(struct words, bus_id), true },
	{ "commId ", offsetof(struct words, hash), true },
	{ "parent ", offsetof(struct words, parent), true },
};

static bool take_word(struct log_text *text, struct words *words)
{
	int64_t key;

	for (size_t i = 0; i < ARRAY_LENGTH(init_words); i++) {
		void *to = (char *)words + init_words[i].at;

		if (log_skip_bytes(text, init_words[i].word, strlen(init_words[i].word)))
			return init_words[i].is_hex ? log_hex(text, to) : log_int(text, to);
	}
	return LOG_SKIP(text, "key ") && log_number(text, &key);
}

/* Pairs of word and number from "comm " on, until something else comes. */
static bool read_words(struct log_text *text, struct words *words)
{
	*words = (struct words){ .rank = -1,
				 .nranks = -1,
				 .cuda_device = -1,
				 .nvml_device = -1,
				 .count = -1,
				 .color = -1,
				 .nnodes = -1,
				 .local_ranks = -1,
				 .local_rank = -1,
				 .mnnvl = -1 };
	while (take_word(text, words))
		LOG_SKIP(text, " ");
	return words->pointer != 0 && words->rank >= 0 && words->nranks > words->rank;
}

static uint64_t group_of(struct log_line *line, const struct words *words)
{
	int32_t parent;

	if (words->hash != 0 || words->parent == 0)
		return words->hash;
	/* The parent's group, because pointers differ between processes. */
	parent = log_comm_by_pointer(line, words->parent);
	return hash_word(hash_word(parent != LOG_NONE ? line->log->comms[parent].group : 1,
				   (uint64_t)words->count),
			 (uint64_t)words->color + 1);
}

static bool comm_is_same(const struct nccl_log_comm *comm, const struct words *words,
			 uint64_t group)
{
	return comm->rank == words->rank && comm->nranks == words->nranks &&
	       (comm->group == group || group == 0);
}

/* The one with this pointer; a new one if there is none or the memory was reused. */
static struct nccl_log_comm *find_comm(struct log_line *line, const struct words *words)
{
	struct nccl_log *log = line->log;
	int32_t index = log_comm_by_pointer(line, words->pointer);
	uint64_t group = group_of(line, words);
	struct nccl_log_comm *comm;

	if (index == LOG_NONE || !comm_is_same(&log->comms[index], words, group)) {
		struct nccl_log_process *process = &log->processes[line->process];

		comm = log_add(log, LOG_COMMS);
		if (comm == NULL)
			return NULL;
		index = (int32_t)(comm - log->comms);
		*comm = (struct nccl_log_comm){
			.process = line->process,
			.pointer = words->pointer,
			.group = group,
			.rank = words->rank,
			.nranks = words->nranks,
			.color = -1,
			.cuda_device = -1,
			.nvml_device = -1,
			.nnodes = -1,
			.local_ranks = -1,
			.local_rank = -1,
			.mnnvl = -1,
			.function = "",
			.end_word = "",
			.total_s = -1,
			.bootstrap_s = -1,
			.coll_channels = -1,
			.collnet_channels = -1,
			.nvls_channels = -1,
			.p2p_channels = -1,
			.p2p_per_peer = -1,
			.ring_pxn = -1,
			.ring_gdr = -1,
			.previous = process->last_comm,
		};
		for (int i = 0; i < NCCL_LOG_PHASES; i++)
			comm->phase_s[i] = -1;
		process->last_comm = index;
		log_set_key(log, LOG_POINTER, pointer_key(line->process, words->pointer),
			    (uint32_t)index);
	}
	if (line->thread != 0)
		log_set_key(log, LOG_THREAD, thread_key(line), (uint32_t)index);
	return &log->comms[index];
}

static void keep_words(struct nccl_log_comm *comm, const struct words *words)
{
	if (words->hash != 0)
		comm->hash = words->hash;
	if (words->parent != 0)
		comm->parent = words->parent;
	if (words->bus_id != 0)
		comm->bus_id = words->bus_id;
	if (words->cuda_device >= 0)
		comm->cuda_device = words->cuda_device;
	if (words->nvml_device >= 0)
		comm->nvml_device = words->nvml_device;
	if (words->color >= 0)
		comm->color = words->color;
	if (words->nnodes >= 0)
		comm->nnodes = words->nnodes;
	if (words->local_ranks >= 0)
		comm->local_ranks = words->local_ranks;
	if (words->local_rank >= 0)
		comm->local_rank = words->local_rank;
	if (words->mnnvl >= 0)
		comm->mnnvl = words->mnnvl;
}

bool log_take_init(struct log_line *line)
{
	struct log_text text = line->message, function = { text.at, text.at }, word;
	struct nccl_log_comm *comm;
	struct words words;

	if (LOG_SKIP(&text, "[Rank "))
		log_until(&text, ' ');
	if (text.at < text.end && text.at[0] == 'n')
		function = log_until(&text, ' ');
	if (!read_words(&text, &words))
		return false;
	line->log->kinds[NCCL_LOG_KIND_INIT]++;
	comm = find_comm(line, &words);
	if (comm == NULL)
		return true;
	keep_words(comm, &words);
	if (log_left(&function) > 0)
		comm->function = log_keep(line->log, function);
	LOG_SKIP(&text, "- ");
	word = log_until(&text, ' ');
	if (log_has(word, "Init") && LOG_SKIP(&text, "START")) {
		if (comm->start.line == 0)
			comm->start = line->place;
	} else if (log_has(word, "Init") && LOG_SKIP(&text, "COMPLETE")) {
		comm->complete = line->place;
	} else if (LOG_SKIP(&text, "COMPLETE") || LOG_SKIP(&text, "START")) {
		comm->end = line->place;
		comm->end_word = log_keep(line->log, word);
	}
	return true;
}

/* ---- times ----------------------------------------------------------------------------------- */

/* The latest communicator of this process with this rank, whichever thread logged it. */
static struct nccl_log_comm *comm_with(struct log_line *line, int32_t rank, int32_t nranks)
{
	int32_t index = log_comm_of(line, rank, rank);

	for (; index != LOG_NONE; index = line->log->comms[index].previous)
		if (line->log->comms[index].rank == rank &&
		    line->log->comms[index].nranks == nranks)
			return &line->log->comms[index];
	return NULL;
}

static void read_phases(struct log_text *text, struct nccl_log_comm *comm)
{
	for (;;) {
		struct log_text word;
		double seconds;

		LOG_SKIP(text, "(");
		LOG_SKIP(text, ", ");
		word = log_until(text, ' ');
		if (log_left(&word) == 0 || !log_real(text, &seconds))
			return;
		for (int i = 0; i < NCCL_LOG_PHASES; i++) {
			const char *name = nccl_log_phase_name((enum nccl_log_phase)i);

			if (strlen(name) == log_left(&word) &&
			    memcmp(name, word.at, log_left(&word)) == 0)
				comm->phase_s[i] = seconds;
		}
	}
}

/* "Init timings - ncclCommInitRank: rank 0 nranks 4 total 0.41 (kernels 0.32, ...)" */
bool log_take_timings(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_comm *comm;
	int32_t rank, nranks;
	double total;

	if (!log_find(&text, ": rank ") || !log_int(&text, &rank) || !LOG_SKIP(&text, " nranks ") ||
	    !log_int(&text, &nranks) || !LOG_SKIP(&text, " total ") || !log_real(&text, &total))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TIMING]++;
	comm = comm_with(line, rank, nranks);
	if (comm == NULL)
		return true;
	comm->total_s = total;
	comm->timings = line->place;
	LOG_SKIP(&text, " ");
	read_phases(&text, comm);
	return true;
}

bool log_take_bootstrap_timings(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t index = log_comm_of(line, -1, -1);
	double total;

	if (!log_find(&text, " total ") || !log_real(&text, &total))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TIMING]++;
	if (index != LOG_NONE)
		line->log->comms[index].bootstrap_s = total;
	return true;
}

/* ---- channels -------------------------------------------------------------------------------- */

/* "2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer" */
bool log_take_channel_counts(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t coll, collnet = -1, nvls = -1, p2p = -1, per_peer = -1, index;
	struct nccl_log_comm *comm;

	if (!log_int(&text, &coll) || !LOG_SKIP(&text, " coll channels"))
		return false;
	while (LOG_SKIP(&text, ", ")) {
		int32_t number;

		if (!log_int(&text, &number))
			return false;
		if (LOG_SKIP(&text, " collnet channels"))
			collnet = number;
		else if (LOG_SKIP(&text, " nvls channels"))
			nvls = number;
		else if (LOG_SKIP(&text, " p2p channels per peer"))
			per_peer = number;
		else if (LOG_SKIP(&text, " p2p channels"))
			p2p = number;
		else
			return false;
	}
	line->log->kinds[NCCL_LOG_KIND_CHANNELS]++;
	index = log_comm_of(line, -1, -1);
	if (index == LOG_NONE)
		return true;
	comm = &line->log->comms[index];
	comm->coll_channels = coll;
	comm->collnet_channels = collnet;
	comm->nvls_channels = nvls;
	comm->p2p_channels = p2p;
	comm->p2p_per_peer = per_peer;
	comm->channels = line->place;
	return true;
}

/* "Connected all rings, use ring PXN 0 GDR 1", "Connected all trees" */
bool log_take_connected(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t index = log_comm_of(line, -1, -1);
	struct nccl_log_comm *comm = index != LOG_NONE ? &line->log->comms[index] : NULL;

	line->log->kinds[NCCL_LOG_KIND_INIT]++;
	if (comm == NULL)
		return true;
	if (LOG_SKIP(&text, "Connected all trees"))
		comm->has_trees = true;
	if (LOG_SKIP(&text, "Connected all rings")) {
		comm->has_rings = true;
		if (LOG_SKIP(&text, ", use ring PXN ") && log_int(&text, &comm->ring_pxn) &&
		    LOG_SKIP(&text, " GDR "))
			log_int(&text, &comm->ring_gdr);
	}
	return true;
}

/* ---- versions -------------------------------------------------------------------------------- */

/* "NCCL version 2.28.9+cuda13.0"; some builds append more. */
bool log_take_version(struct log_line *line)
{
	struct nccl_log_process *process = &line->log->processes[line->process];
	struct log_text text = line->message, version;

	LOG_SKIP(&text, "NCCL version ");
	version = log_until(&text, ' ');
	if (log_left(&version) == 0 || version.at[0] < '0' || version.at[0] > '9')
		return false;
	line->log->kinds[NCCL_LOG_KIND_VERSION]++;
	process->version = log_keep(line->log, log_until(&version, '+'));
	LOG_SKIP(&version, "cuda");
	process->cuda_version = log_keep(line->log, version);
	process->version_place = line->place;
	return true;
}

/* "NCCL git version BRANCH REVISION", after the version. */
bool log_take_git(struct log_line *line)
{
	struct nccl_log_process *process = &line->log->processes[line->process];
	struct log_text text = line->message;

	if (!LOG_SKIP(&text, "NCCL git version "))
		return false;
	line->log->kinds[NCCL_LOG_KIND_VERSION]++;
	process->git = log_keep(line->log, log_trim(text));
	process->git_place = line->place;
	return true;
}

bool log_take_driver(struct log_line *line)
{
	struct log_text text = line->message;

	if (!LOG_SKIP(&text, "cudaDriverVersion ") ||
	    !log_int(&text, &line->log->processes[line->process].driver_version))
		return false;
	line->log->kinds[NCCL_LOG_KIND_VERSION]++;
	return true;
}

/* How ranks are connected: links with their transport, rings, trees. */

/* ---- "Channel 00/0 : 2[0] -> 0[0] [receive] via NET/Socket/0" ---------------------------------- */

static bool read_end(struct log_text *text, int32_t *rank, int32_t *device)
{
	/* Old releases have the bus id in the brackets. */
	uint64_t bus;

	if (!log_int(text, rank) || !LOG_SKIP(text, "["))
		return false;
	if (!log_int(text, device) || text->at == text->end || *text->at != ']') {
		*device = -1;
		while (text->at < text->end && *text->at != ']' && log_hex(text, &bus))
			;
	}
	return LOG_SKIP(text, "]");
}

struct via {
	struct log_text network;
	struct log_text detail;
};

/* "P2P/CUMEM/read", "P2P/indirect/3[3]", "P2P/direct pointer" */
static bool read_p2p(struct log_text *text, struct nccl_log_link *link, struct via *via)
{
	int32_t device;

	via->detail = *text;
	if (LOG_SKIP(text, "direct pointer"))
		link->transport = NCCL_LOG_P2P_DIRECT;
	else if (LOG_SKIP(text, "IPC"))
		link->transport = NCCL_LOG_P2P_IPC;
	else if (LOG_SKIP(text, "CUMEM") || LOG_SKIP(text, "MNNVL")) {
		link->transport = NCCL_LOG_P2P_CUMEM;
		if (via->detail.at[0] == 'M')
			link->flags |= NCCL_LOG_LINK_MULTINODE;
	} else if (LOG_SKIP(text, "indirect/")) {
		link->transport = NCCL_LOG_P2P_INDIRECT;
		return read_end(text, &link->through, &device);
	} else
		link->transport = NCCL_LOG_P2P_OTHER;
	if (log_has(*text, "/read"))
		link->flags |= NCCL_LOG_LINK_READ;
	return true;
}

/* "Socket/0", "IB/3(5)/GDRDMA(PCI)/Shared", "AWS Libfabric/2/GDRDMA" */
static bool read_net(struct log_text *text, struct nccl_log_link *link, struct via *via)
{
	via->network = log_until(text, '/');
	if (log_left(&via->network) == 0 || !log_int(text, &link->device))
		return false;
	if (LOG_SKIP(text, "(")) {
		link->flags |= NCCL_LOG_LINK_PXN;
		if (!log_int(text, &link->through) || !LOG_SKIP(text, ")"))
			return false;
	}
	via->detail = *text;
	if (LOG_SKIP(text, "/GDRDMA"))
		link->flags |= NCCL_LOG_LINK_GDR;
	if (LOG_SKIP(text, "(PCI)"))
		link->flags |= NCCL_LOG_LINK_GDR_PCI;
	if (log_has(*text, "/Shared"))
		link->flags |= NCCL_LOG_LINK_SHARED;
	return true;
}

static bool read_via(struct log_text *text, struct nccl_log_link *link, struct via *via)
{
	if (LOG_SKIP(text, "P2P/"))
		return read_p2p(text, link, via);
	if (LOG_SKIP(text, "SHM")) {
		link->transport = NCCL_LOG_SHM;
		LOG_SKIP(text, "/");
		via->detail = *text;
		return true;
	}
	if (LOG_SKIP(text, "NET/")) {
		link->transport = NCCL_LOG_NET;
		return read_net(text, link, via);
	}
	if (LOG_SKIP(text, "COLLNET/")) {
		link->transport = NCCL_LOG_COLLNET;
		return read_net(text, link, via);
	}
	return false;
}

static bool keep_link(struct log_line *line, struct nccl_log_link *read, struct via *via,
		      int32_t channel)
{
	uint64_t key = hash_word(hash_word(read->process, (uint64_t)read->comm),
				 (uint64_t)(uint32_t)read->from << 32 | (uint32_t)read->to);
	struct nccl_log_link *link;
	bool is_new;

	key = hash_word(key, (uint64_t)read->transport << 56 | (uint64_t)read->flags << 48 |
				     (uint64_t)(unsigned char)read->direction << 40 |
				     (uint64_t)(uint8_t)read->connection << 32 |
				     (uint32_t)read->device);
	key = hash_word(key, (uint64_t)(uint32_t)read->through);
	key = hash_log_text(hash_log_text(key, via->network), via->detail);
	line->log->kinds[read->transport == NCCL_LOG_COLLNET ? NCCL_LOG_KIND_COLLNET
							     : NCCL_LOG_KIND_LINK]++;
	link = log_entry(line->log, LOG_LINKS, key, &is_new);
	if (link == NULL)
		return true;
	if (is_new) {
		*link = *read;
		link->place = line->place;
		link->network = log_keep(line->log, via->network);
		link->detail = log_keep(line->log, log_trim(via->detail));
	}
	link->lines++;
	if (channel >= 0 && channel < 128)
		link->channels[channel / 64] |= UINT64_C(1) << channel % 64;
	return true;
}

static struct nccl_log_link blank_link(const struct log_line *line)
{
	return (struct nccl_log_link){ .process = line->process,
				       .comm = LOG_NONE,
				       .from = -1,
				       .to = -1,
				       .from_device = -1,
				       .to_device = -1,
				       .connection = -1,
				       .direction = '-',
				       .through = -1,
				       .device = -1 };
}

/* " [send] via NET/Socket/0"; the direction may be missing. */
static bool read_way(struct log_text *text, struct nccl_log_link *link, struct via *via)
{
	if (LOG_SKIP(text, " [send]"))
		link->direction = 's';
	else if (LOG_SKIP(text, " [receive]"))
		link->direction = 'r';
	return LOG_SKIP(text, " via ") && read_via(text, link, via);
}

bool log_take_link(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_link link = blank_link(line);
	struct via via = { { text.at, text.at }, { text.at, text.at } };
	int32_t channel;

	if (!LOG_SKIP(&text, "Channel ") || !log_int(&text, &channel))
		return false;
	if (LOG_SKIP(&text, "/") && !log_int(&text, &link.connection))
		return false;
	if (!LOG_SKIP(&text, " : ") || !read_end(&text, &link.from, &link.from_device) ||
	    !LOG_SKIP(&text, " -> ") || !read_end(&text, &link.to, &link.to_device))
		return log_take_ring(line);
	if (!read_way(&text, &link, &via))
		return false;
	link.comm = log_comm_of(line, link.from, link.to);
	return keep_link(line, &link, &via, channel);
}

/* "CollNet 00/1 : 3 [send] via COLLNET/SHARP/0/GDRDMA" */
bool log_take_collnet_link(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_link link = blank_link(line);
	struct via via = { { text.at, text.at }, { text.at, text.at } };
	int32_t channel;

	if (!LOG_SKIP(&text, "CollNet ") || !log_int(&text, &channel) || !LOG_SKIP(&text, "/") ||
	    !log_int(&text, &link.connection) || !LOG_SKIP(&text, " : ") ||
	    !log_int(&text, &link.from))
		return false;
	if (!read_way(&text, &link, &via))
		return false;
	link.comm = log_comm_of(line, link.from, link.from);
	return keep_link(line, &link, &via, channel);
}

/* ---- rings and trees ------------------------------------------------------------------------- */

static struct nccl_log_channel *find_channel(struct log_line *line, int32_t rank, int32_t number)
{
	int32_t comm = log_comm_of(line, rank, rank);
	struct nccl_log_channel *channel;
	uint64_t key;
	bool is_new;

	if (comm == LOG_NONE)
		return NULL;
	key = hash_word(hash_word(5, (uint64_t)comm), (uint64_t)number);
	channel = log_entry(line->log, LOG_CHANNELS, key, &is_new);
	if (channel != NULL && is_new)
		*channel = (struct nccl_log_channel){ .comm = comm,
						      .channel = number,
						      .ring_previous = -2,
						      .ring_next = -2,
						      .tree_up = -2,
						      .tree_down = { -2, -2, -2 },
						      .ring = "",
						      .place = line->place };
	return channel;
}

/* "Channel 00/02 : 0 1 2 3", only by rank 0; "Ring 00 : 1 -> 0 -> 3" by each rank. */
bool log_take_ring(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t number, count, previous, rank, next;
	struct nccl_log_channel *channel;

	if (LOG_SKIP(&text, "Channel ")) {
		if (!log_int(&text, &number) || !LOG_SKIP(&text, "/") || !log_int(&text, &count) ||
		    !LOG_SKIP(&text, " :"))
			return false;
		line->log->kinds[NCCL_LOG_KIND_RING]++;
		channel = find_channel(line, -1, number);
		if (channel != NULL)
			channel->ring = log_keep(line->log, log_trim(text));
		return true;
	}
	if (!LOG_SKIP(&text, "Ring ") || !log_int(&text, &number) || !LOG_SKIP(&text, " : ") ||
	    !log_int(&text, &previous) || !LOG_SKIP(&text, " -> ") || !log_int(&text, &rank) ||
	    !LOG_SKIP(&text, " -> ") || !log_int(&text, &next))
		return false;
	line->log->kinds[NCCL_LOG_KIND_RING]++;
	channel = find_channel(line, rank, number);
	if (channel != NULL) {
		channel->ring_previous = previous;
		channel->ring_next = next;
	}
	return true;
}

static bool read_three(struct log_text *text, int32_t down[3])
{
	return log_int(text, &down[0]) && LOG_SKIP(text, "/") && log_int(text, &down[1]) &&
	       LOG_SKIP(text, "/") && log_int(text, &down[2]);
}

/* "Trees [0] 2/-1/-1->0->-1 [1] -1/-1/-1->0->1": down, rank, up. */
bool log_take_trees(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t number, rank, up, down[3];

	if (!LOG_SKIP(&text, "Trees"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TREE]++;
	while (LOG_SKIP(&text, " [") && log_int(&text, &number) && LOG_SKIP(&text, "] ") &&
	       read_three(&text, down) && LOG_SKIP(&text, "->") && log_int(&text, &rank) &&
	       LOG_SKIP(&text, "->") && log_int(&text, &up)) {
		struct nccl_log_channel *channel = find_channel(line, rank, number);

		if (channel == NULL)
			continue;
		channel->tree_up = up;
		memcpy(channel->tree_down, down, sizeof(down));
	}
	return true;
}

/* "Tree 0 : -1 -> 0 -> 1/-1/-1": up, rank, down. */
bool log_take_tree(struct log_line *line)
{
	struct log_text text = line->message;
	int32_t number, rank, up, down[3];
	struct nccl_log_channel *channel;

	if (!LOG_SKIP(&text, "Tree ") || !log_int(&text, &number) || !LOG_SKIP(&text, " : ") ||
	    !log_int(&text, &up) || !LOG_SKIP(&text, " -> ") || !log_int(&text, &rank) ||
	    !LOG_SKIP(&text, " -> ") || !read_three(&text, down))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TREE]++;
	channel = find_channel(line, rank, number);
	if (channel != NULL && channel->tree_up == -2) {
		channel->tree_up = up;
		memcpy(channel->tree_down, down, sizeof(down));
	}
	return true;
}

/* What was found and configured: network devices, GPUDirect RDMA, plugins, variables. */

/* ---- network devices ------------------------------------------------------------------------- */

static struct nccl_log_net *find_net(struct log_line *line, struct log_text network, int32_t index,
				     struct log_text name)
{
	uint64_t key = hash_word(hash_word(7, line->process), (uint64_t)index);
	struct nccl_log_net *net;
	bool is_new;

	key = hash_log_text(hash_log_text(key, network), name);
	net = log_entry(line->log, LOG_NETS, key, &is_new);
	if (net != NULL && is_new)
		*net = (struct nccl_log_net){ .process = line->process,
					      .network = log_keep(line->log, network),
					      .index = index,
					      .name = log_keep(line->log, name),
					      .port = -1,
					      .link = "",
					      .address = "",
					      .speed = -1,
					      .gdr = -1,
					      .place = line->place };
	return net;
}

/* "mlx5_0:1/RoCE" */
static void keep_ib_device(struct log_line *line, int32_t index, struct log_text word)
{
	struct log_text name = log_until(&word, ':');
	struct nccl_log_net *net;
	int32_t port = -1;

	log_int(&word, &port);
	log_until(&word, '/'); /* since 2.30 rail and plane: ":0:1" */
	net = find_net(line, text_of("IB"), index, name);
	if (net == NULL)
		return;
	net->port = port;
	net->link = log_keep(line->log, log_until(&word, '/'));
}

/* "[2]={[0] mlx5_0:1/IB, [1] mlx5_1:1/IB}": several merged. */
static void keep_merged_devices(struct log_line *line, int32_t index, struct log_text inside)
{
	while (log_left(&inside) > 0) {
		struct log_text word = log_trim(log_until(&inside, ','));

		if (LOG_SKIP(&word, "["))
			log_until(&word, ']');
		if (log_left(&word) > 0)
			keep_ib_device(line, index, log_trim(word));
	}
}

static bool take_ib_devices(struct log_line *line, struct log_text text)
{
	struct log_text word;
	int32_t index;

	while (LOG_SKIP(&text, " ["),
	       text.at < text.end && log_int(&text, &index) && LOG_SKIP(&text, "]")) {
		if (LOG_SKIP(&text, "={")) {
			keep_merged_devices(line, index, log_until(&text, '}'));
			continue;
		}
		for (word = text; text.at < text.end && *text.at != ' ' && *text.at != ';';
		     text.at++)
			;
		word.end = text.at;
		keep_ib_device(line, index, word);
	}
	return true;
}

static bool take_socket_devices(struct log_line *line, struct log_text text)
{
	int32_t index;

	while (LOG_SKIP(&text, " [") && log_int(&text, &index) && LOG_SKIP(&text, "]")) {
		struct log_text word = log_until(&text, ' ');
		struct log_text name = log_until(&word, ':');
		struct nccl_log_net *net = find_net(line, text_of("Socket"), index, name);

		if (net != NULL)
			net->address = log_keep(line->log, log_until(&word, '<'));
		text.at -= text.at < text.end; /* the blank belongs to the next one */
	}
	return true;
}

/* "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>", "NET/Socket : Using [0]eth0:10.0.0.1<0>" */
bool log_take_net_using(struct log_line *line)
{
	struct log_text text = line->message;
	const bool is_ib = LOG_SKIP(&text, "NET/IB : Using");

	if (!is_ib && !LOG_SKIP(&text, "NET/Socket : Using"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_NET_DEVICE]++;
	log_note(line, NCCL_LOG_KIND_NET_DEVICE);
	return is_ib ? take_ib_devices(line, text) : take_socket_devices(line, text);
}

/* "NET/IB : Made virtual device [8] name=mlx5_0+mlx5_1 speed=800000 ndevs=2" */
bool log_take_virtual_device(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_net *net;
	struct log_text name;
	int32_t index;

	if (!log_find(&text, "Made virtual device [") || !log_int(&text, &index) ||
	    !LOG_SKIP(&text, "] name="))
		return false;
	name = log_until(&text, ' ');
	line->log->kinds[NCCL_LOG_KIND_NET_DEVICE]++;
	net = find_net(line, text_of("IB"), index, name);
	if (net == NULL)
		return true;
	if (LOG_SKIP(&text, "speed="))
		log_int(&text, &net->speed);
	net->is_virtual = log_find(&text, "ndevs=") && !LOG_SKIP(&text, "1 ") &&
			  !(log_left(&text) == 1 && text.at[0] == '1');
	return true;
}

/* "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'" */
bool log_take_net_gdr(struct log_line *line)
{
	struct log_text text = line->message, network;
	struct nccl_log_net *net;
	int32_t index;
	bool is_on;

	if (!LOG_SKIP(&text, "NET/"))
		return false;
	network = log_trim(log_until(&text, ':'));
	if (!LOG_SKIP(&text, " GPU Direct RDMA "))
		return false;
	is_on = LOG_SKIP(&text, "Enabled");
	if ((!is_on && !LOG_SKIP(&text, "Disabled")) || !LOG_SKIP(&text, " for HCA ") ||
	    !log_int(&text, &index) || !LOG_SKIP(&text, " '"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_GDR]++;
	net = find_net(line, network, index, log_until(&text, '\''));
	if (net != NULL) {
		net->gdr = is_on;
		net->gdr_place = line->place;
	}
	return true;
}

/* "GPU Direct RDMA Disabled for GPU 0 / HCA 1 (distance 5 > 4)" */
bool log_take_gdr(struct log_line *line)
{
	struct log_text text = line->message;
	struct nccl_log_gdr *gdr;
	uint64_t key;
	bool is_on, is_new;

	if (!LOG_SKIP(&text, "GPU Direct RDMA "))
		return false;
	is_on = LOG_SKIP(&text, "Enabled");
	if (!is_on && !LOG_SKIP(&text, "Disabled"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_GDR]++;
	key = hash_log_text(hash_word(8, line->process), line->message);
	gdr = log_entry(line->log, LOG_GDRS, key, &is_new);
	if (gdr == NULL)
		return true;
	if (is_new)
		*gdr = (struct nccl_log_gdr){ .process = line->process,
					      .is_on = is_on,
					      .text = log_keep(line->log, line->message),
					      .place = line->place };
	gdr->lines++;
	return true;
}

/* ---- variables ------------------------------------------------------------------------------- */

static void keep_variable(struct log_line *line, struct log_text name, struct log_text value)
{
	uint64_t key = hash_log_text(hash_log_text(hash_word(9, line->process), name), value);
	struct nccl_log_variable *variable;
	bool is_new;

	variable = log_entry(line->log, LOG_VARIABLES, key, &is_new);
	if (variable == NULL)
		return;
	if (is_new) {
		*variable = (struct nccl_log_variable){ .process = line->process,
							.name = log_keep(line->log, name),
							.value = log_keep(line->log, value),
							.place = line->place };
		if (secret_is_pair(variable->name, variable->value))
			variable->value = "***";
	}
	variable->lines++;
}

/* "NCCL_IB_DISABLE set by environment to 1.", "NCCL_IB_HCA set to mlx5" */
bool log_take_variable(struct log_line *line)
{
	struct log_text text = line->message, name = text, value, number;
	int64_t whole;

	while (name.at < name.end && *name.at != ' ')
		name.at++;
	name = (struct log_text){ text.at, name.at };
	text.at = name.end;
	if (log_left(&name) < 6 || memcmp(name.at, "NCCL_", 5) != 0 ||
	    (!LOG_SKIP(&text, " set by environment to ") && !LOG_SKIP(&text, " set to ")))
		return false;
	value = log_trim(text);
	number = value;
	/* Integers are followed by a full stop. */
	if (log_number(&number, &whole) && log_left(&number) == 1 && number.at[0] == '.')
		value.end--;
	line->log->kinds[NCCL_LOG_KIND_VARIABLE]++;
	keep_variable(line, name, value);
	return true;
}

/* ---- plugins --------------------------------------------------------------------------------- */

static void keep_plugin(struct log_line *line, struct log_text kind, struct log_text name,
			int32_t version, enum nccl_log_plugin_state state)
{
	uint64_t key = hash_log_text(hash_log_text(hash_word(10, line->process), kind), name);
	struct nccl_log_plugin *plugin;
	bool is_new;

	plugin = log_entry(line->log, LOG_PLUGINS, hash_word(key, state), &is_new);
	if (plugin == NULL)
		return;
	if (is_new)
		*plugin = (struct nccl_log_plugin){ .process = line->process,
						    .kind = log_keep(line->log, kind),
						    .name = log_keep(line->log, name),
						    .version = version,
						    .state = (uint8_t)state,
						    .text = log_keep(line->log, line->message),
						    .place = line->place };
	plugin->lines++;
}

/* "net plugin AWS Libfabric (v8)", "Inspector (v5)", "ncclProfiler_v1." */
static void keep_loaded(struct log_line *line, struct log_text kind, struct log_text text)
{
	struct log_text name;
	int32_t version = -1;

	if (LOG_SKIP(&text, "collnet plugin ") || LOG_SKIP(&text, "coll plugin "))
		kind = text_of("COLLNET");
	else if (LOG_SKIP(&text, "gin plugin "))
		kind = text_of("GIN");
	else
		LOG_SKIP(&text, "net plugin ");
	name = text;
	if (log_find(&text, " (v")) {
		name.end = text.at - 3;
		log_int(&text, &version);
	}
	keep_plugin(line, kind, name, version, NCCL_LOG_PLUGIN_LOADED);
}

/* The last symbol that NCCL tries decides; before it, older ones may still be found. */
static bool is_final_failure(struct log_text text)
{
	return log_has(text, "using internal tuner instead") || log_has(text, "ncclProfiler_v1") ||
	       (log_has(text, "ncclNetPlugin symbol") && !log_has(text, "CollNet"));
}

static bool is_missing(struct log_text text)
{
	return log_has(text, "No such file") || log_has(text, "cannot find") ||
	       log_has(text, "No plugin found");
}

static void keep_plugin_words(struct log_line *line, struct log_text kind, struct log_text text)
{
	struct log_text name;
	char variable[32];

	if (LOG_SKIP(&text, "Could not find:")) {
		name = log_trim(text);
		if (log_find(&text, ". "))
			name.end = text.at - 2;
		keep_plugin(line, kind, log_trim(name), -1, NCCL_LOG_PLUGIN_NOT_FOUND);
	} else if (LOG_SKIP(&text, "Loaded ") || LOG_SKIP(&text, "loaded "))
		keep_loaded(line, kind, text);
	else if (LOG_SKIP(&text, "Using internal"))
		keep_plugin(line, kind, text_of("internal"), -1, NCCL_LOG_PLUGIN_INTERNAL);
	else if (LOG_SKIP(&text, "Using "))
		keep_loaded(line, kind, text);
	else if (LOG_SKIP(&text, "Plugin name set by env to ")) {
		text_format(variable, sizeof(variable), "NCCL_%.*s_PLUGIN", (int)log_left(&kind),
			    kind.at);
		keep_variable(line, text_of(variable), log_trim(text));
	} else if (LOG_SKIP(&text, "Failed to load external plugin ")) {
		/* Since 2.30, also for those that nobody asked for. */
		name = log_until(&text, ',');
		keep_plugin(line, kind, name, -1,
			    log_has(text, "dlHandle: (nil)") ? NCCL_LOG_PLUGIN_NOT_FOUND
							     : NCCL_LOG_PLUGIN_FAILED);
	} else if (log_has(text, "ailed to find ")) {
		if (is_final_failure(text))
			keep_plugin(line, kind, text_of("symbol"), -1, NCCL_LOG_PLUGIN_FAILED);
	} else if (is_missing(text))
		keep_plugin(line, kind, text_of("plugin"), -1, NCCL_LOG_PLUGIN_NOT_FOUND);
	else if (log_has(text, ".so") || log_has(text, "Plugin load"))
		keep_plugin(line, kind, log_trim(log_until(&text, ':')), -1,
			    NCCL_LOG_PLUGIN_FAILED);
	else
		log_note(line, NCCL_LOG_KIND_PLUGIN);
}

/* "NET/Plugin: ...", "TUNER/Plugin: ...", "NET/Plugin : ..." */
bool log_take_plugin(struct log_line *line)
{
	struct log_text text = line->message, kind = log_until(&text, '/');

	if (!LOG_SKIP(&text, "Plugin") || log_left(&kind) > 10)
		return false;
	LOG_SKIP(&text, " ");
	if (!LOG_SKIP(&text, ": "))
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	if (!LOG_SKIP(&text, "Closing") && !LOG_SKIP(&text, "init "))
		keep_plugin_words(line, kind, text);
	return true;
}

static bool kind_of_words(struct log_text words, struct log_text *kind)
{
	static const struct {
		const char *word;
		const char *kind;
	} kinds[] = {
		{ "network ", "NET" },	     { "NET ", "NET" }, { "tuner ", "TUNER" },
		{ "profiler ", "PROFILER" }, { "env ", "ENV" }, { "gin ", "GIN" },
		{ "GIN ", "GIN" },	     { "rma ", "RMA" }, { "RMA ", "RMA" },
		{ "plugin ", "NET" },
	};

	for (size_t i = 0; i < ARRAY_LENGTH(kinds); i++)
		if (log_skip_bytes(&words, kinds[i].word, strlen(kinds[i].word))) {
			*kind = text_of(kinds[i].kind);
			return true;
		}
	return false;
}

/* "Successfully loaded external profiler plugin /opt/x.so", "External network plugin x is unsupported",
 * "Failed to initialize NET plugin IB", "Initialized NET plugin Socket" */
bool log_take_plugin_state(struct log_line *line)
{
	struct log_text text = line->message, kind;
	enum nccl_log_plugin_state state = NCCL_LOG_PLUGIN_LOADED;

	if (LOG_SKIP(&text, "Failed to initialize ") || LOG_SKIP(&text, "External "))
		state = NCCL_LOG_PLUGIN_FAILED;
	else if (!LOG_SKIP(&text, "Successfully loaded external ") &&
		 !LOG_SKIP(&text, "Initialized "))
		return false;
	if (!kind_of_words(text, &kind) || !log_find(&text, "plugin "))
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	keep_plugin(line, kind, log_until(&text, ' '), -1, state);
	return true;
}

/* Releases up to 2.21 and single messages: "Using tuner plugin: 'x'", "Profiler init failed ...". */
bool log_take_plugin_words(struct log_line *line)
{
	struct log_text text = line->message;

	if (LOG_SKIP(&text, "Using tuner plugin: '") || LOG_SKIP(&text, "Opened tuner: '"))
		keep_plugin(line, text_of("TUNER"), log_until(&text, '\''), -1,
			    NCCL_LOG_PLUGIN_LOADED);
	else if (LOG_SKIP(&text, "Plugin name set by env to "))
		keep_variable(line, text_of("NCCL_NET_PLUGIN"), log_trim(text));
	else if (LOG_SKIP(&text, "Profiler init failed"))
		keep_plugin(line, text_of("PROFILER"), text_of("init"), -1, NCCL_LOG_PLUGIN_FAILED);
	else if (LOG_SKIP(&text, "Tuner: failed to find "))
		keep_plugin(line, text_of("TUNER"), text_of("symbol"), -1, NCCL_LOG_PLUGIN_FAILED);
	else
		return false;
	line->log->kinds[NCCL_LOG_KIND_PLUGIN]++;
	return true;
}

/* What was chosen, what NCCL's model predicts, and which operations were issued. */

/* ---- "AllReduce: opCount 1f sendbuff 0x.. recvbuff 0x.. count 7 datatype 7 op 0 root 0 comm 0x.. [..." -- */

static void keep_operation(struct log_line *line, struct log_text function, int32_t comm,
			   const struct nccl_log_operation *read)
{
	uint64_t key =
		hash_log_text(hash_word(hash_word(11, line->process), (uint64_t)comm), function);
	struct nccl_log_operation *operation;
	bool is_new;

	operation = log_entry(line->log, LOG_OPERATIONS, key, &is_new);
	if (operation == NULL)
		return;
	if (is_new) {
		*operation = *read;
		operation->process = line->process;
		operation->comm = comm;
		operation->function = log_keep(line->log, function);
		operation->first = line->place;
	}
	operation->lines++;
	operation->last_count = read->last_count;
	operation->last_elements = read->last_elements;
	operation->last_datatype = read->last_datatype;
	operation->last = line->place;
}

bool log_take_operation(struct log_line *line)
{
	struct log_text text = line->message, function = log_until(&text, ':');
	struct nccl_log_operation read = { .last_datatype = -1 };
	uint64_t pointer;
	int64_t count;

	if (!LOG_SKIP(&text, " opCount ") || !log_hex(&text, &read.last_count))
		return false;
	read.first_count = read.last_count;
	if (!log_find(&text, " count ") || !log_number(&text, &count) ||
	    !LOG_SKIP(&text, " datatype ") || !log_int(&text, &read.last_datatype) ||
	    !log_find(&text, " comm ") || !log_hex(&text, &pointer))
		return false;
	read.last_elements = count > 0 ? (uint64_t)count : 0;
	line->log->kinds[NCCL_LOG_KIND_OPERATION]++;
	keep_operation(line, function, log_comm_by_pointer(line, pointer), &read);
	return true;
}

/* "ncclAllReduce(7f..,7f..,1048576,7,0,0,0x..,0x..)" */
bool log_take_call(struct log_line *line)
{
	struct log_text text = line->message;
	const struct nccl_log_operation read = { .last_datatype = -1 };

	line->log->kinds[NCCL_LOG_KIND_CALL]++;
	keep_operation(line, log_until(&text, '('), LOG_NONE, &read);
	return true;
}

/* ---- choices --------------------------------------------------------------------------------- */

struct choice {
	struct log_text function, algorithm, protocol;
	uint64_t bytes;
	int32_t channels;
	double time_us;
};

static bool keep_choice(struct log_line *line, const struct choice *read)
{
	uint64_t key = hash_log_text(hash_log_text(hash_word(12, read->bytes), read->function),
				     read->algorithm);
	struct nccl_log_choice *choice;
	bool is_new;

	key = hash_word(hash_log_text(key, read->protocol), (uint64_t)read->channels);
	line->log->kinds[NCCL_LOG_KIND_CHOICE]++;
	choice = log_entry(line->log, LOG_CHOICES, key, &is_new);
	if (choice == NULL)
		return true;
	if (is_new)
		*choice = (struct nccl_log_choice){
			.function = log_keep(line->log, read->function),
			.bytes = read->bytes,
			.algorithm = log_keep(line->log, read->algorithm),
			.protocol = log_keep(line->log, read->protocol),
			.channels = read->channels,
			.time_us = read->time_us,
			.place = line->place,
		};
	choice->lines++;
	return true;
}

/* Up to 2.23 they are numbers. */
static struct log_text name_of(struct log_text word, const char *const *names, size_t count)
{
	if (log_left(&word) == 1 && word.at[0] >= '0' && (size_t)(word.at[0] - '0') < count)
		return text_of(names[word.at[0] - '0']);
	return word;
}

/* "Algo RING proto LL channel{Lo..Hi}={0..1}", "Algo 1 proto 2 time 61.2" */
static bool read_algorithm(struct log_text *text, struct choice *choice)
{
	static const char *const algorithms[] = {
		"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"
	};
	static const char *const protocols[] = { "LL", "LL128", "SIMPLE" };
	int32_t low, high;

	choice->algorithm = name_of(log_until(text, ' '), algorithms, ARRAY_LENGTH(algorithms));
	if (!LOG_SKIP(text, "proto "))
		return false;
	choice->protocol = name_of(log_until(text, ' '), protocols, ARRAY_LENGTH(protocols));
	if (LOG_SKIP(text, "time "))
		return log_real(text, &choice->time_us);
	if (!LOG_SKIP(text, "channel{Lo..Hi}={"))
		return true;
	if (!log_int(text, &low) || !LOG_SKIP(text, "..") || !log_int(text, &high) || high < low)
		return false;
	choice->channels = high - low < 4096 ? high - low + 1 : -1;
	return true;
}

/* "AllReduce: 1048576 Bytes -> Algo ...", "4096 Bytes -> Algo ...",
 * "AllReduce [Symmetric]: 4096 Bytes -> Kernel AllReduce_AGxLL_R nchannels 4 ...",
 * "AllGather [Copy Engine]: 4096 Bytes -> cudaMemcpy..." */
bool log_take_choice(struct log_line *line)
{
	struct log_text text = line->message;
	struct choice choice = { .channels = -1, .time_us = -1 };
	int64_t bytes;

	choice.function = choice.protocol = (struct log_text){ text.at, text.at };
	if (text.at < text.end && (text.at[0] < '0' || text.at[0] > '9')) {
		choice.function = log_until(&text, ':');
		LOG_SKIP(&text, " ");
		choice.function = log_until(&choice.function, ' ');
	}
	if (!log_number(&text, &bytes) || bytes < 0 || !LOG_SKIP(&text, " Bytes -> "))
		return false;
	choice.bytes = (uint64_t)bytes;
	if (LOG_SKIP(&text, "Algo "))
		return read_algorithm(&text, &choice) && keep_choice(line, &choice);
	if (LOG_SKIP(&text, "Kernel ")) {
		choice.algorithm = log_until(&text, ' ');
		if (LOG_SKIP(&text, "nchannels "))
			log_int(&text, &choice.channels);
	} else
		choice.algorithm = log_trim(text);
	return keep_choice(line, &choice);
}

/* ---- the cost table -------------------------------------------------------------------------- */

/*
 * "  Algorithm   |   Tree   |   Ring   |   CollNetDirect |"; "Protocol" and "Max NThreads" add
 * nothing.
 */
bool log_take_table_head(struct log_line *line)
{
	struct nccl_log_work *work = line->log->work;
	struct log_text text = line->message, first = log_trim(log_until(&text, '|'));

	line->log->kinds[NCCL_LOG_KIND_TUNING]++;
	if (!LOG_SKIP(&first, "Algorithm"))
		return true;
	work->column_count = 0;
	work->column_process = line->process;
	while (log_left(&text) > 0 && work->column_count < ARRAY_LENGTH(work->columns)) {
		struct log_text word = log_trim(log_until(&text, '|'));

		if (log_left(&word) > 0)
			work->columns[work->column_count++] = log_keep(line->log, word);
	}
	return true;
}

static void keep_cost(struct log_line *line, struct log_text function, size_t column,
		      struct log_text cell)
{
	static const char *const protocols[] = { "LL", "LL128", "Simple" };
	struct nccl_log_work *work = line->log->work;
	struct log_text algorithm = text_of(work->columns[column / 3]);
	struct nccl_log_cost *cost;
	double latency, bandwidth;
	struct log_text bandwidth_text;
	uint64_t key;
	bool is_new;

	if (!log_real(&cell, &latency) || !LOG_SKIP(&cell, "/"))
		return;
	bandwidth_text = log_trim(cell);
	if (!log_real(&bandwidth_text, &bandwidth) || bandwidth <= 0)
		return;
	key = hash_log_text(hash_log_text(hash_word(13, column % 3), function), algorithm);
	cost = log_entry(line->log, LOG_COSTS, key, &is_new);
	if (cost != NULL && is_new)
		*cost = (struct nccl_log_cost){ .function = log_keep(line->log, function),
						.algorithm = work->columns[column / 3],
						.protocol = protocols[column % 3],
						.latency_us = latency,
						.bandwidth = bandwidth,
						.place = line->place };
}

/*
 * "    AllReduce |    16.8/   0.2 |    31.0/   0.0 |": latency and bandwidth, three protocols per
 * column
 */
bool log_take_table_row(struct log_line *line)
{
	struct nccl_log_work *work = line->log->work;
	struct log_text text = line->message, function = log_trim(log_until(&text, '|'));

	if (log_left(&text) == 0 || !log_has(text, "/"))
		return false;
	line->log->kinds[NCCL_LOG_KIND_TUNING]++;
	if (work->column_process != line->process)
		return true;
	for (size_t i = 0; log_left(&text) > 0 && i < work->column_count * 3; i++)
		keep_cost(line, function, i, log_trim(log_until(&text, '|')));
	return true;
}
