//! Interfaces, operations and attributes.

use super::annotations::annotated;
use super::{Parsed, Parser, Reported};
use crate::ast::{Flavour, Item, NewName, Operation, Parameter, ScopedName, StepKind};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::model::ParameterMode;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

/// The construct in warnings about portability.
const ATTRIBUTE_EXCEPTIONS: &str = "exceptions of attributes (`raises`, `getraises`, `setraises`)";

impl Parser<'_> {
    pub(super) fn interface(&mut self, flavour: Flavour, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        self.bump();
        let name = self.new_name_documented("the name of an interface", doc)?;
        if self.at(Punct::Semicolon) {
            items.push(Item::Interface { flavour, name, bases: Vec::new(), body: None });
            return Ok(());
        }
        let bases = if self.accept(Punct::Colon).is_some() {
            self.scoped_names("the name of a base interface")
        } else {
            Ok(Vec::new())
        };
        let head = bases.and_then(|bases| {
            let open = self.expect(Punct::OpenBrace, "the head of an interface")?;
            Ok((bases, open))
        });
        let Ok((bases, open)) = head else {
            self.broken(&name);
            return Err(Reported);
        };
        let mut body = Vec::new();
        self.scope(&name, |parser| {
            parser.nested(|parser| {
                while !parser.at_foreign_definition() && parser.peek().is_some() && !parser.at(Punct::CloseBrace) {
                    parser.element_or_recover(&mut body, Self::export);
                }
                parser.obey_events();
                body.append(&mut parser.pending);
                Ok(())
            })
        })?;
        let closed = self.close_interface(open, &name);
        let body = Some(body);
        items.push(Item::Interface { flavour, name, bases, body });
        closed
    }

    /// The `}` of an interface, which may be missing before the next definition.
    pub(super) fn close_interface(&mut self, open: Span, name: &NewName) -> Parsed<()> {
        if !self.at_foreign_definition() {
            return self.close(open, name).map(|_| ());
        }
        let text = self.interner.text(name.name.symbol);
        let error = Diagnostic::error(format!("the body of `{text}` is not closed"))
            .at(self.here(), "not permitted in an interface")
            .also(open, "opened here")
            .help("is a `};` missing before it?");
        self.report(error);
        Err(Reported)
    }

    /// Whether a definition starts here that is not permitted in an interface.
    pub(super) fn at_foreign_definition(&self) -> bool {
        use Keyword::{Abstract, Custom, Interface, Local, Module, Valuetype};
        matches!(self.keyword(), Some(Module | Interface | Valuetype | Abstract | Custom | Local))
    }

    /// Parses one item of a body with `element`; recovers after an error.
    pub(super) fn element_or_recover(
        &mut self,
        items: &mut Vec<Item>,
        element: impl FnOnce(&mut Self, &mut Vec<Item>) -> Parsed<()>,
    ) {
        self.obey_events();
        items.append(&mut self.pending);
        let before = self.next;
        if element(self, items).is_err() {
            self.recover();
            if self.next == before && !self.at(Punct::CloseBrace) {
                self.bump();
            }
        }
    }

    /// One item of an interface.
    fn export(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let (annotations, doc) = self.front()?;
        if annotations.is_empty() {
            return self.plain_export(doc, items);
        }
        let mut inner = Vec::new();
        let result = self.plain_export(doc, &mut inner);
        annotated(annotations, inner, items);
        result
    }

    /// As [`export`](Self::export), after annotations and comment.
    pub(super) fn plain_export(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        if let Some(stray) = self.accept(Punct::Semicolon) {
            let error = Diagnostic::error("a `;` ends no definition here").at(stray, "remove this");
            self.report(error);
            return Ok(());
        }
        if let Some(construct) = self.type_or_constant(doc.clone(), items)? {
            self.expect(Punct::Semicolon, construct)?;
            return Ok(());
        }
        let construct = match self.keyword() {
            Some(Keyword::Readonly | Keyword::Attribute) => {
                items.push(self.attribute(&doc)?);
                "an attribute"
            }
            _ => {
                items.push(self.operation(doc)?);
                "an operation"
            }
        };
        self.expect(Punct::Semicolon, construct)?;
        Ok(())
    }

    fn attribute(&mut self, doc: &[String]) -> Parsed<Item> {
        let readonly = self.accept_keyword(Keyword::Readonly).is_some();
        if self.accept_keyword(Keyword::Attribute).is_none() {
            return Err(self.unexpected("`attribute` after `readonly`"));
        }
        let ty = self.type_spec("the type of an attribute")?;
        let mut names = Vec::new();
        loop {
            let doc = self.doc_in_list(names.is_empty(), doc);
            names.push(self.new_name_documented("the name of an attribute", doc)?);
            if self.accept(Punct::Comma).is_none() {
                break;
            }
        }
        let (mut get_raises, mut set_raises) = (Vec::new(), Vec::new());
        if readonly {
            let start = self.here();
            get_raises = self.raises()?;
            if !get_raises.is_empty() {
                self.not_portable(ATTRIBUTE_EXCEPTIONS, "CORBA 3", start);
            }
        } else {
            if let Some(span) = self.accept_keyword(Keyword::Raises) {
                let error = Diagnostic::error("`raises` is for readonly attributes only")
                    .at(span, "")
                    .help("use `getraises (…)`, `setraises (…)` or both");
                self.report(error);
                return Err(Reported);
            }
            let start = self.here();
            if self.accept_word("getraises").is_some() {
                self.not_portable(ATTRIBUTE_EXCEPTIONS, "CORBA 3", start);
                get_raises = self.raised()?;
            }
            let start = self.here();
            if self.accept_word("setraises").is_some() {
                self.not_portable(ATTRIBUTE_EXCEPTIONS, "CORBA 3", start);
                set_raises = self.raised()?;
            }
        }
        Ok(Item::Attribute { readonly, ty, names, get_raises, set_raises })
    }

    fn operation(&mut self, doc: Vec<String>) -> Parsed<Item> {
        let oneway = self.accept_keyword(Keyword::Oneway);
        let result = if self.accept_keyword(Keyword::Void).is_some() {
            None
        } else {
            Some(self.type_spec("an operation, an attribute, a type or a constant")?)
        };
        let name = self.new_name_documented("the name of an operation", doc)?;
        let parameters = self.parameters("the name of an operation")?;
        let raises = self.raises()?;
        let context = self.context()?;
        Ok(Item::Operation(Operation { name, oneway, result, parameters, raises, context }))
    }

    /// `(in A a, out B b, …)`
    pub(super) fn parameters(&mut self, after: &str) -> Parsed<Vec<Parameter>> {
        self.expect(Punct::OpenParen, after)?;
        let mut parameters = Vec::new();
        if !self.at(Punct::CloseParen) {
            loop {
                parameters.push(self.parameter()?);
                if self.accept(Punct::Comma).is_none() {
                    break;
                }
            }
        }
        self.expect(Punct::CloseParen, "the parameters")?;
        Ok(parameters)
    }

    /// `context ("name", …)`, or nothing (IDL 4.2, 7.4.6.4.6; the letters as in CORBA 3.3 Part 1, 8.6).
    fn context(&mut self) -> Parsed<Vec<String>> {
        let mut names = Vec::new();
        if self.accept_keyword(Keyword::Context).is_none() {
            return Ok(names);
        }
        self.expect(Punct::OpenParen, "`context`")?;
        loop {
            if self.peek().is_none_or(|it| it.kind != TokenKind::String) {
                return Err(self.unexpected("the name of a context property, as a string"));
            }
            let literal = self.string_literal(TokenKind::String);
            if let StepKind::String(name) = literal.kind {
                if !is_context_name(&name) {
                    let error = Diagnostic::error(format!("`{name}` is not the name of a context property"))
                        .at(literal.span, "")
                        .note("it is a letter, then letters, digits, `.` and `_`, and optionally a final `*`");
                    self.report(error);
                }
                names.push(name);
            }
            if self.accept(Punct::Comma).is_none() {
                break;
            }
        }
        self.expect(Punct::CloseParen, "the names of context properties")?;
        Ok(names)
    }

    fn parameter(&mut self) -> Parsed<Parameter> {
        let mut annotations = self.annotations()?;
        let (mode, mode_span) = self.parameter_mode()?;
        annotations.extend(self.annotations()?);
        let ty = self.type_spec("the type of a parameter")?;
        let name = self.defined_identifier("the name of a parameter")?;
        if self.at(Punct::OpenBracket) {
            let error = Diagnostic::error("a parameter cannot have array dimensions")
                .at(self.here(), "")
                .help("name the array with a `typedef` and use that name");
            self.report(error);
            return Err(Reported);
        }
        Ok(Parameter { annotations, mode, mode_span, ty, name })
    }

    fn parameter_mode(&mut self) -> Parsed<(ParameterMode, Span)> {
        let mode = match self.keyword() {
            Some(Keyword::In) => ParameterMode::In,
            Some(Keyword::Out) => ParameterMode::Out,
            Some(Keyword::InOut) => ParameterMode::InOut,
            _ => {
                let error =
                    Diagnostic::error("a parameter starts with `in`, `out` or `inout`").at(self.here(), self.found());
                self.report(error);
                return Err(Reported);
            }
        };
        let span = self.here();
        self.bump();
        Ok((mode, span))
    }

    /// `raises (…)`, or nothing.
    pub(super) fn raises(&mut self) -> Parsed<Vec<ScopedName>> {
        if self.accept_keyword(Keyword::Raises).is_none() {
            return Ok(Vec::new());
        }
        self.raised()
    }

    /// Parses `(A, B)` behind `raises`, `getraises` or `setraises`.
    fn raised(&mut self) -> Parsed<Vec<ScopedName>> {
        self.expect(Punct::OpenParen, "`raises`")?;
        let names = self.scoped_names("the name of an exception")?;
        self.expect(Punct::CloseParen, "the names of exceptions")?;
        Ok(names)
    }
}

fn is_context_name(text: &str) -> bool {
    let name = text.strip_suffix('*').unwrap_or(text);
    let allowed = |octet: u8| octet.is_ascii_alphanumeric() || matches!(octet, b'.' | b'_');
    name.bytes().next().is_some_and(|it| it.is_ascii_alphabetic()) && name.bytes().all(allowed)
}
