//! The client: its cases have the same names as those of `peers/omniorb/valuetypes.cc`.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use spandrel::Orb;
use spandrel::types::values::{AbstractRef, GraphBuilder, GraphError, ValueRef};

use super::{look, tale};
use crate::more_values_idl::*;
use crate::suite::{Suite, Tally};

look!(crate::more_values_idl);
tale!(crate::more_values_idl);

const TIME_LIMIT: Duration = Duration::from_secs(30);

type NodeRef = ValueRef<dyn Node>;

/// Runs all cases against an `Exchange`; `say` receives a line for each.
///
/// # Errors
/// If the reference does not denote an `Exchange`.
pub fn run(orb: &Orb, reference: &str, say: &mut dyn FnMut(&str)) -> Result<Tally> {
    register(orb);
    let object = orb.string_to_object(reference)?.with_timeout(Some(TIME_LIMIT));
    let server = Exchange::narrow(&object).context("the object is not an Exchange")?;
    let mut suite = Suite::new("", say);
    for (name, case) in CASES {
        suite.case(name, || case(&server));
    }
    orb.shutdown()?;
    Ok(suite.tally)
}

type Case = fn(&Exchange) -> Result<()>;

const CASES: &[(&str, Case)] = &[
    ("graph/nil", |server| equal(server.look(None)?.as_str(), "-")),
    ("graph/look", |server| {
        let pair = graph()?;
        equal(server.look(pair.first.as_ref())?, look(pair.first.as_ref()))
    }),
    ("graph/echo", |server| {
        let pair = graph()?;
        let back = server.echo_pair(&pair)?;
        same_pair(&back, &pair)?;
        equal(back.first.and_then(|first| first.left()), back.second)
    }),
    ("graph/ring", |server| {
        let ring = ring(200)?;
        equal(server.look(Some(&ring))?, look(Some(&ring)))
    }),
    ("inheritance/derived", derived),
    ("inheritance/inout", |server| {
        let one: ValueRef<dyn Base> = ValueRef::new(BaseState { x: 1 });
        let mut again = Some(ValueRef::<dyn Base>::new(BaseState { x: 2 }));
        let back = server.echo_bases(Some(&one), &mut again)?;
        equal((not_nil(&back)?.x(), not_nil(&again)?.x()), (2, 1))?;
        let mut again = Some(one.clone());
        let back = server.echo_bases(Some(&one), &mut again)?;
        equal(not_nil(&back)?.x(), 1)?;
        equal(back, again)
    }),
    ("inheritance/exception", |server| {
        let what: ValueRef<dyn Base> = ValueRef::new(BaseState { x: 77 });
        match server.refuse(Some(&what)) {
            Err(exchange::RefuseError::Refused(Refused { what })) => equal(not_nil(&what)?.x(), 77),
            other => bail!("no exception, or another one: {other:?}"),
        }
    }),
    ("truncation/base", |server| {
        let back = server.echo_base(Some(&special().upcast()))?;
        let back = not_nil(&back)?;
        equal((back.x(), back.repository_id()), (5, Some("IDL:Values/Base:1.0")))
    }),
    ("truncation/twice", |server| {
        let base = SpecialState { base: BaseState { x: 6 }, tree: Some(node("oak", 1.0)).into(), ..Default::default() };
        let special: ValueRef<dyn VerySpecial> = ValueRef::new(VerySpecialState { base, ..Default::default() });
        let back = server.echo_base(Some(&special.upcast()))?;
        let back = not_nil(&back)?;
        equal((back.x(), back.repository_id()), (6, Some("IDL:Values/Base:1.0")))
    }),
    ("box/text", |server| {
        let text = ValueRef::new(Text("boxed".to_owned()));
        let (back, again) = server.echo_text(Some(&text))?;
        equal(not_nil(&back)?.0.as_str(), "boxed")?;
        equal(back, again)
    }),
    ("box/sequence", |server| {
        let back = server.echo_numbers(Some(&ValueRef::new(Numbers(vec![-1, 0, 1]))))?;
        equal(not_nil(&back)?.0.as_slice(), [-1, 0, 1])
    }),
    ("box/struct", |server| {
        let pair = graph()?;
        let back = server.echo_pair_box(Some(&ValueRef::new(PairBox(pair.clone().into()))))?;
        same_pair(&not_nil(&back)?.0.get(), &pair)
    }),
    ("base/any", |server| {
        let back = server.echo_value(Some(&node("any", 1.0).upcast()))?;
        equal(look(not_nil(&back)?.downcast().as_ref()).as_str(), "0=any*1(-)")
    }),
    ("abstract/value", |server| {
        let tale: ValueRef<dyn Story> = ValueRef::new(Tale(StoryState { title: "tale".to_owned(), pages: 7 }));
        let tale = AbstractRef::Value(tale.upcast());
        equal(server.ask(Some(&tale), 3)?.as_str(), "tale of 7 pages, 3")?;
        let back = server.echo_describable(Some(&tale))?;
        let Some(AbstractRef::Value(value)) = back else { bail!("no value returned: {back:?}") };
        equal(value.implementation::<Tale>().context("another story")?.0.title.as_str(), "tale")
    }),
    ("abstract/object", |server| {
        let object = server.an_object()?;
        equal(described(object.as_ref(), 4)?.as_str(), "an object, 4")?;
        let back = server.echo_describable(object.as_ref())?;
        equal(described(back.as_ref(), 5)?.as_str(), "an object, 5")?;
        equal(server.ask(back.as_ref(), 6)?.as_str(), "an object, 6")
    }),
    ("abstract/nil", |server| equal(server.echo_describable(None)?, None)),
    ("shutdown", |server| Ok(server.shutdown()?)),
];

