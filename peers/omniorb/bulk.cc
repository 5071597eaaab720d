// A client that takes up offers of bulk streams with plain sockets, for examples/tests/programs.rs: `bulk REFERENCE get NAME FILE`
// or `bulk REFERENCE put NAME FILE`, for an object of examples/bulk/gallery.idl. orb/bulk/src/wire.rs has the format of
// the bulk connection. A file has its name only once it is whole. Prints the octets and their checksum, or the reason of a
// failure.
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <omniORB4/CORBA.h>

#include "gallery.hh"

namespace {

using Octets = std::string;

enum Kind : std::uint8_t { DATA = 1, END = 2, DONE = 3, ERROR = 4, CANCEL = 5 };
enum Role : std::uint8_t { RECEIVES = 1, SENDS = 2 };

const Octets MAGIC("SPBULK\r\n");

std::uint32_t crc32(std::uint32_t checksum, const char *octets, std::size_t length) {
    checksum = ~checksum;
    for (std::size_t i = 0; i < length; ++i) {
        checksum ^= static_cast<std::uint8_t>(octets[i]);
        for (int bit = 0; bit < 8; ++bit)
            checksum = (checksum >> 1) ^ (checksum & 1 ? 0xedb88320u : 0);
    }
    return ~checksum;
}

void put(Octets &out, std::uint64_t number, int octets) {
    while (octets-- > 0)
        out.push_back(static_cast<char>(number >> (8 * octets)));
}

std::uint64_t number(const Octets &octets, std::size_t at, int length) {
    std::uint64_t number = 0;
    for (int i = 0; i < length; ++i)
        number = number << 8 | static_cast<std::uint8_t>(octets.at(at + i));
    return number;
}

// A connected socket.
class Connection {
public:
    // `endpoint` is `tcp://HOST:PORT`, with brackets around an address of IPv6.
    explicit Connection(const std::string &endpoint) {
        std::string host = endpoint.substr(6, endpoint.rfind(':') - 6);
        std::string port = endpoint.substr(endpoint.rfind(':') + 1);
        if (host.front() == '[')
            host = host.substr(1, host.size() - 2);
        addrinfo hints{}, *addresses;
        hints.ai_socktype = SOCK_STREAM;
        if (getaddrinfo(host.c_str(), port.c_str(), &hints, &addresses) != 0)
            throw std::runtime_error("no address of " + endpoint);
        for (addrinfo *address = addresses; address && socket_ < 0; address = address->ai_next) {
            socket_ = ::socket(address->ai_family, address->ai_socktype, 0);
            if (socket_ >= 0 && connect(socket_, address->ai_addr, address->ai_addrlen) != 0) {
                close(socket_);
                socket_ = -1;
            }
        }
        freeaddrinfo(addresses);
        if (socket_ < 0)
            throw std::runtime_error("cannot connect to " + endpoint);
    }
    ~Connection() { close(socket_); }
    Connection(const Connection &) = delete;

    void send(const Octets &octets) const {
        for (std::size_t sent = 0; sent < octets.size();) {
            ssize_t count = ::send(socket_, octets.data() + sent, octets.size() - sent, MSG_NOSIGNAL);
            if (count <= 0)
                throw std::runtime_error("the connection ended while octets were sent");
            sent += count;
        }
    }

    Octets read(std::size_t length) const {
        Octets octets(length, '\0');
        for (std::size_t count = 0; count < length;) {
            ssize_t more = recv(socket_, &octets[count], length - count, 0);
            if (more <= 0)
                throw std::runtime_error("the connection ended early");
            count += more;
        }
        return octets;
    }

private:
    int socket_ = -1;
};

// The connection of an offer, after greeting and answer. `offset` is where a sender goes on.
class BulkConnection {
public:
    BulkConnection(const Bulk::Offer &offer, Role role) : connection_(tcp(offer)) {
        Octets greeting = MAGIC;
        put(greeting, 1, 1);
        put(greeting, role, 1);
        put(greeting, 0, 2);
        greeting.append(reinterpret_cast<const char *>(offer.secret), sizeof(Bulk::Token));
        put(greeting, 0, 8);
        connection_.send(greeting);
        Octets answer = connection_.read(28);
        if (answer.compare(0, 8, MAGIC) != 0 || answer[8] != 1)
            throw std::runtime_error("the peer speaks another protocol");
        if (answer[9] != 0) {
            header();
            refused();
        }
        offset = number(answer, 12, 8);
    }

    // Reads the header of the next frame; throws with the text of ERROR and CANCEL.
    Kind header() {
        Octets header = connection_.read(8);
        kind_ = static_cast<Kind>(header[0]);
        length = number(header, 4, 4);
        if (kind_ == ERROR || kind_ == CANCEL)
            refused();
        return kind_;
    }

    Octets read(std::size_t octets) { return connection_.read(octets); }

