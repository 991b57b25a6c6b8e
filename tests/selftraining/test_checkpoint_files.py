"""The files of a checkpoint: whole or refused, and one run at a time."""

from __future__ import annotations

import errno
import json
import os
import socket

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util import disk
from stea_fast._util.atomic import OutputError
from stea_fast.selftraining import tensor_file
from stea_fast.selftraining.checkpoint import LOCK, NAME, Checkpoint

pytest.importorskip("safetensors")
STATE = {"matrix": np.arange(12, dtype=np.float32).reshape(3, 4), "count": np.array(7), "mask": np.array([True, False])}
PAIRS = np.array([[0, 1], [2, 3]])


@pytest.fixture
def checkpoint(tmp_path):
    found = Checkpoint(tmp_path / "run", sf.synthetic_pair(20, seed=0), {"rounds": 3})
    found.save(STATE, PAIRS, [], {"seconds": {"train": 1.0}})
    return found


def test_what_was_saved_comes_back_with_its_types_and_shapes(checkpoint):
    saved = checkpoint.load()
    assert saved.encoder.keys() == STATE.keys()
    for name, array in STATE.items():
        assert saved.encoder[name].dtype == array.dtype and saved.encoder[name].shape == array.shape
        np.testing.assert_array_equal(saved.encoder[name], array)
    np.testing.assert_array_equal(saved.pairs, PAIRS)
    assert saved.measured == {"seconds": {"train": 1.0}}


def test_the_library_of_the_format_reads_the_file_too(checkpoint):
    from safetensors.numpy import load_file

    assert set(load_file(checkpoint.path)) == {"encoder.matrix", "encoder.count", "encoder.mask", "pairs"}


def test_torch_tensors_come_back_as_such(checkpoint):
    torch = pytest.importorskip("torch")
    checkpoint.save({"weights": torch.arange(4)}, PAIRS, [], {})
    assert torch.equal(checkpoint.load().encoder["weights"], torch.arange(4))


def test_no_changed_byte_goes_unnoticed(checkpoint):
    content = checkpoint.path.read_bytes()
    for place in range(0, len(content), 5):
        changed = bytearray(content)
        changed[place] ^= 1 << (place % 8)
        checkpoint.path.write_bytes(changed)
        try:
            saved = checkpoint.load()
        except sf.CheckpointError:
            continue
        # spaces and order of the header mean nothing
        assert all((saved.encoder[name] == array).all() for name, array in STATE.items()), place
        assert (saved.pairs == PAIRS).all()


@pytest.mark.parametrize("size", [0, 4, 100, -1])
def test_a_file_that_was_cut_off_is_refused(checkpoint, size):
    content = checkpoint.path.read_bytes()
    checkpoint.path.write_bytes(content[:size])
    with pytest.raises(sf.CheckpointError, match=r"cannot read .*delete it to start anew"):
        checkpoint.load()


def rewrite(checkpoint, change):
    """Write the file anew, with another checksum, after a change of its arrays and metadata."""
    arrays, metadata = tensor_file.read(checkpoint.path)
    change(arrays, metadata)
    with open(checkpoint.path, "wb") as stream:
        tensor_file.write(stream, arrays, metadata)


@pytest.mark.parametrize("part", ["kinds", "history", "measured"])
def test_a_missing_part_is_an_error_that_names_it(checkpoint, part):
    rewrite(checkpoint, lambda arrays, metadata: metadata.pop(part))
    with pytest.raises(sf.CheckpointError, match=f"lacks a part: '{part}'"):
        checkpoint.load()


def test_a_missing_array_and_missing_metadata_are_errors(checkpoint):
    from safetensors.numpy import save_file

    rewrite(checkpoint, lambda arrays, metadata: arrays.pop("encoder.mask"))
    with pytest.raises(sf.CheckpointError, match="lacks a part"):
        checkpoint.load()
    save_file({"pairs": PAIRS}, checkpoint.path)
    with pytest.raises(sf.CheckpointError, match="does not say of what it is a checkpoint"):
        checkpoint.load()


def test_a_wrong_checksum_is_damage(checkpoint):
    arrays, metadata = tensor_file.read(checkpoint.path)
    from safetensors.numpy import save_file

    save_file({**arrays, "pairs": PAIRS + 1}, checkpoint.path, metadata)
    with pytest.raises(sf.CheckpointError, match="damaged: its checksum is wrong"):
        checkpoint.load()


def test_a_second_run_in_the_folder_is_told_who_is_there(checkpoint):
    run = sf.SelfTraining(sf.synthetic_pair(20, seed=0), rounds=1, checkpoint=checkpoint.folder)
    with checkpoint.locked():
        with pytest.raises(sf.CheckpointError, match=f"in use by process {os.getpid()} on {socket.gethostname()}"):
            run.run()
        assert json.loads((checkpoint.folder / LOCK).read_text())["process"] == os.getpid()
    assert [path.name for path in checkpoint.folder.iterdir()] == [NAME]


def test_a_checkpoint_that_cannot_be_written_is_an_error_of_output(checkpoint, monkeypatch):
    before = checkpoint.path.read_bytes()

    def refuse(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "write", refuse)
    with pytest.raises(sf.CheckpointError, match="No space left") as error:
        checkpoint.save(STATE, PAIRS, [], {})
    assert isinstance(error.value, OutputError)
    with pytest.raises(sf.CheckpointError, match="cannot write to"), checkpoint.locked():
        pytest.fail("a lock that nobody can read")
    assert checkpoint.path.read_bytes() == before


def test_an_array_that_the_format_does_not_have_is_an_error(checkpoint):
    with pytest.raises(TypeError, match=r"encoder\.text has dtype"):
        checkpoint.save({"text": np.array(["a"])}, PAIRS, [], {})
