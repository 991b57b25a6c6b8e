"""Instructions of the PTX interpreter that work on bits and predicates, executed one by one."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

pytestmark = pytest.mark.slow  # builds the interpreter
HEADER = ".version 8.0\n.target sm_75\n.address_size 64\n"
MOST = 0xFFFFFFFF


def computed(builder, instruction, *operands):
    """The result of the instruction for these operands."""
    return written(builder, f"{instruction} %r1, {', '.join(str(operand) for operand in operands)};")


def written(builder, body):
    """What a kernel of one thread writes: %r1 behind these instructions."""
    driver = ctypes.CDLL(str(builder.driver()))
    text = (
        f"{HEADER}.visible .entry one(.param .u64 one_param_0)\n{{\n.reg .pred %p<3>;\n.reg .b32 %r<2>;\n"
        f".reg .b64 %rd<3>;\nld.param.u64 %rd1, [one_param_0];\ncvta.to.global.u64 %rd2, %rd1;\n{body}\n"
        "st.global.u32 [%rd2], %r1;\nret;\n}\n"
    )
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    assert driver.cuModuleLoadData(ctypes.byref(module), text.encode()) == 0
    assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"one") == 0
    out = np.zeros(1, np.uint32)
    address = ctypes.c_uint64(out.ctypes.data)
    parameters = (ctypes.c_void_p * 1)(ctypes.addressof(address))
    assert driver.cuLaunchKernel(function, *[1] * 6, 0, None, parameters, None) == 0
    return int(out[0])


@pytest.mark.parametrize(
    ("field", "base", "begin", "length", "wanted"),
    [
        (0b101, 0, 0, 3, 0b101),
        (0b101, MOST, 4, 3, 0xFFFFFFDF),  # what stands there is replaced
        (MOST, 0, 8, 8, 0xFF00),  # only the lowest bits of the field
        (MOST, 0x12345678, 28, 8, 0xF2345678),  # what does not fit is lost
        (MOST, 0x12345678, 32, 4, 0x12345678),
        (MOST, 0x12345678, 4, 0, 0x12345678),
        (0x89ABCDEF, 0x12345678, 0, 32, 0x89ABCDEF),
    ],
)
def test_bits_are_inserted(builder, field, base, begin, length, wanted):
    assert computed(builder, "bfi.b32", field, base, begin, length) == wanted


def test_what_is_inserted_is_extracted_again(builder):
    whole = computed(builder, "bfi.b32", 0x2A, 0x55555555, 9, 6)
    assert computed(builder, "bfe.u32", whole, 9, 6) == 0x2A


@pytest.mark.parametrize(("value", "wanted"), [(-1, 2), (1, 2), (0, 1)])
def test_a_predicate_that_is_written_as_a_number_can_be_negated(builder, value, wanted):
    assert written(builder, f"mov.pred %p1, {value};\nnot.pred %p2, %p1;\nselp.b32 %r1, 1, 2, %p2;") == wanted
