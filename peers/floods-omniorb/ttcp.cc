// Floods through the stubs and skeletons of omniORB, or of TAO (`peers/tao`): the second ORB of papers 000 and 001. The reference of the
// receiver's object stands for its port.
#include "../flood.h"

#include <atomic>
#include <iostream>

#include "ttcp.hh"

#include <flood_orb.hh>

namespace {

flood the_flood;
ttcp_twoway_var target;
void *elements;

struct Receiver : POA_ttcp_twoway {
    explicit Receiver(CORBA::ORB_ptr orb) : orb(CORBA::ORB::_duplicate(orb)) {}

    template <class Sequence> void take(const Sequence &sequence) {
        octets += static_cast<CORBA::ULongLong>(sequence.length()) * (the_flood.octets / the_flood.elements);
    }
    void sendShortSeq(const ttcp_sequence::ShortSeq &s) override { take(s); }
    void sendLongSeq(const ttcp_sequence::LongSeq &s) override { take(s); }
    void sendDoubleSeq(const ttcp_sequence::DoubleSeq &s) override { take(s); }
    void sendCharSeq(const ttcp_sequence::CharSeq &s) override { take(s); }
    void sendOctetSeq(const ttcp_sequence::OctetSeq &s) override { take(s); }
    void sendStructSeq(const ttcp_sequence::StructSeq &s) override { take(s); }
    void callShortSeq(const ttcp_sequence::ShortSeq &s) override { take(s); }
    void callLongSeq(const ttcp_sequence::LongSeq &s) override { take(s); }
    void callDoubleSeq(const ttcp_sequence::DoubleSeq &s) override { take(s); }
    void callCharSeq(const ttcp_sequence::CharSeq &s) override { take(s); }
    void callOctetSeq(const ttcp_sequence::OctetSeq &s) override { take(s); }
    void callStructSeq(const ttcp_sequence::StructSeq &s) override { take(s); }
    void start_timer() override { octets = 0; }
    void stop_timer() override { orb->shutdown(false); }
    CORBA::ULongLong received() override { return octets; }

    CORBA::ORB_var orb;
    std::atomic<CORBA::ULongLong> octets{0};
};

void receive(CORBA::ORB_ptr orb) {
    CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
    PortableServer::POA_var root = PortableServer::POA::_narrow(object.in());
    PortableServer::POAManager_var(root->the_POAManager())->activate();
    PortableServer::Servant_var<Receiver> servant(new Receiver(orb));
    PortableServer::ObjectId_var id = root->activate_object(servant.in());
    object = servant->_this();
    std::cout << CORBA::String_var(orb->object_to_string(object.in())).in() << std::endl;
    orb->run();
    std::cout << servant->octets.load() << std::endl;
}

// The sequence borrows the elements.
template <class Sequence, class Element, class Send, class Call> void send_sequence(unsigned long count, Send send, Call call) {
    Sequence sequence(the_flood.elements, the_flood.elements, static_cast<Element *>(elements), false);
    for (unsigned long buffer = 0; buffer < count; ++buffer) {
        if (the_flood.is_two_way)
            call(sequence);
        else
            send(sequence);
    }
}

#define SEND(name, element)                                                                                            \
    send_sequence<ttcp_sequence::name, element>(                                                                       \
        count, [](const ttcp_sequence::name &sequence) { target->send##name(sequence); },                              \
        [](const ttcp_sequence::name &sequence) { target->call##name(sequence); })

void send_buffers(unsigned long count) {
    switch (the_flood.type) {
    case SHORT_DATA: SEND(ShortSeq, CORBA::Short); break;
    case CHAR_DATA: SEND(CharSeq, CORBA::Char); break;
    case LONG_DATA: SEND(LongSeq, CORBA::Long); break;
    case OCTET_DATA: SEND(OctetSeq, CORBA::Octet); break;
    case DOUBLE_DATA: SEND(DoubleSeq, CORBA::Double); break;
    default: SEND(StructSeq, BinStruct); break;
    }
    target->received(); // the acknowledgement of the last one-way
}

void transmit(CORBA::ORB_ptr orb, const char *reference) {
    CORBA::Object_var object = orb->string_to_object(reference);
    target = ttcp_twoway::_narrow(object.in());
    elements = make_data(&the_flood);
    target->start_timer();
    target->received();
    run_floods(send_buffers);
    target->stop_timer();
}

} // namespace

int main(int count, char **arguments) {
    try {
        if (count == 7 && strcmp(arguments[1], "receive") == 0) {
            the_flood = read_flood(arguments + 3);
            CORBA::ORB_var orb = make_orb(arguments[2], the_flood);
            receive(orb.in());
            orb->destroy();
        } else if (count == 8 && strcmp(arguments[1], "transmit") == 0) {
            the_flood = read_flood(arguments + 4);
            CORBA::ORB_var orb = make_orb(arguments[2], the_flood);
            transmit(orb.in(), arguments[3]);
            orb->destroy();
        } else {
            std::cerr << "usage: see peers/flood.h" << std::endl;
            return 2;
        }
        return 0;
    } catch (const CORBA::Exception &e) {
        std::cerr << arguments[0] << ": " << e._name() << std::endl;
        return 1;
    }
}
