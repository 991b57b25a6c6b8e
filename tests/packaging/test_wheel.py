"""The distributions: built from a clean copy, looked into, and tried in an environment without a compiler."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

import build_cuda
import stea_fast
from stea_fast._backends import nvrtc

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]
# Tests that read files of the project, and not the package alone; the quick ones of them.
READING = (
    "packaging/test_contributing.py",
    "test_docs.py",
    "test_layering.py",
    "test_readme.py",
    "bench/test_pages.py",
)
SOURCES = "stea_fast/_cuda_sources/"  # of kernels that are compiled at run time
HAS_LAUNCHERS = sys.platform == "linux"
needs_launchers = pytest.mark.skipif(not HAS_LAUNCHERS, reason="kernels are compiled at run time on Linux only")


def run(command, *, cwd, env=None):
    result = subprocess.run(list(map(str, command)), cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{command}\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
    return result.stdout


def files_of_the_checkout():
    """What git knows or would add: no build product, nothing ignored, nothing deleted."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout, to tell the sources from what was built")
    command = [git, "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = run(command, cwd=ROOT).split("\0")
    return sorted({name for name in names if (ROOT / name).is_file()})


@dataclass(frozen=True)
class Distributions:
    sdist: Path
    wheel: Path

    def in_sdist(self):
        with tarfile.open(self.sdist) as archive:
            return {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}

    def in_wheel(self):
        with zipfile.ZipFile(self.wheel) as archive:
            return set(archive.namelist())


def build(folder):
    """Both distributions from a copy of the sources: the wheel is made of what the source distribution holds."""
    sources = folder / "sources"
    for name in files_of_the_checkout():
        (sources / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, sources / name)
    # As where there is no toolkit: nvcc would compile for minutes, and its module is looked into by tests/cuda.
    environment = {**os.environ, "STEA_CUDA": "auto", "CUDA_HOME": str(folder), "STEA_REQUIRE_NATIVE": "1"}
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "part", sources]
    run(command, cwd=folder, env=environment)
    (folder / "part").rename(folder / "dist")  # only when both are there


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Built once for all test processes."""
    for module in ("build", "setuptools", "pybind11"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "distributions"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "dist").exists():
            build(folder)
    (sdist,), (wheel,) = (folder / "dist").glob("*.tar.gz"), (folder / "dist").glob("*.whl")
    return Distributions(sdist, wheel)


def test_the_wheel_holds_the_package_and_nothing_else(dist):
    suffixes = (".py", ".pyi", ".css", ".js", ".json", ".typed")
    wanted = {name for name in files_of_the_checkout() if name.startswith("stea_fast/") and name.endswith(suffixes)}
    if HAS_LAUNCHERS:
        wanted |= {f"{SOURCES}{path.relative_to(build_cuda.KERNELS)}" for path in build_cuda.run_time_sources()}
    held = {name for name in dist.in_wheel() if ".dist-info/" not in name}
    compiled = {name for name in held if name.endswith(".so")}
    assert held - compiled == wanted
    modules = ["stea_fast/_core", *(["stea_fast/_cuda_jit"] if HAS_LAUNCHERS else [])]
    assert sorted(name.split(".")[0] for name in compiled) == modules
    assert {"stea_fast/py.typed", "stea_fast/_core.pyi", "stea_fast/_cuda.pyi"} <= held
    assert {Path(name).suffix for name in held} >= {".css", ".js"}


@needs_launchers
def test_the_wheel_holds_all_that_nvrtc_reads(dist, tmp_path, monkeypatch):
    """Includes are followed from the program that NVRTC is given: first beside a file, then from the top."""
    with zipfile.ZipFile(dist.wheel) as archive:
        archive.extractall(tmp_path, [name for name in archive.namelist() if name.startswith(SOURCES)])
    top = tmp_path / SOURCES
    monkeypatch.setattr(nvrtc, "sources", lambda: top)
    waiting, read = [(top, nvrtc._program().decode())], set()
    while waiting:
        folder, text = waiting.pop()
        for name in re.findall(r'^#include ["<](.+)[">]', text, re.MULTILINE):
            if name in nvrtc._STAND_INS:
                continue
            found = [path.resolve() for path in (folder / name, top / name) if path.is_file()]
            assert found, f"{name} is not in the wheel"
            if found[0] not in read:
                read.add(found[0])
                waiting.append((found[0].parent, found[0].read_text(encoding="utf-8")))
    assert {str(path.relative_to(top)) for path in read} == {
        name.removeprefix(SOURCES) for name in dist.in_wheel() if name.startswith(SOURCES)
    }


@needs_launchers
def test_nvrtc_compiles_what_the_wheel_holds(installed):
    """In the environment of the wheel, far from the checkout."""
    library = os.environ.get("STEA_NVRTC")
    if library is None:
        pytest.skip("needs STEA_NVRTC, the file of a libnvrtc")
    code = (
        f"import os; os.environ['STEA_NVRTC'] = {library!r}\n"
        "from stea_fast import _cuda_jit\nfrom stea_fast._backends import nvrtc\n"
        "compiler = nvrtc.compiler(); names = _cuda_jit.kernel_names()\n"
        "image = compiler.compile(f'compute_{compiler.architectures[0]}', names)\n"
        "missing = [entry for entry in image.entries.values() if entry.encode() not in image.code]\n"
        "print(nvrtc.sources()); print(len(names), missing)"
    )
    where, compiled = installed.run(installed.python, "-c", code).splitlines()
    assert Path(where) == installed.site_packages / SOURCES and compiled == "6 []"


def test_a_build_without_cuda_leaves_the_sources_of_kernels_out(tmp_path):
    command = [sys.executable, "setup.py", "-q", "build_py", "--build-lib", tmp_path]
    run(command, cwd=ROOT, env={**os.environ, "STEA_CUDA": "off"})
    assert (tmp_path / "stea_fast" / "types.py").is_file() and not (tmp_path / SOURCES).exists()


def test_the_source_distribution_holds_every_source(dist):
    """Kernels and headers, the tests and all that they read: whoever has it can build, test and measure."""
    wanted = set(files_of_the_checkout())
    assert wanted - dist.in_sdist() == set()
    generated = {name for name in dist.in_sdist() - wanted if not name.startswith("stea_fast.egg-info/")}
    assert generated == {"PKG-INFO", "setup.cfg"}


def test_the_tests_of_the_source_distribution_find_what_they_read(dist, tmp_path):
    with tarfile.open(dist.sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    with zipfile.ZipFile(dist.wheel) as archive:
        archive.extractall(root, [name for name in archive.namelist() if name.endswith(".so")])
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *(root / "tests" / name for name in READING)]
    run(command, cwd=root, env={**os.environ, "PYTHONPATH": str(root)})


def test_the_metadata_is_what_an_index_accepts(dist):
    pytest.importorskip("twine", reason="twine is not installed")
    run([sys.executable, "-m", "twine", "check", "--strict", dist.sdist, dist.wheel], cwd=dist.wheel.parent)


def needed_by(distribution, found):
    """What a distribution declares that it needs, and what that needs in turn, by name."""
    for requirement in distribution.requires or []:
        name = re.match(r"[\w.-]+", requirement).group()
        if ";" not in requirement and name not in found:  # behind a semicolon stand extras
            found[name] = importlib.metadata.distribution(name)
            needed_by(found[name], found)
    return found


def link_dependencies(wheel, site_packages):
    """The dependencies that the wheel declares, taken from the running environment: no network is needed."""
    (metadata,) = (path for path in zipfile.Path(wheel).iterdir() if path.name.endswith(".dist-info"))
    for distribution in needed_by(importlib.metadata.PathDistribution(metadata), {}).values():
        for entry in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            (site_packages / entry).symlink_to(Path(distribution.locate_file(entry)).resolve())


class Installed:
    """An environment of its own with the wheel and its dependencies; no compiler and no checkout in sight."""

    def __init__(self, folder, wheel):
        self.folder, self.python = folder, folder / "venv" / "bin" / "python"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "STEA_", "COV"))}
        self.environment = {**clean, "PATH": str(self.python.parent), "HOME": str(folder)}
        run([sys.executable, "-m", "venv", folder / "venv"], cwd=folder)
        (site_packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
        link_dependencies(wheel, site_packages)
        self.run(self.python, "-m", "pip", "install", "--no-index", wheel)
        self.site_packages = site_packages

    def run(self, *command):
        return run(command, cwd=self.folder, env=self.environment)


@pytest.fixture(scope="module")
def installed(dist, tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"), dist.wheel)


def test_the_wheel_brings_its_own_modules_and_finds_no_compiler(installed):
    code = (
        "import shutil, stea_fast, stea_fast._core as core; print(stea_fast.__file__); print(core.__file__);"
        "print([name for name in ('cc', 'c++', 'gcc', 'g++', 'clang', 'nvcc') if shutil.which(name)])"
    )
    package, core, compilers = installed.run(installed.python, "-c", code).splitlines()
    assert Path(package).parent == Path(core).parent == installed.site_packages / "stea_fast"
    assert compilers == "[]"


def test_the_first_example_of_the_readme_runs_where_the_wheel_is_installed(installed):
    first = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert first is not None
    (installed.folder / "example.py").write_text(first.group(1), encoding="utf-8")
    assert installed.run(installed.python, "example.py").strip()


def test_the_command_says_that_the_native_backend_is_used(installed):
    facts = json.loads(installed.run(installed.python.with_name("stea-fast"), "info", "--json"))
    assert facts["stea_fast"] == stea_fast.__version__
    assert facts["backends"]["native"]["usable"]
    assert facts["automatic"] == "native"
    assert facts["torch"] == "not installed"  # the environment is as empty as it claims
