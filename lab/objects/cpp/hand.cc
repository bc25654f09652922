// Hand-written: fields one after the other, as in the input (record.h), into structs and back.
#include "experiments.h"
#include "record.h"

struct Hand : Decoded<Hand> {
    template <class T>
    static void encode(const T& value, std::string& out) {
        record::Writer writer{out};
        record::write(writer, value);
    }
    template <class T>
    static void decode(Bytes bytes, T& value) {
        record::Reader reader{bytes};
        record::read(reader, value);
    }

    // The bytes of a vector are read where they lie, as in the thesis: u32 count, then 12 bytes for
    // each entry.
    struct Vector {
        struct Object {
            const Byte* at;
            std::size_t size() const { return u32_at(at); }
            model::Entry entry(std::size_t i) const {
                model::Entry entry;
                const Byte* place = at + 4 + 12 * i;
                std::memcpy(&entry.position, place, 4);
                std::memcpy(&entry.value, place + 4, 8);
                return entry;
            }
        };
        static Object open(Bytes bytes) {
            record::Reader reader{bytes};
            reader.count(12);
            return {bytes.data()};
        }
        static void encode(const Object& object, std::string& out) {
            out.assign(reinterpret_cast<const char*>(object.at), 4 + 12 * object.size());
        }
        struct Builder {
            std::string out;
            std::size_t used = 4;
            explicit Builder(std::size_t entries_max) { out.resize(4 + 12 * entries_max); }
            void add(std::int32_t position, double value) {
                std::memcpy(out.data() + used, &position, 4);
                std::memcpy(out.data() + used + 4, &value, 8);
                used += 12;
            }
            std::string finish() {
                put_u32(reinterpret_cast<Byte*>(out.data()),
                        static_cast<std::uint32_t>((used - 4) / 12));
                out.resize(used);
                return std::move(out);
            }
        };
    };
};

const Registered<Hand> hand{"hand", "1", "fields one after the other, into structs"};
