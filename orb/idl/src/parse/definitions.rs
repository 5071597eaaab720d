//! Specifications, modules, constants, structures, enumerations and typedefs.

use super::annotations::annotated;
use super::{Parsed, Parser};
use crate::ast::{Annotation, Declarator, EnumItem, EnumeratorItem, Flavour, Item, Member, NewName, StructItem};
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::source::Span;
use crate::token::Punct;

impl Parser<'_> {
    /// Reads definitions up to the end of the input.
    pub(super) fn specification(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while self.peek().is_some() {
            if let Some(brace) = self.accept(Punct::CloseBrace) {
                let error = Diagnostic::error("unmatched `}`")
                    .at(brace, "no `{` is open here")
                    .help("is there an extra `}` before it?");
                self.report(error);
                self.accept(Punct::Semicolon);
                continue;
            }
            self.definition_or_recover(&mut items);
        }
        // Pragmas at the end of the file.
        self.next = self.tokens.len();
        self.obey_events();
        items.append(&mut self.pending);
        items
    }

    pub(super) fn definition_or_recover(&mut self, items: &mut Vec<Item>) {
        self.obey_events();
        items.append(&mut self.pending);
        let before = self.next;
        if self.definition(items).is_err() {
            self.recover();
            // At least one token is consumed, which guarantees progress.
            if self.next == before && !self.at(Punct::CloseBrace) {
                self.bump();
            }
        }
    }

    fn definition(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        if let Some(passed) = self.annotation_definition() {
            return passed;
        }
        let (annotations, doc) = self.front()?;
        if annotations.is_empty() {
            return self.plain_definition(doc, items);
        }
        let mut inner = Vec::new();
        let result = self.plain_definition(doc, &mut inner);
        annotated(annotations, inner, items);
        result
    }

    fn plain_definition(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        if let Some(stray) = self.accept(Punct::Semicolon) {
            let error = Diagnostic::error("a `;` ends no definition here").at(stray, "remove this");
            self.report(error);
            return Ok(());
        }
        let construct = match (self.keyword(), self.keyword_second()) {
            (Some(Keyword::Module), _) => {
                items.push(self.module(doc)?);
                "a module"
            }
            (Some(Keyword::Interface), _) => {
                self.interface(Flavour::Unconstrained, doc, items)?;
                "an interface"
            }
            (Some(Keyword::Abstract), Some(Keyword::Interface)) => {
                self.bump();
                self.interface(Flavour::Abstract, doc, items)?;
                "an interface"
            }
            (Some(Keyword::Local), Some(Keyword::Interface)) => {
                self.bump();
                self.interface(Flavour::Local, doc, items)?;
                "an interface"
            }
            _ if self.at_value() => {
                self.value(doc, items)?;
                "a value type"
            }
            _ => match self.type_or_constant(doc.clone(), items)? {
                Some(construct) => construct,
                None => match self.word_definition(doc, items)? {
                    Some(construct) => construct,
                    None => return self.extended_definition(items),
                },
            },
        };
        self.expect(Punct::Semicolon, construct)?;
        Ok(())
    }

    /// A definition that starts with a word reserved in this position only. `None` for anything else.
    fn word_definition(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<Option<&'static str>> {
        if let Some(construct) = self.import(items)? {
            return Ok(Some(construct));
        }
        if let Some(instance) = self.template_alias(doc.clone())? {
            items.push(instance);
            return Ok(Some("a module"));
        }
        Ok(self.component_or_like(doc, items)?.map(|()| "a definition"))
    }

    /// An item of interfaces and modules; returns its description. `None` for anything else.
    pub(super) fn type_or_constant(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<Option<&'static str>> {
        let construct = match self.keyword() {
            Some(Keyword::Const) => {
                items.push(self.constant(doc)?);
                "a constant"
            }
            Some(Keyword::Struct) => {
                items.push(self.structure_or_forward(doc)?);
                "a struct"
            }
            Some(Keyword::Exception) => {
                self.bump();
                let name = self.new_name_documented("the name of an exception", doc)?;
                let body = self.members(name, true)?;
                items.push(Item::Struct(body));
                "an exception"
            }
            Some(Keyword::Union) => {
                items.push(self.union_or_forward(doc)?);
                "a union"
            }
            Some(Keyword::Native) => {
                self.bump();
                let name = self.new_name_documented("the name of a native type", doc)?;
                items.push(Item::Native { name });
                "a native type"
            }
            Some(Keyword::Enum) => {
                items.push(Item::Enum(self.enumeration(doc)?));
                "an enum"
            }
            Some(Keyword::Typedef) => {
                items.push(self.typedef(doc)?);
                "a typedef"
            }
            _ => return self.id_declaration(items),
        };
        Ok(Some(construct))
    }

    fn module(&mut self, doc: Vec<String>) -> Parsed<Item> {
        self.bump();
        let name = self.new_name_documented("the name of a module", doc)?;
        if self.at(Punct::Less) || self.at(Punct::Scope) {
            return self.template(name);
        }
        let open = self.expect(Punct::OpenBrace, "the name of a module")?;
        let mut body = Vec::new();
        self.scope(&name, |parser| {
            parser.nested(|parser| {
                while parser.peek().is_some() && !parser.at(Punct::CloseBrace) {
                    parser.definition_or_recover(&mut body);
                }
                parser.obey_events();
                body.append(&mut parser.pending);
                Ok(())
            })
        })?;
        self.close(open, &name)?;
        if body.is_empty() {
            let error = Diagnostic::error("a module must contain a definition").at(name.name.span, "this one is empty");
            self.report(error);
        }
        Ok(Item::Module { name, body })
    }

    /// Runs `inner` in a scope that adds its name to repository ids.
    pub(super) fn scope<T>(&mut self, name: &NewName, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        let text = self.interner.text(name.name.symbol);
        self.prefixes.enter_scope(&text);
        let result = inner(self);
        self.prefixes.leave_scope();
        result
    }

    /// The `}` of a body.
    pub(super) fn close(&mut self, open: Span, name: &NewName) -> Parsed<Span> {
        if let Some(span) = self.accept(Punct::CloseBrace) {
            return Ok(span);
        }
        let text = self.interner.text(name.name.symbol);
        let error = Diagnostic::error(format!("the body of `{text}` is not closed"))
            .at(self.here(), format!("expected `}}`, {}", self.found()))
            .also(open, "opened here");
        self.report(error);
        Err(super::Reported)
    }

    fn constant(&mut self, doc: Vec<String>) -> Parsed<Item> {
        self.bump();
        let ty = self.type_spec("the type of a constant")?;
        let name = self.new_name_documented("the name of a constant", doc)?;
        let value = self.expect(Punct::Equal, "the name of a constant");
        match value.and_then(|_| self.expression()) {
            Ok(value) => Ok(Item::Const { ty, name, value }),
            Err(reported) => {
                self.broken(&name);
                Err(reported)
            }
        }
    }

    fn structure_or_forward(&mut self, doc: Vec<String>) -> Parsed<Item> {
        self.bump();
        let name = self.new_name_documented("the name of a struct", doc)?;
        if self.at(Punct::Semicolon) {
            return Ok(Item::StructForward { name });
        }
        self.members(name, false).map(Item::Struct)
    }

    /// Parses `{ members }` of a struct or exception.
    pub(super) fn members(&mut self, name: NewName, is_exception: bool) -> Parsed<StructItem> {
        if self.at(Punct::Colon) {
            self.broken(&name);
            return Err(self.extended_here("inheritance of structs"));
        }
        let expected = if is_exception { "the name of an exception" } else { "the name of a struct" };
        let open = self.expect(Punct::OpenBrace, expected)?;
        let empty = self.at(Punct::CloseBrace);
        let mut members = Vec::new();
        self.scope(&name, |parser| {
            parser.nested(|parser| {
                while parser.peek().is_some() && !parser.at(Punct::CloseBrace) {
                    let before = parser.next;
                    match parser.member() {
                        Ok(member) => members.push(member),
                        Err(_) => parser.recover(),
                    }
                    if parser.next == before && !parser.at(Punct::CloseBrace) {
                        break;
                    }
                }
                Ok(())
            })
        })?;
        self.close(open, &name)?;
        if empty && !is_exception {
            let error = Diagnostic::error("a struct must have a member").at(name.name.span, "this one has none");
            self.report(error);
        }
        Ok(StructItem { name, is_exception, members })
    }

    fn member(&mut self) -> Parsed<Member> {
        let (annotations, doc) = self.front()?;
        self.member_behind(annotations, doc)
    }

    pub(super) fn member_behind(&mut self, annotations: Vec<Annotation>, doc: Vec<String>) -> Parsed<Member> {
        let ty = self.type_spec("the type of a member")?;
        let declarators = self.declarators("the name of a member", &doc)?;
        self.expect(Punct::Semicolon, "a member")?;
        Ok(Member { annotations, ty, declarators })
    }

    /// `a, b[2], …`; declarators without a comment of their own share `doc`.
    pub(super) fn declarators(&mut self, expected: &str, doc: &[String]) -> Parsed<Vec<Declarator>> {
        let mut declarators = Vec::new();
        loop {
            let doc = self.doc_in_list(declarators.is_empty(), doc);
            let name = self.new_name_documented(expected, doc)?;
            let mut dimensions = Vec::new();
            while self.accept(Punct::OpenBracket).is_some() {
                dimensions.push(self.expression()?);
                self.expect(Punct::CloseBracket, "the size of an array")?;
            }
            declarators.push(Declarator { name, dimensions });
            if self.accept(Punct::Comma).is_none() {
                return Ok(declarators);
            }
        }
    }

    pub(super) fn enumeration(&mut self, doc: Vec<String>) -> Parsed<EnumItem> {
        self.bump();
        let name = self.new_name_documented("the name of an enum", doc)?;
        let open = self.expect(Punct::OpenBrace, "the name of an enum")?;
        match self.enumerators() {
            Ok(enumerators) => {
                self.close(open, &name)?;
                Ok(EnumItem { name, enumerators })
            }
            Err(reported) => {
                self.broken(&name);
                self.skip_to_close();
                Err(reported)
            }
        }
    }

    fn enumerators(&mut self) -> Parsed<Vec<EnumeratorItem>> {
        let mut enumerators = Vec::new();
        loop {
            let (annotations, doc) = self.front()?;
            let name = self.new_name_documented("an enumerator", doc)?;
            enumerators.push(EnumeratorItem { annotations, name });
            let comma = self.accept(Punct::Comma);
            match comma {
                None if self.at(Punct::CloseBrace) => return Ok(enumerators),
                None => return Err(self.unexpected("`,` or `}` after an enumerator")),
                Some(comma) if self.at(Punct::CloseBrace) => {
                    let error = Diagnostic::error("expected an enumerator after `,`").at(comma, "remove this `,`");
                    self.report(error);
                    return Ok(enumerators);
                }
                Some(_) => {}
            }
        }
    }

    fn typedef(&mut self, doc: Vec<String>) -> Parsed<Item> {
        self.bump();
        let ty = self.type_spec("a type")?;
        let declarators = self.declarators("the name of a type", &doc)?;
        Ok(Item::Typedef { ty, declarators })
    }
}
