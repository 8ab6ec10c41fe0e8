#include "view/comm_json.h"

static void put_count(struct json *json, const char *key, int32_t count)
{
	if (count > 0)
		json_put_unsigned(json, key, (uint64_t)count);
	else
		json_put_null(json, key);
}

void comm_json_put_kind(struct json *json, enum job_comm_kind kind)
{
	json_put_string(json, "kind", kind == JOB_COMM_UNKNOWN ? NULL : job_comm_kind_name(kind));
}

void comm_json_put_identity(struct json *json, const struct job_comm *comm)
{
	json_put_string(json, "label", comm->label);
	json_put_string(json, "name", comm->name[0] != '\0' ? comm->name : NULL);
	if (comm->hash != 0)
		json_put_hex(json, "hash", comm->hash);
	else
		json_put_null(json, "hash");
	json_put_unsigned(json, "generation", comm->generation);
	json_put_unsigned(json, "job_index", comm->group);
	comm_json_put_kind(json, comm->kind);
	put_count(json, "ranks", comm->nranks);
	put_count(json, "nodes", comm->nnodes);
	json_put_unsigned(json, "recorded_ranks", comm->seat_count);
}
