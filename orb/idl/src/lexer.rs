//! The lexer, for the preprocessor and the parser.
//!
//! It reports no errors: text that an `#if` excludes may contain anything, so malformed text becomes a token
//! of its own kind, and the user of the token reports it.

use crate::intern::Interner;
use crate::source::{FileId, Span};
use crate::token::{Punct, Token, TokenKind};

/// Divides a file into tokens. Each line ends with a [`TokenKind::Newline`], also the last.
///
/// Comments are tokens; a backslash at the end of a line joins it to the next, inside tokens too.
pub(crate) fn tokenize(file: FileId, text: &str, interner: &mut Interner) -> Vec<Token> {
    tokenize_up_to(usize::MAX, file, text, interner).unwrap_or_default()
}

/// As [`tokenize`], for at most `limit` tokens before the final line end. The error is the position of the
/// first token beyond.
pub(crate) fn tokenize_up_to(
    limit: usize,
    file: FileId,
    text: &str,
    interner: &mut Interner,
) -> Result<Vec<Token>, Span> {
    let mut lexer = Lexer { text, octets: text.as_bytes(), position: 0, spliced: false };
    let mut tokens = Vec::with_capacity((text.len() / 4).min(limit));
    loop {
        let spaced = lexer.skip_blanks();
        lexer.spliced = false;
        let start = lexer.position;
        let Some(kind) = lexer.token() else {
            break;
        };
        let span = Span { file, start: start as u32, end: lexer.position as u32 };
        if tokens.len() == limit {
            return Err(span);
        }
        let raw = &text[start..lexer.position];
        let symbol = match kind {
            TokenKind::Newline | TokenKind::Comment | TokenKind::UnterminatedComment => interner.intern(""),
            _ if lexer.spliced => interner.intern(&without_splices(raw)),
            _ => interner.intern(raw),
        };
        tokens.push(Token { kind, spaced, painted: false, symbol, span });
    }
    if tokens.last().map(|token| token.kind) != Some(TokenKind::Newline) {
        let end = text.len() as u32;
        tokens.push(Token {
            kind: TokenKind::Newline,
            spaced: false,
            painted: false,
            symbol: interner.intern(""),
            span: Span { file, start: end, end },
        });
    }
    Ok(tokens)
}

/// The text with lines joined at backslashes.
pub(crate) fn without_splices(text: &str) -> String {
    text.replace("\\\r\n", "").replace("\\\n", "")
}

struct Lexer<'t> {
    text: &'t str,
    octets: &'t [u8],
    position: usize,
    spliced: bool,
}