    void send(Kind kind, const Octets &payload) {
        Octets frame;
        put(frame, kind, 1);
        put(frame, 0, 3);
        put(frame, payload.size(), 4);
        connection_.send(frame + payload);
    }

    // END or DONE with the number of octets and their checksum.
    void send_end(Kind kind, std::uint64_t octets, std::uint32_t checksum) {
        Octets payload;
        put(payload, octets, 8);
        put(payload, 1, 1);
        put(payload, 0, 3);
        put(payload, checksum, 4);
        send(kind, payload);
    }

    // Whether the payload of END or DONE is that of these octets.
    bool ends_with(std::uint64_t octets, std::uint32_t checksum) {
        Octets end = connection_.read(16);
        return number(end, 0, 8) == octets && (end[8] == 0 || number(end, 12, 4) == checksum);
    }

    std::uint64_t offset = 0;
    std::uint32_t length = 0;

private:
    static std::string tcp(const Bulk::Offer &offer) {
        for (CORBA::ULong i = 0; i < offer.at.length(); ++i) {
            std::string endpoint(offer.at[i]);
            if (endpoint.rfind("tcp://", 0) == 0)
                return endpoint;
        }
        throw std::runtime_error("the offer has no endpoint of TCP");
    }

    [[noreturn]] void refused() {
        Octets text = connection_.read(length);
        throw std::runtime_error("refused: " + (kind_ == ERROR ? text.substr(2) : text));
    }

    Connection connection_;
    Kind kind_ = DATA;
};

struct Outcome {
    std::uint64_t octets = 0;
    std::uint32_t checksum = 0;
};

Outcome get(const Bulk::Offer &offer, const std::string &path) {
    std::string partial = path + ".part";
    Outcome outcome;
    try {
        std::ofstream file(partial, std::ios::binary);
        BulkConnection bulk(offer, RECEIVES);
        while (bulk.header() == DATA) {
            Octets octets = bulk.read(bulk.length);
            file.write(octets.data(), octets.size());
            outcome.checksum = crc32(outcome.checksum, octets.data(), octets.size());
            outcome.octets += octets.size();
        }
        if (!bulk.ends_with(outcome.octets, outcome.checksum))
            throw std::runtime_error("the octets are not the ones that were sent");
        file.close();
        if (!file || std::rename(partial.c_str(), path.c_str()) != 0)
            throw std::runtime_error("cannot write " + path);
        bulk.send_end(DONE, outcome.octets, outcome.checksum);
    } catch (...) {
        std::remove(partial.c_str());
        throw;
    }
    return outcome;
}

Outcome put(const Bulk::Offer &offer, const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    if (!file)
        throw std::runtime_error("cannot read " + path);
    BulkConnection bulk(offer, SENDS);
    if (bulk.offset != 0)
        throw std::runtime_error("a new transfer goes on in its middle");
    Outcome outcome;
    std::vector<char> part(1 << 18);
    while (file.read(part.data(), part.size()), file.gcount() > 0) {
        Octets octets(part.data(), file.gcount());
        bulk.send(DATA, octets);
        outcome.checksum = crc32(outcome.checksum, octets.data(), octets.size());
        outcome.octets += octets.size();
    }
    bulk.send_end(END, outcome.octets, outcome.checksum);
    if (bulk.header() != DONE || !bulk.ends_with(outcome.octets, outcome.checksum))
        throw std::runtime_error("the peer has received other octets");
    return outcome;
}

}  // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        if (argc != 5)
            throw std::runtime_error("usage: bulk REFERENCE get|put NAME FILE");
        CORBA::Object_var object = orb->string_to_object(argv[1]);
        Gallery::Images_var images = Gallery::Images::_narrow(object);
        if (CORBA::is_nil(images))
            throw std::runtime_error("the object is no Gallery::Images");
        bool gets = std::string(argv[2]) == "get";
        Bulk::Offer_var offer = gets ? images->fetch(argv[3]) : images->store(argv[3]);
        if (offer->way != (gets ? Bulk::DOWNLOAD : Bulk::UPLOAD))
            throw std::runtime_error("the offer is for the other direction");
        Outcome outcome = gets ? get(offer, argv[4]) : put(offer, argv[4]);
        // The other side may read the last frame later than this call.
        Bulk::Progress state = offer->control->state();
        for (int attempts = 0; !state.is_complete && attempts < 3000; ++attempts) {
            usleep(10'000);
            state = offer->control->state();
        }
        std::printf("%llu octets, %08x, %s\n", static_cast<unsigned long long>(outcome.octets), outcome.checksum,
                    state.is_complete ? "complete" : "incomplete");
        orb->destroy();
        return 0;
    } catch (const Gallery::NoSuchImage &error) {
        std::cerr << "no such image: " << error.name << std::endl;
    } catch (const CORBA::Exception &error) {
        std::cerr << error._name() << std::endl;
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
    }
    return 1;
}
