#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`hotline cc` as a compiler and `hotline c2c` as a command: how they are called, what they leave
alone, what they say when they cannot, and that a program gets its report however it ends."""

import json
import os
import random
import re
import shutil

import c2c
import compilers
import tap

SLOTS = c2c.PRELUDE + """
_Alignas(64) size_t used[8];
static void set_up(void) { }
static void round_of(long me, int turn) { used[me] += turn; }
"""


def slots(name="slots", **options):
    return c2c.build(name, SLOTS, **options)


# ---- cc ----

def builds(compiler):
    """Compiled and linked at once, and in two steps, with a shared library in the middle."""
    compiler.require()
    command, suffix = compiler.command, compilers.SUFFIX[compiler.language]
    text = """
#include <pthread.h>
static volatile int shared[16];
static void *run(void *arg) { for (int i = 0; i < 1000; i++) shared[(long)arg] = shared[(long)arg] + 1; return arg; }
int twice(void)
{
    pthread_t t[2];
    for (long i = 0; i < 2; i++) pthread_create(&t[i], 0, run, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    return shared[0] + shared[1];
}
"""
    c2c.write("lib" + suffix, text)
    c2c.write("use" + suffix, "int twice(void);\nint main(void) { return twice() != 2000; }\n")
    c2c.cc(*command, "-o", "once", "lib" + suffix, "use" + suffix, "-pthread")
    c2c.cc(*command, "-O2", "-fPIC", "-c", "lib" + suffix)
    c2c.cc(*command, "-shared", "-o", "libtwice.so", "lib.o", "-pthread")
    c2c.cc(*command, "-c", "-o", "use.o", "use" + suffix)
    c2c.cc(*command, "-o", "linked", "use.o", "-L.", "-ltwice", f"-Wl,-rpath,{c2c.WORK}")
    for program in ("once", "linked"):
        process = c2c.report(c2c.path(program))["processes"][0]
        tap.true(process["accesses"] > 2000, str(process["accesses"]))
        needed = tap.run_ok(["ldd", c2c.path(program)]).stdout
        tap.true("tsan" not in needed.replace("hotline", ""), needed)


for each in compilers.native():
    tap.add(f"cc builds with {each.name}", builds, each)


@tap.case("cc leaves what is not compiled or linked to the compiler")
def passes_on():
    for arguments in (["--version"], ["-dumpmachine"], ["-print-search-dirs"]):
        plain = tap.run_ok(["gcc", *arguments]).stdout
        tap.equal(c2c.cc("gcc", *arguments).stdout, plain)
    c2c.write("macro.c", "#ifdef __SANITIZE_THREAD__\nhooked\n#endif\n")
    tap.matches("^hooked$", c2c.cc("gcc", "-E", "macro.c").stdout)


@tap.case("cc passes on the compiler's status and messages")
def compiler_fails():
    c2c.write("wrong.c", "int main(void) { return nothing; }\n")
    result = tap.run([c2c.HOTLINE, "cc", "gcc", "wrong.c"], cwd=c2c.WORK)
    tap.equal(result.returncode, 1)
    tap.matches("nothing", result.stderr)


def cc_refuses(status, message, *arguments):
    result = tap.run([c2c.HOTLINE, "cc", *arguments], cwd=c2c.WORK)
    tap.equal(result.returncode, status, result.stderr)
    tap.matches(message, result.stderr)


tap.add("cc without a compiler", cc_refuses, 2, "name a compiler")
tap.add("cc with a compiler that is not there", cc_refuses, 127, "nocc: No such file", "nocc", "-c", "x.c")
tap.add("cc and another sanitizer", cc_refuses, 2, "leave it out", "gcc", "-fsanitize=address", "macro.c")
tap.add("cc and -static", cc_refuses, 2, "leave out -static", "gcc", "-static", "macro.c")


@tap.case("cc works as the compiler of make")
def by_make():
    c2c.write("Makefile", "made: slots.c\n\t$(CC) $(CFLAGS) -o $@ slots.c -pthread\n")
    c2c.write("slots.c", SLOTS)
    tap.run_ok(["make", f"CC={c2c.HOTLINE} cc gcc", "CFLAGS=-O2 -Wall"], cwd=c2c.WORK)
    c2c.finding(c2c.findings(c2c.path("made")), "used")


@tap.case("a program that was built so runs as ever without c2c, and leaves no file")
def without():
    before = set(os.listdir(c2c.WORK))
    program = slots("alone")
    tap.run_ok([program], cwd=c2c.WORK)
    tap.equal(set(os.listdir(c2c.WORK)) - before - {"alone", "alone.c"}, set())


# ---- Forms of the report ----

@tap.case("the text tells object, fields, threads and places")
def text():
    result = c2c.c2c(slots())
    tap.equal((result.returncode, result.stderr), (0, ""))
    tap.matches(r"5 threads \(main, 4 worker\), \d+ accesses seen, \d+ lines passed on", result.stdout)
    tap.matches(r"^  1 +\d+ false  used  static, 64 bytes, slots.c:\d+$", result.stdout)
    tap.matches(r"^ +\|A{8}B{8}C{8}D{8}\.{32}\| \d+ transfers$", result.stdout)
    tap.matches(r"used\[2\]  size_t  bytes 16 to 23: \d+ transfers", result.stdout)
    tap.matches(r"worker \d writes it at slots.c:\d+ in round_of\(\): \d+ of \d+", result.stdout)
    tap.matches(r"not seen, but for what it copies, compares and allocates: libc", result.stdout)


@tap.case("the JSON adds up")
def adds_up():
    document = c2c.report(slots())
    process = document["processes"][0]
    tap.equal((document["schema"], document["line_bytes"]), (1, 64))
    tap.equal(sum(group["number"] for group in process["threads"]), 5)
    for found in process["findings"]:
        for count in ("accesses", "transfers", "false_transfers"):
            tap.equal(found[count], sum(field[count] for field in found["fields"]))
            for field in found["fields"]:
                tap.equal(field[count], sum(user[count] for user in field["users"]))
    tap.true(sum(f["transfers"] for f in process["findings"]) <= process["transfers"], "more than all")


@tap.case("the SARIF has the rules and the places")
def sarif():
    result = c2c.c2c("--format", "sarif", slots())
    run = json.loads(result.stdout)["runs"][0]
    tap.equal([rule["id"] for rule in run["tool"]["driver"]["rules"]],
              ["false-sharing", "true-sharing", "mixed-sharing"])
    one = run["results"][0]
    tap.equal((one["ruleId"], one["level"]), ("false-sharing", "warning"))
    tap.equal(one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "slots.c")
    tap.true(one["partialFingerprints"]["hotlineSharing/v1"], "no fingerprint")


@tap.case("the HTML is whole and escapes names")
def html():
    result = c2c.c2c("--format", "html", "-o", "report.html", slots())
    tap.equal((result.returncode, result.stdout), (0, ""))
    with open(c2c.path("report.html"), encoding="utf-8") as stream:
        page = stream.read()
    tap.matches(r"<h2>used</h2>", page)
    tap.true(page.endswith("</html>\n") and "<script" not in page, "not whole")


@tap.case("the program's output does not get into a document, and stays where it is text")
def output():
    program = c2c.build("says", SLOTS.replace("set_up(void) { }", 'set_up(void) { puts("said"); }'))
    result = c2c.c2c("--json", program)
    json.loads(result.stdout)
    tap.equal(result.stderr, "said\n")
    tap.matches("^said$", c2c.c2c(program).stdout)


@tap.case("what was kept gives the same report again, to the byte")
def kept():
    shutil.rmtree(c2c.path("kept"), ignore_errors=True)
    first = c2c.c2c("--keep", "kept", "--json", slots()).stdout
    again = c2c.c2c("--read", "kept", "--json").stdout
    tap.equal(again.replace('"kept"', "X"), first.replace(json.dumps(c2c.path("slots")), "X"))
    tap.equal(again, c2c.c2c("--read", "kept", "--json").stdout)
    result = c2c.c2c("--keep", "kept", slots())
    tap.equal(result.returncode, 1)
    tap.matches("is there already", result.stderr)


# ---- Budgets ----

def checked(budget, status, message=""):
    if not budget.isdigit():
        budget = c2c.write("budget", budget)
    result = c2c.c2c("--check", budget, slots())
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    tap.matches(message, result.stdout + result.stderr)


tap.add("--check: a number that is enough", checked, "1000000", 0, "the budget is kept")
tap.add("--check: a number that is not", checked, "10", 1, r"false <= 10: \d+")
tap.add("--check: false sharing that no rule accepts", checked, "# nothing\n", 1,
        "used: false sharing, .* no rule accepts it")
tap.add("--check: accepted", checked, "accept used\n", 0, "kept")
tap.add("--check: a rule of an object", checked, "used: transfers <= 100000\nused: false <= 3\n", 1,
        r"budget:2: used: false <= 3: \d+")
tap.add("--check: a rule that is none", checked, "used: lines <= 3\n", 2, "budget:1: what is limited")
tap.add("--check: no number", checked, "\nfalse < 3\n", 2, "budget:2: a rule ends in <= and a number")


# ---- Ends ----

@tap.case("the exit status is the program's")
def status():
    program = c2c.build("three", "int main(void) { return 3; }")
    tap.equal(c2c.c2c(program).returncode, 3)


def ends(name, how, status, message):
    program = c2c.build(name, SLOTS.replace("return 0;", how + " return 0;").replace(
        "#include <pthread.h>", "#include <pthread.h>\n#include <signal.h>\n#include <unistd.h>"))
    result = c2c.c2c(program)
    tap.equal(result.returncode, status, result.stderr)
    tap.matches(message, result.stdout)
    tap.matches(r"false  used  static", result.stdout)


tap.add("a report after a crash", ends, "crash", "*(volatile int *)8 = 1;", 139, "ended by signal 11")
tap.add("a report after abort()", ends, "aborts", "abort();", 134, "ended by signal 6")
tap.add("a report after SIGTERM", ends, "terminated", "raise(SIGTERM);", 143, "ended by signal 15")
tap.add("a report after _exit()", ends, "exits", "_exit(0);", 0, "finding")


@tap.case("after SIGKILL it is said that the end is missing")
def killed():
    program = c2c.build("killed", SLOTS.replace("return 0;", "raise(SIGKILL); return 0;").replace(
        "#include <pthread.h>", "#include <pthread.h>\n#include <signal.h>"))
    result = c2c.c2c(program)
    tap.equal(result.returncode, 137)
    tap.matches("killed, or still running", result.stdout)


@tap.case("a stack that overflows")
def overflow():
    program = c2c.build("deep", """
#include <string.h>
static int deep(int n) { volatile char room[4096]; room[n & 4095] = 1; return deep(n + 1) + room[7]; }
int main(void) { return deep(0); }
""", flags=("-O0",))
    result = c2c.c2c(program)
    tap.equal(result.returncode, 139)
    tap.matches("ended by signal 11", result.stdout)


@tap.case("fork and exec: each process has a report of its own")
def processes():
    program = c2c.build("forks", SLOTS.replace("return 0;", """
    if (argc == 1) {
        pid_t pid = fork();
        if (!pid) {
            set_up();
            execl(argv[0], argv[0], "again", NULL);
            _exit(9);
        }
        int status;
        waitpid(pid, &status, 0);
        return WEXITSTATUS(status);
    }
    return 0;""").replace("int main(void)", "int main(int argc, char **argv)").replace(
        "#include <pthread.h>", "#include <pthread.h>\n#include <unistd.h>\n#include <sys/wait.h>"))
    got = c2c.report(program)["processes"]
    tap.equal(len({p["pid"] for p in got}), 2)
    tap.equal([len(p["findings"]) for p in got if p["findings"]], [1, 1])
    child = [p for p in got if p["findings"]][1]
    tap.equal(child["parent"], got[0]["pid"])


@tap.case("threads that come and go by the thousand")
def many():
    program = c2c.build("many", """
#include <pthread.h>
static long count;
static void *run(void *arg) { __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED); return arg; }
int main(void)
{
    for (int i = 0; i < 5000; i++) {
        pthread_t t;
        if (pthread_create(&t, 0, run, 0)) return 1;
        pthread_join(t, 0);
    }
    return count != 5000;
}
""")
    document = c2c.report(program)
    tap.equal(sum(g["number"] for g in document["processes"][0]["threads"]), 5001)


@tap.case("atomics of every width do what they should")
def atomics():
    program = c2c.build("atomics", r"""
