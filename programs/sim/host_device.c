/*
 * The GPU, and the poll for it. For each channel the device counts the works that it runs and writes
 * {time, counter} of those whose kernel events were requested into a ring of 64 stamps, one ring for starts and
 * one for stops (2.26: one stamp). A poll waits until the slot of the host's count holds that count *or more*:
 *
 *	device counts	...  7   8   9  10		slot 9 % 64: { time, 9 }
 *	host expects	         8   9			poll for 9 is satisfied
 *
 * As long as both count the same works the stamps are the right ones. When the device has counted
 * one that the host does not know (a send to oneself), every later poll on that channel looks at the slot of an
 * older work: old stamps if that work was stamped, and if not, nothing, until a work 64 later is
 * stamped there. When the poll comes 64 works late it finds the stamps of a younger work. Nothing here makes that
 * up: host_post.c counts as NCCL does.
 */
#include <stdlib.h>

#include "programs/sim/host_engine.h"

enum { BIT_KERNEL = 6, BIT_PHASE = 15, NO_CHANNEL = 0xffff, GATE_LOOK_NS = 1000000 };

void host_device_free(struct host_device *device)
{
	if (device == NULL)
		return;
	for (unsigned int i = 0; i < HOST_CHANNELS; i++)
		free(device->channels[i]);
	free(device);
}

static struct host_stream *stream_of(const struct host_engine *engine,
				     const struct host_active *active)
{
	return &active->work.comm->streams[engine->kind];
}

static struct host_channel *channel_of(const struct host_engine *engine,
				       const struct host_active *active, unsigned int channel)
{
	unsigned int number = (active->work.first_channel + channel) % HOST_CHANNELS;

	return stream_of(engine, active)->device->channels[number];
}

static bool has_stamps(const struct host_active *active)
{
	return active->work.has_kernel_events || active->work.is_stamped;
}

static struct host_stamp *slot_of(const struct host_engine *engine, struct host_stamp *stamps,
				  uint64_t counter)
{
	return &stamps[engine->host->config.release < 22700 ? 0 : counter % HOST_STAMPS];
}

/* Memory for the rings of the channels that this work uses. */
static enum status device_reserve(const struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);

	if (stream->device == NULL)
		stream->device = calloc(1, sizeof(*stream->device));
	if (stream->device == NULL)
		return ERR_NO_SPACE;
	for (unsigned int i = 0; i < active->work.channels; i++) {
		struct host_channel **channel =
			&stream->device->channels[(active->work.first_channel + i) % HOST_CHANNELS];

		if (*channel == NULL)
			*channel = calloc(1, sizeof(**channel));
		if (*channel == NULL)
			return ERR_NO_SPACE;
	}
	return OK;
}

static enum status kernels_reserve(struct host_active *active, size_t count)
{
	struct host_kernel *kernels = active->kernels;

	if (count <= active->kernel_room)
		return OK;
	kernels = realloc(kernels, count * sizeof(*kernels));
	if (kernels == NULL)
		return ERR_NO_SPACE;
	for (size_t i = active->kernel_room; i < count; i++)
		kernels[i].handle = NULL;
	active->kernels = kernels;
	active->kernel_room = count;
	return OK;
}

static void kernel_init(const struct host_engine *engine, struct host_active *active,
			unsigned int i)
{
	struct host_channel *channel = channel_of(engine, active, i);
	struct host_kernel *kernel = &active->kernels[i];

	kernel->channel = channel;
	kernel->base = host_work_counters(&active->work)[i].host;
	kernel->turn = channel->queued[active->work.is_recv]++;
	kernel->is_started = kernel->is_done = false;
}

enum status host_device_append(struct host_engine *engine, struct host_active *active)
{
	size_t count = active->work.has_kernel_events ? active->work.kernel_channels : 0;

