//! The text of macro invocations: the formatter of Rust knows no macros of others.
//!
//! The runtime's macros take entries between commas. Those that do not fit in one line are filled into several; an
//! entry is never broken.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};
use syn::Item;

/// Columns of a line, unless an entry is longer.
const WIDTH: usize = 110;

const KEYWORDS: &[&str] = &["as", "dyn", "mut"];

/// Macros of the runtime whose expansion does not refer to it as `rt`.
const WITHOUT_RUNTIME: [&str; 2] = ["interpret", "root_alias"];

/// The text of an item that invokes a macro with entries, inside `depth` modules. `None` for other items, and for
/// macros with braces inside. Definitions outside of modules have no import of the runtime beside them, so that their
/// macros stand in a block with one.
pub(super) fn text(item: &Item, depth: usize) -> Option<String> {
    let Item::Macro(item) = item else { return None };
    let (path, tokens) = (&item.mac.path, &item.mac.tokens);
    // The names are not cloned with the path, which would link a clone of each kind of expression.
    let mut runtime: Vec<_> = path.segments.iter().map(|segment| &segment.ident).collect();
    let name = runtime.pop()?;
    let is_imported = path.leading_colon.is_none() && runtime.len() == 1 && runtime[0] == "rt";
    if !is_imported && !WITHOUT_RUNTIME.iter().any(|macro_name| name == macro_name) {
        let invocation = invocation(&quote::quote! { rt::#name }, tokens, depth + 1);
        let colon = path.leading_colon;
        let (runtime, indent) = (spaced(quote::quote! { #colon #(#runtime)::* }), " ".repeat(4 * depth));
        return Some(format!("{indent}const _: () = {{\n{indent}    use {runtime} as rt;\n{invocation}{indent}}};\n"));
    }
    let has_block = |token| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
    if tokens.clone().into_iter().any(has_block) {
        return None;
    }
    Some(invocation(&quote::quote! { #path }, tokens, depth))
}

fn invocation(path: &TokenStream, tokens: &TokenStream, depth: usize) -> String {
    let path = spaced(path.clone());
    let indent = " ".repeat(4 * depth);
    let entries = entries(tokens.clone());
    let line = format!("{indent}{path}! {{ {} }}\n", entries.join(", "));
    if line.len() <= WIDTH {
        return line;
    }
    let mut text = format!("{indent}{path}! {{\n{indent}   ");
    let mut column = indent.len() + 3;
    let last = entries.len().saturating_sub(1);
    for (nth, entry) in entries.iter().enumerate() {
        if column + entry.len() + 2 > WIDTH && column > indent.len() + 3 {
            text.push_str(&format!("\n{indent}   "));
            column = indent.len() + 3;
        }
        let comma = if nth == last { "" } else { "," };
        text.push_str(&format!(" {entry}{comma}"));
        column += entry.len() + 1 + comma.len();
    }
    text.push_str(&format!("\n{indent}}}\n"));
    text
}

/// The tokens between commas outside angle brackets.
fn entries(tokens: TokenStream) -> Vec<String> {
    let mut entries = vec![TokenStream::new()];
    let (mut angles, mut previous) = (0_usize, ' ');
    for token in tokens {
        let punct = if let TokenTree::Punct(punct) = &token { punct.as_char() } else { ' ' };
        match punct {
            '<' => angles += 1,
            // Not the end of an arrow.
            '>' if !matches!(previous, '-' | '=') => angles = angles.saturating_sub(1),
            _ => {}
        }
        previous = punct;
        if punct == ',' && angles == 0 {
            entries.push(TokenStream::new());
        } else if let Some(entry) = entries.last_mut() {
            entry.extend([token]);
        }
    }
    entries.retain(|entry| !entry.is_empty());
    entries.into_iter().map(spaced).collect()
}

/// The kind of the last written token, by which the space before the next one is chosen.
#[derive(Clone, Copy, PartialEq)]
enum Behind {
    Nothing,
    Word,
    Keyword,
    Group,
    /// A punctuation mark that clings to the next token.
    Clinging,
    /// One with a space behind it.
    Apart,
    /// The end of a generic type.
    Angle,
}

/// The text of tokens that are types, paths and literals, as the formatter of Rust would write it.
fn spaced(tokens: TokenStream) -> String {
    let mut text = String::new();
    let mut behind = Behind::Nothing;
    let mut joint = None;
    for token in tokens {
        let is_word = matches!(token, TokenTree::Ident(_) | TokenTree::Literal(_));
        let space = match (&token, behind) {
            (_, Behind::Nothing | Behind::Clinging) => false,
            (_, Behind::Apart | Behind::Keyword) => true,
            (TokenTree::Punct(punct), _) => {
                let arrow = punct.as_char() == '-' && punct.spacing() == Spacing::Joint;
                arrow || punct.as_char() == '='
            }
            (_, Behind::Group | Behind::Word | Behind::Angle) => is_word,
        };
        if space {
            text.push(' ');
        }
        let previous = joint.take();
        behind = match &token {
            TokenTree::Group(group) => {
                let inner = spaced(group.stream());
                match group.delimiter() {
                    Delimiter::Parenthesis => text.push_str(&format!("({inner})")),
                    Delimiter::Bracket => text.push_str(&format!("[{inner}]")),
                    Delimiter::Brace => text.push_str(&format!("{{ {inner} }}")),
                    Delimiter::None => text.push_str(&inner),
                }
                Behind::Group
            }
            TokenTree::Punct(punct) => {
                text.push(punct.as_char());
                if punct.spacing() == Spacing::Joint {
                    joint = Some(punct.as_char());
                }
                match (previous, punct.as_char()) {
                    (Some('|'), '|') => Behind::Apart,
                    (Some(':'), ':') | (_, '&' | '<' | '#' | '!' | '\'' | '|' | '-' | '.') => Behind::Clinging,
                    (Some('=' | '-'), '>') => Behind::Apart,
                    (_, '>') => Behind::Angle,
                    (_, '?') => Behind::Group,
                    _ if punct.spacing() == Spacing::Joint => Behind::Clinging,
                    _ => Behind::Apart,
                }
            }
            TokenTree::Ident(ident) if KEYWORDS.iter().any(|keyword| ident == keyword) => {
                text.push_str(&ident.to_string());
                Behind::Keyword
            }
            word => {
                text.push_str(&word.to_string());
                Behind::Word
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    #[test]
    fn an_invocation_is_spaced_like_rust() {
        let item = parse_quote! {
            rt::structure! {
                #[inline] Entry, "IDL:Entry:1.0", "Entry", who: &'static str as "who", ids: Vec<[Option<rt::A<dyn B>>; 2]> as "ids" =
                || rt::sequence_code(&id_tc(), 0); fixed
            }
        };
        let expected = r#"    rt::structure! {
        #[inline] Entry, "IDL:Entry:1.0", "Entry", who: &'static str as "who",
        ids: Vec<[Option<rt::A<dyn B>>; 2]> as "ids" = || rt::sequence_code(&id_tc(), 0); fixed
    }
"#;
        assert_eq!(text(&item, 1).as_deref(), Some(expected));
        let item = parse_quote! { ::a::typed! { dyn L, "x" => <R as ::a::Typed>::made(-1, &[] as &[(&str, T)]) } };
        let expected = r#"const _: () = {
    use ::a as rt;
    rt::typed! { dyn L, "x" => <R as ::a::Typed>::made(-1, &[] as &[(&str, T)]) }
};
"#;
        assert_eq!(text(&item, 0).as_deref(), Some(expected));
    }

    #[test]
    fn other_items_are_left_to_the_formatter() {
        assert_eq!(text(&parse_quote! { rt::interpret! { struct S { a: u8 } } }, 0), None);
        assert_eq!(text(&parse_quote! { struct S; }, 0), None);
    }
}
