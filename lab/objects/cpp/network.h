// Sockets, and experiments 2 (requests) and 4 (aggregation over a tree).
#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <iostream>

#include "phases.h"

class Socket {
  public:
    explicit Socket(int fd) : fd_(fd) {
        if (fd_ < 0) fail("socket");
        const int on = 1;
        setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    Socket& operator=(Socket&&) = delete;
    ~Socket() {
        if (fd_ >= 0) ::close(fd_);
    }

    static Socket listen(const std::string& address, std::uint64_t port) {
        Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        setsockopt(socket.fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        const sockaddr_in place = at(address, port);
        if (::bind(socket.fd_, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
            ::listen(socket.fd_, 16) != 0)
            fail("listen");
        return socket;
    }
    Socket accept() const { return Socket(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC)); }

    // Tries for ten seconds, because the other process may not listen yet.
    static Socket connect(const std::string& address, std::uint64_t port) {
        const sockaddr_in place = at(address, port);
        for (const double start = now_s();;) {
            Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            if (::connect(socket.fd_, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0)
                return socket;
            if (now_s() - start > 10) fail("connect");
            ::usleep(20000);
        }
    }
    void send(const void* bytes, std::size_t n) const {
        const char* from = static_cast<const char*>(bytes);
        while (n > 0) {
            const ssize_t sent = ::send(fd_, from, n, MSG_NOSIGNAL);
            if (sent < 0 && errno == EINTR) continue;
            if (sent < 0) fail("send");
            from += sent;
            n -= static_cast<std::size_t>(sent);
        }
    }
    // False at the end of the connection, if nothing has come yet.
    bool receive(void* bytes, std::size_t n) const {
        char* to = static_cast<char*>(bytes);
        for (std::size_t got = 0; got < n;) {
            const ssize_t more = ::recv(fd_, to + got, n - got, 0);
            if (more < 0 && errno == EINTR) continue;
            if (more < 0) fail("recv");
            if (more == 0 && got == 0) return false;
            if (more == 0) throw std::runtime_error("a connection ended within a message");
            got += static_cast<std::size_t>(more);
        }
        return true;
    }

  private:
    static sockaddr_in at(const std::string& address, std::uint64_t port) {
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_port = htons(static_cast<std::uint16_t>(port));
        if (inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1)
            throw std::runtime_error("expected an address of IPv4: " + address);
        return place;
    }
    [[noreturn]] static void fail(const std::string& what) {
        throw std::system_error(errno, std::generic_category(), what);
    }
    int fd_;
};

inline void announce() {
    std::printf("ready\n");
    std::fflush(stdout);
}

// The objects of a request, in pages that contain exactly these.
template <class Impl, class T>
class Answer {
  public:
    Answer(const Socket& socket, bool validate) : socket_(socket), validate_(validate) {}

    void page(const Byte* data, std::uint32_t bytes) {
        Byte length[4];
        put_u32(length, bytes);
        socket_.send(length, 4);
        socket_.send(data, bytes);
        sent += bytes + 4;
    }
    void end() {
        const Byte zero[4]{};
        socket_.send(zero, 4);
    }
    std::uint64_t sent = 0;

  private:
    const Socket& socket_;
    bool validate_;
};

// Objects in memory as a program would use them. Pages that are read in place are kept.
template <class Impl, class T>
class Loaded {
  public:
    Loaded(const std::string& stem, std::uint64_t count) : data_(stem, count) {
        for (std::size_t p = 0; p < data_.pages.size(); ++p) {
            first_.push_back(held_.size());
            for (const auto at : data_.positions[p])
                Impl::template open<T>(data_.pages[p].data(), at, held_);
            if constexpr (!Impl::READS_PAGE) data_.pages[p] = Buffer();
        }
        first_.push_back(held_.size());
    }
    void answer(Answer<Impl, T>& out, std::uint64_t first, std::uint64_t end) {
        typename Impl::template Writer<T> writer(
            [&](const Written& page) { out.page(page.data, page.page_bytes); });
        for (std::size_t p = 0; p + 1 < first_.size(); ++p) {
            const std::uint64_t from = std::max(first, first_[p]);
            const std::uint64_t to = std::min(end, first_[p + 1]);
            if (from >= to) continue;
            const bool is_whole = from == first_[p] && to == first_[p + 1];
            if (Impl::READS_PAGE && is_whole) {
                writer.finish();
                out.page(data_.pages[p].data(), static_cast<std::uint32_t>(data_.pages[p].size()));
            } else {
                for (std::uint64_t i = from; i < to; ++i) writer.add_object(held_[i]);
            }
        }
        writer.finish();
    }

  private:
    InMemory data_;
    Held<typename Impl::template Object<T>> held_;
    std::vector<std::uint64_t> first_;
};

template <class Impl, class T>
void serve(const Options& options, Json& json) {
    const std::string stem = stem_of(options);
    const auto index = read_index(stem);
    const File file(stem + ".pages", O_RDONLY);
    const bool from_ram = options.text("source") == "ram";
    Loaded<Impl, T> loaded(stem, from_ram ? index.size() : 0);
    const Socket listening = Socket::listen(options.text("address"), options.number("port"));
    announce();
    const Socket socket = listening.accept();
    Answer<Impl, T> out(socket, false);
    Timer timer;
    Buffer page;
    double io_s = 0;
    for (std::uint64_t request[2]; socket.receive(request, sizeof request);) {
        const std::uint64_t first = request[0], count = request[1];
        if (first > index.size() || count > index.size() - first)
            throw std::runtime_error("a request is for objects that are not there");
        if (from_ram) {
            loaded.answer(out, first, first + count);
        } else {
            for (std::uint64_t i = first; i < first + count; ++i) {
                if (i > first && index[i].offset == index[i - 1].offset) continue;
                const double start = now_s();
                if (page.size() != index[i].page_bytes) page = Buffer(index[i].page_bytes);
                file.read(page.data(), index[i].page_bytes, index[i].offset);
                io_s += now_s() - start;
                out.page(page.data(), index[i].page_bytes);
            }
        }
        out.end();
    }
    json.seconds("wall_s", timer.wall_s()).seconds("cpu_s", timer.cpu_seconds());
    json.seconds("io_s", io_s).number("bytes", out.sent).checksum(0);
}

// A vector as the language's own object, of which implementations that decode make theirs.
template <class Impl>
struct DecodedVector {
    struct Object {
        model::SparseVector vector;
        std::size_t size() const { return vector.entries.size(); }
        model::Entry entry(std::size_t i) const { return vector.entries[i]; }
    };
    static Object open(Bytes bytes) {
        Object object;
        Impl::decode(bytes, object.vector);
        return object;
    }
    static void encode(const Object& object, std::string& out) {
        Impl::encode(object.vector, out);
    }
    struct Builder {
        model::SparseVector vector;
        explicit Builder(std::size_t entries_max) { vector.entries.reserve(entries_max); }
        void add(std::int32_t position, double value) {
            vector.entries.push_back({position, value});
        }
        std::string finish() {
            std::string out;
            Impl::encode(vector, out);
            return out;
        }
    };
};

// Adds up three vectors in one pass over their positions.
template <class V>
std::string add_up(const V& a, const V& b, const V& c, auto builder) {
    const V* vectors[] = {&a, &b, &c};
    std::size_t at[3]{};
    constexpr std::int32_t END = INT32_MAX;
    std::int32_t positions[3];
    const auto load = [&](int i) {
        positions[i] = at[i] < vectors[i]->size() ? vectors[i]->entry(at[i]).position : END;
    };
    for (int i = 0; i < 3; ++i) load(i);
    for (;;) {
        const std::int32_t next = std::min({positions[0], positions[1], positions[2]});
        if (next == END) return builder.finish();
        double sum = 0;
        for (int i = 0; i < 3; ++i)
            if (positions[i] == next) {
                sum += vectors[i]->entry(at[i]++).value;
                load(i);
            }
        builder.add(next, sum);
    }
}

// Bytes at a multiple of 64 that an object of a vector reads.
inline Buffer aligned(const std::string& bytes) {
    Buffer buffer(bytes.size());
    std::memcpy(buffer.data(), bytes.data(), bytes.size());
    return buffer;
}

inline Buffer receive_vector(const Socket& socket) {
    std::uint64_t length;
    if (!socket.receive(&length, 8)) throw std::runtime_error("a child has sent nothing");
    if (length > (1ull << 36)) throw std::runtime_error("a vector is too long");
    Buffer buffer(length);
    if (length > 0 && !socket.receive(buffer.data(), length))
        throw std::runtime_error("a child has sent no vector");
    return buffer;
}

template <class Impl>
std::uint64_t vector_sum(const typename Impl::Vector::Object& object) {
    Checksum sum;
    sum.word(object.size());
    for (std::size_t i = 0; i < object.size(); ++i) {
        const model::Entry entry = object.entry(i);
        sum.i32(entry.position);
        sum.f64(entry.value);
    }
    return sum.h;
}

// The implementation's bytes of the vector of an input.
template <class Impl>
Buffer vector_of(const std::string& path) {
    Input input(path);
    record::Reader reader{input.next()};
    model::SparseVector vector;
    record::read(reader, vector);
    typename Impl::Vector::Builder builder(vector.entries.size());
    for (const auto& entry : vector.entries) builder.add(entry.position, entry.value);
    return aligned(builder.finish());
}

template <class Impl>
void store_vector(const Options& options, Json& json) {
    const Buffer bytes = vector_of<Impl>(options.text("input"));
    const auto object = Impl::Vector::open({bytes.data(), bytes.size()});
    json.number("objects", 1).number("bytes", bytes.size()).number("file_bytes", bytes.size());
    json.checksum(vector_sum<Impl>(object));
}

template <class Impl>
void aggregate(const Options& options, Json& json) {
    using V = typename Impl::Vector;
    const std::uint64_t node = options.number("node"), port = options.number("port");
    const std::string here = "127.0.0.1";
    const bool is_leaf = node >= 3;
    const Buffer own_bytes = vector_of<Impl>(options.text("input"));
    auto own = V::open({own_bytes.data(), own_bytes.size()});
    std::vector<Socket> children, parent;
    if (!is_leaf) {
        const Socket listening = Socket::listen(here, port + node);
        for (int i = 0; i < 2; ++i) children.push_back(listening.accept());
    }
    if (node > 0) parent.push_back(Socket::connect(here, port + (node - 1) / 2));
    announce();
    std::string line;
    std::getline(std::cin, line);
    const Timer timer;
    std::string sum;
    std::uint64_t bytes = 0;
    if (is_leaf) {
        V::encode(own, sum);
    } else {
        const Buffer left = receive_vector(children[0]), right = receive_vector(children[1]);
        bytes = left.size() + right.size();
        const auto a = V::open({left.data(), left.size()});
        const auto b = V::open({right.data(), right.size()});
        sum = add_up(own, a, b, typename V::Builder(own.size() + a.size() + b.size()));
    }
    if (node > 0) {
        const std::uint64_t length = sum.size();
        parent[0].send(&length, 8);
        parent[0].send(sum.data(), sum.size());
    }
    json.seconds("wall_s", timer.wall_s()).seconds("cpu_s", timer.cpu_seconds());
    json.seconds("io_s", 0).number("bytes", bytes);
    const Buffer result = aligned(sum);
    json.checksum(node == 0 ? vector_sum<Impl>(V::open({result.data(), result.size()})) : 0);
}
