// The command line, clocks, and the line of JSON that a run prints.
#pragma once

#include <sys/resource.h>
#include <time.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>

#include "walk.h"

class Options {
  public:
    Options(int count, char** words) {
        for (int i = 1; i < count; i += 2) {
            const std::string name = words[i];
            if (!name.starts_with("--")) throw std::runtime_error("expected an option: " + name);
            if (i + 1 == count) throw std::runtime_error(name + " needs a value");
            values_[name.substr(2)] = words[i + 1];
        }
    }
    std::string text(const std::string& name) const {
        const auto found = values_.find(name);
        if (found == values_.end()) throw std::runtime_error("--" + name + " is missing");
        return found->second;
    }
    std::string text(const std::string& name, const std::string& otherwise) const {
        return values_.contains(name) ? text(name) : otherwise;
    }
    std::uint64_t number(const std::string& name) const { return std::stoull(text(name)); }
    std::uint64_t number(const std::string& name, std::uint64_t otherwise) const {
        return values_.contains(name) ? number(name) : otherwise;
    }
    bool validate() const { return text("validate", "no") == "yes"; }
    const std::map<std::string, std::string>& values() const { return values_; }

  private:
    std::map<std::string, std::string> values_;
};

inline double now_s() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

// User and system time of all threads.
inline double cpu_s() {
    rusage used;
    getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](timeval t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The peak of resident memory. The peak that getrusage knows is inherited from the parent.
inline std::uint64_t peak_bytes() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
    return 0;
}

// Measures from its construction on.
struct Timer {
    double wall = now_s(), cpu = cpu_s();
    double wall_s() const { return now_s() - wall; }
    double cpu_seconds() const { return cpu_s() - cpu; }
};

class Json {
  public:
    explicit Json(const Options& options) {
        for (const auto& [name, value] : options.values()) text(name, value);
    }
    Json() = default;
    Json& text(const std::string& name, const std::string& value) {
        return raw(name, '"' + value + '"');
    }
    Json& number(const std::string& name, std::uint64_t value) {
        return raw(name, std::to_string(value));
    }
    Json& seconds(const std::string& name, double value) {
        char out[32];
        std::snprintf(out, sizeof out, "%.9f", value);
        return raw(name, out);
    }
    Json& checksum(std::uint64_t value) {
        char out[24];
        std::snprintf(out, sizeof out, "\"%016" PRIx64 "\"", value);
        return raw("checksum", out);
    }
    Json& raw(const std::string& name, const std::string& value) {
        line_ += (line_.empty() ? "{\"" : ", \"") + name + "\": " + value;
        return *this;
    }
    void print() const {
        std::printf("%s}\n", line_.c_str());
        std::fflush(stdout);
    }

  private:
    std::string line_;
};

// The i-th of random numbers, as README.md defines them.
inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t i) {
    std::uint64_t x = (seed + i) * 0x9E3779B97F4A7C15u;
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93u;
    return x ^ (x >> 32);
}
