//! Random types and values.

use proptest::{collection::vec, prelude::*, sample::select};
use spandrel_cdr::{ByteOrder, CharSet, GiopVersion, Label, TcKind, TypeCode, Wire};

use crate::{Value, size_and_alignment};

/// Wire settings with each byte order, version and narrow code set.
pub fn wires() -> impl Strategy<Value = Wire> {
    let orders = select(vec![ByteOrder::Big, ByteOrder::Little]);
    let versions = select(vec![GiopVersion::V1_0, GiopVersion::V1_1, GiopVersion::V1_2]);
    let sets = select(vec![CharSet::Latin1, CharSet::Utf8]);
    (orders, versions, sets).prop_map(|(order, version, char_set)| Wire { char_set, ..Wire::new(order, version) })
}

/// Types of all kinds except value types, abstract and local interfaces, and recursive types.
pub fn types() -> impl Strategy<Value = TypeCode> {
    leaves().prop_recursive(4, 24, 4, |inner| {
        // IDL has no empty structs; a sequence of them could have any length.
        let members = || vec(inner.clone(), 1..4).prop_map(with_names);
        prop_oneof![
            3 => (inner.clone(), 0..4_u32).prop_map(|(of, bound)| TypeCode::sequence(&of, bound).unwrap()),
            2 => (inner.clone(), 1..4_u32).prop_map(|(of, len)| TypeCode::array(&of, len).unwrap()),
            1 => inner.clone().prop_map(|of| TypeCode::alias("IDL:Alias:1.0", "Alias", &of).unwrap()),
            4 => members().prop_map(|of| TypeCode::structure("IDL:Struct:1.0", "Struct", &of).unwrap()),
            3 => (discriminators(), members(), any::<Option<prop::sample::Index>>()).prop_map(union),
        ]
    })
}

fn with_names(of: Vec<TypeCode>) -> Vec<(String, TypeCode)> {
    of.into_iter().enumerate().map(|(nth, of)| (format!("m{nth}"), of)).collect()
}

fn leaves() -> impl Strategy<Value = TypeCode> {
    let simple = vec![
        TypeCode::SHORT,
        TypeCode::LONG,
        TypeCode::USHORT,
        TypeCode::ULONG,
        TypeCode::LONGLONG,
        TypeCode::ULONGLONG,
        TypeCode::FLOAT,
        TypeCode::DOUBLE,
        TypeCode::LONGDOUBLE,
        TypeCode::BOOLEAN,
        TypeCode::OCTET,
        TypeCode::CHAR,
        TypeCode::WCHAR,
        TypeCode::ANY,
        TypeCode::TYPE_CODE,
        TypeCode::object(),
    ];
    prop_oneof![
        8 => select(simple),
        2 => (0..6_u32).prop_map(TypeCode::string),
        1 => (0..6_u32).prop_map(TypeCode::wstring),
        1 => (1..=31_u16).prop_flat_map(|d| (Just(d), 0..=d)).prop_map(|(d, s)| TypeCode::fixed(d, s as i16).unwrap()),
        1 => enums(),
    ]
}

fn enums() -> impl Strategy<Value = TypeCode> {
    (1..5_usize).prop_map(|count| {
        let names: Vec<String> = (0..count).map(|nth| format!("e{nth}")).collect();
        TypeCode::enumeration("IDL:Enum:1.0", "Enum", &names).unwrap()
    })
}

fn discriminators() -> impl Strategy<Value = TypeCode> {
    let simple = vec![
        TypeCode::SHORT,
        TypeCode::LONG,
        TypeCode::USHORT,
        TypeCode::ULONG,
        TypeCode::LONGLONG,
        TypeCode::ULONGLONG,
        TypeCode::OCTET,
        TypeCode::CHAR,
        TypeCode::BOOLEAN,
    ];
    prop_oneof![4 => select(simple), 1 => enums()]
}

fn union(parts: (TypeCode, Vec<(String, TypeCode)>, Option<prop::sample::Index>)) -> TypeCode {
    let (switch, members, default) = parts;
    let max = match switch.kind() {
        TcKind::Boolean => 2,
        TcKind::Enum => switch.member_count().unwrap(),
        _ => usize::MAX,
    };
    let members: Vec<_> = members.into_iter().take(max).collect();
    let default = default.filter(|_| !members.is_empty()).map(|default| default.index(members.len()));
    let label = |nth| if default == Some(nth) { Label::Default } else { Label::Value(nth as i128) };
    let members: Vec<_> = members.into_iter().enumerate().map(|(nth, (name, of))| (label(nth), name, of)).collect();
    TypeCode::union("IDL:Union:1.0", "Union", &switch, &members).unwrap()
}

/// Values of a type.
///
/// # Panics
/// If the type contains a value type.
pub fn values_of(of: &TypeCode) -> BoxedStrategy<Value> {
    values(of, Depth { anys: 1, sequences: 4 })
}

/// The remaining nesting levels of anys and sequences, which could nest without end.
#[derive(Clone, Copy)]
struct Depth {
    anys: u32,
    sequences: u32,
}

