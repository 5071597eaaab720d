//! Components, homes, event types, port types and connectors (IDL 4.2, 7.4.8 to 7.4.11).
//!
//! Their words are reserved in these positions only, so that older IDL may use them as identifiers.

use super::{Parsed, Parser, Reported};
use crate::ast::{Item, NewName, Port, Reference, Role, ScopedName, UnmappedItem};
use crate::intern::Keyword;
use crate::token::{Punct, TokenKind};

const WORDS: [&str; 5] = ["component", "home", "eventtype", "porttype", "connector"];

/// The kinds of ports, and the roles of their types. Attributes may occur between ports.
const PORTS: [(&str, Role); 7] = [
    ("provides", Role::Interface),
    ("uses", Role::Interface),
    ("emits", Role::Event),
    ("publishes", Role::Event),
    ("consumes", Role::Event),
    ("port", Role::PortType),
    ("mirrorport", Role::PortType),
];

impl Parser<'_> {
    /// A component or similar construct. `None` if none starts here.
    pub(super) fn component_or_like(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<Option<()>> {
        if self.at_eventtype() {
            return self.eventtype(doc, items).map(Some);
        }
        let follows = self.peek_second().is_some_and(|it| it.kind == TokenKind::Identifier);
        let word = self.word().filter(|_| follows);
        let Some(keyword) = word.and_then(|word| WORDS.into_iter().find(|it| **it == *word)) else {
            return Ok(None);
        };
        self.bump();
        let name = self.new_name_documented(&format!("the name of a {keyword}"), doc)?;
        if self.at(Punct::Semicolon) {
            items.push(Item::Unmapped(forward(keyword, name)));
            return Ok(Some(()));
        }
        let head = self.component_head(keyword);
        let Ok((bases, others)) = head else {
            self.broken(&name);
            return Err(Reported);
        };
        let body = self.component_body(keyword, &name)?;
        items.push(Item::Unmapped(UnmappedItem { keyword, name, bases, others, body: Some(body) }));
        Ok(Some(()))
    }

    /// Bases and supported interfaces, and the other names in the head.
    fn component_head(&mut self, keyword: &str) -> Parsed<(Vec<Reference>, Vec<Reference>)> {
        let (mut bases, mut others) = (Vec::new(), Vec::new());
        let base = match keyword {
            "component" => Some(Role::Component),
            "home" => Some(Role::Home),
            "connector" => Some(Role::Connector),
            _ => None,
        };
        if let Some(role) = base
            && self.accept(Punct::Colon).is_some()
        {
            bases.push(Reference { name: self.scoped_name("the name of a base")?, role });
        }
        if matches!(keyword, "component" | "home") && self.accept_keyword(Keyword::Supports).is_some() {
            bases.extend(references(self.scoped_names("the name of a supported interface")?, Role::Interface));
        }
        if keyword == "home" {
            if self.accept_word("manages").is_none() {
                return Err(self.unexpected("`manages` and a component in the head of a home"));
            }
            others.push(Reference { name: self.scoped_name("the name of a component")?, role: Role::Component });
            if self.accept_word("primarykey").is_some() {
                others.push(Reference { name: self.scoped_name("the name of a value type")?, role: Role::Value });
            }
        }
        Ok((bases, others))
    }

    fn component_body(&mut self, keyword: &str, name: &NewName) -> Parsed<Vec<Item>> {
        let open = self.expect(Punct::OpenBrace, &format!("the head of a {keyword}"));
        let open = open.inspect_err(|_| self.broken(name))?;
        let is_home = keyword == "home";
        let mut body = Vec::new();
        self.scope(name, |parser| {
            parser.nested(|parser| {
                while !parser.at_foreign_definition() && parser.peek().is_some() && !parser.at(Punct::CloseBrace) {
                    let element = if is_home { Self::home_element } else { Self::component_element };
                    parser.element_or_recover(&mut body, element);
                }
                parser.obey_events();
                body.append(&mut parser.pending);
                Ok(())
            })
        })?;
        self.close_interface(open, name)?;
        Ok(body)
    }

    /// A port or an attribute.
    fn component_element(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let (_, doc) = self.front()?;
        let word = self.word();
        let port = word.and_then(|word| PORTS.into_iter().find(|(it, _)| **it == *word));
        match (port, self.keyword()) {
            (Some((word, role)), _) => {
                self.bump();
                items.push(Item::Port(self.port(word, role)?));
                self.expect(Punct::Semicolon, "a port")?;
                Ok(())
            }
            (None, Some(Keyword::Attribute | Keyword::Readonly)) => self.plain_export(doc, items),
            _ => Err(self.unexpected("a port or an attribute")),
        }
    }

    fn port(&mut self, word: &str, role: Role) -> Parsed<Port> {
        if word == "uses" && self.at_word_before_name("multiple") {
            self.bump();
        }
        let target = if role == Role::Interface && self.accept_keyword(Keyword::Object).is_some() {
            None
        } else {
            Some(Reference { name: self.scoped_name("the type of a port")?, role })
        };
        Ok(Port { name: self.defined_identifier("the name of a port")?, target })
    }

    /// Whether the next token is `word`, followed by a name.
    fn at_word_before_name(&self, word: &str) -> bool {
        let follows = self.peek_second().map(|it| it.kind);
        // `uses multiple name` alone is a port of type `multiple`.
        let third = self.tokens.get(self.next + 2).map(|it| it.kind);
        let is_type = follows == Some(TokenKind::Identifier) && third == Some(TokenKind::Punct(Punct::Semicolon));
        self.word().as_deref() == Some(word) && !is_type
    }

    /// An initializer, a finder, or an item of an interface.
    fn home_element(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let (_, doc) = self.front()?;
        if !self.at_factory("factory") && !self.at_factory("finder") {
            return self.plain_export(doc, items);
        }
        items.push(Item::Factory(self.factory(doc)?));
        self.expect(Punct::Semicolon, "an operation of a home")?;
        Ok(())
    }

    /// Whether `eventtype`, `custom eventtype` or `abstract eventtype` starts here.
    fn at_eventtype(&self) -> bool {
        let names = |token: Option<crate::token::Token>| {
            token.is_some_and(|it| it.kind == TokenKind::Identifier && &*self.interner.text(it.symbol) == "eventtype")
        };
        match self.keyword() {
            Some(Keyword::Custom | Keyword::Abstract) => names(self.peek_second()),
            _ => names(self.peek()) && self.peek_second().is_some_and(|it| it.kind == TokenKind::Identifier),
        }
    }

    /// An event type has all items of a value type with a body.
    fn eventtype(&mut self, doc: Vec<String>, items: &mut Vec<Item>) -> Parsed<()> {
        let keyword = "eventtype";
        let modifiers = self.value_modifiers();
        self.bump();
        let name = self.new_name_documented("the name of an event type", doc)?;
        if self.at(Punct::Semicolon) {
            self.check_forward(modifiers);
            items.push(Item::Unmapped(forward(keyword, name)));
            return Ok(());
        }
        let mut value = Vec::new();
        let result = self.value_body(name, modifiers, &mut value);
        for item in value {
            if let Item::Value(item) = item {
                let mut bases = references(item.bases, Role::Value);
                bases.extend(references(item.supports, Role::Interface));
                let (name, body) = (item.name, Some(item.body));
                items.push(Item::Unmapped(UnmappedItem { keyword, name, bases, others: Vec::new(), body }));
            }
        }
        result
    }
}

fn forward(keyword: &'static str, name: NewName) -> UnmappedItem {
    UnmappedItem { keyword, name, bases: Vec::new(), others: Vec::new(), body: None }
}

fn references(names: Vec<ScopedName>, role: Role) -> Vec<Reference> {
    names.into_iter().map(|name| Reference { name, role }).collect()
}
