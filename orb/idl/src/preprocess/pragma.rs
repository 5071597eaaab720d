//! Pragmas: those that set repository ids (CORBA 3.3 Part 1, 14.7.5), and `once`. Those of well-known tools
//! are ignored; unknown ones get a warning.

use super::{EventKind, Preprocessor};
use crate::diagnostic::Diagnostic;
use crate::literal;
use crate::source::Span;
use crate::token::{Punct, Token, TokenKind};
use spandrel_error::closest;

const OURS: [&str; 4] = ["prefix", "ID", "version", "once"];

/// Pragmas of other compilers that may occur in shared IDL: omniORB's and Orbix's, TAO's and CIAO's, those of
/// DDS, and those of C preprocessors. They are ignored without a warning.
const OTHERS: [&str; 17] = [
    "hh",
    "inclusion",
    "end",
    "component",
    "ciao",
    "dds4ccm",
    "ndds",
    "opendds",
    "keylist",
    "topic",
    "local",
    "pack",
    "ident",
    "warning",
    "GCC",
    "STDC",
    "javaPackage",
];

impl Preprocessor<'_> {
    pub(super) fn pragma(&mut self, line: &[Token], span: Span) {
        let Some((&first, rest)) = line.split_first() else {
            return;
        };
        match &*self.spelling(first) {
            "prefix" => {
                let rest = self.without_semicolon(rest);
                self.pragma_prefix(rest, span);
            }
            "ID" | "id" => {
                let rest = self.without_semicolon(rest);
                self.pragma_id(rest, span);
            }
            "version" => {
                let rest = self.without_semicolon(rest);
                self.pragma_version(rest, span);
            }
            "once" => {
                if let Some(file) = self.files.last() {
                    self.once.insert(file.path.clone());
                }
            }
            other if OTHERS.contains(&other) || other.starts_with("DCPS_") => {}
            other => {
                let other: String = other.chars().take(40).collect();
                let mut warning = Diagnostic::warning(format!("unknown pragma `{other}`")).at(first.span, "ignored");
                if let Some(similar) = closest(&other, OURS) {
                    warning = warning.help(format!("did you mean `{similar}`?"));
                }
                self.report(warning);
            }
        }
    }

    /// The line without a final `;`, which gets a warning: other compilers accept it.
    fn without_semicolon<'t>(&mut self, line: &'t [Token]) -> &'t [Token] {
        let Some((last, rest)) = line.split_last() else {
            return line;
        };
        if last.kind != TokenKind::Punct(Punct::Semicolon) {
            return line;
        }
        let warning =
            Diagnostic::warning("a pragma ends with its line").at(last.span, "ignored").help("remove the `;`");
        self.report(warning);
        rest
    }

    fn pragma_prefix(&mut self, rest: &[Token], span: Span) {
        match rest {
            [text] if text.kind == TokenKind::String => {
                if let Some(prefix) = self.id_text(*text) {
                    self.event(EventKind::Prefix(prefix));
                }
            }
            _ => self.malformed_pragma(span, "#pragma prefix \"omg.org\""),
        }
    }

    fn pragma_id(&mut self, rest: &[Token], span: Span) {
        let form = "#pragma ID Bank::Account \"IDL:omg.org/Bank/Account:1.0\"";
        match rest.split_last() {
            Some((text, name)) if text.kind == TokenKind::String && is_scoped_name(name) => {
                if let Some(id) = self.id_text(*text) {
                    let name = name.to_vec();
                    self.event(EventKind::Id { name, id, span });
                }
            }
            _ => self.malformed_pragma(span, form),
        }
    }

    fn pragma_version(&mut self, rest: &[Token], span: Span) {
        let form = "#pragma version Bank::Account 1.2";
        match rest.split_last() {
            Some((number, name)) if is_scoped_name(name) => {
                let version = self.spelling(*number).to_string();
                if !is_version(&version) {
                    return self.malformed_pragma(number.span, form);
                }
                let name = name.to_vec();
                self.event(EventKind::Version { name, version, span });
            }
            _ => self.malformed_pragma(span, form),
        }
    }

    /// The text of a prefix or id: one line of Latin-1 of bounded length, since every id inside repeats a
    /// prefix.
    fn id_text(&mut self, token: Token) -> Option<String> {
        let text = match literal::repository_id(&self.spelling(token)) {
            Ok(text) => text,
            Err(problem) => {
                self.report(Diagnostic::error(problem).at(token.span, ""));
                return None;
            }
        };
        if text.len() > literal::LONGEST_ID {
            let message = format!("a repository id has at most {} octets", literal::LONGEST_ID);
            self.report(Diagnostic::error(message).at(token.span, "too long"));
            return None;
        }
        Some(text)
    }

    fn malformed_pragma(&mut self, span: Span, form: &str) {
        let error = Diagnostic::error("this pragma is malformed").at(span, "").help(format!("write it as `{form}`"));
        self.report(error);
    }
}

/// `name`, `::name`, `A::B`, …
fn is_scoped_name(tokens: &[Token]) -> bool {
    let is_scope = |token: &Token| token.kind == TokenKind::Punct(Punct::Scope);
    let rest = match tokens.split_first() {
        Some((first, rest)) if is_scope(first) => rest,
        _ => tokens,
    };
    rest.len() % 2 == 1
        && rest.iter().enumerate().all(|(index, token)| match index % 2 {
            0 => token.kind == TokenKind::Identifier,
            _ => is_scope(token),
        })
}

/// `major.minor`, both 16 bits.
fn is_version(text: &str) -> bool {
    let part = |part: &str| part.bytes().all(|octet| octet.is_ascii_digit()) && part.parse::<u16>().is_ok();
    text.split_once('.').is_some_and(|(major, minor)| part(major) && part(minor))
}
