/* The hub: one verdict and one page for the jobs of a cluster (docs/HUB.md). */
#ifndef HUB_MAIN_H
#define HUB_MAIN_H

/* argv[0] is "hub". Runs until it is stopped; returns the exit code. */
int hub_main(int argc, char **argv);

#endif
