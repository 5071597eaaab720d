//! Interoperability of the marshaling engines: each one calls every other one.
#![forbid(unsafe_code)]

use std::sync::{Arc, Mutex};

use spandrel::{
    ObjectRef, Orb, Poa,
    cdr::ByteOrder,
    dynamic::{DescribedServant, DynamicObject, describe},
    options::Collocation,
    types::Typed as _,
};

/// The servant and the calls, generated once for each engine.
macro_rules! engine {
    ($engine:ident, $file:literal) => {
        mod $engine {
            include!(concat!(env!("OUT_DIR"), "/", $file, "/engines.rs"));

            use std::fmt::{Debug, Write as _};

            use engines::*;
            use spandrel::{ObjectRef, SystemException, types::Any};

            use super::OneWayLog;

            struct ShopObject {
                shade: std::sync::Mutex<Colour>,
                notes: std::sync::Arc<OneWayLog>,
            }

            impl ShopObject {
                fn new(notes: std::sync::Arc<OneWayLog>) -> Self {
                    Self { shade: std::sync::Mutex::new(Colour::Red), notes }
                }
            }

            impl BaseServant for ShopObject {
                fn name(&self) -> Result<String, SystemException> {
                    Ok("keeper".into())
                }

                fn shade(&self) -> Result<Colour, SystemException> {
                    Ok(*self.shade.lock().unwrap())
                }

                fn set_shade(&self, value: Colour) -> Result<(), SystemException> {
                    *self.shade.lock().unwrap() = value;
                    Ok(())
                }
            }

            impl ShopServant for ShopObject {
                fn nothing(&self) -> Result<(), SystemException> {
                    Ok(())
                }

                fn add(&self, a: i32, b: i32) -> Result<i32, SystemException> {
                    Ok(a + b)
                }

                fn greet(&self, name: &str, log: &mut String) -> Result<(String, String), SystemException> {
                    log.push_str(name);
                    Ok((format!("hello {name}"), name.chars().rev().collect()))
                }

                fn change(&self, one: &Entry, two: &mut Entry) -> Result<(Entry, Entry), SystemException> {
                    let old = std::mem::replace(two, one.clone());
                    Ok((Entry { shade: Colour::Blue, ..one.clone() }, old))
                }

                fn list(&self, some: &[Entry], more: &mut Entries) -> Result<(Entries, Entries), SystemException> {
                    let all = [some, more].concat();
                    more.reverse();
                    Ok((some.to_vec(), all))
                }

                fn numbers(&self, some: &[f64], flags: &[u8], plots: &mut Points) -> Result<Doubles, SystemException> {
                    plots.extend(flags.iter().map(|&flag| Point { x: flag.into(), y: flag.into() }));
                    Ok(some.iter().map(|number| number * 2.0).collect())
                }

                fn grow(&self, tree: &Node) -> Result<Node, SystemException> {
                    Ok(Node { id: tree.id + 1, kids: vec![tree.clone(), tree.clone()] })
                }

                fn choose(&self, one: &Choice) -> Result<Choice, SystemException> {
                    Ok(match one {
                        Choice::Number(number) => Choice::Text(number.to_string()),
                        Choice::Text(_) => Choice::Unlisted(Colour::Blue),
                        other => other.clone(),
                    })
                }

                fn wrap(&self, value: &Any, text: &str) -> Result<(Any, char), SystemException> {
                    Ok((value.clone(), text.chars().last().unwrap_or('-')))
                }

                fn other(&self, one: Option<&Shop>, two: Option<&ObjectRef>) -> Result<Option<Shop>, SystemException> {
                    Ok(one.cloned().or_else(|| two.map(Shop::unchecked_narrow)))
                }

                fn fail(&self, how: i32) -> Result<i32, shop::FailError> {
                    match how {
                        0 => Ok(42),
                        1 => Err(Refused { why: "so".into(), r#where: Point { x: 1, y: 2.5 } }.into()),
                        2 => Err(Empty {}.into()),
                        3 => panic!("intended"),
                        _ => Err(SystemException::bad_param(how as u32, spandrel::CompletionStatus::No).into()),
                    }
                }

                fn note(&self, text: &str, one: &Entry) -> Result<(), SystemException> {
                    self.notes.0.lock().unwrap().push(format!("{text} {one:?}"));
                    Ok(())
                }

                fn bounded(&self, one: &Brief, some: &Few) -> Result<Brief, SystemException> {
                    Ok(format!("{}{}", &one[..1], some.len()).try_into().unwrap())
                }
            }

            fn entry(n: u8) -> Entry {
                Entry {
                    name: format!("entry {n}"),
                    shade: if n % 2 == 0 { Colour::Green } else { Colour::Blue },
                    place: Point { x: -i16::from(n), y: f64::from(n) / 3.0 },
                    good: n > 1,
                    data: (0..n).collect(),
                }
            }

            /// Calls every operation; returns the results as text.
            pub(super) fn call(object: &ObjectRef) -> String {
                let shop = Shop::narrow(object).unwrap();
                let mut results = String::new();
                let mut record = |value: &dyn Debug| writeln!(results, "{value:?}").unwrap();
                shop.nothing().unwrap();
                record(&shop.add(20, 22).unwrap());
                record(&shop.name().unwrap());
                shop.set_shade(Colour::Green).unwrap();
                record(&shop.shade().unwrap());
                let mut log = "log: ".to_owned();
                record(&(shop.greet("Straße", &mut log).unwrap(), log));
                let mut two = entry(2);
                record(&(shop.change(&entry(1), &mut two).unwrap(), two));
                let mut more: Vec<Entry> = (5..9).map(entry).collect();
                record(&(shop.list(&[entry(3), entry(4)], &mut more).unwrap(), more));
                let (octets, mut plots) = (vec![7; 3000], vec![Point { x: 1, y: -1.0 }; 90]);
                record(&(shop.numbers(&vec![0.5; 600], &octets, &mut plots).unwrap(), plots));
                let tree = Node { id: 1, kids: vec![Node { id: 2, kids: vec![] }; 3] };
                record(&shop.grow(&tree).unwrap());
                for choice in [Choice::Number(7), Choice::Text("text".into()), Choice::Unlisted(Colour::Blue)] {
                    record(&shop.choose(&choice).unwrap());
                }
                let (any, last) = shop.wrap(&Any::new(entry(9)).unwrap(), "gruß €").unwrap();
                record(&(any.extract::<Entry>().unwrap(), last));
                record(&(shop.other(Some(&shop), None).unwrap() == Some(shop.clone())));
                record(&shop.other(None, Some(object)).unwrap().is_some());
                record(&shop.other(None, None).unwrap().is_some());
                for how in 0..5 {
                    // Details behind the exception's kind appear only in the server's process.
                    record(&shop.fail(how).map_err(|error| error.to_string().split(')').next().map(str::to_owned)));
                }
                shop.note("a note", &entry(1)).unwrap();
                shop.nothing().unwrap();
                record(&shop.bounded(&"abcde".try_into().unwrap(), &vec![1, 2].try_into().unwrap()).unwrap());
                results
            }

            pub(super) fn serve(poa: &spandrel::Poa, notes: &std::sync::Arc<OneWayLog>) -> ObjectRef {
                poa.activate(ShopSkeleton::new(ShopObject::new(std::sync::Arc::clone(notes)))).unwrap()
            }
        }
    };
}

#[derive(Default)]
struct OneWayLog(Mutex<Vec<String>>);

engine!(compiled, "compiled");
engine!(interpretive, "interpretive");
engine!(adaptive, "adaptive");
engine!(direct, "direct");
engine!(direct_interpretive, "direct_interpretive");

type Serve = fn(&Poa, &Arc<OneWayLog>) -> ObjectRef;
type Call = fn(&ObjectRef) -> String;

const SERVERS: [Serve; 3] = [compiled::serve, interpretive::serve, adaptive::serve];
const CLIENTS: [Call; 3] = [compiled::call, interpretive::call, adaptive::call];

#[test]
fn every_engine_calls_every_other_engine() {
    let mut all = Vec::new();
    let notes = Arc::new(OneWayLog::default());
    for order in [ByteOrder::Big, ByteOrder::Little] {
        for serve in SERVERS {
            let server = Orb::builder().byte_order(order).build().unwrap();
            let poa = Poa::root(&server).unwrap();
            let object = serve(&poa, &notes).to_string();
            for (order, call) in
                CLIENTS.into_iter().flat_map(|call| [(ByteOrder::Big, call), (ByteOrder::Little, call)])
            {
                let client = Orb::builder().byte_order(order).build().unwrap();
                all.push(call(&client.string_to_object(&object).unwrap()));
            }
            server.shutdown().unwrap();
        }
    }
    assert!(all[0].contains("hello Straße") && all[0].contains("Refused"), "{}", all[0]);
    for results in &all {
        assert_eq!(results, &all[0]);
    }
    let notes = notes.0.lock().unwrap();
    assert_eq!(notes.len(), all.len());
    assert!(notes.iter().all(|note| note.starts_with("a note Entry { name: \"entry 1\"")), "{notes:?}");
}

#[test]
fn collocated_calls_have_the_same_results_with_every_strategy() {
    const SERVERS: [Serve; 4] = [compiled::serve, interpretive::serve, direct::serve, direct_interpretive::serve];
    const CLIENTS: [Call; 4] = [compiled::call, interpretive::call, direct::call, direct_interpretive::call];
    let mut all = Vec::new();
    for strategy in [Collocation::No, Collocation::ThroughPoa, Collocation::Direct] {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            for serve in SERVERS {
                let orb = Orb::builder().collocation(strategy).byte_order(order).build().unwrap();
                let object = serve(&Poa::root(&orb).unwrap(), &Arc::default());
                all.extend(CLIENTS.map(|call| call(&object)));
                orb.shutdown().unwrap();
            }
        }
    }
    for results in &all {
        assert_eq!(results, &all[0]);
    }
}

/// A call passes stub, dynamic servant, dynamic request and skeleton; the bridge knows the types from the IDL
/// text only.
#[test]
fn a_bridge_with_descriptions_from_idl_forwards_calls_unchanged() {
    let notes = Arc::new(OneWayLog::default());
    let idl = describe(include_str!("../idl/engines.idl")).unwrap();
    let interface = Arc::new(idl.interface("Engines::Shop").unwrap());
    let ends = [
        Orb::builder().byte_order(ByteOrder::Big).build().unwrap(),
        Orb::builder().byte_order(ByteOrder::Little).build().unwrap(),
    ];
    let (server, bridge) = (&ends[0], &ends[1]);
    let object = compiled::serve(&Poa::root(server).unwrap(), &notes);
    let expected = compiled::call(&object);
    let beyond = DynamicObject::new(bridge.string_to_object(&object.to_string()).unwrap(), Arc::clone(&interface));
    let between = Poa::root(bridge).unwrap().activate(DescribedServant::described(interface, beyond)).unwrap();
    for call in CLIENTS {
        let client = Orb::builder().build().unwrap();
        assert_eq!(call(&client.string_to_object(&between.to_string()).unwrap()), expected);
    }
    assert_eq!(notes.0.lock().unwrap().len(), 1 + CLIENTS.len());
    ends.iter().for_each(|orb| orb.shutdown().unwrap());
}

#[test]
fn type_codes_from_idl_text_equal_those_of_generated_code() {
    use compiled::engines;
    let idl = describe(include_str!("../idl/engines.idl")).unwrap();
    let generated = [
        ("Colour", engines::Colour::type_code()),
        ("Point", engines::Point::type_code()),
        ("Entry", engines::Entry::type_code()),
        ("Node", engines::Node::type_code()),
        ("Choice", engines::Choice::type_code()),
        ("Refused", engines::Refused::type_code()),
        ("Empty", engines::Empty::type_code()),
        ("Shop", engines::Shop::type_code()),
        ("Few", engines::few_tc()),
        ("Nodes", engines::nodes_tc()),
    ];
    for (name, expected) in generated {
        let created = idl.type_code(&format!("Engines::{name}")).unwrap();
        assert!(created.equal(&expected), "{created:?} {expected:?}");
    }
}
