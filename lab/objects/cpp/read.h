// store, received, and experiment 1: reads from disk.
#pragma once

#include <thread>

#include "storage.h"

template <class Impl, class T>
std::uint64_t checksum_of(typename Impl::template Object<T>& object) {
    Checksum sum;
    walk::sum<typename Impl::Get>(walk::About<T>{}, sum, Impl::root(object));
    return sum.h;
}

// Checks one of a page's objects, or the page with its first one.
template <class Impl, class T>
void validate(const Byte* page, std::uint32_t page_bytes, std::uint32_t position, bool is_first) {
    if constexpr (Impl::VALIDATES == APART)
        if ((is_first || !Impl::WHOLE_PAGES) &&
            !Impl::template valid<T>(page, page_bytes, position))
            throw std::runtime_error("a stored object is not valid");
}

// The checksum of the set of all objects of a file, or of their sequence; and their number.
struct Summed {
    std::uint64_t set = 0, objects = 0;
    Checksum sequence;
};

template <class Impl, class T>
Summed sum_file(const std::string& path) {
    PageReader<Impl> reader(path);
    Summed summed;
    Buffer page;
    Held<typename Impl::template Object<T>> held;
    std::vector<std::uint32_t> positions;
    while (reader.next(page)) {
        positions.clear();
        Impl::positions(page.data(), positions);
        for (const auto position : positions) {
            held.clear();
            Impl::template open<T>(page.data(), position, held);
            const std::uint64_t sum = checksum_of<Impl, T>(held[0]);
            summed.set += sum;
            summed.sequence.word(sum);
            ++summed.objects;
        }
        held.clear();
    }
    return summed;
}

template <class Impl, class T>
void store(const Options& options, Json& json) {
    Input input(options.text("input"));
    const std::string stem = stem_of(options);
    PageFile out{File(stem + ".pages", O_WRONLY | O_CREAT | O_TRUNC)};
    typename Impl::template Writer<T> writer([&](const Written& page) { out.add(page); });
    for (std::uint64_t i = 0; i < input.count(); ++i) {
        record::Reader reader{input.next()};
        T value;
        record::read(reader, value);
        writer.add(value);
    }
    writer.finish();
    const File index(stem + ".index", O_WRONLY | O_CREAT | O_TRUNC);
    index.write(out.index.data(), out.index.size() * sizeof(IndexEntry));
    const Summed summed = sum_file<Impl, T>(stem + ".pages");
    if (summed.objects != input.count()) throw std::runtime_error("the file has other objects");
    json.number("objects", summed.objects).number("bytes", out.object_bytes);
    json.number("file_bytes", out.bytes).checksum(summed.set);
}

template <class Impl, class T>
void received(const Options& options, Json& json) {
    const Summed summed = sum_file<Impl, T>(options.text("file"));
    json.number("objects", summed.objects).checksum(summed.set);
}

// What a thread has read.
struct Part1 {
    double io_s = 0, ready_s = 0, touch_s = 0;
    std::uint64_t bytes = 0, sum = 0;
};

template <class Impl, class T>
class DiskReader {
  public:
    DiskReader(const File& file, const std::vector<IndexEntry>& index, bool validate)
        : file_(file), index_(index), validate_(validate) {}

    // Objects from `start` to before `end`, page by page.
    void sequential(std::uint64_t start, std::uint64_t end) {
        for (std::uint64_t i = start; i < end;) {
            std::uint64_t next = i + 1;
            while (next < end && index_[next].offset == index_[i].offset) ++next;
            page(i, next);
            i = next;
        }
    }
    void random(std::uint64_t seed, std::uint64_t start, std::uint64_t end) {
        for (std::uint64_t i = start; i < end; ++i) {
            const std::uint64_t at = random_at(seed, i) % index_.size();
            page(at, at + 1);
        }
    }
    Part1 found;

  private:
    // Objects of one page.
    void page(std::uint64_t first, std::uint64_t end) {
        const IndexEntry& entry = index_[first];
        const double before = now_s();
        if (page_.size() != entry.page_bytes) page_ = Buffer(entry.page_bytes);
        file_.read(page_.data(), entry.page_bytes, entry.offset);
        const double is_read = now_s();
        held_.clear();
        for (std::uint64_t i = first; i < end; ++i) {
            if (validate_)
                validate<Impl, T>(page_.data(), entry.page_bytes, index_[i].position, i == first);
            Impl::template open<T>(page_.data(), index_[i].position, held_);
        }
        const double is_ready = now_s();
        for (std::size_t i = 0; i < held_.size(); ++i) found.sum += checksum_of<Impl, T>(held_[i]);
        const double is_touched = now_s();
        found.io_s += is_read - before;
        found.ready_s += is_ready - is_read;
        found.touch_s += is_touched - is_ready;
        found.bytes += entry.page_bytes;
    }
    const File& file_;
    const std::vector<IndexEntry>& index_;
    bool validate_;
    Buffer page_;
    Held<typename Impl::template Object<T>> held_;
};

template <class Impl, class T>
void read(const Options& options, Json& json) {
    const std::string stem = stem_of(options);
    const auto index = read_index(stem);
    const File file(stem + ".pages", O_RDONLY);
    const std::uint64_t count = options.number("count"), threads = options.number("threads", 1);
    const std::uint64_t start = options.number("start", 0);
    const bool is_random = options.text("order", "sequential") == "random";
    if (!is_random && (start > index.size() || count > index.size() - start))
        throw std::runtime_error("there are only " + std::to_string(index.size()) + " objects");
    std::vector<std::unique_ptr<DiskReader<Impl, T>>> readers;
    for (std::uint64_t t = 0; t < threads; ++t)
        readers.push_back(
            std::make_unique<DiskReader<Impl, T>>(file, index, options.validate()));
    std::vector<std::exception_ptr> failures(threads);
    const auto work = [&](std::uint64_t t) {
        try {
            const std::uint64_t from = count * t / threads, to = count * (t + 1) / threads;
            if (is_random)
                readers[t]->random(options.number("seed", 1), from, to);
            else
                readers[t]->sequential(start + from, start + to);
        } catch (...) {
            failures[t] = std::current_exception();
        }
    };
    const Timer timer;
    std::vector<std::jthread> others;
    for (std::uint64_t t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    others.clear();
    json.seconds("wall_s", timer.wall_s()).seconds("cpu_s", timer.cpu_seconds());
    Part1 all;
    for (std::uint64_t t = 0; t < threads; ++t) {
        if (failures[t]) std::rethrow_exception(failures[t]);
        all.io_s += readers[t]->found.io_s;
        all.ready_s += readers[t]->found.ready_s;
        all.touch_s += readers[t]->found.touch_s;
        all.bytes += readers[t]->found.bytes;
        all.sum += readers[t]->found.sum;
    }
    json.seconds("io_s", all.io_s).seconds("ready_s", all.ready_s).seconds("touch_s", all.touch_s);
    json.number("bytes", all.bytes).checksum(all.sum);
}
