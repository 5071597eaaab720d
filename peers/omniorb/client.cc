// The omniORB client of the interoperability suite: `client REFERENCE [--only PREFIX] [-ORB...]`.
//
// One line per case, `ok NAME` or `FAIL NAME: reason`, and exit code 1 if any failed. A case whose name does not start
// with PREFIX is not run and not printed.

#include <chrono>
#include <functional>
#include <iostream>
#include <thread>
#include <vector>

#include "cases.hh"
#include "generated_values.hh"

using namespace Interop;

namespace {

/// Seeds 0 to 2 are the plain values, the rest random.
constexpr CORBA::ULong seeds = 24;
constexpr CORBA::ULong time_limit_ms = 30000;

struct Failure {
    std::string what;
};

void require(const std::string &what) {
    if (!what.empty()) throw Failure{what};
}
template <class T, class U> void equal(const char *what, const T &seen, const U &expected) {
    if (seen == static_cast<T>(expected)) return;
    std::ostringstream s;
    s << what << ": expected " << expected << ", saw " << seen;
    throw Failure{s.str()};
}
void equal(const char *what, const char *seen, const char *expected) {
    require(difference(what, show(expected), show(seen)));
}
template <class T> void check(const char *what, const T &x, CORBA::ULong seed, CORBA::ULong role) {
    require(wrong(what, x, seed, role));
}
std::string describe(const CORBA::SystemException &e) {
    static const char *completed[] = {"YES", "NO", "MAYBE"};
    std::ostringstream s;
    s << "CORBA::" << e._name() << " (minor 0x" << std::hex << e.minor() << ", COMPLETED_" << completed[e.completed()]
      << ")";
    return s.str();
}

class Suite {
public:
    explicit Suite(std::string only) : only_(std::move(only)) {}

    void run(const std::string &name, const std::function<void()> &body) {
        if (name.compare(0, only_.size(), only_) != 0) return;
        std::string what = attempt(body);
        if (what.empty()) {
            std::cout << "ok " << name << std::endl;
        } else {
            std::cout << "FAIL " << name << ": " << what << std::endl;
            ++failed_;
        }
        ++ran_;
    }
    int verdict() const {
        std::cout << ran_ << " cases, " << failed_ << " failed" << std::endl;
        return failed_ == 0 && ran_ > 0 ? 0 : 1;
    }
    static std::string attempt(const std::function<void()> &body) {
        try {
            body();
            return "";
        } catch (const Failure &f) {
            return f.what;
        } catch (const Mismatch &e) {
            return std::string("the server says ") + e.what.in();
        } catch (const CORBA::SystemException &e) {
            return describe(e);
        } catch (const CORBA::Exception &e) {
            return e._name();
        }
    }

private:
    std::string only_;
    int ran_ = 0, failed_ = 0;
};

/// Runs `body`, which must raise the exception E, and passes it to `check`.
template <class E> void raises(const std::function<void()> &body, const std::function<void(const E &)> &check) {
    try {
        body();
    } catch (const E &e) {
        check(e);
        return;
    }
    throw Failure{"no exception"};
}
template <class E> void raises(const std::function<void()> &body) {
    raises<E>(body, [](const E &) {});
}

void for_seeds(const std::function<void(CORBA::ULong)> &body) {
    for (CORBA::ULong seed = 0; seed < seeds; ++seed) {
        std::string what = Suite::attempt([&] { body(seed); });
        if (!what.empty()) throw Failure{"seed " + std::to_string(seed) + ": " + what};
    }
}

CORBA::Context_ptr new_context() {
    int none = 0;
    CORBA::ORB_var orb = CORBA::ORB_init(none, nullptr); // the ORB that `main` has created
    CORBA::Context_var all, mine;
    orb->get_default_context(all.out());
    all->create_child("case", mine.out());
    return mine._retn();
}
void set(CORBA::Context_ptr context, const char *name, const char *text) {
    CORBA::Any value;
    value <<= text;
    context->set_one_value(name, value);
}

/// Polls until `done`, up to the time limit; for the effects of one-way calls.
void eventually(const char *what, const std::function<bool()> &done) {
    auto give_up = std::chrono::steady_clock::now() + std::chrono::milliseconds(time_limit_ms);
    while (!done()) {
        if (std::chrono::steady_clock::now() > give_up) throw Failure{std::string(what) + ": it never happened"};
        std::this_thread::yield();
    }
}

void primitives(Suite &suite, Primitives_ptr target) {
#define CASE(name, T) \
    suite.run("primitives/" #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            T a, b, c, result; \
            fill(a, seed, 1); \
            fill(b, seed, 2); \
            result = target->rotate_##name(seed, a, b, c); \
            check("result", result, seed, 3); \
            check("b", b, seed, 4); \
            check("c", c, seed, 5); \
        }); \
    });
    PRIMITIVE_CASES(CASE)
