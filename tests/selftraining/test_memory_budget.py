"""Embeddings and pairs in files where memory is short: the same bits, nothing left behind, words where it fails."""

from __future__ import annotations

import errno
import gc
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stea_fast as sf
from stea_fast._util import disk, mapped
from stea_fast.encoders.propagation import Propagation
from stea_fast.refinement import shard_in_files
from stea_fast.selftraining import loop, planning

MAPS = Path("/proc/self/maps")
NO_FILES, FILES = planning.Files(), planning.Files(embeddings=True)
needs_maps = pytest.mark.skipif(not MAPS.exists(), reason="the system does not list what is mapped")


@pytest.fixture(scope="module")
def pair():
    return sf.synthetic_pair(num_entities=300, seed=0, profile="dbp1m")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where temporary files go."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def budget(pair, preset, more=FILES, less=NO_FILES):
    """A budget that suffices with something in files, and not with less there: by default embeddings, and nothing."""
    config = sf.preset(preset)
    needed = [max(stage.gigabytes for stage in planning._stages(pair, config, files)) for files in (more, less)]
    assert needed[0] < needed[1]
    return 0.5e9 * sum(needed)


@pytest.fixture
def shards(monkeypatch):
    """Small graphs in several shards, of which all but one can have their pairs elsewhere; and small arrays count."""
    monkeypatch.setattr("stea_fast.refinement.shard.EDGES_PER_SHARD", 150)
    monkeypatch.setattr("stea_fast.refinement.shard_in_files.LEAST_BYTES", 64)
    monkeypatch.setattr(planning, "BYTES_PER_ENTITY", 100.0)  # the estimates are of graphs in fewer shards


def mapped_here(folder):
    return sum(str(folder) in line for line in MAPS.read_text(encoding="utf-8").splitlines())


@needs_maps
@pytest.mark.parametrize(
    ("preset", "search"),
    [("fast", {}), ("large", {"budget": 0, "dimensions": 64})],
)
def test_a_run_with_embeddings_in_files_has_the_bits_of_one_without(pair, folder, preset, search, monkeypatch):
    options = {"preset": preset, "search": replace(sf.preset(preset).search, **search), "rounds": 1}
    seen = []
    watching = {"callbacks": [lambda record: seen.append(mapped_here(folder))]}
    expected = sf.SelfTraining(pair, **options, **watching).run()
    assert seen == [0, 0]
    shapes = []
    monkeypatch.setattr(loop, "in_a_file", lambda shape: shapes.append(shape) or mapped.in_a_file(shape))
    found = sf.SelfTraining(pair, **options, **watching, memory=budget(pair, preset)).run()
    assert min(seen[2:]) >= 2
    # Both graphs' embeddings, and what the search made of them: all in fewer dimensions, and the open entities'.
    every, fewer, opened = [(300, 1024)] * 2, [(300, 64)] * 2 * ("dimensions" in search), shapes[-2:]
    assert shapes == [*every, *fewer, *every, *fewer, *opened] and all(0 < rows < 300 for rows, _ in opened)
    assert not list(folder.iterdir()), "the files have no names, so nothing stays even after a kill"
    for side in ("forward", "backward"):
        for part in ("refinement", "candidates"):
            one, two = (getattr(getattr(result, part), side) for result in (found, expected))
            for name in ("indices", "probs" if part == "refinement" else "scores"):
                assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), (side, part, name)
    assert all(np.array_equal(*sides) for sides in zip(found.embeddings, expected.embeddings, strict=True))
    assert found.pairs.tobytes() == expected.pairs.tobytes()
    del found, one
    gc.collect()
    assert mapped_here(folder) == 0


@needs_maps
def test_an_error_leaves_no_file_and_nothing_mapped(pair, folder):
    def fail(record):
        assert mapped_here(folder) >= 2
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        sf.SelfTraining(pair, preset="fast", rounds=1, memory=budget(pair, "fast"), callbacks=[fail]).run()
    gc.collect()
    assert not list(folder.iterdir()) and mapped_here(folder) == 0


def test_the_plan_says_what_is_in_files(pair, folder):
    within, beyond = (
        sf.SelfTraining(pair, preset="fast", memory=size).plan() for size in ("2GB", budget(pair, "fast"))
    )
    assert within.embeddings_in_files == within.pairs_in_files == 0 and "in files" not in str(within)
    assert beyond.gigabytes < beyond.memory_limit < within.gigabytes
    # 1,024 dimensions of all entities, and of the half that is taken to be open.
    assert beyond.embeddings_in_files == pytest.approx(1.5 * 4 * 1024 * 600 / 1e9) and not beyond.pairs_in_files
    assert str(beyond).endswith(f"of embeddings in files in {folder}")


