// Reads PTX: the part of the language that nvcc makes of kernels without function calls and local memory.
#include <cxxabi.h>

#include <cctype>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "module.h"

namespace ptx {
namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

bool starts(const std::string& text, const char* with) { return text.compare(0, std::strlen(with), with) == 0; }

std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts(1);
    for (char c : text) {
        if (c == at) {
            parts.emplace_back();
        } else {
            parts.back() += c;
        }
    }
    return parts;
}

std::string without_spaces(const std::string& text) {
    std::string rest;
    for (char c : text) {
        if (!std::isspace(static_cast<unsigned char>(c))) rest += c;
    }
    return rest;
}

// A literal: 12, -3, 0x1F, 0f3F800000, 0d3FF0000000000000.
bool parse_number(const std::string& text, uint64_t* number) {
    const size_t digits = text[0] == '-' ? 1 : 0;
    if (!std::isdigit(static_cast<unsigned char>(text[digits]))) return false;
    const char kind = text.size() > 1 ? text[1] : ' ';
    if (text[0] == '0' && std::strchr("fFdD", kind) != nullptr && text.size() > 2) {
        *number = std::strtoull(text.c_str() + 2, nullptr, 16);
        return true;
    }
    const uint64_t magnitude = std::strtoull(text.c_str() + digits, nullptr, 0);
    *number = digits == 1 ? ~magnitude + 1 : magnitude;
    return true;
}

struct SpecialName {
    const char* name;
    Special special;
    int axis;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::kTid, 0},          {"%tid.y", Special::kTid, 1},          {"%tid.z", Special::kTid, 2},
    {"%ntid.x", Special::kNtid, 0},        {"%ntid.y", Special::kNtid, 1},        {"%ntid.z", Special::kNtid, 2},
    {"%ctaid.x", Special::kCtaid, 0},      {"%ctaid.y", Special::kCtaid, 1},      {"%ctaid.z", Special::kCtaid, 2},
    {"%nctaid.x", Special::kNctaid, 0},    {"%nctaid.y", Special::kNctaid, 1},    {"%nctaid.z", Special::kNctaid, 2},
    {"%laneid", Special::kLaneId, 0},      {"%lanemask_lt", Special::kMaskLt, 0}, {"%lanemask_le", Special::kMaskLe, 0},
    {"%lanemask_eq", Special::kMaskEq, 0}, {"%lanemask_ge", Special::kMaskGe, 0}, {"%lanemask_gt", Special::kMaskGt, 0},
};

class Parser {
  public:
    Parser(const std::string& text, const std::string& file) : text_(text), file_(file) {}

    std::map<std::string, Kernel> all() {
        std::map<std::string, Kernel> kernels;
        for (std::string statement = next("({;"); !statement.empty(); statement = next("({;")) {
            if (statement.find(".entry") != std::string::npos) {
                Kernel kernel = entry(statement);
                kernels[kernel.name] = kernel;
            } else if (statement.find(".shared") != std::string::npos) {
                declare_shared(statement, &module_shared_);
            } else if (statement.find(".func") != std::string::npos || is_used_global(statement)) {
                fail("functions and global variables are not supported: " + statement);
            }
        }
        return kernels;
    }

  private:
    // NVRTC declares constants of the sources as global variables, whether a kernel reads them or not.
    bool is_used_global(const std::string& statement) const {
        if (statement.find(".global") == std::string::npos) return false;
        const std::string declared = statement.substr(0, statement.find_first_of("=["));
        const size_t end = declared.find_last_not_of(" \t\n") + 1;
        const std::string name = declared.substr(declared.find_last_of(" \t\n", end - 1) + 1, end - 1);
        const std::string variable = name.substr(0, name.find_last_not_of(" \t\n") + 1);
        return text_.find(variable, text_.find(variable) + 1) != std::string::npos;
    }

    [[noreturn]] void fail(const std::string& what) const {
        throw Error(file_ + ":" + std::to_string(line_) + ": " + what);
    }

