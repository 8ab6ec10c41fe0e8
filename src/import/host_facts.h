/*
 * Facts about a host that explain what its ranks suffer from: errors of the GPU driver (Xid), clocks, ECC and NVLink
 * of its GPUs, network ports, memory, disks, processor time taken away.
 *
 *	kernel log ----------------------------> host_log_read() --+
 *	/proc, /sys, NVML: cli/cli_host.c -----------------------+--> struct host_facts <--> lines of text
 *
 * Each value is a series: it keeps the points where it changed, so that verdicts can report "since 14:02". A counter that
 * does not move accuses nobody. The lines travel in agent.json (docs/FORMATS.md) and from the child process.
 */
#ifndef HOST_FACTS_H
#define HOST_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/status.h"

enum host_object {
	HOST_OBJECT_HOST = 0,	   /* "-" */
	HOST_OBJECT_GPU = 1,	   /* PCI address, "0000:3b:00.0" */
	HOST_OBJECT_PORT = 2,	   /* InfiniBand or RoCE, "mlx5_3/1" */
	HOST_OBJECT_INTERFACE = 3, /* Ethernet, "eth0" */
	HOST_OBJECT_DISK = 4,	   /* a path, "/dev/shm" */
	HOST_OBJECT_PROCESS = 5,   /* a PID: the cgroup of that process */
};

enum host_kind {
	HOST_GPU_CLOCK,	      /* MHz of the SMs */
	HOST_GPU_CLOCK_MAX,   /* MHz */
	HOST_GPU_THROTTLE,    /* bits, see host_throttle_say() */
	HOST_GPU_TEMPERATURE, /* degrees Celsius */
	HOST_GPU_POWER,	      /* W */
	HOST_GPU_POWER_LIMIT, /* W */
	HOST_GPU_ECC_CORRECTED,
	HOST_GPU_ECC_UNCORRECTED,
	HOST_GPU_REMAP_PENDING, /* rows wait for a reset to be replaced: 1; replacing failed: 2 */
	HOST_GPU_NVLINKS,	/* links that are up */
	HOST_GPU_NVLINK_REPLAY,
	HOST_GPU_NVLINK_RECOVERY,
	HOST_GPU_NVLINK_CRC,
	HOST_GPU_PCIE_WIDTH,
	HOST_GPU_PCIE_WIDTH_MAX,
	HOST_PORT_STATE, /* 4: active */
	HOST_PORT_RATE,	 /* Mbit/s */
	HOST_PORT_SYMBOL_ERROR,
	HOST_PORT_LINK_RECOVERY,
	HOST_PORT_LINK_DOWNED,
	HOST_PORT_RECEIVE_ERRORS,
	HOST_PORT_REMOTE_ERRORS,
	HOST_PORT_DISCARDS,
	HOST_PORT_INTEGRITY_ERRORS,
	HOST_PORT_OVERRUNS,
	HOST_PORT_OUT_OF_SEQUENCE,
	HOST_PORT_SEQUENCE_ERRORS,
	HOST_PORT_ACK_TIMEOUTS,
	HOST_PORT_NOT_READY_RETRIES,
	HOST_PORT_ICRC_ERRORS,
	HOST_INTERFACE_SPEED, /* Mbit/s */
	HOST_INTERFACE_RECEIVE_ERRORS,
	HOST_INTERFACE_SEND_ERRORS,
	HOST_INTERFACE_CRC_ERRORS,
	HOST_INTERFACE_MISSED,
	HOST_INTERFACE_CARRIER_ERRORS,
	HOST_INTERFACE_LINK_DOWNED,
	HOST_MEMORY_AVAILABLE, /* in thousandths of all memory */
	HOST_MEMORY_STALL_US,  /* some task waited for memory */
	HOST_PROCESSORS,
	HOST_STEAL_MS, /* processor time that the hypervisor gave to others, over all processors */
	HOST_OOM_KILLS,
	HOST_DISK_FREE,		   /* in thousandths */
	HOST_PROCESS_THROTTLED_US, /* stopped by the CPU quota of its cgroup or of one above */
	HOST_PROCESS_OOM_KILLS,	   /* in its cgroup */
	HOST_KINDS,
};

struct host_kind_info {
	const char *name; /* in the lines */
	enum host_object object;
	bool is_counter;
	uint8_t tolerance; /* percent: smaller changes of a level are no point of their own */
	const char *words; /* of a counter: "symbol errors" */
	const char *file;  /* of ports and interfaces: below their directory in /sys */
};
extern const struct host_kind_info host_kinds[HOST_KINDS];

enum {
	HOST_POINTS = 12,
	HOST_OBJECT_BYTES = 64,
	HOST_SERIES_MAX = 4096,
	HOST_EVENTS_MAX = 64,
	HOST_GPUS_MAX = 64,
	HOST_LINE_BYTES = 640,
	HOST_GAP_BYTES = 160,
};

struct host_point {
	uint64_t wall_ns; /* when this value was first read */
	int64_t value;
};

struct host_series {
	enum host_kind kind;
	char object[HOST_OBJECT_BYTES];
	int64_t value;	  /* the newest */
	uint64_t last_ns; /* when that was read */
	struct host_point points[HOST_POINTS];
	uint32_t count;
};

enum host_event_kind {
	HOST_EVENT_XID = 0,  /* the driver reports an error of a GPU */
	HOST_EVENT_SXID = 1, /* of an NVSwitch */
	HOST_EVENT_OOM = 2,  /* the kernel killed a process */
	HOST_EVENT_KINDS = 3,
};

