#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""hotline bench: its options, its output in all forms, its exit statuses.

Nothing is asserted about how fast anything is."""

import json
import os
import re
import shutil
import statistics
import tempfile

import png
import tap

HOTLINE = os.path.join(os.environ["HOTLINE_BUILD"], "tools/hotline/hotline")

_directory = tempfile.TemporaryDirectory(prefix="hotline-bench-")
WORK = _directory.name

# Experiment: its origin, and its scenarios with their metric where two processors are.
EXPERIMENTS = {
    "csd-align": ("O1", {"waited": "ns_per_call", "async": "messages_per_second"}),
    "call-many": ("O2", {"from-one-to-1": "ns_per_call", "from-all-to-1": "ns_per_call"}),
    "call-latency": ("O1", {"polling": "ns_per_call", "idle": "ns_per_call",
                            "interrupted": "ns_per_call"}),
    "call-throughput": ("O1", {"one-sender": "messages_per_second",
                               "one-sender-burst": "messages_per_second",
                               "many-senders": "messages_per_second",
                               "many-senders-burst": "messages_per_second"}),
    "cpu-poll": ("O1", {f"senders-{n}": "ns_per_call" for n in (0, 1, 2, 4, 8, 64)}),
    "rcu-prefetch": ("O5", dict.fromkeys(["cold", "warm"], "ns_per_callback")),
    "rcu-callbacks": ("O5", dict.fromkeys(
        ["random", "allocation", "random-reader", "allocation-reader", "random-polled",
         "random-polled-reader", "random-8", "random-512", "random-4096", "random-free",
         "allocation-free", "enqueue", "enqueue-allocation", "idle-callback"], "ns_per_callback")),
    "rcu-read": ("O5", {"section": "ns_per_section"}),
    "rcu-synchronize": ("O5", dict.fromkeys(
        ["no-reader", "one-reader", "many-readers", "idle-threads"], "ns_per_grace_period")),
    "close-flood": ("O5", dict.fromkeys(["alone", "looked-up"], "operations_per_second")),
    "rcu-hash": ("O5", dict.fromkeys(["small", "small-updates", "large", "large-updates"],
                                     "lookups_per_second")),
    "pagevec-size": ("O4", {"lines": "lines_per_batch", "warm": "ns_per_page",
                            "cold": "ns_per_page"}),
    "pagecache-hit": ("O4", {"one-thread": "pages_per_second",
                             "two-threads": "pages_per_second"}),
    "pagecache-miss": ("O4", {name: "pages_per_second" for name in
                              ("random-1", "random-2", "zipf-2", "in-a-row", "ram-1",
                               "ram-2")}),
    "reclaim-batch": ("O4", {f"batches-of-{n}": "ns_per_page" for n in (1, 15, 31, 64, 512)}),
    "scan-resistance": ("O4", {"hot-set": "percent_of_hits"}),
    "swap-w-seq-mt": ("O1", {"one-thread": "megabytes_per_second",
                             "two-threads": "megabytes_per_second",
                             "two-threads-cpu": "cpu_seconds_per_gigabyte"}),
    "ipc-perm": ("O3", {"beside": "ns_per_call", "sembench": "operations_per_second"}),
    "ipc-latency": ("O3", dict.fromkeys(
        ["uncontended", "undo", "sixteen", "two-semaphores", "pingpong", "message",
         "message-pingpong", "semget"], "ns_per_call")),
    "ipc-scale": ("O3", dict.fromkeys(["wait-for-zero", "ping-pong", "complex", "sembench"],
                                      "operations_per_second")),
}
MANY = ["ck_ring-mpsc", "rte_ring-mpsc", "wfcqueue", "libuv", "mutex-cond", "eventfd"]
QUEUES = ["ck_ring-spsc", "rte_ring-spsc", *MANY]
RCU = ["urcu-memb", "urcu-qsbr", "ck_epoch", "rte_rcu_qsbr"]
TABLES = ["lfht-memb", "lfht-qsbr", "ck_ht", "mutex", "rwlock"]
ON_DISK = ["hotline-one-by-one", "io_uring", "io_uring-one-by-one", "mapped-pread",
           "mutex-hash-lru", "pread", "mmap", "lmdb"]
IN_RAM = ["hotline-one-by-one", "io_uring", "mapped-file", "mapped-pread", "mutex-hash-lru"]
# What a scenario compares ours with; of an experiment: all of its scenarios.
ROWS = {
    "rcu-prefetch": ["neither", "prefetch", "hoisted", "both", "array"],
    "rcu-callbacks": ["array", *RCU],
    ("rcu-callbacks", "idle-callback"): ["urcu-memb", "urcu-qsbr"],
    ("rcu-callbacks", "random-polled"): ["hotline-polling", "array", *RCU],
    ("rcu-callbacks", "random-polled-reader"): ["hotline-polling", "array", *RCU],
    "rcu-read": ["hotline-quiescent", "nothing", *RCU],
    "rcu-synchronize": ["hotline-expedited", "hotline-quiescent", *RCU],
    "close-flood": ["hotline-polling", *RCU],
    "rcu-hash": ["hotline-quiescent", *TABLES],
    "ipc-perm": ["packed", "kernel"],
    "ipc-latency": ["kernel"],
    ("ipc-latency", "uncontended"): ["kernel", "posix-sem", "exchange"],
    ("ipc-latency", "undo"): ["kernel", "exchange"],
    ("ipc-latency", "two-semaphores"): ["kernel", "hotline-alone", "posix-sem"],
    ("ipc-latency", "pingpong"): ["kernel", "posix-sem", "ping-pong"],
    ("ipc-latency", "message"): ["kernel", "posix-mq", "exchange"],
    ("ipc-latency", "message-pingpong"): ["kernel", "posix-mq", "ping-pong"],
    "ipc-scale": ["kernel"],
    ("ipc-scale", "sembench"): ["kernel", "futex-each"],
    ("csd-align", "waited"): ["straddling"],
    ("csd-align", "async"): ["straddling"],
    ("pagevec-size", "lines"): ["16-and-words"],
    ("pagevec-size", "warm"): ["16-and-words"],
    ("pagevec-size", "cold"): ["16-and-words"],
    ("pagecache-hit", "one-thread"): ["hotline-optimistic", "mutex-hash-lru", "lmdb", "mmap"],
    ("pagecache-hit", "two-threads"): ["hotline-optimistic", "mutex-hash-lru", "lmdb", "mmap"],
    ("pagecache-miss", "random-1"): ON_DISK,
    ("pagecache-miss", "random-2"): ON_DISK,
    ("pagecache-miss", "zipf-2"): ON_DISK,
    ("pagecache-miss", "in-a-row"): ["blocks"],
    ("pagecache-miss", "ram-1"): IN_RAM,
    ("pagecache-miss", "ram-2"): IN_RAM,
    ("scan-resistance", "hot-set"): ["mutex-hash-lru", "pread"],
    ("swap-w-seq-mt", "one-thread"): ["swap", "mmap", "io_uring"],
    ("swap-w-seq-mt", "two-threads"): ["swap", "mmap", "io_uring"],
    ("swap-w-seq-mt", "two-threads-cpu"): ["swap", "mmap", "io_uring"],
    **{("reclaim-batch", f"batches-of-{n}"): ["mapped"] for n in (1, 15, 31, 64, 512)},
    ("call-latency", "polling"): ["ping-pong", *QUEUES],
    ("call-latency", "idle"): ["futex", "libuv", "mutex-cond", "eventfd"],
    ("call-latency", "interrupted"): ["signal"],
    ("call-throughput", "one-sender"): QUEUES,
    ("call-throughput", "one-sender-burst"): QUEUES,
    ("call-throughput", "many-senders"): MANY,
    ("call-throughput", "many-senders-burst"): MANY,
    **{("cpu-poll", f"senders-{n}"): [] for n in (0, 1, 2, 4, 8, 64)},
}


def path(name):
    return os.path.join(WORK, name)


def bench(*arguments, **options):
    return tap.run([HOTLINE, "bench", *arguments], **options)


def read(name):
    with open(path(name), encoding="utf-8") as stream:
        return stream.read()


_measured = []


def measured():
    """The table, the JSON and the page of all experiments, measured once, one run a row."""
    if not _measured:
        result = bench("--quick", "--runs", "1", "--json", path("all.json"), "--html",
                       path("all.html"), timeout=900)
        tap.equal((result.returncode, result.stderr), (0, ""), result.stdout)
        _measured.extend([result.stdout, json.loads(read("all.json")), read("all.html")])
    return _measured


def scenarios():
    for experiment in measured()[1]["experiments"]:
        for scenario in experiment["scenarios"]:
            yield experiment, scenario


# ---- The command line ----

@tap.case("--list names the experiments and the peers")
def listing():
    result = bench("--list")
    tap.equal((result.returncode, result.stderr), (0, ""))
    for name, (origin, _) in EXPERIMENTS.items():
        tap.matches(rf"^  {name} +{origin} +\S", result.stdout)
    for peer in [*QUEUES, *RCU, *TABLES]:
        tap.matches(rf"^  {peer} +(built in|not built in: install \S+ \(Debian, Ubuntu\) or \S+)",
                    result.stdout)


@tap.case("--help has examples")
def help_text():
    result = bench("--help")
    tap.equal(result.returncode, 0)
    tap.matches(r"^  hotline bench --quick", result.stdout)


@tap.case("wrong usage: a message and status 2")
def usage():
    unknown = bench("nonsense")
    tap.equal((unknown.returncode, unknown.stdout), (2, ""))
    for name in EXPERIMENTS:
        tap.true(name in unknown.stderr, unknown.stderr)
    for arguments in (["--runs", "0"], ["--runs", "x"], ["--runs", "-1"], ["--runs"],
                      ["--frobnicate"], ["csd-align", "nonsense"], ["csd-align/"],
                      ["csd-aligned/waited"]):
        result = bench(*arguments)
        tap.equal((result.returncode, result.stdout), (2, ""), str(arguments))
        tap.true(result.stderr, "a message")


@tap.case("EXPERIMENT/SCENARIO measures that scenario alone")
def one_scenario():
    result = bench("--quick", "--runs", "1", "--json", "-", "csd-align/async")
    tap.equal(result.returncode, 0, result.stderr)
    experiments = json.loads(result.stdout)["experiments"]
    tap.equal([(e["name"], [s["name"] for s in e["scenarios"]]) for e in experiments],
              [("csd-align", ["async"])])


@tap.case("a scenario that is not there: those that are, and status 2")
def no_scenario():
    result = bench("--quick", "csd-align/nonsense")
    tap.equal((result.returncode, result.stdout), (2, ""))
    tap.matches(r"no csd-align/nonsense; csd-align has waited, async$", result.stderr)


@tap.case("files that cannot be written: a message and status 1")
def not_writable():
    for option in ("--json", "--html"):
        result = bench("--quick", "--runs", "1", option, "/nonexistent/file", "csd-align")
        tap.equal(result.returncode, 1, option)
        tap.matches("/nonexistent/file: No such file", result.stderr)


# ---- JSON ----

@tap.case("the JSON has all experiments and scenarios, and the members that scripts rely on")
def complete():
    document = measured()[1]
    tap.equal(document["schema"], 1)
    machine = document["machine"]
    tap.true(machine["cpus"] >= 1 and machine["line_bytes"] >= 16, str(machine))
    tap.equal(machine["kernel"], os.uname().release)
    tap.true(machine["model"], "a model")
    tap.equal([e["name"] for e in document["experiments"]], list(EXPERIMENTS))
    for experiment, scenario in scenarios():
        origin, known = EXPERIMENTS[experiment["name"]]
        tap.equal(experiment["origin"], origin)
        tap.equal(scenario["better"],
                  "higher" if re.match(r"percent|.*_per_second$", scenario["metric"]) else "lower")
        if scenario["name"] in known:
            tap.equal(scenario["metric"], known[scenario["name"]])
    if machine["cpus"] == 2:
        for experiment in document["experiments"]:
            tap.equal([s["name"] for s in experiment["scenarios"]],
                      list(EXPERIMENTS[experiment["name"]][1]))


@tap.case("each row is there with all its runs, or listed as unavailable with the reason")
def rows():
    for experiment, scenario in scenarios():
        where = (experiment["name"], scenario["name"])
        others = ROWS.get(where, ROWS.get(experiment["name"], ["shared"]))
        expected = sorted(["hotline", *others])
        present = [row["name"] for row in scenario["rows"]]
        missing = [one["name"] for one in scenario["unavailable"]]
        tap.equal(sorted(present + missing), expected, str(where))
        for row in scenario["rows"]:
            tap.equal((row["runs"], len(row["values"])), (1, 1), str(where))
            tap.true(row["kind"] in ("ours", "as-it-was", "peer", "limit"), row["kind"])
            tap.true(0 < row["min"] <= row["median"] <= row["max"], str(row))
            tap.equal((row["min"], row["max"]), (min(row["values"]), max(row["values"])))
        for one in scenario["unavailable"]:
            tap.matches(r"install \S+ \(Debian, Ubuntu\) or|takes \d+ processors|"
                        r"needs a limit of memory", one["why"])


@tap.case("one row is as it was where something changed: the list with neither change")
def as_it_was():
    kinds = {(e["name"], row["name"]): row["kind"] for e, s in scenarios() for row in s["rows"]
             if e["name"] == "rcu-prefetch"}
    tap.equal(sorted(name for (_, name), kind in kinds.items() if kind == "as-it-was"),
              ["neither"])
    tap.equal(kinds["rcu-prefetch", "array"], "limit")


@tap.case("ratios are taken run by run, of each row of ours")
def ratios():
    result = bench("--quick", "--runs", "3", "--json", "-", "csd-align", "rcu-read")
    tap.equal((result.returncode, result.stderr), (0, ""))
    for experiment in json.loads(result.stdout)["experiments"]:
        for scenario in experiment["scenarios"]:
            values = {row["name"]: row["values"] for row in scenario["rows"]}
            ours = [row["name"] for row in scenario["rows"] if row["kind"] == "ours"]
            others = [name for name in values if name not in ours]
            tap.equal([(r["of"], r["to"]) for r in scenario["ratios"]],
                      [("hotline", name) for name in values if name != "hotline"] +
                      [(one, name) for one in ours[1:] for name in others] if ours else [])
            for ratio in scenario["ratios"]:
                pairs = [a / b for a, b in zip(values[ratio["of"]], values[ratio["to"]])]
                tap.equal(len(pairs), 3)
                for member, value in (("median", statistics.median(pairs)), ("min", min(pairs)),
                                      ("max", max(pairs))):
                    tap.true(abs(ratio[member] - value) <= 1e-3 * value,
                             f"{experiment['name']} {scenario['name']}: {ratio} against {pairs}")


@tap.case("--json - writes JSON alone, of the experiments that were named")
def json_to_stdout():
    result = bench("--quick", "--runs", "1", "--json", "-", "call-many", "csd-align")
    tap.equal((result.returncode, result.stderr), (0, ""))
    document = json.loads(result.stdout)
    tap.equal([e["name"] for e in document["experiments"]], ["csd-align", "call-many"])


# ---- Tables and pages ----

@tap.case("the table has every row with the figures of the JSON, and the harness's own cost")
def table():
    text = measured()[0]
    tap.matches(r"^the harness itself: [\d.]+ ns to read the clock, [\d.]+ ns a call$", text)
    for experiment, scenario in scenarios():
        tap.matches(rf"^{experiment['name']} \(", text)
        tap.matches(rf"^  {scenario['name']}: ", text)
        for row in scenario["rows"]:
            tap.matches(rf"^    {re.escape(row['name'])} +{row['kind']} +\d[\d .]*", text)
        for one in scenario["unavailable"]:
            tap.matches(rf"^    {re.escape(one['name'])} +{re.escape(one['why'])}$", text)


@tap.case("the page refers to nothing outside itself and has every row")
def page():
    html = measured()[2]
    for pattern in (r"https?:", r"\bsrc\s*=", r"@import", r"url\((?!#)", r"<link", r"<script",
                    r"href\s*=\s*['\"](?!#)"):
        tap.true(not re.search(pattern, html), f"{pattern} in the page")
    for _, scenario in scenarios():
        for row in scenario["rows"]:
            tap.true(f">{row['name']}</td>" in html, row["name"])


@tap.case("a plot for each scenario, where gnuplot is")
def plots():
    if not shutil.which("gnuplot"):
        raise tap.Skip("gnuplot is not installed")
    count = sum(1 for _, scenario in scenarios() if scenario["rows"])
    tap.equal(measured()[2].count("<svg"), count)


@tap.case("without gnuplot: tables, and what to install")
def no_gnuplot():
    result = bench("--quick", "--runs", "1", "--html", path("plain.html"), "csd-align",
                   env={**os.environ, "PATH": "/nonexistent"})
    tap.equal((result.returncode, result.stderr), (0, ""))
    html = read("plain.html")
    tap.true("<svg" not in html and "<table>" in html, "tables without plots")
    if "straddling</td>" in html:
        tap.matches("install gnuplot-nox", html)


@tap.case("a browser shows the page")
def browser():
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        raise tap.Skip("chromium is not installed")
    measured()
    tap.run([chromium, "--headless", "--no-sandbox", "--disable-gpu",
             "--disable-background-networking", "--disable-sync", "--no-first-run",
             f"--user-data-dir={path('browser')}", "--window-size=900,1200",
             f"--screenshot={path('page.png')}", "file://" + path("all.html")], timeout=120,
            env={**os.environ, "HOME": WORK})
    width, height, found = png.colours(path("page.png"))
    tap.true(width >= 800 and height >= 1000, f"{width} by {height}")
    # Text on white, and the colours of ours and of what it is compared with.
    white = found.get(b"\xff\xff\xff", 0) / (width * height)
    tap.true(0.5 < white < 0.99, f"{white:.3f} of the page is white")
    tap.true(len(found) > 50, f"{len(found)} colours")
    for colour in ("0b6e4f", "b3541e"):
        if measured()[1]["machine"]["cpus"] > 1:
            tap.true(found.get(bytes.fromhex(colour), 0) > 20, f"too little #{colour}")


tap.main()
