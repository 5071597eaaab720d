//! Random IDL: types of each kind that has values, composed of each other.

use std::fmt::Write as _;

use fastrand::Rng;

/// A module of random types.
pub(crate) struct Module {
    pub(crate) text: String,
    pub(crate) definitions: Vec<Definition>,
}

/// A defined type, with its names in Rust.
#[derive(Clone)]
pub(crate) struct Definition {
    module: String,
    name: String,
    pub(crate) kind: Kind,
    /// The approximate number of primitives in a value.
    weight: usize,
    usage: Usage,
}

/// The form of a type in Rust.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Alias,
    /// An alias of an interface: `None` is nil.
    Reference,
    Other,
}

/// The permitted uses of a type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// A type of primitives only, which engines can copy as a block.
    Block,
    /// An enum with this number of enumerators, which may also be a discriminator.
    Enum(usize),
    /// An exception, which other types cannot contain.
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

/// The limit of a type's weight: values of heavier types are too long for many test cases.
const MAX_WEIGHT: usize = 60;

/// A module of at least `types` random types.
pub(crate) fn module(seed: u64, types: usize) -> Module {
    let mut generator = Generator {
        rng: Rng::with_seed(seed),
        module: format!("Seed{seed}"),
        text: String::new(),
        definitions: Vec::new(),
    };
    _ = writeln!(generator.text, "module Seed{seed} {{\n  interface Plain {{}};\n  interface Derived : Plain {{}};");
    while generator.definitions.len() < types {
        match generator.rng.u8(..20) {
            0..5 => generator.block(),
            5..9 => generator.structure(),
            9..13 => generator.union(),
            13..15 => generator.enumeration(),
            15..17 => generator.alias(),
            17..19 => generator.recursive(),
            _ => generator.exception(),
        }
    }
    generator.text.push_str("};\n");
    Module { text: generator.text, definitions: generator.definitions }
}

/// Regressions: types that an engine once handled incorrectly, each named after the fault.
const REGRESSIONS: [(&str, &str); 3] = [
    // In the second struct, the padding of the first is explicit; in a sequence, the encoded layout of the
    // elements differs from memory.
    ("PaddedInside", "struct PaddedInside { char m0; long m1; char m2; };"),
    ("PaddedOutside", "struct PaddedOutside { PaddedInside m0; long m1; };"),
    ("PaddedInSequence", "struct PaddedInSequence { octet m0; sequence<PaddedInside> m1; PaddedInside m2[2]; };"),
];

/// The module of regressions.
pub(crate) fn regressions() -> Module {
    let lines: String = REGRESSIONS.iter().map(|(_, text)| format!("  {text}\n")).collect();
    let definition = |name: &str| Definition {
        module: "Regressions".into(),
        name: name.into(),
        kind: Kind::Other,
        weight: 1,
        usage: Usage::Any,
    };
    let definitions = REGRESSIONS.iter().map(|(name, _)| definition(name)).collect();
    Module { text: format!("module Regressions {{\n{lines}}};\n"), definitions }
}

struct Generator {
    rng: Rng,
    module: String,
    text: String,
    definitions: Vec<Definition>,
}

/// The IDL text of a type, and its weight.
type Spec = (String, usize);

const INTEGERS: [&str; 6] = ["short", "unsigned short", "long", "unsigned long", "long long", "unsigned long long"];
const OTHERS: [&str; 6] = ["boolean", "char", "octet", "float", "double", "long double"];

impl Generator {
    fn name(&self) -> String {
        format!("T{}", self.definitions.len())
    }

    fn define(&mut self, kind: Kind, usage: Usage, weight: usize) {
        self.definitions.push(Definition { module: self.module.clone(), name: self.name(), kind, weight, usage });
    }

    fn primitive(&mut self) -> String {
        // More small types, so that sizes alternate.
        let all = [&INTEGERS[..], &OTHERS[..], &["octet", "char", "boolean", "double"]].concat();
        self.rng.choice(all).expect("the list is not empty").to_owned()
    }

    fn defined_type(&mut self, wanted: impl Fn(Usage) -> bool, room: usize) -> Option<Spec> {
        let fits = |it: &&Definition| wanted(it.usage) && it.weight <= room;
        let fitting: Vec<_> = self.definitions.iter().filter(fits).map(|it| (it.name.clone(), it.weight)).collect();
        self.rng.choice(fitting)
    }

