#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotline c2c` on programs whose sharing is known: each thing is found for what it is, and their
twins with the sharing taken out have no finding."""

import c2c
import tap

FALSE, TRUE, MIXED = "false", "true", "mixed"


class Case:
    """A body for the prelude, and what must be found: nothing where `sharing` is None."""

    def __init__(self, name, body, object_name=None, sharing=None, fields=(), advice="", others=(),
                 kind=None, flags=("-O1",)):
        self.name = name
        self.body = body
        self.object_name = object_name
        self.sharing = sharing
        self.fields = set(fields)
        self.advice = advice
        self.others = set(others)
        self.kind = kind
        self.flags = flags


def program(case, compiler):
    return c2c.build(case.name.replace(" ", "_") + "_" + compiler, c2c.PRELUDE + case.body, compiler,
                     case.flags)


def check(case, compiler):
    found = c2c.findings(program(case, compiler))
    if case.sharing is None:
        tap.equal([(f["object"]["name"], f["sharing"], f["transfers"]) for f in found], [])
        return
    one = c2c.finding(found, case.object_name)
    tap.equal(one["sharing"], case.sharing, str(one))
    tap.true(case.fields <= c2c.fields(one), f"{case.fields} are not among {c2c.fields(one)}")
    tap.true(case.others <= {o["name"] for o in one["shares_lines_with"]} | {
        f["object"] for f in one["fields"]}, str(one))
    if case.kind:
        tap.equal(one["object"]["kind"], case.kind)
    if case.advice:
        tap.matches(case.advice, one["advice"])
    tap.true(one["transfers"] >= c2c.ROUNDS, "fewer than one transfer a round")
    # Nothing else is there to be found.
    tap.equal([f["object"]["name"] for f in found if f is not one and f["sharing"] != TRUE], [])


NOTHING = "static void set_up(void) { }\n"

CASES = [
    Case("slots of threads", NOTHING + """
_Alignas(64) size_t used[8];
static void round_of(long me, int turn) { used[me] += turn; }
""", "used", FALSE, {"used[0]", "used[1]", "used[2]", "used[3]"}, "each element is written by one thread"),
    Case("slots with a line each", NOTHING + """
struct { _Alignas(64) size_t used; } slot[8];
static void round_of(long me, int turn) { slot[me].used += turn; }
"""),
    Case("slots of bytes", NOTHING + """
_Alignas(64) char flag[64];
static void round_of(long me, int turn) { flag[me] = (char)turn; }
""", "flag", FALSE, {"flag[0]", "flag[3]"}, "each element"),
    Case("indices of a deque", NOTHING + """
_Alignas(64) struct deque { atomic_long top, bottom; long tasks[30]; } deque;
static void round_of(long me, int turn)
{
	if (me == 0)
		atomic_fetch_add_explicit(&deque.top, turn, memory_order_relaxed);
	if (me == 1)
		atomic_store_explicit(&deque.bottom, turn, memory_order_relaxed);
}
""", "deque", FALSE, {"deque.top", "deque.bottom"}, "lines of their own"),
    Case("indices apart", NOTHING + """
struct deque { _Alignas(64) atomic_long top; _Alignas(64) atomic_long bottom; } deque;
static void round_of(long me, int turn)
{
	if (me == 0)
		atomic_fetch_add_explicit(&deque.top, turn, memory_order_relaxed);
	if (me == 1)
		atomic_store_explicit(&deque.bottom, turn, memory_order_relaxed);
}
"""),
    Case("lock beside what is read", NOTHING + """
_Alignas(64) struct table { long lock; const char *name; long size; long mask; } table = { 0, "t", 8, 7 };
static volatile long sink;
static void round_of(long me, int turn)
{
	if (me == 0)
		table.lock = turn;
	else if (table.size + table.mask < 0)
		sink = 1;
}
""", "table", FALSE, {"table.lock", "table.size"}, "away from what is only read"),
    Case("lock apart from what is read", NOTHING + """
