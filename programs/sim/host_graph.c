/*
 * CUDA graphs. A captured plan keeps its tasks: their masks and API handles are those of the
 * capture, for as long as the graph lives. A replay runs on CUDA's callback thread.
 */
#include <stdlib.h>

#include "programs/sim/host_inside.h"

struct host_graph {
	struct host *host;
	struct host_plan *first;
	struct host_plan **last;
};

struct replay_job {
	struct host_worker_job job;
	struct host_graph *graph;
};

enum status host_graph_new(struct host *host, struct host_graph **graph)
{
	struct host_graph *made = calloc(1, sizeof(*made));

	if (made == NULL)
		return ERR_NO_SPACE;
	made->host = host;
	made->last = &made->first;
	*graph = made;
	return OK;
}

void host_graph_add(struct host_graph *graph, struct host_plan *plan)
{
	*graph->last = plan;
	graph->last = &plan->next;
}

void host_graph_free(struct host_graph *graph)
{
	if (graph == NULL)
		return;
	host_worker_wait(&graph->host->callback);
	while (graph->first) {
		struct host_plan *next = graph->first->next;

		host_plan_free(graph->first);
		graph->first = next;
	}
	free(graph);
}

static void replay_run(struct host_worker_job *job)
{
	struct host_graph *graph = ((struct replay_job *)job)->graph;

	for (struct host_plan *plan = graph->first; plan; plan = plan->next)
		host_plan_replay(plan);
	free(job);
}

enum status host_graph_replay(struct host_graph *graph)
{
	struct replay_job *job = malloc(sizeof(*job));
	enum status status;

	if (job == NULL)
		return ERR_NO_SPACE;
	*job = (struct replay_job){ .job.run = replay_run, .graph = graph };
	status = host_worker_give(&graph->host->callback, &job->job, "cuda-EvtHandlr");
	if (status != OK)
		free(job);
	return status;
}
