//! An interpreter of constraint texts, written as plainly as possible: it divides a text at its weakest operator, and
//! evaluates the parts. It has neither tokens nor a tree.

use std::collections::BTreeMap;

use spandrel_constraint::Value;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Boolean(bool),
    Integer(i128),
    Double(f64),
    Text(String),
    Sequence(Vec<Outcome>),
    Other,
    /// An expression without a value.
    Error,
    /// A result that depends on the rounding of large numbers.
    Unsure,
}

use Outcome::{Boolean, Double, Error, Integer, Sequence, Text, Unsure};

type Offer = BTreeMap<&'static str, Value<'static>>;

pub(crate) fn interpret(text: &str, offer: &Offer) -> Outcome {
    let text = text.trim();
    if let Some(parts) = divide(text, &[" or "]) {
        return connect(&parts, true, offer);
    }
    if let Some(parts) = divide(text, &[" and "]) {
        return connect(&parts, false, offer);
    }
    if let Some(parts) = divide(text, &[" == ", " != ", " < ", " <= ", " > ", " >= "]) {
        let (left, right) = (interpret(parts[0].1, offer), interpret(parts[1].1, offer));
        return compare(parts[1].0, &left, &right);
    }
    if let Some(parts) = divide(text, &[" in "]) {
        return contains(&interpret(parts[0].1, offer), &property(parts[1].1.trim(), offer));
    }
    if let Some(parts) = divide(text, &[" ~ "]) {
        return match (interpret(parts[0].1, offer), interpret(parts[1].1, offer)) {
            (Text(part), Text(whole)) => {
                let ends = (0..=whole.len()).filter(|at| whole.is_char_boundary(*at));
                Boolean(ends.into_iter().any(|at| whole[at..].starts_with(&part)))
            }
            pair => failed(&[pair.0, pair.1]),
        };
    }
    for operators in [[" + ", " - "], [" * ", " / "]] {
        if let Some(parts) = divide(text, &operators) {
            let first = interpret(parts[0].1, offer);
            return parts[1..]
                .iter()
                .fold(first, |sum, (operator, part)| calculate(operator.trim(), &sum, &interpret(part, offer)));
        }
    }
    if let Some(operand) = text.strip_prefix("not ") {
        return match interpret(operand, offer) {
            Boolean(value) => Boolean(!value),
            other => failed(&[other]),
        };
    }
    factor(text, offer)
}

fn factor(text: &str, offer: &Offer) -> Outcome {
    if let Some(name) = text.strip_prefix("exist ") {
        return Boolean(offer.contains_key(name.trim()));
    }
    if text.starts_with('(') {
        return interpret(&text[1..text.len() - 1], offer);
    }
    if text.starts_with('\'') {
        return Text(text[1..text.len() - 1].replace("\\'", "'").replace("\\\\", "\\"));
    }
    match text {
        "TRUE" => Boolean(true),
        "FALSE" => Boolean(false),
        number if number.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) => {
            let number = number.replace(' ', "");
            number.parse().map_or_else(|_| Double(number.parse().unwrap()), Integer)
        }
        name => property(name, offer),
    }
}

fn property(name: &str, offer: &Offer) -> Outcome {
    fn outcome(value: &Value<'_>) -> Outcome {
        match value {
            Value::Boolean(value) => Boolean(*value),
            Value::Integer(number) => Integer(*number),
            Value::Floating(number) => Double(*number),
            Value::Text(text) => Text(text.to_string()),
            Value::Sequence(elements) => Sequence(elements.iter().map(outcome).collect()),
            Value::Other => Outcome::Other,
        }
    }
    offer.get(name).map_or(Error, outcome)
}

