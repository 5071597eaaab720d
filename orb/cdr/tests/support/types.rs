//! Random types, and random values of them, encoded as in the standard by code independent of the crate's.

use proptest::{collection::vec, prelude::*};
use spandrel_cdr::{ByteOrder, Label, TcKind, TypeCode, ValueModifier, Visibility};

use super::Model;

/// Types of all kinds with values in messages, recursive ones included.
pub(crate) fn type_codes() -> impl Strategy<Value = TypeCode> {
    leaves().prop_recursive(4, 24, 4, |inner| {
        let members = || vec(inner.clone(), 0..4);
        prop_oneof![
            (inner.clone(), 0..4_u32).prop_map(|(of, bound)| TypeCode::sequence(&of, bound).unwrap()),
            (inner.clone(), 1..4_u32).prop_map(|(of, len)| TypeCode::array(&of, len).unwrap()),
            (inner.clone(), 0..9_u32).prop_map(|(of, n)| TypeCode::alias(id("Alias", n), "Alias", &of).unwrap()),
            (members(), 0..9_u32)
                .prop_map(|(of, n)| { TypeCode::structure(id("Struct", n), "Struct", &named(of)).unwrap() }),
            (members(), 0..9_u32).prop_map(|(of, n)| recursive(of, n)),
            (discriminators(), members(), any::<bool>(), 0..9_u32)
                .prop_map(|(of, members, default, n)| union(&of, members, default, n)),
        ]
    })
}

/// Every simple kind, strings, `fixed`, enums and references.
pub(crate) fn leaves() -> impl Strategy<Value = TypeCode> {
    prop_oneof![
        4 => prop::sample::select(vec![
            TypeCode::SHORT, TypeCode::LONG, TypeCode::USHORT, TypeCode::ULONG, TypeCode::FLOAT, TypeCode::DOUBLE,
            TypeCode::BOOLEAN, TypeCode::CHAR, TypeCode::OCTET, TypeCode::LONGLONG, TypeCode::ULONGLONG,
            TypeCode::LONGDOUBLE, TypeCode::ANY, TypeCode::TYPE_CODE, TypeCode::STRING, TypeCode::object(),
        ]),
        1 => (0..5_u32).prop_map(TypeCode::string),
        1 => (1..=31_u16).prop_map(|digits| TypeCode::fixed(digits, 1).unwrap()),
        1 => enums(),
    ]
}

fn enums() -> impl Strategy<Value = TypeCode> {
    (1..5_usize).prop_map(|count| {
        let names: Vec<String> = (0..count).map(|nth| format!("e{nth}")).collect();
        TypeCode::enumeration(id("Enum", count), "Enum", &names).unwrap()
    })
}

fn discriminators() -> impl Strategy<Value = TypeCode> {
    prop_oneof![
        prop::sample::select(vec![
            TypeCode::SHORT,
            TypeCode::LONG,
            TypeCode::USHORT,
            TypeCode::ULONG,
            TypeCode::LONGLONG,
            TypeCode::ULONGLONG,
            TypeCode::CHAR,
            TypeCode::OCTET,
            TypeCode::alias("IDL:Number:1.0", "Number", &TypeCode::SHORT).unwrap(),
        ]),
        enums(),
    ]
}

/// Value types and other types whose type codes only are sent here.
pub(crate) fn mere_types() -> impl Strategy<Value = TypeCode> {
    (type_codes(), 0..9_u32).prop_flat_map(|(of, n)| {
        let member = [("state", of.clone(), Visibility::Private)];
        let base = TypeCode::value(id("Base", n), "Base", ValueModifier::Abstract, None, &member).unwrap();
        let again = TypeCode::recursive(id("Value", n)).unwrap();
        let members = [("next", again, Visibility::Public), ("of", of.clone(), Visibility::Private)];
        prop::sample::select(vec![
            of.clone(),
            TypeCode::value(id("Value", n), "Value", ValueModifier::Truncatable, Some(&base), &members).unwrap(),
            TypeCode::value_box(id("Box", n), "Box", &of).unwrap(),
            TypeCode::exception(id("Error", n), "Error", &[("of", of)]).unwrap(),
            TypeCode::native(id("Native", n), "Native").unwrap(),
            TypeCode::abstract_interface(id("Abstract", n), "Abstract").unwrap(),
            TypeCode::local_interface(id("Local", n), "Local").unwrap(),
            TypeCode::component(id("Component", n), "Component").unwrap(),
            TypeCode::home(id("Home", n), "Home").unwrap(),
            TypeCode::WSTRING,
            TypeCode::WCHAR,
            TypeCode::PRINCIPAL,
        ])
    })
}

fn id(name: &str, n: impl std::fmt::Display) -> String {
    format!("IDL:{name}{n}:1.0")
}

fn named(of: Vec<TypeCode>) -> Vec<(String, TypeCode)> {
    of.into_iter().enumerate().map(|(nth, of)| (format!("m{nth}"), of)).collect()
}

/// A struct with these members and a sequence of itself.
fn recursive(of: Vec<TypeCode>, n: u32) -> TypeCode {
    let mut members = named(of);
    let itself = TypeCode::recursive(id("Recursive", n)).unwrap();
    members.push(("again".to_owned(), TypeCode::sequence(&itself, 0).unwrap()));
    TypeCode::structure(id("Recursive", n), "Recursive", &members).unwrap()
}

