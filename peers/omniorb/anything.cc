// `anything --serve` serves tests/interop/idl/anything.idl, `anything --call REFERENCE` calls a server of it.
//
// With --no-euro the client or the server has no euro sign in its own code set for narrow texts, or the two have none in common. With --texts
// the client sends only that text (comma-separated hexadecimal code points), and one that must be rejected.
#include <cstdio>
#include <cstring>
#include <future>
#include <iconv.h>
#include <iostream>
#include <sstream>
#include <thread>
#include <unistd.h>

#include <omniORB4/CORBA.h>
// Without it omniORB has only four code sets: those whose libraries are linked and used.
#include <omniORB4/optionalFeatures.h>

#include "samples.hh"

using namespace samples;

namespace {

PortableServer::POA_var root;

template <class T> T *shared(T *value) {
    if (value) value->_add_ref();
    return value;
}

[[noreturn]] void mismatch(const std::exception &error) { throw Mismatch(error.what()); }

/// The code set of narrow texts in the program: the native one.
std::string native = "ISO-8859-1";

/// Conversion by the C library, whose tables are not omniORB's.
std::string converted(const char *to, const char *from, const std::string &text) {
    iconv_t both = iconv_open(to, from);
    expect(both != reinterpret_cast<iconv_t>(-1), "the C library does not know the code set");
    std::string out(text.size() * 4 + 4, 0);
    char *in = const_cast<char *>(text.data()), *end = &out[0];
    std::size_t rest = text.size(), room = out.size();
    std::size_t result = iconv(both, &in, &rest, &end, &room);
    iconv_close(both);
    // An unencodable text raises the same exception as in the ORB.
    if (result == static_cast<std::size_t>(-1)) throw CORBA::DATA_CONVERSION(1, CORBA::COMPLETED_NO);
    out.resize(out.size() - room);
    return out;
}

std::vector<unsigned> decoded(const char *text) {
    std::string wide = converted("UTF-32BE", native.c_str(), text);
    std::vector<unsigned> points;
    for (std::size_t i = 0; i < wide.size(); i += 4) {
        unsigned point = 0;
        for (std::size_t j = i; j < i + 4; ++j) point = point << 8 | static_cast<unsigned char>(wide[j]);
        points.push_back(point);
    }
    return points;
}

std::string encoded(const std::vector<unsigned> &points) {
    std::string wide;
    for (unsigned point : points) {
        for (int shift = 24; shift >= 0; shift -= 8) wide += static_cast<char>(point >> shift);
    }
    return converted(native.c_str(), "UTF-32BE", wide);
}

Units to_units(const std::vector<unsigned> &points) {
    Units made;
    made.length(static_cast<CORBA::ULong>(points.size()));
    for (CORBA::ULong i = 0; i < made.length(); ++i) made[i] = static_cast<CORBA::UShort>(points[i]);
    return made;
}

template <class Seq> std::vector<unsigned> to_points(const Seq &units) {
    std::vector<unsigned> made;
    for (CORBA::ULong i = 0; i < units.length(); ++i) made.push_back(units[i]);
    return made;
}

std::vector<unsigned> wide_points(const CORBA::WChar *text) {
    std::vector<unsigned> made;
    for (; *text; ++text) made.push_back(static_cast<unsigned>(*text));
    return made;
}

struct HalverImpl : POA_Anything::Halver {
    CORBA::Long half(CORBA::Long whole, CORBA::Long &rest) override {
        if (whole % 2) throw Mismatch("odd");
        rest = whole - whole / 2;
        return whole / 2;
    }
    void refuse(CORBA::ULong minor) override { throw CORBA::DATA_CONVERSION(minor, CORBA::COMPLETED_NO); }
};

struct DeskImpl : POA_Anything::Desk {
    CORBA::ORB_var orb;
    Halver_var halver;

    explicit DeskImpl(CORBA::ORB_ptr orb) : orb(CORBA::ORB::_duplicate(orb)) {
        HalverImpl *servant = new HalverImpl;
        PortableServer::ObjectId_var id = root->activate_object(servant);
        halver = servant->_this();
    }

