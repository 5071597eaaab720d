// The generator of values that both sides of the interoperability suite share; tests/interop/README.md specifies it.
//
// `fill` makes value(seed, role) of a type, `show` prints one; two values are equal exactly when their
// texts are: floating-point numbers as bits, characters as numbers.
#ifndef GENERATED_VALUES_HH
#define GENERATED_VALUES_HH

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>

#include "interop.hh"

constexpr std::uint32_t unbounded = 0;

/// SplitMix64 with three plain seeds in front: 0 least values, 1 most, 2 a count.
class Fill {
public:
    static constexpr bool fills = true;

    Fill(std::uint32_t seed, std::uint32_t role)
        : seed_(seed), state_((std::uint64_t(seed) << 32) | role), count_(role * 16) {}

    template <class T> std::enable_if_t<std::is_integral_v<T>> scalar(T &x) {
        if constexpr (std::is_same_v<T, CORBA::Boolean>) {
            x = pick(0, 1, count_ & 1, 1) & 1;
        } else if constexpr (std::is_same_v<T, CORBA::Char>) {
            x = static_cast<T>(pick(0, 0xff, 'A' + count_ % 26, 1));
        } else {
            x = integer<T>();
        }
    }
    void scalar(CORBA::Float &x) { x = real<CORBA::Float, std::uint32_t>(0x7f800000u, 0x40000000u); }
    void scalar(CORBA::Double &x) {
        x = real<CORBA::Double, std::uint64_t>(0x7ff0000000000000u, 0x4000000000000000u);
    }
    /// A whole number of 64 significant bits times a power of two, which x87 and IEEE quadruple both hold.
    void scalar(CORBA::LongDouble &x) {
        std::uint64_t whole = ~std::uint64_t(0);
        int power = 16320;
        bool negative = seed_ == 0;
        if (seed_ == 2) {
            whole = 2 * count_++ + 1;
            power = -1;
        } else if (seed_ > 2) {
            whole = next() | (std::uint64_t(1) << 63);
            power = int(next() % 32001) - 16000;
            negative = next() & 1;
        }
        x = std::ldexp(static_cast<CORBA::LongDouble>(whole), power);
        if (negative) x = -x;
    }
    template <class E> std::enable_if_t<std::is_enum_v<E>> scalar(E &x) {
        std::uint64_t last = Interop::ultra_violet;
        x = static_cast<E>(pick(0, last, count_ % (last + 1), last + 1));
    }
    template <class S> void text(S &&x, std::uint32_t bound) {
        std::uint64_t longest = bound ? bound : 40;
        std::uint64_t len = pick(0, longest, std::min(count_ % 5 + 3, longest), longest + 1);
        std::string s;
        for (std::uint64_t i = 0; i < len; ++i) {
            s.push_back(static_cast<char>(seed_ > 2 ? next() % 255 + 1 : pick(0, 0xff, 'a' + count_ % 26, 1)));
        }
        x = CORBA::string_dup(s.c_str());
    }
    template <class S> CORBA::ULong length(S &s, std::uint32_t bound) {
        std::uint64_t longest = bound ? bound : 3;
        std::uint64_t len = seed_ == 0 ? 0 : seed_ == 1 ? longest : std::min<std::uint64_t>(2, longest);
        if (seed_ > 2) {
            std::uint64_t r = next();
            len = r % 16 == 15 ? 257 : r % 9;
            if (bound) len = std::min<std::uint64_t>(len, bound);
        }
        s.length(static_cast<CORBA::ULong>(len));
        return s.length();
    }
    template <CORBA::UShort D, CORBA::UShort S> void decimal(_omni_Fixed<D, S> &x) {
        CORBA::Long digits;
        scalar(digits);
        x = CORBA::Fixed(CORBA::Long(digits % 1000000000)) / CORBA::Fixed(100);
    }

private:
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15u;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }
    /// One of the plain values, or a random one modulo `range` (1: any).
    std::uint64_t pick(std::uint64_t least, std::uint64_t most, std::uint64_t counted, std::uint64_t range) {
        switch (seed_) {
        case 0: return least;
        case 1: return most;
        case 2: ++count_; return counted;
        default: return range == 1 ? next() : next() % range;
        }
    }
    template <class T> T integer() {
        const T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
        switch (seed_) {
        case 0: return least;
        case 1: return most;
        case 2: return static_cast<T>(count_++);
        default: break;
        }
        switch (next() & 15) {
        case 0: return least;
        case 1: return most;
        case 2: return 0;
        case 3: return 1;
        case 4: return static_cast<T>(~std::uint64_t(0));
        default: return static_cast<T>(next());
        }
    }
    template <class T, class Bits> T real(Bits exponent, Bits top) {
        typedef std::numeric_limits<T> limits;
        switch (seed_) {
        case 0: return -limits::max();
        case 1: return limits::max();
        case 2: return static_cast<T>(count_++) + T(0.5);
        default: break;
        }
        switch (next() & 15) {
        case 0: return -T(0);
        case 1: return limits::infinity();
        case 2: return -limits::infinity();
        case 3: return limits::denorm_min();
        case 4: return limits::min();
        default: break;
        }
        Bits bits = static_cast<Bits>(next());
        if ((bits & exponent) == exponent) bits &= ~top; // neither an infinity nor a NaN
        T x;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }

    std::uint32_t seed_;
    std::uint64_t state_;
    std::uint64_t count_;
};