    /// A type of primitives only.
    fn block_spec(&mut self, room: usize) -> Spec {
        if self.rng.u8(..4) == 0
            && let Some(defined_type) = self.defined_type(|usage| matches!(usage, Usage::Block | Usage::Enum(_)), room)
        {
            return defined_type;
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
            0..3 => self.defined_type(|usage| usage != Usage::Exception, room).unwrap_or_else(|| self.leaf()),
            3..5 if room >= 4 => {
                let (of, weight) = self.spec(room / 3);
                let bound = if self.rng.bool() { String::new() } else { format!(", {}", self.rng.u8(1..5)) };
                (format!("sequence<{of}{bound} >"), 1 + weight * 3)
            }
            _ => self.leaf(),
        }
    }

    /// Array dimensions, which may be empty, and the number of elements.
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
            let (of, weight) = spec(self, MAX_WEIGHT.saturating_sub(total).max(1));
            let (dimensions, count) = self.dimensions(MAX_WEIGHT.saturating_sub(total) / weight.max(1));
            total += weight * count;
            _ = write!(text, " {of} m{nth}{dimensions};");
        }
        text.push_str(" }");
        (text, total)
    }

    fn block(&mut self) {
        let (members, weight) = self.members(Self::block_spec);
        _ = writeln!(self.text, "  struct {}{members};", self.name());
        self.define(Kind::Other, Usage::Block, weight);
    }

    fn structure(&mut self) {
        let (members, weight) = self.members(Self::spec);
        _ = writeln!(self.text, "  struct {}{members};", self.name());
        self.define(Kind::Other, Usage::Any, weight);
    }

    fn exception(&mut self) {
        let (members, weight) = self.members(Self::spec);
        _ = writeln!(self.text, "  exception {}{members};", self.name());
        self.define(Kind::Other, Usage::Exception, weight);
    }

    fn enumeration(&mut self) {
        let count = self.rng.usize(1..=9);
        let name = self.name();
        let enumerators: Vec<_> = (0..count).map(|nth| format!("{name}_e{nth}")).collect();
        _ = writeln!(self.text, "  enum {name} {{ {} }};", enumerators.join(", "));
        self.define(Kind::Other, Usage::Enum(count), 1);
    }

    fn alias(&mut self) {
        let (spec, weight) = if self.rng.bool() { self.block_spec(MAX_WEIGHT) } else { self.spec(MAX_WEIGHT) };
        let (dimensions, count) = self.dimensions(MAX_WEIGHT / weight.max(1));
        _ = writeln!(self.text, "  typedef {spec} {}{dimensions};", self.name());
        let names_reference = ["Object", "Plain", "Derived"].contains(&&*spec)
            || self.definitions.iter().any(|it| it.name == spec && it.kind == Kind::Reference);
        let kind = if names_reference && dimensions.is_empty() { Kind::Reference } else { Kind::Alias };
        self.define(kind, Usage::Any, weight * count);
    }

    /// A struct or union with sequences of itself, or of another type that has sequences of it.
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
        self.define(Kind::Other, Usage::Any, 12 * weight.max(2));
    }

    fn union(&mut self) {
        let (switch, mut labels, is_finite) = self.discriminator();
        self.rng.shuffle(&mut labels);
        let mut default = self.rng.bool();
        if default && is_finite {
            // Leaves a value for the default.
            labels.pop();
        }
        let mut text = format!("  union {} switch ({switch}) {{", self.name());
        let mut heaviest = 0;
        let branches = self.rng.usize(1..=5);
        for nth in 0..branches {
            let count = [1, 1, 1, 2, 3][self.rng.usize(..5)].min(labels.len());
            let mut case_labels: Vec<_> = labels.drain(..count).map(|label| format!(" case {label}:")).collect();
            if default && (nth + 1 == branches || self.rng.u8(..5) == 0) {
                default = false;
                case_labels.insert(self.rng.usize(..=case_labels.len()), " default:".to_owned());
            }
            if case_labels.is_empty() {
                continue;
            }
            let (spec, weight) = if self.rng.bool() { self.block_spec(20) } else { self.spec(20) };
            let (dimensions, count) = self.dimensions(20 / weight.max(1));
            heaviest = heaviest.max(weight * count);
            _ = write!(text, "{} {spec} m{nth}{dimensions};", case_labels.concat());
        }
        _ = writeln!(self.text, "{text} }};");
        self.define(Kind::Other, Usage::Any, 1 + heaviest);
    }

    /// A discriminator type, labels, and whether the labels cover the type.
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
                let enums = self.definitions.iter().filter_map(|it| match it.usage {
                    Usage::Enum(count) => Some((it.name.clone(), count)),
                    _ => None,
                });
                match self.rng.choice(enums.collect::<Vec<_>>()) {
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
