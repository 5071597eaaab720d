//! Random IDL: every kind of type that has values, made of each other.

use std::fmt::Write as _;

use fastrand::Rng;

/// A module of random types.
pub(crate) struct Module {
    pub(crate) text: String,
    pub(crate) definitions: Vec<Definition>,
}

/// A type that was defined, with which names it has in Rust.
#[derive(Clone)]
pub(crate) struct Definition {
    module: String,
    name: String,
    pub(crate) kind: Kind,
    /// How many primitives a value has, more or less.
    weight: usize,
    sort: Sort,
}

/// Whether a type is one of its own in Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Alias,
    /// An alias of an interface: nil is `None` of it.
    Reference,
    Other,
}

/// Where a type may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    /// Of primitives alone: what engines move as blocks.
    Block,
    /// An enum, which can switch unions too, with so many enumerators.
    Enum(usize),
    /// Nowhere but by itself.
    Exception,
    Any,
}

impl Definition {
    pub(crate) fn scoped_name(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    pub(crate) fn rust_path(&self) -> String {
        format!("{}::{}", self.module.to_lowercase(), self.name)
    }

    pub(crate) fn rust_type_code(&self) -> String {
        format!("{}::{}_tc", self.module.to_lowercase(), self.name.to_lowercase())
    }
}

/// Values of heavier types are too long for many of them to be tried.
const MOST_WEIGHT: usize = 60;

/// So many types, and some that they need.
pub(crate) fn module(seed: u64, types: usize) -> Module {
    let mut maker = Maker {
        rng: Rng::with_seed(seed),
        module: format!("Seed{seed}"),
        text: String::new(),
        definitions: Vec::new(),
    };
    _ = writeln!(maker.text, "module Seed{seed} {{\n  interface Plain {{}};\n  interface Derived : Plain {{}};");
    while maker.definitions.len() < types {
        match maker.rng.u8(..20) {
            0..5 => maker.block(),
            5..9 => maker.structure(),
            9..13 => maker.union(),
            13..15 => maker.enumeration(),
            15..17 => maker.alias(),
            17..19 => maker.recursive(),
            _ => maker.exception(),
        }
    }
    maker.text.push_str("};\n");
    Module { text: maker.text, definitions: maker.definitions }
}

/// Types that an engine was once wrong about, each named after what was wrong.
const FOUND: [(&str, &str); 3] = [
    // Within the second struct, the first has its padding explicit; in a sequence its elements do not lie as in memory.
    ("PaddedInside", "struct PaddedInside { char m0; long m1; char m2; };"),
    ("PaddedOutside", "struct PaddedOutside { PaddedInside m0; long m1; };"),
    ("PaddedInSequence", "struct PaddedInSequence { octet m0; sequence<PaddedInside> m1; PaddedInside m2[2]; };"),
];

/// A module of types that were found.
pub(crate) fn found() -> Module {
    let lines: String = FOUND.iter().map(|(_, text)| format!("  {text}\n")).collect();
    let definition = |name: &str| Definition {
        module: "Found".into(),
        name: name.into(),
        kind: Kind::Other,
        weight: 1,
        sort: Sort::Any,
    };
    let definitions = FOUND.iter().map(|(name, _)| definition(name)).collect();
    Module { text: format!("module Found {{\n{lines}}};\n"), definitions }
}

struct Maker {
    rng: Rng,
    module: String,
    text: String,
    definitions: Vec<Definition>,
}

/// A type as it is written, and its weight.
type Spec = (String, usize);

const INTEGERS: [&str; 6] = ["short", "unsigned short", "long", "unsigned long", "long long", "unsigned long long"];
const OTHERS: [&str; 6] = ["boolean", "char", "octet", "float", "double", "long double"];

impl Maker {
    fn name(&self) -> String {
        format!("T{}", self.definitions.len())
    }

    fn define(&mut self, kind: Kind, sort: Sort, weight: usize) {
        self.definitions.push(Definition { module: self.module.clone(), name: self.name(), kind, weight, sort });
    }

    fn primitive(&mut self) -> String {
        // Small and large ones alternate best.
        let all = [&INTEGERS[..], &OTHERS[..], &["octet", "char", "boolean", "double"]].concat();
        self.rng.choice(all).expect("some").to_owned()
    }

    fn known(&mut self, wanted: impl Fn(Sort) -> bool, room: usize) -> Option<Spec> {
        let fits = |it: &&Definition| wanted(it.sort) && it.weight <= room;
        let known: Vec<_> = self.definitions.iter().filter(fits).map(|it| (it.name.clone(), it.weight)).collect();
        self.rng.choice(known)
    }