struct table { _Alignas(64) long lock; _Alignas(64) const char *name; long size; long mask; } table = { 0, "t", 8, 7 };
static volatile long sink;
static void round_of(long me, int turn)
{
	if (me == 0)
		table.lock = turn;
	else if (table.size + table.mask < 0)
		sink = 1;
}
"""),
    Case("counter of all", NOTHING + """
_Alignas(64) atomic_long hits;
static void round_of(long me, int turn) { atomic_fetch_add(&hits, me + turn); }
""", "hits", TRUE, {"hits"}, "each thread or CPU its own"),
    Case("counter of each", NOTHING + """
static _Thread_local long hits;
static void round_of(long me, int turn) { hits += me + turn; }
"""),
    Case("blocks of the heap side by side", """
static long *mine[THREADS];
static void set_up(void)
{
	for (int i = 0; i < THREADS; i++)
		mine[i] = malloc(24);
}
static void round_of(long me, int turn) { *mine[me] += turn; }
""", "block of 24 bytes", FALSE, (), "aligned_alloc", kind="heap"),
    Case("blocks of the heap apart", """
static long *mine[THREADS];
static void set_up(void)
{
	for (int i = 0; i < THREADS; i++)
		mine[i] = aligned_alloc(64, 64);
}
static void round_of(long me, int turn) { *mine[me] += turn; }
"""),
    Case("struct in the heap", """
struct stats { uint64_t received, sent; char name[48]; };
static struct stats *stats;
static void set_up(void) { stats = aligned_alloc(64, sizeof(*stats)); memset(stats, 0, sizeof(*stats)); }
static void round_of(long me, int turn)
{
	if (me == 0)
		stats->received += turn;
	if (me == 1)
		stats->sent += turn;
}
""", "struct stats", FALSE, {"received", "sent"}, "lines of their own", kind="heap"),
    Case("object passed on by hand", """
struct message { long kind, payload[7]; };
struct message *box;
static void set_up(void) { box = aligned_alloc(64, 64); }
static void round_of(long me, int turn)
{
	/* Who writes and who reads take turns at the barrier. */
	if (me == 0 && turn % 2 == 0) { box->kind = turn; box->payload[0] = turn; box->payload[4] = turn; }
	if (me == 1 && turn % 2 == 1) box->payload[1] += box->kind + box->payload[0] + box->payload[4];
}
""", "struct message", TRUE, {"kind"}, kind="heap"),
    Case("written by one and never read", NOTHING + """
_Alignas(64) long logged[8];
static void round_of(long me, int turn) { if (me == 2) logged[turn % 8] = turn; }
"""),
    Case("read by all and never written", """
_Alignas(64) long table[512];
static _Thread_local volatile long sum;
static void set_up(void) { for (int i = 0; i < 512; i++) table[i] = i; }
static void round_of(long me, int turn) { for (int i = 0; i < 512; i++) sum += table[i] * me * turn; }
"""),
    Case("foreign variable in the line", NOTHING + """
struct bench { _Alignas(64) long iterations; unsigned queue_head; } bench;
static void round_of(long me, int turn)
{
	if (me == 0)
		bench.iterations++;
	if (me == 1)
		bench.queue_head = turn;
}
""", "bench", FALSE, {"bench.iterations", "bench.queue_head"}),
    Case("bit-fields", NOTHING + """
_Alignas(64) struct bits { unsigned a : 4, b : 4; unsigned pad[3]; unsigned c : 4; } bits;
static void round_of(long me, int turn)
{
	if (me == 0)
		bits.a = turn;
	if (me == 1)
		bits.c = turn;
}
""", "bits", FALSE, {"bits.a", "bits.c"}),
    Case("copied and set as a whole", """
struct big { long a[16]; };
static struct big *from, *to;
static void set_up(void) { from = aligned_alloc(64, sizeof(*from)); to = aligned_alloc(64, sizeof(*to)); }
static void round_of(long me, int turn)
{
	if (me == 0 && turn % 2 == 0)
		memset(from, turn, sizeof(*from));
	if (me == 1 && turn % 2 == 1)
		memcpy(to, from, sizeof(*from));
}
""", "struct big", TRUE, (), kind="heap"),
    Case("each its own copy", """
