// The phases of an access, each alone, over pages in memory.
#pragma once

#include <algorithm>

#include "read.h"

// The first objects of a file: their pages and where they are in these.
struct InMemory {
    std::vector<Buffer> pages;
    std::vector<std::vector<std::uint32_t>> positions;

    InMemory(const std::string& stem, std::uint64_t count) {
        const auto index = read_index(stem);
        const File file(stem + ".pages", O_RDONLY);
        if (count > index.size())
            throw std::runtime_error("there are only " + std::to_string(index.size()) + " objects");
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i == 0 || index[i].offset != index[i - 1].offset) {
                pages.emplace_back(index[i].page_bytes);
                file.read(pages.back().data(), index[i].page_bytes, index[i].offset);
                positions.emplace_back();
            }
            positions.back().push_back(index[i].position);
        }
    }
    // Calls `act(page, position)` for each object, and `end()` behind each page.
    template <class Act, class End>
    void each(Act act, End end) const {
        for (std::size_t p = 0; p < pages.size(); ++p) {
            for (const auto position : positions[p]) act(pages[p], position);
            end();
        }
    }
};

// Keeps written pages, in memory that is used again.
class Kept {
  public:
    Sink sink() {
        return [this](const Written& page) {
            if (count_ == pages_.size()) pages_.emplace_back();
            if (pages_[count_].size() != page.page_bytes) pages_[count_] = Buffer(page.page_bytes);
            positions_.resize(pages_.size());
            positions_[count_] = page.positions;
            std::memcpy(pages_[count_++].data(), page.data, page.page_bytes);
        };
    }
    void restart() { count_ = 0; }
    template <class Impl, class T>
    std::uint64_t sum() {
        std::uint64_t sum = 0;
        Held<typename Impl::template Object<T>> held;
        for (std::size_t p = 0; p < count_; ++p) {
            for (const auto position : positions_[p]) {
                held.clear();
                Impl::template open<T>(pages_[p].data(), position, held);
                sum += checksum_of<Impl, T>(held[0]);
            }
            held.clear();
        }
        return sum;
    }

  private:
    std::vector<Buffer> pages_;
    // Of the objects that were written or changed.
    std::vector<std::vector<std::uint32_t>> positions_;
    std::size_t count_ = 0;
};

// A page that was validated as a whole.
template <class Impl, class T>
struct WholePage {
    using Type = bool;
};
template <class Impl, class T>
    requires Impl::WHOLE_PAGES
struct WholePage<Impl, T> {
    using Type = typename Impl::template Page<T>;
};

template <class Impl, class T>
class Phases {
  public:
    Phases(const Options& options, std::uint64_t count)
        : validate_(options.validate()), data_(stem_of(options), count) {}

    // Does a phase once for all objects, and returns what it sums up in the timed part.
    std::uint64_t once(const std::string& phase) {
        std::uint64_t sum = 0;
        const auto clear = [&] { held_.clear(); };
        checked_ = nullptr;
        const auto open = [&](const Buffer& page, std::uint32_t position) -> Object& {
            check(page, position);
            Impl::template open<T>(page.data(), position, held_);
            return held_[held_.size() - 1];
        };
        kept_.restart();
        if (phase == "validate") {
            if constexpr (Impl::VALIDATES == APART) {
                validate_ = true;
                data_.each([&](auto& page, auto at) { check(page, at); }, [] {});
                return 0;
            }
            throw std::runtime_error("validation is not a separate step here");
        } else if (phase == "open") {
            data_.each([&](auto& page, auto at) { open(page, at); }, clear);
        } else if (phase == "touch-one") {
            data_.each(
                [&](auto& page, auto at) {
                    check(page, at);
                    const auto key = Impl::template key_at<T>(page.data(), at).first;
                    sum += static_cast<std::uint64_t>(std::int64_t{key});
                },
                clear);
        } else if (phase == "touch-all") {
            data_.each(
                [&](auto& page, auto at) { sum += checksum_of<Impl, T>(open(page, at)); }, clear);
        } else if (phase == "materialise") {
            materialise(open);
        } else if (phase == "mutate") {
            mutate();
        } else if (phase == "grow") {
            grow();
        } else if (phase == "encode") {
            encode();
        } else {
            throw std::runtime_error("there is no phase " + phase);
        }
        return sum;
    }

    // Before each time, untimed.
    void prepare(const std::string& phase) {
        models_.clear();
        if (phase == "encode") {
            data_.each(
                [&](auto& page, auto at) {
                    Impl::template open<T>(page.data(), at, held_);
                    walk_copy(models_.emplace_back(), held_[held_.size() - 1]);
                },
                [&] { held_.clear(); });
        }
        if constexpr (Impl::WHOLE_PAGES)
            if (phase == "mutate" && !validate_ && trusted_.empty())
                for (const auto& page : data_.pages)
                    trusted_.push_back(Impl::template verified<T>(page.data(), page.size()));
        if (Impl::IN_PLACE && phase == "mutate") {
            if (originals_.empty())
                for (const auto& page : data_.pages)
                    copy(originals_.emplace_back(page.size()), page);
            else
                for (std::size_t p = 0; p < originals_.size(); ++p)
                    copy(data_.pages[p], originals_[p]);
        }
    }