impl Lexer<'_> {
    /// The next octet, after line splices.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match &self.octets[self.position..] {
                [b'\\', b'\n', ..] => self.position += 2,
                [b'\\', b'\r', b'\n', ..] => self.position += 3,
                rest => return rest.first().copied(),
            }
            self.spliced = true;
        }
    }

    /// The octet after the next, after line splices.
    fn peek_second(&mut self) -> Option<u8> {
        self.peek()?;
        let (position, spliced) = (self.position, self.spliced);
        self.position += 1;
        let second = self.peek();
        (self.position, self.spliced) = (position, spliced);
        second
    }

    fn skip_blanks(&mut self) -> bool {
        let mut skipped = false;
        while let Some(b' ' | b'\t' | b'\r' | 0x0b | 0x0c) = self.peek() {
            self.position += 1;
            skipped = true;
        }
        skipped
    }

    fn token(&mut self) -> Option<TokenKind> {
        let first = self.peek()?;
        let second = self.peek_second();
        let kind = match (first, second) {
            (b'\n', _) => {
                self.position += 1;
                TokenKind::Newline
            }
            (b'/', Some(b'/')) => self.line_comment(),
            (b'/', Some(b'*')) => self.block_comment(),
            (b'L', Some(b'"')) => self.quoted(b'"', TokenKind::WideString),
            (b'L', Some(b'\'')) => self.quoted(b'\'', TokenKind::WideChar),
            (b'"', _) => self.quoted(b'"', TokenKind::String),
            (b'\'', _) => self.quoted(b'\'', TokenKind::Char),
            (b'0'..=b'9', _) | (b'.', Some(b'0'..=b'9')) => self.number(),
            (b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.., _) => self.identifier(),
            _ => self.punctuation(),
        };
        Some(kind)
    }

    fn line_comment(&mut self) -> TokenKind {
        while !matches!(self.peek(), None | Some(b'\n')) {
            self.position += 1;
        }
        TokenKind::Comment
    }

    fn block_comment(&mut self) -> TokenKind {
        let mut before = 0;
        self.position += 1;
        self.peek();
        self.position += 1;
        while let Some(octet) = self.peek() {
            self.position += 1;
            if (before, octet) == (b'*', b'/') {
                return TokenKind::Comment;
            }
            before = octet;
        }
        TokenKind::UnterminatedComment
    }

    fn quoted(&mut self, quote: u8, kind: TokenKind) -> TokenKind {
        if matches!(kind, TokenKind::WideString | TokenKind::WideChar) {
            self.position += 1;
            self.peek();
        }
        self.position += 1;
        loop {
            match self.peek() {
                None | Some(b'\n') => return TokenKind::Unterminated,
                Some(b'\\') => {
                    self.position += 1;
                    if !matches!(self.peek(), None | Some(b'\n')) {
                        self.position += 1;
                    }
                }
                Some(octet) => {
                    self.position += 1;
                    if octet == quote {
                        return kind;
                    }
                }
            }
        }
    }

    /// A preprocessing number: digits, letters and dots, and a sign after the `e` of a decimal exponent.
    fn number(&mut self) -> TokenKind {
        let hexadecimal = self.peek() == Some(b'0') && matches!(self.peek_second(), Some(b'x' | b'X'));
        while let Some(octet) = self.peek() {
            match octet {
                b'e' | b'E' if !hexadecimal => {
                    self.position += 1;
                    if matches!(self.peek(), Some(b'+' | b'-')) {
                        self.position += 1;
                    }
                }
                b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' => self.position += 1,
                _ => break,
            }
        }
        TokenKind::Number
    }

    fn identifier(&mut self) -> TokenKind {
        let start = self.position;
        while let Some(octet) = self.peek() {
            match octet {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => self.position += 1,
                0x80.. => {
                    let rest = &self.text[self.position..];
                    let Some(letter) = rest.chars().next() else {
                        break;
                    };
                    if !letter.is_alphanumeric() && self.position == start {
                        self.position += letter.len_utf8();
                        return TokenKind::Unknown;
                    } else if !letter.is_alphanumeric() {
                        break;
                    }
                    self.position += letter.len_utf8();
                }
                _ => break,
            }
        }
        TokenKind::Identifier
    }

    fn punctuation(&mut self) -> TokenKind {
        let here = self.position;
        // C permits a splice inside punctuation, but it is not used in practice: `:\⏎:` is two tokens here.
        match Punct::starting(&self.octets[here..]) {
            Some(punct) => {
                self.position += punct.text().len();
                TokenKind::Punct(punct)
            }
            None => {
                self.position += 1;
                TokenKind::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spellings(text: &str) -> Vec<(TokenKind, String)> {
        let mut interner = Interner::new();
        let tokens = tokenize(FileId(0), text, &mut interner);
        let significant = tokens.iter().filter(|token| token.kind != TokenKind::Newline);
        significant.map(|token| (token.kind, interner.text(token.symbol).to_string())).collect()
    }

    #[test]
    fn a_backslash_joins_lines_inside_a_token() {
        let expected = vec![(TokenKind::Identifier, "interface".to_owned()), (TokenKind::String, "\"ab\"".to_owned())];
        assert_eq!(spellings("inter\\\nface \"a\\\r\nb\""), expected);
    }

    #[test]
    fn a_hexadecimal_number_takes_no_sign() {
        let texts: Vec<String> = spellings("0xE-1 1e-5 .5").into_iter().map(|it| it.1).collect();
        assert_eq!(texts, ["0xE", "-", "1", "1e-5", ".5"]);
    }

    #[test]
    fn unterminated_literals_and_comments_have_their_own_tokens() {
        assert_eq!(spellings("\"abc")[0].0, TokenKind::Unterminated);
        assert_eq!(spellings("'a\nb")[0].0, TokenKind::Unterminated);
        assert_eq!(spellings("/* abc")[0].0, TokenKind::UnterminatedComment);
        assert_eq!(spellings("/*/")[0].0, TokenKind::UnterminatedComment);
    }

    #[test]
    fn tokens_cover_any_text_in_order_and_on_character_boundaries() {
        let text = "é€ a\u{a0}b \u{0}\\ L'x' L\"y\" €";
        let mut interner = Interner::new();
        let mut end = 0;
        for token in tokenize(FileId(0), text, &mut interner) {
            assert!(token.span.start >= end);
            assert!(text.is_char_boundary(token.span.start as usize));
            assert!(text.is_char_boundary(token.span.end as usize));
            end = token.span.end;
        }
        assert_eq!(end as usize, text.len());
    }
}
