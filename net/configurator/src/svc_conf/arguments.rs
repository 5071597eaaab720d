//! The parameters of a directive as a list of arguments.

use std::env;

/// Divides parameters at white space, as `ACE_ARGV` does. Quotes of either kind keep white space and each other in an
/// argument, and `$NAME` or `${NAME}` outside of single quotes is replaced by that environment variable, if it is set.
#[must_use]
pub fn arguments(parameters: &str) -> Vec<String> {
    arguments_with(parameters, |name| env::var(name).ok())
}

pub(crate) fn arguments_with(parameters: &str, variable: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut arguments = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    let mut rest = parameters;
    while let Some(character) = rest.chars().next() {
        rest = &rest[character.len_utf8()..];
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                current.get_or_insert_default(); // it may be empty
            }
            (None, _) if character.is_whitespace() => arguments.extend(current.take()),
            (None | Some('"'), '$') => {
                let (name, after) = variable_name(rest);
                match name.and_then(&variable) {
                    Some(value) => {
                        current.get_or_insert_default().push_str(&value);
                        rest = after;
                    }
                    None => current.get_or_insert_default().push('$'),
                }
            }
            _ => current.get_or_insert_default().push(character),
        }
    }
    arguments.extend(current);
    arguments
}

/// The name of a variable at the beginning of a text, and the text after it.
fn variable_name(text: &str) -> (Option<&str>, &str) {
    if let Some((name, after)) = text.strip_prefix('{').and_then(|text| text.split_once('}')) {
        return (Some(name), after);
    }
    let end = text.find(|character: char| !character.is_ascii_alphanumeric() && character != '_').unwrap_or(text.len());
    ((end > 0).then_some(&text[..end]), &text[end..])
}
