//! How type codes lie in memory: groups of nodes that may refer to each other.
//!
//! A group is immutable and counted. What refers to itself, however far around, is one group, in which the way back is an
//! index; a type that is complete without those that use it is a group of its own, which its users count. So nothing is
//! copied when types are composed, and no count ever goes in a circle.
//!
//! A group is *open* while it mentions types by id that are still to be defined around it ([`TcKind::Recursive`]); composing
//! an open group copies it into the new one, until nothing is open any more.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{Label, Leaf, Repr, TcKind, TypeCode, ValueModifier, Visibility};

/// A name or an id: static in generated code, owned when it was received.
pub(crate) type Text = Cow<'static, str>;

/// Nodes that belong together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) nodes: Box<[Node]>,
    /// Some node is of kind [`TcKind::Recursive`].
    pub(crate) open: bool,
    /// An upper bound of how deep types nest in each other here, not counting recursion.
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
    /// A union's members but the default one, in the order of their labels.
    pub(crate) by_label: Box<[u32]>,
}

/// A member of a struct, exception, union or value, or an enumerator.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: Text,
    pub(crate) of: Child,
    pub(crate) mark: Mark,
}

/// What a member has beyond name and type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mark {
    Plain,
    Label(Label),
    Visibility(Visibility),
}

/// A type within another.
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

    /// Sorts a union's labels. False if one occurs twice.
    pub(crate) fn sort_labels(&mut self) -> bool {
        let label = |nth: &u32| self.members[*nth as usize].label();
        let mut order: Vec<u32> = (0..).take(self.members.len()).filter(|nth| label(nth) != Label::Default).collect();
        order.sort_by_key(label);
        let unique = order.windows(2).all(|pair| label(&pair[0]) != label(&pair[1]));
        self.by_label = order.into();
        unique
    }

    /// The member that a union has for this value of its discriminator.
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

    /// [`View::content`] of a type that has some.
    pub(crate) fn content_or_null(self) -> Self {
        self.content().unwrap_or(Self::Leaf(Leaf::Simple(TcKind::Null)))
    }

    /// The types of the members, in order.
    pub(crate) fn members(self) -> impl Iterator<Item = (&'t Member, Self)> {
        let members = self.node().map_or(&[][..], |node| &node.members[..]);
        members.iter().map(move |member| (member, self.child(&member.of)))
    }

    /// All types that the node mentions.
    pub(crate) fn children(self) -> impl Iterator<Item = Self> {
        self.node().into_iter().flat_map(Node::children).map(move |child| self.child(child))
    }

    /// How a value type is declared.
    pub(crate) fn modifier(self) -> Option<ValueModifier> {
        self.node().filter(|node| node.kind.is_value()).and_then(|node| ValueModifier::from_number(node.number))
    }

    pub(crate) fn id(self) -> Option<&'t str> {
        self.node().map(|node| &*node.id)
    }

    /// Of members and enumerators.
    pub(crate) fn member_count(self) -> usize {
        self.node().map_or(0, |node| node.members.len())
    }

    /// A sequence's bound, an array's length.
    pub(crate) fn number(self) -> u32 {
        self.node().and_then(|node| u32::try_from(node.number).ok()).unwrap_or(0)
    }

    /// The type of the member that a union has for this value of its discriminator.
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

    /// Which node this is, among all of this process.
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

    /// Through all aliases to what they stand for.
    pub(crate) fn resolved(mut self) -> Self {
        while self.kind() == TcKind::Alias {
            let Some(content) = self.content() else { break };
            self = content;
        }
        self
    }
}

/// A new group in the making.
#[derive(Default)]
pub(crate) struct Composer {
    nodes: Vec<Node>,
    /// Where nodes of open groups were copied to.
    copied: HashMap<(usize, u32), u32>,
    height: u16,
}

impl Composer {
    /// Takes in a type that the new node uses.
    pub(crate) fn child(&mut self, of: &TypeCode) -> Child {
        self.height = self.height.max(of.height());
        match &of.0 {
            Repr::Node(group, index) if group.open => Child::Local(self.copy(group, *index)),
            _ => Child::Other(of.clone()),
        }
    }

    /// Copies what can be reached from a node of an open group.
    fn copy(&mut self, group: &Arc<Group>, start: u32) -> u32 {
        let mut place = |nodes: &mut Vec<Node>, index: u32| {
            *self.copied.entry((Arc::as_ptr(group).addr(), index)).or_insert_with(|| {
                nodes.push(group.nodes[index as usize].clone());
                index_of(nodes.len() - 1)
            })
        };
        let mut done = self.nodes.len();
        let root = place(&mut self.nodes, start);
        // What is copied below `done` has its children copied, too.
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

    /// Adds the node that all this was for, and puts definitions where ids stood for them.
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
        // Placeholders that are no longer needed are left out: first the new place of each node that stays.
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
