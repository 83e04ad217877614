#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The public headers, to a compiler: what must compile does so without a warning,
what must not fails with a message that says what to do."""

import errno
import glob
import os
import platform
import struct
import tempfile

import compilers
import tap
from compilers import C, CXX

SOURCE = os.environ["HOTLINE_SOURCE"]
BUILD = os.environ["HOTLINE_BUILD"]
INCLUDE = ["-I" + os.path.join(SOURCE, "include"), "-I" + os.path.join(BUILD, "include")]
WARNINGS = ["-Wall", "-Wextra", "-Wundef", "-Wshadow", "-Wtype-limits", "-Wcast-align", "-Werror"]


def compile_text(compiler, text, *options):
    with tempfile.TemporaryDirectory() as directory:
        source = os.path.join(directory, "snippet" + compilers.SUFFIX[compiler.language])
        with open(source, "w", encoding="utf-8") as stream:
            stream.write(text)
        return tap.run([*compiler.command, compiler.standard, *INCLUDE, *options, source])


def accepts(compiler, text, *options):
    compiler.require()
    result = compile_text(compiler, text, "-fsyntax-only", *WARNINGS, *options)
    tap.equal(result.returncode, 0, result.stderr)


def rejects(compiler, pattern, text, *options):
    compiler.require()
    result = compile_text(compiler, text, "-fsyntax-only", *options)
    tap.true(result.returncode != 0, "it compiles")
    tap.matches(pattern, result.stderr)


# The structs that the cases make false claims about.
QUEUE = """
#include <stdint.h>
#include <hotline/cacheline.h>
struct queue {
	HL_CACHELINE_GROUP_BEGIN(producer) HL_CACHELINE_ALIGNED;
	uint64_t tail;
	uint64_t dropped;
	HL_CACHELINE_GROUP_END(producer);
	uint64_t head;
	HL_CACHELINE_GROUP_BEGIN(consumer);
	uint64_t taken;
	HL_CACHELINE_GROUP_END(consumer);
	char tag[60];
};
"""

UNALIGNED = """
#include <hotline/cacheline.h>
struct unaligned {
	HL_CACHELINE_GROUP_BEGIN(all);
	char a[16];
	char b[16];
	char c[40];
	char d;
	HL_CACHELINE_GROUP_END(all);
};
"""


# Name, what the compiler must say, text. Lines have 64 bytes.
REJECTED = [
    ("a size that is no power of two",
     r"HL_TYPEDEF_SIZE_ALIGNED: the size of struct message is no power of two: add padding",
     "#include <hotline/cacheline.h>\n"
     "struct message { void *word[3]; };\n"
     "HL_TYPEDEF_SIZE_ALIGNED(struct message, message_aligned);\n"),
    ("a member behind its group",
     r"HL_CACHELINE_ASSERT_MEMBER: head of struct queue is outside the group producer: move",
     QUEUE + "HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, head);\n"),
    ("a member in front of its group",
     r"HL_CACHELINE_ASSERT_MEMBER: head of struct queue is outside the group consumer: move",
     QUEUE + "HL_CACHELINE_ASSERT_MEMBER(struct queue, consumer, head);\n"),
    ("a member in another group",
     r"HL_CACHELINE_ASSERT_MEMBER: tail of struct queue is outside the group consumer: move",
     QUEUE + "HL_CACHELINE_ASSERT_MEMBER(struct queue, consumer, tail);\n"),
    ("a group that does not exist",
     r"hl_group_begin_nobody",
     QUEUE + "HL_CACHELINE_ASSERT_MEMBER(struct queue, nobody, tail);\n"),
    ("a group that is too large",
     r"HL_CACHELINE_ASSERT_SIZE: the group producer of struct queue does not have the size 8: ",
     QUEUE + "HL_CACHELINE_ASSERT_SIZE(struct queue, producer, 8);\n"),
    ("a group that does not start a line",
     r"HL_CACHELINE_ASSERT_ALIGNED: the group consumer of struct queue does not start a cache line",
     QUEUE + "HL_CACHELINE_ASSERT_ALIGNED(struct queue, consumer);\n"),
    ("a group at offset 0 of a struct that is not aligned",
     r"HL_CACHELINE_ASSERT_ALIGNED: the group all of struct unaligned does not start a cache line",
     UNALIGNED + "HL_CACHELINE_ASSERT_ALIGNED(struct unaligned, all);\n"),
    ("two members on one line",
     r"HL_CACHELINE_ASSERT_APART: dropped and head of struct queue can share a cache line: put",
     QUEUE + "HL_CACHELINE_ASSERT_APART(struct queue, dropped, head);\n"),
    ("a member apart from itself",
     r"HL_CACHELINE_ASSERT_APART: tail and tail of struct queue can share a cache line",
     QUEUE + "HL_CACHELINE_ASSERT_APART(struct queue, tail, tail);\n"),
    ("a member whose end shares the line of another",
     r"HL_CACHELINE_ASSERT_APART: tag and tail of struct queue can share a cache line",
     QUEUE + "HL_CACHELINE_ASSERT_APART(struct queue, tag, tail);\n"),
    ("two members that only some addresses keep apart",
     r"HL_CACHELINE_ASSERT_APART: a and d of struct unaligned can share a cache line",
     UNALIGNED + "HL_CACHELINE_ASSERT_APART(struct unaligned, a, d);\n"),
    ("a struct that is larger than a line",
     r"HL_CACHELINE_ASSERT_FITS: struct large can straddle two cache lines: make it no larger",
     "#include <hotline/cacheline.h>\n"
     "struct large { char bytes[HL_CACHE_LINE + 1]; } HL_CACHELINE_ALIGNED;\n"
     "HL_CACHELINE_ASSERT_FITS(struct large);\n"),
    ("a struct that fits a line and is not aligned to its size",
     r"HL_CACHELINE_ASSERT_FITS: struct message can straddle two cache lines: .*align it to its",
     "#include <hotline/cacheline.h>\n"
     "struct message { void *word[4]; };\n"
     "HL_CACHELINE_ASSERT_FITS(struct message);\n"),
    ("a batch that does not fill its lines",
     r"HL_DEFINE_BATCH: half does not fill its cache lines: HL_BATCH_ITEMS",
     "#include <hotline/pagevec.h>\nHL_DEFINE_BATCH(half, void *, 3);\n"),
    ("a member over the end of a line",
     r"HL_CACHELINE_ASSERT_MEMBER_FITS: tag of struct queue can straddle two cache lines: move",
     QUEUE + "HL_CACHELINE_ASSERT_MEMBER_FITS(struct queue, tag);\n"),
    ("a member that only some addresses keep on one line",
     r"HL_CACHELINE_ASSERT_MEMBER_FITS: b of struct unaligned can straddle two cache lines",
     UNALIGNED + "HL_CACHELINE_ASSERT_MEMBER_FITS(struct unaligned, b);\n"),
]

# Rejected where the size of a group is exact, accepted where it is a limit.
GROUP_TOO_SMALL = QUEUE + "HL_CACHELINE_ASSERT_SIZE(struct queue, producer, 24);\n"

# What compiles without a warning, for every size of a line.
EVERYTHING = QUEUE + """
#include <hotline/pagevec.h>
HL_CACHELINE_ASSERT_ALIGNED(struct queue, producer);
HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, tail);
HL_CACHELINE_ASSERT_MEMBER(struct queue, producer, dropped);
HL_CACHELINE_ASSERT_SIZE(struct queue, producer, 16);
HL_CACHELINE_ASSERT_MEMBER_FITS(struct queue, tail);

