"""The structure of the code, kept by tests instead of good will."""

from __future__ import annotations

import ast
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "stea_fast"

# A stage never imports another stage: they exchange the records of these modules ...
FOUNDATION = {
    "types", "sealed", "graph", "names", "_arrays", "_validate", "_memory", "_progress", "_backends", "_topk",
    "_splits", "_files", "_formats", "_ids", "_atomic", "_foreign", "pairset",
}  # fmt: skip
STAGES = {
    "io",
    "reading",
    "synthetic",
    "beliefs",
    "calibrate",
    "relations",
    "posterior",
    "select",
    "evaluation",
    "explain",
    "search",
    "decoding",
}
# ... and only these know their order.
COMPOSERS = {
    "alignment",
    "confidence",
    "demo",
    "selftrain",
    "auditing",
    "joint",
    "monitor",
    "oracle",
    "quality",
    "checkpoint",
    "refinement",
    "device_refinement",
    "refiner",
    "rounds",
    "schedule",
    "sides",
    "options",
    "cli",
    "__init__",
    "__main__",
}
# The log-sum-exp of the calibration normalises the posterior as well.
ALLOWED = {("posterior", "calibrate")}


def imports_of(path):
    """Modules of the package that a file imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "stea_fast":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("stea_fast."):
            found.add(node.module.split(".")[1])
    return found


def test_every_module_has_a_place():
    modules = {path.stem for path in PACKAGE.glob("*.py")}
    assert modules - FOUNDATION - STAGES - COMPOSERS == set()


@pytest.mark.parametrize("stage", sorted(STAGES))
def test_a_stage_imports_no_other_stage(stage):
    others = (imports_of(PACKAGE / f"{stage}.py") & (STAGES | COMPOSERS)) - {stage, "__init__"}
    assert {(stage, other) for other in others} <= ALLOWED


@pytest.mark.parametrize("module", sorted(FOUNDATION - {"_backends", "_topk"}))
def test_the_foundation_knows_no_stage(module):
    assert imports_of(PACKAGE / f"{module}.py") & (STAGES | COMPOSERS) == set()


@pytest.mark.parametrize("backend", sorted(path.name for path in (PACKAGE / "_backends").glob("*.py")))
def test_backends_know_no_stage(backend):
    assert imports_of(PACKAGE / "_backends" / backend) & (STAGES | COMPOSERS) == set()


@pytest.mark.parametrize("folder", ["_topk", "_device", "encoders", "formats"])
def test_engines_device_code_encoders_and_formats_know_no_stage(folder):
    for path in (PACKAGE / folder).glob("*.py"):
        assert imports_of(path) & (STAGES | COMPOSERS) == set(), path


def test_only_evaluation_the_audit_and_the_oracle_open_test_links():
    """Compare, shuffle, and cheat openly."""
    sealing = {path.stem for path in PACKAGE.rglob("*.py") if re.search(r"\breveal\b|\._links\b", read(path))}
    assert sealing == {"sealed", "evaluation", "auditing", "oracle"}


def test_only_what_makes_or_judges_test_links_names_them():
    named = {path.stem for path in PACKAGE.rglob("*.py") if re.search(r"\.test\b|pair\.links", read(path))}
    # io and synthetic make them, types holds them; quality and monitor pass them on to evaluate unopened
    assert named <= {"io", "synthetic", "types", "quality", "monitor", "evaluation", "auditing", "oracle"}


def read(path):
    return path.read_text(encoding="utf-8")


def includes(path):
    return re.findall(r'#include\s+[<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"))


def test_kernels_know_no_python():
    for path in (ROOT / "csrc" / "kernels").rglob("*.*"):
        assert not any("pybind" in name or "Python.h" in name or "bindings" in name for name in includes(path)), path


def test_tier_code_includes_no_library_container():
    """Weak symbols of containers would be shared between tiers, and the baseline would run AVX code."""
    allowed = {"cmath", "cstdint", "emmintrin.h", "immintrin.h", "tier.h"}
    allowed |= {"neighborhood.inl", "blanket.inl", "evidence.inl", "proposals.inl", "relation_counts.inl", "topk.inl"}
    for path in (ROOT / "csrc" / "kernels" / "cpu").glob("*.inl"):
        assert set(includes(path)) <= allowed, path


def test_tiers_share_no_symbol(tmp_path):
    compiler = shutil.which("c++")
    if compiler is None or shutil.which("nm") is None or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs a C++ compiler and nm on x86-64")
    defined = []
    for tier, flags in (("baseline", []), ("avx2", ["-mavx2", "-mbmi", "-mbmi2"])):
        source, target = ROOT / "csrc" / "kernels" / "cpu" / f"tier_{tier}.cpp", tmp_path / f"{tier}.o"
        subprocess.run([compiler, "-std=c++17", "-O2", "-w", *flags, "-c", source, "-o", target], check=True)
        listing = subprocess.run(["nm", "--defined-only", "-g", target], capture_output=True, text=True, check=True)
        defined.append({line.split()[-1] for line in listing.stdout.splitlines()})
    assert all(defined)
    assert set.intersection(*defined) == set()


def test_files_and_functions_are_short_enough_to_read():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "csrc").rglob("*.*"), *(ROOT / "tests").glob("*.py")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 350, path
        if path.suffix != ".py" or path.parent.name == "tests":
            continue
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef):
                start = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.body[0].lineno
                assert (node.end_lineno or 0) - start < 60, f"{path}: {node.name}"


def test_importing_the_package_imports_no_other():
    code = "import sys, stea_fast; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'stea_fast'" in loaded
    for name in ("numpy", "scipy", "numba", "torch", "faiss"):
        assert f"'{name}'" not in loaded


def test_refining_imports_neither_torch_nor_faiss():
    code = (
        "import sys, stea_fast as sf; from stea_fast import demo; p = sf.synthetic_pair(50);"
        "sf.refine(demo.candidates(p), p.kg1, p.kg2, seeds=p.train);"
        "assert not {'torch', 'faiss', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_all_public_names_exist():
    import stea_fast

    assert set(stea_fast._HOME) == set(stea_fast.__all__) - {"__version__"}
    for name in stea_fast.__all__:
        assert getattr(stea_fast, name) is not None
        assert not (PACKAGE / f"{name}.py").exists()  # importing that module would replace the public name
    with pytest.raises(AttributeError, match="nonsense"):
        _ = stea_fast.nonsense
