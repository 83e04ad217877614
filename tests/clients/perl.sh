#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Perl's own functions and its IPC::SysV classes: semaphores with undo, messages, shared memory.

set -eu
. "$(dirname "$0")/common.sh"
need perl perl

cat >"$WORK/probe.pl" <<'END'
use strict;
use warnings;
use Test::More;
use IPC::SysV qw(IPC_PRIVATE IPC_CREAT IPC_NOWAIT IPC_STAT S_IRUSR S_IWUSR SEM_UNDO ftok);
use IPC::Semaphore;
use IPC::Msg;
use IPC::SharedMem;

my $sem = IPC::Semaphore->new(IPC_PRIVATE, 3, S_IRUSR | S_IWUSR | IPC_CREAT);
ok($sem, 'a set');
ok($sem->setall(1, 2, 3), 'SETALL');
is_deeply([$sem->getall], [1, 2, 3], 'GETALL');
my $pid = fork;
if (!$pid) { $sem->op(0, -1, SEM_UNDO, 2, 4, SEM_UNDO); exit 0; }
waitpid $pid, 0;
is_deeply([$sem->getall], [1, 2, 3], 'undone');
is($sem->getpid(0), $pid, 'by whom');
ok($sem->op(1, -2, IPC_NOWAIT), 'down');
ok(!$sem->op(1, -1, IPC_NOWAIT), 'not below zero');
is($sem->stat->nsems, 3, 'nsems');
ok($sem->remove, 'removed');

my $msg = IPC::Msg->new(IPC_PRIVATE, S_IRUSR | S_IWUSR | IPC_CREAT);
ok($msg->snd(5, 'five') && $msg->snd(3, 'three'), 'sent');
is($msg->stat->qnum, 2, 'two');
my $buf;
is($msg->rcv($buf, 256, -4, IPC_NOWAIT), 3, 'type');
is($buf, 'three', 'text');
is($msg->rcv($buf, 256, 9, IPC_NOWAIT), undef, 'none');
ok($msg->remove, 'removed');

my $shm = IPC::SharedMem->new(IPC_PRIVATE, 8, S_IRUSR | S_IWUSR);
ok($shm->write(pack('A4', 'test'), 2, 4), 'written');
is($shm->read(2, 4), 'test', 'read');
ok($shm->attach, 'attached');
is($shm->stat->nattch, 1, 'once');
ok($shm->detach, 'detached');
ok($shm->remove, 'removed');
done_testing;
END
for HOW in enosys sigsys; do
	with_library perl "$WORK/probe.pl" >"$WORK/log" || { cat "$WORK/log"; exit 1; }
	echo "under $HOW: $(grep -c '^ok' "$WORK/log") passed"
done
[ -z "$(left)" ] || { echo "left behind:"; left; exit 1; }
