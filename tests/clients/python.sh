#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# python.sh [SYSV_IPC [TEST...]]: Python's module sysv_ipc, from Debian's package, in a program of ours
# and by its own tests. SYSV_IPC is a checkout of github.com/osvenskan/sysv_ipc; its tests also try
# what is newer than the package, and those fail alike.
# shellcheck source-path=SCRIPTDIR
. "${0%/*}/common.sh"

packages python3-sysv-ipc
cat >"$scratch/probe.py" <<'EOF'
import os
import signal
import sysv_ipc

sem = sysv_ipc.Semaphore(None, sysv_ipc.IPC_CREX, initial_value=1)
sem.undo = True
pid = os.fork()
if not pid:
    sem.acquire()
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(pid, 0)
sem.acquire(timeout=10)
assert sem.last_pid == os.getpid()
assert sem.value == 0
try:
    sem.acquire(timeout=0.02)
    raise SystemExit("acquired twice")
except sysv_ipc.BusyError:
    pass
sem.remove()
try:
    sem.release()
    raise SystemExit("released what is gone")
except sysv_ipc.ExistentialError:
    pass

queue = sysv_ipc.MessageQueue(None, sysv_ipc.IPC_CREX)
pid = os.fork()
if not pid:
    queue.send(b"hello", type=7)
    os._exit(0)
assert queue.receive(type=7) == (b"hello", 7)
os.waitpid(pid, 0)
assert queue.last_send_pid == pid and queue.current_messages == 0
queue.remove()

memory = sysv_ipc.SharedMemory(None, sysv_ipc.IPC_CREX, size=5000)
memory.write(b"text", 100)
pid = os.fork()
if not pid:
    memory.write(b"TEXT", 100)
    os._exit(0)
os.waitpid(pid, 0)
assert memory.read(4, 100) == b"TEXT" and memory.number_attached == 1
memory.remove()
memory.detach()
print("fine")
EOF

probe()
{
	run /usr/bin/python3 -B "$scratch/probe.py"
}

# tests NAME: how many ran and which did not pass.
tests()
{
	run /usr/bin/python3 -B -m unittest -v "tests.$1" >"$scratch/$1.$way" 2>&1
	local bad

	bad=$(grep -E '\.\.\. (FAIL|ERROR)' "$scratch/$1.$way" | sort)
	echo "$bad" >&2
	awk '/\.\.\. ok/ { passed++ } /\.\.\. skipped/ { skipped++ } /\.\.\. (FAIL|ERROR)/ { failed++ }
		END { printf "%d ok, %d skip, %d bad\n", passed, skipped, failed }' "$scratch/$1.$way"
	[ -z "$bad" ] && grep -q '^OK' "$scratch/$1.$way"
}

table "python3-sysv-ipc"
same "a killed holder, a message, memory" probe
quiet probe
if [ $# != 0 ]; then
	cp -r "$1/tests" "$scratch" || exit 1
	cd "$scratch" || exit 1
	shift
	[ $# != 0 ] || set -- test_semaphores test_memory test_message_queues test_module
	for test; do
		same "tests/$test.py" tests "$test"
		quiet tests "$test"
	done
fi
finish
