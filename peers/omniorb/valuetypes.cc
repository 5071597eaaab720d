// Value types: `valuetypes` prints golden octets, `valuetypes --serve` serves tests/interop/idl/values.idl and
// `valuetypes --call REFERENCE` calls a server of it, which does not know the types of more_values.idl.
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

#include "more_values.hh"

using namespace Values;

namespace {

/// An implementation without operations, and the factory for it.
template <class State>
struct Plain : virtual State, virtual CORBA::DefaultValueRefCountBase {};

struct Tale : virtual OBV_Values::Story, virtual CORBA::DefaultValueRefCountBase {
    char *describe(CORBA::Long detail) override {
        std::ostringstream text;
        text << title() << " of " << pages() << " pages, " << detail;
        return CORBA::string_dup(text.str().c_str());
    }
    void length(CORBA::Long pages) { OBV_Values::Story::pages(pages); }
};

template <class Impl>
struct FactoryOf : CORBA::ValueFactoryBase {
    CORBA::ValueBase *create_for_unmarshal() override { return new Impl; }
};

using NodeImpl = Plain<OBV_Values::Node>;
using BaseImpl = Plain<OBV_Values::Base>;
using DerivedImpl = Plain<OBV_Values::Derived>;
using SpecialImpl = Plain<OBV_Values::Special>;
using VerySpecialImpl = Plain<OBV_Values::VerySpecial>;

template <class Impl>
void factory(CORBA::ORB_ptr orb, const char *id) {
    CORBA::ValueFactoryBase *factory = new FactoryOf<Impl>;
    CORBA::ValueFactoryBase *old = orb->register_value_factory(id, factory);
    if (old) old->_remove_ref();
    factory->_remove_ref();
}

void factories(CORBA::ORB_ptr orb, bool all) {
    factory<NodeImpl>(orb, "IDL:Values/Node:1.0");
    factory<BaseImpl>(orb, "IDL:Values/Base:1.0");
    factory<DerivedImpl>(orb, "IDL:Values/Derived:1.0");
    factory<Tale>(orb, "IDL:Values/Story:1.0");
    if (all) {
        factory<SpecialImpl>(orb, "IDL:Values/Special:1.0");
        factory<VerySpecialImpl>(orb, "IDL:Values/VerySpecial:1.0");
    }
}

NodeImpl *node(const char *name, double weight) {
    NodeImpl *made = new NodeImpl;
    made->name(name);
    made->weight(weight);
    made->left(0);
    return made;
}

/// The text of a graph: depth first, each node with its number the first time, and the number alone later.
void look(Node *node, std::map<Node *, int> &seen, std::ostream &out) {
    if (!node) {
        out << '-';
        return;
    }
    auto known = seen.find(node);
    if (known != seen.end()) {
        out << '#' << known->second;
        return;
    }
    int number = static_cast<int>(seen.size());
    seen[node] = number;
    out << number << '=' << node->name() << '*' << node->weight() << '(';
    look(node->left(), seen, out);
    const Nodes &others = node->others();
    for (CORBA::ULong i = 0; i < others.length(); ++i) {
        out << ',';
        look(others[i], seen, out);
    }
    out << ')';
}

std::string look(Node *node) {
    std::map<Node *, int> seen;
    std::ostringstream out;
    look(node, seen, out);
    return out.str();
}

template <class T>
T *shared(T *value) {
    if (value) value->_add_ref();
    return value;
}

struct ThingImpl : POA_Values::Thing {
    char *describe(CORBA::Long detail) override {
        return CORBA::string_dup(("an object, " + std::to_string(detail)).c_str());
    }
};

PortableServer::POA_var root;

struct ExchangeImpl : POA_Values::Exchange {
    CORBA::ORB_var orb;

    explicit ExchangeImpl(CORBA::ORB_ptr orb) : orb(CORBA::ORB::_duplicate(orb)) {}