class Show {
public:
    static constexpr bool fills = false;

    template <class T> std::enable_if_t<std::is_integral_v<T> || std::is_enum_v<T>> scalar(T &x) {
        if constexpr (std::is_signed_v<T> && !std::is_same_v<T, char>) {
            out_ << static_cast<long long>(x) << ' ';
        } else {
            out_ << static_cast<unsigned long long>(x) << ' ';
        }
    }
    void scalar(CORBA::Float &x) { bits(&x, sizeof x); }
    void scalar(CORBA::Double &x) { bits(&x, sizeof x); }
    void scalar(CORBA::LongDouble &x) { bits(&x, 10); } // the rest of an x87 extended is padding
    template <class S> void text(S &&x, std::uint32_t) {
        const char *s = static_cast<const char *>(x);
        out_ << '"';
        for (; *s; ++s) {
            if (*s >= ' ' && *s <= '~') out_ << *s;
            else out_ << "\\x" << std::hex << unsigned(static_cast<unsigned char>(*s)) << std::dec;
        }
        out_ << "\" ";
    }
    template <class S> CORBA::ULong length(S &s, std::uint32_t) {
        out_ << '#' << s.length() << ' ';
        return s.length();
    }
    template <CORBA::UShort D, CORBA::UShort S> void decimal(_omni_Fixed<D, S> &x) {
        CORBA::String_var s = x.NP_asString();
        out_ << s.in() << ' ';
    }
    std::string str() const { return out_.str(); }

private:
    void bits(const void *at, int n) {
        const unsigned char *p = static_cast<const unsigned char *>(at);
        out_ << std::hex;
        while (n-- > 0) out_ << (p[n] >> 4) << (p[n] & 15);
        out_ << std::dec << ' ';
    }
    std::ostringstream out_;
};

// `each(v, x)` passes every part of x to v, in the order of declaration.

template <class V, class T>
std::enable_if_t<std::is_arithmetic_v<T> || std::is_enum_v<T>> each(V &v, T &x) { v.scalar(x); }
template <class V, CORBA::UShort D, CORBA::UShort S> void each(V &v, _omni_Fixed<D, S> &x) { v.decimal(x); }
template <class V> void each(V &v, _CORBA_String_member &x) { v.text(x, unbounded); }
template <class V> void each(V &v, CORBA::String_var &x) { v.text(x, unbounded); }
template <class V> void each(V &v, _CORBA_String_element x) { v.text(x, unbounded); }
template <class V, class T, std::size_t N> void each(V &v, T (&x)[N]) {
    for (T &item : x) each(v, item);
}
template <class V, class S> void each_in(V &v, S &s, std::uint32_t bound) {
    CORBA::ULong n = v.length(s, bound);
    for (CORBA::ULong i = 0; i < n; ++i) each(v, s[i]);
}
template <class V, class S> void each_text(V &v, S &s, std::uint32_t bound, std::uint32_t text_bound) {
    CORBA::ULong n = v.length(s, bound);
    for (CORBA::ULong i = 0; i < n; ++i) v.text(s[i], text_bound);
}