#undef CASE
}

void strings(Suite &suite, Strings_ptr target) {
#define CASE(name, bound) \
    suite.run("strings/" #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            CORBA::String_var a = make_text(seed, 1, bound), b = make_text(seed, 2, bound), c, result; \
            result = target->rotate_##name(seed, a, b.inout(), c.out()); \
            equal("result", result.in(), CORBA::String_var(make_text(seed, 3, bound)).in()); \
            equal("b", b.in(), CORBA::String_var(make_text(seed, 4, bound)).in()); \
            equal("c", c.in(), CORBA::String_var(make_text(seed, 5, bound)).in()); \
        }); \
    });
    STRING_CASES(CASE)
#undef CASE
}

#define VARIABLE(group, name, T) \
    suite.run(group #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            T a, b; \
            T##_var c, result; \
            fill(a, seed, 1); \
            fill(b, seed, 2); \
            result = target->rotate_##name(seed, a, b, c.out()); \
            check("result", result.in(), seed, 3); \
            check("b", b, seed, 4); \
            check("c", c.in(), seed, 5); \
        }); \
    });
#define FIXED(group, name, T) \
    suite.run(group #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            T a, b, c, result; \
            fill(a, seed, 1); \
            fill(b, seed, 2); \
            result = target->rotate_##name(seed, a, b, c); \
            check("result", result, seed, 3); \
            check("b", b, seed, 4); \
            check("c", c, seed, 5); \
        }); \
    });

void sequences(Suite &suite, Sequences_ptr target) {
#define CASE(name, T) VARIABLE("sequences/", name, T)
    SEQUENCE_CASES(CASE)
#undef CASE
}

void structs(Suite &suite, Structs_ptr target) {
#define CASE(name, T) FIXED("structs/", name, T)
    FIXED_STRUCT_CASES(CASE)
#undef CASE
#define CASE(name, T) VARIABLE("structs/", name, T)
    VARIABLE_STRUCT_CASES(CASE)
#undef CASE
}

/// An array by reference, which `check` needs to see its bounds.
template <class T, class Slice> const T &whole(const Slice *slice) { return *reinterpret_cast<const T *>(slice); }

void arrays(Suite &suite, Arrays_ptr target) {
#define CASE(name, T) \
    suite.run("arrays/" #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            T a, b; \
            T##_var c, result; \
            fill(a, seed, 1); \
            fill(b, seed, 2); \
            result = target->rotate_##name(seed, a, b, c.out()); \
            check("result", whole<T>(result.in()), seed, 3); \
            check("b", b, seed, 4); \
            check("c", whole<T>(c.in()), seed, 5); \
        }); \
    });
    VARIABLE_ARRAY_CASES(CASE)
#undef CASE
#define CASE(name, T) \
    suite.run("arrays/" #name, [&] { \
        for_seeds([&](CORBA::ULong seed) { \
            T a, b, c; \
            T##_var result; \
            fill(a, seed, 1); \
            fill(b, seed, 2); \
            result = target->rotate_##name(seed, a, b, c); \
            check("result", whole<T>(result.in()), seed, 3); \
            check("b", b, seed, 4); \
            check("c", c, seed, 5); \
        }); \
    });
    FIXED_ARRAY_CASES(CASE)