#include <stdint.h>
#include <stdatomic.h>
#include <stdio.h>
#define CHECK(x) do { if (!(x)) { printf("%d: %s\n", __LINE__, #x); return 1; } } while (0)
#define TRY(type) do { \
    static _Atomic type a; type e = 5; \
    atomic_store(&a, 5); CHECK(atomic_load(&a) == 5); \
    CHECK(atomic_fetch_add(&a, 3) == 5); CHECK(atomic_fetch_sub(&a, 1) == 8); \
    CHECK(atomic_fetch_or(&a, 8) == 7); CHECK(atomic_fetch_and(&a, 12) == 15); \
    CHECK(atomic_fetch_xor(&a, 1) == 12); CHECK(atomic_exchange(&a, 5) == 13); \
    CHECK(atomic_compare_exchange_strong(&a, &e, 6)); CHECK(!atomic_compare_exchange_strong(&a, &e, 7)); \
    CHECK(e == 6); CHECK(__sync_fetch_and_nand((type *)&a, 2) == 6); CHECK((type)a == (type)~2); \
    CHECK(__sync_val_compare_and_swap((type *)&a, (type)~2, 1) == (type)~2); \
} while (0)
int main(void) { TRY(uint8_t); TRY(uint16_t); TRY(uint32_t); TRY(uint64_t); return 0; }
""", flags=("-O2",))
    result = c2c.c2c(program)
    tap.equal(result.returncode, 0, result.stdout)


@tap.case("C++: std::thread by its lambda, new, exceptions, virtual functions")
def cxx():
    program = c2c.build("cxx", """
