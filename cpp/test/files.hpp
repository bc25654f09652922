// Files and checks of the tests.
#pragma once

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <dray/bytes.hpp>
#include <dray/error.hpp>

namespace dray::test {

inline detail::Buffer read(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw std::runtime_error("can't read " + path);
    std::vector<char> bytes(std::istreambuf_iterator<char>(stream), {});
    detail::Buffer buffer(bytes.size());
    if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return buffer;
}

}  // namespace dray::test

// Ends the test if this is false.
#define CHECK(...)                                                                 \
    do {                                                                           \
        if (!(__VA_ARGS__)) {                                                      \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__); \
            std::abort();                                                          \
        }                                                                          \
    } while (false)

// Ends the test if this does not throw an error of this kind.
#define CHECK_THROWS(kind_, ...)                                    \
    do {                                                            \
        bool threw = false;                                         \
        try {                                                       \
            (void)(__VA_ARGS__);                                    \
        } catch (const ::dray::Error& error) {                      \
            threw = error.kind() == (kind_);                        \
            if (!threw) std::fprintf(stderr, "%s\n", error.what()); \
        }                                                           \
        CHECK(threw);                                               \
    } while (false)
