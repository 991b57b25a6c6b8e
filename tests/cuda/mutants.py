"""Seeded defects: what each changes in the kernels, and the mode of the harness that must notice."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """Replace `old` by `new` in one file of csrc/kernels/cuda."""

    name: str
    file: str
    old: str
    new: str
    mode: str  # of the harness
    symptom: str = ""  # part of the report; empty: the results differ, or some report comes

    def write_to(self, csrc: Path, folder: Path) -> None:
        """A copy of the sources with the defect."""
        shutil.copytree(csrc / "kernels", folder / "kernels", ignore=shutil.ignore_patterns("cpu"))
        path = folder / "kernels" / "cuda" / self.file
        text = path.read_text(encoding="utf-8")
        assert text.count(self.old) == 1, (
            f"{self.name}: {self.file} has {text.count(self.old)} places like {self.old!r}"
        )
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


RACE = "ThreadSanitizer: data race"
CLEAR = "slots[at] = kFree;\n    __syncthreads();"
FILE = "threadIdx.x, blockDim.x);\n    __syncthreads();\n    const int64_t k"

MUTANTS = [
    Mutant("no_barrier_after_clearing", "evidence.cu", CLEAR, "slots[at] = kFree;", "tsan", RACE),
    Mutant("no_barrier_after_filing", "evidence.cu", FILE, FILE.replace("__syncthreads();", ""), "tsan", RACE),
    Mutant("no_barrier_in_reduction", "warp.cuh", "    __syncthreads();\n    double total", "    double total", "tsan", RACE),
    Mutant(
        "no_barrier_between_the_sums", "evidence.cu", "    __syncthreads();  // all have read", "    // all have read", "tsan",
        RACE,
    ),
    Mutant(
        "plain_sum_for_atomic", "relation_counts.cu",
        "atomicAdd(&args.den[statement.relation], rounded_term(unmatched, args.scale));",
        "args.den[statement.relation] += rounded_term(unmatched, args.scale);", "tsan", RACE,
    ),
    Mutant(
        "blocks_race_for_a_place", "evidence.cu", "hubs[atomicAdd(&totals->hubs, Slot{1})]", "hubs[totals->hubs++]",
        "tsan", RACE,
    ),
    Mutant(
        "plain_maximum_for_atomic", "belief_table.cuh", "const Slot before = atomicMax(&slots[at], carried);",
        "const Slot before = slots[at];\n            if (before < carried) slots[at] = carried;", "tsan", RACE,
    ),
    Mutant(
        "every_lane_claims_a_hub", "evidence.cu", "if (lane_id() != 0) return;\n    row_nodes", "row_nodes", "tsan", RACE,
    ),
    Mutant(
        "reads_an_edge_too_many", "evidence.cu", "j < candidate.size; j += stride", "j <= candidate.size; j += stride",
        "asan", "AddressSanitizer",
    ),
    Mutant(
        "clears_a_slot_too_many", "evidence.cu", "at <= table.mask; at += blockDim.x",
        "at <= table.mask + 1; at += blockDim.x", "asan", "AddressSanitizer",
    ),
    Mutant(
        "searches_beyond_the_row", "evidence.cu", "edge < end && edge->neighbor == target_in(slot)",
        "edge <= end && edge->neighbor >= target_in(slot)", "asan", "AddressSanitizer",
    ),
    Mutant(
        "follows_a_run_beyond_the_row", "evidence.cu", "while (end < edges.size &&", "while (end <= edges.size &&", "asan",
        "AddressSanitizer",
    ),
    Mutant(
        "misaligned_shared_memory", "evidence.cu", "block_sum(tally.sum, partial);",
        "block_sum(tally.sum, reinterpret_cast<double*>(reinterpret_cast<char*>(partial) + 4));", "asan",
        "runtime error: store to misaligned address",
    ),
    Mutant(
        "ballot_in_a_divergent_branch", "relation_counts.cu", "if (lane_id() == 0 && term > 0) {",
        "if (lane_id() == 0 && term > 0 && __ballot_sync(kAllLanes, true) != 0) {", "plain", "divergent warp",
    ),
    Mutant(
        "early_return_before_a_barrier", "evidence.cu", CLEAR,
        CLEAR.replace("__sync", "if (threadIdx.x >= edges.size) return;\n    __sync"), "plain", "left the kernel before",
    ),
    Mutant(
        "barrier_in_a_divergent_branch", "evidence.cu", CLEAR,
        CLEAR.replace("__sync", "if (warp_in_block() == 0) __syncthreads();\n    __sync"), "plain", "divergent barrier",
    ),
    Mutant(
        "lanes_leave_before_a_shuffle", "mutual_best.cu", "if (row >= ranking.rows) return;",
        "if (row >= ranking.rows || lane_id() >= ranking.k) return;", "plain", "named in the mask",
    ),
    Mutant(
        "half_a_warp_waits_for_ever", "evidence.cu", CLEAR,
        CLEAR.replace("__sync", "if (lane_id() < 16) __syncwarp(kAllLanes);\n    __sync"), "plain", "deadlock",
    ),
    Mutant(
        "mask_without_the_caller", "warp.cuh", "value *= __shfl_xor_sync(kAllLanes", "value *= __shfl_xor_sync(0xffffu",
        "plain", "not in the mask",
    ),
    Mutant(
        "reduces_a_quarter_of_the_warp", "warp.cuh", "kWarp / 2; distance > 0; distance /= 2) value *=",
        "kWarp / 8; distance > 0; distance /= 2) value *=", "plain", "",
    ),
    Mutant("packs_too_tightly", "belief_table.cuh", "+ 1u) << 32) | edge", "+ 1u) << 24) | edge", "plain"),
    Mutant("last_of_equals_wins", "mutual_best.cu", "place < other.place", "place > other.place", "plain", ""),
    Mutant("totals_never_zeroed", "evidence.cu", "    totals.clear();\n", "", "plain", ""),
    Mutant(
        "hubs_are_forgotten", "evidence.cu", "if (found.hubs > 0) run_hubs", "if (found.hubs > 9999) run_hubs", "plain", "",
    ),
    Mutant(
        "every_statement_of_the_candidate_is_a_witness", "evidence.cu",
        "is_first_of_run(row, fact) && is_first_of_run(candidate, target_fact)", "is_first_of_run(row, fact)", "plain",
    ),
    Mutant(
        "takes_two_statements_of_a_run", "evidence.cu", "while (end < edges.size &&", "if (end < edges.size &&", "plain",
    ),
    Mutant("adds_up_a_run", "evidence.cu", "strongest = fmax(strongest, ", "strongest = (strongest + ", "plain"),
]  # fmt: skip
