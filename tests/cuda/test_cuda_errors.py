"""What the CUDA backend refuses, and what it says when a device fails."""

from __future__ import annotations

import contextlib
import os
import sys

import pytest
from device_calls import as_tensors
from harness_cases import star_case

import stea_fast as sf
from stea_fast.encoders import demo

torch = pytest.importorskip("torch", reason="the CUDA backend holds its arrays in torch tensors")
pytestmark = pytest.mark.slow  # compiles the kernels and the bindings for the CPU
ILLEGAL_ADDRESS, INVALID_HANDLE = 700, 400  # numbers of CUDA errors


def evidence_arguments():
    """What `_cuda.evidence` takes, for a small case."""
    from stea_fast._backends.device_data import DeviceAlignment, DeviceBeliefs, Strengths, transposed
    from stea_fast.data.device_graph import DeviceGraph

    case, cpu = star_case(6, seed=0), torch.device("cpu")
    graphs = [DeviceGraph.upload(kg, cpu) for kg in (case.kg1, case.kg2)]
    beliefs = DeviceBeliefs.upload(case.beliefs, cpu)
    return {
        "source": (graphs[0].indptr, graphs[0].edges),
        "target": (graphs[1].indptr, graphs[1].edges),
        "candidates": torch.tensor(case.candidates),
        "beliefs": tuple(beliefs),
        "believers": tuple(transposed(beliefs, case.kg2.num_entities)),
        "strengths": Strengths.of(DeviceAlignment.upload(case.relations, cpu), *graphs).forward.table,
        "row_begin": 0,
        "row_end": case.kg1.num_entities,
        "out": torch.empty(case.candidates.size),
        "stream": 0,
    }


@pytest.mark.parametrize(
    ("name", "change", "error", "message"),
    [
        ("candidates", lambda x: x.long(), TypeError, "candidates must be int32, not int64"),
        ("candidates", lambda x: x.t().contiguous().t(), ValueError, "candidates must be contiguous"),
        ("candidates", lambda x: x[:3].contiguous(), ValueError, r"candidates must have shape \(7, n\), not \(3, 4\)"),
        ("candidates", lambda x: x.tolist(), TypeError, "candidates must be an array with __dlpack__, not list"),
        ("out", lambda x: x.double(), TypeError, "out must be float32, not float64"),
        ("out", lambda x: x.requires_grad_(), ValueError, "out cannot be read: .*gradient"),
        ("out", lambda x: x.to("meta"), (ValueError, TypeError, RuntimeError), "."),
        ("row_end", lambda x: 99, ValueError, "rows outside the graph"),
        ("source", lambda x: x[:1], ValueError, "source must be a tuple of 2 arrays"),
        ("strengths", lambda x: (x[0][1:], *x[1:]), ValueError, "strengths.starts must have a power of two"),
    ],
)
def test_arrays_of_the_wrong_kind_are_refused_by_name(cuda, name, change, error, message):
    arguments = evidence_arguments()
    arguments[name] = change(arguments[name])
    with pytest.raises(error, match=message):
        sys.modules["stea_fast._cuda"].evidence(**arguments)


def test_launches_that_no_gpu_takes_are_refused(cuda):
    with pytest.raises(ValueError, match="block_size must be a multiple of 32"):
        sys.modules["stea_fast._cuda"].evidence(**evidence_arguments(), block_size=48)
    with pytest.raises(ValueError, match="up to 256, not 1024"):
        sys.modules["stea_fast._cuda"].evidence(**evidence_arguments(), block_size=1024)


def test_arrays_on_another_device_are_refused(cuda):
    class Elsewhere:
        def __init__(self, place):
            self.place = place

        def __dlpack_device__(self):
            return self.place

        def __dlpack__(self):
            raise AssertionError("must not be asked")

    for place, message in (((2, 0), "out must be on a CUDA device"), ((1, 1), "out is on device 1, the arrays before")):
        with pytest.raises(ValueError, match=message):
            sys.modules["stea_fast._cuda"].evidence(**{**evidence_arguments(), "out": Elsewhere(place)})


def test_running_out_of_memory_says_how_much_was_needed(cuda, monkeypatch):
    def full(shape, *, dtype, device):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB")

    monkeypatch.setattr(torch, "empty", full)
    with pytest.raises(MemoryError, match=r"800 bytes are needed on cpu for shape \(200,\): CUDA out of memory"):
        cuda.Kernels("cpu")._empty((200,), torch.float32)


def test_a_stream_that_died_is_an_error_of_this_call_only(cuda, harness):
    harness.harness_fail_call(b"cudaGetLastError", INVALID_HANDLE, 2)
    with pytest.raises(RuntimeError, match="evidence: cudaErrorInvalidResourceHandle"):
        sys.modules["stea_fast._cuda"].evidence(**evidence_arguments())
    sys.modules["stea_fast._cuda"].evidence(**evidence_arguments())


def test_bad_candidates_are_refused_on_the_device(cuda, pair):
    ranking = as_tensors(demo.candidates(pair)).forward

    def refined(indices, scores, method="product"):
        return sf.refine((indices, scores), pair.kg1, pair.kg2, method=method, backend="cuda")

    for indices, scores, error, message in (
        (ranking.indices.float(), ranking.scores, TypeError, "forward.indices must hold integers"),
        (ranking.indices, ranking.scores[:, :2], ValueError, "forward.scores must have the shape"),
        (ranking.indices[:5], ranking.scores[:5], ValueError, "a row per entity"),
        (ranking.indices + 10**6, ranking.scores, ValueError, "but there are only"),
        (ranking.indices * 0, ranking.scores, ValueError, "twice"),
        (ranking.indices, ranking.scores / 0, ValueError, "finite"),
        (ranking.indices, ranking.scores.clone().requires_grad_(), ValueError, r"detach\(\)"),
        (ranking.indices, ranking.scores.to("meta"), ValueError, "must be on one device"),
        (ranking.indices, ranking.scores.to_sparse(), TypeError, "dense tensor"),
    ):
        with pytest.raises(error, match=message):
            refined(indices, scores)
    with pytest.raises(sf.BackendUnavailable, match="no CUDA kernel"):
        refined(ranking.indices, ranking.scores, sf.Product(blanket="full"))


def test_a_graph_is_uploaded_once(cuda, pair):
    from stea_fast.data.device_graph import DeviceGraph

    moved = pair.kg1.to("meta")
    assert moved == pair.kg1 and moved.indptr is not None
    assert DeviceGraph.upload(moved, torch.device("meta")) is moved.device_graph
    assert moved.to("cpu").device_graph is None and pair.kg1.device_graph is None


def test_a_destroyed_context_is_never_used_again(cuda, harness):
    """In a process of its own: its module refuses to work from here on."""

    def refused():
        harness.harness_set_last_error(ILLEGAL_ADDRESS)
        with pytest.raises(RuntimeError, match=r"work before this call: cudaErrorIllegalAddress.*no longer be used"):
            sys.modules["stea_fast._cuda"].evidence(**evidence_arguments())
        with pytest.raises(RuntimeError, match=r"destroyed by an earlier error .*cudaErrorIllegalAddress.*new process"):
            sys.modules["stea_fast._cuda"].evidence(**evidence_arguments())

    child = os.fork()
    if child == 0:
        code = 1
        with contextlib.suppress(BaseException):
            refused()
            code = 0
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    sys.modules["stea_fast._cuda"].evidence(**evidence_arguments())