    CORBA::Any *exchange(const char *name, const CORBA::Any &value) override {
        try {
            check("value", name, value);
            return new CORBA::Any(find(name).make());
        } catch (const std::runtime_error &error) {
            mismatch(error);
        }
    }
    CORBA::Any *pass(const CORBA::Any &a, CORBA::Any &b, CORBA::Any_OUT_arg c) override {
        c = new CORBA::Any(b);
        b = a;
        return new CORBA::Any(a);
    }
    char *show(const CORBA::Any &value) override { return CORBA::string_dup(samples::show(value).c_str()); }
    CORBA::Any *rebuild(const CORBA::Any &value) override { return samples::rebuild(value); }
    void fail(const CORBA::Any &what) override { throw Broke("as you asked", what); }

    CORBA::TypeCode_ptr exchange_type(const char *name, CORBA::TypeCode_ptr type) override {
        try {
            CORBA::Any any = find(name).make();
            CORBA::TypeCode_var own = any.type();
            if (!own->equivalent(type)) throw std::runtime_error("not equivalent");
            same("type", samples::show_type(type), samples::show_type(own));
            return own._retn();
        } catch (const std::runtime_error &error) {
            mismatch(error);
        }
    }
    CORBA::TypeCode_ptr pass_type(CORBA::TypeCode_ptr a, CORBA::TypeCode_ptr &b, CORBA::TypeCode_out c) override {
        c = b;
        b = CORBA::TypeCode::_duplicate(a);
        return CORBA::TypeCode::_duplicate(a);
    }
    char *show_type(CORBA::TypeCode_ptr type) override {
        return CORBA::string_dup(samples::show_type(type).c_str());
    }

    char *pass_string(const char *a, char *&b, CORBA::String_out c) override {
        c = b;
        b = CORBA::string_dup(a);
        return CORBA::string_dup(a);
    }
    char *said(const Units &points) override {
        return CORBA::string_dup(encoded(to_points(points)).c_str());
    }
    Units *heard(const char *text) override { return new Units(to_units(decoded(text))); }

    CORBA::WChar *pass_wstring(const CORBA::WChar *a, CORBA::WChar *&b, CORBA::WString_out c) override {
        c = b;
        b = CORBA::wstring_dup(a);
        return CORBA::wstring_dup(a);
    }
    CORBA::WChar pass_wchar(CORBA::WChar a, CORBA::WChar &b, CORBA::WChar &c) override {
        c = b;
        b = a;
        return a;
    }
    WideTexts *pass_texts(const WideTexts &texts) override { return new WideTexts(texts); }
    WidePair *pass_pair(const WidePair &pair) override { return new WidePair(pair); }
    WideChoice *pass_choice(const WideChoice &choice) override { return new WideChoice(choice); }
    Units *wide_units(const CORBA::WChar *text) override { return new Units(to_units(wide_points(text))); }
    CORBA::WChar *wide_text(const Units &points) override {
        CORBA::WString_var made = CORBA::wstring_alloc(points.length());
        for (CORBA::ULong i = 0; i < points.length(); ++i) made[i] = points[i];
        made[points.length()] = 0;
        return made._retn();
    }

