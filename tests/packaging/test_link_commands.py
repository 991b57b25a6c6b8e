"""What the extension modules are linked with, as the build asks the compiler for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ASK = """
import setuptools
import json, distutils.core, build_cuda
from setuptools.command import build_ext

class Compiler:
    libraries = ["stea_tier_baseline", "stea_int8_tier_avx2", "m"]  # what build_clib has made, and another
    def set_libraries(self, names):
        self.libraries = names

linked = {}
build_ext.build_ext.build_extension = lambda self, ext: linked.update({ext.name: self.compiler.libraries})
build_cuda.compile_objects = lambda toolkit: []
distribution = distutils.core.run_setup("setup.py", ["build_ext"], stop_after="commandline")
command = distribution.get_command_obj("build_ext")
command.compiler = Compiler()
for extension in distribution.ext_modules:
    command.build_extension(extension)
print(json.dumps([linked, command.compiler.libraries]))
"""


def test_only_the_module_of_the_cpu_is_linked_with_the_tiers():
    pytest.importorskip("pybind11", reason="the build asks pybind11 for its extensions")
    done = subprocess.run([sys.executable, "-c", ASK], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    linked, afterwards = json.loads(done.stdout.splitlines()[-1])
    every = ["stea_tier_baseline", "stea_int8_tier_avx2", "m"]
    assert linked.pop("stea_fast._core") == every and afterwards == every
    if sys.platform == "linux":
        assert "stea_fast._cuda_jit" in linked
    assert all(libraries == ["m"] for libraries in linked.values())
