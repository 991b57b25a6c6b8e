"""The structure of the code, kept by tests instead of good will."""

from __future__ import annotations

import ast
import platform
import re
import shutil
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "stea_fast"

# A room imports only itself and the rooms before it; `__init__` and `__main__` are the front door to all of them.
ROOMS = (
    "_util", "_executors", "types", "formats", "data", "_backends", "values", "search", "clues", "encoders",
    "refinement", "evaluation", "selftraining", "alignment", "cli",
)  # fmt: skip
FRONT_DOOR = {"__init__", "__main__"}
COMPILED = {
    "_core",
    "_cuda",
    "_cuda_jit",
}  # their Python side is `_backends`, the search's engines and the encoders' kernels


def room_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(path):
    """Rooms of the package that a file imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(read(path))):
        if isinstance(node, ast.ImportFrom) and node.module == "stea_fast":
            found |= {alias.name for alias in node.names} - {"__version__"}
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            found |= {module.split(".")[1] for module in modules if module.startswith("stea_fast.")}
    return found - COMPILED


def test_every_file_is_in_a_room():
    assert {room_of(path) for path in PACKAGE.rglob("*.py")} == {*ROOMS, *FRONT_DOOR}
    assert len([path for path in PACKAGE.iterdir() if path.suffix != ".so" and path.name != "__pycache__"]) <= 20


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_lower_rooms(room):
    allowed = set(ROOMS[: ROOMS.index(room) + 1])
    for path in PACKAGE.rglob("*.py"):
        if room_of(path) == room:
            assert imports_of(path) <= allowed, f"{path}: {imports_of(path) - allowed}"


def test_no_two_modules_import_each_other():
    """Not even through others, for a type only, or inside a function: what is made never needs its maker."""
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {}
    for module, path in modules.items():
        found = [node for node in ast.walk(ast.parse(read(path))) if isinstance(node, ast.ImportFrom)]
        imported = {(node.module or "", alias.name) for node in found for alias in node.names}
        full = {f"{source}.{name}" if f"{source}.{name}" in modules else source for source, name in imported}
        graph[module] = full & set(modules) - {"stea_fast", module}
    assert len(graph["stea_fast.alignment.api"]) > 5
    del graph["stea_fast"]  # the front door, which names everything and imports it when asked
    list(TopologicalSorter(graph).static_order())  # raises CycleError


def test_only_evaluation_opens_test_links():
    """Compare, shuffle, and cheat openly: all of it in one room."""
    opening = {room_of(path) for path in PACKAGE.rglob("*.py") if re.search(r"\breveal\b|\._links\b", read(path))}
    assert opening == {"data", "evaluation"}
    assert [path.stem for path in (PACKAGE / "data").glob("*.py") if re.search(r"\breveal\b", read(path))] == ["sealed"]


def test_only_what_makes_or_judges_test_links_names_them():
    named = {room_of(path) for path in PACKAGE.rglob("*.py") if re.search(r"\.test\b|pair\.links", read(path))}
    assert named <= {"data", "evaluation"}


def read(path):
    return path.read_text(encoding="utf-8")


def includes(path):
    return re.findall(r'#include\s+[<"]([^>"]+)[>"]', path.read_text(encoding="utf-8"))


def test_kernels_know_no_python():
    for path in (ROOT / "csrc" / "kernels").rglob("*.*"):
        assert not any("pybind" in name or "Python.h" in name or "bindings" in name for name in includes(path)), path


def test_tier_code_includes_no_library_container():
    """Weak symbols of containers would be shared between tiers, and the baseline would run AVX code."""
    allowed = {"cmath", "cstdint", "emmintrin.h", "immintrin.h", "lanes.h", "tier.h"}
    allowed |= {"neighborhood.inl", "vectors.inl", "blanket.inl", "evidence.inl", "proposal_visits.inl"}
    allowed |= {"proposals.inl", "relation_counts.inl"}
    allowed |= {
        "dense_product.inl",
        "dropout.inl",
        "negatives.inl",
        "reflection.inl",
        "sparse_rows.inl",
        "topk.inl",
        "triple_view.inl",
    }
    allowed |= {"byte_products.inl", "int8_lanes.inl", "int8_search.inl", "int8_tier.h"}
    for path in (ROOT / "csrc" / "kernels" / "cpu").glob("*.inl"):
        assert set(includes(path)) <= allowed, path


def test_tiers_share_no_symbol(tmp_path):
    compiler = shutil.which("c++")
    if compiler is None or shutil.which("nm") is None or platform.machine() not in ("x86_64", "AMD64"):
        pytest.skip("needs a C++ compiler and nm on x86-64")
    defined = []
    tiers = {
        "tier_baseline": [], "tier_avx2": ["-mavx2", "-mbmi", "-mbmi2"],
        "int8_tier_baseline": [], "int8_tier_avx2": ["-mavx2"], "int8_tier_avxvnni": ["-mavx2", "-mavxvnni"],
        "int8_tier_avx512vnni": ["-mavx512f", "-mavx512vnni"],
    }  # fmt: skip
    for tier, flags in tiers.items():
        source, target = ROOT / "csrc" / "kernels" / "cpu" / f"{tier}.cpp", tmp_path / f"{tier}.o"
        subprocess.run([compiler, "-std=c++17", "-O2", "-w", *flags, "-c", source, "-o", target], check=True)
        listing = subprocess.run(["nm", "--defined-only", "-g", target], capture_output=True, text=True, check=True)
        defined.append({line.split()[-1] for line in listing.stdout.splitlines()})
    assert all(defined)
    assert len(set.union(*defined)) == sum(map(len, defined))


def test_files_and_functions_are_short_enough_to_read():
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "csrc").rglob("*.*"), *(ROOT / "tests").rglob("*.py")]:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 350, path
        if path.suffix != ".py" or ROOT / "tests" in path.parents:
            continue
        for node in ast.walk(ast.parse("\n".join(lines))):
            if isinstance(node, ast.FunctionDef):
                start = node.body[1].lineno if ast.get_docstring(node) and len(node.body) > 1 else node.body[0].lineno
                assert (node.end_lineno or 0) - start < 50, f"{path}: {node.name}"


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
        assert not (PACKAGE / name).exists()  # importing that module would replace the public name
        assert not (PACKAGE / f"{name}.py").exists()
    with pytest.raises(AttributeError, match="nonsense"):
        _ = stea_fast.nonsense
