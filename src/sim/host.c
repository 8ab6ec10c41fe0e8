/*
 * A host that behaves like NCCL: releases, loading the plugin, communicators.
 *
 * Knows for each NCCL release which interface version it asks for first, how it turns NCCL_PROFILER_PLUGIN into
 * file names, and which bugs it has.
 */
#include "sim/host.h"
#include "sim/host_internal.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/attributes.h"
#include "common/clock.h"
#include "common/order.h"
#include "common/text.h"
#include "sim/host_event.h"

enum {
	HOST_MASK_PROXY = ABI_PROXY_OP | ABI_PROXY_STEP,
	HOST_MASK_PROXY_NET = HOST_MASK_PROXY | ABI_NET_PLUGIN,
	HOST_MASK_CHILDREN = HOST_MASK_PROXY_NET | ABI_KERNEL_CH,
	HOST_MASK_CE = ABI_CE_COLL | ABI_CE_SYNC | ABI_CE_BATCH,
	HOST_MASK_TASKS = ABI_COLL | ABI_P2P | HOST_MASK_CHILDREN,
};

int host_release_native(int release)
{
	static const int since[] = { 22300, 22400, 22600, 22700, 22800, 22900, 23100 };
	int version = 0;

	for (size_t i = 0; i < ARRAY_LENGTH(since); i++)
		if (release >= since[i])
			version = (int)i + 1;
	return version;
}

/* The last patch of each minor release, as NVIDIA published them. */
static int release_of_minor(int minor)
{
	static const int releases[] = {
		HOST_NCCL_2_23, HOST_NCCL_2_24, HOST_NCCL_2_25, HOST_NCCL_2_26, HOST_NCCL_2_27,
		HOST_NCCL_2_28, HOST_NCCL_2_29, HOST_NCCL_2_30, HOST_NCCL_2_31,
	};

	return minor >= 23 && minor <= 31 ? releases[minor - 23] : 0;
}

static int release_of_version(int version)
{
	static const int minors[] = { 23, 24, 26, 27, 28, 30, 31 };

	return version >= 1 && version <= 7 ? release_of_minor(minors[version - 1]) : 0;
}

enum status host_release_parse(const char *text, int *release)
{
	int major, minor, patch, version, found = 0;
	char end;

	if (sscanf(text, "v%d%c", &version, &end) == 1)
		found = release_of_version(version);
	else if (sscanf(text, "%d.%d.%d%c", &major, &minor, &patch, &end) == 3)
		found = major == 2 && release_of_minor(minor) && patch >= 0 && patch < 100
				? 20000 + minor * 100 + patch
				: 0;
	else if (sscanf(text, "%d.%d%c", &major, &minor, &end) == 2)
		found = major == 2 ? release_of_minor(minor) : 0;
	else if (sscanf(text, "%d%c", &version, &end) == 1)
		found = release_of_minor(version / 100 % 100) && version / 10000 == 2 ? version : 0;
	else
		return ERR_FORMAT;
	if (found == 0)
		return ERR_UNKNOWN;
	*release = found;
	return OK;
}

unsigned int host_quirks_of(int release)
{
	unsigned int quirks = 0;

	if (release >= 22602 && release < 23100)
		quirks |= HOST_QUIRK_LOST_START | HOST_QUIRK_STAMP_OVERRUN;
	if (release >= 22703 && release < 23100)
		quirks |= HOST_QUIRK_STAMP_ZERO | HOST_QUIRK_STAMP_REVERSED;
	if (release >= 22403 && release < 22700)
		quirks |= HOST_QUIRK_STEP_STOP_LOST;
	if (release < 22600)
		quirks |= HOST_QUIRK_STOP_NULL;
	return quirks | HOST_QUIRK_FLOOD_PEER_WAIT | HOST_QUIRK_FLOOD_STEP_START |
	       HOST_QUIRK_CHANNELS_MISSING | HOST_QUIRK_NO_COLL;
}

