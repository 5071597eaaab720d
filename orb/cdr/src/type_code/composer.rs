//! The composition of groups of nodes.

use std::{collections::HashMap, sync::Arc};

use super::node::{Child, Group, Node, Repr};
use super::{TcKind, TypeCode};

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
    pub(crate) fn child(&mut self, type_code: &TypeCode) -> Child {
        self.height = self.height.max(type_code.height());
        match &type_code.0 {
            Repr::Node(group, index) if group.open => Child::Local(self.copy(group, *index)),
            _ => Child::Other(type_code.clone()),
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
        let mut next = self.nodes.len();
        let root = place(&mut self.nodes, start);
        // Children of the nodes below `done` have been copied too.
        while next < self.nodes.len() {
            let mut node = self.nodes[next].clone();
            for child in node.children_mut() {
                if let Child::Local(index) = child {
                    *index = place(&mut self.nodes, *index);
                }
            }
            self.nodes[next] = node;
            next += 1;
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
        let mut count = 0;
        for (index, slot) in places.iter_mut().enumerate() {
            if target(&self.nodes, index) == index {
                *slot = index_of(count);
                count += 1;
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

pub(crate) fn index_of(index: usize) -> u32 {
    u32::try_from(index).expect("a group has far fewer nodes than that")
}
