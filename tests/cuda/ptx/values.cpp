// What instructions compute, lane by lane. Registers are 64 bits; a narrower value fills the low ones.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "module.h"

namespace ptx {
namespace {

template <typename T>
T as(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
}

template <typename T>
uint64_t bits_of(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
}

// Calls `work` with a value of the C++ type that a type of PTX is.
template <typename Work>
uint64_t with_type(const Instruction& of, Type type, Work work) {
    const bool is_signed = type.kind == 's';
    if (type.kind == 'f' && type.bytes == 4) return work(float{});
    if (type.kind == 'f' && type.bytes == 8) return work(double{});
    switch (type.bytes) {
        case 1:
            return is_signed ? work(int8_t{}) : work(uint8_t{});
        case 2:
            return is_signed ? work(int16_t{}) : work(uint16_t{});
        case 4:
            return is_signed ? work(int32_t{}) : work(uint32_t{});
        case 8:
            return is_signed ? work(int64_t{}) : work(uint64_t{});
        default:
            unsupported(of);
    }
}

// A sum in the rounding that the instruction names.
template <typename T>
T rounded_sum(const Instruction& of, T a, T b) {
    if (!of.has("rz") && !of.has("rm") && !of.has("rp")) return a + b;
    std::fesetround(of.has("rz") ? FE_TOWARDZERO : (of.has("rm") ? FE_DOWNWARD : FE_UPWARD));
    volatile T x = a, y = b;
    volatile T sum = x + y;
    std::fesetround(FE_TONEAREST);
    return sum;
}

template <typename T>
T of_floats(const Instruction& of, const uint64_t* s) {
    const T a = as<T>(s[0]), b = as<T>(s[1]), c = as<T>(s[2]);
    switch (of.code) {
        case Op::kAdd:
            return rounded_sum(of, a, b);
        case Op::kSub:
            return rounded_sum(of, a, -b);
        case Op::kMul:
            return a * b;
        case Op::kFma:
        case Op::kMad:
            return std::fma(a, b, c);
        case Op::kDiv:
            return a / b;
        case Op::kMin:
            return std::fmin(a, b);
        case Op::kMax:
            return std::fmax(a, b);
        case Op::kAbs:
            return std::fabs(a);
        case Op::kNeg:
            return -a;
        case Op::kSqrt:
            return std::sqrt(a);
        case Op::kRsqrt:
            return T{1} / std::sqrt(a);
        case Op::kRcp:
            return T{1} / a;
        case Op::kEx2:
            return static_cast<T>(std::exp2(static_cast<double>(a)));
        case Op::kLg2:
            return static_cast<T>(std::log2(static_cast<double>(a)));
        case Op::kCopysign:
            return std::copysign(b, a);
        default:
            unsupported(of);
    }
}

template <typename T>
uint64_t shifted(const Instruction& of, T value, uint32_t by) {
    constexpr uint32_t kBits = 8 * sizeof(T);
    if (of.code == Op::kShl)
        return by >= kBits ? 0 : bits_of(static_cast<T>(static_cast<std::make_unsigned_t<T>>(value) << by));
    if (by >= kBits) return bits_of(static_cast<T>(value < 0 ? -1 : 0));
    return bits_of(static_cast<T>(value >> by));
}

template <typename T>
T quotient(const Instruction& of, T a, T b) {
    if (b == 0) throw Error("line " + std::to_string(of.line) + ": a division by zero: " + of.text);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return of.code == Op::kDiv ? static_cast<T>(0 - a) : T{0};
    return of.code == Op::kDiv ? static_cast<T>(a / b) : static_cast<T>(a % b);
}

template <typename T>
uint64_t product(const Instruction& of, const uint64_t* s) {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    const Wide whole = static_cast<Wide>(as<T>(s[0])) * static_cast<Wide>(as<T>(s[1]));
    const bool adds = of.code == Op::kMad;
    if (of.has("wide")) {
        const uint64_t sum = static_cast<uint64_t>(whole) + (adds ? s[2] : 0);
        return sizeof(T) == 2 ? sum & 0xffffffffu : sum;
    }
    const T part = static_cast<T>(of.has("hi") ? whole >> (8 * sizeof(T)) : whole);
    const uint64_t sum = bits_of(part) + (adds ? s[2] : 0);
    return bits_of(static_cast<T>(sum));
}

template <typename T>
uint64_t of_integers(const Instruction& of, const uint64_t* s) {
    using Unsigned = std::make_unsigned_t<T>;
    const T a = as<T>(s[0]), b = as<T>(s[1]);
    switch (of.code) {
        case Op::kAdd:
            return bits_of(static_cast<Unsigned>(s[0] + s[1]));
        case Op::kSub:
            return bits_of(static_cast<Unsigned>(s[0] - s[1]));
        case Op::kMul:
        case Op::kMad:
            return product<T>(of, s);
        case Op::kDiv:
        case Op::kRem:
            return bits_of(quotient(of, a, b));
        case Op::kMin:
            return bits_of(a < b ? a : b);
        case Op::kMax:
            return bits_of(a > b ? a : b);
        case Op::kAbs:
            return bits_of(static_cast<Unsigned>(a < 0 ? 0 - s[0] : s[0]));
        case Op::kNeg:
            return bits_of(static_cast<Unsigned>(0 - s[0]));
        case Op::kAnd:
            return bits_of(static_cast<Unsigned>(s[0] & s[1]));
        case Op::kOr:
            return bits_of(static_cast<Unsigned>(s[0] | s[1]));
        case Op::kXor:
            return bits_of(static_cast<Unsigned>(s[0] ^ s[1]));
        case Op::kNot:
            return bits_of(static_cast<Unsigned>(~s[0]));
        case Op::kCnot:
            return static_cast<Unsigned>(s[0]) == 0 ? 1 : 0;
        case Op::kShl:
        case Op::kShr:
            return shifted<T>(of, a, static_cast<uint32_t>(s[1]));
        default:
            unsupported(of);
    }
}

template <typename T>
bool compared(const Instruction& of, T a, T b) {
    const std::string& how = of.parts[0];
    const bool unordered = a != a || b != b;
    if (how == "num" || how == "nan") return unordered == (how == "nan");
    if (unordered) return how.size() == 3;  // equ, neu, ltu ...
    const std::string base = how.substr(0, 2);
    if (base == "eq") return a == b;
    if (base == "ne") return a != b;
    if (base == "lt" || base == "lo") return a < b;
    if (base == "le" || base == "ls") return a <= b;
    if (base == "gt" || base == "hi") return a > b;
    if (base == "ge" || base == "hs") return a >= b;
    unsupported(of);
}

template <typename T>
bool compared_and_joined(const Instruction& of, const uint64_t* s) {
    const bool found = compared<T>(of, as<T>(s[0]), as<T>(s[1]));
    if (of.has("and")) return found && s[2] != 0;
    if (of.has("or")) return found || s[2] != 0;
    if (of.has("xor")) return found != (s[2] != 0);
    return found;
}

double whole_number(const Instruction& of, double value) {
    if (of.has("rzi")) return std::trunc(value);
    if (of.has("rmi")) return std::floor(value);
    if (of.has("rpi")) return std::ceil(value);
    return of.has("rni") ? std::nearbyint(value) : value;
}

template <typename To, typename From>
To converted(const Instruction& of, From from) {
    if constexpr (std::is_integral_v<From>) {
        return static_cast<To>(from);
    } else if constexpr (std::is_integral_v<To>) {
        const double value = whole_number(of, static_cast<double>(from));
        if (value != value) return 0;
        if (value >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
        if (value <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
        return static_cast<To>(value);
    } else {
        const To value = static_cast<To>(whole_number(of, static_cast<double>(from)));
        return of.has("sat") ? std::fmin(std::fmax(value, To{0}), To{1}) : value;
    }
}

uint64_t of_predicates(const Instruction& of, const uint64_t* s) {
    switch (of.code) {
        case Op::kMov:
            return s[0] != 0 ? 1 : 0;  // -1 is written, too
        case Op::kAnd:
            return s[0] & s[1];
        case Op::kOr:
            return s[0] | s[1];
        case Op::kXor:
            return s[0] ^ s[1];
        case Op::kNot:
            return s[0] ^ 1;
        default:
            unsupported(of);
    }
}

}  // namespace

uint64_t evaluate(const Instruction& of, const uint64_t* s) {
    if (of.type.kind == 'p') return of_predicates(of, s);
    switch (of.code) {
        case Op::kMov:
        case Op::kCvta:
            return s[0];
        case Op::kSelp:
            return s[2] != 0 ? s[0] : s[1];
        case Op::kSetp:
            return with_type(of, of.type, [&](auto x) -> uint64_t { return compared_and_joined<decltype(x)>(of, s); });
        case Op::kCvt:
            return with_type(of, of.type, [&](auto to) {
                return with_type(of, of.second, [&](auto from) {
                    return bits_of(converted<decltype(to)>(of, as<decltype(from)>(s[0])));
                });
            });
        case Op::kPopc:
        case Op::kClz:
        case Op::kBfind:
        case Op::kBrev:
        case Op::kBfe:
        case Op::kBfi:
        case Op::kShf:
        case Op::kLop3:
        case Op::kPrmt:
            return of_bits(of, s);
        default:
            break;
    }
    return with_type(of, of.type, [&](auto x) {
        using T = decltype(x);
        if constexpr (std::is_floating_point_v<T>) {
            return bits_of(of_floats<T>(of, s));
        } else {
            return of_integers<T>(of, s);
        }
    });
}

uint64_t after_atomic(const Instruction& of, uint64_t before, uint64_t value, uint64_t other) {
    if (of.has("exch")) return value;
    if (of.has("cas")) return before == value ? other : before;
    return with_type(of, of.type, [&](auto x) -> uint64_t {
        using T = decltype(x);
        const T a = as<T>(before), b = as<T>(value);
        if (of.has("add")) return bits_of(static_cast<T>(a + b));
        if (of.has("min")) return bits_of(a < b ? a : b);
        if (of.has("max")) return bits_of(a > b ? a : b);
        if (of.has("and")) return before & value;
        if (of.has("or")) return before | value;
        if (of.has("xor")) return before ^ value;
        unsupported(of);
    });
}

}  // namespace ptx
