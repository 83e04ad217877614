/* SPDX-License-Identifier: MIT */
/*
 * The machine that is measured on.
 */
#ifndef HL_BENCH_MACHINE_H
#define HL_BENCH_MACHINE_H

struct bench_machine {
	unsigned cpus; /* processors that this process may use */
	int *processor; /* their numbers */
	unsigned line_bytes;
	char *model;
	char *kernel;
};

/* 0 or -ENOMEM; to be freed in either case. */
int bench_machine_read(struct bench_machine *machine);
void bench_machine_free(struct bench_machine *machine);

#endif