    Halver_ptr the_halver() override { return Halver::_duplicate(halver); }
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
    DeskImpl *servant = new DeskImpl(orb);
    PortableServer::ObjectId_var id = root->activate_object(servant);
    CORBA::Object_var object = servant->_this();
    CORBA::String_var ior = orb->object_to_string(object);
    std::cout << ior.in() << std::endl;
    std::thread(watch_standard_input, orb).detach();
    orb->run();
    orb->destroy();
    _exit(0); // the watcher may still block in its read
}

int failed = 0;

void run(const std::string &name, const std::function<void()> &body) {
    std::ostringstream what;
    try {
        body();
        std::cout << "ok " << name << std::endl;
        return;
    } catch (const CORBA::SystemException &e) {
        what << e._name() << " (minor 0x" << std::hex << e.minor() << ")";
    } catch (const Mismatch &e) {
        what << "the server says " << e.what.in();
    } catch (const CORBA::Exception &e) {
        what << e._name();
    } catch (const std::exception &e) {
        what << e.what();
    }
    std::cout << "FAIL " << name << ": " << what.str() << std::endl;
    ++failed;
}

/// Every sample: as its type in C++, assembled from parts at run time, and its type alone.
void values(Desk_ptr desk) {
    CORBA::Any other;
    other <<= "other";
    for (const Sample &sample : all()) {
        run("any/" + sample.name, [&] {
            CORBA::Any made = sample.make();
            CORBA::Any_var back = desk->exchange(sample.name.c_str(), made);
            check("exchanged", sample.name, back.in());
            CORBA::Any b = other;
            CORBA::Any_var c, result;
            result = desk->pass(made, b, c.out());
            check("result", sample.name, result.in());
            check("b", sample.name, b);
            same("c", show(c.in()), show(other));
        });
        run("dynany/" + sample.name, [&] {
            CORBA::Any_var made = rebuild(sample.make());
            CORBA::Any_var back = desk->exchange(sample.name.c_str(), made);
            check("exchanged", sample.name, back.in());
            same("shown", CORBA::String_var(desk->show(made)).in(), show(sample.make()));
            back = desk->rebuild(made);
            check("rebuilt", sample.name, back.in());
        });
        run("typecode/" + sample.name, [&] {
            CORBA::Any made = sample.make();
            CORBA::TypeCode_var type = made.type();
            CORBA::TypeCode_var back = desk->exchange_type(sample.name.c_str(), type);
            expect(back->equivalent(type), "not equivalent");
            same("exchanged", show_type(back), show_type(type));
            same("shown", CORBA::String_var(desk->show_type(type)).in(), show_type(type));
            CORBA::TypeCode_var b = CORBA::TypeCode::_duplicate(CORBA::_tc_long), c, result;
            result = desk->pass_type(type, b.inout(), c.out());
            same("result", show_type(result), show_type(type));
            same("b", show_type(b), show_type(type));
            same("c", show_type(c), show_type(CORBA::_tc_long));
        });
    }
    run("exception/any", [&] {
        try {
            desk->fail(of_point());
        } catch (const Broke &broke) {
            same("why", broke.why.in(), "as you asked");
            check("what", "point", broke.what);
            return;
        }
        expect(false, "nothing raised");
    });
}

void narrow_text(Desk_ptr desk, const std::vector<unsigned> &points) {
    std::string text = encoded(points);
    Units_var heard = desk->heard(text.c_str());
    expect(to_points(heard.in()) == points, "heard otherwise");
    CORBA::String_var said = desk->said(to_units(points));
    same("said", said.in(), text);
    CORBA::String_var b = CORBA::string_dup("other"), c, result;
    result = desk->pass_string(text.c_str(), b.inout(), c.out());
    same("result", result.in(), text);
    same("b", b.in(), text);
    same("c", c.in(), "other");
}

void texts(Desk_ptr desk, bool euro) {
    run("string/empty", [&] { narrow_text(desk, {}); });
    run("string/ascii", [&] { narrow_text(desk, {'t', 'e', 'x', 't'}); });
    run("string/latin1", [&] { narrow_text(desk, {'c', 'a', 'f', 0xe9, 0xff}); });
    run("string/euro", [&] {
        if (euro) return narrow_text(desk, {'5', ' ', 0x20ac});
        try {
            CORBA::String_var said = desk->said(to_units({0x20ac}));
        } catch (const CORBA::DATA_CONVERSION &) {
            return;
        }
        expect(false, "it was said");
    });
}

void wide_text(Desk_ptr desk, const std::vector<unsigned> &points) {
    std::vector<CORBA::WChar> text(points.begin(), points.end());
    text.push_back(0);
    Units_var units = desk->wide_units(text.data());
    expect(to_points(units.in()) == points, "heard otherwise");
    CORBA::WString_var said = desk->wide_text(to_units(points));
    expect(wide_points(said) == points, "said otherwise");
    CORBA::WString_var b = CORBA::wstring_dup(L"other"), c, result;
    result = desk->pass_wstring(text.data(), b.inout(), c.out());
    expect(wide_points(result) == points && wide_points(b) == points, "came back otherwise");
    expect(!std::wcscmp(c, L"other"), "c is another");
}

void wide_texts(Desk_ptr desk) {
    run("wide/empty", [&] { wide_text(desk, {}); });
    run("wide/ascii", [&] { wide_text(desk, {'t', 'e', 'x', 't'}); });
    run("wide/euro", [&] { wide_text(desk, {'5', ' ', 0x20ac, 0xfeff, 0xfffd}); });
    run("wide/pair", [&] { wide_text(desk, {0xd83d, 0xde00}); }); // two code units, one character
    run("wide/wchar", [&] {
        CORBA::WChar b = 'b', c = 0, result = desk->pass_wchar(0x20ac, b, c);
        expect(result == 0x20ac && b == 0x20ac && c == 'b', "other characters");
    });
    run("wide/sequence", [&] {
        WideTexts texts;
        texts.length(3);
        texts[0] = CORBA::wstring_dup(L"one");
        texts[1] = CORBA::wstring_dup(L"");
        texts[2] = CORBA::wstring_dup(euro_text());
        WideTexts_var back = desk->pass_texts(texts);
        expect(back->length() == 3 && !std::wcscmp(back[0], L"one") && !std::wcscmp(back[1], L"") &&
                   !std::wcscmp(back[2], euro_text()),
               "other texts");
    });
    run("wide/struct", [&] {
        WidePair pair;
        pair.text = CORBA::wstring_dup(L"wide");
        pair.letter = 0xe9;
        WidePair_var back = desk->pass_pair(pair);
        expect(!std::wcscmp(back->text, L"wide") && back->letter == 0xe9, "another pair");
    });
    run("wide/union", [&] {
        WideChoice choice;
        choice.letter(0x20ac);
        choice._d(7);
        WideChoice_var back = desk->pass_choice(choice);
        expect(back->_d() == 7 && back->letter() == 0x20ac, "another choice");
    });
}

/// Completes with the outcome.
struct Teller : POA_Anything::AMI_HalverHandler {
    std::promise<std::string> told;

