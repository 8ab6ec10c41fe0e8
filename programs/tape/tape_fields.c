/*
 * A descriptor of each version, taken apart into the words of a line; what the versions share is in
 * the macros.
 */
#include "programs/tape/tape_fields.h"

#include <inttypes.h>

#include "common/op.h"
#include "common/op_layout.h"
#include "common/text.h"

/* ---- v1's numbers ---------------------------------------------------------------------------- */

/* A number without a name is written as #N. */
static void number_put(struct tape_text *text, const char *before, const char *prefix,
		       const char *name, bool is_known, unsigned int number)
{
	if (is_known)
		tape_text_put(text, "%s%s%s", before, prefix, name);
	else
		tape_text_put(text, "%s#%u", before, number);
}

static void function_put(struct tape_text *text, uint8_t number)
{
	uint8_t function = op_function_from_v1(number);

	number_put(text, " ", "", op_function_name(function), function != OP_FUNCTION_UNKNOWN,
		   number);
}

/* "float32" is NCCL's "ncclFloat32". */
static void datatype_put(struct tape_text *text, uint8_t number)
{
	uint8_t datatype = op_datatype_from_nccl(number);
	char name[32];

	text_copy(name, sizeof(name), op_datatype_name(datatype));
	if (name[0] >= 'a' && name[0] <= 'z')
		name[0] = (char)(name[0] - 'a' + 'A');
	number_put(text, " dt=", "nccl", name, datatype != OP_DATATYPE_UNKNOWN, number);
}

static void algorithm_put(struct tape_text *text, uint8_t number)
{
	uint8_t algorithm = op_algorithm_from_v1(number);

	number_put(text, " ", "", op_algorithm_name(algorithm), algorithm != OP_ALGORITHM_UNKNOWN,
		   number);
}

static void protocol_put(struct tape_text *text, uint8_t number)
{
	uint8_t protocol = op_protocol_from_v1(number);

	number_put(text, " ", "", op_protocol_name(protocol), protocol != OP_PROTOCOL_UNKNOWN,
		   number);
}

/* ---- pieces that several versions share ------------------------------------------------------ */

static void buffers_put(struct tape_text *text, const void *send, const void *recv)
{
	tape_text_id(text, " sb=", send);
	tape_text_id(text, " rb=", recv);
}

/* Coll: the line as it is in the oldest tapes, then what was added. */
#define COLL_V1(text, coll)                                                                    \
	do {                                                                                   \
		tape_text_put(text, " Coll seq=%" PRIu64, (coll).sequence);                    \
		function_put(text, (coll).function);                                           \
		tape_text_put(text, " count=%zu", (coll).count);                               \
		datatype_put(text, (coll).datatype);                                           \
		tape_text_put(text, " root=%d nch=%u nw=%u", (coll).root, (coll).max_channels, \
			      (coll).warps);                                                   \
		algorithm_put(text, (coll).algorithm);                                         \
		protocol_put(text, (coll).protocol);                                           \
		tape_text_put(text, " pg=(nil)");                                              \
	} while (0)
#define COLL_STRINGS(text, coll, nchannels, group)                                     \
	do {                                                                           \
		tape_text_put(text, " Coll seq=%" PRIu64, (coll).sequence);            \
		tape_text_word(text, " ", (coll).function);                            \
		tape_text_put(text, " count=%zu", (coll).count);                       \
		tape_text_word(text, " dt=", (coll).datatype);                         \
		tape_text_put(text, " root=%d nch=%u nw=%u", (coll).root, (nchannels), \
			      (coll).warps);                                           \
		tape_text_word(text, " ", (coll).algorithm);                           \
		tape_text_word(text, " ", (coll).protocol);                            \
		tape_text_id(text, " pg=", group);                                     \
		buffers_put(text, (coll).send_buffer, (coll).recv_buffer);             \
	} while (0)
#define COMM_PUT(text, task)                                             \
	do {                                                             \
		tape_text_put(text, " hash=%" PRIx64, (task).comm_hash); \
		tape_text_word(text, " name=", (task).name);             \
	} while (0)

#define P2P_STRINGS(text, p2p)                                  \
	do {                                                    \
		tape_text_put(text, " P2p");                    \
		tape_text_word(text, " ", (p2p).function);      \
		tape_text_put(text, " count=%zu", (p2p).count); \
		tape_text_word(text, " dt=", (p2p).datatype);   \
		tape_text_put(text, " peer=%d", (p2p).peer);    \
	} while (0)
#define P2P_MORE(text, p2p, group)                              \
	do {                                                    \
		tape_text_put(text, " nch=%u", (p2p).channels); \
		tape_text_id(text, " pg=", group);              \
		tape_text_id(text, " sb=", (p2p).buffer);       \
	} while (0)

