//! The grammar of `svc.conf` (`Svc_Conf.y` of ACE), and `include`.

use super::directive::{
    Directive, DirectiveKind, Dynamic, Location, Origin, Position, ServiceKind, Static, StreamDirective, StreamHead,
};
use super::lexer::{Token, TokenKind, tokens};
use super::syntax_error::SyntaxError;

/// The words that begin a directive.
const KEYWORDS: [&str; 6] = ["dynamic", "static", "suspend", "resume", "remove", "stream"];
/// Words that cannot be names.
const RESERVED: [&str; 11] = [
    "dynamic",
    "static",
    "suspend",
    "resume",
    "remove",
    "stream",
    "Module",
    "Service_Object",
    "STREAM",
    "active",
    "inactive",
];

/// A directive, or a file to be read in its place.
pub(super) enum Entry {
    Directive(Directive),
    Include(String, Position),
}

/// Reads a text. All errors are reported: after one, reading continues at the next directive.
pub(super) fn parse(text: &str) -> Result<Vec<Entry>, Vec<SyntaxError>> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0 };
    let (mut entries, mut errors) = (Vec::new(), Vec::new());
    while *parser.peek() != TokenKind::End {
        let line = parser.position().line;
        match parser.entry() {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                errors.push(error);
                parser.skip_to_directive(line);
            }
        }
    }
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn position(&self) -> Position {
        self.tokens[self.at].position
    }

    fn next(&mut self) -> TokenKind {
        let kind = self.peek().clone();
        if kind != TokenKind::End {
            self.at += 1;
        }
        kind
    }

    fn expected(&self, what: &str) -> SyntaxError {
        SyntaxError::new(self.position(), format!("expected {what}, found {}", self.peek().description()))
    }

    fn is_keyword(&self, keywords: &[&str]) -> bool {
        matches!(self.peek(), TokenKind::Identifier(word) if keywords.contains(&word.as_str()))
    }

    fn takes(&mut self, character: char) -> bool {
        let is_next = *self.peek() == TokenKind::Punctuation(character);
        self.at += usize::from(is_next);
        is_next
    }

    fn punctuation(&mut self, character: char, after: &str) -> Result<(), SyntaxError> {
        if self.takes(character) { Ok(()) } else { Err(self.expected(&format!("`{character}` after {after}"))) }
    }

    /// Skips the rest of a directive with an error, which begins in that line.
    fn skip_to_directive(&mut self, line: u32) {
        while *self.peek() != TokenKind::End
            && !(self.position().line > line && (self.is_keyword(&KEYWORDS) || self.is_keyword(&["include"])))
        {
            self.at += 1;
        }
    }

    fn entry(&mut self) -> Result<Entry, SyntaxError> {
        if self.is_keyword(&["include"]) {
            self.at += 1;
            let position = self.position();
            return match self.next() {
                TokenKind::Text(path) | TokenKind::Path(path) | TokenKind::Identifier(path) => {
                    Ok(Entry::Include(path, position))
                }
                _ => {
                    self.at -= 1;
                    Err(self.expected("the name of a file after `include`"))
                }
            };
        }
        if !self.is_keyword(&["stream"]) {
            return self.directive().map(Entry::Directive);
        }
        let origin = self.origin();
        self.at += 1;
        let head = if self.is_keyword(&["dynamic"]) {
            self.at += 1;
            StreamHead::Dynamic(self.dynamic()?)
        } else if self.is_keyword(&["static"]) {
            self.at += 1;
            StreamHead::Static(self.fixed()?)
        } else {
            StreamHead::Existing(self.name("`dynamic`, `static` or the name of a stream after `stream`")?)
        };
        let modules = self.modules()?;
        Ok(Entry::Directive(Directive { kind: DirectiveKind::Stream(StreamDirective { head, modules }), origin }))
    }

    fn modules(&mut self) -> Result<Vec<Directive>, SyntaxError> {
        let mut modules = Vec::new();
        if self.takes('{') {
            while !self.takes('}') {
                if self.is_keyword(&["stream"]) {
                    return Err(SyntaxError::new(self.position(), "a stream cannot contain a stream".to_owned()));
                }
                if *self.peek() == TokenKind::End {
                    return Err(self.expected("`}` after the modules of the stream"));
                }
                modules.push(self.directive()?);
            }
        }
        Ok(modules)
    }

    fn origin(&self) -> Origin {
        Origin { position: self.position(), ..Origin::default() }
    }

    fn directive(&mut self) -> Result<Directive, SyntaxError> {
        let origin = self.origin();
        let TokenKind::Identifier(keyword) = self.peek().clone() else { return Err(self.expected(&directives())) };
        if !KEYWORDS.contains(&keyword.as_str()) {
            return Err(self.expected(&directives()));
        }
        self.at += 1;
        let kind = match keyword.as_str() {
            "dynamic" => DirectiveKind::Dynamic(self.dynamic()?),
            "static" => DirectiveKind::Static(self.fixed()?),
            "suspend" => DirectiveKind::Suspend(self.service_name("suspend")?),
            "resume" => DirectiveKind::Resume(self.service_name("resume")?),
            _ => DirectiveKind::Remove(self.service_name("remove")?),
        };
        Ok(Directive { kind, origin })
    }

    fn service_name(&mut self, keyword: &str) -> Result<String, SyntaxError> {
        self.name(&format!("the name of a service after `{keyword}`"))
    }

    fn name(&mut self, what: &str) -> Result<String, SyntaxError> {
        match self.peek().clone() {
            TokenKind::Identifier(word) if !RESERVED.contains(&word.as_str()) => {
                self.at += 1;
                Ok(word)
            }
            TokenKind::Identifier(word) => {
                Err(SyntaxError::new(self.position(), format!("expected {what}; `{word}` is a keyword")))
            }
            TokenKind::Path(word) => Err(SyntaxError::new(
                self.position(),
                format!("expected {what}; `{word}` is no name: it has one of / \\ : % . ~ - or begins with a digit"),
            )),
            _ => Err(self.expected(what)),
        }
    }

    fn parameters(&mut self) -> String {
        match self.peek().clone() {
            TokenKind::Text(text) => {
                self.at += 1;
                text
            }
            _ => String::new(),
        }
    }

    fn fixed(&mut self) -> Result<Static, SyntaxError> {
        Ok(Static { name: self.service_name("static")?, parameters: self.parameters() })
    }

    fn dynamic(&mut self) -> Result<Dynamic, SyntaxError> {
        let name = self.service_name("dynamic")?;
        let kind = match self.peek() {
            TokenKind::Identifier(word) if word == "Service_Object" => ServiceKind::ServiceObject,
            TokenKind::Identifier(word) if word == "Module" => ServiceKind::Module,
            TokenKind::Identifier(word) if word == "STREAM" => ServiceKind::Stream,
            _ => {
                return Err(self.expected(&format!("`Service_Object *`, `Module *` or `STREAM *` after `{name}`")));
            }
        };
        self.at += 1;
        self.punctuation('*', &format!("`{}`", kind.keyword()))?;
        let location = self.location()?;
        let is_active = !self.is_keyword(&["inactive"]);
        if self.is_keyword(&["active", "inactive"]) {
            self.at += 1;
        }
        Ok(Dynamic { name, kind, location, is_active, parameters: self.parameters() })
    }

    fn location(&mut self) -> Result<Location, SyntaxError> {
        const WHAT: &str = "LIBRARY:FACTORY()";
        let library = match self.peek().clone() {
            TokenKind::Punctuation(':') => None,
            TokenKind::Identifier(library) | TokenKind::Path(library) | TokenKind::Text(library) => {
                self.at += 1;
                Some(library)
            }
            _ => return Err(self.expected(WHAT)),
        };
        let after = library.as_ref().map_or_else(|| "`*`".to_owned(), |library| format!("the library `{library}`"));
        self.punctuation(':', &after)?;
        let symbol = self.name("the name of a factory after `:`")?;
        let is_function = self.takes('(');
        if is_function {
            self.punctuation(')', "`(`")?;
        } else if library.is_none() {
            return Err(self.expected("`()` after a factory of the program"));
        }
        Ok(Location { library, symbol, is_function })
    }
}

fn directives() -> String {
    format!("a directive ({}, include)", KEYWORDS.join(", "))
}
