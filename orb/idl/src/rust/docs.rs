//! IDL comments as Rust documentation.
//!
//! Their words are kept. Unintended rustdoc markup is escaped: links and HTML, and indented or fenced text
//! that would be compiled as a Rust example.

use proc_macro2::TokenStream;
use quote::quote;

/// The maximum indentation of a line that is not a code block.
const MAX_INDENT: usize = 3;

/// The `#[doc]` attributes of a comment; nothing for a comment without words.
pub(super) fn attributes(comment: &[String]) -> TokenStream {
    let lines = lines(comment);
    quote! { #( #[doc = #lines] )* }
}

/// The `#[doc]` attributes of a comment, or of this line if it has no words.
pub(super) fn or(comment: &[String], otherwise: impl FnOnce() -> String) -> TokenStream {
    let written = attributes(comment);
    if written.is_empty() {
        let line = otherwise();
        quote! { #[doc = #line] }
    } else {
        written
    }
}

/// The lines of a comment in Rust form, each with its blank at the front.
pub(super) fn lines(comment: &[String]) -> Vec<String> {
    let text: Vec<String> = comment.iter().map(|line| line.replace('\t', " ").trim_end().to_owned()).collect();
    let blank = |line: &String| line.is_empty();
    let Some(first) = text.iter().position(|line| !blank(line)) else { return Vec::new() };
    let last = text.iter().rposition(|line| !blank(line)).unwrap_or(first);
    let text = &text[first..=last];
    let indent = |line: &String| line.len() - line.trim_start().len();
    let common = text.iter().filter(|line| !blank(line)).map(indent).min().unwrap_or(0);
    let mut fenced = false;
    text.iter()
        .map(|line| {
            let (depth, words) = (indent(line).saturating_sub(common), line.trim_start());
            if words.starts_with("```") {
                fenced = !fenced;
                return if fenced { " ```text".to_owned() } else { " ```".to_owned() };
            }
            match words {
                "" => String::new(),
                _ if fenced => format!(" {}{words}", " ".repeat(depth)),
                _ => format!(" {}{}", " ".repeat(depth.min(MAX_INDENT)), defuse(words)),
            }
        })
        .chain(fenced_to_the_end(text).then(|| " ```".to_owned()))
        .collect()
}

fn fenced_to_the_end(text: &[String]) -> bool {
    text.iter().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
}

/// Escapes text that rustdoc would interpret as a link or as HTML, outside `code`.
fn defuse(line: &str) -> String {
    if line.matches('`').count() % 2 == 1 {
        return escape(line); // unmatched quotes, so there is no code
    }
    let parts = line.split('`').enumerate();
    let parts = parts.map(|(index, part)| if index % 2 == 0 { escape(part) } else { part.to_owned() });
    parts.collect::<Vec<_>>().join("`")
}

fn escape(words: &str) -> String {
    let mut escaped = String::with_capacity(words.len());
    for word in words.split_inclusive(' ') {
        if word.contains("://") {
            let address = word.trim_end();
            let (address, stop) = address.split_at(address.trim_end_matches(['.', ',', ')', ';']).len());
            escaped.push_str(&format!("`{address}`{stop}{}", if word.ends_with(' ') { " " } else { "" }));
            continue;
        }
        for letter in word.chars() {
            if matches!(letter, '[' | ']' | '<' | '>' | '`') {
                escaped.push('\\');
            }
            escaped.push(letter);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(comment: &str, expected: &str) {
        let comment: Vec<String> = comment.lines().map(str::to_owned).collect();
        assert_eq!(lines(&comment).join("\n"), expected);
    }

    #[test]
    fn words_are_kept_and_blank_lines_around_them_are_not() {
        check("\n  A line.  \n\n  Another.\n\n", " A line.\n\n Another.");
        check("\n \n", "");
    }

    #[test]
    fn text_is_not_interpreted_as_a_link_or_html() {
        check(" a[0] and <b>, `v[1]`", r" a\[0\] and \<b\>, `v[1]`");
        check(" see http://example.org/x.", " see `http://example.org/x`.");
        check(" an odd ` mark [x]", r" an odd \` mark \[x\]");
    }

    #[test]
    fn text_is_not_interpreted_as_an_example() {
        check(" Text\n\n        indented", " Text\n\n    indented");
        check(" ```\n struct X;\n ```", " ```text\n struct X;\n ```");
        check(" ```\n struct X;", " ```text\n struct X;\n ```");
    }
}