static bool is_library_name(const char *value)
{
	size_t length = strlen(value);

	return length >= 6 && strncmp(value, "lib", 3) == 0 &&
	       strcmp(value + length - 3, ".so") == 0;
}

/* Since 2.26 NCCL limits names to 255 bytes. */
static void name_put(int release, char *name, const char *prefix, const char *value,
		     const char *suffix)
{
	size_t size = release >= 22600 ? 255 : HOST_NAME_SIZE;

	(void)text_format(name, size, "%s%s%s", prefix, value, suffix);
}

size_t host_plugin_names(int release, const char *value, char names[HOST_NAMES][HOST_NAME_SIZE])
{
	bool is_library, has_prefix_form;
	size_t count = 0;

	if (value == NULL || value[0] == '\0') {
		name_put(release, names[0], "libnccl-profiler", "", ".so");
		return 1;
	}
	if (release >= 22800 && strcasecmp(value, "none") == 0)
		return 0;
	if (strncasecmp(value, "STATIC_PLUGIN", strlen(value)) == 0) {
		names[0][0] = '\0';
		return 1;
	}
	is_library = is_library_name(value);
	if (release < 22700)
		has_prefix_form = release >= 22600;
	else
		has_prefix_form = !is_library && (release < 22705 || strchr(value, '/') == NULL);
	/* 2.27.3 and 2.27.4 accepted only lib*.so unchanged: paths failed. */
	if (release < 22700 || release >= 22705 || is_library)
		name_put(release, names[count++], "", value, "");
	if (has_prefix_form)
		name_put(release, names[count++], "libnccl-profiler-", value, ".so");
	return count;
}

/* 2.23 to 2.25: a Group bit or P2p bit alone enables neither Coll nor P2p. */
static const struct host_asks asks_2_23 = { {
	[0] = ABI_COLL | ABI_P2P | HOST_MASK_PROXY,
	[1] = ABI_COLL | HOST_MASK_PROXY,
	[2] = ABI_COLL | HOST_MASK_PROXY,
	[3] = HOST_MASK_PROXY,
	[4] = ABI_PROXY_STEP,
	[5] = ABI_PROXY_CTRL,
} };

#define ASKS_SINCE_2_26                                                         \
	[0] = ABI_GROUP | HOST_MASK_TASKS, [1] = ABI_COLL | HOST_MASK_CHILDREN, \
	[2] = ABI_P2P | HOST_MASK_CHILDREN, [3] = HOST_MASK_PROXY_NET,          \
	[4] = ABI_PROXY_STEP | ABI_NET_PLUGIN, [5] = ABI_PROXY_CTRL, [7] = ABI_NET_PLUGIN

static const struct host_asks asks_2_26 = { { ASKS_SINCE_2_26, [6] = ABI_KERNEL_CH } };

#define ASKS_SINCE_2_28                                                                            \
	ASKS_SINCE_2_26,                                                                           \
		[8] = ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH | ABI_GROUP | \
		      HOST_MASK_TASKS | HOST_MASK_CE,                                              \
		[9] = ABI_COLL_API | ABI_COLL | HOST_MASK_CHILDREN | HOST_MASK_CE,                 \
		[10] = ABI_P2P_API | ABI_P2P | HOST_MASK_CHILDREN, [11] = ABI_KERNEL_LAUNCH,       \
		[12] = HOST_MASK_CE, [13] = ABI_CE_SYNC, [14] = ABI_CE_BATCH

static const struct host_asks asks_2_28 = { { ASKS_SINCE_2_28, [6] = ABI_KERNEL_CH } };

