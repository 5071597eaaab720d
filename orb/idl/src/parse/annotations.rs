//! Annotations: `@name`, `@name(value)` and `@name(parameter = value, …)` (IDL 4.2, 7.4.15).

use super::{Parsed, Parser};
use crate::ast::{Annotation, Item};
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// The front of a definition or member: annotations, and the comment before or after them.
    pub(super) fn front(&mut self) -> Parsed<(Vec<Annotation>, Vec<String>)> {
        let before = self.doc();
        let annotations = self.annotations()?;
        let behind = if annotations.is_empty() { Vec::new() } else { self.doc() };
        Ok((annotations, if behind.is_empty() { before } else { behind }))
    }

    pub(super) fn annotations(&mut self) -> Parsed<Vec<Annotation>> {
        let mut annotations = Vec::new();
        while let Some(at) = self.accept(Punct::At) {
            let (name, end) = self.annotation_name()?;
            let mut parameters = Vec::new();
            if self.accept(Punct::OpenParen).is_some() && self.accept(Punct::CloseParen).is_none() {
                loop {
                    let assigned = self.peek_second().is_some_and(|it| it.kind == TokenKind::Punct(Punct::Equal));
                    let parameter = if assigned { Some(self.any_word("the name of a parameter")?) } else { None };
                    self.accept(Punct::Equal);
                    parameters.push((parameter, self.expression()?));
                    if self.accept(Punct::Comma).is_none() {
                        break;
                    }
                }
                self.expect(Punct::CloseParen, "the parameters of an annotation")?;
            }
            self.not_portable("annotations", "IDL 4.0", at.to(end));
            annotations.push(Annotation { name, parameters, span: at.to(end) });
        }
        Ok(annotations)
    }

    /// A name that may be scoped and may be a keyword, such as `default`; and the position of its end.
    fn annotation_name(&mut self) -> Parsed<(String, crate::source::Span)> {
        let first = self.any_word("the name of an annotation")?;
        let mut name = self.interner.text(first.symbol).to_string();
        let mut end = first.span;
        while self.accept(Punct::Scope).is_some() {
            let part = self.any_word("the name of an annotation")?;
            name.push_str("::");
            name.push_str(&self.interner.text(part.symbol));
            end = part.span;
        }
        Ok((name, end))
    }

    /// An identifier or a keyword.
    fn any_word(&mut self, expected: &str) -> Parsed<crate::ast::Name> {
        match self.peek() {
            Some(token) if token.kind == TokenKind::Identifier => {
                self.bump();
                Ok(crate::ast::Name { symbol: token.symbol, span: token.span })
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    /// Skips `@annotation name { … };`, the definition of an annotation: all annotations are kept, defined or
    /// not.
    pub(super) fn annotation_definition(&mut self) -> Option<Parsed<()>> {
        let is_definition = |word: &str| word == "annotation";
        let word = self.peek_second().filter(|it| it.kind == TokenKind::Identifier);
        if !self.at(Punct::At) || !word.is_some_and(|it| is_definition(&self.interner.text(it.symbol))) {
            return None;
        }
        self.bump();
        self.bump();
        Some(self.identifier("the name of an annotation").and_then(|_| {
            if !self.at(Punct::OpenBrace) {
                return Err(self.unexpected("`{` after the name of an annotation"));
            }
            self.skip_braces();
            self.expect(Punct::Semicolon, "an annotation").map(|_| ())
        }))
    }
}

/// Combines items with their annotations into one item.
pub(super) fn annotated(annotations: Vec<Annotation>, inner: Vec<Item>, items: &mut Vec<Item>) {
    if !inner.is_empty() {
        items.push(Item::Annotated { annotations, items: inner });
    }
}
