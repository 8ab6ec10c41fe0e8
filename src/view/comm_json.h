/* Communicators in JSON: the same words wherever one stands. */
#ifndef COMM_JSON_H
#define COMM_JSON_H

#include "analysis/job.h"
#include "view/json.h"

/* "kind": null when it is not known. */
void comm_json_put_kind(struct json *json, enum job_comm_kind kind);

/* Which it is: "label", "name", "hash", "generation", "job_index", "kind", "ranks", "nodes", "recorded_ranks". */
void comm_json_put_identity(struct json *json, const struct job_comm *comm);

#endif
