// The experiments of all implementations, by their names on the command line.
#pragma once

#include "network.h"
#include "sort.h"

// An implementation as the program lists and starts it.
struct Implementation {
    std::string name, version, note;
    Validates validates;
    std::function<void(const std::string& experiment, const Options&, Json&)> run;
};

inline std::vector<Implementation>& entries() {
    static std::vector<Implementation> all;
    return all;
}

template <class Impl, class T>
void run_with(const std::string& experiment, const Options& options, Json& json) {
    if (experiment == "store") return store<Impl, T>(options, json);
    if (experiment == "read") return read<Impl, T>(options, json);
    if (experiment == "phases") return phases<Impl, T>(options, json);
    if (experiment == "sort") return sort<Impl, T>(options, json);
    if (experiment == "serve") return serve<Impl, T>(options, json);
    if (experiment == "received") return received<Impl, T>(options, json);
    throw std::runtime_error("there is no experiment " + experiment);
}

template <class Impl>
void run_any(const std::string& experiment, const Options& options, Json& json) {
    const std::string object = options.text("object", "vector");
    if (object == "part") return run_with<Impl, model::Part>(experiment, options, json);
    if (object == "lineitem") return run_with<Impl, model::LineItem>(experiment, options, json);
    if (object == "customer") return run_with<Impl, model::Customer>(experiment, options, json);
    if (object != "vector") throw std::runtime_error("there is no object " + object);
    if (experiment == "store") return store_vector<Impl>(options, json);
    if (experiment == "aggregate") return aggregate<Impl>(options, json);
    throw std::runtime_error("vectors have no experiment " + experiment);
}

template <class Impl>
struct Registered {
    Registered(std::string name, std::string version, std::string note) {
        entries().push_back({std::move(name), std::move(version), std::move(note), Impl::VALIDATES,
                             run_any<Impl>});
    }
};
