/* SPDX-License-Identifier: MIT */
#ifndef HOTLINE_CACHELINE_H
#define HOTLINE_CACHELINE_H

#include <stddef.h>
#include <hotline/api.h>

#ifndef HL_CACHE_LINE
#define HL_CACHE_LINE 64
#endif
#define HL_CACHELINE_ALIGNED __attribute__((aligned(HL_CACHE_LINE)))

HL_BEGIN_DECLS

HL_API size_t hl_cache_line_size(void);
HL_API size_t hl_cache_line_pair_size(void);

HL_END_DECLS

#endif
