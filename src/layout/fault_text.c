// SPDX-License-Identifier: MIT
/*
 * The names of the faults and what is to be said of each.
 */
#include "layout/faults.h"
#include "weights.h"

#include <string.h>

#define W(name) HL_W_TEXT(HL_W_##name)

static const struct {
	const char *name, *title, *explanation;
} text[HL_N_FAULTS] = {
	[HL_FAULT_FALSE_ISOLATION] = {
		"false-isolation",
		"padding or alignment that does not do what it was put there for",
		"Somebody spent memory on keeping two things on different lines, and they may share\n"
		"one all the same: a pad array that is too short, or is right but stands in a struct\n"
		"whose own alignment is below the line, so that nobody knows where its lines begin\n"
		"and its first and last fields share lines with whatever lies beside it in memory;\n"
		"an alignment that was written on a pointer and not on what it points to; a variable\n"
		"that begins a line and does not fill it; groups that are 64 bytes apart where 128\n"
		"travel together (--line 128, --pair).\n"
		"\n"
		"What is looked for: arrays named pad, padding, filler or spacer of 32 bytes and more,\n"
		"and members and variables with an explicit alignment of a line and more.  For a\n"
		"struct aligned to A every address that is a multiple of A is considered.\n"
		"\n"
		"Score: " W(THIN_PAD) " for a pad that is too short (" W(UNMEANT_PAD)
		" when nothing around it looks written),\n" W(CLOSE_GROUPS)
		" for groups closer than what travels together, " W(OPEN_END) " for open ends,\n"
		W(ALIGNED_POINTER) " for an aligned pointer to counters or to things of threads, "
		W(OPEN_VARIABLE) " for a variable.\n"
		"\n"
		"What to do: leave the arithmetic to the compiler.  Align the first member of each\n"
		"group to a line; that aligns the struct and rounds up its size as well.",
	},
	[HL_FAULT_SHARED_SLOTS] = {
		"shared-slots",
		"an array with one element a thread or CPU, whose elements share lines",
		"Each thread writes only its own element, and yet every write takes the line away\n"
		"from the neighbours: false sharing in its purest form.\n"
		"\n"
		"What is looked for: arrays, in structs and as variables, whose name or element type\n"
		"speaks of threads, CPUs, workers, cores, readers, shards, slots or lanes, whose\n"
		"elements hold something written (an atomic, a lock, a counter) and are no whole\n"
		"lines.  Arrays of locks, atomics and counters that say nothing of threads are\n"
		"shown further down: they may be one a thread.\n"
		"\n"
		"Score: " W(SLOT_STRUCT) " for structs that hold something written (" W(SLOT_MAYBE)
		" for those in slots, shards and lanes,\n" W(SLOT_QUIET)
		" for those in which nothing looks written), " W(SLOT_ATOMIC) " for atomics, "
		W(SLOT_COUNT) " for plain counters;\nwithout a word of threads " W(GUESS_LOCK)
		" for locks, " W(GUESS_ATOMIC) " for atomics, " W(GUESS_COUNT)
		" for what counts by its name alone.\n" W(SLOT_LARGE)
		" of that when an element is larger than a line and shares only its ends, "
		W(SLOT_MANY) " from\n" W(MANY_SLOTS) " elements on.\n"
		"\n"
		"What to do: align the element type to a line, or give each thread memory of its own\n"
		"(thread-local, per CPU) and let the reader add up.",
	},
	[HL_FAULT_STRADDLE] = {
		"straddle",
		"fits in one line, but its alignment lets it lie across two",
		"A message that one CPU writes and another reads moves one line when it lies in one\n"
		"and two when it lies across two.  The Linux kernel's struct call_single_data was such\n"
		"a one until 2017; aligned to its own size, a power of two, it cannot straddle.\n"
		"\n"
		"What is looked for: structs of up to a line that hold an atomic, a lock, a link of a\n"
		"list or queue or a completion flag, and whose alignment (that of a typedef counts, and\n"
		"one that every place where it is embedded shares) allows it.  Links and locks by\n"
		"themselves (struct list_head, a mutex) are building blocks and not reported.\n"
		"\n"
		"Score: by what it holds: link, callback and its argument " W(MESSAGE)
		" (up to " W(MESSAGE_FIELDS) " fields, else " W(QUEUED) "; without\nan argument "
		W(LINK_CALLBACK) "), flag and callback " W(ANSWERED) " or " W(FLAG_CALLBACK)
		", atomic or lock with a link or flag " W(ATOMIC_LINK) ", atomic\nor lock " W(ATOMIC)
		", link and flag " W(LINK_FLAG) ", flag " W(FLAG) ", link " W(LINK) ".  " W(BY_NAME)
		" of that when only the name of a plain\ninteger says so, " W(INNER)
		" when it is a struct inside that holds them, " W(REGISTERED)
		" for handlers, listeners and\nother registrations, " W(ALLOCATED)
		" for 16 bytes and less, which malloc() places well.\n"
		"Times 0.5 to 1 for the share of addresses at which it straddles, times 0.5 to 1 for\n"
		"the memory that alignment costs.\n"
		"\n"
		"What to do: __attribute__((aligned(N))) with N the size when that is a power of two,\n"
		"else the power of two above it, a line at most.",
	},
	[HL_FAULT_LOCK_BESIDE_READ_MOSTLY] = {
		"lock-beside-read-mostly",
		"a lock, atomic or reference count in the line of fields that are read-mostly",
		"Whoever takes the lock or counts a reference takes the whole line, and all who only\n"
		"wanted to read the operations, the size or the id beside it wait for it to come back.\n"
		"\n"
		"What is looked for: per line, a written field (lock, atomic, reference count, volatile)\n"
		"with const fields, pointers to functions, to operations or to const (strong), or\n"
		"integers and pointers named like sizes, ids, limits, names (weak; two are needed).\n"
		"Beside an atomic count plain pointers are weak signs as well.  Packets, hits and other\n"
		"plain integers that are counted up count as written beside strong signs.  In a struct\n"
		"that its author aligned to a line, the line of a lock is taken for what the lock\n"
		"guards, and only strong signs count.  The one callback of a queued message is none.\n"
		"\n"
		"Score: " W(BESIDE) ", and " W(BESIDE_STRONG) " for each strong sign (" W(MOST_STRONG)
		" at most), " W(BESIDE_WEAK) " for each weak one (" W(MOST_WEAK) " at most);\n"
		"for plain integers that are counted up " W(TALLY) ", " W(TALLY_STRONG) " and "
		W(TALLY_WEAK) ".  " W(TABLE) " of that in a table of more than\n" W(TABLE_CALLBACKS)
		" operations, " W(BY_NAME) " when a name alone says that it is written, or for a "
		"volatile flag;\n" W(INSEPARABLE) " when no order of the members separates them, else "
		"0.4 to 1 for the memory that it takes.\n"
		"\n"
		"What to do: group the members, read-mostly first, the written ones from a line of\n"
		"their own on.  The proposal is the smallest of the ways to place what is neither.",
	},
	[HL_FAULT_JUST_OVER] = {
		"just-over",
		"a little more than a whole number of lines",
		"Up to a quarter of a line more than k lines costs a line more each time the object is\n"
		"walked, and the next object begins in the middle of one.  The kernel's struct pagevec\n"
		"was 140 bytes, touched three lines, and got faster with one page less.\n"
		"\n"
		"What is looked for: sizes of k lines and up to a quarter, which another order of the\n"
		"members, narrower counters beside an array (an index into an array of N needs no more\n"
		"than N), or the array an eighth shorter brings to k lines.  They are tried in that order,\n"
		"all but the first only beside a field that looks like a count of the elements.\n"
		"\n"
		"Score: " W(OVER) " / (k + 1); and " W(OVER_ORDER) " when another order is enough, but then "
		W(OVER_PRIVATE) " of it when\nnothing inside looks shared.",
	},
	[HL_FAULT_CROSSING] = {
		"crossing",
		"a member that crosses a line though it need not",
		"A lock, an atomic, or (in a packed struct) a plain integer that lies on two lines costs\n"
		"two lines each time, and an atomic one on x86 locks the bus.\n"
		"\n"
		"What is looked for: members of up to a line, and elements of arrays whose size divides a\n"
		"line, that cross one when the struct begins a line, and another place for them at which\n"
		"nothing that matters crosses and the struct does not grow.\n"
		"\n"
		"Score: " W(CROSS_WRITTEN) " for a lock or atomic, " W(CROSS_SCALAR)
		" for a scalar, " W(CROSS_HOLDER) " for a struct that holds a lock\nor atomic, "
		W(CROSS_FLAG) " for a completion, " W(CROSS_PLAIN) " for other small structs; "
		W(CROSS_UNALIGNED) " of that when the struct need\nnot begin a line, " W(CROSS_FORMAT)
		" when it may be the format of a file or packet.",
	},
	[HL_FAULT_HOLE] = {
		"hole",
		"closing holes saves at least one line",
		"Memory that alignment leaves free between members and that another order would not.\n"
		"Reported only where it is worth a line; structs that were laid out by lines (aligned\n"
		"members, padding, markers of groups) are left alone.\n"
		"\n"
		"Score: " W(HOLE) " times the share of lines that is saved; " W(HOLE_TOLD)
		" of that when just-over proposes the\nsame order.\n"
		"\n"
		"What to do: the order that is proposed moves as few members as it needs.",
	},
};

const char *hl_fault_name(enum hl_fault_kind kind)
{
	return text[kind].name;
}

int hl_fault_by_name(const char *name)
{
	for (int kind = 0; kind < HL_N_FAULTS; kind++)
		if (!strcmp(text[kind].name, name))
			return kind;
	return -1;
}

const char *hl_fault_title(enum hl_fault_kind kind)
{
	return text[kind].title;
}

const char *hl_fault_explanation(enum hl_fault_kind kind)
{
	return text[kind].explanation;
}
