/* SPDX-License-Identifier: MIT */
/*
 * Delays at the points of the library that HL_DELAY() marks. Included before everything else
 * when the rooms' sources are compiled into a torture test.
 */
#ifndef DELAY_H
#define DELAY_H

#define HL_DELAY(point) delay_here()

/* Goes on at once, spins, or gives the processor away. */
void delay_here(void);
/* The same seed gives each thread, in the order of their first delays, the same delays. */
void delay_seed(unsigned seed);

#endif