#undef CASE
}

/// A node in the client: the server calls it over the network.
struct OwnNode : POA_Interop::Node {
    explicit OwnNode(CORBA::Long id) : id_(id) {}
    CORBA::Long id() override { return id_; }
    void tell(const char *) override {}

private:
    CORBA::Long id_;
};

void references(Suite &suite, Objects_ptr target, PortableServer::POA_ptr root) {
    suite.run("objects/make", [&] {
        Node_var node = target->make(-5);
        equal("id", node->id(), -5);
        node->tell("Gr\xfc\xdf");
        Objects_var not_a_node = Objects::_narrow(node);
        equal("narrowed to another interface", CORBA::is_nil(not_a_node), true);
    });
    suite.run("objects/discard", [&] {
        Node_var node = target->make(6);
        equal("id", node->id(), 6);
        equal("gone before", node->_non_existent(), false);
        target->discard(node);
        equal("gone after", node->_non_existent(), true);
        raises<CORBA::OBJECT_NOT_EXIST>([&] { node->id(); }, [](const CORBA::OBJECT_NOT_EXIST &e) {
            equal("completed", int(e.completed()), int(CORBA::COMPLETED_NO));
        });
    });
    suite.run("objects/dangling", [&] {
        Node_var node = target->dangling();
        raises<CORBA::OBJECT_NOT_EXIST>([&] { node->id(); });
    });
    suite.run("objects/pass", [&] {
        Node_var a = target->make(1), b = target->make(2), c, result;
        result = target->pass(a, b.inout(), c.out());
        equal("result", result->id(), 1);
        equal("b", b->id(), 1);
        equal("c", c->id(), 2);
        equal("same object", result->_is_equivalent(a), true);
    });
    suite.run("objects/pass-nil", [&] {
        Node_var b = target->make(2), c, result;
        result = target->pass(Node::_nil(), b.inout(), c.out());
        equal("result is nil", CORBA::is_nil(result), true);
        equal("b is nil", CORBA::is_nil(b), true);
        equal("c", c->id(), 2);
        Node_var a = c, was_nil;
        result = target->pass(a, b.inout(), was_nil.out());
        equal("c is nil", CORBA::is_nil(was_nil), true);
        equal("result", result->id(), 2);
    });
    suite.run("objects/pass-object", [&] {
        Node_var node = target->make(3);
        CORBA::Object_var b = CORBA::Object::_duplicate(target), c, result;
        result = target->pass_object(node, b.inout(), c.out());
        Node_var same = Node::_narrow(result);
        equal("id", same->id(), 3);
        equal("c is the factory", c->_is_a(Objects::_PD_repoId), true);
        equal("c is no node", c->_is_a(Node::_PD_repoId), false);
        b = CORBA::Object::_nil();
        result = target->pass_object(CORBA::Object::_nil(), b.inout(), c.out());
        equal("nil", CORBA::is_nil(result) && CORBA::is_nil(b) && CORBA::is_nil(c), true);
    });
    suite.run("objects/pass-seq", [&] {
        NodeSeq nodes;
        nodes.length(3);
        nodes[0] = target->make(10);
        nodes[2] = target->make(30);
        NodeSeq_var back = target->pass_seq(nodes);
        equal("length", back->length(), 3);
        equal("first", back[0]->id(), 30);
        equal("second is nil", CORBA::is_nil(back[1]), true);
        equal("third", back[2]->id(), 10);
        nodes.length(0);
        back = target->pass_seq(nodes);
        equal("length", back->length(), 0);
    });
    suite.run("objects/pass-link", [&] {
        Link way;
        way.lead = 9;
        way.from = target->make(1);
        way.any_object = CORBA::Object::_duplicate(target);
        Link_var back = target->pass_link(way);
        equal("lead", int(back->lead), 9);
        equal("from is nil", CORBA::is_nil(back->from), true);
        equal("to", back->to->id(), 1);
        equal("object", back->any_object->_is_equivalent(target), true);
    });
    suite.run("objects/sum", [&] {
        NodeSeq nodes;
        nodes.length(3);
        nodes[0] = target->make(100);
        nodes[1] = target->make(200);
        equal("sum", target->sum(nodes), 299);
    });
    suite.run("objects/call-back", [&] {
        PortableServer::Servant_var<OwnNode> own = new OwnNode(40);
        PortableServer::ObjectId_var id = root->activate_object(own);
        NodeSeq nodes;
        nodes.length(2);
        nodes[0] = own->_this();
        nodes[1] = target->make(2);
        equal("sum", target->sum(nodes), 42);
        NodeSeq_var back = target->pass_seq(nodes);
        equal("our own", back[1]->id(), 40);
        root->deactivate_object(id);
        raises<CORBA::OBJECT_NOT_EXIST>([&] { target->sum(nodes); });
    });
    suite.run("objects/forwarded", [&] {
        Node_var node = target->forwarded(71);
        equal("id", node->id(), 71);
        equal("id again", node->id(), 71);
        node = target->forwarded_twice(72);
        equal("id over two", node->id(), 72);
        node = target->forwarded(73);
        node->tell("a one-way call has no reply to forward it with");
    });
}

