//! Template modules as tokens, and the replacement of their parameters by arguments.

use std::collections::HashMap;
use std::rc::Rc;

use crate::intern::Symbol;
use crate::token::{Punct, Token, TokenKind};

/// Maximum number of tokens of all instances in a run: templates may instantiate each other.
pub(super) const MOST_TOKENS: usize = 1 << 20;

/// The templates known so far.
#[derive(Debug, Default)]
pub(super) struct Templates {
    pub(super) by_name: HashMap<Symbol, Rc<Template>>,
    tokens: usize,
    /// The templates being instantiated, each inside the one before.
    pub(super) open: Vec<Symbol>,
}

#[derive(Debug)]
pub(super) struct Template {
    pub(super) parameters: Vec<Parameter>,
    pub(super) body: Vec<Token>,
    /// Comments, by the positions in `body` that they precede.
    pub(super) docs: Vec<(usize, Vec<String>)>,
}

#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) symbol: Symbol,
    pub(super) is_const: bool,
}

impl Templates {
    /// The body of a template with arguments in place of its parameters; `None` beyond the limit. `open` and
    /// `close` are the symbols of parentheses.
    #[expect(clippy::type_complexity, reason = "the same pair as in the parser, once")]
    pub(super) fn replaced(
        &mut self,
        template: &Template,
        arguments: &[Vec<Token>],
        (open, close): (Symbol, Symbol),
    ) -> Option<(Vec<Token>, Vec<(usize, Vec<String>)>)> {
        let mut tokens: Vec<Token> = Vec::new();
        let mut docs = Vec::new();
        let mut pending = template.docs.iter().peekable();
        let punct = |punct: Punct, at: Token, symbol| Token { kind: TokenKind::Punct(punct), symbol, ..at };
        for (position, &token) in template.body.iter().enumerate() {
            while let Some((_, doc)) = pending.next_if(|(at, _)| *at == position) {
                docs.push((tokens.len(), doc.clone()));
            }
            let behind_scope = tokens.last().is_some_and(|it| it.kind == TokenKind::Punct(Punct::Scope));
            let is_name = token.kind == TokenKind::Identifier && !behind_scope;
            let parameter = template.parameters.iter().position(|it| is_name && it.symbol == token.symbol);
            let before = tokens.len();
            match parameter {
                None => tokens.push(token),
                // Parentheses keep an expression together.
                Some(index) if template.parameters[index].is_const && arguments[index].len() > 1 => {
                    tokens.push(punct(Punct::OpenParen, token, open));
                    tokens.extend(&arguments[index]);
                    tokens.push(punct(Punct::CloseParen, token, close));
                }
                Some(index) => tokens.extend(&arguments[index]),
            }
            self.tokens += tokens.len() - before;
            if self.tokens > MOST_TOKENS {
                return None;
            }
        }
        Some((tokens, docs))
    }
}