    Pair *echo_pair(const Pair &p) override { return new Pair(p); }
    Base *echo_base(Base *b) override { return shared(b); }
    Base *echo_bases(Base *b, Base *&again) override {
        Base *before = again;
        again = shared(b);
        return before;
    }
    Text *echo_text(Text *t, Text_out again) override {
        again = shared(t);
        return shared(t);
    }
    Numbers *echo_numbers(Numbers *n) override { return shared(n); }
    PairBox *echo_pair_box(PairBox *p) override { return shared(p); }
    Describable_ptr echo_describable(Describable_ptr d) override { return Describable::_duplicate(d); }
    CORBA::ValueBase *echo_value(CORBA::ValueBase *v) override { return shared(v); }
    char *look(Node *n) override { return CORBA::string_dup(::look(n).c_str()); }
    char *ask(Describable_ptr d, CORBA::Long detail) override {
        return CORBA::is_nil(d) ? CORBA::string_dup("nothing") : d->describe(detail);
    }
    Describable_ptr an_object() override {
        static ThingImpl *servant = nullptr;
        if (!servant) {
            servant = new ThingImpl;
            PortableServer::ObjectId_var id = root->activate_object(servant);
        }
        return servant->_this();
    }
    void refuse(Base *b) override {
        Refused refused;
        refused.what = shared(b);
        throw refused;
    }
    CORBA::Long truncate(Base *b, Node *n, Node_out back) override {
        back = shared(n);
        return b ? b->x() : 0;
    }
    void shutdown() override { orb->shutdown(false); }
};

/// Ends the server when the process that started it ends.
void watch_standard_input(CORBA::ORB_ptr orb) {
    char buffer[64];
    while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) {
    }
    try {
        orb->shutdown(false);
    } catch (const CORBA::Exception &) { // already shutting down
    }
}

int serve(CORBA::ORB_ptr orb) {
    factories(orb, false);
    ExchangeImpl *servant = new ExchangeImpl(orb);
    PortableServer::ObjectId_var id = root->activate_object(servant);
    CORBA::Object_var object = servant->_this();
    CORBA::String_var ior = orb->object_to_string(object);
    std::cout << ior.in() << std::endl;
    std::thread(watch_standard_input, orb).detach();
    orb->run();
    orb->destroy();
    _exit(0); // the watcher may still block in its read
}

void expect(bool holds, const char *what) {
    if (!holds) throw std::runtime_error(what);
}

void same(const char *what, const std::string &seen, const std::string &expected) {
    if (seen != expected) throw std::runtime_error(std::string(what) + ": expected " + expected + ", saw " + seen);
}

int failed = 0;

void run(const char *name, const std::function<void()> &body) {
    try {
        body();
        std::cout << "ok " << name << std::endl;
        return;
    } catch (const CORBA::SystemException &e) {
        std::cout << "FAIL " << name << ": " << e._name() << " " << std::hex << e.minor() << std::dec << std::endl;
    } catch (const CORBA::Exception &e) {
        std::cout << "FAIL " << name << ": " << e._name() << std::endl;
    } catch (const std::exception &e) {
        std::cout << "FAIL " << name << ": " << e.what() << std::endl;
    }
    ++failed;
}

/// Two nodes that share a third, which leads back to the first.
Pair graph() {
    NodeImpl *top = node("top", 0.5), *low = node("low", -2), *shared_node = node("shared", 3);
    top->left(low);
    top->others().length(3);
    top->others()[0] = shared(shared_node);
    top->others()[1] = 0;
    top->others()[2] = shared(shared_node);
    shared_node->left(top);
    low->others().length(1);
    low->others()[0] = shared_node;
    Pair made;
    made.first = top;
    made.second = low;
    return made;
}

SpecialImpl *fill(SpecialImpl *special) {
    special->x(5);
    special->what("special");
    NodeImpl *tree = node("tree", 1);
    special->tree(tree);
    special->forest().length(2);
    special->forest()[0] = shared<Node>(tree);
    special->forest()[1] = node("bush", 2);
    return special;
}

