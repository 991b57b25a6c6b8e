#include "token_counts.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "parallel_rows.h"
#include "parallel_tasks.h"

namespace stea {
namespace {

constexpr int64_t kParts = 8;
constexpr int64_t kKeysBetweenPolls = 1 << 22;
constexpr size_t kFirstSlots = 1 << 10;

// Spreads the bits of a key: neighbouring n-grams differ in few of them. (The finalizer of MurmurHash3.)
uint64_t mixed(uint64_t key) {
    key = (key ^ (key >> 33)) * 0xff51afd7ed558ccdULL;
    key = (key ^ (key >> 33)) * 0xc4ceb9fe1a85ec53ULL;
    return key ^ (key >> 33);
}

int64_t part_of(uint64_t hash) { return static_cast<int64_t>(hash >> 61); }
static_assert(kParts == 1 << (64 - 61));

struct Token {
    uint64_t key;
    int32_t rows[2];   // of both sides; 0 and 0: a free slot
    int32_t last_row;  // that was counted, of the side that is being read
    int32_t number;
};

// The tokens of one part, in slots that are searched from the hash on.
class TokenTable {
  public:
    TokenTable() : slots_(kFirstSlots) {}

    Token& find(uint64_t key, uint64_t hash) {
        const size_t mask = slots_.size() - 1;
        size_t at = hash & mask;
        while (used(slots_[at]) && slots_[at].key != key) at = (at + 1) & mask;
        return slots_[at];
    }

    void count(uint64_t key, uint64_t hash, int side, int32_t row) {
        Token* token = &find(key, hash);
        if (!used(*token)) {
            if (2 * ++size_ > slots_.size()) {
                grow();
                token = &find(key, hash);
            }
            *token = {key, {0, 0}, -1, 0};
        }
        if (token->last_row == row && token->rows[side] > 0) return;
        token->last_row = row;
        ++token->rows[side];
    }

    size_t size() const { return size_; }

    void append_to(std::vector<Token*>& tokens) {
        for (Token& token : slots_) {
            if (used(token)) tokens.push_back(&token);
        }
    }

  private:
    static bool used(const Token& token) { return token.rows[0] > 0 || token.rows[1] > 0; }

    void grow() {
        std::vector<Token> old(2 * slots_.size());
        old.swap(slots_);
        for (const Token& token : old) {
            if (used(token)) find(token.key, mixed(token.key)) = token;
        }
    }

    std::vector<Token> slots_;
    size_t size_ = 0;
};

// Counts the rows of every token of one part, until `stopped` says so.
void read_part(const TokenRows (&sides)[2], int64_t part, TokenTable& table, const std::function<bool()>& stopped) {
    for (int side = 0; side < 2; ++side) {
        const TokenRows& rows = sides[side];
        int64_t ask_at = 0;
        for (int64_t row = 0; row < rows.rows; ++row) {
            if (rows.offsets[row] >= ask_at) {
                if (stopped()) return;
                ask_at = rows.offsets[row] + kKeysBetweenPolls;
            }
            for (int64_t i = rows.offsets[row]; i < rows.offsets[row + 1]; ++i) {
                const uint64_t hash = mixed(rows.keys[i]);
                if (part_of(hash) == part) table.count(rows.keys[i], hash, side, static_cast<int32_t>(row));
            }
        }
    }
}

std::vector<int32_t> number_tokens(std::vector<TokenTable>& tables) {
    std::vector<Token*> tokens;
    size_t size = 0;
    for (const TokenTable& table : tables) size += table.size();
    if (size > INT32_MAX) throw std::length_error("more than 2^31 distinct tokens");
    tokens.reserve(size);
    for (TokenTable& table : tables) table.append_to(tokens);
    std::sort(tokens.begin(), tokens.end(), [](const Token* a, const Token* b) {
        const int64_t rows_a = int64_t{a->rows[0]} + a->rows[1];
        const int64_t rows_b = int64_t{b->rows[0]} + b->rows[1];
        return rows_a != rows_b ? rows_a < rows_b : a->key < b->key;
    });
    std::vector<int32_t> rows;
    rows.reserve(2 * size);
    for (size_t number = 0; number < size; ++number) {
        tokens[number]->number = static_cast<int32_t>(number);
        rows.insert(rows.end(), {tokens[number]->rows[0], tokens[number]->rows[1]});
    }
    return rows;
}

void count_row(const TokenRows& rows, const CountedRows& out, std::vector<TokenTable>& tables, int64_t row) {
    const int64_t begin = rows.offsets[row];
    const int64_t end = rows.offsets[row + 1];
    for (int64_t i = begin; i < end; ++i) {
        const uint64_t hash = mixed(rows.keys[i]);
        out.tokens[i] = tables[static_cast<size_t>(part_of(hash))].find(rows.keys[i], hash).number;
    }
    std::sort(out.tokens + begin, out.tokens + end);
    int64_t last = begin - 1;
    for (int64_t i = begin; i < end; ++i) {
        if (last < begin || out.tokens[i] != out.tokens[last]) {
            out.tokens[++last] = out.tokens[i];
            out.counts[last] = 0.0F;
        }
        out.counts[last] += 1.0F;
    }
    out.lengths[row] = last + 1 - begin;
}

}  // namespace

std::vector<int32_t> count_tokens(const TokenRows (&sides)[2], const CountedRows (&out)[2], int n_threads,
                                  const std::function<bool()>& poll) {
    std::vector<TokenTable> tables(kParts);
    std::atomic<bool> stop{false};
    parallel_tasks(kParts, n_threads, [&](int worker, int64_t part) {
        const auto stopped = [&] {  // worker 0 is the calling thread, the only one that may ask
            if (worker == 0 && !stop && poll()) stop = true;
            return stop.load();
        };
        read_part(sides, part, tables[static_cast<size_t>(part)], stopped);
    });
    if (stop) throw Interrupted{};
    std::vector<int32_t> rows = number_tokens(tables);
    for (int side = 0; side < 2; ++side) {
        const TokenRows& given = sides[side];
        const GraphView graph{given.offsets, nullptr, given.rows, given.offsets[given.rows]};
        const auto count = [&](int, int64_t row) { count_row(given, out[side], tables, row); };
        parallel_rows(graph, {0, given.rows}, n_threads, count, [](int) {}, poll);
    }
    return rows;
}

}  // namespace stea
