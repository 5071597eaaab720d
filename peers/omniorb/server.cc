// The omniORB server of the interoperability suite: prints its hub's reference on one line, then serves until a shutdown
// request or the end of its standard input.

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>

#include "cases.hh"
#include "generated_values.hh"

using namespace Interop;

namespace {

PortableServer::POA_var root;

void refuse(const std::string &what) {
    if (!what.empty()) throw Mismatch(what.c_str());
}
template <class T> void check(const char *what, const T &x, CORBA::ULong seed, CORBA::ULong role) {
    refuse(wrong(what, x, seed, role));
}
template <class T> T *make(CORBA::ULong seed, CORBA::ULong role) {
    T *x = new T;
    fill(*x, seed, role);
    return x;
}
template <class R, class S> typename R::_ptr_type activate(S *servant) {
    PortableServer::ObjectId_var id = root->activate_object(servant);
    servant->_remove_ref(); // the adapter keeps it
    CORBA::Object_var object = root->id_to_reference(id);
    return R::_narrow(object);
}

/// The text of this name in a context; `-` for none.
std::string property(CORBA::Context_ptr context, const char *name) {
    try {
        CORBA::NVList_var values;
        context->get_values("", 0, name, values.out());
        const char *text;
        if (values->count() == 1 && (*values->item(0)->value() >>= text)) return text;
    } catch (const CORBA::BAD_CONTEXT &) {
    }
    return "-";
}

struct PrimitivesImpl : POA_Interop::Primitives {
#define CASE(name, T) \
    T rotate_##name(CORBA::ULong seed, T a, T &b, T &c) override { \
        check("a", a, seed, 1); \
        check("b", b, seed, 2); \
        T result; \
        fill(result, seed, 3); \
        fill(b, seed, 4); \
        fill(c, seed, 5); \
        return result; \
    }
    PRIMITIVE_CASES(CASE)
#undef CASE
};

struct StringsImpl : POA_Interop::Strings {
#define CASE(name, bound) \
    char *rotate_##name(CORBA::ULong seed, const char *a, char *&b, CORBA::String_out c) override { \
        CORBA::String_var expected = make_text(seed, 1, bound); \
        refuse(difference("a", show(expected.in()), show(a))); \
        expected = make_text(seed, 2, bound); \
        refuse(difference("b", show(expected.in()), show(b))); \
        CORBA::string_free(b); \
        b = make_text(seed, 4, bound); \
        c = make_text(seed, 5, bound); \
        return make_text(seed, 3, bound); \
    }
    STRING_CASES(CASE)
#undef CASE
};

#define CASE(name, T) \
    T *rotate_##name(CORBA::ULong seed, const T &a, T &b, T##_out c) override { \
        check("a", a, seed, 1); \
        check("b", b, seed, 2); \
        fill(b, seed, 4); \
        c = make<T>(seed, 5); \
        return make<T>(seed, 3); \
    }
struct SequencesImpl : POA_Interop::Sequences {
    SEQUENCE_CASES(CASE)
};
struct StructsImpl : POA_Interop::Structs {
    VARIABLE_STRUCT_CASES(CASE)
#undef CASE
#define CASE(name, T) \
    T rotate_##name(CORBA::ULong seed, const T &a, T &b, T &c) override { \
        check("a", a, seed, 1); \
        check("b", b, seed, 2); \
        T result; \
        fill(result, seed, 3); \
        fill(b, seed, 4); \
        fill(c, seed, 5); \
        return result; \
    }
    FIXED_STRUCT_CASES(CASE)
#undef CASE
};

/// An array by reference, which `fill` needs to see its bounds.
template <class T, class Slice> T &whole(Slice *slice) { return *reinterpret_cast<T *>(slice); }

struct ArraysImpl : POA_Interop::Arrays {
#define ROTATE_ARRAY(name, T, Out, MAKE_OUT) \
    T##_slice *rotate_##name(CORBA::ULong seed, const T a, T b, Out c) override { \
        check("a", whole<const T>(a), seed, 1); \
        check("b", whole<T>(b), seed, 2); \
        fill(whole<T>(b), seed, 4); \
        T##_slice *out = MAKE_OUT; \
        fill(whole<T>(out), seed, 5); \
        T##_slice *result = T##_alloc(); \
        fill(whole<T>(result), seed, 3); \
        return result; \
    }
