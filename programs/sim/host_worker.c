#include <stdlib.h>

#include "programs/sim/host_inside.h"

void host_worker_init(struct host_worker *worker)
{
	*worker = (struct host_worker){ 0 };
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->changed, NULL);
	worker->last = &worker->first;
}

static struct host_worker_job *worker_take(struct host_worker *worker)
{
	struct host_worker_job *job;

	pthread_mutex_lock(&worker->lock);
	while (worker->first == NULL && !worker->is_stopping)
		pthread_cond_wait(&worker->changed, &worker->lock);
	job = worker->first;
	if (job) {
		worker->first = job->next;
		if (worker->first == NULL)
			worker->last = &worker->first;
	}
	pthread_mutex_unlock(&worker->lock);
	return job;
}

static void *worker_main(void *arg)
{
	struct host_worker *worker = arg;
	struct host_worker_job *job;

	while ((job = worker_take(worker)) != NULL) {
		job->run(job);
		pthread_mutex_lock(&worker->lock);
		worker->unfinished--;
		pthread_cond_broadcast(&worker->changed);
		pthread_mutex_unlock(&worker->lock);
	}
	return NULL;
}

void host_worker_stop(struct host_worker *worker)
{
	bool is_running;

	pthread_mutex_lock(&worker->lock);
	is_running = worker->is_running;
	worker->is_running = false;
	worker->is_stopping = true;
	pthread_cond_broadcast(&worker->changed);
	pthread_mutex_unlock(&worker->lock);
	if (is_running)
		pthread_join(worker->thread, NULL);
}

void host_worker_release(struct host_worker *worker)
{
	host_worker_stop(worker);
	pthread_cond_destroy(&worker->changed);
	pthread_mutex_destroy(&worker->lock);
}

enum status host_worker_give(struct host_worker *worker, struct host_worker_job *job,
			     const char *thread_name)
{
	enum status status = OK;

	pthread_mutex_lock(&worker->lock);
	if (worker->is_stopping) {
		status = ERR_GONE;
	} else if (!worker->is_running) {
		if (pthread_create(&worker->thread, NULL, worker_main, worker) == 0) {
			pthread_setname_np(worker->thread, thread_name);
			worker->is_running = true;
		} else {
			status = ERR_SYSTEM;
		}
	}
	if (status == OK) {
		job->next = NULL;
		*worker->last = job;
		worker->last = &job->next;
		worker->unfinished++;
		pthread_cond_broadcast(&worker->changed);
	}
	pthread_mutex_unlock(&worker->lock);
	return status;
}

void host_worker_wait(struct host_worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->unfinished)
		pthread_cond_wait(&worker->changed, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}
