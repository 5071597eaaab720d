//! Tokens, as the preprocessor and the parser see them.

use crate::intern::Symbol;
use crate::source::Span;

/// One token. Its spelling is held by the interner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// Whether blanks precede it on its line.
    pub(crate) spaced: bool,
    /// An identifier that must not be expanded again: the name of the macro it came from.
    pub(crate) painted: bool,
    pub(crate) symbol: Symbol,
    pub(crate) span: Span,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// Also keywords and escaped identifiers.
    Identifier,
    /// A preprocessing number; the parser checks whether it is a valid literal.
    Number,
    String,
    WideString,
    Char,
    WideChar,
    /// A string or character literal without a closing quote on its line.
    Unterminated,
    Punct(Punct),
    /// A character that begins no token of IDL.
    Unknown,
    // The rest occurs only in the preprocessor.
    Newline,
    Comment,
    UnterminatedComment,
}

/// Defines [`Punct`] from the table of spellings.
macro_rules! puncts {
    ($($name:ident $text:literal)*) => {
        /// Punctuation of IDL and of its preprocessor.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Punct { $($name),* }

        impl Punct {
            const ALL: &'static [Punct] = &[$(Punct::$name),*];

            pub(crate) fn text(self) -> &'static str {
                match self { $(Punct::$name => $text),* }
            }
        }
    };
}

// Longer spellings before their own prefixes.
puncts! {
    Ellipsis "..." ShiftLeft "<<" ShiftRight ">>" LessEqual "<=" GreaterEqual ">=" EqualEqual "==" NotEqual "!="
    AndAnd "&&" OrOr "||" Paste "##" Scope "::"
    OpenBrace "{" CloseBrace "}" OpenParen "(" CloseParen ")" OpenBracket "[" CloseBracket "]"
    Less "<" Greater ">" Semicolon ";" Colon ":" Comma "," Equal "=" Plus "+" Minus "-" Star "*" Slash "/"
    Percent "%" Tilde "~" And "&" Or "|" Caret "^" Not "!" Question "?" Hash "#" At "@" Dot "."
}

impl Punct {
    /// The longest punctuation at the start of `text`.
    pub(crate) fn starting(text: &[u8]) -> Option<Punct> {
        let mut all = Punct::ALL.iter();
        all.find(|punct| text.starts_with(punct.text().as_bytes())).copied()
    }
}