    void half(CORBA::Long result, CORBA::Long rest) override {
        told.set_value(std::to_string(result) + " and " + std::to_string(rest));
    }
    void refuse() override { told.set_value("not refused"); }
    void half_excep(Messaging::ExceptionHolder *holder) override { tell(holder); }
    void refuse_excep(Messaging::ExceptionHolder *holder) override { tell(holder); }

private:
    void tell(Messaging::ExceptionHolder *holder) {
        try {
            holder->raise_exception();
        } catch (const Mismatch &e) {
            told.set_value(std::string("Mismatch ") + e.what.in());
        } catch (const CORBA::SystemException &e) {
            told.set_value(std::string(e._name()) + " " + std::to_string(e.minor()));
        }
    }
};

template <class Send> std::string told(const Send &send) {
    Teller *teller = new Teller;
    PortableServer::ServantBase_var owner = teller;
    PortableServer::ObjectId_var id = root->activate_object(teller);
    AMI_HalverHandler_var handler = teller->_this();
    std::future<std::string> future = teller->told.get_future();
    send(handler.in());
    expect(future.wait_for(std::chrono::seconds(30)) == std::future_status::ready, "the handler was told nothing");
    std::string words = future.get();
    root->deactivate_object(id);
    return words;
}

void asynchronous(Halver_ptr halver) {
    run("async/result", [&] {
        same("told", told([&](AMI_HalverHandler_ptr h) { halver->sendc_half(h, -12); }), "-6 and -6");
    });
    run("async/exception", [&] {
        same("told", told([&](AMI_HalverHandler_ptr h) { halver->sendc_half(h, 5); }), "Mismatch odd");
    });
    run("async/system", [&] {
        same("told", told([&](AMI_HalverHandler_ptr h) { halver->sendc_refuse(h, 9); }), "DATA_CONVERSION 9");
    });
    run("async/poll", [&] {
        std::vector<AMI_HalverPoller *> pollers;
        for (CORBA::Long i = 0; i < 20; ++i) pollers.push_back(halver->sendp_half(2 * i));
        for (CORBA::Long i = 0; i < 20; ++i) {
            CORBA::Long half = -1, rest = -1;
            pollers[i]->half(30000, half, rest);
            pollers[i]->_remove_ref();
            expect(half == i && rest == i, "other halves");
        }
    });
    run("async/poll-exception", [&] {
        AMI_HalverPoller *poller = halver->sendp_half(7);
        try {
            CORBA::Long half, rest;
            poller->half(30000, half, rest);
        } catch (const Mismatch &e) {
            poller->_remove_ref();
            return same("what", e.what.in(), "odd");
        }
        expect(false, "nothing raised");
    });
}

/// The usage of a client.
struct Words {
    bool euro = true;
    std::vector<unsigned> texts, beyond;
};

/// Comma-separated hexadecimal numbers.
std::vector<unsigned> listed(const char *text) {
    std::vector<unsigned> points;
    std::istringstream in(text);
    for (std::string point; std::getline(in, point, ',');) points.push_back(std::stoul(point, nullptr, 16));
    return points;
}

template <class F> void refuses(F call) {
    try {
        call();
    } catch (const CORBA::DATA_CONVERSION &) {
        return;
    }
    expect(false, "it was said");
}

/// Only texts: this one, and another that cannot be encoded.
void said(Desk_ptr desk, const std::vector<unsigned> &sample, const std::vector<unsigned> &beyond) {
    run("text/ascii", [&] { narrow_text(desk, {'t', 'e', 'x', 't'}); });
    run("text/narrow", [&] { narrow_text(desk, sample); });
    run("text/wide", [&] { wide_text(desk, sample); });
    run("text/wchar", [&] {
        CORBA::WChar b = 'b', c = 0;
        CORBA::WChar result = desk->pass_wchar(sample[0], b, c);
        expect(result == sample[0] && b == sample[0] && c == 'b', "came back otherwise");
    });
    if (beyond.empty()) return;
    run("text/beyond", [&] {
        refuses([&] { Units_var heard = desk->heard(encoded(beyond).c_str()); });
        refuses([&] { CORBA::String_var said = desk->said(to_units(beyond)); });
    });
}

int call(CORBA::ORB_ptr orb, const char *reference, const Words &words) {
    CORBA::Object_var object = orb->string_to_object(reference);
    Desk_var desk = Desk::_narrow(object);
    if (words.texts.empty()) {
        values(desk);
        texts(desk, words.euro);
        wide_texts(desk);
        asynchronous(Halver_var(desk->the_halver()));
    } else {
        said(desk, words.texts, words.beyond);
    }
    run("shutdown", [&] { desk->shutdown(); });
    orb->destroy();
    return failed ? 1 : 0;
}

} // namespace

