//! Type codes as text, similar to IDL.

use std::fmt;

use spandrel_error::escape;

use super::{
    Label, Leaf, Repr, TcKind, TypeCode, ValueModifier, View, Visibility,
    node::{Mark, Member},
};

/// The type's declaration on one line; other types by name only.
impl fmt::Display for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        declaration(self.view(), f)
    }
}

impl fmt::Debug for TypeCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TypeCode({self}")?;
        if let Ok(id) = self.id() {
            write!(f, ", {id:?}")?;
        }
        f.write_str(")")
    }
}

impl TypeCode {
    /// The type as a declaration refers to it (a `<type_spec>` of IDL): by its name if it has one, otherwise
    /// by its structure, such as `sequence<long, 8>`. `Display` gives the declaration of the type.
    ///
    /// ```
    /// use spandrel_cdr::TypeCode;
    ///
    /// let name = TypeCode::alias("IDL:Name:1.0", "Name", &TypeCode::string(8))?;
    /// assert_eq!(name.to_string(), "typedef string<8> Name");
    /// assert_eq!(name.type_spec().to_string(), "Name");
    /// # Ok::<(), spandrel_cdr::TypeCodeError>(())
    /// ```
    #[must_use]
    pub fn type_spec(&self) -> impl fmt::Display {
        TypeReference(self.view())
    }
}

/// A reference to a type.
struct TypeReference<'t>(View<'t>);

impl fmt::Display for TypeReference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let view = self.0;
        let Some(node) = view.node() else {
            return match view {
                View::Leaf(leaf) => leaf_text(leaf, f),
                View::Node(..) => Ok(()),
            };
        };
        match (node.kind, view.content()) {
            (TcKind::Sequence, Some(content)) if node.number == 0 => write!(f, "sequence<{}>", TypeReference(content)),
            (TcKind::Sequence, Some(content)) => write!(f, "sequence<{}, {}>", TypeReference(content), node.number),
            (TcKind::Array, Some(content)) => {
                // Dimensions are written from the outermost to the innermost.
                let (mut element, mut dimensions) = (content, format!("[{}]", node.number));
                while let (TcKind::Array, Some(content)) = (element.kind(), element.content()) {
                    dimensions += &format!("[{}]", element.node().map_or(0, |node| node.number));
                    element = content;
                }
                write!(f, "{}{dimensions}", TypeReference(element))
            }
            _ if !node.name.is_empty() => escape(&node.name).fmt(f),
            _ if !node.id.is_empty() => write!(f, "<{}>", escape(&node.id)),
            _ => f.write_str(node.kind.text()),
        }
    }
}

fn leaf_text(leaf: Leaf, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match leaf {
        Leaf::String(bound @ 1..) => write!(f, "string<{bound}>"),
        Leaf::WString(bound @ 1..) => write!(f, "wstring<{bound}>"),
        Leaf::Fixed { digits, scale } => write!(f, "fixed<{digits}, {scale}>"),
        other => f.write_str(other.kind().text()),
    }
}

fn declaration(view: View<'_>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mention = TypeReference(view);
    let Some(node) = view.node() else { return write!(f, "{mention}") };
    let kind = node.kind.text();
    match (node.kind, view.content()) {
        (TcKind::Alias, Some(content)) => write!(f, "typedef {} {mention}", TypeReference(content)),
        (TcKind::ValueBox, Some(content)) => write!(f, "{kind} {mention} {}", TypeReference(content)),
        (TcKind::Struct | TcKind::Except, _) => {
            write!(f, "{kind} {mention}")?;
            members(view, f, |_, _| Ok(()))
        }
        (TcKind::Enum, _) => {
            let names: Vec<String> = node.members.iter().map(|member| escape(&member.name).to_string()).collect();
            write!(f, "enum {mention} {{ {} }}", names.join(", "))
        }
        (TcKind::Union, Some(discriminator)) => {
            write!(f, "union {mention} switch ({})", TypeReference(discriminator))?;
            members(view, f, |member, f| match member.label() {
                Label::Default => f.write_str("default: "),
                Label::Value(value) => label(discriminator, value, f),
            })
        }
        (TcKind::Value | TcKind::Event, base) => {
            f.write_str(match ValueModifier::from_number(node.number) {
                Some(ValueModifier::Custom) => "custom ",
                Some(ValueModifier::Abstract) => "abstract ",
                _ => "",
            })?;
            write!(f, "{kind} {mention}")?;
            if let Some(base) = base {
                let truncatable = node.number == ValueModifier::Truncatable as i64;
                write!(f, " : {}{}", if truncatable { "truncatable " } else { "" }, TypeReference(base))?;
            }
            members(view, f, |member, f| match member.mark {
                Mark::Visibility(Visibility::Private) => f.write_str("private "),
                _ => f.write_str("public "),
            })
        }
        _ if node.kind.is_bare() || node.kind == TcKind::Recursive => write!(f, "{kind} {mention}"),
        _ => write!(f, "{mention}"),
    }
}

fn members(
    view: View<'_>,
    f: &mut fmt::Formatter<'_>,
    before: impl Fn(&Member, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(" {")?;
    for (member, member_view) in view.members() {
        f.write_str(" ")?;
        before(member, f)?;
        write!(f, "{} {};", TypeReference(member_view), escape(&member.name))?;
    }
    f.write_str(" }")
}

fn label(discriminator: View<'_>, value: i128, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let discriminator = discriminator.resolved();
    let character = u32::try_from(value).ok().and_then(char::from_u32);
    match (discriminator.kind(), character) {
        (TcKind::Boolean, _) => write!(f, "case {}: ", if value == 0 { "FALSE" } else { "TRUE" }),
        (TcKind::Char | TcKind::WChar, Some(character)) => write!(f, "case {character:?}: "),
        (TcKind::Enum, _) => {
            let nth = usize::try_from(value).unwrap_or(usize::MAX);
            match discriminator.members().nth(nth) {
                Some((member, _)) if !member.name.is_empty() => write!(f, "case {}: ", escape(&member.name)),
                _ => write!(f, "case {value}: "),
            }
        }
        _ => write!(f, "case {value}: "),
    }
}

impl fmt::Debug for Repr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leaf(leaf) => leaf.fmt(f),
            Self::Node(_, index) => write!(f, "node {index}"),
        }
    }
}
