//! Type codes without optional names (CORBA 3.3 Part 1, 8.11.1, `get_compact_typecode`).

use std::{collections::HashMap, sync::Arc};

use super::{
    Repr, TypeCode,
    node::{Child, Group, Text},
};

impl TypeCode {
    /// The same type without the names of types and members, which are optional; ids and aliases stay. It is
    /// [equivalent](TypeCode::equivalent) to this one.
    #[must_use]
    pub fn compact(&self) -> Self {
        Compactor::default().type_code(self)
    }
}

#[derive(Default)]
struct Compactor(HashMap<usize, Arc<Group>>);

impl Compactor {
    fn type_code(&mut self, type_code: &TypeCode) -> TypeCode {
        match &type_code.0 {
            Repr::Leaf(leaf) => TypeCode(Repr::Leaf(*leaf)),
            Repr::Node(group, index) => TypeCode(Repr::Node(self.group(group), *index)),
        }
    }

    fn group(&mut self, group: &Arc<Group>) -> Arc<Group> {
        let key = Arc::as_ptr(group).addr();
        if let Some(existing) = self.0.get(&key) {
            return Arc::clone(existing);
        }
        let mut nodes = group.nodes.clone();
        for node in &mut nodes {
            node.name = Text::default();
            node.members.iter_mut().for_each(|member| member.name = Text::default());
            for child in node.children_mut() {
                if let Child::Other(other) = child {
                    *other = self.type_code(other);
                }
            }
        }
        let shared = Arc::new(Group { nodes, open: group.open, height: group.height });
        self.0.insert(key, Arc::clone(&shared));
        shared
    }
}
