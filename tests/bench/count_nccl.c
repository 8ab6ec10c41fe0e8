/* A library with NCCL's names that does nothing: libringside-count.so wraps it. */
#include <stddef.h>

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm,
		  void *stream);
int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream);
int ncclGroupStart(void);
int ncclGroupEnd(void);

/* Returns an error for a count of 0. */
int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm,
		  void *stream)
{
	(void)from, (void)to, (void)type, (void)op, (void)comm, (void)stream;
	return count == 0 ? 4 : 0;
}

int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm,
		  void *stream)
{
	(void)from, (void)to, (void)count, (void)type, (void)root, (void)comm, (void)stream;
	return 0;
}

/* As the real one does. */
int ncclBcast(void *buffer, size_t count, int type, int root, void *comm, void *stream)
{
	return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

int ncclSend(const void *from, size_t count, int type, int peer, void *comm, void *stream)
{
	(void)from, (void)count, (void)type, (void)peer, (void)comm, (void)stream;
	return 0;
}

int ncclGroupStart(void)
{
	return 0;
}

int ncclGroupEnd(void)
{
	return 0;
}
