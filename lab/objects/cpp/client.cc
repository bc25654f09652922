// The client of experiment 2, for the servers of all implementations: it asks each server for a
// range of objects at once, and writes each answer to a file as it comes.
#include <thread>

#include "network.h"

namespace {

// Writes the pages of one answer, and returns their bytes.
std::uint64_t receive(const Socket& socket, const std::string& path, std::uint64_t first,
                      std::uint64_t count) {
    const File out(path, O_WRONLY | O_CREAT | O_TRUNC);
    const std::uint64_t request[2] = {first, count};
    socket.send(request, sizeof request);
    std::vector<Byte> page;
    for (std::uint64_t bytes = 0;;) {
        std::uint32_t length;
        if (!socket.receive(&length, 4)) throw std::runtime_error("an answer is cut off");
        if (length == 0) return bytes;
        page.resize(length);
        if (!socket.receive(page.data(), length)) throw std::runtime_error("a page is cut off");
        out.write(page.data(), length);
        bytes += length;
    }
}

void run(const Options& options) {
    const std::uint64_t servers = options.number("servers"), count = options.number("count");
    std::vector<Socket> sockets;
    for (std::uint64_t i = 0; i < servers; ++i)
        sockets.push_back(Socket::connect(options.text("address"), options.number("port") + i));
    std::vector<std::uint64_t> bytes(servers);
    std::vector<std::exception_ptr> failures(servers);
    const Timer timer;
    {
        std::vector<std::jthread> threads;
        for (std::uint64_t i = 0; i < servers; ++i)
            threads.emplace_back([&, i] {
                try {
                    const auto path = options.text("output") + "/" + std::to_string(i) + ".pages";
                    bytes[i] = receive(sockets[i], path, i * count, count);
                } catch (...) {
                    failures[i] = std::current_exception();
                }
            });
    }
    const double wall_s = timer.wall_s(), used_s = timer.cpu_seconds();
    std::uint64_t all = 0;
    for (std::uint64_t i = 0; i < servers; ++i) {
        if (failures[i]) std::rethrow_exception(failures[i]);
        all += bytes[i];
    }
    Json(options).seconds("wall_s", wall_s).seconds("cpu_s", used_s).number("bytes", all).print();
}

}  // namespace

int main(int count, char** words) {
    try {
        run(Options(count, words));
    } catch (const std::exception& failure) {
        std::fprintf(stderr, "client: %s\n", failure.what());
        return 1;
    }
    return 0;
}
