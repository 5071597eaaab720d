//! Value types (IDL 4.2, 7.4.5 and 7.4.7; CORBA 3.3 Part 1, 7.9).

use super::annotations::annotated;
use super::{Parsed, Parser, Reported};
use crate::ast::{Annotation, Bodiless, FactoryItem, Item, NewName, ScopedName, ValueItem};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// The modifiers before `valuetype` or `eventtype`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Modifiers {
    pub(super) custom: Option<Span>,
    pub(super) is_abstract: bool,
}

impl Parser<'_> {
    /// Whether `valuetype`, `custom valuetype` or `abstract valuetype` starts here.
    pub(super) fn at_value(&self) -> bool {
        match self.keyword() {
            Some(Keyword::Valuetype) => true,
            Some(Keyword::Custom | Keyword::Abstract) => self.keyword_second() == Some(Keyword::Valuetype),
            _ => false,
        }
    }

    pub(super) fn value(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        let modifiers = self.value_modifiers();
        self.bump();
        let name = self.new_name_documented("the name of a value type", doc)?;
        if self.at(Punct::Semicolon) {
            self.check_forward(modifiers);
            items.push(Item::Bodiless(Bodiless::Forward { name, is_abstract: modifiers.is_abstract }));
            return Ok(());
        }
        let has_body = self.at(Punct::Colon) || self.at(Punct::OpenBrace) || self.keyword() == Some(Keyword::Supports);
        if has_body {
            return self.value_body(name, modifiers, items);
        }
        if modifiers.custom.is_some() || modifiers.is_abstract {
            let reported = self.unexpected("`:`, `supports` or `{` after the name of a value type");
            self.broken(&name);
            return Err(reported);
        }
        match self.type_spec("`:`, `supports`, `{`, `;` or the type that is boxed") {
            Ok(ty) => {
                items.push(Item::Bodiless(Bodiless::Boxed { name, ty }));
                Ok(())
            }
            Err(reported) => {
                self.broken(&name);
                Err(reported)
            }
        }
    }

    /// `custom`, `abstract`, or nothing.
    pub(super) fn value_modifiers(&mut self) -> Modifiers {
        let custom = self.accept_keyword(Keyword::Custom);
        let is_abstract = custom.is_none() && self.accept_keyword(Keyword::Abstract).is_some();
        Modifiers { custom, is_abstract }
    }

    /// The grammar has no `custom valuetype V;`.
    pub(super) fn check_forward(&mut self, modifiers: Modifiers) {
        if let Some(custom) = modifiers.custom {
            let error = Diagnostic::error("a forward declaration cannot be `custom`")
                .at(custom, "remove this")
                .note("only the definition can");
            self.report(error);
        }
    }

    /// Bases, supported interfaces and `{ … }`.
    pub(super) fn value_body(&mut self, name: NewName, modifiers: Modifiers, items: &mut Vec<Item>) -> Parsed<()> {
        let head = self.value_head(modifiers);
        let head = head.and_then(|head| Ok((head, self.expect(Punct::OpenBrace, "the head of a value type")?)));
        let Ok((mut head, open)) = head else {
            self.broken(&name);
            return Err(Reported);
        };
        self.scope(&name, |parser| {
            parser.nested(|parser| {
                while !parser.at_foreign_definition() && parser.peek().is_some() && !parser.at(Punct::CloseBrace) {
                    parser.element_or_recover(&mut head.body, Self::value_element);
                }
                parser.obey_events();
                head.body.append(&mut parser.pending);
                Ok(())
            })
        })?;
        let closed = self.close_interface(open, &name);
        items.push(Item::Value(ValueItem {
            name,
            is_custom: modifiers.custom.is_some(),
            is_abstract: modifiers.is_abstract,
            truncatable: head.truncatable,
            bases: head.bases,
            supports: head.supports,
            body: head.body,
        }));
        closed
    }

    /// `: truncatable A, B supports C, D`
    fn value_head(&mut self, modifiers: Modifiers) -> Parsed<Head> {
        let mut head = Head::default();
        if self.accept(Punct::Colon).is_some() {
            head.truncatable = self.accept_keyword(Keyword::Truncatable);
            if let (Some(truncatable), Some(custom)) = (head.truncatable, modifiers.custom) {
                // IDL 4.2, 7.4.7.4.1.
                let error = Diagnostic::error("a custom value type cannot be truncatable")
                    .at(truncatable, "remove this")
                    .also(custom, "custom")
                    .note("only its own code knows its encoding, so no part of it can be skipped");
                self.report(error);
            }
            head.bases = self.scoped_names("the name of a base value type")?;
        }
        if self.accept_keyword(Keyword::Supports).is_some() {
            head.supports = self.scoped_names("the name of a supported interface")?;
        }
        Ok(head)
    }

    /// One item of a value type.
    fn value_element(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let (annotations, doc) = self.front()?;
        if matches!(self.keyword(), Some(Keyword::Public | Keyword::Private)) {
            items.push(self.state_member(annotations, doc)?);
            return Ok(());
        }
        if annotations.is_empty() {
            return self.value_operation(doc, items);
        }
        let mut inner = Vec::new();
        let result = self.value_operation(doc, &mut inner);
        annotated(annotations, inner, items);
        result
    }

    /// An initializer, or an item of an interface.
    fn value_operation(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        if !self.at_factory("factory") {
            return self.plain_export(doc, items);
        }
        items.push(Item::Factory(self.factory(doc)?));
        self.expect(Punct::Semicolon, "an initializer")?;
        Ok(())
    }

    /// `public type a, b[2];`
    fn state_member(&mut self, annotations: Vec<Annotation>, doc: Vec<String>) -> Parsed<Item> {
        let is_public = self.accept_keyword(Keyword::Public).is_some();
        if !is_public {
            self.bump();
        }
        let member = self.member_behind(annotations, doc)?;
        Ok(Item::State { is_public, member })
    }

    /// Whether `factory name (` starts here; `word` is the keyword in place of `factory`.
    pub(super) fn at_factory(&self, word: &str) -> bool {
        let follows = self.peek_second().is_some_and(|it| it.kind == TokenKind::Identifier);
        follows && self.word().as_deref() == Some(word)
    }

    /// `factory name(in …) raises (…)`
    pub(super) fn factory(&mut self, doc: Vec<String>) -> Parsed<FactoryItem> {
        self.bump();
        let name = self.new_name_documented("the name of an initializer", doc)?;
        let parameters = self.parameters("the name of an initializer")?;
        for parameter in &parameters {
            if parameter.mode != crate::model::ParameterMode::In {
                let error = Diagnostic::error("an initializer has a parameter that is not `in`")
                    .at(parameter.mode_span, "must be `in`");
                self.report(error);
            }
        }
        let raises = self.raises()?;
        Ok(FactoryItem { name, parameters, raises })
    }
}

/// The head of a value type, with its body to be filled in.
#[derive(Default)]
struct Head {
    truncatable: Option<Span>,
    bases: Vec<ScopedName>,
    supports: Vec<ScopedName>,
    body: Vec<Item>,
}