    // What stands before the next of these characters, which is remembered as `ended_by_`; comments and the header's
    // lines are passed over.
    std::string next(const char* ends) {
        std::string found;
        int braces = 0;
        for (; at_ < text_.size(); ++at_) {
            const char c = text_[at_];
            if (starts_comment()) {
                while (at_ < text_.size() && text_[at_] != '\n') ++at_;
                --at_;
                continue;
            }
            if (c == '\n') {
                ++line_;
                if (starts(found, ".version") || starts(found, ".target") || starts(found, ".address_size") ||
                    starts(found, ".file") || starts(found, ".loc")) {
                    found.clear();
                    continue;
                }
            }
            const bool in_vector = c == '}' ? braces > 0 : c == '{' && !found.empty() && ends[0] == ';';
            if (in_vector) braces += c == '{' ? 1 : -1;
            if (!in_vector && std::strchr(ends, c) != nullptr) {
                ended_by_ = c;
                ++at_;
                return found.empty() ? std::string(1, c) : found;
            }
            if (!(found.empty() && std::isspace(static_cast<unsigned char>(c)))) found += c;
        }
        return "";
    }
    bool starts_comment() const { return text_.compare(at_, 2, "//") == 0; }

    // ".align 8 .b8 name[64]" and the like: where the name stands is remembered as a symbol.
    std::string declare(const std::string& statement, uint64_t* used, uint64_t* bytes_of = nullptr) {
        uint64_t align = 1, size = 1, count = 1;
        std::string name, former;
        for (const std::string& word : words(statement)) {
            if (former == ".align") align = std::strtoull(word.c_str(), nullptr, 10);
            const Type type = word[0] == '.' ? type_named(word.substr(1)) : Type{};
            if (type.bytes > 0) size = static_cast<uint64_t>(type.bytes);
            former = word;
            name = word;
        }
        const size_t bracket = name.find('[');
        if (bracket != std::string::npos) {
            count = std::strtoull(name.c_str() + bracket + 1, nullptr, 10);
            name.resize(bracket);
        }
        if (align < size) align = size;
        *used = (*used + align - 1) / align * align;
        symbols_[name] = *used;
        *used += size * count;
        if (bytes_of != nullptr) *bytes_of = size * count;
        return name;
    }
    // Dynamic shared memory has no size and comes last.
    void declare_shared(const std::string& statement, uint64_t* used) {
        if (statement.find("[]") != std::string::npos) {
            dynamic_shared_.push_back(declare(statement, used));
        } else {
            declare(statement, used);
        }
    }

    static std::vector<std::string> words(const std::string& text) {
        std::vector<std::string> found;
        std::string word;
        for (char c : text + " ") {
            if (!std::isspace(static_cast<unsigned char>(c))) {
                word += c;
            } else if (!word.empty()) {
                found.push_back(word);
                word.clear();
            }
        }
        return found;
    }

    Kernel entry(const std::string& head) {
        Kernel kernel;
        kernel.mangled = words(head).back();
        int status = 0;
        const std::unique_ptr<char, void (*)(void*)> readable(
            abi::__cxa_demangle(kernel.mangled.c_str(), nullptr, nullptr, &status), std::free);
        kernel.name = last_name(status == 0 ? readable.get() : kernel.mangled);
        registers_.clear();
        uint64_t used = 0;
        while (ended_by_ != ')') {
            const std::string parameter = next(",)");
            if (parameter == ")") break;
            Parameter placed{};
            placed.offset = symbols_[declare(parameter, &used, &placed.bytes)];
            kernel.parameters.push_back(placed);
        }
        next("{");
        body(kernel);
        kernel.registers = static_cast<int>(registers_.size());
        find_meeting_points(kernel);
        return kernel;
    }

    void body(Kernel& kernel) {
        uint64_t shared = module_shared_;
        std::map<std::string, int> labels;
        for (int depth = 1; depth > 0;) {
            const std::string statement = next(";{}:");
            if (statement.empty()) fail("the body does not end");
            if (ended_by_ == ':') {
                labels[without_spaces(statement)] = static_cast<int>(kernel.body.size());
            } else if (ended_by_ == '{') {
                ++depth;
            } else if (ended_by_ == '}') {
                --depth;
            } else if (starts(statement, ".shared")) {
                declare_shared(statement, &shared);
            } else if (starts(statement, ".local")) {
                fail("local memory is not supported: the kernel keeps an array in it, or spills");
            } else if (statement[0] != '.') {
                kernel.body.push_back(instruction(statement));
            }
        }
        kernel.static_shared = (shared + 15) / 16 * 16;
        for (const std::string& name : dynamic_shared_) symbols_[name] = kernel.static_shared;
        for (Instruction& each : kernel.body) {
            if (each.label.empty()) continue;
            if (labels.count(each.label) == 0) fail("no label " + each.label);
            each.target = labels[each.label];
        }
    }

