//! The parser: recursive descent over the preprocessed tokens (the grammar of IDL 4.2, 7.4).
//!
//! After an error it continues at the next definition. Unsupported constructs of the grammar are parsed as
//! far as needed to skip them, and reported.

use std::rc::Rc;

use crate::ast::{Item, Name, NewName, ScopedName};
use crate::diagnostic::{Diagnostic, Reporter};
use crate::intern::{Interner, Keyword, Symbol};
use crate::portability::Portability;
use crate::preprocess::{Context, Event, EventKind, Preprocessed};
use crate::source::{FileId, SourceMap, Span};
use crate::token::{Punct, Token, TokenKind};

mod annotations;
mod components;
mod declarations;
mod definitions;
mod expressions;
mod extended;
mod interfaces;
mod prefix;
mod recovery;
mod replacement;
mod templates;
mod types;
mod unions;
mod values;

pub(crate) use extended::EXTENDED;
use prefix::Prefixes;
pub(crate) use prefix::join;
use replacement::Templates;

/// Maximum nesting of modules, types and parentheses together.
const DEEPEST: usize = 64;

/// The longest identifier, and the longest name with its scopes.
pub(crate) const LONGEST_NAME: usize = 512;

/// The longest comment, in octets, that is copied to each name in a list.
const LONGEST_SHARED_DOC: usize = 512;

/// Parses a whole specification.
pub(crate) fn parse(input: Preprocessed, context: Context<'_>) -> Vec<Item> {
    let nowhere = Span { file: FileId(0), start: 0, end: 0 };
    let mut parser = Parser {
        tokens: input.tokens,
        next: 0,
        end: input.end.unwrap_or(nowhere),
        events: input.events.into_iter().peekable(),
        docs: input.docs,
        prefixes: Prefixes::new(),
        templates: Templates::default(),
        pending: Vec::new(),
        in_angles: false,
        depth: 0,
        portability: context.portability,
        sources: context.sources,
        interner: context.interner,
        reporter: context.reporter,
    };
    parser.specification()
}

struct Parser<'a> {
    tokens: Vec<Token>,
    next: usize,
    end: Span,
    events: std::iter::Peekable<std::vec::IntoIter<Event>>,
    docs: Vec<(usize, Vec<String>)>,
    prefixes: Prefixes,
    templates: Templates,
    /// Items for the current scope: pragmas that have been passed, and names of incomplete definitions.
    pending: Vec<Item>,
    depth: usize,
    portability: &'a mut Portability,
    /// Whether the parser is in the bound of a `sequence<…>` or `string<…>`, where `>>` closes and does not
    /// shift.
    in_angles: bool,
    sources: &'a SourceMap,
    interner: &'a mut Interner,
    reporter: &'a mut Reporter,
}

/// A parse error that has been reported.
#[derive(Clone, Copy, Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

