// What a file of PTX says, ready to be executed: kernels with their parameters, registers, shared memory, instructions.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

// Something that a GPU would not do, or that the interpreter does not know; the message names the line.
class Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// .s32 is {'s', 4}; predicates are {'p', 1}.
struct Type {
    char kind = 0;
    int bytes = 0;
};

enum class Space { kGeneric, kGlobal, kShared, kParam };

enum class Op {
    kUnknown,
    kMov,
    kAdd,
    kSub,
    kMul,
    kMad,
    kFma,
    kDiv,
    kRem,
    kMin,
    kMax,
    kAbs,
    kNeg,
    kAnd,
    kOr,
    kXor,
    kNot,
    kCnot,
    kShl,
    kShr,
    kSetp,
    kSelp,
    kCvt,
    kCvta,
    kSqrt,
    kRsqrt,
    kRcp,
    kEx2,
    kLg2,
    kPopc,
    kClz,
    kBfind,
    kBrev,
    kBfe,
    kBfi,
    kPrmt,
    kLop3,
    kShf,
    kCopysign,
    // These are not done lane by lane.
    kLd,
    kSt,
    kAtom,
    kBra,
    kRet,
    kShfl,
    kVote,
    kMatch,
    kRedux,
    kActivemask,
    kBar,
    kFence,
};

// A register, a number, or an address: a register (or nothing) and an offset.
struct Operand {
    int reg = -1;
    bool negated = false;  // of a predicate
    uint64_t number = 0;
};

// Special registers have numbers from here on.
constexpr int kFirstSpecial = 1 << 20;
enum class Special { kTid, kNtid, kCtaid, kNctaid, kLaneId, kMaskLt, kMaskLe, kMaskEq, kMaskGe, kMaskGt };

constexpr int special_register(Special special, int axis) {
    return kFirstSpecial + 4 * static_cast<int>(special) + axis;
}

struct Instruction {
    std::string op;                  // add, ld, bra ...
    Op code = Op::kUnknown;          // the same as a number
    std::vector<std::string> parts;  // what follows it between dots: global, u32, rn ...
    Type type;                       // the first type that is named
    Type second;                     // the second one (of cvt, setp with a mask ...); otherwise the same
    Space space = Space::kGeneric;
    bool unpacks = false;  // mov.b64 {low, high}, whole
    int vector = 1;        // .v2, .v4
    int guard = -1;        // a predicate register
    bool guard_negated = false;
    std::vector<Operand> operands;  // vectors are spread out
    std::string label;              // of a branch
    int target = -1;                // where it leads
    int meets_at = -1;              // where the lanes of a branch are together again
    int line = 0;
    std::string text;

    bool has(const char* part) const;
};

struct Parameter {
    uint64_t offset;
    uint64_t bytes;
};

struct Kernel {
    std::string mangled;
    std::string name;  // without namespaces and arguments: best_of_rows<float>
    std::vector<Parameter> parameters;
    std::vector<Instruction> body;
    int registers = 0;
    uint64_t static_shared = 0;  // dynamic shared memory begins behind it
};

// All kernels of a file, by name. Throws Error with the line of what is not understood.
std::map<std::string, Kernel> parse(const std::string& text, const std::string& file);

// .s32 from "s32"; without bytes if it is no type.
Type type_named(const std::string& name);

// The number of an instruction's name; kUnknown if it is not known.
Op op_named(const std::string& name);

// The result of an instruction that is done lane by lane, from the values of its operands behind the first one.
uint64_t evaluate(const Instruction& instruction, const uint64_t* sources);

// The same of those that work on the bits of whole words: popc, clz, bfind, brev, bfe, bfi, shf, lop3, prmt.
uint64_t of_bits(const Instruction& instruction, const uint64_t* sources);

[[noreturn]] void unsupported(const Instruction& instruction);

// The value in memory after an atomic operation (add, exch, cas, min, max, and, or, xor, inc, dec).
uint64_t after_atomic(const Instruction& instruction, uint64_t before, uint64_t value, uint64_t other);

// Finds where the lanes of every branch meet again: its nearest post-dominator, or the end of the body.
void find_meeting_points(Kernel& kernel);

// "best_of_rows<float>" from "stea::cuda::(anonymous namespace)::best_of_rows<float>".
std::string last_name(const std::string& qualified);

}  // namespace ptx
