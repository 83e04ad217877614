// SPDX-License-Identifier: MIT
#include "bench/experiments.h"

#include <stddef.h>

const struct bench_experiment *const bench_experiments[] = {
	&bench_csd_align,	&bench_call_many, &bench_call_latency,
	&bench_call_throughput, &bench_cpu_poll,  NULL,
};
