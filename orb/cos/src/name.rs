//! The string form of names of a naming service (Naming Service 1.3, 2.4.3): `a/b.kind`, with backslashes before `/`, `.` and
//! `\`.

use std::fmt;

use super::cos_naming::NameComponent;

/// The most components of a name that services take; a longer one is not valid.
pub const MAX_COMPONENTS: usize = 128;
/// The most octets of one component: of its identifier and kind together.
pub const MAX_COMPONENT_OCTETS: usize = 4096;

/// The reason why a name, or its string form, is not valid.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidName {
    /// The name has no component.
    #[error("the name has no component")]
    Empty,
    /// `a//b`, or a `/` at the beginning or end: the component between has no text.
    #[error("a component of the name is empty: write `.` for an empty identifier and kind")]
    EmptyComponent,
    /// A component has one dot at most that is not escaped.
    #[error("a component has more than one `.` without a backslash before it")]
    SecondDot,
    /// A dot at the end, with an identifier before it and no kind behind it.
    #[error("a component ends in `.`, and has no kind")]
    EmptyKind,
    /// A backslash stands before `/`, `.` or `\` only.
    #[error("a backslash stands before another character than `/`, `.` and `\\`")]
    Escape,
    /// More than [`MAX_COMPONENTS`] components.
    #[error("the name has more than {MAX_COMPONENTS} components")]
    TooManyComponents,
    /// More than [`MAX_COMPONENT_OCTETS`] octets in a component.
    #[error("a component has more than {MAX_COMPONENT_OCTETS} octets")]
    LongComponent,
}

/// Refuses names that services do not take.
///
/// # Errors
/// A name without a component, or one beyond the limits.
pub fn check(name: &[NameComponent]) -> Result<(), InvalidName> {
    match name.len() {
        0 => Err(InvalidName::Empty),
        1..=MAX_COMPONENTS if name.iter().all(|step| step.id.len() + step.kind.len() <= MAX_COMPONENT_OCTETS) => Ok(()),
        1..=MAX_COMPONENTS => Err(InvalidName::LongComponent),
        _ => Err(InvalidName::TooManyComponents),
    }
}

/// A name in string form as the part of a URL `corbaname:` behind its `#` (Naming Service 1.3, 2.5.3.5): octets that a URL
/// cannot hold are written as `%` and two hexadecimal digits.
///
/// ```
/// # mod spandrel { pub use spandrel_cos as services; }
/// assert_eq!(spandrel::services::name::escape_for_url("My accounts/caf\u{e9}.bar"), "My%20accounts/caf%c3%a9.bar");
/// ```
#[must_use]
pub fn escape_for_url(text: &str) -> String {
    spandrel_giop::percent::Escaped(text.as_bytes()).to_string()
}

/// The string form of a name.
///
/// ```
/// # mod spandrel { pub use spandrel_cos as services; }
/// use spandrel::services::cos_naming::NameComponent;
/// use spandrel::services::name;
///
/// let parsed = name::parse(r"bank/grace\.hopper.account")?;
/// assert_eq!(parsed[1], NameComponent { id: "grace.hopper".into(), kind: "account".into() });
/// assert_eq!(name::to_string(&parsed), r"bank/grace\.hopper.account");
/// # Ok::<(), name::InvalidName>(())
/// ```
#[must_use]
pub fn to_string(name: &[NameComponent]) -> String {
    Path(name).to_string()
}

/// A name that is written in its string form.
#[derive(Clone, Copy, Debug)]
pub struct Path<'n>(pub &'n [NameComponent]);

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("/")?;
            }
            escape(f, &step.id)?;
            if !step.kind.is_empty() || step.id.is_empty() {
                f.write_str(".")?;
            }
            escape(f, &step.kind)?;
        }
        Ok(())
    }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(place) = rest.find(['/', '.', '\\']) {
        write!(f, "{}\\{}", &rest[..place], &rest[place..=place])?;
        rest = &rest[place + 1..];
    }
    f.write_str(rest)
}

/// Parses the string form of a name: components separated by `/`, `.` before the kind, `\` before a literal
/// `/`, `.` or `\`.
///
/// # Errors
/// A text that is not the string form of a name, or a name beyond the limits.
pub fn parse(text: &str) -> Result<Vec<NameComponent>, InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    let mut name = Vec::new();
    let mut step = Step::default();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('/' | '.' | '\\')) => step.push(escaped),
                _ => return Err(InvalidName::Escape),
            },
            '.' if step.kind.is_some() => return Err(InvalidName::SecondDot),
            '.' => step.kind = Some(String::new()),
            '/' => name.push(std::mem::take(&mut step).finish()?),
            other => step.push(other),
        }
        if name.len() >= MAX_COMPONENTS {
            return Err(InvalidName::TooManyComponents);
        }
    }
    name.push(step.finish()?);
    check(&name)?;
    Ok(name)
}

/// A component that is being parsed.
#[derive(Default)]
struct Step {
    id: String,
    /// The text after the dot.
    kind: Option<String>,
}

impl Step {
    fn push(&mut self, letter: char) {
        self.kind.as_mut().unwrap_or(&mut self.id).push(letter);
    }

    fn finish(self) -> Result<NameComponent, InvalidName> {
        match (self.id.is_empty(), self.kind) {
            (true, None) => Err(InvalidName::EmptyComponent),
            // "." is the component without identifier and kind.
            (false, Some(kind)) if kind.is_empty() => Err(InvalidName::EmptyKind),
            (_, kind) => Ok(NameComponent { id: self.id, kind: kind.unwrap_or_default() }),
        }
    }
}