void inheritance(Suite &suite, Lowest_ptr target) {
    suite.run("inheritance/inherited", [&] {
        equal("base", CORBA::String_var(target->base_name()).in(), "base");
        equal("left", CORBA::String_var(target->left_name()).in(), "left");
        equal("right", CORBA::String_var(target->right_name()).in(), "right");
        equal("diamond", CORBA::String_var(target->diamond_name()).in(), "diamond");
        target->base_value(-77);
        equal("value", target->base_value(), -77);
    });
    suite.run("inheritance/widened", [&] {
        Right_var right = Right::_duplicate(target);
        equal("base", CORBA::String_var(right->base_name()).in(), "base");
        CORBA::Object_var object = CORBA::Object::_duplicate(target);
        Left_var left = Left::_narrow(object);
        equal("left", CORBA::String_var(left->left_name()).in(), "left");
        equal("is a base", object->_is_a(Base::_PD_repoId), true);
        equal("is a hub", object->_is_a(Hub::_PD_repoId), false);
    });
    suite.run("inheritance/descend", [&] {
        Lowest::DiamondSeq_var found = target->descend(target);
        equal("length", found->length(), 2);
        equal("first", CORBA::String_var(found[0]->diamond_name()).in(), "diamond");
        equal("second", CORBA::String_var(found[1]->left_name()).in(), "left");
        raises<Lowest::Deep>([&] { target->descend(Base::_nil()); },
                             [](const Lowest::Deep &e) { equal("how", e.how.in(), "nil"); });
    });
}

const CORBA::ULong user_minor = 0x12345678;

