// SPDX-License-Identifier: MIT
/*
 * The names of the faults and what is to be said of each.
 */
#include "layout/faults.h"

#include <string.h>

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
		"What is looked for: arrays named pad, padding, reserved, filler of 32 bytes and more,\n"
		"and members and variables with an explicit alignment of a line and more.  For a\n"
		"struct aligned to A every address that is a multiple of A is considered.\n"
		"\n"
		"Score: 850 for a pad that is too short, 800 for groups closer than what travels\n"
		"together, 750 for open ends, 700 for an aligned pointer, 500 for a variable.\n"
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
		"speaks of threads, CPUs, workers, cores, shards, slots or lanes, whose elements hold\n"
		"something written (an atomic, a lock, a counter) and are no whole lines.\n"
		"\n"
		"Score: 850 for structs that hold something written, 450 for other structs, 800 for\n"
		"atomics, 700 for plain counters; 0.6 of that when an element is larger than a line\n"
		"and shares only its ends.\n"
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
		"Score: by what it holds (link, callback and its argument 700, without one 350, flag and\n"
		"callback 650 or 450, atomic or lock with a link or flag 500, atomic or lock 400, link and flag 350, flag 250, link 150;\n"
		"half when it is a struct inside that holds them),\n"
		"times 0.5 to 1 for the share of addresses at which it straddles, times 0.5 to 1 for\n"
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
		"integers named like sizes, ids, limits, modes (weak; two are needed).  In a struct\n"
		"that its author aligned to a line, the line of a lock is taken for what the lock\n"
		"guards, and only strong evidence counts.\n"
		"\n"
		"Score: 280, and 120 for each strong field (three at most), 30 for each weak one (five\n"
		"at most); 0.6 of that when no order of the members separates them.\n"
		"\n"
		"What to do: group the members, read-mostly first, the written ones from a line of\n"
		"their own on.  The proposal is the smaller of the two ways to place what is neither.",
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
		"the last two only beside a field that looks like a count of the elements.\n"
		"\n"
		"Score: 700 / (k + 1), and 60 when another order is enough.",
	},
	[HL_FAULT_CROSSING] = {
		"crossing",
		"a member that crosses a line though it need not",
		"A lock, an atomic, or (in a packed struct) a plain integer that lies on two lines costs\n"
		"two lines each time, and an atomic one on x86 locks the bus.\n"
		"\n"
		"What is looked for: members of up to a line that cross one when the struct begins a\n"
		"line, and another place for them at which nothing that matters crosses and the struct\n"
		"does not grow.\n"
		"\n"
		"Score: 420 for a lock or atomic, 330 for a scalar, 300 for a struct that holds a lock\n"
		"or atomic, 250 for a completion; 0.6 of that when the struct need not begin a line.",
	},
	[HL_FAULT_HOLE] = {
		"hole",
		"closing holes saves at least one line",
		"Memory that alignment leaves free between members and that another order would not.\n"
		"Reported only where it is worth a line; structs that were laid out by lines (aligned\n"
		"members, padding, markers of groups) are left alone.\n"
		"\n"
		"Score: 500 times the share of lines that is saved.\n"
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
