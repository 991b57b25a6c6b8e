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
    mode: str  # of the harness; "host": the checks of failing calls
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
TOUCHED = "device memory was touched"
EVIDENCE, MEETINGS, WARP, COUNTS, MUTUAL, DEVICE = (
    "evidence.cu",
    "meetings.cuh",
    "warp.cuh",
    "relation_counts.cu",
    "mutual_best.cu",
    "device.cu",
)
SIDES = "    space.sides[lane_id()] = mine;"

MUTANTS = [
    Mutant("no_order_before_taking", MEETINGS, "        __syncwarp(kAllLanes);  // they have", "        // they have", "tsan", RACE),
    Mutant("no_order_after_taking", MEETINGS, "        __syncwarp(kAllLanes);  // and read", "        // and read", "tsan", RACE),
    Mutant(
        "warps_share_a_workspace", EVIDENCE, "spaces[warp_in_block()]", "spaces[0]", "tsan", RACE,
    ),
    Mutant(
        "lanes_claim_one_place", MEETINGS, "__popc(lanes & lanes_before())", "__popc(lanes & (lanes_before() >> 1))", "tsan",
        RACE,
    ),
    Mutant(
        "plain_sum_for_atomic", COUNTS,
        "atomicAdd(&args.den[statement.relation], rounded_term(unmatched, args.scale));",
        "args.den[statement.relation] += rounded_term(unmatched, args.scale);", "tsan", RACE,
    ),
    Mutant(
        "every_lane_writes_the_first_pair", EVIDENCE, "args.evidence[first + lane_id()] = ", "args.evidence[first] = ", "tsan",
        RACE,
    ),
    Mutant(
        "reads_a_pair_too_many", EVIDENCE, "pair < args.num_pairs ? rows", "pair <= args.num_pairs ? rows", "asan",
        "AddressSanitizer",
    ),
    Mutant(
        "writes_a_pair_too_many", EVIDENCE, "if (first + lane_id() >= args.num_pairs) return;",
        "if (first + lane_id() > args.num_pairs) return;", "asan", "AddressSanitizer",
    ),
    Mutant("notes_edges_beyond_the_last", EVIDENCE, "        if (first + lane_id() >= all) continue;\n", "", "asan"),
    Mutant(
        "follows_a_run_beyond_the_row", EVIDENCE, "j < sides.target.size; ++j", "j <= sides.target.size; ++j", "asan",
        "AddressSanitizer",
    ),
    Mutant("too_little_shared_memory", EVIDENCE, "warps * sizeof(Workspace)", "(warps - 1) * sizeof(Workspace)", "asan", "AddressSanitizer"),
    Mutant(
        "ballot_in_a_divergent_branch", COUNTS, "if (lane_id() == 0 && term > 0) {",
        "if (lane_id() == 0 && term > 0 && __ballot_sync(kAllLanes, true) != 0) {", "plain", "divergent warp",
    ),
    Mutant(
        "lanes_without_a_pair_leave", EVIDENCE, "    MeetingQueue queue(space.ring);",
        "    if (first + lane_id() >= args.num_pairs) return;\n    MeetingQueue queue(space.ring);", "plain", "named in the mask",
    ),
    Mutant(
        "barrier_in_a_divergent_branch", EVIDENCE, SIDES, SIDES + "\n    if (lane_id() == 0) __syncthreads();", "plain", "",
    ),
    Mutant(
        "lanes_leave_before_a_shuffle", MUTUAL, "if (row >= ranking.rows) return;",
        "if (row >= ranking.rows || lane_id() >= ranking.k) return;", "plain", "named in the mask",
    ),
    Mutant(
        "half_a_warp_waits_for_ever", EVIDENCE, SIDES, SIDES + "\n    if (lane_id() < 16) __syncwarp(kAllLanes);", "plain", "",
    ),
    Mutant(
        "mask_without_the_caller", WARP, "value *= __shfl_xor_sync(kAllLanes", "value *= __shfl_xor_sync(0xffffu",
        "plain", "not in the mask",
    ),
    Mutant(
        "reduces_a_quarter_of_the_warp", WARP, "kWarp / 2; distance > 0; distance /= 2) value *=",
        "kWarp / 8; distance > 0; distance /= 2) value *=", "plain", "",
    ),
    Mutant("prefix_without_the_farthest", WARP, "distance < kWarp; distance *= 2", "distance < kWarp / 2; distance *= 2", "plain"),
    Mutant("last_of_equals_wins", MUTUAL, "place < other.place", "place > other.place", "plain", ""),
    Mutant("queue_is_never_emptied", EVIDENCE, "if (queue.size() > 0) tally", "if (queue.size() > 31) tally", "plain"),
    Mutant("queue_overflows", EVIDENCE, "if (queue.size() >= kWarp) tally", "if (queue.size() >= 3 * kWarp) tally", "plain"),
    Mutant("every_edge_of_a_run_is_walked", EVIDENCE, "if (!walked.is_first_of_run(place.edge)) return;", "", "plain"),
    Mutant("takes_one_statement_of_a_run", EVIDENCE, "i < sides.source.size && sides", "i <= edge && sides", "plain"),
    Mutant("adds_up_a_run", EVIDENCE, "strongest = fmaxf(strongest, share);", "strongest += share;", "plain"),
    Mutant("believers_for_beliefs", EVIDENCE, "sides.walks_source() ? args.beliefs : args.believers;", "sides.walks_source() ? args.believers : args.beliefs;", "asan"),
    Mutant("sides_are_exchanged", EVIDENCE, "edge = by_source ? meeting.edge : place, target_edge = by_source ? place : meeting.edge;", "edge = by_source ? place : meeting.edge, target_edge = by_source ? meeting.edge : place;", "asan"),
    Mutant("first_row_is_ignored", EVIDENCE, "edges_of(args.source, args.rows.begin + row)", "edges_of(args.source, row)", "plain"),
    Mutant("the_clamp_is_forgotten", EVIDENCE, "static_cast<float>(kMinFactor)", "1e-30f", "plain"),
    Mutant("filter_is_used_before_it_is_filled", EVIDENCE, "    }\n    __syncwarp(kAllLanes);\n}", "    }\n}", "tsan", RACE),
    Mutant("no_order_after_the_sides", EVIDENCE, "    __syncwarp(kAllLanes);\n    const int32_t ends = warp_inclusive_sum(fits", "    const int32_t ends = warp_inclusive_sum(fits", "tsan", RACE),
    Mutant("filter_is_written_without_an_atomic", MEETINGS, "atomicOr(&words[place >> 29], 1u << (place >> 24 & 31));", "words[place >> 29] |= 1u << (place >> 24 & 31);", "tsan", RACE),
    Mutant("filter_knows_no_hub", EVIDENCE, "set_all(!fits)", "set_all(false)", "plain"),
    Mutant("filter_asks_for_another_bit", MEETINGS, "(words[place >> 29] >> (place >> 24 & 31)", "(words[place >> 29] >> (place >> 23 & 31)", "plain"),
    Mutant("rows_have_at_most_32_candidates", EVIDENCE, "pair / rows.k : row", "pair / (rows.k < kWarp ? rows.k : kWarp) : row", "plain"),
    Mutant("edges_beyond_64_are_forgotten", EVIDENCE, "edge = item - (pair == 0 ? 0 : before);", "edge = (item - (pair == 0 ? 0 : before)) % 64;", "plain"),
    # The host side.
    Mutant(
        "host_reads_device_memory", EVIDENCE, "    if (args.num_pairs == 0) return;",
        "    if (args.num_pairs == 0 || args.candidates.indices[0] < -1) return;", "plain", TOUCHED,
    ),
    Mutant(
        "guard_sets_no_device", DEVICE, '    if (former_ != device) check(cudaSetDevice(device), "cudaSetDevice");\n', "    (void)device;\n",
        "plain", TOUCHED,
    ),
    Mutant(
        "guard_does_not_restore", DEVICE, "now != former_) (void)cudaSetDevice(former_);", "now != former_) return;", "plain",
        "not current again",
    ),
    Mutant("launch_on_the_legacy_stream", MUTUAL, "block_size, 0, stream, args);", "block_size, 0, nullptr, args);", "plain", "another stream"),
    Mutant("counts_on_the_legacy_stream", COUNTS, "block_size, 0, as_stream(stream), args", "block_size, 0, as_stream((void(stream), nullptr)), args", "plain", "another stream"),
    Mutant("no_blocks", EVIDENCE, "(args.num_pairs + pairs - 1) / pairs", "args.num_pairs / (1000 * pairs)", "plain", "cudaErrorInvalidConfiguration"),
    Mutant("launch_is_not_checked", MUTUAL, '    check_launch("mutual_best: returned_choices");\n', "", "host"),
    Mutant("an_illegal_address_is_forgiven", DEVICE, "        case 700:  // illegal address\n", "", "host"),
    Mutant("a_failed_assertion_is_forgiven", DEVICE, "        case 710:  // device assertion\n", "", "host"),
    Mutant("every_error_is_final", DEVICE, "        default:\n            return false;", "        default:\n            return true;", "host"),
    Mutant("a_destroyed_context_is_used_again", DEVICE, "    refuse_destroyed_context();\n", "    (void)&refuse_destroyed_context;\n", "host"),
    Mutant("earlier_errors_are_overlooked", DEVICE, '    check(cudaGetLastError(), "work before this call");\n', "", "host"),
    Mutant("a_question_makes_a_context", DEVICE, "    cudaDeviceProp properties;\n", "    cudaDeviceProp properties;\n    (void)cudaSetDevice(device);\n", "host"),
]  # fmt: skip