	active->kernel_count = active->kernels_open = 0;
	active->is_gpu_started = active->is_gpu_done = active->work.is_foreign;
	active->is_open = active->work.gate == NULL || !engine->is_real;
	active->begin_ns = 0;
	active->channels_running = active->work.is_foreign ? 0 : active->work.channels;
	active->lost_channel = NO_CHANNEL;
	active->is_lagging = count > 0 && active_is_quirky(active, HOST_QUIRK_STAMP_OVERRUN);
	for (unsigned int i = 0; i < active->work.channels; i++)
		active->channel_stopped[i] = false;
	if (!has_stamps(active))
		return OK;
	if (device_reserve(engine, active) != OK || kernels_reserve(active, count) != OK)
		return ERR_NO_SPACE;
	for (unsigned int i = 0; i < count; i++)
		kernel_init(engine, active, i);
	active->kernel_count = active->kernels_open = count;
	if (count > 0 && active_is_quirky(active, HOST_QUIRK_LOST_START))
		active->lost_channel = (uint16_t)(host_random(&engine->random) % count);
	return OK;
}

/* ---- the device ------------------------------------------------------------------------------ */

/* When the kernel starts, on the GPU's clock. Real time: when it was due, not when it was seen. */
static uint64_t start_choose(const struct host_engine *engine, const struct host_active *active)
{
	const struct host_stream *stream = stream_of(engine, active);
	uint64_t offset = (uint64_t)engine->host->config.gpu_offset_ns;
	uint64_t start = active->work.launch_ns;

	if (!engine->is_real)
		start = host_now(engine->host);
	else if (active->work.stuck == HOST_STUCK_KERNEL)
		start = engine->now_ns; /* it was let go just now */
	else if (start < active->work.start_ns)
		start = active->work.start_ns;
	start += offset;
	return start < stream->stop_ns ? stream->stop_ns : start;
}

/* Kernels of one plan are one kernel: its stamps are those of all its works. */
static void stamps_choose(struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);

	if (stream->plan != active->work.plan) {
		stream->start_ns = start_choose(engine, active);
		stream->stop_ns = stream->start_ns + active->work.duration_ns;
		stream->plan = active->work.plan;
	}
	active->start_ns = stream->start_ns;
	active->stop_ns = stream->stop_ns;
}

static void device_start(struct host_engine *engine, struct host_active *active)
{
	stamps_choose(engine, active);
	active->is_gpu_started = true;
	if (!active->work.is_stamped)
		return;
	for (unsigned int i = 0; i < active->work.channels; i++) {
		struct host_channel *channel = channel_of(engine, active, i);
		uint64_t counter = host_work_counters(&active->work)[i].device;
		struct host_stamp *slot = slot_of(engine, channel->start, counter);

		if (slot->counter > counter)
			continue;
		slot->gpu_ns = active->start_ns + i * (uint64_t)active->work.start_skew_ns;
		slot->counter = counter;
		channel->device = counter;
	}
}

static void device_stop(struct host_engine *engine, struct host_active *active, unsigned int i)
{
	uint64_t stop = active->stop_ns + i * (uint64_t)active->work.stop_skew_ns;
	uint64_t now = engine->now_ns + (uint64_t)engine->host->config.gpu_offset_ns;
	struct host_stream *stream = stream_of(engine, active);
	struct host_stamp *slot;
	uint64_t counter;

	active->channel_stopped[i] = true;
	active->channels_running--;
	/* Real time: transfers, or a hang, may have kept the kernel longer than planned. */
	if (engine->is_real && now > stop &&
	    (active->work.edge_count > 0 || active->work.stuck != HOST_STUCK_NONE))
		stop = now;
	if (stream->stop_ns < stop)
		stream->stop_ns = stop;
	if (!active->work.is_stamped)
		return;
	counter = host_work_counters(&active->work)[i].device;
	slot = slot_of(engine, channel_of(engine, active, i)->stop, counter);
	if (slot->counter >= counter)
		return; /* by the Send that this Recv shares its work with */
	slot->gpu_ns = stop;
	slot->counter = counter;
}

/* Kernels of a communicator run one after the other. In virtual time only one that hangs is waited
 * for, so that many can be looked at in one turn. */