impl Parser<'_> {
    /// Warns of a construct that other compilers do not read, if such warnings are wanted.
    fn not_portable(&mut self, construct: &'static str, since: &str, span: Span) {
        if let Some(warning) = self.portability.check(construct, since, span) {
            self.report(warning);
        }
    }

    fn peek(&self) -> Option<Token> {
        self.tokens.get(self.next).copied()
    }

    fn peek_second(&self) -> Option<Token> {
        self.tokens.get(self.next + 1).copied()
    }

    /// Consumes a token, and applies the pragmas before it.
    fn bump(&mut self) -> Option<Token> {
        let token = self.peek()?;
        self.obey_events();
        self.next += 1;
        Some(token)
    }

    fn obey_events(&mut self) {
        while let Some(event) = self.events.next_if(|event| event.before <= self.next) {
            match event.kind {
                EventKind::EnterFile => self.prefixes.enter_file(),
                EventKind::LeaveFile => self.prefixes.leave_file(),
                EventKind::Prefix(prefix) => self.prefixes.set(&prefix),
                EventKind::Id { name, id, span } => {
                    let name = self.pragma_name(&name);
                    self.pending.push(Item::PragmaId { name, id, span });
                }
                EventKind::Version { name, version, span } => {
                    let name = self.pragma_name(&name);
                    self.pending.push(Item::PragmaVersion { name, version, span });
                }
            }
        }
    }

    fn pragma_name(&mut self, tokens: &[Token]) -> ScopedName {
        let names = tokens.iter().filter(|it| it.kind == TokenKind::Identifier);
        let names: Vec<Token> = names.copied().collect();
        let absolute = tokens.first().map(|it| it.kind) != Some(TokenKind::Identifier);
        let span = |token: Option<&Token>| token.map_or(self.end, |it| it.span);
        let span = span(tokens.first()).to(span(tokens.last()));
        let parts = names.iter().map(|token| Name { symbol: self.unescaped(token.symbol), span: token.span });
        let parts = parts.collect();
        ScopedName { absolute, parts, span }
    }

    /// The position of the next token, or else of the end of the file.
    fn here(&self) -> Span {
        self.peek().map_or(self.end, |token| token.span)
    }

    fn at(&self, punct: Punct) -> bool {
        self.peek().is_some_and(|token| token.kind == TokenKind::Punct(punct))
    }

    fn accept(&mut self, punct: Punct) -> Option<Span> {
        if !self.at(punct) {
            return None;
        }
        self.bump().map(|token| token.span)
    }

    fn keyword(&self) -> Option<Keyword> {
        let token = self.peek()?;
        let is_word = token.kind == TokenKind::Identifier;
        is_word.then(|| Keyword::of(token.symbol)).flatten()
    }

    fn keyword_second(&self) -> Option<Keyword> {
        let token = self.peek_second()?;
        let is_word = token.kind == TokenKind::Identifier;
        is_word.then(|| Keyword::of(token.symbol)).flatten()
    }

    fn accept_keyword(&mut self, keyword: Keyword) -> Option<Span> {
        if self.keyword() != Some(keyword) {
            return None;
        }
        self.bump().map(|token| token.span)
    }

    /// The spelling of the next token if it is an identifier and not a keyword: a word that is reserved in
    /// some positions only.
    fn word(&self) -> Option<Rc<str>> {
        let token = self.peek()?;
        let is_word = token.kind == TokenKind::Identifier && Keyword::of(token.symbol).is_none();
        is_word.then(|| self.interner.text(token.symbol))
    }

    fn accept_word(&mut self, word: &str) -> Option<Span> {
        if self.word().as_deref() != Some(word) {
            return None;
        }
        self.bump().map(|token| token.span)
    }

    /// Consumes `punct`, or reports its absence. A missing `;` is reported after the last token, where it
    /// belongs.
    fn expect(&mut self, punct: Punct, after: &str) -> Parsed<Span> {
        if let Some(span) = self.accept(punct) {
            return Ok(span);
        }
        let text = punct.text();
        let message = format!("expected `{text}` after {after}");
        let previous = self.next.checked_sub(1).and_then(|it| self.tokens.get(it));
        let error = match previous {
            Some(previous) if punct == Punct::Semicolon => {
                let behind = Span { start: previous.span.end, ..previous.span };
                Diagnostic::error(message)
                    .at(behind, format!("`{text}` is missing here"))
                    .also(self.here(), self.found())
            }
            _ => Diagnostic::error(message).at(self.here(), self.found()),
        };
        self.report(error);
        Err(Reported)
    }

    /// "found …" for the next token.
    fn found(&self) -> String {
        match self.peek() {
            None => "found the end of the file".to_owned(),
            Some(token) if token.kind == TokenKind::Unterminated => "found a literal without its end".to_owned(),
            Some(token) => {
                let text = self.interner.text(token.symbol);
                let text: String = text.chars().take(40).collect();
                match Keyword::of(token.symbol) {
                    Some(_) if token.kind == TokenKind::Identifier => {
                        format!("found the keyword `{text}`")
                    }
                    _ => format!("found `{text}`"),
                }
            }
        }
    }

    /// Records a name without a usable definition.
    fn broken(&mut self, name: &NewName) {
        self.pending.push(Item::Broken { name: name.clone() });
    }

    fn unexpected(&mut self, expected: &str) -> Reported {
        let error = Diagnostic::error(format!("expected {expected}")).at(self.here(), self.found());
        self.report(error);
        Reported
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.reporter.report(diagnostic);
    }

    /// Runs `inner` one level deeper, up to the limit.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == DEEPEST {
            let error = Diagnostic::error("this is nested too deep")
                .at(self.here(), "the limit is exceeded here")
                .note(format!("modules, types and parentheses may nest {DEEPEST} deep"));
            self.reporter.give_up(error);
            // The text after this position cannot be parsed.
            self.next = self.tokens.len();
            return Err(Reported);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// An identifier that is being defined.
    fn new_name(&mut self, expected: &str) -> Parsed<NewName> {
        let doc = self.doc();
        self.new_name_documented(expected, doc)
    }

    fn new_name_documented(&mut self, expected: &str, doc: Vec<String>) -> Parsed<NewName> {
        let name = self.defined_identifier(expected)?;
        Ok(NewName { name, prefix: self.prefixes.current(), doc })
    }

    /// An identifier that is defined here: it may not differ from a keyword in case only (IDL 4.2, 7.2.4).
    fn defined_identifier(&mut self, expected: &str) -> Parsed<Name> {
        let token = self.peek();
        let name = self.identifier(expected)?;
        let text = token.map_or_else(|| "".into(), |token| self.interner.text(token.symbol));
        if let Some(keyword) = Keyword::colliding(&text) {
            let keyword = keyword.text();
            let message = format!("the identifier `{text}` collides with the keyword `{keyword}`");
            let error = Diagnostic::error(message)
                .at(name.span, "differs from it only in case")
                .help(format!("use an escaped identifier: `_{text}`"));
            self.report(error);
        }
        Ok(name)
    }

    fn identifier(&mut self, expected: &str) -> Parsed<Name> {
        let Some(token) = self.peek().filter(|it| it.kind == TokenKind::Identifier) else {
            return Err(self.unexpected(expected));
        };
        if let Some(keyword) = Keyword::of(token.symbol) {
            let text = keyword.text();
            let error = Diagnostic::error(format!("expected {expected}"))
                .at(token.span, format!("`{text}` is a keyword"))
                .help(format!("use an escaped identifier: `_{text}`"));
            self.report(error);
            return Err(Reported);
        }
        self.bump();
        Ok(self.checked_name(token))
    }

    /// The name of an identifier (IDL 4.2, 7.2.3), with errors for its form.
    fn checked_name(&mut self, token: Token) -> Name {
        let text = self.interner.text(token.symbol);
        let symbol = self.unescaped(token.symbol);
        let name = Name { symbol, span: token.span };
        let plain = text.strip_prefix('_').unwrap_or(&text);
        let problem = if text.len() > LONGEST_NAME {
            format!("an identifier has at most {LONGEST_NAME} characters")
        } else if !plain.bytes().next().is_some_and(|it| it.is_ascii_alphabetic()) {
            "an identifier starts with a letter, or with one `_` that escapes it".to_owned()
        } else if !plain.is_ascii() {
            "an identifier consists of the letters A to Z and a to z, digits and `_`".to_owned()
        } else {
            return name;
        };
        self.report(Diagnostic::error(problem).at(token.span, ""));
        name
    }

    fn unescaped(&mut self, symbol: Symbol) -> Symbol {
        let text = self.interner.text(symbol);
        match text.strip_prefix('_') {
            Some(plain) => self.interner.intern(plain),
            None => symbol,
        }
    }

    fn at_scoped_name(&self) -> bool {
        self.at(Punct::Scope) || self.word().is_some()
    }

    fn scoped_name(&mut self, expected: &str) -> Parsed<ScopedName> {
        let start = self.here();
        let absolute = self.accept(Punct::Scope).is_some();
        let mut parts = vec![self.identifier(expected)?];
        let mut end = parts[0].span;
        while self.accept(Punct::Scope).is_some() {
            let part = self.scoped_part()?;
            end = part.span;
            parts.push(part);
        }
        Ok(ScopedName { absolute, parts, span: start.to(end) })
    }

    /// A name after `::`, where two keywords are permitted too: `CORBA::Object` is `Object`.
    fn scoped_part(&mut self) -> Parsed<Name> {
        match (self.keyword(), self.peek()) {
            (Some(Keyword::Object | Keyword::ValueBase), Some(token)) => {
                self.bump();
                Ok(Name { symbol: token.symbol, span: token.span })
            }
            _ => self.identifier("a name after `::`"),
        }
    }

    /// Parses `name, name, …`, one name at least.
    fn scoped_names(&mut self, expected: &str) -> Parsed<Vec<ScopedName>> {
        let mut names = vec![self.scoped_name(expected)?];
        while self.accept(Punct::Comma).is_some() {
            names.push(self.scoped_name(expected)?);
        }
        Ok(names)
    }

    /// The comment before the next token.
    fn doc(&mut self) -> Vec<String> {
        let position = self.docs.binary_search_by_key(&self.next, |(at, _)| *at);
        match position {
            Ok(index) => std::mem::take(&mut self.docs[index].1),
            Err(_) => Vec::new(),
        }
    }

    /// The comment before the next token; or else that before the whole list, if it is short: it is copied to
    /// each name.
    fn doc_in_list(&mut self, first: bool, shared: &[String]) -> Vec<String> {
        let own = self.doc();
        let is_short = || shared.iter().map(String::len).sum::<usize>() <= LONGEST_SHARED_DOC;
        if own.is_empty() && (first || is_short()) { shared.to_vec() } else { own }
    }

    /// Skips to the end of the definition with the error: after the next `;` outside nested braces, or before
    /// the `}` of the enclosing scope.
    fn recover(&mut self) {
        let mut depth = 0usize;
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Punct(Punct::OpenBrace) => depth += 1,
                TokenKind::Punct(Punct::CloseBrace) => {
                    if depth == 0 {
                        return;
                    }
                    depth -= 1;
                }
                TokenKind::Punct(Punct::Semicolon) if depth == 0 => {
                    self.bump();
                    return;
                }
                // A missing `;`: the next line begins with a definition.
                TokenKind::Identifier if depth == 0 && self.surely_starts_definition(token) => {
                    return;
                }
                _ => {}
            }
            self.bump();
        }
    }

    fn surely_starts_definition(&self, token: Token) -> bool {
        let starts = matches!(
            Keyword::of(token.symbol),
            Some(
                Keyword::Module
                    | Keyword::Interface
                    | Keyword::Typedef
                    | Keyword::Exception
                    | Keyword::Valuetype
                    | Keyword::Union
            )
        );
        let previous = self.next.checked_sub(1).and_then(|it| self.tokens.get(it));
        starts && previous.is_some_and(|it| self.newline_between(it.span, token.span))
    }

    fn newline_between(&self, before: Span, after: Span) -> bool {
        let between = Span { start: before.end, end: after.start, ..before };
        before.file != after.file || self.sources.text(between).contains('\n')
    }
}

#[cfg(test)]
mod tests;