fn union(discriminator: &TypeCode, members: Vec<TypeCode>, default: bool, n: u32) -> TypeCode {
    let most = discriminator.without_aliases().member_count().unwrap_or(usize::MAX);
    let members: Vec<_> = (0..)
        .zip(named(members).into_iter().take(most))
        .map(|(nth, (name, of))| (if default && nth == 0 { Label::Default } else { Label::Value(nth) }, name, of))
        .collect();
    TypeCode::union(id("Union", n), "Union", discriminator, &members).unwrap()
}

/// Pseudo-random numbers from a seed.
pub(crate) struct Seed(u64);

impl Seed {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A value of the type, determined by the seed; `room` shrinks with depth, so that recursive values end.
pub(crate) fn value(of: &TypeCode, seed: &mut Seed, room: u64, model: &mut Model) {
    let of = of.without_aliases();
    let inner = room / 2;
    match of.kind() {
        TcKind::Short | TcKind::UShort => model.primitive(2, &seed.next().to_be_bytes()[..2]),
        TcKind::Long | TcKind::ULong | TcKind::Float => model.primitive(4, &seed.next().to_be_bytes()[..4]),
        TcKind::LongLong | TcKind::ULongLong | TcKind::Double => model.primitive(8, &seed.next().to_be_bytes()),
        TcKind::LongDouble => {
            let (high, low) = (seed.next(), seed.next());
            model.primitive(8, &((u128::from(high) << 64) | u128::from(low)).to_be_bytes());
        }
        TcKind::Boolean => model.octet(seed.below(2)),
        TcKind::Char | TcKind::Octet => model.octet(seed.below(256)),
        TcKind::Any => {
            // Of one of two types, whose type codes have the same form in every version.
            let text = seed.below(2) == 0;
            model.len(if text { 18 } else { 7 });
            if text {
                model.len(0);
            }
            value(&if text { TypeCode::STRING } else { TypeCode::DOUBLE }, seed, inner, model);
        }
        TcKind::TypeCode => model.len(usize::try_from(seed.below(13)).unwrap()),
        TcKind::ObjRef => {
            model.string("IDL:I:1.0");
            let profiles = usize::try_from(seed.below(3)).unwrap();
            model.len(profiles);
            for tag in 0..profiles {
                model.len(tag);
                model.len(5);
                (0..5).for_each(|_| model.octet(seed.below(256)));
            }
        }
        TcKind::String => {
            let bound = u64::from(of.length().unwrap());
            let len = seed.below(if bound == 0 { 9 } else { bound + 1 });
            let text: String = (0..len).map(|_| char::from(u8::try_from(97 + seed.below(26)).unwrap())).collect();
            model.string(&text);
        }
        TcKind::Fixed => fixed(usize::from(of.fixed_digits().unwrap()), seed, model),
        TcKind::Enum => model.len(usize::try_from(seed.below(of.member_count().unwrap() as u64)).unwrap()),
        TcKind::Sequence => {
            let bound = u64::from(of.length().unwrap());
            let most = if bound == 0 { inner } else { inner.min(bound) };
            let len = seed.below(most + 1);
            model.len(usize::try_from(len).unwrap());
            let content = of.content_type().unwrap();
            (0..len).for_each(|_| value(&content, seed, inner, model));
        }
        TcKind::Array => {
            let content = of.content_type().unwrap();
            (0..of.length().unwrap()).for_each(|_| value(&content, seed, inner, model));
        }
        TcKind::Struct => {
            (0..of.member_count().unwrap()).for_each(|nth| value(&of.member_type(nth).unwrap(), seed, inner, model));
        }
        TcKind::Union => branch(&of, seed, inner, model),
        other => panic!("no values of {other} are made here"),
    }
}

fn fixed(digits: usize, seed: &mut Seed, model: &mut Model) {
    // Two digits per octet, the sign in the last half; an even number has a zero before it.
    let mut halves: Vec<u64> = (0..digits).map(|_| seed.below(10)).collect();
    if digits.is_multiple_of(2) {
        halves.insert(0, 0);
    }
    let is_zero = halves.iter().all(|half| *half == 0);
    halves.push(if is_zero || seed.below(2) == 0 { 0xc } else { 0xd });
    halves.chunks(2).for_each(|pair| model.octet(pair[0] << 4 | pair[1]));
}

fn branch(of: &TypeCode, seed: &mut Seed, room: u64, model: &mut Model) {
    let discriminator = of.discriminator_type().unwrap().without_aliases();
    let choices = discriminator.member_count().map_or(6, |count| count as u64);
    let chosen = seed.below(choices);
    match discriminator.kind() {
        TcKind::Octet | TcKind::Char => model.octet(chosen),
        TcKind::Short | TcKind::UShort => model.primitive(2, &chosen.to_be_bytes()[6..]),
        TcKind::LongLong | TcKind::ULongLong => model.primitive(8, &chosen.to_be_bytes()),
        _ => model.primitive(4, &chosen.to_be_bytes()[4..]),
    }
    // Labels are searched one after the other.
    let labels: Vec<Label> = (0..of.member_count().unwrap()).map(|nth| of.member_label(nth).unwrap()).collect();
    let claimed = labels.iter().position(|label| *label == Label::Value(i128::from(chosen)));
    if let Some(nth) = claimed.or_else(|| labels.iter().position(|label| *label == Label::Default)) {
        value(&of.member_type(nth).unwrap(), seed, room, model);
    }
}

/// The octets of that value after `start` others.
pub(crate) fn octets(of: &TypeCode, seed: u64, order: ByteOrder, start: usize) -> Vec<u8> {
    let mut model = Model::new(order, start);
    value(of, &mut Seed::new(seed), 8, &mut model);
    model.octets
}
