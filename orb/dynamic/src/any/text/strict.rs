//! The strict JSON form: each value as [`DynAny::to_json`](crate::DynAny::to_json) writes it, without the liberties of the
//! text form. What is left open here is checked where the value is read.

use spandrel_cdr::{TcKind, TypeCode};

use super::{
    number::{is_canonical, is_canonical_long_double},
    scan::TextError,
    tree::{Form, Node},
};

/// The largest number of a `float` in its shortest digits.
const MAX_FLOAT: f64 = 3.402_823_5e38;

/// Checks the form of a value, without that of its components. In an `any`, values describe their types.
pub(super) fn check(type_code: &TypeCode, node: &Node<'_>, is_in_any: bool) -> Result<(), TextError> {
    let failed = |message: &str| Err(TextError { message: message.to_owned(), at: node.at });
    let fits = |is_fit: bool, message: &str| if is_fit { Ok(()) } else { failed(message) };
    match (type_code.kind(), &node.form) {
        (TcKind::Boolean, form) => fits(matches!(form, Form::Word(_)), "expected `true` or `false`"),
        (TcKind::Octet | TcKind::Short | TcKind::UShort | TcKind::Long | TcKind::ULong, form) => {
            fits(matches!(form, Form::Word(_)), "expected an integer")
        }
        (TcKind::LongLong | TcKind::ULongLong, form) => {
            fits(is_integer(form), "expected an integer, or its digits in quotes")
        }
        (TcKind::Float, Form::Word(word)) => {
            fits(word.parse::<f64>().is_ok_and(|value| value.abs() <= MAX_FLOAT), "expected a number of type `float`")
        }
        (TcKind::Float, form) => fits(is_text(form, is_canonical::<f32>), "expected a number"),
        (TcKind::Double, Form::Text(text)) => fits(is_canonical::<f64>(text), "expected a number"),
        (TcKind::LongDouble, Form::Text(text)) => fits(is_canonical_long_double(text), "expected a number"),
        (TcKind::Fixed, form) => {
            fits(is_text(form, |text| is_fixed(type_code, text)), "expected the digits of a `fixed`")
        }
        (TcKind::Char | TcKind::WChar, form) => fits(matches!(form, Form::Text(_)), "expected one character in quotes"),
        (TcKind::Enum, form) => {
            // The position, where the type code has no names.
            let is_nameless = type_code.member_name(0).is_ok_and(str::is_empty);
            fits(matches!(form, Form::Text(_)) != is_nameless, "expected an enumerator")
        }
        (TcKind::ObjRef | TcKind::Component | TcKind::Home, form) => {
            fits(is_reference(form), "expected the URL of an object in quotes, or `null`")
        }
        (TcKind::Sequence | TcKind::Array, Form::List(_)) => {
            let is_octets =
                type_code.content_type().is_ok_and(|type_code| type_code.without_aliases().kind() == TcKind::Octet);
            fits(!is_octets, "expected octets as Base64 in quotes")
        }
        (TcKind::Any, Form::Word("null")) => Ok(()),
        (TcKind::Any, Form::Members(parts)) => match parts.members.iter().find(|part| part.name == "_type") {
            Some(part) => check_type(&part.value),
            None => failed("expected `_type` and `_value`"),
        },
        (TcKind::Any, _) => failed("expected `_type` and `_value`, or `null`"),
        (TcKind::TypeCode, _) => check_type(node),
        (TcKind::AbstractInterface, form @ (Form::Word(_) | Form::Text(_))) => {
            fits(is_reference(form), "expected the URL of an object in quotes, `{` or `null`")
        }
        (TcKind::Value | TcKind::Event | TcKind::AbstractInterface | TcKind::ValueBox, _) => {
            check_value(type_code, node, is_in_any)
        }
        _ => Ok(()),
    }
}

/// Checks the members of a value that belong to the form, and that the content of a box is not taken for its head.
fn check_value(type_code: &TypeCode, node: &Node<'_>, is_in_any: bool) -> Result<(), TextError> {
    let mut has_head = false;
    if let Form::Members(members) = &node.form {
        for member in &members.members {
            let value = &member.value;
            let is_fit = match &*member.name {
                "_type" if is_in_any => {
                    check_type(value)?;
                    true
                }
                "_type" => matches!(value.form, Form::Text(_)),
                "_id" | "_ref" => matches!(value.form, Form::Word(_)),
                _ => continue,
            };
            has_head = true;
            if !is_fit {
                return Err(TextError { message: format!("`{}` has another form", member.name), at: value.at });
            }
        }
        has_head |= members.has("_value");
    }
    let is_bare = type_code.kind() == TcKind::ValueBox && !has_head && !matches!(node.form, Form::Word("null"));
    let content = type_code.content_type().map_or(TcKind::Null, |content| content.without_aliases().kind());
    let needs_head =
        matches!(content, TcKind::Any | TcKind::Value | TcKind::Event | TcKind::ValueBox | TcKind::AbstractInterface);
    if is_bare && needs_head {
        return Err(TextError { message: "expected `_value`, the content of the box".to_owned(), at: node.at });
    }
    Ok(())
}

/// Checks the form of a type.
fn check_type(node: &Node<'_>) -> Result<(), TextError> {
    let failed = |message: String, at: usize| Err(TextError { message, at });
    match &node.form {
        Form::Text(_) => Ok(()),
        Form::Members(parts) => parts.members.iter().try_for_each(|part| {
            let (name, value) = (&*part.name, &part.value);
            let is_fit = match (name, &value.form) {
                ("kind" | "id" | "name" | "modifier" | "visibility", form) => matches!(form, Form::Text(_)),
                ("bound" | "length", form) => matches!(form, Form::Word(_)),
                ("label", form) => is_integer(form),
                // Names of enumerators, or descriptions of members.
                ("members", Form::List(members)) => return members.iter().try_for_each(check_type),
                _ => return check_type(value),
            };
            if is_fit { Ok(()) } else { failed(format!("`{name}` of the type has another form"), value.at) }
        }),
        _ => failed("expected a type".to_owned(), node.at),
    }
}

fn is_text(form: &Form<'_>, is_fit: impl Fn(&str) -> bool) -> bool {
    matches!(form, Form::Text(text) if is_fit(text))
}

/// Whether it is a word, which is read as an integer, or digits in quotes.
fn is_integer(form: &Form<'_>) -> bool {
    let is_canonical = |text: &str| text.parse::<i128>().is_ok_and(|value| value.to_string() == text);
    matches!(form, Form::Word(_)) || is_text(form, is_canonical)
}

fn is_reference(form: &Form<'_>) -> bool {
    matches!(form, Form::Word("null")) || is_text(form, |text| text != "null")
}

/// Whether a text has the digits of a `fixed`, none too many, and no needless zero before the point.
fn is_fixed(type_code: &TypeCode, text: &str) -> bool {
    let (digits, scale) = (type_code.fixed_digits().unwrap_or(0), type_code.fixed_scale().unwrap_or(0));
    let scale = usize::try_from(scale).unwrap_or(0);
    let most_whole = usize::from(digits).saturating_sub(scale);
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').map_or((text, None), |(whole, fraction)| (whole, Some(fraction)));
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_digit());
    are_digits(whole)
        && (whole == "0" || (!whole.starts_with('0') && whole.len() <= most_whole))
        && fraction.is_none_or(|fraction| are_digits(fraction) && fraction.len() <= scale)
}
