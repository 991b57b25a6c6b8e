// Tokens counted on the CPU's threads; the contract is in ../token_counts.h.
#pragma once

#include <functional>
#include <vector>

#include "../token_counts.h"

namespace stea {

// Fills both sides and returns, for every token, how many rows of the first and of the second side have it.
std::vector<int32_t> count_tokens(const TokenRows (&sides)[2], const CountedRows (&out)[2], int n_threads,
                                  const std::function<bool()>& poll);

}  // namespace stea
