"""Locks: one holder at a time, named to the others, and none left by the dead."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys

import pytest

from stea_fast._util import locks

HOLDER = """
import sys, time
from pathlib import Path
from stea_fast._util import locks
with locks.held(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "lock")]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def test_the_second_is_told_who_holds_the_lock_and_gets_it_after_a_kill(tmp_path, holder):
    path = tmp_path / "lock"
    with pytest.raises(locks.LockHeldError) as refused, locks.held(path):
        pytest.fail("two hold it")
    message = str(refused.value)
    assert f"process {holder.pid} on {socket.gethostname()} since 20" in message and str(tmp_path) in message
    holder.kill()
    holder.wait()
    assert path.exists()  # the dead could not remove it
    with locks.held(path):
        assert path.exists()
    assert not path.exists()


def test_one_process_does_not_get_the_lock_twice(tmp_path):
    path, ourselves = tmp_path / "lock", f"process {os.getpid()} "
    with locks.held(path), pytest.raises(locks.LockHeldError, match=ourselves), locks.held(path):
        pytest.fail("held twice")
    with locks.held(tmp_path / "lock"):
        pass


def test_a_holder_that_has_not_introduced_itself_is_another_process(tmp_path):
    with locks.held(tmp_path / "lock"):
        (tmp_path / "lock").write_text("")
        with pytest.raises(locks.LockHeldError, match="in use by another process"), locks.held(tmp_path / "lock"):
            pytest.fail("held twice")


def test_a_file_system_without_locks_is_a_warning(tmp_path, monkeypatch, caplog):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with locks.held(tmp_path / "lock"), locks.alone_in(tmp_path):
        pass
    assert caplog.text.count("has no locks: let no other process write there") == 2