void describables(Exchange_ptr server) {
    run("abstract/value", [&] {
        Tale *tale = new Tale;
        tale->title("tale");
        tale->length(7);
        CORBA::String_var said = server->ask(tale, 3);
        same("said", said.in(), "tale of 7 pages, 3");
        Describable_var back = server->echo_describable(tale);
        Story *story = Story::_downcast(back->_to_value());
        expect(story, "no value came back");
        same("title", story->title(), "tale");
    });
    run("abstract/object", [&] {
        Describable_var object = server->an_object();
        CORBA::String_var said = object->describe(4);
        same("said", said.in(), "an object, 4");
        Describable_var back = server->echo_describable(object);
        said = back->describe(5);
        same("said", said.in(), "an object, 5");
        said = server->ask(back, 6);
        same("said to the server", said.in(), "an object, 6");
    });
    run("abstract/nil", [&] {
        Describable_var back = server->echo_describable(Describable::_nil());
        expect(CORBA::is_nil(back), "not nil");
    });
}

void bases(Exchange_ptr server) {
    run("inheritance/derived", [&] {
        DerivedImpl *derived = new DerivedImpl;
        derived->x(-4);
        derived->flag(9);
        derived->y(1LL << 40);
        derived->tree(node("in", 1.25));
        Base_var back = server->echo_base(derived);
        Derived *seen = Derived::_downcast(back.in());
        expect(seen, "not a Derived");
        expect(seen->x() == -4 && seen->flag() == 9 && seen->y() == 1LL << 40, "other members");
        same("tree", look(seen->tree()), "0=in*1.25(-)");
    });
    run("inheritance/inout", [&] {
        BaseImpl *one = new BaseImpl;
        one->x(1);
        Base_var again = new BaseImpl;
        again->x(2);
        Base_var back = server->echo_bases(one, again.inout());
        expect(back->x() == 2 && again->x() == 1, "other values");
        back = server->echo_bases(one, again.inout());
        expect(back->x() == 1 && again->x() == 1, "other values");
    });
    run("inheritance/exception", [&] {
        Base_var what = new BaseImpl;
        what->x(77);
        try {
            server->refuse(what);
        } catch (const Refused &refused) {
            expect(refused.what->x() == 77, "another value");
            return;
        }
        expect(false, "nothing raised");
    });
    run("truncation/base", [&] {
        Base_var special = fill(new SpecialImpl);
        Base_var back = server->echo_base(special);
        expect(back->x() == 5 && !Special::_downcast(back.in()), "not truncated");
    });
    run("truncation/twice", [&] {
        VerySpecialImpl *special = new VerySpecialImpl;
        special->more(2.5);
        special->last(0);
        special->x(6);
        special->what("very special");
        special->tree(node("oak", 1));
        Base_var back = server->echo_base(special);
        expect(back->x() == 6 && !Special::_downcast(back.in()), "not truncated");
    });
}

