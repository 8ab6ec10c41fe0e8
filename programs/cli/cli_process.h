/* A recorded process in words and in JSON: what several commands say about it. */
#ifndef CLI_PROCESS_H
#define CLI_PROCESS_H

#include <stddef.h>
#include <stdint.h>

#include "recording/recording.h"
#include "view/json.h"

/* "rank 3 (pid 4711 on node01, job 77)": for sentences. */
enum { CLI_PROCESS_TEXT = 512 };
const char *cli_process_text(const struct recording_process *process,
			     char text[static CLI_PROCESS_TEXT]);

/* Keys job, rank, host, pid into the object that is open. */
void cli_process_json(struct json *json, const struct recording_process *process);

/* Communicators that were not finalized, and all that ever were. */
size_t cli_process_live_comms(const struct recording_process *process);
uint64_t cli_process_all_comms(const struct recording_process *process);

/* Whole operations that were lost, for whatever reason. */
uint64_t cli_process_lost(const struct recording_process *process);

/* "0,1,4": CUDA device numbers of its communicators; "" unknown. */
void cli_process_gpus(const struct recording_process *process, char *text, size_t size);

/* "tp" or "0x1f2e..." where it has no name. */
enum { CLI_COMM_TEXT = 120 };
const char *cli_comm_text(const struct recording_comm *comm, char text[static CLI_COMM_TEXT]);

/* Keys comm_id, comm_hash, comm_name, comm_rank, comm_ranks, comm_nodes; `comm` may be NULL. */
void cli_comm_json(struct json *json, uint32_t id, const struct recording_comm *comm);

/* null where the value is -1. */
void cli_json_number_or_null(struct json *json, const char *key, int64_t number);
/* null where the value is 0. */
void cli_json_time_or_null(struct json *json, const char *key, uint64_t ns);
/* null where the text is "". */
void cli_json_text_or_null(struct json *json, const char *key, const char *text);

#endif