namespace Interop {
#define EACH(T, ...) \
    template <class V> void each(V &v, T &x) { __VA_ARGS__ }
#define EACH_SEQ(T, bound) EACH(T, each_in(v, x, bound);)

using ::each;
EACH(BinStruct, v.scalar(x.s); v.scalar(x.c); v.scalar(x.l); v.scalar(x.o); v.scalar(x.d);)
EACH(Point, v.scalar(x.x); v.scalar(x.y);)
EACH(Packed, v.scalar(x.a); v.scalar(x.b); v.scalar(x.c); v.scalar(x.d); v.scalar(x.e);)
EACH(Segment, v.scalar(x.lead); each(v, x.from); each(v, x.to); v.scalar(x.hue); v.scalar(x.open);)
EACH(Scalars, v.scalar(x.s); v.scalar(x.us); v.scalar(x.l); v.scalar(x.ul); v.scalar(x.ll); v.scalar(x.ull);
     v.scalar(x.f); v.scalar(x.d); v.scalar(x.b); v.scalar(x.c); v.scalar(x.o); v.scalar(x.e); v.scalar(x.h);)
EACH(Grid, v.scalar(x.lead); each(v, x.hash); each(v, x.cells); each(v, x.tail); each(v, x.corners);)
EACH_SEQ(ShortSeq, unbounded)
EACH_SEQ(UShortSeq, unbounded)
EACH_SEQ(LongSeq, unbounded)
EACH_SEQ(ULongSeq, unbounded)
EACH_SEQ(LongLongSeq, unbounded)
EACH_SEQ(ULongLongSeq, unbounded)
EACH_SEQ(FloatSeq, unbounded)
EACH_SEQ(DoubleSeq, unbounded)
EACH_SEQ(BooleanSeq, unbounded)
EACH_SEQ(CharSeq, unbounded)
EACH_SEQ(OctetSeq, unbounded)
EACH_SEQ(ColourSeq, unbounded)
EACH_SEQ(StringSeq, unbounded)
EACH(ShortTextSeq, each_text(v, x, unbounded, BOUND);)
EACH_SEQ(BinStructSeq, unbounded)
EACH_SEQ(PointSeq, unbounded)
EACH_SEQ(PackedSeq, unbounded)
EACH_SEQ(GridSeq, unbounded)
EACH(CubeSeq, CORBA::ULong n = v.length(x, unbounded);
     for (CORBA::ULong i = 0; i < n; ++i) for (int j = 0; j < 2; ++j) each(v, x[i][j]);)
EACH_SEQ(DoubleSeqSeq, unbounded)
EACH_SEQ(StringSeqSeq, unbounded)
EACH_SEQ(BoundedLongSeq, 3)
EACH(BoundedTextSeq, each_text(v, x, BOUND, BOUND);)
EACH_SEQ(BoundedNestedSeq, 2)
EACH(Record, each(v, x.who); v.scalar(x.tall); v.text(x.nickname, BOUND); v.scalar(x.hue); each(v, x.blob);
     each(v, x.stretch); each(v, x.remarks); each(v, x.aliases); each(v, x.few); v.scalar(x.tail);)
EACH_SEQ(RecordSeq, unbounded)
EACH(Envelope, v.scalar(x.stamp); each(v, x.entry); each(v, x.copies); each(v, x.table);)
EACH(Keywords, v.scalar(x.type); v.scalar(x.fn); v.scalar(x.match); each(v, x.impl); v.scalar(x.self);
     v.scalar(x.interface);)

template <class V> void each(V &v, Choice &x) {
    Colour hue = red;
    if constexpr (!V::fills) hue = x._d();
    v.scalar(hue);
    if (hue == red) {
        CORBA::Double number = 0;
        if constexpr (!V::fills) number = x.number();
        v.scalar(number);
        if constexpr (V::fills) x.number(number);
    } else if (hue == ultra_violet) {
        if constexpr (V::fills) x._default();
    } else {
        Point place = {0, 0};
        if constexpr (!V::fills) place = x.place();
        each(v, place);
        if constexpr (V::fills) {
            x.place(place);
            x._d(hue);
        }
    }
}
template <class V> void each(V &v, Wish &x) {
    if constexpr (V::fills) {
        CORBA::Octet which, rest;
        CORBA::String_var word;
        StringSeq words;
        v.scalar(which);
        switch (which & 3) {
        case 0:
            each(v, word);
            x.word(word._retn());
            break;
        case 3:
            v.scalar(rest);
            x.rest(rest);
            x._d(1000);
            break;
        default:
            each(v, words);
            x.words(words);
            x._d((which & 3) + 1);
        }
    } else {
        CORBA::Long which = x._d();
        v.scalar(which);
        if (which == -1) {
            v.text(x.word(), unbounded);
        } else if (which == 2 || which == 3) {
            each(v, x.words());
        } else {
            CORBA::Octet rest = x.rest();
            v.scalar(rest);
        }
    }
}
template <class V> void each(V &v, Tree &x) {
    if constexpr (V::fills) {
        CORBA::Octet shape;
        v.scalar(shape);
        auto leaf = [&](Tree &tree) {
            CORBA::String_var text;
            each(v, text);
            tree.leaf(text._retn());
        };
        if (shape & 1) return leaf(x);
        Forest leaves, both;
        leaves.length(shape >> 1 & 3);
        for (CORBA::ULong i = 0; i < leaves.length(); ++i) leaf(leaves[i]);
        both.length(2);
        both[0].below(leaves);
        leaf(both[1]);
        x.below(both);
    } else {
        CORBA::Boolean is_leaf = x._d();
        v.scalar(is_leaf);
        if (is_leaf) v.text(x.leaf(), unbounded);
        else each_in(v, x.below(), unbounded);
    }
}
EACH(Kinds, v.scalar(x.lead); each(v, x.first); each(v, x.cost); each(v, x.second); each(v, x.third);
     each(v, x.costs);)
#undef EACH_SEQ
#undef EACH
} // namespace Interop

