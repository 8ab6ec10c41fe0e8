/*
 * From a line to the call that was recorded: ids become those that the plugin gave, names become
 * numbers for v1, GPU stamps are moved to the present.
 */
#include "programs/sim/tape_call.h"

#include <stdlib.h>

#include "common/op.h"
#include "common/order.h"

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

static void *pointer(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

/* What the plugin gave for it; what nobody started in this tape is passed as it is. */
static void *given_for(const struct tape_map *map, uint64_t recorded)
{
	const struct tape_id *id = tape_map_find(map, recorded);

	return id ? id->given : pointer(recorded);
}

static uint64_t stamp(const struct player *player, uint64_t gpu_ns)
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
		.send_buffer = pointer(line->send_buffer),
		.recv_buffer = pointer(line->recv_buffer),
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
		.buffer = pointer(line->send_buffer),
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
		/* Tapes of the first days have no datatype here. */
		.datatype = line->datatype ? line->datatype : "Unknown",
		.count = line->count,
		.root = (int)line->root,
		.is_captured = line->is_captured != 0,
		.stream = pointer(line->stream),
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
		.send_buffer = pointer(line->send_buffer),
		.recv_buffer = pointer(line->recv_buffer),
		.count = line->count,
		.root = (int)line->root,
		.has_intra_batch_sync = line->intra != 0,
		.batch_size = (uint32_t)line->batch,
		.batches = (uint32_t)line->batches,
		.ce_sequence = (uint32_t)line->ce_sequence,
		.stream = pointer(line->stream),
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
		.gpu_ns = stamp(player, line->gpu_ns),
	};

	host_start_kernel_phase(&player->plugin, call, handle, &phase);
}

/* What the transport pointed at was not recorded: zeroes stand there now. */
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
					    stamp(player, line->gpu_ns));
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
						pointer(line->stream));
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
		host_state_kernel_ch(plugin, handle, stamp(player, line->arg));
	else if (state == ABI_KERNEL_PHASE_STOP)
		host_state_kernel_phase(plugin, handle, stamp(player, line->arg));
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

	id->type = line->type;
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
	if (player->host->references > 0) /* a tape may say FINI more often than INIT */
		host_unload(player->host);
	pthread_mutex_unlock(&player->host->lock);
}

static void line_other(struct player *player, const struct tape_line *line)
{
	const struct tape_id *id = tape_map_find(&player->handles, line->handle);
	void *handle = id ? id->given : pointer(line->handle);

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

void tape_call(struct player *player, const struct tape_line *line)
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
