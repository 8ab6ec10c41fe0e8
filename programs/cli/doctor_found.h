/* What NCCL found and chose, as its logs say it: for `ringside doctor --all --log`. docs/NCCL-LOG.md. */
#ifndef DOCTOR_FOUND_H
#define DOCTOR_FOUND_H

#include "import/nccl_log.h"
#include "view/json.h"
#include "view/sink.h"

/* Some lines: what is the same on many ranks is told once, with how many. */
void doctor_found_text(struct sink *sink, const struct nccl_log *log);

/* A member "nccl" of the open object: every fact. */
void doctor_found_json(struct json *json, const struct nccl_log *log);

#endif
