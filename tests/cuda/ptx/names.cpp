// Names that PTX uses: instructions, types, kernels.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "module.h"

namespace ptx {

Type type_named(const std::string& name) {
    if (name == "pred") return {'p', 1};
    if (name.size() < 2 || std::strchr("usfb", name[0]) == nullptr) return {};
    const int bits = std::atoi(name.c_str() + 1);
    const bool known = bits == 8 || bits == 16 || bits == 32 || bits == 64;
    return known && name == name[0] + std::to_string(bits) ? Type{name[0], bits / 8} : Type{};
}

Op op_named(const std::string& name) {
    static const std::unordered_map<std::string, Op> ops{
        {"mov", Op::kMov},
        {"add", Op::kAdd},
        {"sub", Op::kSub},
        {"mul", Op::kMul},
        {"mad", Op::kMad},
        {"fma", Op::kFma},
        {"div", Op::kDiv},
        {"rem", Op::kRem},
        {"min", Op::kMin},
        {"max", Op::kMax},
        {"abs", Op::kAbs},
        {"neg", Op::kNeg},
        {"and", Op::kAnd},
        {"or", Op::kOr},
        {"xor", Op::kXor},
        {"not", Op::kNot},
        {"cnot", Op::kCnot},
        {"shl", Op::kShl},
        {"shr", Op::kShr},
        {"setp", Op::kSetp},
        {"selp", Op::kSelp},
        {"cvt", Op::kCvt},
        {"cvta", Op::kCvta},
        {"sqrt", Op::kSqrt},
        {"rsqrt", Op::kRsqrt},
        {"rcp", Op::kRcp},
        {"ex2", Op::kEx2},
        {"lg2", Op::kLg2},
        {"popc", Op::kPopc},
        {"bfind", Op::kBfind},
        {"clz", Op::kClz},
        {"brev", Op::kBrev},
        {"bfe", Op::kBfe},
        {"bfi", Op::kBfi},
        {"prmt", Op::kPrmt},
        {"lop3", Op::kLop3},
        {"shf", Op::kShf},
        {"copysign", Op::kCopysign},
        {"ld", Op::kLd},
        {"ldu", Op::kLd},
        {"st", Op::kSt},
        {"atom", Op::kAtom},
        {"red", Op::kAtom},
        {"bra", Op::kBra},
        {"ret", Op::kRet},
        {"exit", Op::kRet},
        {"shfl", Op::kShfl},
        {"vote", Op::kVote},
        {"match", Op::kMatch},
        {"redux", Op::kRedux},
        {"activemask", Op::kActivemask},
        {"bar", Op::kBar},
        {"barrier", Op::kBar},
        {"membar", Op::kFence},
        {"fence", Op::kFence},
    };
    const auto found = ops.find(name);
    return found == ops.end() ? Op::kUnknown : found->second;
}

bool Instruction::has(const char* part) const { return std::find(parts.begin(), parts.end(), part) != parts.end(); }

std::string last_name(const std::string& qualified) {
    int angles = 0;
    size_t begin = 0, end = qualified.size();
    for (size_t i = 0; i < qualified.size(); ++i) {
        const char c = qualified[i];
        angles += c == '<' ? 1 : (c == '>' ? -1 : 0);
        if (angles > 0) continue;
        if (c == ':' || c == ' ') begin = i + 1;
        if (c == '(' && qualified.compare(i, 10, "(anonymous") == 0) {
            i = qualified.find(')', i);
        } else if (c == '(') {
            end = i;
            break;
        }
    }
    return qualified.substr(begin, end - begin);
}

}  // namespace ptx