/* 2.31: phases force their kernel channel and everything that a kernel channel enables. */
static const struct host_asks asks_2_31 = { {
	[0] = ABI_GROUP | HOST_MASK_TASKS | ABI_KERNEL_PHASE,
	[1] = ABI_COLL | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[2] = ABI_P2P | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[3] = HOST_MASK_PROXY_NET,
	[4] = ABI_PROXY_STEP | ABI_NET_PLUGIN,
	[5] = ABI_PROXY_CTRL,
	[6] = ABI_KERNEL_CH | ABI_KERNEL_PHASE,
	[7] = ABI_NET_PLUGIN,
	[8] = ABI_GROUP_API | ABI_COLL_API | ABI_P2P_API | ABI_KERNEL_LAUNCH | ABI_GROUP |
	      HOST_MASK_TASKS | HOST_MASK_CE | ABI_KERNEL_PHASE,
	[9] = ABI_COLL_API | ABI_COLL | HOST_MASK_CHILDREN | HOST_MASK_CE | ABI_KERNEL_PHASE,
	[10] = ABI_P2P_API | ABI_P2P | HOST_MASK_CHILDREN | ABI_KERNEL_PHASE,
	[11] = ABI_KERNEL_LAUNCH,
	[12] = HOST_MASK_CE,
	[13] = ABI_CE_SYNC,
	[14] = ABI_CE_BATCH,
	[15] = ABI_KERNEL_PHASE,
} };

static const struct host_asks *host_asks_of(int release)
{
	if (release >= 23100)
		return &asks_2_31;
	if (release >= 22800)
		return &asks_2_28;
	return release >= 22600 ? &asks_2_26 : &asks_2_23;
}

/*
 * Loads like NCCL: with the first communicator, newest symbol first; unloads with the last one; a failure is final.
 */

enum status host_plugin_find(struct host_plugin *plugin, int release, int newest,
			     const struct host_linked *linked)
{
	const void *const found[] = { NULL,	  linked->v1, linked->v2, linked->v3,
				      linked->v4, linked->v5, linked->v6, linked->v7 };

	if (newest <= 0 || newest > host_release_native(release))
		newest = host_release_native(release);
	for (int version = newest; version > 0; version--) {
		if (found[version] == NULL)
			continue;
		*plugin = (struct host_plugin){ .version = version, .release = release };
		/* All union members are pointers to structs of one shape. */
		plugin->v1 = found[version];
		return OK;
	}
	return ERR_UNKNOWN;
}

static void symbols_read(void *library, struct host_linked *linked)
{
	linked->v1 = dlsym(library, "ncclProfiler_v1");
	linked->v2 = dlsym(library, "ncclProfiler_v2");
	linked->v3 = dlsym(library, "ncclProfiler_v3");
	linked->v4 = dlsym(library, "ncclProfiler_v4");
	linked->v5 = dlsym(library, "ncclProfiler_v5");
	linked->v6 = dlsym(library, "ncclProfiler_v6");
	linked->v7 = dlsym(library, "ncclProfiler_v7");
}

/* The first of the names that opens, or NULL with host->error set. */
static void *plugin_library_open(struct host *host)
{
	char(*names)[HOST_NAME_SIZE] = calloc(HOST_NAMES, sizeof(*names));
	void *library = NULL;
	size_t count;

	if (names == NULL) {
		text_copy(host->error, sizeof(host->error), "out of memory");
		return NULL;
	}
	count = host_plugin_names(host->config.release, host->config.plugin, names);
	if (count == 0)
		text_copy(host->error, sizeof(host->error), "switched off by the name \"none\"");
	for (size_t i = 0; i < count && library == NULL; i++) {
		library = dlopen(names[i][0] ? names[i] : NULL, RTLD_NOW | RTLD_LOCAL);
		if (library == NULL)
			text_copy(host->error, sizeof(host->error), dlerror());
	}
	free(names);
	return library;
}

static void load_from_library(struct host *host)
{
	struct host_linked linked;

	host->library = plugin_library_open(host);
	if (host->library == NULL) {
		host->has_failed = true;
		return;
	}
	symbols_read(host->library, &linked);
	if (host_plugin_find(&host->plugin, host->config.release, host->config.newest, &linked) ==
	    OK)
		return;
	text_copy(host->error, sizeof(host->error),
		  "the library has no ncclProfiler_v* for this "
		  "release");
	dlclose(host->library);
	host->library = NULL;
	host->has_failed = true;
}

