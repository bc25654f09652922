// The harness of C++: README.md has its options.
#include <iostream>

#include "experiments.h"

namespace {

void list() {
    const char* const validates[] = {"always", "apart", "never"};
    std::vector<Implementation> all = entries();
    std::ranges::sort(all, {}, &Implementation::name);
    for (const Implementation& entry : all)
        Json()
            .text("implementation", entry.name)
            .text("language", "C++")
            .text("version", entry.version)
            .text("validates", validates[entry.validates])
            .raw("objects", R"(["part", "lineitem", "customer", "vector"])")
            .raw("phases", std::string("[") + (entry.validates == APART ? "\"validate\", " : "") +
                               R"("open", "touch-one", "touch-all", "materialise", "mutate", )" +
                               R"("grow", "encode"])")
            .text("note", entry.note)
            .print();
}


// The checksums of all objects of an input, with their keys.
template <class T>
std::vector<std::pair<walk::Key, std::uint64_t>> input_sums(Input& input) {
    std::vector<std::pair<walk::Key, std::uint64_t>> sums;
    for (std::uint64_t i = 0; i < input.count(); ++i) {
        record::Reader reader{input.next()};
        T value;
        record::read(reader, value);
        Checksum one;
        walk::sum<ModelGet>(walk::About<T>{}, one, value);
        sums.emplace_back(walk::key<ModelGet>(walk::About<T>{}, value), one.h);
    }
    return sums;
}

// What all implementations must answer: of a range of an input, of random objects, or sorted.
void input(const Options& options, Json& json) {
    const std::string object = options.text("object");
    const std::string order = options.text("order", "sequential");
    Input input(options.text("input"));
    auto sums = object == "part"       ? input_sums<model::Part>(input)
                : object == "lineitem" ? input_sums<model::LineItem>(input)
                                       : input_sums<model::Customer>(input);
    const std::uint64_t start = options.number("start", 0);
    std::uint64_t count = options.number("count", sums.size() - start);
    std::uint64_t keys = 0;
    Checksum sum;
    if (order == "sorted") {
        std::ranges::sort(sums);
        const auto rest = std::ranges::unique(sums);
        sums.erase(rest.begin(), rest.end());
        for (const auto& [key, one] : sums) sum.word(one);
        count = sums.size();
    } else {
        for (std::uint64_t i = 0; i < count; ++i) {
            const bool is_random = order == "random";
            const auto& [key, one] = sums.at(
                is_random ? random_at(options.number("seed", 1), i) % sums.size() : start + i);
            sum.h += one;
            keys += static_cast<std::uint64_t>(std::int64_t{key.first});
        }
    }
    json.number("objects", count).checksum(sum.h);
    char out[24];
    std::snprintf(out, sizeof out, "%016" PRIx64, keys);
    json.text("keys", out);
}

void run(const Options& options) {
    const std::string experiment = options.text("experiment");
    Json json(options);
    if (experiment == "input") {
        input(options, json);
    } else {
        const std::string name = options.text("implementation");
        const auto found = std::ranges::find(entries(), name, &Implementation::name);
        if (found == entries().end())
            throw std::runtime_error("there is no implementation " + name + ": see --list");
        found->run(experiment, options, json);
    }
    json.number("peak_bytes", peak_bytes()).print();
}

}  // namespace

int main(int count, char** words) {
    try {
        if (count == 2 && std::string(words[1]) == "--list")
            list();
        else
            run(Options(count, words));
    } catch (const std::exception& failure) {
        std::cerr << "objects: " << failure.what() << '\n';
        return 1;
    }
    return 0;
}
