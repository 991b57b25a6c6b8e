// Post-dominators of the basic blocks, for the places where lanes that went apart are together again.
#include <algorithm>
#include <set>

#include "module.h"

namespace ptx {
namespace {

// Basic blocks; the number behind the last one is the exit.
class Graph {
  public:
    explicit Graph(const std::vector<Instruction>& body) : body_(body), block_of_(body.size() + 1) {
        std::set<int> leaders{0};
        for (size_t i = 0; i < body.size(); ++i) {
            if (body[i].target >= 0) leaders.insert(body[i].target);
            if (leaves(body[i])) leaders.insert(static_cast<int>(i) + 1);
        }
        begins_.assign(leaders.begin(), leaders.end());
        if (begins_.back() < static_cast<int>(body.size())) begins_.push_back(static_cast<int>(body.size()));
        for (int block = 0; block < exit(); ++block) {
            std::fill(block_of_.begin() + begins_[block], block_of_.begin() + begins_[block + 1], block);
        }
        block_of_[body.size()] = exit();
    }

    int exit() const { return static_cast<int>(begins_.size()) - 1; }
    int begin(int block) const { return begins_[block]; }
    int block_of(int instruction) const { return block_of_[instruction]; }

    std::vector<int> successors(int block) const {
        const int last = begins_[block + 1] - 1;
        const Instruction& end = body_[last];
        std::vector<int> found;
        if (end.target >= 0) found.push_back(block_of_[end.target]);
        if (end.op == "ret" || end.op == "exit") found.push_back(exit());
        if (!leaves(end) || end.guard >= 0) found.push_back(block_of_[last + 1]);
        return found;
    }

  private:
    static bool leaves(const Instruction& each) { return each.op == "bra" || each.op == "ret" || each.op == "exit"; }

    const std::vector<Instruction>& body_;
    std::vector<int> begins_;
    std::vector<int> block_of_;
};

// The blocks through which every path from a block leads, as sets; small kernels need nothing better.
std::vector<std::vector<bool>> post_dominators(const Graph& graph) {
    const int count = graph.exit() + 1;
    std::vector<std::vector<bool>> through(count, std::vector<bool>(count, true));
    through[graph.exit()].assign(count, false);
    through[graph.exit()][graph.exit()] = true;
    for (bool changed = true; changed;) {
        changed = false;
        for (int block = graph.exit() - 1; block >= 0; --block) {
            std::vector<bool> common(count, true);
            for (int successor : graph.successors(block)) {
                for (int i = 0; i < count; ++i) common[i] = common[i] && through[successor][i];
            }
            common[block] = true;
            if (common == through[block]) continue;
            through[block] = common;
            changed = true;
        }
    }
    return through;
}

}  // namespace

void find_meeting_points(Kernel& kernel) {
    const Graph graph(kernel.body);
    const auto through = post_dominators(graph);
    for (size_t i = 0; i < kernel.body.size(); ++i) {
        Instruction& each = kernel.body[i];
        if (each.op != "bra") continue;
        // Of the strict post-dominators the nearest one has all the others behind it.
        const int block = graph.block_of(static_cast<int>(i));
        int nearest = graph.exit();
        auto behind = [&](int one) { return std::count(through[one].begin(), through[one].end(), true); };
        for (int other = 0; other <= graph.exit(); ++other) {
            if (other != block && through[block][other] && behind(other) > behind(nearest)) nearest = other;
        }
        each.meets_at = graph.begin(nearest);
    }
}

}  // namespace ptx