@needs_maps
@pytest.mark.parametrize("preset", ["structural", "fast"])
def test_a_run_with_pairs_in_files_has_the_bits_of_one_without(pair, folder, preset, shards, monkeypatch):
    embeddings = planning.Files(embeddings=preset == "fast")
    size = budget(pair, preset, embeddings._replace(pairs=True), embeddings)
    expected = sf.SelfTraining(pair, preset=preset, rounds=1).run()
    seen, step = [], shard_in_files.Shard.judge

    def watched(self, *given):
        seen.append(mapped_here(folder))
        return step(self, *given)

    monkeypatch.setattr(shard_in_files.ShardInFiles, "judge", watched)
    run = sf.SelfTraining(pair, preset=preset, rounds=1, memory=size)
    plan = run.plan()
    assert plan.gigabytes < plan.memory_limit and str(plan).endswith(f"GB of pairs in files in {folder}")
    found = run.run()
    assert seen and min(seen) > 10, "the pairs of all shards, in several arrays each"
    for side in ("forward", "backward"):
        one, two = (getattr(result.refinement, side) for result in (found, expected))
        for name in ("indices", "probs", "evidence"):
            assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), (side, name)
    assert found.pairs.tobytes() == expected.pairs.tobytes()
    del found, run, one
    gc.collect()
    assert not list(folder.iterdir()) and mapped_here(folder) == 0


def test_an_array_that_pairs_of_two_sweeps_share_is_copied_once(folder):
    values, other = np.arange(4000.0), np.arange(7, dtype=np.int32)
    moved = {}
    first, (again, (small,)) = shard_in_files._in_files((values, (values, (other,))), moved)
    assert first is again and first.tobytes() == values.tobytes() and first.dtype == values.dtype
    assert small is other, "too small for a file"
    assert mapped.moved_to_a_file(first, "pairs") is first, "it is in a file already"
    assert mapped.moved_to_a_file(values[:0], "pairs").shape == (0,)


def test_no_room_for_pairs_is_said(folder, monkeypatch):
    def full(descriptor, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk, "take_room", full)
    with pytest.raises(OSError, match=r"pairs of 8e-06 GB are to be in a file.*TMPDIR"):
        mapped.moved_to_a_file(np.zeros(1000), "pairs")


def test_a_budget_below_the_minimum_is_refused_with_what_is_needed(pair):
    with pytest.raises(
        MemoryError, match=r"need 0\.3 GB with embeddings in files, and 0\.0 GB may be taken; use preset"
    ):
        sf.SelfTraining(pair, preset="fast", memory="1MB").run()


def test_embeddings_of_other_encoders_stay_in_memory(pair):
    class Own(Propagation):
        """An encoder of the user, which knows of no files."""

    for encoder in (Own(pair.kg1, pair.kg2), sf.EncoderConfig(name="propagation", device="meta")):
        config = (
            sf.SelfTraining(pair, encoder=encoder, memory="1MB").config
            if isinstance(encoder, Own)
            else replace(sf.preset("fast"), encoder=encoder, memory="1MB")
        )
        assert planning.plan_run(pair, config).embeddings_in_files == 0


def test_no_room_for_the_files_is_said_and_the_checkpoint_stays(pair, folder, monkeypatch, tmp_path_factory):
    checkpoint = tmp_path_factory.mktemp("runs") / "run"
    options = {"preset": "fast", "rounds": 1, "checkpoint": checkpoint, "progress": False}

    def stop(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sf.SelfTraining(pair, **options, callbacks=[stop]).run()
    before = {path.name: path.read_bytes() for path in checkpoint.iterdir()}

    def full(descriptor, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "take_room", full)
        with pytest.raises(
            OSError, match=r"embeddings of 0\.0012 GB are to be in a file.*TMPDIR.*checkpoint stays whole"
        ):
            sf.SelfTraining(pair, **options, memory=budget(pair, "fast")).run()
    assert {path.name: path.read_bytes() for path in checkpoint.iterdir()} == before
    assert not list(folder.iterdir())
    resumed = sf.SelfTraining(pair, **options, memory=budget(pair, "fast")).run()
    assert resumed.pairs.tobytes() == sf.SelfTraining(pair, preset="fast", rounds=1).run().pairs.tobytes()


def test_a_folder_that_cannot_be_written_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(OSError, match=r"cannot write embeddings to a file in .*nowhere: No such file"):
        mapped.in_a_file((3, 4))


def test_room_is_taken_before_anything_is_written(folder):
    """More than any disk has: the error comes at once, not as a signal when the matrix is filled."""
    with pytest.raises(OSError, match="embeddings of"):
        mapped.in_a_file((1 << 40, 1 << 10))
    assert not list(folder.iterdir())


def test_where_the_system_cannot_take_room_zeros_are_written(folder, monkeypatch):
    monkeypatch.delattr(disk.os, "posix_fallocate", raising=False)
    matrix = mapped.in_a_file((700, 1000))
    assert matrix.shape == (700, 1000) and not matrix.any()
    matrix[:] = 1.0
    assert matrix.sum() == 700_000
    assert mapped.in_a_file((0, 5)).shape == (0, 5)
