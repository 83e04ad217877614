/* SPDX-License-Identifier: MIT */
/*
 * What every public header needs to declare a function.
 */
#ifndef HOTLINE_API_H
#define HOTLINE_API_H

/*
 * HL_API - marks a function that the shared library exports
 *
 * The library is compiled with hidden visibility; what carries this mark, and
 * is listed in src/hotline.map, can be called from outside.
 */
#define HL_API __attribute__((visibility("default")))

/* HL_BEGIN_DECLS, HL_END_DECLS - enclose declarations with C linkage */
#ifdef __cplusplus
#define HL_BEGIN_DECLS extern "C" {
#define HL_END_DECLS }
#else
#define HL_BEGIN_DECLS
#define HL_END_DECLS
#endif

#endif
