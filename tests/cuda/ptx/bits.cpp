// What instructions make of the bits of whole words.
#include "module.h"

namespace ptx {

[[noreturn]] void unsupported(const Instruction& of) {
    throw Error("line " + std::to_string(of.line) + ": not supported: " + of.text);
}

namespace {

uint64_t reversed(uint64_t value, int width) {
    uint64_t turned = 0;
    for (int i = 0; i < width; ++i) turned |= (value >> i & 1) << (width - 1 - i);
    return turned;
}

// The lowest `length` bits.
uint64_t mask_of(uint64_t length) { return length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1; }

uint64_t extracted(const Instruction& of, uint64_t value, uint64_t from, uint64_t length) {
    if (of.type.kind == 's') unsupported(of);
    if (from >= static_cast<uint64_t>(8 * of.type.bytes)) return 0;
    return value >> from & mask_of(length);
}

// `base` with the lowest `length` bits of `field` from bit `from` on; what does not fit is lost.
uint64_t inserted(uint64_t field, uint64_t base, uint64_t from, uint64_t length, int width) {
    if (from >= static_cast<uint64_t>(width)) return base;
    const uint64_t places = mask_of(length) << from & mask_of(static_cast<uint64_t>(width));
    return (base & ~places) | (field << from & places);
}

uint64_t funnel_shifted(const Instruction& of, uint64_t both, uint64_t by) {
    if (!of.has("wrap")) unsupported(of);
    return of.has("l") ? both << by >> 32 & 0xffffffffu : both >> by & 0xffffffffu;
}

uint64_t looked_up(const uint64_t* s) {
    uint64_t made = 0;
    for (int i = 0; i < 32; ++i) {
        const uint64_t row = (s[0] >> i & 1) * 4 + (s[1] >> i & 1) * 2 + (s[2] >> i & 1);
        made |= (s[3] >> row & 1) << i;
    }
    return made;
}

uint64_t permuted(uint64_t both, uint64_t choices) {
    uint64_t made = 0;
    for (int i = 0; i < 4; ++i) {
        const uint64_t choice = choices >> (4 * i) & 15;
        uint64_t byte = both >> (8 * (choice & 7)) & 0xff;
        if (choice & 8) byte = byte & 0x80 ? 0xff : 0;
        made |= byte << (8 * i);
    }
    return made;
}

}  // namespace

uint64_t of_bits(const Instruction& of, const uint64_t* s) {
    const int width = 8 * of.type.bytes;
    const uint64_t value = width == 32 ? s[0] & 0xffffffffu : s[0], both = (s[1] << 32) | (s[0] & 0xffffffffu);
    if (of.code == Op::kPopc) return static_cast<uint64_t>(__builtin_popcountll(value));
    if (of.code == Op::kClz) return static_cast<uint64_t>(value == 0 ? width : __builtin_clzll(value) - (64 - width));
    if (of.code == Op::kBfind) {
        if (of.type.kind == 's' || !of.has("shiftamt")) unsupported(of);
        return value == 0 ? 0xffffffffu : static_cast<uint64_t>(__builtin_clzll(value) - (64 - width));
    }
    if (of.code == Op::kBrev) return reversed(value, width);
    if (of.code == Op::kBfe) return extracted(of, value, s[1] & 0xff, s[2] & 0xff);
    if (of.code == Op::kBfi) return inserted(s[0], s[1], s[2] & 0xff, s[3] & 0xff, width);
    if (of.code == Op::kShf) return funnel_shifted(of, both, s[2] & 31);
    return of.code == Op::kLop3 ? looked_up(s) : permuted(both, s[2]);
}

}  // namespace ptx