    Instruction instruction(const std::string& statement) {
        Instruction made;
        made.line = line_;
        made.text = statement;
        size_t at = 0;
        if (statement[0] == '@') {
            made.guard_negated = statement[1] == '!';
            at = made.guard_negated ? 2 : 1;
            const size_t begin = at;
            while (is_word(statement[at])) ++at;
            made.guard = register_named(statement.substr(begin, at - begin));
            while (std::isspace(static_cast<unsigned char>(statement[at]))) ++at;
        }
        size_t end = at;
        while (end < statement.size() && !std::isspace(static_cast<unsigned char>(statement[end]))) ++end;
        std::vector<std::string> parts = split(statement.substr(at, end - at), '.');
        made.op = parts[0];
        made.parts.assign(parts.begin() + 1, parts.end());
        describe(made);
        made.code = op_named(made.op);
        if (made.code == Op::kUnknown) fail("not supported: " + statement);
        const std::string rest = without_spaces(statement.substr(end));
        if (made.op == "bra") {
            made.label = rest;
        } else if (!rest.empty()) {
            made.unpacks = made.code == Op::kMov && rest[0] == '{';
            operands(made, rest);
        }
        return made;
    }

    static void describe(Instruction& made) {
        for (const std::string& part : made.parts) {
            const Type type = type_named(part);
            if (type.bytes > 0 && made.type.bytes == 0) {
                made.type = made.second = type;
            } else if (type.bytes > 0) {
                made.second = type;
            }
            if (part == "v2" || part == "v4") made.vector = part[1] - '0';
            if (part == "global") made.space = Space::kGlobal;
            if (part == "shared") made.space = Space::kShared;
            if (part == "param") made.space = Space::kParam;
        }
    }

    void operands(Instruction& made, const std::string& rest) {
        std::string word;
        for (char c : rest + ",") {
            if (c == '[' || c == ']' || c == '{' || c == '}') continue;
            if (c != ',' && c != '|') {
                word += c;
                continue;
            }
            if (!word.empty()) made.operands.push_back(operand(word));
            word.clear();
        }
    }

    // %r1, !%p1, 12, symbol, %rd1+8, symbol+8
    Operand operand(std::string word) {
        Operand made;
        if (word[0] == '!') {
            made.negated = true;
            word = word.substr(1);
        }
        if (parse_number(word, &made.number)) return made;
        const size_t plus = word.find('+');
        if (plus != std::string::npos && !parse_number(word.substr(plus + 1), &made.number))
            fail("no offset in " + word);
        word = word.substr(0, plus);
        for (const SpecialName& special : kSpecials) {
            if (word == special.name) {
                made.reg = special_register(special.special, special.axis);
                return made;
            }
        }
        const auto symbol = symbols_.find(word);
        if (symbol != symbols_.end()) {
            made.number += symbol->second;
        } else {
            made.reg = register_named(word);
        }
        return made;
    }

    int register_named(const std::string& name) {
        if (name.empty() || !(name[0] == '%' || std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_')) {
            fail("not understood: " + name);
        }
        return registers_.emplace(name, static_cast<int>(registers_.size())).first->second;
    }

    const std::string& text_;
    const std::string& file_;
    size_t at_ = 0;
    int line_ = 1;
    char ended_by_ = 0;
    uint64_t module_shared_ = 0;
    std::vector<std::string> dynamic_shared_;
    std::map<std::string, uint64_t> symbols_;
    std::map<std::string, int> registers_;
};

}  // namespace

std::map<std::string, Kernel> parse(const std::string& text, const std::string& file) {
    return Parser(text, file).all();
}

}  // namespace ptx