template <class T> void fill(T &x, std::uint32_t seed, std::uint32_t role) {
    Fill fill(seed, role);
    each(fill, x);
}
template <class T> std::string show(const T &x) {
    Show show;
    each(show, const_cast<T &>(x));
    return show.str();
}
inline std::string show(const char *x) {
    Show show;
    show.text(x, unbounded);
    return show.str();
}
inline std::string show(char *x) { return show(static_cast<const char *>(x)); }
inline char *make_text(std::uint32_t seed, std::uint32_t role, std::uint32_t bound) {
    CORBA::String_var s;
    Fill(seed, role).text(s, bound);
    return s._retn();
}
/// The first difference of `seen` from `expected`; empty if there is none.
inline std::string difference(const char *what, const std::string &expected, const std::string &seen) {
    if (expected == seen) return "";
    auto cut = [](const std::string &s) { return s.size() > 120 ? s.substr(0, 120) + "..." : s; };
    return std::string(what) + ": expected " + cut(expected) + ", saw " + cut(seen);
}
template <class T>
std::string wrong(const char *what, const T &seen, std::uint32_t seed, std::uint32_t role) {
    T expected;
    fill(expected, seed, role);
    return difference(what, show(expected), show(seen));
}

// The bulk patterns: the i-th of the elements for `seed`.

inline CORBA::Octet pattern_octet(std::uint32_t seed, std::uint32_t i) { return seed * 31 + i * 7 + (i >> 8); }
inline Interop::BinStruct pattern_struct(std::uint32_t seed, std::uint32_t i) {
    Interop::BinStruct x;
    x.s = static_cast<CORBA::Short>(i);
    x.c = static_cast<CORBA::Char>(i);
    x.l = static_cast<CORBA::Long>(seed * 1000 + i);
    x.o = static_cast<CORBA::Octet>(i >> 3);
    x.d = i / 8.0;
    return x;
}
inline std::string pattern_string(std::uint32_t seed, std::uint32_t i) {
    return "s" + std::to_string(i) + "-" + std::to_string(seed);
}
inline std::string pattern_text(std::uint32_t seed, std::uint32_t n) {
    std::string s(n, ' ');
    for (std::uint32_t i = 0; i < n; ++i) s[i] = i % 97 == 96 ? '\xe4' : static_cast<char>('a' + (seed + i) % 26);
    return s;
}
inline void pattern(Interop::OctetSeq &s, std::uint32_t seed, std::uint32_t n) {
    s.length(n);
    for (std::uint32_t i = 0; i < n; ++i) s[i] = pattern_octet(seed, i);
}
inline void pattern(Interop::DoubleSeq &s, std::uint32_t seed, std::uint32_t n) {
    s.length(n);
    for (std::uint32_t i = 0; i < n; ++i) s[i] = seed + i * 0.25;
}
inline void pattern(Interop::BinStructSeq &s, std::uint32_t seed, std::uint32_t n) {
    s.length(n);
    for (std::uint32_t i = 0; i < n; ++i) s[i] = pattern_struct(seed, i);
}
inline void pattern(Interop::StringSeq &s, std::uint32_t seed, std::uint32_t n) {
    s.length(n);
    for (std::uint32_t i = 0; i < n; ++i) s[i] = CORBA::string_dup(pattern_string(seed, i).c_str());
}

#endif
