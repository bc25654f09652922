// SHA-256 (FIPS 180-4).
#pragma once

#include <algorithm>
#include <array>
#include <string>

#include "bytes.hpp"

namespace dray {

using Digest = std::array<std::uint8_t, 32>;

namespace detail {

class Sha256 {
public:
    void update(Bytes bytes) noexcept {
        total_ += bytes.size();
        while (!bytes.empty()) {
            usize taken = std::min(bytes.size(), block_.size() - filled_);
            std::memcpy(block_.data() + filled_, bytes.data(), taken);
            filled_ += taken;
            bytes = bytes.subspan(taken);
            if (filled_ == block_.size()) {
                compress();
                filled_ = 0;
            }
        }
    }

    Digest finish() noexcept {
        u64 bits = total_ * 8;
        const std::byte one{0x80}, zero{0};
        update({&one, 1});
        while (filled_ != 56) update({&zero, 1});
        std::array<std::byte, 8> length;
        store(length.data(), __builtin_bswap64(bits));
        update(length);
        Digest digest;
        for (usize i = 0; i < 8; ++i) {
            u32 word = __builtin_bswap32(state_[i]);
            std::memcpy(digest.data() + 4 * i, &word, 4);
        }
        return digest;
    }

private:
    static constexpr std::array<u32, 64> K = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};

    void compress() noexcept {
        std::array<u32, 64> w;
        for (usize i = 0; i < 16; ++i) w[i] = __builtin_bswap32(load<u32>(block_.data() + 4 * i));
        for (usize i = 16; i < 64; ++i) {
            u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
            u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
            w[i] = w[i - 16] + s0 + w[i - 7] + s1;
        }
        auto [a, b, c, d, e, f, g, h] = state_;
        for (usize i = 0; i < 64; ++i) {
            u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
            u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + K[i] + w[i];
            u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
            u32 t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
            h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
        }
        const std::array<u32, 8> sums = {a, b, c, d, e, f, g, h};
        for (usize i = 0; i < 8; ++i) state_[i] += sums[i];
    }

    std::array<u32, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    std::array<std::byte, 64> block_;
    usize filled_ = 0;
    u64 total_ = 0;
};

inline Digest sha256(std::initializer_list<Bytes> parts) noexcept {
    Sha256 hash;
    for (Bytes part : parts) hash.update(part);
    return hash.finish();
}

// A digest in hexadecimal.
inline std::string shown(const Digest& digest) {
    std::string text;
    for (u8 byte : digest) {
        text += "0123456789abcdef"[byte >> 4];
        text += "0123456789abcdef"[byte & 15];
    }
    return text;
}

}  // namespace detail
}  // namespace dray