/* ---- what each version has beyond the common events ------------------------------------------ */

/* True when the event was one of these. */
bool tape_fields_v1(struct tape_text *text, const struct abi_descr_v1 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_V1(text, d->coll);
		buffers_put(text, d->coll.send_buffer, d->coll.recv_buffer);
		tape_text_put(text, " traffic=%zu redop=%u collnet=%d nvls=%d",
			      d->coll.traffic_bytes, d->coll.redop, d->coll.is_collnet,
			      d->coll.is_nvls);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		tape_text_put(text, " P2p");
		function_put(text, d->p2p.function);
		tape_text_put(text, " count=%zu", d->p2p.count);
		datatype_put(text, d->p2p.datatype);
		tape_text_put(text, " peer=%d nch=0 pg=(nil)", d->p2p.peer);
		tape_text_id(text, " sb=", d->p2p.buffer);
		COMM_PUT(text, d->p2p);
		return true;
	default:
		return false;
	}
}

#define FIELDS_P2P_OLD(text, d)                              \
	do {                                                 \
		P2P_STRINGS(text, (d)->p2p);                 \
		tape_text_put(text, " nch=0 pg=(nil)");      \
		tape_text_id(text, " sb=", (d)->p2p.buffer); \
		COMM_PUT(text, (d)->p2p);                    \
	} while (0)

bool tape_fields_v2(struct tape_text *text, const struct abi_descr_v2 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.max_channels, NULL);
		tape_text_put(text, " traffic=%zu", d->coll.traffic_bytes);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		FIELDS_P2P_OLD(text, d);
		return true;
	default:
		return false;
	}
}

/* Kernel channels and the transport's events: v3 and later. What the transport points at is its own
 * affair and gone after the call. */
#define FIELDS_NET(text, d) tape_text_put(text, " NetPlugin id=%" PRId64, (d)->net_plugin.id)

bool tape_fields_v3(struct tape_text *text, const struct abi_descr_v3 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.max_channels, NULL);
		COMM_PUT(text, d->coll);
		return true;
	case ABI_P2P:
		FIELDS_P2P_OLD(text, d);
		return true;
	case ABI_KERNEL_CH:
		tape_text_put(text, " KernelCh ch=%u pt=0", d->kernel_ch.channel);
		return true;
	case ABI_NET_PLUGIN:
		FIELDS_NET(text, d);
		return true;
	default:
		return false;
	}
}

#define FIELDS_KERNEL(text, d)                                                     \
	tape_text_put(text, " KernelCh ch=%u pt=%" PRIu64, (d)->kernel_ch.channel, \
		      (d)->kernel_ch.gpu_ns)

bool tape_fields_v4(struct tape_text *text, const struct abi_descr_v4 *d)
{
	switch (d->type) {
	case ABI_COLL:
		COLL_STRINGS(text, d->coll, d->coll.channels, NULL);
		return true;
	case ABI_P2P:
		P2P_STRINGS(text, d->p2p);
		P2P_MORE(text, d->p2p, NULL);
		return true;
	case ABI_KERNEL_CH:
		FIELDS_KERNEL(text, d);
		return true;
	case ABI_NET_PLUGIN:
		FIELDS_NET(text, d);
		return true;
	default:
		return false;
	}
}

/* The API's events: v5 and later. */
#define FIELDS_API(text, api, event)                                                           \
	do {                                                                                   \
		tape_text_put(text, " " event);                                                \
		tape_text_word(text, " ", (api).function);                                     \
		tape_text_put(text, " count=%zu captured=%d", (api).count, (api).is_captured); \
		tape_text_word(text, " dt=", (api).datatype);                                  \
		tape_text_id(text, " stream=", (api).stream);                                  \
	} while (0)