void errors(Suite &suite, Errors_ptr target) {
    suite.run("errors/user", [&] {
        equal("none", target->raise_user(0, 0), 17);
        raises<Empty>([&] { target->raise_user(1, 0); });
        raises<Plain>([&] { target->raise_user(2, 99); }, [](const Plain &e) {
            equal("code", e.code, 99);
            equal("why", e.why.in(), GREETING);
        });
        raises<Mismatch>([&] { target->raise_user(4, 0); },
                         [](const Mismatch &e) { equal("what", e.what.in(), "as you asked"); });
    });
    suite.run("errors/user-rich", [&] {
        for_seeds([&](CORBA::ULong seed) {
            raises<Rich>([&] { target->raise_user(3, seed); }, [&](const Rich &seen) {
                Rich rich;
                Fill fill(seed, 1);
                each(fill, rich.lead);
                each(fill, rich.entry);
                each(fill, rich.numbers);
                each(fill, rich.hue);
                require(difference("lead", show(rich.lead), show(seen.lead)));
                require(difference("entry", show(rich.entry), show(seen.entry)));
                require(difference("numbers", show(rich.numbers), show(seen.numbers)));
                require(difference("hue", show(rich.hue), show(seen.hue)));
            });
        });
    });
#define CASE(X) \
    suite.run("errors/" #X, [&] { \
        for (CORBA::ULong completed = 0; completed < 3; ++completed) { \
            raises<CORBA::SystemException>([&] { target->raise_system(#X, user_minor + completed, completed); }, \
                                           [&](const CORBA::SystemException &e) { \
                                               equal("name", e._name(), #X); \
                                               equal("minor", e.minor(), user_minor + completed); \
                                               equal("completed", int(e.completed()), completed); \
                                           }); \
        } \
    });
    OMNIORB_FOR_EACH_SYS_EXCEPTION(CASE)
#undef CASE
    suite.run("errors/unknown-operation", [&] {
        Bulk_var bulk = Bulk::_unchecked_narrow(target);
        raises<CORBA::BAD_OPERATION>([&] { CORBA::String_var(bulk->text(0, "", 0)); },
                                     [](const CORBA::BAD_OPERATION &e) {
                                         equal("completed", int(e.completed()), int(CORBA::COMPLETED_NO));
                                     });
    });
    suite.run("errors/timeout", [&] {
        equal("in time", target->sleep(20), 20);
        omniORB::setClientCallTimeout(target, 150);
        std::string what = Suite::attempt([&] { raises<CORBA::TIMEOUT>([&] { target->sleep(1000); }); });
        omniORB::setClientCallTimeout(target, 0);
        require(what);
        equal("the next call", target->sleep(0), 0);
    });
}

void bulk(Suite &suite, Bulk_ptr target) {
    // Around zero, around the 8 KiB from which omniORB sends fragments, and far beyond.
    static const CORBA::ULong octets[] = {0, 1, 1000, 8100, 8150, 8176, 8191, 8192, 8193, 16384, 65536, 300001, 1000000};
#define CASE(name, T, unit) \
    suite.run("bulk/" #name, [&] { \
        CORBA::ULong seed = 0; \
        for (CORBA::ULong out : octets) { \
            for (CORBA::ULong in : {octets[seed % 13], 0u, 40000u}) { \
                T data, expected; \
                pattern(data, ++seed, out / unit); \
                T##_var answer = target->name(seed, data, in / unit); \
                pattern(expected, seed + 1, in / unit); \
                require(difference("answer", show(expected), show(answer.in()))); \
            } \
        } \
    });
    CASE(octets, OctetSeq, 1)
    CASE(doubles, DoubleSeq, 8)
    CASE(structs, BinStructSeq, 24)
    CASE(strings, StringSeq, 16)
#undef CASE
    suite.run("bulk/text", [&] {
        CORBA::ULong seed = 0;
        for (CORBA::ULong out : octets) {
            CORBA::ULong in = octets[seed % 13];
            ++seed;
            CORBA::String_var answer = target->text(seed, pattern_text(seed, out).c_str(), in);
            equal("answer", answer.in(), pattern_text(seed + 1, in).c_str());
        }
    });
    suite.run("bulk/threads", [&] {
        std::vector<std::thread> threads;
        std::vector<std::string> faults(8);
        for (CORBA::ULong t = 0; t < faults.size(); ++t) {
            threads.emplace_back([&, t] {
                omni_thread::ensure_self self;
                faults[t] = Suite::attempt([&] {
                    for (CORBA::ULong i = 0; i < 50; ++i) {
                        CORBA::ULong seed = t * 100 + i, n = (seed * 7919) % 20000;
                        DoubleSeq data, expected;
                        pattern(data, seed, n);
                        DoubleSeq_var answer = target->doubles(seed, data, n / 2);
                        pattern(expected, seed + 1, n / 2);
                        require(difference("answer", show(expected), show(answer.in())));
                    }
                });
            });
        }
        for (std::thread &thread : threads) thread.join();
        for (const std::string &fault : faults) require(fault);
    });
}

void attributes(Suite &suite, Attributes_ptr target, Objects_ptr objects) {
    suite.run("attributes/read-write", [&] {
        for_seeds([&](CORBA::ULong seed) {
            CORBA::ULong before = target->writes();
            CORBA::Short number;
            Colour hue;
            Point place;
            Record entry;
            DoubleSeq numbers;
            Cube block;
            CORBA::String_var title = make_text(seed, 2, unbounded);
            fill(number, seed, 1);
            fill(hue, seed, 3);
            fill(place, seed, 4);
            fill(entry, seed, 5);
            fill(numbers, seed, 6);
            fill(block, seed, 7);
            target->number(number);
            target->title(title);
            target->hue(hue);
            target->place(place);
            target->entry(entry);
            target->numbers(numbers);
            target->block(block);
            equal("writes", target->writes(), before + 7);
            check("number", target->number(), seed, 1);
            equal("title", CORBA::String_var(target->title()).in(), title.in());
            check("hue", target->hue(), seed, 3);
            check("place", target->place(), seed, 4);
            check("entry", Record_var(target->entry()).in(), seed, 5);
            check("numbers", DoubleSeq_var(target->numbers()).in(), seed, 6);
            check("block", whole<Cube>(Cube_var(target->block()).in()), seed, 7);
        });
    });
    suite.run("attributes/object", [&] {
        Node_var node = objects->make(8);
        target->peer(node);
        equal("id", Node_var(target->peer())->id(), 8);
        target->peer(Node::_nil());
        equal("is nil", CORBA::is_nil(Node_var(target->peer())), true);
    });
    suite.run("attributes/read-only", [&] {
        equal("third", target->third(), DOUBLE_THIRD);
        equal("tenth", target->tenth(), 0.1);
    });
}

void oneways(Suite &suite, Oneways_ptr target) {
    suite.run("oneways/ping", [&] {
        CORBA::ULong before = target->pings();
        for (int i = 0; i < 100; ++i) target->ping();
        eventually("100 pings", [&] { return target->pings() == before + 100; });
    });
    suite.run("oneways/note", [&] {
        CORBA::ULong before = target->notes();
        for_seeds([&](CORBA::ULong seed) {
            CORBA::String_var text = make_text(seed, 1, unbounded);
            Record entry;
            DoubleSeq numbers;
            fill(entry, seed, 2);
            fill(numbers, seed, 3);
            target->note(seed, text, entry, numbers);
        });
        eventually("all notes", [&] {
            equal("complaint", CORBA::String_var(target->complaint()).in(), "");
            return target->notes() == before + seeds;
        });
    });
}

void hub(Suite &suite, Hub_ptr target) {
    suite.run("hub/nothing", [&] {
        for (int i = 0; i < 100; ++i) target->nothing();
    });
    suite.run("hub/constants", [&] {
        Constants_var c = target->all_constants();
        equal("SHORT_LEAST", c->short_least, SHORT_LEAST);
        equal("USHORT_MOST", c->ushort_most, USHORT_MOST);
        equal("LONG_LEAST", c->long_least, LONG_LEAST);
        equal("ULONG_MIXED", c->ulong_mixed, ULONG_MIXED);
        equal("LONGLONG_LEAST", c->longlong_least, LONGLONG_LEAST);
        equal("ULONGLONG_MOST", c->ulonglong_most, ULONGLONG_MOST);
        equal("FLOAT_HALF", c->float_half, FLOAT_HALF);
        equal("DOUBLE_THIRD", c->double_third, DOUBLE_THIRD);
        equal("YES", c->yes, YES);
        equal("TAB", c->tab, TAB);
        equal("E_ACUTE", c->e_acute, E_ACUTE);
        equal("OCTET_MOST", c->octet_most, OCTET_MOST);
        equal("GREETING", c->greeting.in(), GREETING);
        equal("BOUND", c->bound, BOUND);
        equal("FAVOURITE", c->favourite, FAVOURITE);
    });
    suite.run("hub/mixed", [&] {
        Record entry;
        fill(entry, 7, 2);
        CORBA::Double third;
        CORBA::String_var reversed;
        Colour next;
        equal("length", target->mixed("Gr\xfc\xdf", third, entry, reversed.out(), ultra_violet, next), 4);
        equal("third", third, DOUBLE_THIRD);
        check("entry", entry, 7, 4);
        equal("reversed", reversed.in(), "\xdf\xfcrG");
        equal("next", next, red);
    });
    suite.run("hub/mixed-raises", [&] {
        Record entry;
        fill(entry, 7, 2);
        CORBA::Double third;
        CORBA::String_var reversed;
        Colour next;
        raises<Mismatch>([&] { target->mixed("mismatch", third, entry, reversed.out(), red, next); });
        raises<Plain>([&] { target->mixed("plain", third, entry, reversed.out(), red, next); }, [](const Plain &e) {
            equal("code", e.code, -1);
            equal("why", e.why.in(), "plain");
        });
        check("entry", entry, 7, 2); // untouched
    });
    suite.run("hub/keywords", [&] {
        CORBA::Long loop;
        equal("product", target->type(6, 7, loop), 42);
        equal("difference", loop, -1);
    });
    suite.run("hub/context", [&] {
        CORBA::Context_var none = new_context();
        equal("no surroundings", CORBA::String_var(target->surroundings("", none)).in(), "- - - ");
        CORBA::Context_var context = new_context();
        set(context, "user.name", "Grace");
        set(context, "user.secret", "not sent");
        equal("surroundings", CORBA::String_var(target->surroundings("again", context)).in(), "- Grace - again");
        set(context, "locale", "de");
        equal("surroundings", CORBA::String_var(target->surroundings("", context)).in(), "de Grace - ");
    });
    suite.run("hub/implicit", [&] {
        equal("is a hub", target->_is_a(Hub::_PD_repoId), true);
        equal("is an object", target->_is_a("IDL:omg.org/CORBA/Object:1.0"), true);
        equal("is a node", target->_is_a(Node::_PD_repoId), false);
        equal("is gone", target->_non_existent(), false);
    });
}

} // namespace