/* The same event again is counted, not listed. */
struct host_event {
	enum host_event_kind kind;
	uint64_t first_ns; /* wall time */
	uint64_t last_ns;
	uint64_t count;
	char object[HOST_OBJECT_BYTES]; /* PCI address, perhaps without function; of OOM: - */
	int64_t number;			/* of the Xid; of OOM: the PID */
	int64_t pid;			/* that the driver names; -1 none */
	char text[120];			/* what the driver says */
};

struct host_gpu {
	char bus[HOST_OBJECT_BYTES]; /* as the object of its series */
	char uuid[48];
};

/* What could not be read. */
enum host_source {
	HOST_SOURCE_LOG = 0,
	HOST_SOURCE_GPU = 1,
	HOST_SOURCE_SYSTEM = 2,
	HOST_SOURCES = 3
};

struct host_facts {
	char host[256];
	uint64_t begin_ns; /* wall time of the first reading; 0: nothing was read */
	uint64_t last_ns;
	struct host_series *series;
	size_t series_count;
	size_t left_out; /* values beyond the limits */
	struct host_event events[HOST_EVENTS_MAX];
	size_t event_count;
	struct host_gpu gpus[HOST_GPUS_MAX];
	size_t gpu_count;
	char gaps[HOST_SOURCES][HOST_GAP_BYTES]; /* "": it was read */
};

void host_facts_init(struct host_facts *facts);
void host_facts_release(struct host_facts *facts);

/* A new value; wall_ns never goes back for the same series (then it is ignored). */
void host_facts_value(struct host_facts *facts, enum host_kind kind, const char *object,
		      int64_t value, uint64_t wall_ns);
void host_facts_event(struct host_facts *facts, const struct host_event *event);
void host_facts_gap(struct host_facts *facts, enum host_source source, const char *why);

/* Forget processes that are not in the list: their PIDs are used again. */
void host_facts_keep_processes(struct host_facts *facts, const int64_t *pids, size_t count);

/*
 * As text, line by line: start with *at = 0, call until false. Counters that never moved are left out. Reading takes
 * any bytes; a line that it does not understand, perhaps of a newer version, is ignored.
 */
bool host_facts_next_line(const struct host_facts *facts, size_t *at, char line[HOST_LINE_BYTES]);
void host_facts_take_line(struct host_facts *facts, const char *line, uint64_t wall_ns);

/* NULL: not known. */
const struct host_series *host_facts_find(const struct host_facts *facts, enum host_kind kind,
					  const char *object);

/*
 * By how much a counter grew between two moments (wall time), and when that was first seen. What happened before the
 * first reading is not known and does not count.
 */
uint64_t host_series_increase(const struct host_series *series, uint64_t from_ns, uint64_t to_ns,
			      uint64_t *since_ns);

/* Appends "thermal slowdown, power cap": the reasons among `bits` that slow a GPU down. False: none of them does. */
bool host_throttle_say(char *text, size_t size, int64_t bits);
enum {
	HOST_THROTTLE_IDLE = 0x1,
	HOST_THROTTLE_SETTING = 0x2, /* clocks set by an administrator */
	HOST_THROTTLE_POWER_CAP = 0x4,
	HOST_THROTTLE_SLOWDOWN = 0x8,
	HOST_THROTTLE_SYNC = 0x10,
	HOST_THROTTLE_THERMAL = 0x20,
	HOST_THROTTLE_HARD_THERMAL = 0x40,
	HOST_THROTTLE_POWER_BRAKE = 0x80,
	/* A healthy GPU at full load has none of these. */
	HOST_THROTTLE_BAD = HOST_THROTTLE_SLOWDOWN | HOST_THROTTLE_THERMAL |
			    HOST_THROTTLE_HARD_THERMAL | HOST_THROTTLE_POWER_BRAKE,
};

/* What an Xid means; NULL: not in our table. */
const char *host_xid_meaning(int64_t number);
/* Is it an error of the program, or the trace of a killed process, rather than of the hardware or driver? */
bool host_xid_is_software(int64_t number);

/*
 * The kernel log, /dev/kmsg: reading it takes nothing away from other readers. It needs CAP_SYSLOG where
 * kernel.dmesg_restrict is 1, and only to open it. Records of GPUs, NVSwitches and the OOM killer become events.
 */
struct host_log {
	int fd;		  /* -1: not open */
	uint64_t read_ns; /* wall time of the last reading; 0: none */
	char rest[1024];  /* an unfinished line */
	size_t rest_length;
};
/* `root` is "" but in tests. False (errno): not readable. */
bool host_log_open(struct host_log *log, const char *root);
void host_log_close(struct host_log *log);
/* What is new, record by record: "priority,number,microseconds,flags;text". Never blocks. ERR_TRUNCATED: there is
 * more. ERR_SYSTEM (errno). */
typedef void host_log_visit(void *context, const char *record);
enum status host_log_each(struct host_log *log, host_log_visit *visit, void *context);
/* The same as events. */
void host_log_read(struct host_log *log, struct host_facts *facts, uint64_t wall_ns);

/* The time since boot at the start of a record, in microseconds, becomes wall time by adding `offset_ns`. Used by
 * tests and fuzzers, too. */
void host_log_line(struct host_facts *facts, const char *line, int64_t offset_ns, uint64_t least_ns,
		   uint64_t most_ns);

#endif
