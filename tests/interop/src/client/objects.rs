//! Object references: created, passed in each position, called back, forwarded, deactivated; and inheritance.

use anyhow::{Context, Result};
use spandrel::{CompletionStatus, ObjectRef, Poa, SystemException, types::Interface};

use crate::idl::*;
use crate::server::OneNode;
use crate::suite::{Suite, equal, kind, not_nil, raises};

pub(super) fn run(suite: &mut Suite<'_>, target: &Objects, poa: &Poa) {
    lifecycle(suite, target);
    passed(suite, target);
    in_values(suite, target);
    suite.case("objects/sum", || {
        let nodes = [Some(node(target, 100)?), Some(node(target, 200)?), None];
        equal("sum", target.sum(&nodes)?, 299)
    });
    suite.case("objects/call-back", || call_back(target, poa));
    suite.case("objects/forwarded", || {
        let forwarder = not_nil(target.forwarded(71)?)?;
        equal("id", forwarder.id()?, 71)?;
        equal("id again", forwarder.id()?, 71)?;
        equal("id over two", not_nil(target.forwarded_twice(72)?)?.id()?, 72)?;
        let forwarder = not_nil(target.forwarded(73)?)?;
        Ok(forwarder.tell("a one-way call has no reply to forward it with")?)
    });
}

fn node(target: &Objects, id: i32) -> Result<Node> {
    not_nil(target.make(id)?)
}

fn is_gone(error: &SystemException) -> bool {
    kind(error) == "OBJECT_NOT_EXIST" && error.completed() == CompletionStatus::No
}

fn lifecycle(suite: &mut Suite<'_>, target: &Objects) {
    suite.case("objects/make", || {
        let node = node(target, -5)?;
        equal("id", node.id()?, -5)?;
        node.tell("Grüß")?;
        raises(Objects::narrow(node.as_object()), |error| kind(error) == "BAD_PARAM")
    });
    suite.case("objects/discard", || {
        let node = node(target, 6)?;
        equal("id", node.id()?, 6)?;
        equal("gone before", node.as_object().non_existent()?, false)?;
        target.discard(Some(&node))?;
        equal("gone after", node.as_object().non_existent()?, true)?;
        raises(node.id(), is_gone)
    });
    suite.case("objects/dangling", || raises(not_nil(target.dangling()?)?.id(), is_gone));
}

fn passed(suite: &mut Suite<'_>, target: &Objects) {
    suite.case("objects/pass", || {
        let (a, mut b) = (node(target, 1)?, Some(node(target, 2)?));
        let (result, c) = target.pass(Some(&a), &mut b)?;
        let result = not_nil(result)?;
        equal("result", result.id()?, 1)?;
        equal("b", not_nil(b)?.id()?, 1)?;
        equal("c", not_nil(c)?.id()?, 2)?;
        equal("same object", result.as_object() == a.as_object(), true)
    });
    suite.case("objects/pass-nil", || {
        let mut b = Some(node(target, 2)?);
        let (result, c) = target.pass(None, &mut b)?;
        equal("result and b are nil", (result.is_none(), b.is_none()), (true, true))?;
        equal("c", not_nil(c.clone())?.id()?, 2)?;
        let (result, was_nil) = target.pass(c.as_ref(), &mut b)?;
        equal("c is nil", was_nil.is_none(), true)?;
        equal("result", not_nil(result)?.id()?, 2)
    });
    suite.case("objects/pass-object", || {
        let (a, mut b) = (ObjectRef::from(node(target, 3)?), Some(target.as_object().clone()));
        let (result, c) = target.pass_object(Some(&a), &mut b)?;
        equal("id", Node::narrow(&not_nil(result)?)?.id()?, 3)?;
        let c = not_nil(c)?;
        equal("c is the factory", c.is_a(Objects::REPOSITORY_ID)?, true)?;
        equal("c is no node", c.is_a(Node::REPOSITORY_ID)?, false)?;
        let mut b = None;
        let (result, c) = target.pass_object(None, &mut b)?;
        equal("nil", (result.is_none(), b.is_none(), c.is_none()), (true, true, true))
    });
}

fn in_values(suite: &mut Suite<'_>, target: &Objects) {
    suite.case("objects/pass-seq", || {
        let back = target.pass_seq(&[Some(node(target, 10)?), None, Some(node(target, 30)?)])?;
        let ids = back.iter().map(|node| node.as_ref().map(Node::id).transpose()).collect::<Result<Vec<_>, _>>()?;
        equal("ids", ids, [Some(30), None, Some(10)])?;
        equal("length", target.pass_seq(&[])?.len(), 0)
    });
    suite.case("objects/pass-link", || {
        let object = target.as_object().clone();
        let way = Link { lead: 9, from: Some(node(target, 1)?), to: None, any_object: Some(object.clone()) };
        let back = target.pass_link(&way)?;
        equal("lead", back.lead, 9)?;
        equal("from is nil", back.from.is_none(), true)?;
        equal("to", not_nil(back.to)?.id()?, 1)?;
        equal("object", not_nil(back.any_object)? == object, true)
    });
}

/// The server calls one of the client's objects during the client's call.
fn call_back(target: &Objects, poa: &Poa) -> Result<()> {
    let own = Node::narrow(&poa.activate(NodeSkeleton::new(OneNode(40)))?)?;
    let nodes = [Some(own.clone()), Some(node(target, 2)?)];
    equal("sum", target.sum(&nodes)?, 42)?;
    let back = target.pass_seq(&nodes)?;
    equal("our own", not_nil(back.into_iter().nth(1).context("too few references returned")?)?.id()?, 40)?;
    poa.deactivate(own.as_object())?;
    raises(target.sum(&nodes), |error| kind(error) == "OBJECT_NOT_EXIST")
}

/// An inheritance diamond and the interface below it.
pub(super) fn inheritance(suite: &mut Suite<'_>, target: &Lowest) {
    suite.case("inheritance/inherited", || {
        equal("base", target.base_name()?, "base")?;
        equal("left", target.left_name()?, "left")?;
        equal("right", target.right_name()?, "right")?;
        equal("diamond", target.diamond_name()?, "diamond")?;
        target.set_base_value(-77)?;
        equal("value", target.base_value()?, -77)
    });
    suite.case("inheritance/widened", || {
        equal("base", Right::from(target.clone()).base_name()?, "base")?;
        let object = target.as_object();
        equal("left", Left::narrow(object)?.left_name()?, "left")?;
        equal("is a base", object.is_a(Base::REPOSITORY_ID)?, true)?;
        equal("is a hub", object.is_a(Hub::REPOSITORY_ID)?, false)
    });
    suite.case("inheritance/descend", || {
        let found = target.descend(Some(&Base::from(target.clone())))?;
        let [first, second] = found.as_slice() else { anyhow::bail!("{} references returned", found.len()) };
        equal("first", not_nil(first.clone())?.diamond_name()?, "diamond")?;
        equal("second", not_nil(second.clone())?.left_name()?, "left")?;
        raises(target.descend(None), |error| matches!(error, lowest::DescendError::Deep(deep) if deep.how == "nil"))
    });
}
