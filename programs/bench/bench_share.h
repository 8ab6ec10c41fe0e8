/* Several ranks on one GPU: what NCCL must be told so that it takes them. docs/REAL-NCCL.md explains. */
#ifndef BENCH_SHARE_H
#define BENCH_SHARE_H

/* In the rank's own environment, before NCCL is opened: a machine of its own for each rank, sockets over
 * the loopback, and from four ranks of a GPU on few channels, because kernels that wait for each other
 * must fit on it together. What the user set stays, but for NCCL_HOSTID. */
void bench_share_environment(int rank, int ranks_per_gpu);

#endif
