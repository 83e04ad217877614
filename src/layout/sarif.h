/* SPDX-License-Identifier: MIT */
/*
 * What all reports in SARIF have in common.
 */
#ifndef HL_LAYOUT_SARIF_H
#define HL_LAYOUT_SARIF_H

#include "debuginfo/text.h"

#include <stdint.h>

/* "error", "warning", "note" for a score of 1 to 1000. */
const char *hl_sarif_level(unsigned score);
/* Adds a file name as a URI reference: absolute ones as file:, others as they are. */
void hl_sarif_uri(struct hl_text *text, const char *path);

/* A fingerprint need be no more than stable: a hash of strings, begun with HL_SARIF_HASH. */
#define HL_SARIF_HASH 0xcbf29ce484222325
uint64_t hl_sarif_hash(uint64_t hash, const char *string);
/* Its 16 digits. */
void hl_sarif_fingerprint(char text[17], uint64_t hash);

#endif