/* Events of v5 in any later version: N is the version. */
#define FIELDS_V5(N)                                                                            \
	static bool fields_since_v5_##N(struct tape_text *text, const struct abi_descr_v##N *d) \
	{                                                                                       \
		switch (d->type) {                                                              \
		case ABI_COLL:                                                                  \
			COLL_STRINGS(text, d->coll, d->coll.channels, d->coll.parent_group);    \
			return true;                                                            \
		case ABI_P2P:                                                                   \
			P2P_STRINGS(text, d->p2p);                                              \
			P2P_MORE(text, d->p2p, d->p2p.parent_group);                            \
			return true;                                                            \
		case ABI_KERNEL_CH:                                                             \
			FIELDS_KERNEL(text, d);                                                 \
			return true;                                                            \
		case ABI_NET_PLUGIN:                                                            \
			FIELDS_NET(text, d);                                                    \
			return true;                                                            \
		case ABI_GROUP_API:                                                             \
			tape_text_put(text, " GroupApi captured=%d depth=%d",                   \
				      d->group_api.is_captured, d->group_api.depth);            \
			return true;                                                            \
		case ABI_COLL_API:                                                              \
			FIELDS_API(text, d->coll_api, "CollApi");                               \
			tape_text_put(text, " root=%d", d->coll_api.root);                      \
			return true;                                                            \
		case ABI_P2P_API:                                                               \
			FIELDS_API(text, d->p2p_api, "P2pApi");                                 \
			return true;                                                            \
		case ABI_KERNEL_LAUNCH:                                                         \
			tape_text_put(text, " KernelLaunch");                                   \
			tape_text_id(text, " stream=", d->kernel_launch.stream);                \
			return true;                                                            \
		default:                                                                        \
			return false;                                                           \
		}                                                                               \
	}
FIELDS_V5(5)
FIELDS_V5(6)
FIELDS_V5(7)

/* The copy engines' events: v6 and later. */
#define FIELDS_V6(N)                                                                               \
	static bool fields_since_v6_##N(struct tape_text *text, const struct abi_descr_v##N *d)    \
	{                                                                                          \
		switch (d->type) {                                                                 \
		case ABI_CE_COLL:                                                                  \
			tape_text_put(text, " CeColl seq=%" PRIu64, d->ce_coll.sequence);          \
			tape_text_word(text, " ", d->ce_coll.function);                            \
			tape_text_put(text, " count=%zu", d->ce_coll.count);                       \
			tape_text_word(text, " dt=", d->ce_coll.datatype);                         \
			tape_text_put(text, " root=%d intra=%d batch=%u batches=%u ceseq=%u",      \
				      d->ce_coll.root, d->ce_coll.has_intra_batch_sync,            \
				      d->ce_coll.batch_size, d->ce_coll.batches,                   \
				      d->ce_coll.ce_sequence);                                     \
			tape_text_word(text, " sync=", d->ce_coll.sync_strategy);                  \
			buffers_put(text, d->ce_coll.send_buffer, d->ce_coll.recv_buffer);         \
			tape_text_id(text, " stream=", d->ce_coll.stream);                         \
			return true;                                                               \
		case ABI_CE_SYNC:                                                                  \
			tape_text_put(text, " CeSync complete=%d nranks=%d",                       \
				      d->ce_sync.is_complete, d->ce_sync.nranks);                  \
			return true;                                                               \
		case ABI_CE_BATCH:                                                                 \
			tape_text_put(text, " CeBatch ops=%d bytes=%zu intra=%d", d->ce_batch.ops, \
				      d->ce_batch.total_bytes, d->ce_batch.use_intra_sync);        \
			return true;                                                               \
		default:                                                                           \
			return fields_since_v5_##N(text, d);                                       \
		}                                                                                  \
	}
FIELDS_V6(6)
FIELDS_V6(7)

bool tape_fields_v5(struct tape_text *text, const struct abi_descr_v5 *d)
{
	return fields_since_v5_5(text, d);
}

bool tape_fields_v6(struct tape_text *text, const struct abi_descr_v6 *d)
{
	return fields_since_v6_6(text, d);
}

static void tag_put(struct tape_text *text, uint64_t tag)
{
	tape_text_put(text, " tag=%" PRIu64, tag);
}

bool tape_fields_v7(struct tape_text *text, const struct abi_descr_v7 *d)
{
	bool is_known = fields_since_v6_7(text, d);

	if (d->type == ABI_COLL) {
		tag_put(text, d->coll.user_tag);
		tape_text_put(text, " sym=%d", d->coll.is_symmetric);
		tape_text_word(text, " variant=", d->coll.kernel_variant);
	} else if (d->type == ABI_P2P) {
		tag_put(text, d->p2p.user_tag);
	} else if (d->type == ABI_COLL_API) {
		tag_put(text, d->coll_api.user_tag);
	} else if (d->type == ABI_P2P_API) {
		tag_put(text, d->p2p_api.user_tag);
	} else if (d->type == ABI_CE_COLL) {
		tag_put(text, d->ce_coll.user_tag);
	} else if (d->type == ABI_KERNEL_PHASE) {
		tape_text_put(text, " KernelPhase ch=%u phase=%u pt=%" PRIu64,
			      d->kernel_phase.channel, d->kernel_phase.phase,
			      d->kernel_phase.gpu_ns);
		tape_text_word(text, " name=", d->kernel_phase.name);
		is_known = true;
	}
	return is_known;
}
