//! Object references in each position, and an inheritance diamond.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use spandrel::{ObjectRef, Poa, SystemException};

use crate::idl::*;

type Answer<T> = Result<T, SystemException>;

/// A node with an id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneNode(pub(crate) i32);

impl NodeServant for OneNode {
    fn id(&self) -> Answer<i32> {
        Ok(self.0)
    }

    fn tell(&self, _what: &str) -> Answer<()> {
        Ok(())
    }
}

/// Creates nodes and returns the references it receives.
#[derive(Debug)]
pub(super) struct Factory(pub(super) Poa);

impl Factory {
    fn node(&self, id: i32) -> Answer<Node> {
        Node::narrow(&self.0.activate(NodeSkeleton::new(OneNode(id)))?)
    }

    /// A new object whose requests are forwarded to `target`.
    fn forwarder_to(&self, target: &Node) -> Answer<Node> {
        let from = self.node(-1)?;
        self.0.forward(from.as_object(), target.as_object().clone())?;
        Ok(from)
    }
}

impl ObjectsServant for Factory {
    fn make(&self, id: i32) -> Answer<Option<Node>> {
        self.node(id).map(Some)
    }

    fn discard(&self, which: Option<&Node>) -> Answer<()> {
        which.map_or(Ok(()), |node| self.0.deactivate(node.as_object()))
    }

    fn pass(&self, a: Option<&Node>, b: &mut Option<Node>) -> Answer<(Option<Node>, Option<Node>)> {
        let c = std::mem::replace(b, a.cloned());
        Ok((a.cloned(), c))
    }

    fn pass_object(
        &self,
        a: Option<&ObjectRef>,
        b: &mut Option<ObjectRef>,
    ) -> Answer<(Option<ObjectRef>, Option<ObjectRef>)> {
        let c = std::mem::replace(b, a.cloned());
        Ok((a.cloned(), c))
    }

    fn pass_seq(&self, nodes: &[Option<Node>]) -> Answer<NodeSeq> {
        Ok(nodes.iter().rev().cloned().collect())
    }

    fn pass_link(&self, way: &Link) -> Answer<Link> {
        Ok(Link { from: way.to.clone(), to: way.from.clone(), ..way.clone() })
    }

    fn sum(&self, nodes: &[Option<Node>]) -> Answer<i64> {
        nodes.iter().map(|node| node.as_ref().map_or(Ok(-1), Node::id).map(i64::from)).sum()
    }

    fn forwarded(&self, id: i32) -> Answer<Option<Node>> {
        self.forwarder_to(&self.node(id)?).map(Some)
    }

    fn forwarded_twice(&self, id: i32) -> Answer<Option<Node>> {
        // The first forward is permanent.
        let (from, by) = (self.node(-1)?, self.forwarder_to(&self.node(id)?)?);
        self.0.forward_permanently(from.as_object(), by.as_object().clone())?;
        Ok(Some(from))
    }

    fn dangling(&self) -> Answer<Option<Node>> {
        let node = self.node(0)?;
        self.0.deactivate(node.as_object())?;
        Ok(Some(node))
    }
}

/// The lowest interface of the diamond.
#[derive(Debug, Default)]
pub(super) struct Depths {
    value: AtomicI32,
    /// The object's own reference, set after activation.
    this: OnceLock<Lowest>,
}

impl Depths {
    pub(super) fn set_reference(&self, this: Lowest) {
        self.this.set(this).expect("the servant is activated once");
    }
}

impl BaseServant for Depths {
    fn base_name(&self) -> Answer<String> {
        Ok("base".into())
    }

    fn base_value(&self) -> Answer<i32> {
        Ok(self.value.load(Ordering::Relaxed))
    }

    fn set_base_value(&self, value: i32) -> Answer<()> {
        self.value.store(value, Ordering::Relaxed);
        Ok(())
    }
}

impl LeftServant for Depths {
    fn left_name(&self) -> Answer<String> {
        Ok("left".into())
    }
}

impl RightServant for Depths {
    fn right_name(&self) -> Answer<String> {
        Ok("right".into())
    }
}

impl DiamondServant for Depths {
    fn diamond_name(&self) -> Answer<String> {
        Ok("diamond".into())
    }
}

impl LowestServant for Depths {
    fn descend(&self, origin: Option<&Base>) -> Result<lowest::DiamondSeq, lowest::DescendError> {
        let Some(origin) = origin else {
            return Err(lowest::Deep { how: "nil".into() }.into());
        };
        let this = self.this.get().cloned().map(Diamond::from);
        let other = origin.as_object().is_a(<Diamond as spandrel::types::Interface>::REPOSITORY_ID)?;
        Ok(vec![this, other.then(|| Diamond::unchecked_narrow(origin.as_object()))])
    }
}