    /// A type of primitives alone.
    fn block_spec(&mut self, room: usize) -> Spec {
        if self.rng.u8(..4) == 0
            && let Some(known) = self.known(|sort| matches!(sort, Sort::Block | Sort::Enum(_)), room)
        {
            return known;
        }
        (self.primitive(), 1)
    }

    fn leaf(&mut self) -> Spec {
        let bound = self.rng.u8(1..9);
        let text = match self.rng.u8(..16) {
            0..2 => "string".to_owned(),
            2 => format!("string<{bound}>"),
            3 => "wstring".to_owned(),
            4 => format!("wstring<{bound}>"),
            5 => "wchar".to_owned(),
            6 => {
                let digits = self.rng.u8(1..=31);
                format!("fixed<{digits}, {}>", self.rng.u8(..=digits))
            }
            7 => return (["any", "CORBA::TypeCode"][self.rng.usize(..2)].to_owned(), 8),
            8 => ["Object", "Plain", "Derived"][self.rng.usize(..3)].to_owned(),
            _ => self.primitive(),
        };
        (text, 1)
    }

    fn spec(&mut self, room: usize) -> Spec {
        match self.rng.u8(..9) {
            0..3 => self.known(|sort| sort != Sort::Exception, room).unwrap_or_else(|| self.leaf()),
            3..5 if room >= 4 => {
                let (of, weight) = self.spec(room / 3);
                let bound = if self.rng.bool() { String::new() } else { format!(", {}", self.rng.u8(1..5)) };
                (format!("sequence<{of}{bound} >"), 1 + weight * 3)
            }
            _ => self.leaf(),
        }
    }

    /// Nothing, or dimensions; and how many elements there are.
    fn dimensions(&mut self, room: usize) -> Spec {
        let mut text = String::new();
        let mut count = 1;
        let wanted = [0, 0, 0, 1, 1, 2, 3][self.rng.usize(..7)];
        for _ in 0..wanted {
            let len = [1, 2, 2, 3, 3, 4][self.rng.usize(..6)];
            if count * len <= room {
                count *= len;
                _ = write!(text, "[{len}]");
            }
        }
        (text, count)
    }

    /// ` { long m0; … }`
    fn members(&mut self, mut spec: impl FnMut(&mut Self, usize) -> Spec) -> Spec {
        let mut text = String::from(" {");
        let mut total = 0;
        for nth in 0..self.rng.usize(1..=7) {
            let (of, weight) = spec(self, MOST_WEIGHT.saturating_sub(total).max(1));
            let (dimensions, count) = self.dimensions(MOST_WEIGHT.saturating_sub(total) / weight.max(1));
            total += weight * count;
            _ = write!(text, " {of} m{nth}{dimensions};");
        }
        text.push_str(" }");
        (text, total)
    }

    fn block(&mut self) {
        let (members, weight) = self.members(Self::block_spec);
        _ = writeln!(self.text, "  struct {}{members};", self.name());
        self.define(Kind::Other, Sort::Block, weight);
    }

    fn structure(&mut self) {
        let (members, weight) = self.members(Self::spec);
        _ = writeln!(self.text, "  struct {}{members};", self.name());
        self.define(Kind::Other, Sort::Any, weight);
    }

    fn exception(&mut self) {
        let (members, weight) = self.members(Self::spec);
        _ = writeln!(self.text, "  exception {}{members};", self.name());
        self.define(Kind::Other, Sort::Exception, weight);
    }

    fn enumeration(&mut self) {
        let count = self.rng.usize(1..=9);
        let name = self.name();
        let enumerators: Vec<_> = (0..count).map(|nth| format!("{name}_e{nth}")).collect();
        _ = writeln!(self.text, "  enum {name} {{ {} }};", enumerators.join(", "));
        self.define(Kind::Other, Sort::Enum(count), 1);
    }

    fn alias(&mut self) {
        let (spec, weight) = if self.rng.bool() { self.block_spec(MOST_WEIGHT) } else { self.spec(MOST_WEIGHT) };
        let (dimensions, count) = self.dimensions(MOST_WEIGHT / weight.max(1));
        _ = writeln!(self.text, "  typedef {spec} {}{dimensions};", self.name());
        let names_reference = ["Object", "Plain", "Derived"].contains(&&*spec)
            || self.definitions.iter().any(|it| it.name == spec && it.kind == Kind::Reference);
        let kind = if names_reference && dimensions.is_empty() { Kind::Reference } else { Kind::Alias };
        self.define(kind, Sort::Any, weight * count);
    }