int main(int argc, char **argv) {
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        std::string only;
        if (argc == 4 && std::strcmp(argv[2], "--only") == 0) {
            only = argv[3];
        } else if (argc != 2) {
            std::cerr << "usage: client REFERENCE [--only PREFIX] [-ORB...]" << std::endl;
            return 2;
        }
        // Every call is bounded, and an error is reported rather than tried again.
        omniORB::setClientCallTimeout(time_limit_ms);
        omniORB::installTransientExceptionHandler(0, [](void *, CORBA::ULong, const CORBA::TRANSIENT &) -> CORBA::Boolean {
            return false;
        });
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        PortableServer::POA_var root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();

        object = orb->string_to_object(argv[1]);
        Hub_var target = Hub::_narrow(object);
        if (CORBA::is_nil(target)) {
            std::cerr << "client: the reference is not a hub" << std::endl;
            return 1;
        }
        Suite suite(only);
        hub(suite, target);
        primitives(suite, Primitives_var(target->the_primitives()));
        strings(suite, Strings_var(target->the_strings()));
        sequences(suite, Sequences_var(target->the_sequences()));
        structs(suite, Structs_var(target->the_structs()));
        arrays(suite, Arrays_var(target->the_arrays()));
        Objects_var objects = target->the_objects();
        references(suite, objects, root);
        inheritance(suite, Lowest_var(target->the_lowest()));
        errors(suite, Errors_var(target->the_errors()));
        bulk(suite, Bulk_var(target->the_bulk()));
        attributes(suite, Attributes_var(target->the_attributes()), objects);
        oneways(suite, Oneways_var(target->the_oneways()));
        suite.run("shutdown", [&] { target->shutdown(); });
        int verdict = suite.verdict();
        orb->destroy();
        return verdict;
    } catch (const CORBA::SystemException &e) {
        std::cerr << "client: " << describe(e) << std::endl;
        return 1;
    }
}
