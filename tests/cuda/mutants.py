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
EVIDENCE, MEETINGS, FILED, FACTORS, SEARCH, WARP, COUNTS, MUTUAL, DEVICE = (
    "evidence.cu",
    "meetings.cuh",
    "filed_beliefs.cuh",
    "factors.cuh",
    "search.cuh",
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
        "every_lane_writes_the_first_pair", EVIDENCE, "args.evidence[pair] = ", "args.evidence[first] = ", "tsan",
        RACE,
    ),
    Mutant(
        "reads_a_pair_too_many", EVIDENCE, "if (pair >= args.num_pairs) return -1;", "if (pair > args.num_pairs) return -1;", "asan",
        "AddressSanitizer",
    ),
    Mutant(
        "writes_a_pair_too_many", EVIDENCE, "if (pair >= args.num_pairs) return;",
        "if (pair > args.num_pairs) return;", "asan", "AddressSanitizer",
    ),
    Mutant("notes_edges_beyond_the_last", EVIDENCE, "        if (first + lane_id() >= all) continue;\n", "", "asan"),
    Mutant(
        "follows_a_run_beyond_the_row", EVIDENCE, "sides.target.begin + sides.target.size;", "sides.target.begin + sides.target.size + 1;", "asan",
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
    Mutant("queue_overflows", EVIDENCE, "if (queue.size() >= kWarp)", "if (queue.size() >= 3 * kWarp)", "plain"),
    Mutant("every_edge_of_a_run_is_walked", EVIDENCE, "if (!walked.is_first_of_run(place.number)) return;", "", "plain"),
    Mutant("takes_one_statement_of_a_run", EVIDENCE, "goes_on = fact != end && fact->neighbor == neighbor;", "goes_on = fact != end && neighbor < 0;", "plain"),
    Mutant("adds_up_a_run", EVIDENCE, "all.take_smaller(factors);", "all.multiply(factors);", "plain"),
    Mutant("believers_for_beliefs", EVIDENCE, "by_source ? args.beliefs : args.believers;", "by_source ? args.believers : args.beliefs;", "asan"),
    Mutant("sides_are_exchanged", EVIDENCE, "by_source ? place.number : ~wanted, by_source ? ~wanted : place.number", "by_source ? ~wanted : place.number, by_source ? place.number : ~wanted", "asan"),
    Mutant("first_row_is_ignored", EVIDENCE, "edges_of(args.source, args.rows.begin + row)", "edges_of(args.source, row)", "plain"),
    Mutant("the_clamp_is_forgotten", FACTORS, "static_cast<float>(kMinFactor)", "1e-30f", "plain"),
    Mutant("filter_is_used_before_it_is_filled", EVIDENCE, "    }\n    __syncwarp(kAllLanes);\n}", "    }\n}", "tsan", RACE),
    Mutant("filter_is_filled_before_it_is_empty", EVIDENCE, "    __syncwarp(kAllLanes);\n    const int32_t ends = warp_inclusive_sum(fits", "    const int32_t ends = warp_inclusive_sum(fits", "tsan", RACE),
    Mutant("filters_come_while_the_table_is_read", EVIDENCE, "    __syncwarp(kAllLanes);  // nobody reads the table", "    // nobody reads the table", "tsan", RACE),
    Mutant("table_is_cleared_while_it_is_read", FILED, "        __syncwarp(kAllLanes);  // nobody reads what", "        // nobody reads what", "tsan", RACE),
    Mutant("table_is_filled_before_it_is_empty", FILED, "heads_[i] = kNone;\n        __syncwarp(kAllLanes);\n", "heads_[i] = kNone;\n", "tsan", RACE),
    Mutant("heads_are_written_while_they_are_read", FILED, "        __syncwarp(kAllLanes);  // the heads", "        // the heads", "tsan", RACE),
    Mutant("table_is_read_before_it_is_written", FILED, "        }\n        __syncwarp(kAllLanes);\n", "        }\n", "tsan", RACE),
    Mutant("lists_know_no_lanes_of_the_same_bucket", FILED, "belief.next = earlier != 0", "belief.next = earlier == ~0u", "plain"),
    Mutant("first_lane_of_a_bucket_heads_the_list", FILED, "if (same >> lane_id() == 1u)", "if (earlier == 0)", "plain"),
    Mutant("one_belief_too_many_is_filed", EVIDENCE, "filed + lane_id() < kFiledPlaces", "filed + lane_id() <= kFiledPlaces", "asan"),
    Mutant("half_a_row_is_taken_for_filed", EVIDENCE, "__ffs(static_cast<int>(too_many)) - 1);", "__ffs(static_cast<int>(too_many)) - 1) + 1;", "plain"),
    Mutant("rows_without_room_are_forgotten", EVIDENCE, "            is_left |= is_filed;\n", "", "plain"),
    Mutant("large_rows_are_forgotten", EVIDENCE, "bool is_left = !is_small ||", "bool is_left = is_small &&", "plain"),
    Mutant("beliefs_of_another_row_meet", FILED, "static_cast<unsigned>(row) * kRowStep)", "static_cast<unsigned>(row / kWarp))", "plain"),
    Mutant("any_belief_of_a_bucket_meets", EVIDENCE, "meets = belief.target == wanted;", "meets = true;", "plain"),
    Mutant("every_edge_of_a_target_is_looked_up", EVIDENCE, "all && target.is_first_of_run(place.number)", "all", "plain"),
    Mutant("every_edge_of_a_row_is_filed", EVIDENCE, "all && source.is_first_of_run(place.number)", "all", "plain"),
    Mutant("neighbours_that_are_not_found_meet", EVIDENCE, "span.begin[place].neighbor == ~edge ? place : -1", "true ? place : -1", "plain"),
    Mutant("small_evidence_loses_its_digits", FACTORS, "missing < 0.5f ?", "missing < 0.0f ?", "plain"),
    Mutant("large_evidence_leaves_the_series", FACTORS, "missing < 0.5f ?", "missing < 2.0f ?", "plain"),
    Mutant("products_underflow", EVIDENCE, "if (all.product < kLeastProduct)", "if (all.product < 0.0f)", "plain"),
    Mutant("any_pair_of_a_bucket_will_do", SEARCH, "pair.relation == relation && pair.target_relation == target_relation", "pair.relation >= 0", "plain"),
    Mutant("one_pair_of_a_bucket_is_seen", SEARCH, "i < end; ++i", "i < end; i = end", "plain"),
    Mutant("filter_is_written_without_an_atomic", MEETINGS, "atomicOr(&words[place >> 29], 1u << (place >> 24 & 31));", "words[place >> 29] |= 1u << (place >> 24 & 31);", "tsan", RACE),
    Mutant("filter_knows_no_hub", EVIDENCE, "set_all(!fits)", "set_all(false)", "plain"),
    Mutant("filter_asks_for_another_bit", MEETINGS, "(words[place >> 29] >> (place >> 24 & 31)", "(words[place >> 29] >> (place >> 23 & 31)", "plain"),
    Mutant("rows_have_at_most_32_candidates", EVIDENCE, "pair / rows.k : row", "pair / (rows.k < kWarp ? rows.k : kWarp) : row", "plain"),
    Mutant("edges_beyond_64_are_forgotten", WARP, "number = item - (lane == 0 ? 0 : before);", "number = (item - (lane == 0 ? 0 : before)) % 64;", "plain"),
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