/// The parts of a text between these operators, outside parentheses and strings, each with the operator before it.
fn divide<'t>(text: &'t str, operators: &[&'t str]) -> Option<Vec<(&'t str, &'t str)>> {
    let (mut parts, mut depth, mut is_quoted, mut start, mut at) = (Vec::new(), 0, false, 0, 0);
    let mut operator = "";
    while at < text.len() {
        let rest = &text[at..];
        match rest.chars().next().unwrap() {
            '\\' => at += 1, // the next character belongs to the string
            '\'' => is_quoted = !is_quoted,
            '(' if !is_quoted => depth += 1,
            ')' if !is_quoted => depth -= 1,
            _ if depth == 0 && !is_quoted => {
                if let Some(next) = operators.iter().find(|next| rest.starts_with(**next)) {
                    parts.push((operator, &text[start..at]));
                    (operator, start) = (*next, at + next.len());
                    at = start;
                    continue;
                }
            }
            _ => {}
        }
        at += text[at..].chars().next().map_or(1, char::len_utf8);
    }
    parts.push((operator, &text[start..]));
    (parts.len() > 1).then_some(parts)
}

fn failed(operands: &[Outcome]) -> Outcome {
    if operands.contains(&Unsure) { Unsure } else { Error }
}

/// `or` if this value decides, else `and`.
fn connect(parts: &[(&str, &str)], deciding: bool, offer: &Offer) -> Outcome {
    for (_, part) in parts {
        match interpret(part, offer) {
            Boolean(value) if value == deciding => return Boolean(deciding),
            Boolean(_) => {}
            other => return failed(&[other]),
        }
    }
    Boolean(!deciding)
}

/// The numbers as doubles, if they have one each.
fn doubles(left: &Outcome, right: &Outcome) -> Option<(f64, f64, bool)> {
    let double = |operand: &Outcome| match operand {
        Integer(number) => Some((*number as f64, number.abs() < 1 << 53)),
        Double(number) => Some((*number, true)),
        _ => None,
    };
    let ((left, is_left), (right, is_right)) = (double(left)?, double(right)?);
    Some((left, right, is_left && is_right))
}

fn compare(operator: &str, left: &Outcome, right: &Outcome) -> Outcome {
    let test = |less: bool, equal: bool, greater: bool| match operator.trim() {
        "==" => equal,
        "!=" => !equal,
        "<" => less,
        "<=" => less || equal,
        ">" => greater,
        _ => greater || equal,
    };
    match (left, right) {
        (Boolean(left), Boolean(right)) => Boolean(test(!left & right, left == right, left & !right)),
        (Text(left), Text(right)) => {
            let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
            Boolean(test(left < right, left == right, left > right))
        }
        (Integer(left), Integer(right)) => Boolean(test(left < right, left == right, left > right)),
        _ => match doubles(left, right) {
            Some((left, right, true)) => Boolean(test(left < right, left == right, left > right)),
            Some(_) => Unsure,
            None => failed(&[left.clone(), right.clone()]),
        },
    }
}

fn contains(element: &Outcome, sequence: &Outcome) -> Outcome {
    // The element is evaluated even if the property is none.
    let (Sequence(elements), false) = (sequence, matches!(element, Error | Unsure)) else {
        return failed(&[element.clone(), sequence.clone()]);
    };
    for other in elements {
        match compare("==", element, other) {
            Boolean(false) => {}
            outcome => return outcome,
        }
    }
    Boolean(false)
}

fn calculate(operator: &str, left: &Outcome, right: &Outcome) -> Outcome {
    if let (Integer(left), Integer(right)) = (left, right) {
        let result = match operator {
            "+" => left.checked_add(*right),
            "-" => left.checked_sub(*right),
            "*" => left.checked_mul(*right),
            _ => left.checked_div(*right),
        };
        return result.map_or(Error, Integer);
    }
    let Some((left, right, is_exact)) = doubles(left, right) else { return failed(&[left.clone(), right.clone()]) };
    let result = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        _ => left / right,
    };
    match (is_exact, result.is_finite()) {
        (false, _) => Unsure,
        (true, true) => Double(result),
        (true, false) => Error,
    }
}
