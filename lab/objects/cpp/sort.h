// Experiment 3: external sort that removes duplicates.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <queue>

#include "read.h"

inline std::size_t heap_bytes() {
    const auto info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// A page and its objects, in the order of the page.
template <class Impl, class T>
struct OpenPage {
    using Object = typename Impl::template Object<T>;
    Buffer page;
    Held<Object> held;

    void open(bool is_checked) {
        std::vector<std::uint32_t> positions;
        Impl::positions(page.data(), positions);
        for (const auto position : positions) {
            if (is_checked)
                validate<Impl, T>(page.data(), static_cast<std::uint32_t>(page.size()), position,
                                  held.size() == 0);
            Impl::template open<T>(page.data(), position, held);
        }
        // Objects that are decoded need their page no longer.
        if constexpr (!Impl::READS_PAGE) page = Buffer();
    }
};

template <class Impl, class T>
class Sort {
  public:
    using Object = typename Impl::template Object<T>;
    using Opened = OpenPage<Impl, T>;
    using Get = typename Impl::Get;

    explicit Sort(const Options& options)
        : input_(stem_of(options) + ".pages"),
          folder_(options.text("output")),
          memory_(options.number("memory")),
          validate_(options.validate()) {}

    void run() {
        while (make_run()) {}
        merge();
    }
    std::string sorted() const { return folder_ + "/sorted.pages"; }
    double io_s() const { return io_s_ + input_.io_s; }
    std::uint64_t bytes() const { return bytes_ + input_.bytes(); }
    std::size_t runs() const { return runs_; }

  private:
    struct Item {
        walk::Key key;
        Object* object;
    };
    static walk::Key key(Object& object) {
        return walk::key<Get>(walk::About<T>{}, Impl::root(object));
    }
    static bool equal(Object& a, Object& b) {
        return walk::equal<Get>(walk::About<T>{}, Impl::root(a), Impl::root(b));
    }
    std::string run_path(std::size_t run) const {
        return folder_ + "/run-" + std::to_string(run) + ".pages";
    }

    // Reads as much as the memory holds, sorts it and writes it.
    bool make_run() {
        std::vector<std::unique_ptr<Opened>> pages;
        std::vector<Item> items;
        const std::size_t before = heap_bytes();
        while (heap_bytes() - before < memory_) {
            auto opened = std::make_unique<Opened>();
            if (!input_.next(opened->page)) break;
            opened->open(validate_);
            for (std::size_t i = 0; i < opened->held.size(); ++i)
                items.push_back({key(opened->held[i]), &opened->held[i]});
            pages.push_back(std::move(opened));
        }
        if (items.empty()) return false;
        std::ranges::sort(items, {}, &Item::key);
        PageFile out{File(run_path(runs_++), O_WRONLY | O_CREAT | O_TRUNC)};
        out.indexed = false;
        typename Impl::template Writer<T> writer([&](const Written& page) { out.add(page); });
        for (std::size_t i = 0; i < items.size(); ++i)
            if (i == 0 || items[i].key != items[i - 1].key ||
                !equal(*items[i].object, *items[i - 1].object))
                writer.add_object(*items[i].object);
        writer.finish();
        io_s_ += out.io_s;
        bytes_ += out.bytes;
        return true;
    }

    // One run that is merged. The page is shared with the object that was written last.
    struct Run {
        explicit Run(const std::string& path) : reader(path) {}
        PageReader<Impl> reader;
        std::shared_ptr<Opened> opened;
        std::size_t at = 0;

        Object& object() { return opened->held[at]; }
        bool advance(bool validate) {
            if (opened && ++at < opened->held.size()) return true;
            opened = std::make_shared<Opened>();
            at = 0;
            if (!reader.next(opened->page)) return false;
            opened->open(validate);
            return true;
        }
    };

    void merge() {
        std::vector<std::unique_ptr<Run>> runs;
        using Entry = std::pair<walk::Key, std::size_t>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
        for (std::size_t i = 0; i < runs_; ++i) {
            runs.push_back(std::make_unique<Run>(run_path(i)));
            if (runs[i]->advance(validate_)) queue.emplace(key(runs[i]->object()), i);
        }
        PageFile out{File(sorted(), O_WRONLY | O_CREAT | O_TRUNC)};
        out.indexed = false;
        typename Impl::template Writer<T> writer([&](const Written& page) { out.add(page); });
        std::shared_ptr<Opened> last_page;
        Object* last = nullptr;
        walk::Key last_key;
        while (!queue.empty()) {
            const auto [found, i] = queue.top();
            queue.pop();
            Run& run = *runs[i];
            if (!last || found != last_key || !equal(run.object(), *last)) {
                writer.add_object(run.object());
                last_page = run.opened;
                last = &run.object();
                last_key = found;
            }
            if (run.advance(validate_)) queue.emplace(key(run.object()), i);
        }
        writer.finish();
        io_s_ += out.io_s;
        bytes_ += out.bytes;
        for (std::size_t i = 0; i < runs_; ++i) {
            io_s_ += runs[i]->reader.io_s;
            bytes_ += runs[i]->reader.bytes();
            unlink(run_path(i).c_str());
        }
    }

    PageReader<Impl> input_;
    std::string folder_;
    std::size_t memory_;
    bool validate_;
    std::size_t runs_ = 0;
    double io_s_ = 0;
    std::uint64_t bytes_ = 0;
};

template <class Impl, class T>
void sort(const Options& options, Json& json) {
    Sort<Impl, T> work(options);
    const Timer timer;
    work.run();
    json.seconds("wall_s", timer.wall_s()).seconds("cpu_s", timer.cpu_seconds());
    json.seconds("io_s", work.io_s()).number("bytes", work.bytes()).number("runs", work.runs());
    const Summed summed = sum_file<Impl, T>(work.sorted());
    unlink(work.sorted().c_str());
    json.number("objects", summed.objects).checksum(summed.sequence.h);
}
