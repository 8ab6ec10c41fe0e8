/* How ranks are connected: links with their transport, rings, trees. */
#include <string.h>

#include "common/hash.h"
#include "nccllog/nccl_log_parts.h"

static uint64_t hash_text(uint64_t before, struct log_text text)
{
	return hash_word(before, hash_bytes(text.at, log_left(&text)));
}

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
	key = hash_text(hash_text(key, via->network), via->detail);
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

/* "Channel 00/02 : 0 1 2 3", by rank 0 alone; "Ring 00 : 1 -> 0 -> 3" by each. */
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
