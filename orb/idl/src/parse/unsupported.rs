//! What the grammar of OMG IDL knows and this compiler does not support yet: passed, and reported as that.
//!
//! Each construct leaves an [`Item::Broken`], so that later uses of its name are not reported again.

use super::{Parsed, Parser, Reported};
use crate::ast::Item;
use crate::diagnostic::Diagnostic;
use crate::intern::Keyword;
use crate::token::{Punct, TokenKind};

/// Definitions that start with a word that older IDL may use as an identifier.
const WORDS: [&str; 2] = ["bitset", "bitmask"];

impl Parser<'_> {
    /// Says that what starts here is not supported yet.
    pub(super) fn unsupported_here(&mut self, what: &str) -> Reported {
        let error = Diagnostic::error(format!("not supported yet: {what}")).at(self.here(), "used here");
        self.report(error);
        Reported
    }

    /// A definition that is not supported, or none at all.
    pub(super) fn unsupported_definition(&mut self, items: &mut Vec<Item>) -> Parsed<()> {
        let Some(what) = self.unsupported_word() else {
            return Err(self.unexpected_definition());
        };
        self.unsupported_here(what);
        if self.word().is_some() {
            self.bump();
        }
        while self.keyword().is_some() {
            self.bump();
        }
        if self.word().is_some() {
            let name = self.new_name("a name")?;
            items.push(Item::Broken { name });
            self.skip_to_body();
            if self.at(Punct::OpenBrace) {
                self.skip_braces();
            }
        }
        self.recover();
        Ok(())
    }

    /// Passes what stands between a name and its body, such as bases or a discriminator.
    fn skip_to_body(&mut self) {
        while let Some(token) = self.peek() {
            match token.kind {
                TokenKind::Punct(Punct::OpenBrace | Punct::CloseBrace | Punct::Semicolon) => break,
                TokenKind::Punct(Punct::OpenParen) => self.skip_parentheses(),
                _ => {
                    self.bump();
                }
            }
        }
    }

    pub(super) fn keyword_second(&self) -> Option<Keyword> {
        let token = self.peek_second()?;
        let is_word = token.kind == TokenKind::Identifier;
        is_word.then(|| Keyword::of(token.symbol)).flatten()
    }

    fn unsupported_word(&self) -> Option<&'static str> {
        let word = self.word()?;
        let follows = self.peek_second().map(|it| it.kind);
        let introduces =
            matches!(follows, Some(TokenKind::Identifier | TokenKind::String | TokenKind::Punct(Punct::Scope)));
        if !introduces {
            return None;
        }
        let mut known = WORDS.iter();
        known.find(|it| ***it == *word).copied()
    }

    fn unexpected_definition(&mut self) -> Reported {
        let known = ["module", "interface", "struct", "exception", "enum", "typedef", "const", "union", "valuetype"];
        let near = self.word().and_then(|word| crate::suggest::closest(&word, known));
        let mut error = Diagnostic::error("expected a definition").at(self.here(), self.found());
        match near {
            Some(keyword) => error = error.help(format!("did you mean `{keyword}`?")),
            None => {
                error = error.note(
                    "a definition starts with `module`, `interface`, `struct`, `exception`, `enum`, `typedef` or `const`",
                );
            }
        }
        self.report(error);
        Reported
    }

    /// Passes `( … )`.
    pub(super) fn skip_parentheses(&mut self) {
        self.skip_balanced(Punct::OpenParen, Punct::CloseParen);
    }

    /// Passes everything up to the `}` that closes what is open, and that too.
    pub(super) fn skip_to_close(&mut self) {
        while self.peek().is_some() && !self.at(Punct::CloseBrace) {
            if self.at(Punct::OpenBrace) {
                self.skip_braces();
            } else {
                self.bump();
            }
        }
        self.bump();
    }

    pub(super) fn skip_braces(&mut self) {
        self.skip_balanced(Punct::OpenBrace, Punct::CloseBrace);
    }

    fn skip_balanced(&mut self, open: Punct, close: Punct) {
        let mut depth = 0usize;
        while let Some(token) = self.peek() {
            if token.kind == TokenKind::Punct(open) {
                depth += 1;
            } else if token.kind == TokenKind::Punct(close) {
                depth = depth.saturating_sub(1);
            }
            self.bump();
            if depth == 0 {
                return;
            }
        }
    }
}