int main(int argc, char **argv) {
    for (int i = 1; i + 1 < argc; ++i) {
        if (!std::strcmp(argv[i], "-ORBnativeCharCodeSet")) native = argv[i + 1];
    }
    try {
        CORBA::ORB_var orb = CORBA::ORB_init(argc, argv);
        CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
        root = PortableServer::POA::_narrow(object);
        PortableServer::POAManager_var(root->the_POAManager())->activate();
        start(orb);
        if (argc == 2 && !std::strcmp(argv[1], "--serve")) return serve(orb);
        Words words;
        for (int i = 3; i < argc; ++i) {
            std::string word = argv[i];
            if (word == "--no-euro") words.euro = false;
            if (word == "--texts" && i + 1 < argc) words.texts = listed(argv[++i]);
            if (word == "--beyond" && i + 1 < argc) words.beyond = listed(argv[++i]);
        }
        if (argc >= 3 && !std::strcmp(argv[1], "--call")) {
            omniORB::setClientCallTimeout(30000);
            return call(orb, argv[2], words);
        }
        std::cerr << "usage: anything --serve | --call REFERENCE [--no-euro | --texts POINTS [--beyond POINTS]] [-ORB...]" << std::endl;
        return 2;
    } catch (const CORBA::Exception &e) {
        std::cerr << "anything: " << e._name() << std::endl;
        return 1;
    }
}
