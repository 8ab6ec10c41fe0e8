/* Every family once: what the encoders write as HELP and TYPE, what docs/METRICS.md lists. */
#include "view/metrics_families.h"

#define MEMBER "nccl_job,comm,rank"
#define PROCESS "nccl_job,global_rank,pid"

/* Help has no backslash and no line's end: it needs no escaping in any format. */
static const struct metrics_name families[METRICS_FAMILIES + 1] = {
	[METRICS_PROCESS_INFO] = { "nccl_process_info", "info",
				   "nccl_job,host,pid,global_rank,local_rank,world_size,gpu,"
				   "gpu_uuid,mode,interface,state",
				   "A process that records, its place in the job, its first GPU, "
				   "and how it is." },
	[METRICS_COMMUNICATOR_INFO] = { "nccl_communicator_info", "info",
					MEMBER ",comm_name,kind,nranks,nnodes,global_rank,host,pid,"
					       "gpu,gpu_uuid,finalized",
					"A member of a communicator, and where it runs." },
	[METRICS_OPERATIONS_ISSUED] = { "nccl_operations_issued", "counter", MEMBER,
					"Operations that NCCL showed, captures and replays "
					"included." },
	[METRICS_OPERATIONS_FINISHED] = { "nccl_operations_finished", "counter", MEMBER,
					  "Operations whose record is complete." },
	[METRICS_OPERATIONS] = { "nccl_operations", "counter", MEMBER ",function,size",
				 "Finished operations by function and message size, timed or "
				 "not." },
	[METRICS_OPERATION_BYTES] = { "nccl_operation_bytes", "counter", MEMBER ",function,size",
				      "Message bytes of finished operations, as nccl-tests counts "
				      "them." },
	[METRICS_OPERATION_TIMED_BYTES] = { "nccl_operation_timed_bytes", "counter",
					    MEMBER ",function,size",
					    "Message bytes of timed operations: over "
					    "nccl_operation_seconds_total they are algbw." },
	[METRICS_OPERATION_BUS_BYTES] = { "nccl_operation_bus_bytes", "counter",
					  MEMBER ",function,size",
					  "The same times the function's bus factor: over "
					  "nccl_operation_seconds_total they are busbw." },
	[METRICS_TIMED_OPERATIONS] = { "nccl_timed_operations", "counter", MEMBER ",function,size",
				       "Of nccl_operations_total: timed, that is with a "
				       "duration." },
	[METRICS_OPERATION_SECONDS] = { "nccl_operation_seconds", "counter",
					MEMBER ",function,size",
					"Time in timed operations, waiting included; over "
					"nccl_timed_operations_total it is the mean. Absent: none "
					"was timed." },
	[METRICS_OPERATION_DURATION] = { "nccl_operation_duration_seconds", "histogram",
					 MEMBER ",function",
					 "Durations of timed operations; its count is the number "
					 "of "
					 "timed operations, not of all. Absent: none was timed." },
	[METRICS_ALGORITHM_OPERATIONS] = { "nccl_algorithm_operations", "counter",
					   MEMBER ",function,algorithm,protocol",
					   "Finished operations by what NCCL chose for them, timed "
					   "or not." },
	[METRICS_ALGORITHM_TIMED] = { "nccl_algorithm_timed_operations", "counter",
				      MEMBER ",function,algorithm,protocol",
				      "Of nccl_algorithm_operations_total: timed." },
	[METRICS_ALGORITHM_SECONDS] = { "nccl_algorithm_seconds", "counter",
					MEMBER ",function,algorithm,protocol",
					"Time in timed operations by what NCCL chose for them. "
					"Absent: none was timed." },
	[METRICS_WAIT_SECONDS] = { "nccl_wait_seconds", "counter", MEMBER,
				   "Time that this member waited for others, at least, since it is "
				   "watched; scaled up where not all collectives are timed. "
				   "Absent: "
				   "not known." },
	[METRICS_IN_FLIGHT] = { "nccl_operations_in_flight", "gauge", MEMBER,
				"Operations issued and not over." },
	[METRICS_OLDEST_AGE] = { "nccl_oldest_operation_age_seconds", "gauge", MEMBER,
				 "Age of the oldest operation in flight, 0 when there is none." },
	[METRICS_OLDEST_INFO] = { "nccl_oldest_operation_info", "info",
				  MEMBER ",function,count,datatype,root,number,match,signature,"
					 "replay,state,kernels_started,kernels_stopped,waits_for,"
					 "peer",
				  "The oldest operation in flight, when it is older than a "
				  "second." },
	[METRICS_OLDEST_WAIT] = { "nccl_oldest_operation_wait_seconds", "gauge",
				  MEMBER ",waits_for,peer,channels",
				  "For how long that operation waits, by what for; at most four of "
				  "a member." },
	[METRICS_ACTIVITY_AGE] = { "nccl_last_activity_age_seconds", "gauge", MEMBER,
				   "Time since anything was issued or finished, until the process "
				   "ends." },
	[METRICS_LAST_COLLECTIVE] = { "nccl_last_collective_info", "info",
				      MEMBER ",function,count,datatype,root,match,signature",
				      "The collective before the oldest in flight, or the last "
				      "one, of a member that stood still for ten seconds." },
	[METRICS_COLLECTIVE_NUMBER] = { "nccl_collective_number_issued", "gauge", MEMBER,
					"Number of the last collective issued: equal on all ranks "
					"that are equally far." },
	[METRICS_REPLAY_NUMBER] = { "nccl_collective_number_replayed", "gauge", MEMBER,
				    "Number of the last collective replayed from a CUDA graph." },
	[METRICS_NUMBER_ISSUED] = { "nccl_operation_number_issued", "gauge", MEMBER,
				    "Number of the last operation issued." },
	[METRICS_NUMBER_DONE] = { "nccl_operation_number_done", "gauge", MEMBER,
				  "Number of the last operation that is over." },
	[METRICS_SIGNATURE] = { "nccl_collective_signature", "gauge", MEMBER,
				"Rolling hash over the collectives issued, its low 52 bits: equal "
				"numbers have equal ones." },
	[METRICS_PROXY_WAIT] = { "nccl_proxy_wait_seconds", "counter",
				 MEMBER ",direction,state,peer",
				 "Time that transfers over the network waited, by what for." },
	[METRICS_PROXY_BYTES] = { "nccl_proxy_bytes", "counter", MEMBER ",direction,peer",
				  "Bytes that went over the network." },
	[METRICS_PROXY_TRANSFERS] = { "nccl_proxy_transfers", "counter", MEMBER ",direction,peer",
				      "Transfers over the network." },
	[METRICS_UNTRUSTED] = { "nccl_untrusted_times", "counter", MEMBER,
				"Operations whose GPU stamps were not believed." },
	[METRICS_LOST_OPERATIONS] = { "nccl_lost_operations", "counter", PROCESS ",reason",
				      "Operations without a record." },
	[METRICS_LOST_DETAILS] = { "nccl_lost_details", "counter", PROCESS ",reason",
				   "Parts of recorded operations that were lost." },
	[METRICS_ODD_EVENTS] = { "nccl_odd_events", "counter", PROCESS ",reason",
				 "Calls of NCCL that cannot be followed." },
	[METRICS_NOTICE_INFO] = { "nccl_notice_info", "info", "nccl_job,kind,comm,rank",
				  "Something that the agent would tell a person." },
	[METRICS_VERDICT_INFO] = { "nccl_verdict_info", "info",
				   "nccl_job,class,comm,rank,global_rank,peer_global_rank,host,"
				   "confidence",
				   "Who is stuck, as the doctor sees it from this node." },
	[METRICS_BUILD_INFO] = { "ringside_build_info", "info", "version", "The agent's version." },
	[METRICS_AGENT_PROCESSES] = { "ringside_agent_processes", "gauge", "state",
				      "Processes that the agent follows." },
	[METRICS_AGENT_LOOKS] = { "ringside_agent_looks", "counter", "",
				  "Times that the agent looked at all processes." },
	[METRICS_AGENT_LOOK_SECONDS] = { "ringside_agent_look_seconds", "counter", "",
					 "Time spent in these." },
	[METRICS_AGENT_REFUSED] = { "ringside_agent_refused_files", "gauge", "",
				    "Files that cannot be followed." },
	[METRICS_AGENT_UNREADABLE] = { "ringside_agent_unreadable_files", "gauge", "",
				       "Files and directories that the agent may not read." },
	[METRICS_AGENT_LEFT_OUT] = { "ringside_agent_left_out_processes", "gauge", "",
				     "Processes beyond the agent's limit." },
	[METRICS_AGENT_MERGED] = { "ringside_agent_merged_recordings", "gauge", "",
				   "Recordings shown together with another one of the same "
				   "labels." },
	[METRICS_AGENT_FOLDED] = { "ringside_agent_folded", "gauge", "what",
				   "What is beyond the budget and shown as other." },
	[METRICS_AGENT_VERDICTS] = { "ringside_agent_verdicts", "counter", "class",
				     "Verdicts that appeared since the agent started." },
	[METRICS_AGENT_KERNEL] = { "ringside_agent_kernel_requests", "counter", "event",
				   "Processes asked to time every operation for a while, and "
				   "their answers." },
	[METRICS_CPU_SECONDS] = { "process_cpu_seconds", "counter", "",
				  "Processor time that the agent used." },
	[METRICS_RESIDENT_BYTES] = { "process_resident_memory_bytes", "gauge", "",
				     "Memory that the agent has." },
	[METRICS_OPEN_FDS] = { "process_open_fds", "gauge", "", "Files that the agent has open." },
	[METRICS_START_TIME] = { "process_start_time_seconds", "gauge", "",
				 "When the agent was started, since 1970." },
};

const struct metrics_name *metrics_names(void)
{
	return families;
}