static bool gpu_may_start(struct host_engine *engine, const struct host_active *active)
{
	const struct host_stream *stream = stream_of(engine, active);

	if (stream->busy_pass == engine->pass && stream->busy_plan != active->work.plan)
		return false;
	if (active->work.stuck == HOST_STUCK_KERNEL && active_is_held(active))
		return false;
	if (!engine->is_real)
		return true;
	return engine_is_due(engine, active->work.launch_ns) &&
	       engine_is_due(engine, active->work.start_ns);
}

/* Ask whether all the others are there, too. */
static bool gate_try(struct host_engine *engine, struct host_active *active)
{
	struct host_gate gate = { .look_ns = 0 };
	struct host_stream *stream = stream_of(engine, active);

	if (!engine->is_real) {
		active->is_open = true; /* its communicator ends: nobody moves the clock any more */
		return true;
	}
	if (!active->work.gate(active->work.gate_arg, engine->now_ns, &gate)) {
		/* Not due yet, on purpose: the engine wakes up then. */
		(void)engine_is_due(engine, gate.look_ns > engine->now_ns
						    ? gate.look_ns
						    : engine->now_ns + GATE_LOOK_NS);
		return false;
	}
	active->is_open = true;
	/* The others may have been there before this kernel could start. */
	if (gate.begin_ns + (uint64_t)engine->host->config.gpu_offset_ns < active->start_ns)
		gate.begin_ns = active->start_ns - (uint64_t)engine->host->config.gpu_offset_ns;
	active->begin_ns = gate.begin_ns;
	active->stop_ns =
		gate.begin_ns + gate.duration_ns + (uint64_t)engine->host->config.gpu_offset_ns;
	if (stream->stop_ns < active->stop_ns)
		stream->stop_ns = active->stop_ns;
	active->period_ns = gate.period_ns;
	if (gate.period_ns == 0 && active->work.steps != 0)
		active->period_ns = gate.duration_ns / active->work.steps;
	return true;
}

static bool channel_may_stop(struct host_engine *engine, const struct host_active *active,
			     unsigned int i)
{
	const struct host_work *work = &active->work;
	bool hangs = work->stuck == HOST_STUCK_KERNEL_END ||
		     (work->stuck != HOST_STUCK_NONE && work->edge_count == 0);

	if (work->stuck == HOST_STUCK_EDGES)
		hangs = i < 32 && (work->stuck_kernels >> i & 1) != 0;

	if (active->channel_open[i] > 0 || !active->is_open)
		return false;
	if (hangs && active_is_stuck_channel(active, i) && active_is_held(active))
		return false;
	return engine_is_due(engine, active->stop_ns -
					     (uint64_t)engine->host->config.gpu_offset_ns +
					     i * (uint64_t)work->stop_skew_ns);
}

static bool gpu_progress(struct host_engine *engine, struct host_active *active)
{
	struct host_stream *stream = stream_of(engine, active);
	bool has_moved = false;

	if (active->is_gpu_done)
		return false;
	if (!active->is_gpu_started && gpu_may_start(engine, active)) {
		device_start(engine, active);
		has_moved = true;
	} else if (active->is_gpu_started) {
		has_moved = !active->is_open && gate_try(engine, active);
		for (unsigned int i = 0; i < active->work.channels; i++) {
			if (active->channel_stopped[i] || !channel_may_stop(engine, active, i))
				continue;
			device_stop(engine, active, i);
			has_moved = true;
		}
		active->is_gpu_done = active->channels_running == 0;
	}
	/* The first that is not over keeps it busy; one that waits behind must not let its own plan in. */
	if (!active->is_gpu_done && stream->busy_pass != engine->pass &&
	    (engine->is_real || active_is_held(active))) {
		stream->busy_pass = engine->pass;
		stream->busy_plan = active->work.plan;
	}
	return has_moved;
}

/* ---- the poll -------------------------------------------------------------------------------- */