    /// A struct or union that contains sequences of itself, and maybe of another one that contains sequences of it.
    fn recursive(&mut self) {
        let name = self.name();
        let (spec, weight) = self.spec(4);
        let bound = if self.rng.bool() { "" } else { ", 2" };
        match self.rng.u8(..3) {
            0 => {
                let tail = if self.rng.bool() { " octet m2;" } else { "" };
                _ = writeln!(self.text, "  struct {name};\n  typedef sequence<{name}{bound}> {name}s;");
                _ = writeln!(self.text, "  struct {name} {{ {spec} m0; {name}s m1;{tail} }};");
            }
            1 => {
                _ = writeln!(self.text, "  union {name};\n  typedef sequence<{name}{bound}> {name}s;");
                _ = writeln!(self.text, "  union {name} switch (long) {{ case 1: case -7: {name}s m0;");
                _ = writeln!(self.text, "    case 2: struct {name}Node {{ {spec} m0; {name}s m1; }} m1;");
                _ = writeln!(self.text, "    default: {spec} m2; }};");
            }
            _ => {
                _ = writeln!(self.text, "  struct {name}; struct {name}Other;");
                _ = writeln!(self.text, "  typedef sequence<{name}Other> {name}Others;");
                _ = writeln!(self.text, "  typedef sequence<{name}{bound}> {name}s;");
                _ = writeln!(self.text, "  struct {name} {{ {spec} m0; {name}Others m1; }};");
                _ = writeln!(self.text, "  struct {name}Other {{ octet m0; {name}s m1; long long m2; }};");
            }
        }
        self.define(Kind::Other, Sort::Any, 12 * weight.max(2));
    }

    fn union(&mut self) {
        let (switch, mut labels, is_finite) = self.discriminator();
        self.rng.shuffle(&mut labels);
        let mut default = self.rng.bool();
        if default && is_finite {
            // One value at least is left for the default to take.
            labels.pop();
        }
        let mut text = format!("  union {} switch ({switch}) {{", self.name());
        let mut heaviest = 0;
        let branches = self.rng.usize(1..=5);
        for nth in 0..branches {
            let count = [1, 1, 1, 2, 3][self.rng.usize(..5)].min(labels.len());
            let mut mine: Vec<_> = labels.drain(..count).map(|label| format!(" case {label}:")).collect();
            if default && (nth + 1 == branches || self.rng.u8(..5) == 0) {
                default = false;
                mine.insert(self.rng.usize(..=mine.len()), " default:".to_owned());
            }
            if mine.is_empty() {
                continue;
            }
            let (spec, weight) = if self.rng.bool() { self.block_spec(20) } else { self.spec(20) };
            let (dimensions, count) = self.dimensions(20 / weight.max(1));
            heaviest = heaviest.max(weight * count);
            _ = write!(text, "{} {spec} m{nth}{dimensions};", mine.concat());
        }
        _ = writeln!(self.text, "{text} }};");
        self.define(Kind::Other, Sort::Any, 1 + heaviest);
    }

    /// A type, labels, and whether these are all that there are.
    fn discriminator(&mut self) -> (String, Vec<String>, bool) {
        let labels = |labels: &[&str]| labels.iter().map(|&label| label.to_owned()).collect();
        let letters = ["'a'", "'\\n'", "'\\xff'", "'0'", "' '", "'\\\\'", "'\\''", "'Z'"];
        let wide = ["L'a'", "L'\\u20ac'", "L'\\uffff'", "L'0'", "L'\\xe4'", "L' '"];
        match self.rng.u8(..11) {
            0 => ("short".into(), labels(&["-32768", "-1", "0", "1", "32767", "77"]), false),
            1 => ("unsigned short".into(), labels(&["0", "1", "2", "65535", "32768", "77"]), false),
            2 => ("long".into(), labels(&["-2147483648", "-1", "0", "1", "2147483647", "77"]), false),
            3 => ("unsigned long".into(), labels(&["0", "1", "2", "4294967295", "2147483648"]), false),
            4 => ("long long".into(), labels(&["-9223372036854775808", "-1", "0", "1", "9223372036854775807"]), false),
            5 => ("unsigned long long".into(), labels(&["0", "1", "2", "18446744073709551615", "4294967296"]), false),
            6 => ("boolean".into(), labels(&["TRUE", "FALSE"]), true),
            7 => ("char".into(), labels(&letters), false),
            8 => ("wchar".into(), labels(&wide), false),
            9 => ("octet".into(), labels(&["0", "1", "2", "255", "128"]), false),
            _ => {
                let known = self.definitions.iter().filter_map(|it| match it.sort {
                    Sort::Enum(count) => Some((it.name.clone(), count)),
                    _ => None,
                });
                match self.rng.choice(known.collect::<Vec<_>>()) {
                    Some((name, count)) => {
                        let labels = (0..count).map(|nth| format!("{name}_e{nth}")).collect();
                        (name, labels, true)
                    }
                    None => ("boolean".into(), labels(&["TRUE", "FALSE"]), true),
                }
            }
        }
    }
}