#include <atomic>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>
struct Shared { alignas(64) std::atomic<long> hits{0}; int config[4] = {1, 2, 3, 4}; };
struct Base { virtual ~Base() {} virtual int get() { return 1; } };
struct Other : Base { int get() override { return 2; } };
int main()
{
    Shared *shared = new Shared;
    std::vector<std::thread> threads;
    std::atomic<int> turn{0};
    for (int me = 0; me < 3; me++)
        threads.emplace_back([shared, me, &turn] {
            for (int i = 0; i < 300; i++) {
                while (turn.load() % 3 != me) std::this_thread::yield();
                shared->hits += shared->config[i & 3];
                std::unique_ptr<Base> b(i & 1 ? new Other : new Base);
                try { if (b->get() == 7) throw std::runtime_error("7"); } catch (...) { }
                turn++;
            }
        });
    for (auto &t : threads) t.join();
    return 0;
}
""", compiler="g++", suffix=".cc")
    process = c2c.report(program)["processes"][0]
    tap.matches(r"operator\(\) at cxx.cc:\d+", " ".join(g["group"] for g in process["threads"]))
    one = c2c.finding(process["findings"], "Shared")
    tap.true("hits" in " ".join(c2c.fields(one)), str(c2c.fields(one)))


# ---- What cannot be ----

def refuses(status, message, *arguments):
    result = c2c.c2c(*arguments)
    tap.equal(result.returncode, status, result.stdout + result.stderr)
    tap.matches(message, result.stderr)


tap.add("no program", refuses, 2, "a PROGRAM to run is missing")
tap.add("a program that is not there", refuses, 127, "nowhere: No such file", "./nowhere")
tap.add("a program without hooks", refuses, 1, "was not built with `hotline cc`", "/bin/true")
tap.add("a format that is none", refuses, 2, "--format takes text, json", "--format", "xml", "/bin/true")
tap.add("nothing kept", refuses, 1, "empty: nothing that", "--read", "empty")
tap.add("a directory that is not there", refuses, 1, "nowhere: No such file", "--read", "nowhere")
tap.add("--read and a program", refuses, 2, "runs no program", "--read", "empty", "/bin/true")
os.mkdir(c2c.path("empty"))


@tap.case("damaged files give an error or a report, never a crash")
def damaged():
    shutil.rmtree(c2c.path("good"), ignore_errors=True)
    c2c.c2c("--keep", "good", slots())
    name = os.listdir(c2c.path("good"))[0]
    with open(os.path.join(c2c.path("good"), name), "rb") as stream:
        good = stream.read()
    chance = random.Random(1)
    shutil.rmtree(c2c.path("bad"), ignore_errors=True)
    os.mkdir(c2c.path("bad"))
    for turn in range(60):
        bad = bytearray(good)
        if turn % 3 == 0:
            del bad[chance.randrange(len(bad)):]
        for _ in range(turn % 5):
            if bad:
                bad[chance.randrange(len(bad))] = chance.choice((0, 1, 0x7f, 0x80, 0xff))
        with open(os.path.join(c2c.path("bad"), name), "wb") as stream:
            stream.write(bad)
        result = c2c.c2c("--read", "bad", "--json")
        tap.true(result.returncode in (0, 1), f"{turn}: {result.returncode} {result.stderr}")
        if result.returncode == 1:
            tap.matches(re.escape(name) + "|nothing", result.stderr)


tap.main()