void host_load(struct host *host)
{
	if (host->references++ > 0 || host->has_failed)
		return;
	host->error[0] = '\0';
	if (host->config.linked == NULL) {
		load_from_library(host);
	} else if (host_plugin_find(&host->plugin, host->config.release, host->config.newest,
				    host->config.linked) != OK) {
		text_copy(host->error, sizeof(host->error), "nothing is linked for this release");
		host->has_failed = true;
	}
}

void host_unload(struct host *host)
{
	if (--host->references > 0)
		return;
	host->plugin = (struct host_plugin){ .release = host->config.release };
	if (host->library)
		dlclose(host->library);
	host->library = NULL;
}

static void comm_set_up(struct host *host, struct host_comm *comm,
			const struct host_comm_config *config)
{
	comm->host = host;
	comm->config = *config;
	if (comm->config.nnodes == 0)
		comm->config.nnodes = 1;
	if (comm->config.nranks == 0)
		comm->config.nranks = 2;
	comm->random = host->config.seed ^ config->hash ^ (uint64_t)config->rank << 48;
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->changed, NULL);
	host_worker_init(&comm->group);
}

static void host_comm_free(struct host_comm *comm)
{
	host_device_free(comm->streams[ENGINE_PROXY].device);
	host_device_free(comm->streams[ENGINE_PROFILER].device);
	host_worker_release(&comm->group);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->lock);
	free(comm);
}

static enum status comm_engines(struct host_comm *comm)
{
	struct host_comm *share = comm->config.share;
	bool has_profiler = comm->host->config.release >= 23100;

	if (share) {
		host_engine_share(share->proxy);
		comm->proxy = share->proxy;
	} else if (host_engine_new(&comm->proxy, comm, ENGINE_PROXY) != OK) {
		return ERR_NO_SPACE;
	}
	comm->profiler = comm->proxy;
	if (has_profiler && host_engine_new(&comm->profiler, comm, ENGINE_PROFILER) != OK) {
		host_engine_leave(comm->proxy, true);
		return ERR_NO_SPACE;
	}
	return OK;
}

/* Concurrent inits are not serialized: the lock only covers loading. */
static void comm_init(struct host_comm *comm)
{
	struct host *host = comm->host;
	const struct host_comm_config *config = &comm->config;
	struct host_identity who = {
		.name = config->name,
		.hash = config->hash,
		.nnodes = config->nnodes,
		.nranks = config->nranks,
		.rank = config->rank,
		.log = host->config.log,
	};

	pthread_mutex_lock(&host->lock);
	host_load(host);
	comm->plugin = host->plugin;
	pthread_mutex_unlock(&host->lock);
	if (host->config.watcher != NULL)
		host->config.watcher->use(config->gpu);
	(void)host_init(&comm->plugin, &comm->context, &host->mask, &who);
}

enum status host_comm_new(struct host *host, struct host_comm **comm,
			  const struct host_comm_config *config)
{
	struct host_comm *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	comm_set_up(host, made, config);
	if (made->config.rank < 0 || made->config.rank >= made->config.nranks) {
		host_comm_free(made);
		return ERR_RANGE;
	}
	if (comm_engines(made) != OK) {
		host_comm_free(made);
		return ERR_NO_SPACE;
	}
	comm_init(made);
	pthread_mutex_lock(&host->lock);
	made->next = host->comms;
	host->comms = made;
	pthread_mutex_unlock(&host->lock);
	*comm = made;
	return OK;
}

void *host_comm_context(const struct host_comm *comm)
{
	return comm->context;
}