    std::uint64_t untimed_sum(const std::string& phase, std::uint64_t timed) {
        if (phase == "mutate" && Impl::IN_PLACE) return sum_first();
        if (phase == "mutate" || phase == "grow" || phase == "encode")
            return kept_.template sum<Impl, T>();
        if (phase == "materialise") {
            std::uint64_t sum = 0;
            for (const auto& m : models_) {
                Checksum one;
                walk::sum<ModelGet>(walk::About<T>{}, one, m);
                sum += one.h;
            }
            return sum;
        }
        return phase == "open" ? once("touch-all") : timed;
    }

  private:
    using Object = typename Impl::template Object<T>;

    static void copy(Buffer& to, const Buffer& from) {
        std::memcpy(to.data(), from.data(), from.size());
    }
    void check(const Buffer& page, std::uint32_t position) {
        if (!validate_) return;
        validate<Impl, T>(page.data(), static_cast<std::uint32_t>(page.size()), position,
                          page.data() != checked_);
        checked_ = page.data();
    }
    void walk_copy(T& model, Object& object) {
        walk::copy<typename Impl::Get>(model, Impl::root(object));
    }
    template <class Open>
    void materialise(Open open) {
        models_.clear();
        data_.each(
            [&](auto& page, auto at) {
                Object& object = open(page, at);
                // What is decoded into the language's own objects is there already.
                if constexpr (std::is_same_v<Object, T>)
                    models_.push_back(std::move(object));
                else
                    walk_copy(models_.emplace_back(), object);
            },
            [&] { held_.clear(); });
    }
    void mutate() {
        if constexpr (Impl::IN_PLACE) {
            data_.each(
                [&](auto& page, auto at) {
                    check(page, at);
                    Impl::template change<T>(page.data(), at);
                },
                [] {});
        } else if constexpr (Impl::WHOLE_PAGES) {
            for (std::size_t p = 0; p < data_.pages.size(); ++p) {
                const Buffer& page = data_.pages[p];
                Impl::template change<T>(
                    validate_ ? Impl::template verified<T>(page.data(), page.size()) : trusted_[p],
                    data_.positions[p], kept_.sink());
            }
        } else {
            typename Impl::template Writer<T> writer(kept_.sink());
            data_.each(
                [&](auto& page, auto at) {
                    check(page, at);
                    writer.add_changed(page.data(), at);
                },
                [] {});
            writer.finish();
        }
    }
    void grow() {
        if constexpr (std::is_same_v<T, model::Customer>) {
            typename Impl::template Writer<T> writer(kept_.sink());
            data_.each(
                [&](auto& page, auto at) {
                    check(page, at);
                    writer.add_grown(page.data(), at);
                },
                [] {});
            writer.finish();
        } else {
            throw std::runtime_error("only customers have a list that grows");
        }
    }
    void encode() {
        typename Impl::template Writer<T> writer(kept_.sink());
        for (const auto& m : models_) writer.add(m);
        writer.finish();
    }
    // The first objects of the pages that were changed in place.
    std::uint64_t sum_first() {
        std::uint64_t sum = 0;
        data_.each(
            [&](auto& page, auto at) {
                Impl::template open<T>(page.data(), at, held_);
                sum += checksum_of<Impl, T>(held_[held_.size() - 1]);
            },
            [&] { held_.clear(); });
        return sum;
    }

    bool validate_;
    // The page whose objects are being validated.
    const Byte* checked_ = nullptr;
    InMemory data_;
    std::vector<Buffer> originals_;
    // Pages that were validated untimed.
    std::vector<typename WholePage<Impl, T>::Type> trusted_;
    Held<Object> held_;
    Kept kept_;
    std::vector<T> models_;
};

template <class Impl, class T>
void phases(const Options& options, Json& json) {
    const std::string phase = options.text("phase");
    Phases<Impl, T> work(options, options.number("count"));
    std::vector<double> walls, cpus;
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0, n = options.number("repeat", 1); i < n; ++i) {
        work.prepare(phase);
        const Timer timer;
        sum = work.once(phase);
        walls.push_back(timer.wall_s());
        cpus.push_back(timer.cpu_seconds());
    }
    sum = work.untimed_sum(phase, sum);
    for (auto* times : {&walls, &cpus}) std::ranges::sort(*times);
    json.seconds("wall_s", walls[walls.size() / 2]).seconds("cpu_s", cpus[cpus.size() / 2]);
    json.seconds("io_s", 0).number("bytes", 0).checksum(sum);
}
