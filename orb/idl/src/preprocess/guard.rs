//! Include guards: a file entirely between `#ifndef NAME` and `#endif` is empty while `NAME` is defined. Such
//! a file is not read again, so that a hundred inclusions cost as much as one.

use crate::intern::{Interner, Symbol};
use crate::token::{Punct, Token, TokenKind};

/// The guard of the file with these tokens.
pub(super) fn guard(tokens: &[Token], interner: &Interner) -> Option<Symbol> {
    let mut name = None;
    let mut depth = 0usize;
    for line in tokens.split(|token| token.kind == TokenKind::Newline) {
        let mut words = line.iter().filter(|token| token.kind != TokenKind::Comment);
        let Some(first) = words.next() else {
            continue;
        };
        let directive = words.next().filter(|_| first.kind == TokenKind::Punct(Punct::Hash));
        let directive = directive.map(|token| interner.text(token.symbol));
        match (directive.as_deref(), depth) {
            (Some("ifndef"), 0) if name.is_none() => {
                name = Some(words.next().filter(|it| it.kind == TokenKind::Identifier)?.symbol);
                depth = 1;
            }
            // A token is outside the guard.
            (_, 0) | (Some("else" | "elif"), 1) => return None,
            (Some("if" | "ifdef" | "ifndef"), _) => depth += 1,
            (Some("endif"), _) => depth -= 1,
            _ => {}
        }
    }
    name.filter(|_| depth == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lexer::tokenize;
    use crate::source::FileId;

    fn guarded(text: &str) -> bool {
        let mut interner = Interner::new();
        let tokens = tokenize(FileId(0), text, &mut interner);
        guard(&tokens, &interner).is_some_and(|name| &*interner.text(name) == "G")
    }

    #[test]
    fn only_a_file_entirely_inside_a_guard_is_guarded() {
        assert!(guarded("// File.\n#ifndef G /* why */\n#define G\n#if A\n#else\n#endif\ntext\n#endif // G\n\n"));
        for text in [
            "",
            "text\n#ifndef G\n#endif",
            "#ifndef G\n#endif\ntext",
            "#ifndef G\n#else\ntext\n#endif",
            "#ifndef G\n#endif\n#ifndef G\n#endif",
            "#ifdef G\n#endif",
            "#if !defined G\n#endif",
            "#ifndef G\n#if A\n#endif",
            "#ifndef\n#endif",
            "#ifndef G\n#define G\n/* open",
            "#pragma prefix \"x\"\n#ifndef G\n#endif",
        ] {
            assert!(!guarded(text), "{text}");
        }
    }
}
