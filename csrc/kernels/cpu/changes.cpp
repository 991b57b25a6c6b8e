#include "../changes.h"

#include "parallel_rows.h"

namespace stea {

void changes_around(const ChangesArgs& args, const PairOptions& options) {
    const auto row_task = [&](int, int64_t row) {
        double sum = 0.0;
        for (int64_t j = args.graph.indptr[row]; j < args.graph.indptr[row + 1]; ++j) {
            const Edge edge = args.graph.edges[j];
            const double changed = static_cast<double>(args.moved[edge.neighbor]) +
                                   static_cast<double>(args.changes[edge.relation]) * args.weights[edge.neighbor];
            sum += static_cast<double>(args.shares[edge.relation]) * changed;
        }
        args.out[row - args.rows.begin] = static_cast<float>(sum);
    };
    parallel_rows(args.graph, args.rows, options.n_threads, row_task, [](int) {}, options.poll);
}

}  // namespace stea