static void comm_finalize(struct host_comm *comm)
{
	struct host *host = comm->host;
	void *context = comm->context;

	if (comm->is_finalized)
		return;
	comm->is_finalized = true;
	if (comm->config.flags & HOST_COMM_NULL_CONTEXT)
		context = NULL;
	/* Since 2.28 NCCL tests for a context. */
	if (context || host->config.release < 22800)
		(void)host_finalize(&comm->plugin, context);
	pthread_mutex_lock(&host->lock);
	host_unload(host);
	pthread_mutex_unlock(&host->lock);
}

static void comm_wake(struct host_comm *comm)
{
	host_engine_wake(comm->proxy);
	if (comm->profiler != comm->proxy)
		host_engine_wake(comm->profiler);
}

/* Marks it dead: nothing more runs on it, and waiting threads return. False: it was already dead. */
static bool comm_kill(struct host_comm *comm, bool is_abort)
{
	bool was_dead;

	pthread_mutex_lock(&comm->lock);
	was_dead = comm->is_dead;
	store_relaxed(&comm->is_dead, 1);
	if (is_abort)
		store_relaxed(&comm->is_aborted, 1);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	comm_wake(comm);
	return !was_dead;
}

static void comm_leave_engines(struct host_comm *comm, bool is_abort)
{
	bool is_purged = comm->config.flags & HOST_COMM_LAST_STOP_LOST;

	if (comm->profiler != comm->proxy)
		host_engine_leave(comm->profiler, is_abort || is_purged);
	host_engine_leave(comm->proxy, is_abort);
}

void host_comm_revoke(struct host_comm *comm)
{
	if (!comm_kill(comm, true))
		return;
	host_worker_stop(&comm->group);
	comm_leave_engines(comm, true);
}

void host_comm_abort(struct host_comm *comm)
{
	host_comm_revoke(comm);
	comm_finalize(comm);
}

void host_comm_destroy(struct host_comm *comm)
{
	if (load_relaxed(&comm->is_dead)) {
		comm_finalize(comm);
		return;
	}
	host_comm_release(comm);
	host_worker_stop(&comm->group);
	host_worker_wait(&comm->host->callback);
	if (comm->host->config.clock && comm->config.share == NULL) {
		host_engine_hurry(comm->proxy);
		host_engine_hurry(comm->profiler);
	}
	/* Its own proxy ends before finalize; a shared one continues. */
	if (comm->config.share == NULL)
		host_engine_wait(comm->proxy, comm, 0);
	/* Here NCCL would wait forever. */
	if (comm->config.share == NULL && load_acquire(&comm->unfinished[ENGINE_PROXY]) > 0) {
		store_relaxed(&comm->is_purged, 1);
		host_engine_wake(comm->proxy);
		host_engine_wait(comm->proxy, comm, 0);
	}
	if (comm_kill(comm, false))
		comm_leave_engines(comm, false);
	comm_finalize(comm);
}

void host_comm_release(struct host_comm *comm)
{
	pthread_mutex_lock(&comm->lock);
	add_relaxed(&comm->releases, 1);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	comm_wake(comm);
}

static uint64_t comm_unfinished(struct host_comm *comm)
{
	uint64_t proxy = load_acquire(&comm->unfinished[ENGINE_PROXY]);
	uint64_t profiler = load_acquire(&comm->unfinished[ENGINE_PROFILER]);

	return proxy > profiler ? proxy : profiler;
}

size_t host_comm_settle(struct host_comm *comm)
{
	host_worker_wait(&comm->group);
	host_worker_wait(&comm->host->callback);
	host_engine_settle(comm->proxy);
	if (comm->profiler != comm->proxy)
		host_engine_settle(comm->profiler);
	return (size_t)comm_unfinished(comm);
}

bool host_comm_wait(struct host_comm *comm, size_t limit)
{
	if (limit == 0) {
		host_worker_wait(&comm->group);
		host_worker_wait(&comm->host->callback);
	}
	host_engine_wait(comm->proxy, comm, limit);
	if (comm->profiler != comm->proxy)
		host_engine_wait(comm->profiler, comm, limit);
	return !load_relaxed(&comm->is_dead);
}

