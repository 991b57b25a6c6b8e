"""All that is to be known of the CUDA backend on a machine with GPUs, as one JSON to send back.

Of every GPU: whether each kernel gives what native gives, and the same bits twice; its time between two CUDA events,
and the bytes of its contract per second; whole runs of presets against the CPU. Of several GPUs: the rows of one
direction divided among them. A kernel that is wrong is not timed; whatever fails is told and written down, and the rest
goes on.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import stea_fast as sf
from bench.kernels.cuda_calls import KernelCall, kernel_calls
from bench.kernels.cuda_case import OnDevice
from bench.lib import inputs
from bench.lib.measure import Timing, duration, machine_facts
from stea_fast._util import atomic

FORMAT = 1
CASES = ("dbp15k_zh_en", "wordnet30_oewn", "synthetic-50K")
WITHOUT_DATA = "synthetic-15K"  # takes the place of real pairs that are not there
PRESETS = {"structural": None, "fast": 2}  # and their rounds
WARM_UP = 3
COPIED = 1 << 28  # bytes that are copied to see what the memory of a device gives
LEAST_COMMON, MOST_OFF = 0.995, 1e-3  # of links that device and CPU find, and between their probabilities
DRIVER = Path("/proc/driver/nvidia/version")
FACTS = ("total_memory", "multi_processor_count", "L2_cache_size", "memory_clock_rate", "memory_bus_width")


class Report:
    """What is found, on the disk after every step: a crash loses one step.

    Attributes:
        content: What the file holds.
    """

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        atomic.check_writable(path)
        self.path = path
        empty: dict[str, Any] = {name: [] for name in ("kernels", "presets", "several_devices", "skipped", "failures")}
        self.content: dict[str, Any] = {"format": FORMAT, **facts, "finished": False, **empty}

    def write(self) -> None:
        with atomic.replacing(self.path) as stream:
            stream.write((json.dumps(self.content, indent=1, allow_nan=False) + "\n").encode())

    def add(self, kind: str, **entry: Any) -> None:
        """Note something, and say it."""
        self.content[kind].append(entry)
        said = {**entry, **({"seconds": duration(entry["seconds"]["median"])} if "seconds" in entry else {})}
        print(f"{kind}: {', '.join(f'{key} {value}' for key, value in said.items())}", flush=True)

    @contextmanager
    def step(self, what: str, **where: Any) -> Iterator[None]:
        """Work whose errors are told, and do not end the suite."""
        try:
            yield
        except Exception as error:  # whatever a device may do
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:800]
            self.content["failures"].append({"what": what, **where, "reason": reason})
            place = ", ".join(f"{key} {value}" for key, value in where.items())
            print(f"FAILED: {what} ({place}): {reason}", file=sys.stderr, flush=True)
        self.write()


class Stopwatch:
    """Puts two events around every kernel that `kernels` enqueues, on its stream."""

    def __init__(self, kernels: Any) -> None:
        self.cuda, self.device = kernels.torch.cuda, kernels.device
        self.spans: list[tuple[Any, Any]] = []
        kernels._call = partial(self.around, kernels._call)

    def around(self, enqueue: Callable[..., object], *arguments: Any) -> None:
        with self.cuda.device(self.device):
            begin, end = (self.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            enqueue(*arguments)
            end.record()
        self.spans.append((begin, end))

    def timing(self, call: Callable[[], object], rounds: int) -> Timing:
        """Of the last kernel of every call: one that grows its table is repeated."""
        last = []
        for _ in range(WARM_UP + rounds):
            call()
            last.append(self.spans[-1])
        self.cuda.synchronize(self.device)
        self.spans.clear()
        return Timing.of([begin.elapsed_time(end) / 1e3 for begin, end in last[WARM_UP:]])


def run(path: Path, names: Sequence[str], rounds: int) -> int:
    """Measure everything; 0 if nothing failed."""
    import torch

    from stea_fast._backends import cuda

    report = Report(path, facts())
    devices = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]
    for device in devices:
        with report.step("copy", device=device.index):
            _copy(cuda.Kernels(device), report, rounds)
    for case in _cases(names, report):
        calls: list[KernelCall] = []
        with report.step("native backend", case=case.name):
            calls = kernel_calls(case)
        held = []
        for device in devices:
            with report.step("upload", case=case.name, device=device.index):
                held.append(OnDevice(case, device))
        for place in held:
            _kernels(calls, place, report, rounds)
        if len(held) > 1:
            with report.step("several devices", case=case.name):
                _several(calls[0], held, report, rounds)
        _presets(case, devices, report)
    report.content["finished"] = True
    report.write()
    failures = report.content["failures"]
    print(f"{len(failures)} failures; everything is in {path}")
    return 1 if failures else 0


def facts() -> dict[str, Any]:
    """Machine, driver, versions and devices; nothing that identifies the machine."""
    import torch

    from stea_fast._backends import cuda

    version = cuda._cuda.driver_version()
    driver = re.search(r"\b\d+\.\d+(\.\d+)?\b", DRIVER.read_text(encoding="utf-8")) if DRIVER.exists() else None
    return {
        "machine": machine_facts(),
        "backend": sf.backends()["cuda"].detail,
        "driver": driver.group() if driver else None,
        "driver_cuda": f"{version // 1000}.{version % 1000 // 10}",
        "torch_cuda": torch.version.cuda,
        "devices": [_device_facts(number) for number in range(torch.cuda.device_count())],
    }


def _device_facts(number: int) -> dict[str, Any]:
    import torch

    from stea_fast._backends import cuda

    name, capability = cuda._cuda.device_properties(number)
    properties = torch.cuda.get_device_properties(number)
    known = {fact: getattr(properties, fact, None) for fact in FACTS}
    return {"name": name, "capability": f"{capability // 10}.{capability % 10}", **known}


def _cases(names: Sequence[str], report: Report) -> Iterator[inputs.Case]:
    """One after the other; a synthetic pair where real ones were asked for and none is there."""
    missing = found = 0
    for name in names:
        case = None
        with report.step("input", case=name):
            try:
                case = inputs.case(name)
            except inputs.MissingDataError as error:
                report.add("skipped", case=name, reason=str(error))
                missing += 1
        if case is not None:
            found += name in inputs.FOLDERS
            yield case
    if missing and not found and WITHOUT_DATA not in names:
        yield inputs.case(WITHOUT_DATA)


def _kernels(calls: Sequence[KernelCall], place: OnDevice, report: Report, rounds: int) -> None:
    where = {"case": place.case.name, "device": place.device.index}
    watch = Stopwatch(place.kernels)
    for call in calls:
        with report.step(call.name, **where):
            wanted, cpu_seconds = call.native()
            first, second = (_on_host(call.on_device(place)) for _ in range(2))
            call.check(first, wanted)
            for one, other in zip(first, second, strict=True):
                assert np.array_equal(one, other), "two runs give different bits"
            timing = watch.timing(partial(call.on_device, place), rounds)
            _add_time(report, call.name, timing, call.num_bytes(wanted), cpu_seconds=cpu_seconds, **where)


def _copy(kernels: Any, report: Report, rounds: int) -> None:
    """What the memory of a device gives, for comparison."""
    watch = Stopwatch(kernels)
    source = kernels.torch.zeros(COPIED, dtype=kernels.torch.uint8, device=kernels.device)
    target = kernels.torch.empty_like(source)
    timing = watch.timing(partial(watch.around, target.copy_, source), rounds)
    _add_time(report, "copy", timing, 2 * COPIED, case=None, device=kernels.device.index)


def _add_time(report: Report, kernel: str, timing: Timing, num_bytes: int, **more: Any) -> None:
    speed = float(f"{num_bytes / max(timing.median, 1e-9) / 1e9:.4g}")
    report.add("kernels", kernel=kernel, **more, seconds=timing.as_dict(), bytes=num_bytes, gigabytes_per_second=speed)


def _on_host(results: Sequence[Any]) -> tuple[np.ndarray, ...]:
    return tuple(part.cpu().numpy() if hasattr(part, "cpu") else np.asarray(part) for part in results)


def _several(call: KernelCall, held: Sequence[OnDevice], report: Report, rounds: int) -> None:
    """The rows of the first kernel call (evidence, forward) in blocks of about as many edges, one per device."""
    indptr = held[0].case.forward.source.indptr
    cuts = np.searchsorted(indptr, np.linspace(0, indptr[-1], len(held) + 1)[1:-1])
    bounds = [0, *cuts.tolist(), len(indptr) - 1]
    blocks = list(pairwise(bounds))

    def together(places: Sequence[OnDevice], rows: Sequence[tuple[int, int]]) -> list[Any]:
        parts = [place.evidence_of(0, block) for place, block in zip(places, rows, strict=True)]
        for place in places:
            place.wait()
        return parts

    parts = [_on_host(part) for part in together(held, blocks)]
    call.check(tuple(map(np.concatenate, zip(*parts, strict=True))), call.native()[0])
    alone = _wall_clock(partial(together, held[:1], [(0, bounds[-1])]), rounds)
    shared = _wall_clock(partial(together, held, blocks), rounds)
    report.add(
        "several_devices", kernel=call.name, case=held[0].case.name, devices=len(held), seconds=shared.as_dict(),
        seconds_of_one_device=alone.median,
    )  # fmt: skip


def _wall_clock(call: Callable[[], object], rounds: int) -> Timing:
    seconds = []
    for _ in range(WARM_UP + rounds):
        begin = perf_counter()
        call()
        seconds.append(perf_counter() - begin)
    return Timing.of(seconds[WARM_UP:])


def _presets(case: inputs.Case, devices: Sequence[Any], report: Report) -> None:
    for name in PRESETS:
        wanted = cache(partial(_aligned, case.pair, name, "cpu"))
        for device in devices:
            with report.step(f"preset {name}", case=case.name, device=device.index):
                _aligned(case.pair, name, str(device))  # warms up
                found, seconds = _aligned(case.pair, name, str(device))
                theirs, cpu_seconds = wanted()
                common, off = _compared(found, theirs)
                report.add(
                    "presets", preset=name, case=case.name, device=device.index, seconds=Timing.of([seconds]).as_dict(),
                    cpu_seconds=cpu_seconds, links=len(found.pairs), links_in_common=common, probabilities_off=off,
                )  # fmt: skip
                assert common >= LEAST_COMMON, f"only {common:.2%} of the links are those of the CPU"
                assert off <= MOST_OFF, f"probabilities of the same links differ by up to {off:.1e} from the CPU's"


def _aligned(pair: sf.Pair, preset: str, device: str) -> tuple[sf.Alignment, float]:
    begin = perf_counter()
    configured = sf.preset(preset, device=device)
    found = sf.align(pair, preset=configured, rounds=PRESETS[preset], calibration="none", progress=False)
    return found, perf_counter() - begin


def _compared(found: sf.Alignment, wanted: sf.Alignment) -> tuple[float, float]:
    """The share of links that both found among all that one did, and how far probabilities of these are apart."""
    ours, theirs = ({*map(tuple, each.pairs.tolist())} for each in (found, wanted))
    same = (found.links.targets == wanted.links.targets) & (found.links.targets >= 0)
    off = np.nan_to_num(np.abs(found.links.probs[same] - wanted.links.probs[same]), nan=1.0)
    return len(ours & theirs) / max(len(ours | theirs), 1), float(off.max(initial=0.0))
