/*
 * The calls, one JSON object per line in DIR/issued-RANK.jsonl: communicators, calls in order, graph launches.
 * Written after each case, so that a killed job has left what it did.
 */
#include "driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nccl.h>

void log_open(struct job *job)
{
	char path[4096];
	int version = 0;

	snprintf(path, sizeof(path), "%s/issued-%d.jsonl", job->options.out, job->options.rank);
	job->out = fopen(path, "w");
	if (!job->out)
		die("cannot write %s: %s", path, strerror(errno));
	must_nccl(ncclGetVersion(&version), "ncclGetVersion");
	fprintf(job->out, "{\"line\":\"rank\",\"rank\":%d,\"ranks\":%d,\"pid\":%d,\"nccl\":%d}\n",
		job->options.rank, job->options.ranks, (int)getpid(), version);
	fflush(job->out);
}

void log_communicator(struct job *job, const struct communicator *communicator)
{
	fprintf(job->out,
		"{\"line\":\"comm\",\"comm\":%d,\"name\":\"%s\",\"rank\":%d,\"ranks\":%d}\n",
		communicator->order, communicator->name, communicator->rank, communicator->ranks);
	fflush(job->out);
}

static size_t message_bytes(const char *function, size_t count, size_t element_bytes, int ranks)
{
	int is_whole = strcmp(function, "AllGather") == 0 || strcmp(function, "ReduceScatter") == 0;

	return count * element_bytes * (is_whole ? (size_t)ranks : 1);
}

void log_call(struct job *job, const struct communicator *communicator, const char *function,
	      size_t count, const struct shape *shape, int root, int peer)
{
	struct issued *call;

	if (job->call_count == job->call_room) {
		job->call_room = job->call_room ? 2 * job->call_room : 4096;
		job->calls = realloc(job->calls, job->call_room * sizeof(*job->calls));
		if (!job->calls)
			die("out of memory for the log");
	}
	call = &job->calls[job->call_count++];
	memset(call, 0, sizeof(*call));
	call->comm = communicator->order;
	call->kind = job->kind;
	call->style = job->style;
	call->phase = job->phase;
	call->function = function;
	call->datatype = shape->type_name;
	call->count = count;
	call->bytes = message_bytes(function, count, shape->element_bytes, communicator->ranks);
	call->root = root;
	call->peer = peer;
	call->is_captured = job->is_capturing;
}

void log_times(struct job *job, size_t first, uint64_t begin_ns, uint64_t end_ns, uint64_t host_ns,
	       uint64_t event_ns)
{
	for (size_t i = first; i < job->call_count; i++) {
		job->calls[i].begin_ns = begin_ns;
		job->calls[i].end_ns = end_ns;
		job->calls[i].host_ns = host_ns;
		job->calls[i].event_ns = event_ns;
	}
}

/* One launch of the graph that holds the calls from `first` on. */
void log_replay(struct job *job, size_t first, size_t count, uint64_t begin_ns, uint64_t end_ns,
		uint64_t event_ns)
{
	fprintf(job->out,
		"{\"line\":\"replay\",\"first\":%zu,\"calls\":%zu,\"begin_ns\":%llu,"
		"\"end_ns\":%llu,\"event_ns\":%llu}\n",
		first, count, (unsigned long long)begin_ns, (unsigned long long)end_ns,
		(unsigned long long)event_ns);
}

void log_write(struct job *job)
{
	for (size_t i = job->written; i < job->call_count; i++) {
		const struct issued *call = &job->calls[i];

		fprintf(job->out,
			"{\"line\":\"call\",\"index\":%zu,\"comm\":%d,\"kind\":\"%s\","
			"\"style\":\"%s\",\"phase\":\"%s\",\"function\":\"%s\",\"count\":%zu,"
			"\"datatype\":\"%s\",\"bytes\":%zu,\"root\":%d,\"peer\":%d,"
			"\"captured\":%d,\"begin_ns\":%llu,\"end_ns\":%llu,\"host_ns\":%llu,"
			"\"event_ns\":%llu}\n",
			i, call->comm, call->kind, call->style, call->phase, call->function,
			call->count, call->datatype, call->bytes, call->root, call->peer,
			call->is_captured, (unsigned long long)call->begin_ns,
			(unsigned long long)call->end_ns, (unsigned long long)call->host_ns,
			(unsigned long long)call->event_ns);
	}
	job->written = job->call_count;
	fflush(job->out);
}

void log_close(struct job *job)
{
	log_write(job);
	fprintf(job->out, "{\"line\":\"end\",\"calls\":%zu}\n", job->call_count);
	if (fclose(job->out) != 0)
		die("cannot write the calls: %s", strerror(errno));
	job->out = NULL;
}
