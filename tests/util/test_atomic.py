"""Where output goes: into files that are replaced whole, through links and pipes, and never where it would destroy."""

from __future__ import annotations

import errno
import os
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from stea_fast._util import asides, disk, locks
from stea_fast._util.atomic import OutputError, append_line, check_folder, check_writable, replacing


def write(path: Path, content: bytes = b"new") -> None:
    check_writable(path)
    with replacing(path) as stream:
        stream.write(content)


def test_a_symbolic_link_stays_one_and_its_file_is_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to(Path("there", "file"))
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "there" / "file").read_bytes() == b"new"


def test_a_link_to_nothing_yet_makes_the_file_there(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"new"


def test_a_link_to_itself_is_an_error(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(OutputError, match="cannot write"):
        write(tmp_path / "link")


def test_a_device_takes_everything_and_stays_a_device(device):
    null = device("null")
    write(null)
    assert null.is_char_device()


def test_a_full_device_is_an_error_that_says_so(device):
    with pytest.raises(OutputError, match="No space left on device; some of it may have been passed on"):
        write(device("full"))


def test_a_pipe_gets_the_content_and_stays_a_pipe(tmp_path):
    pipe, received = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    reader.start()
    write(pipe, b"x" * 100_000)
    reader.join()
    assert received == [b"x" * 100_000] and pipe.is_fifo()


def test_a_socket_and_a_folder_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(OutputError, match="it is a socket"):
            write(Path("socket"))
    with pytest.raises(OutputError, match="it is a folder"):
        write(tmp_path)


def test_a_disk_is_refused(tmp_path, monkeypatch):
    of_a_disk = os.stat_result((stat.S_IFBLK | 0o666, *[0] * 9))
    monkeypatch.setattr(os, "stat", lambda path: of_a_disk)
    with pytest.raises(OutputError, match="it is a disk"):
        check_writable(tmp_path / "sda")


def test_names_as_long_as_the_system_allows_can_be_written_and_longer_ones_are_refused(tmp_path):
    write(tmp_path / ("n" * 255))
    for length in (256, 5000):
        with pytest.raises(OutputError, match="name too long"):
            check_writable(tmp_path / ("n" * length))


def test_a_file_that_must_not_be_written_is_not_replaced_either(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    for attempt in (check_writable, write):
        with pytest.raises(OutputError, match="Permission denied"):
            attempt(path)
    assert path.read_text() == "old"


def test_permissions_are_those_of_the_old_file_or_those_of_any_new_one(tmp_path):
    (tmp_path / "private").touch(mode=0o600)
    (tmp_path / "ordinary").touch()
    write(tmp_path / "private")
    write(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path):
    path = tmp_path / "file"
    _, of_a_killed_one = asides.new_file(path, None)
    os.close(of_a_killed_one)
    living, descriptor = asides.new_file(path, None)
    other, of_another = asides.new_file(tmp_path / "another file", None)
    os.close(of_another)
    write(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, living, other])
    os.close(descriptor)


def test_without_locks_nothing_is_taken_for_a_leftover(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOLCK, "no locks available")

    path = tmp_path / "file"
    aside, descriptor = asides.new_file(path, None)
    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    write(path)
    assert sorted(tmp_path.iterdir()) == sorted([path, aside])
    os.close(descriptor)


def test_an_error_of_the_caller_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with suppress(KeyError), replacing(path) as stream:
        stream.write(b"half")
        raise KeyError
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_a_folder_that_can_be_made_later_is_fine_and_a_file_in_its_place_is_not(tmp_path):
    check_folder(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is not a folder"):
        check_folder(tmp_path / "file" / "b")


def test_a_line_is_appended_behind_the_last_whole_one(tmp_path):
    path = tmp_path / "new" / "lines"
    append_line(path, b"one")
    with path.open("ab") as file:
        file.write(b"cut o" + b"f" * 100_000)
    append_line(path, b"two")
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("call", ["write", "sync"])
def test_a_line_that_could_not_be_appended_is_not_there(tmp_path, monkeypatch, call):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "lines"
    append_line(path, b"one")
    monkeypatch.setattr(disk, call, refuse)
    with pytest.raises(OutputError, match="No space left on device; what was there before is untouched"):
        append_line(path, b"two")
    assert path.read_bytes() == b"one\n"


def test_a_folder_that_is_taken_for_a_leftover_before_it_is_locked_is_made_anew(tmp_path, monkeypatch):
    opened = disk.open_path

    def removed_first(path, flags):
        monkeypatch.setattr(disk, "open_path", opened)
        os.rmdir(path)
        return opened(path, flags)

    monkeypatch.setattr(disk, "open_path", removed_first)
    aside, descriptor = asides.new_folder(tmp_path / "graph")
    os.close(descriptor)
    assert [path.name for path in tmp_path.iterdir()] == [aside.name]
