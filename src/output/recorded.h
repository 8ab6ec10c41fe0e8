/* Recorded data as text and JSON: process, communicator, operation, operation in flight. */
#ifndef RECORDED_H
#define RECORDED_H

#include <stddef.h>
#include <stdint.h>

#include "analysis/flight.h"
#include "analysis/job.h"
#include "common/op_layout.h"
#include "output/json.h"
#include "output/sink.h"
#include "recording/recording.h"

enum { FLIGHT_WORDS = 320, FLIGHT_CHANNELS_TEXT = 160 };

/* "Send to 3", "Broadcast from 0", "AllReduce (graph)". */
const char *flight_words_operation(const struct recording_process *process,
				   const struct recording_flight *flight,
				   char words[static FLIGHT_WORDS]);

/* "NCCL has not launched it", "kernel: 3 of 8 channels started, 0 stopped"; "" if unknown. */
const char *flight_words_kernel(const struct recording_process *process,
				const struct recording_flight *flight,
				char words[static FLIGHT_WORDS]);

/* Bits as ranges: "0-3,7". Cut if too long. */
const char *flight_words_channels(const uint64_t bits[static 4],
				  char words[static FLIGHT_CHANNELS_TEXT]);

/* "waits for data from rank 5 on channels 0-3", without times. */
const char *flight_words_wait(const struct flight_wait *wait, char words[static FLIGHT_WORDS]);

/* "kind"; null if unknown. */
void comm_json_put_kind(struct json *json, enum job_comm_kind kind);

/* Keys "label", "name", "hash", "generation", "job_index", "kind", "ranks", "nodes", "recorded_ranks". */
void comm_json_put_identity(struct json *json, const struct job_comm *comm);

/* "rank 3 (pid 4711 on node01, job 77)" */
enum { RECORDED_PROCESS_TEXT = 512 };
const char *recorded_process_text(const struct recording_process *process,
				  char text[static RECORDED_PROCESS_TEXT]);

/* "pid 4711, rank 3 of llm-7": on this host, so its pid comes first. */
void recorded_process_here(struct sink *sink, const struct recording_process *process);

/* Keys job, rank, host, pid of the open object. */
void recorded_process_json(struct json *json, const struct recording_process *process);

/*
 * Keys "times", "times_reason" and, if they are known, counts of launches: "timed_launches", "untimed_launches",
 * "recording_ns", "times_taken", "times_dropped".
 */
void recorded_times_json(struct json *json, const struct recording_process *process);

/*
 * How it times operations, and how many it timed: "auto; 1,204 of 24,008 operations timed (5.0%), ...". `recorded` may be
 * 0. "" if its recorder does not say.
 */
enum { RECORDED_TIMES_TEXT = 700 };
void recorded_times_text(const struct recording_process *process, uint64_t timed, uint64_t recorded,
			 char to[static RECORDED_TIMES_TEXT]);

/* Communicators that are not finalized, and all. */
size_t recorded_live_comms(const struct recording_process *process);
uint64_t recorded_all_comms(const struct recording_process *process);

/* Operations that were lost completely, for any reason. */
uint64_t recorded_lost(const struct recording_process *process);

/* "0,1,4": CUDA device numbers of its communicators; "" unknown. */
void recorded_gpus(const struct recording_process *process, char *text, size_t size);

/* "tp", or "0x1f2e..." without a name. */
enum { RECORDED_COMM_TEXT = 120 };
const char *recorded_comm_text(const struct recording_comm *comm,
			       char text[static RECORDED_COMM_TEXT]);

/* Keys comm_id, comm_hash, comm_name, comm_rank, comm_ranks, comm_nodes; `comm` may be NULL. */
void recorded_comm_json(struct json *json, uint32_t id, const struct recording_comm *comm);

/* An operation as JSON, see docs/JSON.md; a test compares the keys. */

/* Keys of the open object. */
void recorded_op_json(struct json *json, const struct recording_process *process,
		      const struct op_record *op);
void recorded_detail_json(struct json *json, const struct recording_process *process,
			  const struct op_detail *detail);

#endif
