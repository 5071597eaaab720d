//! The memory layout of type codes: groups of nodes that may refer to each other.
//!
//! A group is immutable and reference counted. A recursive type, with all types of its cycle, is one group,
//! in which references are indices. A type that does not depend on its users is a group of its own, which its
//! users count. So composition copies nothing, and no cycle of counts exists.
//!
//! A group is *open* while it contains ids of types that are still to be defined around it
//! ([`TcKind::Recursive`]). Composition copies an open group into the new one, until it is closed.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{Label, Leaf, Repr, TcKind, TypeCode, ValueModifier, Visibility};

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
    pub(crate) of: Child,
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
        self.content.iter().chain(self.members.iter().map(|member| &member.of))
    }

    pub(crate) fn children_mut(&mut self) -> impl Iterator<Item = &mut Child> {
        self.content.iter_mut().chain(self.members.iter_mut().map(|member| &mut member.of))
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
        members.iter().map(move |member| (member, self.child(&member.of)))
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
        node.selected(value).map(|nth| self.child(&node.members[nth].of))
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

/// A new group under construction.
#[derive(Default)]
pub(crate) struct Composer {
    nodes: Vec<Node>,
    /// The new index of each copied node of an open group.
    copied: HashMap<(usize, u32), u32>,
    height: u16,
}

impl Composer {
    /// Adds a type that the new node uses.
    pub(crate) fn child(&mut self, of: &TypeCode) -> Child {
        self.height = self.height.max(of.height());
        match &of.0 {
            Repr::Node(group, index) if group.open => Child::Local(self.copy(group, *index)),
            _ => Child::Other(of.clone()),
        }
    }

    /// Copies all nodes reachable from a node of an open group.
    fn copy(&mut self, group: &Arc<Group>, start: u32) -> u32 {
        let mut place = |nodes: &mut Vec<Node>, index: u32| {
            *self.copied.entry((Arc::as_ptr(group).addr(), index)).or_insert_with(|| {
                nodes.push(group.nodes[index as usize].clone());
                index_of(nodes.len() - 1)
            })
        };
        let mut done = self.nodes.len();
        let root = place(&mut self.nodes, start);
        // Children of the nodes below `done` have been copied too.
        while done < self.nodes.len() {
            let mut node = self.nodes[done].clone();
            for child in node.children_mut() {
                if let Child::Local(index) = child {
                    *index = place(&mut self.nodes, *index);
                }
            }
            self.nodes[done] = node;
            done += 1;
        }
        root
    }

    /// Adds the final node, and replaces ids by the definitions that it supplies.
    pub(crate) fn finish(mut self, node: Node) -> TypeCode {
        let height = self.height.saturating_add(1);
        self.nodes.push(node);
        let root = self.nodes.len() - 1;
        let mut defined = HashMap::new();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if node.kind.can_recur() && !node.id.is_empty() {
                defined.entry(node.id.clone()).or_insert(index);
            }
        }
        let target = |nodes: &[Node], index: usize| match nodes[index].kind {
            TcKind::Recursive => defined.get(&nodes[index].id).copied().unwrap_or(index),
            _ => index,
        };
        // Obsolete placeholders are removed: first the new index of each remaining node.
        let mut places = vec![0; self.nodes.len()];
        let mut kept = 0;
        for (index, place) in places.iter_mut().enumerate() {
            if target(&self.nodes, index) == index {
                *place = index_of(kept);
                kept += 1;
            }
        }
        let moved: Vec<u32> = (0..places.len()).map(|index| places[target(&self.nodes, index)]).collect();
        let stays: Vec<bool> = (0..places.len()).map(|index| target(&self.nodes, index) == index).collect();
        let mut nodes: Vec<Node> =
            self.nodes.into_iter().zip(stays).filter_map(|(node, stays)| stays.then_some(node)).collect();
        for child in nodes.iter_mut().flat_map(Node::children_mut) {
            if let Child::Local(index) = child {
                *index = moved[*index as usize];
            }
        }
        let open = nodes.iter().any(|node| node.kind == TcKind::Recursive);
        TypeCode(Repr::Node(Arc::new(Group { nodes: nodes.into(), open, height }), moved[root]))
    }
}

pub(crate) fn index_of(place: usize) -> u32 {
    u32::try_from(place).expect("a group has far fewer nodes than that")
}
