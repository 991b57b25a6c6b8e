#include "races.h"

#include <algorithm>

namespace ptx {

WarpClock::WarpClock() {
    for (auto& row : known_) row.fill(0);
    for (int lane = 0; lane < 32; ++lane) known_[lane][lane] = 1;
}

void WarpClock::synchronize(uint32_t lanes) {
    std::array<uint32_t, 32> all{};
    for (int lane = 0; lane < 32; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        for (int other = 0; other < 32; ++other) all[other] = std::max(all[other], known_[lane][other]);
    }
    for (int lane = 0; lane < 32; ++lane) {
        if ((lanes >> lane & 1) == 0) continue;
        known_[lane] = all;
        ++known_[lane][lane];
    }
}

bool RaceDetector::is_ordered(const Past& past, const Access& now) {
    if (!past.exists) return true;
    if (past.block != now.block) return false;
    if (past.thread == now.thread || past.barriers < now.barriers) return true;
    if (past.thread / 32 != now.thread / 32) return false;
    return now.clock->knows(static_cast<int>(now.thread % 32), static_cast<int>(past.thread % 32), past.time);
}

std::string RaceDetector::touch_cell(Cell& cell, const Access& access) {
    const Past mine{access.block, access.thread,   access.barriers, access.clock->now(access.thread % 32),
                    true,         access.is_atomic};
    auto conflicts = [&](const Past& past) {
        return !(past.is_atomic && access.is_atomic) && !is_ordered(past, access);
    };
    auto report = [&](const char* what, const Past& past) {
        return std::string("data race: ") + what + " thread " + std::to_string(past.thread) + " of block " +
               std::to_string(past.block) + " and thread " + std::to_string(access.thread) + " of block " +
               std::to_string(access.block);
    };
    if (conflicts(cell.write)) return report(access.is_write ? "two writes," : "a write and a read,", cell.write);
    if (access.is_write) {
        if (conflicts(cell.read)) return report("a read and a write,", cell.read);
        if (conflicts(cell.other_read)) return report("a read and a write,", cell.other_read);
        cell.write = mine;
    } else if (is_ordered(cell.read, access)) {
        cell.read = mine;
    } else {
        cell.other_read = mine;
    }
    return "";
}

std::string RaceDetector::touch(uint64_t address, int bytes, bool shared, const Access& access) {
    Pages& pages = shared ? shared_ : global_;
    std::unique_ptr<Page>& page = pages[address / 64];
    if (page == nullptr) page = std::make_unique<Page>();
    for (uint64_t at = address; at < address + static_cast<uint64_t>(bytes); ++at) {
        std::string found = touch_cell((*page)[at % 64], access);  // aligned accesses stay in their page
        if (!found.empty()) return found;
    }
    return "";
}

void RaceDetector::forget_shared() { shared_.clear(); }

}  // namespace ptx