#define CASE(name, T) ROTATE_ARRAY(name, T, T, c)
    FIXED_ARRAY_CASES(CASE)
#undef CASE
#define CASE(name, T) ROTATE_ARRAY(name, T, T##_out, (c = T##_alloc()))
    VARIABLE_ARRAY_CASES(CASE)
#undef CASE
};

struct NodeImpl : POA_Interop::Node {
    explicit NodeImpl(CORBA::Long id) : id_(id) {}
    CORBA::Long id() override { return id_; }
    void tell(const char *) override {}

private:
    CORBA::Long id_;
};

/// Answers every request with LOCATION_FORWARD, or LOCATION_FORWARD_PERM.
struct ForwardingNode : POA_Interop::Node {
    ForwardingNode(Interop::Node_ptr target, bool for_good)
        : target_(Interop::Node::_duplicate(target)), for_good_(for_good) {}
    CORBA::Long id() override { forward(); }
    void tell(const char *) override { forward(); }

private:
    [[noreturn]] void forward() { throw omniORB::LOCATION_FORWARD(Interop::Node::_duplicate(target_), for_good_); }
    Interop::Node_var target_;
    bool for_good_;
};

struct ObjectsImpl : POA_Interop::Objects {
    Node_ptr make(CORBA::Long id) override { return activate<Node>(new NodeImpl(id)); }
    void discard(Node_ptr which) override {
        PortableServer::ObjectId_var id = root->reference_to_id(which);
        root->deactivate_object(id);
    }
    Node_ptr pass(Node_ptr a, Node_ptr &b, Node_out c) override {
        c = b;
        b = Node::_duplicate(a);
        return Node::_duplicate(a);
    }
    CORBA::Object_ptr pass_object(CORBA::Object_ptr a, CORBA::Object_ptr &b, CORBA::Object_out c) override {
        c = b;
        b = CORBA::Object::_duplicate(a);
        return CORBA::Object::_duplicate(a);
    }
    NodeSeq *pass_seq(const NodeSeq &nodes) override {
        NodeSeq_var reversed = new NodeSeq;
        CORBA::ULong n = nodes.length();
        reversed->length(n);
        for (CORBA::ULong i = 0; i < n; ++i) reversed[i] = Node::_duplicate(nodes[n - 1 - i]);
        return reversed._retn();
    }
    Link *pass_link(const Link &way) override {
        Link_var back = new Link(way);
        back->from = Node::_duplicate(way.to);
        back->to = Node::_duplicate(way.from);
        return back._retn();
    }
    CORBA::LongLong sum(const NodeSeq &nodes) override {
        CORBA::LongLong total = 0;
        for (CORBA::ULong i = 0; i < nodes.length(); ++i) {
            total += CORBA::is_nil(nodes[i]) ? -1 : nodes[i]->id();
        }
        return total;
    }
    Node_ptr forwarded(CORBA::Long id) override {
        Node_var target = make(id);
        return activate<Node>(new ForwardingNode(target, false));
    }
    Node_ptr forwarded_twice(CORBA::Long id) override {
        Node_var target = forwarded(id);
        return activate<Node>(new ForwardingNode(target, true));
    }
    Node_ptr dangling() override {
        CORBA::Object_var object = root->create_reference(Node::_PD_repoId);
        return Node::_unchecked_narrow(object);
    }
};

struct LowestImpl : POA_Interop::Lowest {
    char *base_name() override { return CORBA::string_dup("base"); }
    CORBA::Long base_value() override { return value_; }
    void base_value(CORBA::Long value) override { value_ = value; }
    char *left_name() override { return CORBA::string_dup("left"); }
    char *right_name() override { return CORBA::string_dup("right"); }
    char *diamond_name() override { return CORBA::string_dup("diamond"); }
    Interop::Lowest::DiamondSeq *descend(Base_ptr origin) override {
        if (CORBA::is_nil(origin)) throw Interop::Lowest::Deep("nil");
        Interop::Lowest::DiamondSeq_var result = new Interop::Lowest::DiamondSeq;
        result->length(2);
        result[0] = _this();
        result[1] = Interop::Diamond::_narrow(origin);
        return result._retn();
    }

private:
    CORBA::Long value_ = 0;
};