struct counters {
	char name;
	unsigned long ours HL_CACHELINE_ALIGNED;
	HL_CACHELINE_GUARD(guard);
	unsigned long theirs;
	unsigned long pair HL_CACHELINE_PAIR_ALIGNED;
};
HL_CACHELINE_ASSERT_APART(struct counters, name, ours);
HL_CACHELINE_ASSERT_APART(struct counters, theirs, ours);
HL_CACHELINE_ASSERT_APART(struct counters, pair, theirs);

struct message {
	struct message *next;
	void *info;
};
HL_TYPEDEF_SIZE_ALIGNED(struct message, message_aligned);
HL_CACHELINE_ASSERT_FITS(message_aligned);
struct mailbox {
	char owner;
	message_aligned message;
	message_aligned more[3];
};
HL_CACHELINE_ASSERT_MEMBER_FITS(struct mailbox, message.info);

HL_DEFINE_BATCH(messages, struct message, HL_BATCH_ITEMS(struct message, 16));

unsigned add_both(struct messages *messages, struct hl_pagevec *pages, struct message *message);
unsigned add_both(struct messages *messages, struct hl_pagevec *pages, struct message *message)
{
	return messages_add(messages, *message) + hl_pagevec_add(pages, message);
}

size_t use(struct queue *queue, struct mailbox *box);
size_t use(struct queue *queue, struct mailbox *box)
{
	HL_CACHELINE_ASSERT_MEMBER_FITS(struct mailbox, message);
	struct message *message = &box->message;

	hl_prefetch(&queue->tail);
	hl_prefetchw(message->next);
	return HL_CACHE_LINE + HL_CACHE_LINE_PAIR + hl_cache_line_size() + hl_cache_line_pair_size();
}
"""


def add_cases():
    for compiler in compilers.all_words():
        for name, pattern, text in REJECTED:
            tap.add(f"{compiler.name} rejects {name}", rejects, compiler, pattern, text,
                    "-DHL_CACHE_LINE=64")
        for line in (0, 8, 48, 65):
            tap.add(f"{compiler.name} rejects lines of {line} bytes", rejects, compiler,
                    r"HL_CACHE_LINE must be a power of two, 16 or more",
                    "#include <hotline/cacheline.h>\n", f"-DHL_CACHE_LINE={line}")
        for line in (16, 32, 64, 128, 256):
            tap.add(f"{compiler.name} accepts everything with lines of {line} bytes", accepts,
                    compiler, EVERYTHING, f"-DHL_CACHE_LINE={line}")
        if struct.calcsize("P") == 8 and "-m32" not in compiler.command:
            tap.add(f"{compiler.name} rejects a group that has shrunk", rejects, compiler,
                    r"HL_CACHELINE_ASSERT_SIZE: .* does not have the size 24: ", GROUP_TOO_SMALL,
                    "-DHL_CACHE_LINE=64")
        else:
            tap.add(f"{compiler.name} accepts a smaller group with 32 bits", accepts, compiler,
                    GROUP_TOO_SMALL, "-DHL_CACHE_LINE=64")
        tap.add(f"{compiler.name} accepts a smaller group with lines of 128 bytes", accepts,
                compiler, GROUP_TOO_SMALL, "-DHL_CACHE_LINE=128")
        if compiler.language == CXX:
            tap.add(f"{compiler.name} rejects hl_size_aligned of a size that is no power of two",
                    rejects, compiler, r"hl_size_aligned: the size of the type is no power of two",
                    "#include <hotline/cacheline.h>\nstruct message { void *word[3]; };\n"
                    "hl_size_aligned<message> m;\n")
            tap.add(f"{compiler.name} accepts the header inside extern \"C\"", accepts, compiler,
                    'extern "C" {\n' + EVERYTHING + "}\n")


def stands_alone(compiler, header):
    """A header needs no other and may be included twice."""
    include = f"#include <hotline/{header}>\n"
    accepts(compiler, include + include + "extern int nothing;\n", "-Wpedantic")


def silent_as_system_header(compiler):
    """Installed headers are system headers: there -Wpedantic is silent in g++ too."""
    # A directory that is given with -I and with -isystem is a system directory.
    system = [flag.replace("-I", "-isystem", 1) for flag in INCLUDE]
    accepts(compiler, EVERYTHING, "-Wpedantic", *system)


def emits_prefetchw(compiler):
    """A prefetch for writing is one, on the least of x86-64 processors."""
    compiler.require()
    if platform.machine() != "x86_64":
        raise tap.Skip("not an x86-64 machine")
    text = ("#include <hotline/cacheline.h>\n"
            "void ask(const void *p);\n"
            "void ask(const void *p) { hl_prefetch(p); hl_prefetchw(p); }\n")
    result = compile_text(compiler, text, "-O2", "-S", "-o", "-")
    tap.equal(result.returncode, 0, result.stderr)
    tap.matches(r"^\s*prefetcht0\b", result.stdout)
    tap.matches(r"^\s*prefetchw\b", result.stdout)


def sizes_at_run_time(compiler):
    """The library's own sources, for this word size too: the sizes are those of the machine."""
    compiler.require()
    text = ("#include <stdio.h>\n#include <hotline/cacheline.h>\n"
            "int main(void)\n{\n"
            '\tprintf("%zu %zu\\n", hl_cache_line_size(), hl_cache_line_pair_size());\n'
            "\treturn 0;\n}\n")
    sources = glob.glob(os.path.join(SOURCE, "src/cacheline/*.c"))
    with tempfile.TemporaryDirectory() as directory:
        program = os.path.join(directory, "program")
        result = compile_text(compiler, text, "-D_GNU_SOURCE=", "-pthread", *WARNINGS, *sources,
                              "-o", program)
        tap.equal(result.returncode, 0, result.stderr)
        try:
            line, pair = map(int, tap.run_ok([program]).stdout.split())
        except OSError as error:
            if error.errno != errno.ENOEXEC:
                raise
            raise tap.Skip("it builds, but the kernel runs no 32-bit programs") from error
    reported = int(tap.run(["getconf", "LEVEL1_DCACHE_LINESIZE"]).stdout.strip() or 0)
    if reported:
        tap.equal(line, reported)
    x86_64 = platform.machine() == "x86_64" and "-m32" not in compiler.command
    tap.equal(pair, 2 * line if x86_64 else line)


def headers():
    found = glob.glob(os.path.join(SOURCE, "include/hotline/*.h"))
    found += glob.glob(os.path.join(BUILD, "include/hotline/*.h"))
    return sorted(os.path.basename(path) for path in found)


def main():
    for compiler in compilers.all_words():
        for header in headers():
            tap.add(f"{compiler.name}: {header} stands alone", stands_alone, compiler, header)
        if compiler.language == C:
            tap.add(f"{compiler.name}: the sizes at run time", sizes_at_run_time, compiler)
    add_cases()
    for compiler in compilers.native():
        tap.add(f"{compiler.name}: as a system header it is silent", silent_as_system_header,
                compiler)
        tap.add(f"{compiler.name} emits prefetchw", emits_prefetchw, compiler)
    tap.main()


main()