static void kernel_show_start(struct host_active *active, struct host_kernel *kernel,
			      unsigned int i, uint64_t gpu_ns)
{
	uint8_t number = (uint8_t)(active->work.first_channel + i);

	kernel->is_started = true;
	kernel->start = gpu_ns;
	if (active_is_quirky(active, HOST_QUIRK_STAMP_ZERO))
		gpu_ns = 0;
	host_start_kernel_ch(&active->plugin, active->call, &kernel->handle, active->work.parent,
			     number, gpu_ns);
	active_count_start(active, BIT_KERNEL);
}

/* 2.31: what the kernel did in between. */
static void kernel_show_phases(struct host_active *active, struct host_kernel *kernel,
			       unsigned int i, uint64_t stop)
{
	static const char *const names[] = { "load", "reduce" };
	uint64_t half = stop > kernel->start ? (stop - kernel->start) / 2 : 0;

	for (unsigned int phase = 0; phase < 2; phase++) {
		struct host_phase data = {
			.parent = kernel->handle,
			.channel = (uint8_t)(active->work.first_channel + i),
			.phase = (uint8_t)phase,
			.name = names[phase],
			.gpu_ns = kernel->start + phase * half,
		};
		void *handle = NULL;

		host_start_kernel_phase(&active->plugin, active->call, &handle, &data);
		active_count_start(active, BIT_PHASE);
		if (handle == NULL)
			continue;
		host_state_kernel_phase(&active->plugin, handle, data.gpu_ns + half);
		active_count_state(active, ABI_KERNEL_PHASE_STOP);
		active_stop(active, BIT_PHASE, handle);
	}
}

static void kernel_show_stop(struct host_active *active, struct host_kernel *kernel, unsigned int i,
			     uint64_t gpu_ns)
{
	if (active_is_quirky(active, HOST_QUIRK_STAMP_REVERSED))
		gpu_ns = kernel->start - HOST_STAMPS * (active->work.duration_ns + 1000);
	if (active->wants.phase)
		kernel_show_phases(active, kernel, i, gpu_ns);
	if (kernel->handle == NULL)
		return;
	if (active->plugin.version >= 4) {
		host_state_kernel_ch(&active->plugin, kernel->handle, gpu_ns);
		active_count_state(active, ABI_KERNEL_CH_STOP);
	}
	if (kernel->is_started) {
		active_stop(active, BIT_KERNEL, kernel->handle);
	} else {
		/* The handle is another's, stopped long ago. */
		(void)host_stop(&active->plugin, kernel->handle);
		bump_relaxed(&active->counts->extra_stops, 1);
	}
}

static bool kernel_poll(struct host_engine *engine, struct host_active *active, unsigned int i)
{
	struct host_kernel *kernel = &active->kernels[i];
	struct host_channel *channel = kernel->channel;
	const struct host_stamp *slot;

	/* Up to 2.30 one waits for the other on the same connection. 2.31 looks at all of them, and those whose
	 * kernel has not ended have nothing to show. */
	if (channel->polled[active->work.is_recv] != kernel->turn &&
	    (engine->kind == ENGINE_PROXY || !active->is_gpu_done))
		return false;
	if (active->is_lagging && !engine->is_lag_over &&
	    channel->device < kernel->base + HOST_STAMPS)
		return false;
	slot = slot_of(engine, channel->start, kernel->base);
	if (!kernel->is_started && i != active->lost_channel && slot->counter >= kernel->base) {
		kernel_show_start(active, kernel, i, slot->gpu_ns);
		return true;
	}
	slot = slot_of(engine, channel->stop, kernel->base);
	if ((!kernel->is_started && i != active->lost_channel) || slot->counter < kernel->base)
		return false;
	kernel_show_stop(active, kernel, i, slot->gpu_ns);
	kernel->is_done = true;
	channel->polled[active->work.is_recv]++;
	active->kernels_open--;
	return true;
}

bool host_device_progress(struct host_engine *engine, struct host_active *active)
{
	bool has_moved = gpu_progress(engine, active);

	if (active->kernels_open == 0)
		return has_moved;
	for (unsigned int i = 0; i < active->kernel_count; i++)
		if (!active->kernels[i].is_done && kernel_poll(engine, active, i))
			has_moved = true;
	return has_moved;
}