int call(CORBA::ORB_ptr orb, const char *reference) {
    factories(orb, true);
    CORBA::Object_var object = orb->string_to_object(reference);
    Exchange_var server = Exchange::_narrow(object);
    run("graph/nil", [&] {
        CORBA::String_var seen = server->look(0);
        same("seen", seen.in(), "-");
    });
    run("graph/look", [&] {
        Pair pair = graph();
        CORBA::String_var seen = server->look(pair.first);
        same("seen", seen.in(), look(pair.first));
    });
    run("graph/echo", [&] {
        Pair pair = graph();
        Pair_var back = server->echo_pair(pair);
        same("first", look(back->first), look(pair.first));
        same("second", look(back->second), look(pair.second));
        expect(back->first->left() == back->second.in(), "not shared");
    });
    run("graph/ring", [&] {
        NodeImpl *first = node("0", 0), *last = first;
        for (int i = 1; i < 200; ++i) {
            NodeImpl *next = node(std::to_string(i).c_str(), i);
            last->left(next);
            last = next;
        }
        last->left(first);
        CORBA::String_var seen = server->look(first);
        same("seen", seen.in(), look(first));
    });
    bases(server);
    run("box/text", [&] {
        Text_var text = new Text("boxed");
        Text_var again;
        Text_var back = server->echo_text(text, again.out());
        same("text", back->_value(), "boxed");
        expect(back.in() == again.in(), "not shared");
    });
    run("box/sequence", [&] {
        Shorts shorts;
        shorts.length(3);
        for (int i = 0; i < 3; ++i) shorts[i] = i - 1;
        Numbers_var numbers = new Numbers(shorts);
        Numbers_var back = server->echo_numbers(numbers);
        expect(back->length() == 3 && (*back)[0] == -1 && (*back)[2] == 1, "other numbers");
    });
    run("box/struct", [&] {
        Pair pair = graph();
        PairBox_var box = new PairBox(pair);
        PairBox_var back = server->echo_pair_box(box);
        same("first", look(back->first()), look(pair.first));
    });
    run("base/any", [&] {
        NodeImpl *any = node("any", 1);
        CORBA::ValueBase *back = server->echo_value(any);
        same("back", look(Node::_downcast(back)), "0=any*1(-)");
    });
    describables(server);
    run("shutdown", [&] { server->shutdown(); });
    orb->destroy();
    return failed ? 1 : 0;
}

/// Chunked values work in the machine's byte order only: omniORB reads end tags in its own output without swapping.
template <class T>
void print(const char *name, const T &write, bool chunked = false) {
    for (bool little : {true, false}) {
        if (chunked && !little) continue;
        cdrMemoryStream out;
        out.setByteSwapFlag(little);
        write(out);
        std::printf("%s %s ", name, little ? "little" : "big");
        const unsigned char *octets = static_cast<const unsigned char *>(out.bufPtr());
        for (CORBA::ULong i = 0; i < out.bufSize(); ++i) std::printf("%02x", octets[i]);
        std::printf("\n");
    }
}

int golden() {
    print("nil", [](cdrStream &out) { Node::_NP_marshal(0, out); });
    print("node", [](cdrStream &out) { Node::_NP_marshal(node("alone", 1.5), out); });
    print("graph", [](cdrStream &out) { graph() >>= out; });
    print("base", [](cdrStream &out) {
        BaseImpl *base = new BaseImpl;
        base->x(7);
        Base::_NP_marshal(base, out);
    });
    print("derived", [](cdrStream &out) {
        DerivedImpl *derived = new DerivedImpl;
        derived->x(7);
        derived->flag(1);
        derived->y(-8);
        derived->tree(node("inner", 2));
        Base::_NP_marshal(derived, out);
        Base::_NP_marshal(derived, out);
    }, true);
    print("special", [](cdrStream &out) {
        SpecialImpl *special = fill(new SpecialImpl);
        Base::_NP_marshal(special, out);
        Node::_NP_marshal(special->tree(), out);
    }, true);
    print("very-special", [](cdrStream &out) {
        VerySpecialImpl *special = new VerySpecialImpl;
        special->more(2.5);
        special->last(node("last", 1));
        special->x(6);
        special->what("very special");
        special->tree(special->last());
        Base::_NP_marshal(special, out);
    }, true);
    print("text", [](cdrStream &out) {
        Text *text = new Text("boxed");
        Text::_NP_marshal(text, out);
        Text::_NP_marshal(text, out);
    });
    return 0;
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        if (argc == 2 && !std::strcmp(argv[1], "--serve")) return serve(orb);
        if (argc == 3 && !std::strcmp(argv[1], "--call")) {
            omniORB::setClientCallTimeout(30000);
            return call(orb, argv[2]);
        }
        if (argc == 1) return golden();
        std::cerr << "usage: valuetypes [--serve | --call REFERENCE] [-ORB...]" << std::endl;
        return 2;
    } catch (const CORBA::Exception &e) {
        std::cerr << "valuetypes: " << e._name() << std::endl;
        return 1;
    }
}
