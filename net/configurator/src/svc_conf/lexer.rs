//! Words of a `svc.conf` file, as ACE's scanner divides it.

use super::directive::Position;
use super::syntax_error::SyntaxError;

/// A word with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) position: Position,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name: of a service, or a keyword.
    Identifier(String),
    /// A word with one of `/ \ : % . ~ -`, or that begins with a digit.
    Path(String),
    /// A text in quotes, without them.
    Text(String),
    /// One of `: * ( ) { }`.
    Punctuation(char),
    End,
}

impl TokenKind {
    /// As error texts name it.
    pub(super) fn description(&self) -> String {
        match self {
            Self::Identifier(word) | Self::Path(word) => format!("`{word}`"),
            Self::Text(text) => format!("the text \"{text}\""),
            Self::Punctuation(character) => format!("`{character}`"),
            Self::End => "the end of the file".to_owned(),
        }
    }
}

/// Characters that end a word, besides white space.
const PUNCTUATION: [char; 6] = [':', '*', '(', ')', '{', '}'];
/// Characters of which one makes a path of a word.
const PATH_PARTS: [char; 7] = ['/', '\\', ':', '%', '.', '~', '-'];

/// Divides a file into words. The last one is [`TokenKind::End`].
///
/// A text ends at the *last* quote of its kind in its line, as in ACE: so `"-a "b c""` is one text. A tab or another control
/// character ends the search for it as the end of the line does (`ACE_Svc_Conf_Lexer::scan`).
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, Vec<SyntaxError>> {
    let (mut tokens, mut errors) = (Vec::new(), Vec::new());
    let mut end = Position { line: 1, column: 1 };
    for (line, content) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).split('\n')) {
        scan_line(content, line, &mut tokens, &mut errors);
        end = Position { line, column: content.chars().count() as u32 + 1 };
    }
    tokens.push(Token { kind: TokenKind::End, position: end });
    if errors.is_empty() { Ok(tokens) } else { Err(errors) }
}

fn scan_line(content: &str, line: u32, tokens: &mut Vec<Token>, errors: &mut Vec<SyntaxError>) {
    let characters: Vec<char> = content.chars().collect();
    let mut at = 0;
    while let Some(&character) = characters.get(at) {
        let position = Position { line, column: at as u32 + 1 };
        let mut push = |kind| tokens.push(Token { kind, position });
        match character {
            '#' => return,
            '"' | '\'' => {
                let rest = &characters[at + 1..];
                let end = rest.iter().position(|other| other.is_control()).unwrap_or(rest.len());
                let Some(length) = rest[..end].iter().rposition(|other| *other == character) else {
                    let place = if rest.get(end) == Some(&'\t') { "before the tab in its line" } else { "in its line" };
                    errors.push(SyntaxError::new(position, format!("the text has no closing {character} {place}")));
                    return;
                };
                push(TokenKind::Text(rest[..length].iter().collect()));
                at += length + 2;
            }
            _ if character.is_whitespace() || character.is_control() => at += 1,
            _ if PUNCTUATION.contains(&character) => {
                push(TokenKind::Punctuation(character));
                at += 1;
            }
            _ => {
                let length = word_length(&characters[at..]);
                let word: String = characters[at..at + length].iter().collect();
                at += length;
                let is_path = word.starts_with(|first: char| first.is_ascii_digit()) || word.contains(PATH_PARTS);
                push(if is_path { TokenKind::Path(word) } else { TokenKind::Identifier(word) });
            }
        }
    }
}

/// The colon after a single letter or `%` belongs to the word: a drive.
fn word_length(characters: &[char]) -> usize {
    let ends = |(at, character): (usize, &char)| {
        let is_drive = at == 1
            && *character == ':'
            && (characters[0].is_ascii_alphabetic() || characters[0] == '%')
            && characters.get(2).is_some_and(|next| ['/', '\\', '%'].contains(next) || characters[0] == '%');
        !is_drive
            && (character.is_whitespace() || PUNCTUATION.contains(character) || ['"', '\'', '#'].contains(character))
    };
    characters.iter().enumerate().position(|(at, character)| ends((at, character))).unwrap_or(characters.len())
}
