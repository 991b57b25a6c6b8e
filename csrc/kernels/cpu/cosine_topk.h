// Cosine top-K on the CPU's threads; the contract is in ../cosine_topk.h.
#pragma once

#include <functional>

#include "../cosine_topk.h"

namespace stea {

// Whether columns increase in every row and weights are large enough; offsets must have been checked.
bool can_be_walked(const WeightedRows& rows);

// Returns how many queries ended at their budget.
int64_t run_cosine_topk(const CosineArgs& args, int n_threads, const std::function<bool()>& poll);

}  // namespace stea
