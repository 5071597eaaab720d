//! The memory layout of type codes: groups of nodes that may refer to each other.
//!
//! A group is immutable and reference counted. A recursive type, with all types of its cycle, is one group,
//! in which references are indices. A type that does not depend on its users is a group of its own, which its
//! users count. So composition copies nothing, and no cycle of counts exists.
//!
//! A group is *open* while it contains ids of types that are still to be defined around it
//! ([`TcKind::Recursive`]). Composition copies an open group into the new one, until it is closed.

use std::{borrow::Cow, sync::Arc};

use super::{Label, TcKind, ValueModifier, Visibility};

/// An IDL type as a value: IDL `CORBA::TypeCode`.
#[derive(Clone)]
pub struct TypeCode(pub(crate) Repr);

#[derive(Clone)]
pub(crate) enum Repr {
    Leaf(Leaf),
    Node(Arc<Group>, u32),
}

/// A type code of a few octets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leaf {
    Simple(TcKind),
    /// The bound in characters, or 0.
    String(u32),
    /// The bound in characters, or 0.
    WString(u32),
    Fixed {
        digits: u16,
        scale: i16,
    },
}

impl Leaf {
    pub(crate) fn kind(self) -> TcKind {
        match self {
            Self::Simple(kind) => kind,
            Self::String(_) => TcKind::String,
            Self::WString(_) => TcKind::WString,
            Self::Fixed { .. } => TcKind::Fixed,
        }
    }
}

impl TypeCode {
    pub(crate) fn view(&self) -> View<'_> {
        match &self.0 {
            Repr::Leaf(leaf) => View::Leaf(*leaf),
            Repr::Node(group, index) => View::Node(group, *index),
        }
    }

    pub(crate) fn height(&self) -> u16 {
        match &self.0 {
            Repr::Leaf(_) => 0,
            Repr::Node(group, _) => group.height,
        }
    }
}

/// A name or an id: static in generated code, owned in received type codes.
pub(crate) type Text = Cow<'static, str>;

/// A group of nodes.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) nodes: Box<[Node]>,
    /// Whether some node is of kind [`TcKind::Recursive`].
    pub(crate) open: bool,
    /// An upper bound of the nesting depth of types in it, without recursion.
    pub(crate) height: u16,
}

/// One type code with parameters.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: TcKind,
    pub(crate) id: Text,
    pub(crate) name: Text,
    /// A sequence's, array's, alias's or box's content; a union's discriminator; a value's concrete base.
    pub(crate) content: Option<Child>,
    /// A sequence's bound, an array's length; a union's default member or -1; a value's modifier.
    pub(crate) number: i64,
    pub(crate) members: Box<[Member]>,
    /// A union's members without the default one, in the order of their labels.
    pub(crate) by_label: Box<[u32]>,
}

/// A member of a struct, exception, union or value, or an enumerator.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: Text,
    pub(crate) child: Child,
    pub(crate) mark: Mark,
}

/// The additional property of a member.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    Plain,
    Label(Label),
    Visibility(Visibility),
}

/// A type inside another.
#[derive(Clone, Debug)]
pub(crate) enum Child {
    /// A node of the same group.
    Local(u32),
    /// A leaf, or a type of another, closed group.
    Other(TypeCode),
}

/// A borrowed type code.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'t> {
    Leaf(Leaf),
    Node(&'t Arc<Group>, u32),
}

impl Node {
    pub(crate) fn new(kind: TcKind, id: Text, name: Text) -> Self {
        Self { kind, id, name, content: None, number: 0, members: Box::default(), by_label: Box::default() }
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = &Child> {
        self.content.iter().chain(self.members.iter().map(|member| &member.child))
    }

    pub(crate) fn children_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.content.iter_mut().chain(self.members.iter_mut().map(|member| &mut member.child))
    }

    /// Sorts a union's labels. Returns false if one occurs twice.
    pub(crate) fn sort_labels(&mut self) -> bool {
        let label = |nth: &u32| self.members[*nth as usize].label();
        let mut order: Vec<u32> = (0..).take(self.members.len()).filter(|nth| label(nth) != Label::Default).collect();
        order.sort_by_key(label);
        let unique = order.windows(2).all(|pair| label(&pair[0]) != label(&pair[1]));
        self.by_label = order.into();
        unique
    }

