//! `typeid`, `typeprefix` and `import` (IDL 4.2, 7.4.6.4).

use super::{Parsed, Parser, Reported};
use crate::ast::{Declaration, Item};
use crate::diagnostic::Diagnostic;
use crate::literal;
use crate::source::Span;
use crate::token::{Punct, TokenKind};

impl Parser<'_> {
    /// `typeid` or `typeprefix`, also permitted in interfaces. `None` if neither starts here.
    pub(super) fn id_declaration(&mut self, items: &mut Vec<Item>) -> Parsed<Option<&'static str>> {
        let what = match self.word().as_deref() {
            Some("typeid") => "typeid",
            Some("typeprefix") => "typeprefix",
            _ => return Ok(None),
        };
        if !self.at_name_and_text() {
            return Ok(None);
        }
        let start = self.here();
        self.not_portable("`typeid` and `typeprefix`", "CORBA 3", start);
        self.bump();
        let name = self.scoped_name("the name of a definition")?;
        let (text, end) = self.plain_text("a string")?;
        items.push(match what {
            "typeid" => Item::PragmaId { name, id: text, span: start.to(end) },
            _ => Item::Declaration(Declaration::TypePrefix { name, prefix: text }),
        });
        Ok(Some(what))
    }

    /// Whether a scoped name and a string follow the next token, unlike anything else in the grammar.
    fn at_name_and_text(&self) -> bool {
        let kinds = self.tokens.iter().skip(self.next + 1).map(|it| it.kind);
        let mut kinds = kinds.skip_while(|kind| matches!(kind, TokenKind::Identifier | TokenKind::Punct(Punct::Scope)));
        let starts = matches!(
            self.peek_second().map(|it| it.kind),
            Some(TokenKind::Identifier | TokenKind::Punct(Punct::Scope))
        );
        starts && kinds.next() == Some(TokenKind::String)
    }

    /// `import`; `None` if it does not start here.
    pub(super) fn import(&mut self, items: &mut Vec<Item>) -> Parsed<Option<&'static str>> {
        let follows = self.peek_second().map(|it| it.kind);
        let introduces =
            matches!(follows, Some(TokenKind::Identifier | TokenKind::String | TokenKind::Punct(Punct::Scope)));
        if self.word().as_deref() != Some("import") || !introduces {
            return Ok(None);
        }
        self.not_portable("imports", "CORBA 3", self.here());
        self.bump();
        let declaration = if follows == Some(TokenKind::String) {
            let (id, span) = self.plain_text("a repository id")?;
            Declaration::ImportId { id, span }
        } else {
            Declaration::Import(self.scoped_name("the name of a scope")?)
        };
        items.push(Item::Declaration(declaration));
        Ok(Some("an import"))
    }

    /// A string literal that becomes part of repository ids.
    fn plain_text(&mut self, expected: &str) -> Parsed<(String, Span)> {
        let Some(token) = self.peek().filter(|it| it.kind == TokenKind::String) else {
            return Err(self.unexpected(expected));
        };
        self.bump();
        let problem = match literal::repository_id(&self.interner.text(token.symbol)) {
            Ok(text) if text.len() <= literal::LONGEST_ID => return Ok((text, token.span)),
            Ok(_) => format!("a repository id has at most {} octets", literal::LONGEST_ID),
            Err(problem) => problem.to_owned(),
        };
        self.report(Diagnostic::error(problem).at(token.span, ""));
        Err(Reported)
    }
}