struct ErrorsImpl : POA_Interop::Errors {
    CORBA::Long raise_user(CORBA::ULong which, CORBA::ULong seed) override {
        switch (which) {
        case 0: return 17;
        case 1: throw Empty();
        case 2: throw Plain(static_cast<CORBA::Long>(seed), GREETING);
        case 3: {
            Rich rich;
            Fill fill(seed, 1);
            each(fill, rich.lead);
            each(fill, rich.entry);
            each(fill, rich.numbers);
            each(fill, rich.hue);
            throw rich;
        }
        default: throw Mismatch("as you asked");
        }
    }
    void raise_system(const char *name, CORBA::ULong minor, CORBA::ULong completed) override {
        CORBA::CompletionStatus status = static_cast<CORBA::CompletionStatus>(completed);
#define RAISE(X) \
    if (std::strcmp(name, #X) == 0) throw CORBA::X(minor, status);
        OMNIORB_FOR_EACH_SYS_EXCEPTION(RAISE)
#undef RAISE
        throw CORBA::BAD_PARAM(0, CORBA::COMPLETED_NO);
    }
    CORBA::ULong sleep(CORBA::ULong milliseconds) override {
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return milliseconds;
    }
};

template <class S> S *bulk(CORBA::ULong seed, const S &data, CORBA::ULong answer) {
    S expected;
    pattern(expected, seed, data.length());
    refuse(difference("data", show(expected), show(data)));
    S *result = new S;
    pattern(*result, seed + 1, answer);
    return result;
}
struct BulkImpl : POA_Interop::Bulk {
    OctetSeq *octets(CORBA::ULong seed, const OctetSeq &data, CORBA::ULong answer) override {
        return bulk(seed, data, answer);
    }
    DoubleSeq *doubles(CORBA::ULong seed, const DoubleSeq &data, CORBA::ULong answer) override {
        return bulk(seed, data, answer);
    }
    BinStructSeq *structs(CORBA::ULong seed, const BinStructSeq &data, CORBA::ULong answer) override {
        return bulk(seed, data, answer);
    }
    StringSeq *strings(CORBA::ULong seed, const StringSeq &data, CORBA::ULong answer) override {
        return bulk(seed, data, answer);
    }
    char *text(CORBA::ULong seed, const char *data, CORBA::ULong answer) override {
        std::string expected = pattern_text(seed, static_cast<CORBA::ULong>(std::strlen(data)));
        refuse(difference("data", show(expected.c_str()), show(data)));
        return CORBA::string_dup(pattern_text(seed + 1, answer).c_str());
    }
};

struct AttributesImpl : POA_Interop::Attributes {
    CORBA::Short number() override { return number_; }
    void number(CORBA::Short x) override { number_ = x; ++writes_; }
    char *title() override { return CORBA::string_dup(title_); }
    void title(const char *x) override { title_ = CORBA::string_dup(x); ++writes_; }
    Colour hue() override { return hue_; }
    void hue(Colour x) override { hue_ = x; ++writes_; }
    Point place() override { return place_; }
    void place(const Point &x) override { place_ = x; ++writes_; }
    Record *entry() override { return new Record(entry_); }
    void entry(const Record &x) override { entry_ = x; ++writes_; }
    DoubleSeq *numbers() override { return new DoubleSeq(numbers_); }
    void numbers(const DoubleSeq &x) override { numbers_ = x; ++writes_; }
    Cube_slice *block() override { return Cube_dup(block_); }
    void block(const Cube x) override { Cube_copy(block_, x); ++writes_; }
    Node_ptr peer() override { return Node::_duplicate(peer_); }
    void peer(Node_ptr x) override { peer_ = Node::_duplicate(x); ++writes_; }
    CORBA::ULong writes() override { return writes_; }
    CORBA::Double third() override { return DOUBLE_THIRD; }
    CORBA::Double tenth() override { return 0.1; }

private:
    CORBA::Short number_ = 0;
    CORBA::String_var title_ = CORBA::string_dup("");
    Colour hue_ = red;
    Point place_ = {0, 0};
    Record entry_{};
    DoubleSeq numbers_;
    Cube block_ = {};
    Node_var peer_;
    CORBA::ULong writes_ = 0;
};

struct OnewaysImpl : POA_Interop::Oneways {
    void ping() override {
        std::lock_guard<std::mutex> hold(lock_);
        ++pings_;
    }
    void note(CORBA::ULong seed, const char *text, const Record &entry, const DoubleSeq &numbers) override {
        CORBA::String_var expected = make_text(seed, 1, unbounded);
        std::string what = difference("text", show(expected.in()), show(text)) + wrong("entry", entry, seed, 2) +
                           wrong("numbers", numbers, seed, 3);
        std::lock_guard<std::mutex> hold(lock_);
        if (what.empty()) ++notes_;
        else complaint_ = what;
    }
    CORBA::ULong pings() override {
        std::lock_guard<std::mutex> hold(lock_);
        return pings_;
    }
    CORBA::ULong notes() override {
        std::lock_guard<std::mutex> hold(lock_);
        return notes_;
    }
    char *complaint() override {
        std::lock_guard<std::mutex> hold(lock_);
        return CORBA::string_dup(complaint_.c_str());
    }

private:
    std::mutex lock_;
    CORBA::ULong pings_ = 0, notes_ = 0;
    std::string complaint_;
};

struct HubImpl : POA_Interop::Hub {
    explicit HubImpl(CORBA::ORB_ptr orb) : orb_(CORBA::ORB::_duplicate(orb)) {}
    void nothing() override {}
    Constants *all_constants() override {
        Constants_var c = new Constants;
        c->short_least = SHORT_LEAST;
        c->ushort_most = USHORT_MOST;
        c->long_least = LONG_LEAST;
        c->ulong_mixed = ULONG_MIXED;
        c->longlong_least = LONGLONG_LEAST;
        c->ulonglong_most = ULONGLONG_MOST;
        c->float_half = FLOAT_HALF;
        c->double_third = DOUBLE_THIRD;
        c->yes = YES;
        c->tab = TAB;
        c->e_acute = E_ACUTE;
        c->octet_most = OCTET_MOST;
        c->greeting = GREETING;
        c->bound = BOUND;
        c->favourite = FAVOURITE;
        return c._retn();
    }
    CORBA::Long mixed(const char *text, CORBA::Double &third, Record &entry, CORBA::String_out reversed, Colour hue,
                      Colour &next) override {
        std::string s(text);
        if (s == "mismatch") throw Mismatch("as you asked");
        if (s == "plain") throw Plain(-1, text);
        check("entry", entry, 7, 2);
        third = DOUBLE_THIRD;
        fill(entry, 7, 4);
        reversed = CORBA::string_dup(std::string(s.rbegin(), s.rend()).c_str());
        next = static_cast<Colour>((hue + 1) % 4);
        return static_cast<CORBA::Long>(s.size());
    }
    CORBA::Long type(CORBA::Long match, CORBA::Long impl, CORBA::Long &loop) override {
        loop = match - impl;
        return match * impl;
    }
    char *surroundings(const char *before, CORBA::Context_ptr context) override {
        std::string s;
        for (const char *name : {"locale", "user.name", "user.secret"}) s += property(context, name) + " ";
        return CORBA::string_dup((s + before).c_str());
    }
#define OFFER(name, T, Impl) \
    T##_ptr name() override { return T::_duplicate(name##_); } \
    T##_var name##_ = activate<T>(new Impl);
    OFFER(the_primitives, Primitives, PrimitivesImpl)
    OFFER(the_strings, Strings, StringsImpl)
    OFFER(the_sequences, Sequences, SequencesImpl)
    OFFER(the_structs, Structs, StructsImpl)
    OFFER(the_arrays, Arrays, ArraysImpl)
    OFFER(the_objects, Objects, ObjectsImpl)
    OFFER(the_lowest, Lowest, LowestImpl)
    OFFER(the_errors, Errors, ErrorsImpl)
    OFFER(the_bulk, Bulk, BulkImpl)
    OFFER(the_attributes, Attributes, AttributesImpl)
    OFFER(the_oneways, Oneways, OnewaysImpl)
#undef OFFER
    void shutdown() override { orb_->shutdown(false); }

private:
    CORBA::ORB_var orb_;
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

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        Hub_var hub = activate<Hub>(new HubImpl(orb));
        CORBA::String_var ior = orb->object_to_string(hub);
        std::cout << ior.in() << std::endl;
        std::thread(watch_standard_input, orb.in()).detach();
        orb->run();
        orb->destroy();
        _exit(0); // the watcher may still block in its read
    } catch (const CORBA::Exception &e) {
        std::cerr << "server: " << e._name() << std::endl;
        return 1;
    }
}