static void log_nothing(int level, unsigned long flags, const char *file, int line, const char *fmt,
			...)
{
	(void)level;
	(void)flags;
	(void)file;
	(void)line;
	(void)fmt;
}

static bool is_off_by_environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && strcmp(value, "0") == 0;
}

enum status host_new(struct host **host, const struct host_config *config)
{
	struct host *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	made->config = *config;
	if (made->config.release == 0)
		made->config.release = HOST_NCCL_NEWEST;
	if (made->config.log == NULL)
		made->config.log = log_nothing;
	made->config.no_allgatherv |= is_off_by_environment("NCCL_ALLGATHERV_ENABLE");
	made->plugin.release = made->config.release;
	made->asks = host_asks_of(made->config.release);
	made->pid = getpid();
	pthread_mutex_init(&made->lock, NULL);
	host_worker_init(&made->callback);
	*host = made;
	return OK;
}

const struct host_plugin *host_plugin(const struct host *host)
{
	return &host->plugin;
}

const char *host_load_error(const struct host *host)
{
	return host->error;
}

int *host_mask(struct host *host)
{
	return &host->mask;
}

uint64_t host_clock_ns(void)
{
	static uint64_t offset_ns;
	uint64_t now_ns = clock_system_ns(CLOCK_MONOTONIC), offset = load_relaxed(&offset_ns);

	if (offset == 0) {
		offset = clock_system_ns(CLOCK_REALTIME) - now_ns;
		store_relaxed(&offset_ns, offset);
	}
	return now_ns + offset;
}

uint64_t host_now(const struct host *host)
{
	if (host->config.clock)
		return host->config.clock(host->config.clock_arg);
	return host_clock_ns();
}

/* Adds the words of a struct that has only uint64_t; the lanes' threads may still write theirs. */
static void counts_add(struct host_counts *sum, const struct host_counts *more)
{
	const uint64_t *from = (const uint64_t *)more;
	uint64_t *to = (uint64_t *)sum;

	_Static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "host_counts is all uint64_t");
	for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
		to[i] += load_relaxed(&from[i]);
}

static void comm_counts_add(struct host_counts *sum, const struct host_comm *comm)
{
	for (unsigned int lane = 0; lane < HOST_LANES; lane++)
		if (lane != LANE_FOREIGN)
			counts_add(sum, &comm->counts[lane]);
	for (unsigned int event = 0; event < HOST_EVENTS; event++)
		sum->foreign_starts += load_relaxed(&comm->counts[LANE_FOREIGN].starts[event]);
}

void host_comm_counts(const struct host_comm *comm, struct host_counts *counts)
{
	*counts = (struct host_counts){ 0 };
	comm_counts_add(counts, comm);
}

void host_counts(struct host *host, struct host_counts *counts)
{
	*counts = (struct host_counts){ 0 };
	pthread_mutex_lock(&host->lock);
	for (const struct host_comm *comm = host->comms; comm; comm = comm->next)
		comm_counts_add(counts, comm);
	pthread_mutex_unlock(&host->lock);
}

void host_tick(struct host *host)
{
	pthread_mutex_lock(&host->lock);
	for (struct host_engine *engine = host->engines; engine; engine = engine->next)
		host_engine_wake(engine);
	pthread_mutex_unlock(&host->lock);
}

void host_free(struct host *host)
{
	if (host == NULL)
		return;
	host_worker_release(&host->callback);
	while (host->engines) {
		struct host_engine *next = host->engines->next;

		host_engine_free(host->engines);
		host->engines = next;
	}
	while (host->comms) {
		struct host_comm *next = host->comms->next;

		host_comm_free(host->comms);
		host->comms = next;
	}
	pthread_mutex_destroy(&host->lock);
	free(host);
}