    /// The member of a union for this value of its discriminator.
    pub(crate) fn selected(&self, value: i128) -> Option<usize> {
        let label = |nth: &u32| self.members[*nth as usize].label();
        match self.by_label.binary_search_by_key(&Label::Value(value), label) {
            Ok(nth) => Some(self.by_label[nth] as usize),
            Err(_) => usize::try_from(self.number).ok(),
        }
    }
}

impl Member {
    pub(crate) fn label(&self) -> Label {
        match self.mark {
            Mark::Label(label) => label,
            _ => Label::Default,
        }
    }
}

impl<'t> View<'t> {
    pub(crate) fn node(self) -> Option<&'t Node> {
        match self {
            Self::Leaf(_) => None,
            Self::Node(group, index) => Some(&group.nodes[index as usize]),
        }
    }

    /// A child of this one's node.
    pub(crate) fn child(self, child: &'t Child) -> Self {
        match (child, self) {
            (Child::Other(other), _) => other.view(),
            (Child::Local(index), Self::Node(group, _)) => Self::Node(group, *index),
            (Child::Local(_), Self::Leaf(_)) => unreachable!("a leaf has no children"),
        }
    }

    pub(crate) fn content(self) -> Option<Self> {
        self.node()?.content.as_ref().map(|child| self.child(child))
    }

    /// [`View::content`], or the null type without content.
    pub(crate) fn content_or_null(self) -> Self {
        self.content().unwrap_or(Self::Leaf(Leaf::Simple(TcKind::Null)))
    }

    /// The types of the members, in order.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'t Member, Self)> {
        let members = self.node().map_or(&[][..], |node| &node.members[..]);
        members.iter().map(move |member| (member, self.child(&member.child)))
    }

    /// All types to which the node refers.
    pub(crate) fn children(self) -> impl Iterator<Item = Self> {
        self.node().into_iter().flat_map(Node::children).map(move |child| self.child(child))
    }

    /// The modifier in a value type's declaration.
    pub(crate) fn modifier(self) -> Option<ValueModifier> {
        self.node().filter(|node| node.kind.is_value()).and_then(|node| ValueModifier::from_number(node.number))
    }

    pub(crate) fn id(self) -> Option<&'t str> {
        self.node().map(|node| &*node.id)
    }

    /// The number of members or enumerators.
    pub(crate) fn member_count(self) -> usize {
        self.node().map_or(0, |node| node.members.len())
    }

    /// A sequence's bound, an array's length.
    pub(crate) fn number(self) -> u32 {
        self.node().and_then(|node| u32::try_from(node.number).ok()).unwrap_or(0)
    }

    /// The type of the member of a union for this value of its discriminator.
    pub(crate) fn selected(self, value: i128) -> Option<Self> {
        let node = self.node()?;
        node.selected(value).map(|nth| self.child(&node.members[nth].child))
    }

    pub(crate) fn kind(self) -> TcKind {
        match self {
            Self::Leaf(leaf) => leaf.kind(),
            Self::Node(group, index) => group.nodes[index as usize].kind,
        }
    }

    /// The identity of the node within this process.
    pub(crate) fn identity(self) -> Option<(usize, u32)> {
        match self {
            Self::Leaf(_) => None,
            Self::Node(group, index) => Some((Arc::as_ptr(group).addr(), index)),
        }
    }

    pub(crate) fn to_type_code(self) -> TypeCode {
        match self {
            Self::Leaf(leaf) => TypeCode(Repr::Leaf(leaf)),
            Self::Node(group, index) => TypeCode(Repr::Node(Arc::clone(group), index)),
        }
    }

    /// The type with its outer aliases resolved.
    pub(crate) fn resolved(mut self) -> Self {
        while self.kind() == TcKind::Alias {
            let Some(content) = self.content() else { break };
            self = content;
        }
        self
    }
}
