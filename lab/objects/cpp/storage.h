// Files: inputs, pages and their index.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "options.h"
#include "record.h"

class File {
  public:
    File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
        if (fd_ < 0) fail(path);
    }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    ~File() { ::close(fd_); }

    std::uint64_t size() const {
        struct stat found;
        if (fstat(fd_, &found) != 0) fail("fstat");
        return static_cast<std::uint64_t>(found.st_size);
    }
    void read(void* to, std::size_t bytes, std::uint64_t at) const {
        auto* place = static_cast<Byte*>(to);
        while (bytes > 0) {
            const ssize_t n = ::pread(fd_, place, bytes, static_cast<off_t>(at));
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail("pread");
            if (n == 0) throw std::runtime_error("a file ends too early");
            place += n;
            at += static_cast<std::uint64_t>(n);
            bytes -= static_cast<std::size_t>(n);
        }
    }
    void write(const void* from, std::size_t bytes) const {
        const auto* place = static_cast<const Byte*>(from);
        while (bytes > 0) {
            const ssize_t n = ::write(fd_, place, bytes);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0) fail("write");
            place += n;
            bytes -= static_cast<std::size_t>(n);
        }
    }

  private:
    [[noreturn]] static void fail(const std::string& what) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    int fd_;
};

struct IndexEntry {
    std::uint64_t offset;
    std::uint32_t page_bytes;
    std::uint32_t position;
};
static_assert(sizeof(IndexEntry) == 16);

inline std::vector<IndexEntry> read_index(const std::string& stem) {
    const File file(stem + ".index", O_RDONLY);
    std::vector<IndexEntry> index(file.size() / sizeof(IndexEntry));
    file.read(index.data(), index.size() * sizeof(IndexEntry), 0);
    return index;
}

inline std::string stem_of(const Options& options) {
    return options.text("folder") + "/" + options.text("object");
}

// The objects of an input, one after the other.
class Input {
  public:
    explicit Input(const std::string& path) : file_(path, O_RDONLY), window_(1 << 22) {
        take(8);
        std::memcpy(&count_, bytes_.data(), 8);
    }
    std::uint64_t count() const { return count_; }
    Bytes next() {
        take(4);
        take(u32_at(bytes_.data()));
        return bytes_;
    }

  private:
    void take(std::size_t n) {
        if (window_at_ + n > window_end_) {
            if (n > window_.size()) window_ = Buffer(n);
            file_at_ += window_at_;
            window_end_ = std::min<std::uint64_t>(window_.size(), file_.size() - file_at_);
            window_at_ = 0;
            if (n > window_end_) throw std::runtime_error("an input is cut off");
            file_.read(window_.data(), window_end_, file_at_);
        }
        bytes_ = {window_.data() + window_at_, n};
        window_at_ += n;
    }
    File file_;
    Buffer window_;
    std::uint64_t count_ = 0, file_at_ = 0;
    std::size_t window_at_ = 0, window_end_ = 0;
    Bytes bytes_;
};

// Writes pages to a file, and the time that it takes.
struct PageFile {
    File file;
    std::vector<IndexEntry> index{};
    std::uint64_t bytes = 0, object_bytes = 0;
    double io_s = 0;
    bool indexed = true;

    void add(const Written& page) {
        const double start = now_s();
        file.write(page.data, page.page_bytes);
        io_s += now_s() - start;
        if (indexed)
            for (const auto position : page.positions)
                index.push_back({bytes, page.page_bytes, position});
        bytes += page.page_bytes;
        object_bytes += page.object_bytes;
    }
};

// Reads a file of pages from the start, without an index.
template <class Impl>
class PageReader {
  public:
    explicit PageReader(const std::string& path) : file_(path, O_RDONLY), end_(file_.size()) {}

    // The next page, or nothing.
    bool next(Buffer& page) {
        if (at_ == end_) return false;
        const double start = now_s();
        if (page.size() < PAGE_BYTES) page = Buffer(PAGE_BYTES);
        file_.read(page.data(), PAGE_BYTES, at_);
        const std::uint32_t size = Impl::page_bytes(page.data());
        if (size < PAGE_BYTES || size > end_ - at_) throw std::runtime_error("a page has no size");
        if (size != page.size()) {
            Buffer larger(size);
            std::memcpy(larger.data(), page.data(), PAGE_BYTES);
            file_.read(larger.data() + PAGE_BYTES, size - PAGE_BYTES, at_ + PAGE_BYTES);
            page = std::move(larger);
        }
        at_ += size;
        io_s += now_s() - start;
        return true;
    }
    std::uint64_t bytes() const { return at_; }
    double io_s = 0;

  private:
    File file_;
    std::uint64_t end_, at_ = 0;
};
