//! Value types: a server and a client of `idl/values.idl`, and the comparison of value graphs.
//!
//! The client also has the types of `idl/more_values.idl`; servers know only their base.

pub mod client;
pub mod server;

/// Defines `look`, which formats a graph depth first: each node in full with its number the first time, and
/// as the number alone after that.
macro_rules! look {
    ($types:path) => {
        use $types as types;

        pub(crate) fn look(node: Option<&ValueRef<dyn types::Node>>) -> String {
            fn walk(
                node: Option<&ValueRef<dyn types::Node>>,
                seen: &mut Vec<ValueRef<dyn types::Node>>,
                out: &mut String,
            ) {
                let Some(node) = node else {
                    out.push('-');
                    return;
                };
                if let Some(number) = seen.iter().position(|known| known == node) {
                    out.push_str(&format!("#{number}"));
                    return;
                }
                out.push_str(&format!("{}={}*{}(", seen.len(), node.name(), node.weight()));
                seen.push(node.clone());
                walk(node.left().as_ref(), seen, out);
                for other in node.others() {
                    out.push(',');
                    walk(other.as_ref(), seen, out);
                }
                out.push(')');
            }
            let (mut seen, mut out) = (Vec::new(), String::new());
            walk(node, &mut seen, &mut out);
            out
        }
    };
}

pub(crate) use look;

/// Defines `Tale`, a `Story` with its operation; `$types` is the module of its types.
macro_rules! tale {
    ($types:path) => {
        use $types as of_tale;

        /// A `Story` with state and operation.
        #[derive(Debug)]
        pub(crate) struct Tale(pub(crate) of_tale::StoryState);

        impl of_tale::DescribableServant for Tale {
            fn describe(&self, detail: i32) -> Result<String, spandrel::SystemException> {
                Ok(format!("{} of {} pages, {detail}", self.0.title, self.0.pages))
            }
        }

        impl of_tale::Story for Tale {
            fn story_state(&self) -> &of_tale::StoryState {
                &self.0
            }
        }

        /// Registers the value types, so that the ORB can receive them where the formal type is a base.
        pub(crate) fn register(orb: &spandrel::Orb) {
            orb.register_value::<dyn of_tale::Story, _>(Tale);
            orb.register_plain_value::<dyn of_tale::Node>();
        }
    };
}

pub(crate) use tale;