struct big { long a[16]; };
static struct big *mine[THREADS];
static void set_up(void) { for (int i = 0; i < THREADS; i++) mine[i] = aligned_alloc(64, sizeof(struct big)); }
static void round_of(long me, int turn) { memset(mine[me], turn, sizeof(struct big)); }
"""),
    Case("blocks freed and given to others", NOTHING + """
static void round_of(long me, int turn)
{
	long *p = malloc(40);

	p[0] = me + turn;
	p[4] = turn;
	free(p);
}
"""),
    Case("on the stack of another", NOTHING + """
static _Atomic(long *) shared;
static void round_of(long me, int turn)
{
	if (me == 0) {
		long local[16] = { 0 };
		shared = local;
		for (int i = 0; i < 3; i++) { local[8] += turn; pthread_barrier_wait(&meet); }
		shared = NULL;
	} else {
		for (int i = 0; i < 3; i++) {
			pthread_barrier_wait(&meet);
			if (me == 1 && i < 2 && shared)
				__atomic_fetch_add(&shared[9], 1, __ATOMIC_RELAXED);
		}
	}
}
""", "local of round_of()", MIXED, kind="stack"),
    Case("two static objects in one line", NOTHING + """
__attribute__((section("pair"))) _Alignas(64) long first = 1;
__attribute__((section("pair"))) long second = 2;
static void round_of(long me, int turn)
{
	if (me == 0)
		first += turn;
	if (me == 1)
		second += turn;
}
""", None, FALSE, flags=("-O1", "-fno-toplevel-reorder")),
    Case("unaligned over two lines", """
static char *area;
static void set_up(void) { area = aligned_alloc(64, 128); memset(area, 0, 128); }
static void round_of(long me, int turn)
{
	uint64_t value;

	if (me > 1)
		return;
	memcpy(&value, area + 60, sizeof(value));
	value += turn + me;
	memcpy(area + 60, &value, sizeof(value));
}
""", "block of 128 bytes", TRUE, kind="heap"),
    Case("each its part of an array", """
static long *array;
static void set_up(void) { array = aligned_alloc(64, 4096 * sizeof(long)); }
static void round_of(long me, int turn)
{
	for (long i = me * 1024; i < (me + 1) * 1024; i++)
		array[i] = turn;
}
"""),
]


def two_objects(compiler):
    """Which of two neighbours goes first in the report is open: both are told."""
    case = next(c for c in CASES if c.object_name is None and c.sharing)
    found = [f for f in c2c.findings(program(case, compiler)) if f["sharing"] == FALSE]
    names = {o for f in found for o in [f["object"]["name"]] + [x["name"] for x in f["shares_lines_with"]]}
    tap.true({"first", "second"} <= names, str(names))
    tap.matches("different objects on one line", " ".join(f["advice"] for f in found))


@tap.case("two counters 64 bytes apart: only with lines in pairs")
def pairs():
    for apart, found in ((48, ["counter"] * 2), (56, ["counter"] * 2), (64, [None, "counter"]),
                         (120, [None, "counter"]), (128, [None, None])):
        case = Case(f"apart {apart}", NOTHING + f"""
_Alignas(128) struct {{ long first; char pad[{apart} - 8]; long second; }} counter;
static void round_of(long me, int turn)
{{
	if (me == 0)
		counter.first += turn;
	if (me == 1)
		counter.second += turn;
}}
""")
        built = program(case, "gcc")
        for option, name in zip(("--line=64", "--pair"), found):
            names = [f["object"]["name"] for f in c2c.findings(option, built)]
            tap.equal(names, [name] if name else [], f"{apart} {option}")


for each in CASES:
    if each.sharing and each.object_name is None:
        tap.add(each.name, two_objects, "gcc")
    else:
        tap.add(each.name, check, each, "gcc")
# Two compilers see the same, but where they keep different things in registers.
for each in CASES[::3]:
    if each.kind != "stack" and (each.object_name or not each.sharing):
        tap.add(each.name + ", clang", check, each, "clang")

tap.main()
