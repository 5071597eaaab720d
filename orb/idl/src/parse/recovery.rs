//! Recovery from syntax errors: text is skipped up to a position from which parsing can continue.

use super::{Parser, Reported};
use crate::diagnostic::Diagnostic;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// Skips the text between a name and its body, such as bases or a discriminator.
    pub(super) fn skip_to_body(&mut self) {
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

    pub(super) fn unexpected_definition(&mut self) -> Reported {
        let keywords = ["module", "interface", "struct", "exception", "enum", "typedef", "const", "union", "valuetype"];
        let near = self.word().and_then(|word| spandrel_error::closest(&word, keywords));
        let mut error = Diagnostic::error("expected a definition").at(self.here(), self.found());
        match near {
            Some(keyword) => error = error.help(format!("did you mean `{keyword}`?")),
            None => {
                error = error.note(
                    "a definition starts with `module`, `interface`, `struct`, `union`, `enum`, `exception`, `typedef` or `const`",
                );
            }
        }
        self.report(error);
        Reported
    }

    /// Skips `( … )`.
    fn skip_parentheses(&mut self) {
        self.skip_balanced(Punct::OpenParen, Punct::CloseParen);
    }

    /// Skips everything up to and including the closing `}`.
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