fn values(of: &TypeCode, depth: Depth) -> BoxedStrategy<Value> {
    let of = of.without_aliases();
    if let Some((size, _)) = size_and_alignment(&of) {
        return bits(&of, size);
    }
    match of.kind() {
        TcKind::Null | TcKind::Void => Just(Value::Nothing).boxed(),
        TcKind::WChar => any::<char>().prop_map(Value::Wide).boxed(),
        TcKind::String | TcKind::WString => text(&of),
        TcKind::Fixed => {
            let digits = vec(0..10_u8, usize::from(of.fixed_digits().unwrap()));
            // There is no negative zero.
            let value = |(negative, digits): (bool, Vec<u8>)| Value::Digits {
                negative: negative && digits.iter().any(|digit| *digit > 0),
                digits,
            };
            (any::<bool>(), digits).prop_map(value).boxed()
        }
        TcKind::Struct | TcKind::Except => {
            let members: Vec<_> = crate::members_of(&of).iter().map(|of| values(of, depth)).collect();
            members.prop_map(Value::Parts).boxed()
        }
        // Recursive types recurse through sequences.
        TcKind::Sequence if depth.sequences == 0 => Just(Value::Parts(Vec::new())).boxed(),
        TcKind::Sequence => {
            let depth = Depth { sequences: depth.sequences - 1, ..depth };
            let bound = of.length().unwrap() as usize;
            let max = if bound == 0 { 5 } else { bound };
            vec(values(&of.content_type().unwrap(), depth), 0..=max).prop_map(Value::Parts).boxed()
        }
        TcKind::Array => {
            let len = of.length().unwrap() as usize;
            vec(values(&of.content_type().unwrap(), depth), len).prop_map(Value::Parts).boxed()
        }
        TcKind::Union => union_values(&of, depth),
        // Ends the nesting of anys.
        TcKind::Any if depth.anys == 0 => Just(Value::Any(TypeCode::NULL, Box::new(Value::Nothing))).boxed(),
        TcKind::Any => types()
            .prop_flat_map(move |of| (Just(of.clone()), values(&of, Depth { anys: depth.anys - 1, ..depth })))
            .prop_map(|(of, value)| Value::Any(of, Box::new(value)))
            .boxed(),
        TcKind::TypeCode => types().prop_map(Value::Type).boxed(),
        TcKind::ObjRef => {
            let profiles = vec((any::<u32>(), vec(any::<u8>(), 0..9)), 0..3);
            ("[ -~]{0,9}", profiles).prop_map(|(type_id, profiles)| Value::Reference(type_id, profiles)).boxed()
        }
        other => panic!("values of {other} are not supported"),
    }
}

fn bits(of: &TypeCode, size: usize) -> BoxedStrategy<Value> {
    let max = match of.kind() {
        TcKind::Boolean => 1,
        TcKind::Enum => of.member_count().unwrap() as u128 - 1,
        _ => u128::MAX >> (128 - 8 * size),
    };
    prop_oneof![1 => 0..=max.min(9), 3 => 0..=max].prop_map(Value::Bits).boxed()
}

fn text(of: &TypeCode) -> BoxedStrategy<Value> {
    let bound = of.length().unwrap() as usize;
    let max = if bound == 0 { 12 } else { bound };
    let plain = (b' '..=b'~').prop_map(char::from);
    let latin1 = (1..=0xff_u8).prop_map(char::from);
    let wide = any::<char>().prop_filter("strings cannot contain NUL", |c| *c != '\0');
    let text =
        |letter: BoxedStrategy<char>| vec(letter, 0..=max).prop_map(|text| Value::Text(text.into_iter().collect()));
    prop_oneof![2 => text(plain.boxed()), 1 => text(latin1.boxed()), 1 => text(wide.boxed())].boxed()
}

fn union_values(of: &TypeCode, depth: Depth) -> BoxedStrategy<Value> {
    let of = of.clone();
    let switch = of.discriminator_type().unwrap().without_aliases();
    let switch_is_wide = switch.kind() == TcKind::WChar;
    // Labels are more likely than other numbers.
    let size = size_and_alignment(&switch).map_or(4, |(size, _)| size);
    let label_value = move |label: Label| match label {
        Label::Value(label) if switch_is_wide => char::from_u32(u32::try_from(label).ok()?).map(Value::Wide),
        Label::Value(label) => Some(Value::Bits(label.cast_unsigned() & (u128::MAX >> (128 - 8 * size)))),
        Label::Default => None,
    };
    let labels = (0..of.member_count().unwrap()).filter_map(|nth| label_value(of.member_label(nth).unwrap()));
    let labels: Vec<_> = labels.collect();
    let any_discriminator = values(&switch, depth);
    let discriminator = if labels.is_empty() {
        any_discriminator
    } else {
        prop_oneof![3 => select(labels), 1 => any_discriminator].boxed()
    };
    let branch = move |discriminator: Value| match crate::member_for(&of, crate::label_of(&switch, &discriminator)) {
        Some(member) => values(&member, depth)
            .prop_map(move |value| Value::Union(Box::new(discriminator.clone()), Some(Box::new(value))))
            .boxed(),
        None => Just(Value::Union(Box::new(discriminator), None)).boxed(),
    };
    discriminator.prop_flat_map(branch).boxed()
}