fn described(object: Option<&AbstractRef<Describable, dyn DescribableServant>>, detail: i32) -> Result<String> {
    match object {
        Some(AbstractRef::Object(object)) => Ok(object.describe(detail)?),
        other => bail!("no object: {other:?}"),
    }
}

fn derived(server: &Exchange) -> Result<()> {
    let state = DerivedState { base: BaseState { x: -4 }, flag: 9, y: 1 << 40, tree: Some(node("in", 1.25)).into() };
    let sent: ValueRef<dyn Derived> = ValueRef::new(state);
    let back = server.echo_base(Some(&sent.upcast()))?;
    let back: ValueRef<dyn Derived> = not_nil(&back)?.downcast().context("no Derived")?;
    equal((back.x(), back.flag(), back.y()), (-4, 9, 1 << 40))?;
    equal(look(back.tree().as_ref()).as_str(), "0=in*1.25(-)")
}

/// A value of a type that only clients know.
pub fn special() -> ValueRef<dyn Special> {
    let tree = node("tree", 1.0);
    ValueRef::new(SpecialState {
        base: BaseState { x: 5 },
        what: "special".to_owned(),
        tree: Some(tree.clone()).into(),
        forest: vec![Some(tree), Some(node("bush", 2.0))].into(),
    })
}

fn node(name: &str, weight: f64) -> NodeRef {
    ValueRef::new(state(name, weight))
}

fn state(name: &str, weight: f64) -> NodeState {
    NodeState { name: name.to_owned(), weight, ..NodeState::default() }
}

/// Two nodes that share a third, which refers back to the first.
///
/// # Errors
/// None: the graph is complete.
pub fn graph() -> Result<Pair, GraphError> {
    GraphBuilder::build(|graph| {
        let top: NodeRef = graph.reserve();
        let shared: NodeRef = graph.add(NodeState { left: Some(top.clone()).into(), ..state("shared", 3.0) });
        let low: NodeRef = graph.add(NodeState { others: vec![Some(shared.clone())].into(), ..state("low", -2.0) });
        let others = vec![Some(shared.clone()), None, Some(shared)];
        let left = Some(low.clone());
        graph.define(&top, NodeState { left: left.into(), others: others.into(), ..state("top", 0.5) })?;
        Ok(Pair { first: Some(top), second: Some(low) })
    })
}

fn ring(len: usize) -> Result<NodeRef, GraphError> {
    GraphBuilder::build(|graph| {
        let nodes: Vec<NodeRef> = (0..len).map(|_| graph.reserve()).collect();
        for (nth, place) in nodes.iter().enumerate() {
            let left = Some(nodes[(nth + 1) % len].clone());
            graph.define(place, NodeState { left: left.into(), ..state(&nth.to_string(), nth as f64) })?;
        }
        Ok(nodes[0].clone())
    })
}

/// Compares both graphs of a pair.
///
/// # Errors
/// If they differ.
pub fn same_pair(seen: &Pair, expected: &Pair) -> Result<()> {
    equal(look(seen.first.as_ref()), look(expected.first.as_ref()))?;
    equal(look(seen.second.as_ref()), look(expected.second.as_ref()))
}

fn not_nil<T>(value: &Option<T>) -> Result<&T> {
    value.as_ref().context("a value is nil")
}

fn equal<T: PartialEq<U> + Debug, U: Debug>(seen: T, expected: U) -> Result<()> {
    ensure!(seen == expected, "expected {expected:?}, saw {seen:?}");
    Ok(())
}
