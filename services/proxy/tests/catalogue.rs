//! The catalogue of objects: the bounds of its listing, and the descriptions of interfaces that it keeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use spandrel::dynamic::{DescribedCall, DescribedServant, Descriptions, NvList, RequestError, describe, object_to_any};
use spandrel::services::cos_naming::{Binding, BindingType, NameComponent};
use spandrel::services::{IDL_FILES, repository};
use spandrel::types::{Any, TypeCode};
use spandrel::{CompletionStatus, Endpoint, ObjectRef, Orb, Poa, SystemException};
use spandrel_proxy::{Catalogue, Exposure};
use spandrel_repository::{InterfaceRepository, RepositoryOptions};

use crate::fixture::{Fixture, Settings};

fn listening_orb() -> Orb {
    Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap()
}

fn void() -> Result<Any, RequestError> {
    Ok(Any::write(TypeCode::VOID, |_| Ok(()))?)
}

/// A naming service that records the calls of its operations, each with the context.
struct RecordedNames {
    orb: Orb,
    idl: Descriptions,
    calls: Mutex<Vec<String>>,
}

impl RecordedNames {
    fn start() -> Arc<Self> {
        let idl = IDL_FILES.into_iter().find(|idl| idl.contains("module CosNaming {")).unwrap();
        Arc::new(Self { orb: listening_orb(), idl: describe(idl).unwrap(), calls: Mutex::default() })
    }

    fn record(&self, operation: &str, context: &str) {
        self.calls.lock().unwrap().push(format!("{operation} {context}"));
    }

    fn activate(
        &self,
        interface: &str,
        operations: impl Fn(&str, &mut NvList) -> Result<Any, RequestError> + Send + Sync + 'static,
    ) -> ObjectRef {
        let operations = move |call: &DescribedCall<'_>, list: &mut NvList| operations(&call.operation.name, list);
        let servant = DescribedServant::described(self.idl.interface(interface).unwrap(), operations);
        Poa::root(&self.orb).unwrap().activate(servant).unwrap()
    }

    /// A context with these contexts and so many objects.
    fn context(self: &Arc<Self>, name: &'static str, below: &[(&'static str, ObjectRef)], objects: usize) -> ObjectRef {
        let (names, below) = (Arc::clone(self), below.to_vec());
        self.activate("CosNaming::NamingContext", move |operation, list| {
            names.record(operation, name);
            match operation {
                "list" => {
                    let total = below.len() + objects;
                    let count = total.min(list.extract::<u32>(0)? as usize);
                    let page: Vec<Binding> = (0..count).map(|nth| binding(nth, &below)).collect();
                    list.set_any(1, &Any::new(&page)?)?;
                    let rest = (count < total).then(|| names.iterator(name, count));
                    let iterator_type = names.idl.type_code("CosNaming::BindingIterator").unwrap();
                    list.set_any(2, &object_to_any(rest.as_ref(), &iterator_type)?)?;
                    void()
                }
                "resolve" => {
                    let path: Vec<NameComponent> = list.extract(0)?;
                    let (_, context) = below.iter().find(|(id, _)| *id == path[0].id).expect("it was listed");
                    Ok(object_to_any(Some(context), &TypeCode::object())?)
                }
                _ => Err(SystemException::no_implement(0, CompletionStatus::No).into()),
            }
        })
    }

    /// The rest of a listing of objects, without an end.
    fn iterator(self: &Arc<Self>, name: &'static str, from: usize) -> ObjectRef {
        let (names, next) = (Arc::clone(self), AtomicUsize::new(from));
        self.activate("CosNaming::BindingIterator", move |operation, list| {
            names.record(operation, name);
            match operation {
                "next_n" => {
                    let count = list.extract::<u32>(0)? as usize;
                    let first = next.fetch_add(count, Ordering::Relaxed);
                    let page: Vec<Binding> = (first..first + count).map(|nth| binding(nth, &[])).collect();
                    list.set_any(1, &Any::new(&page)?)?;
                    Ok(Any::new(true)?)
                }
                _ => void(),
            }
        })
    }
}

/// The binding at an index of a context: first its contexts, then its objects.
fn binding(index: usize, below: &[(&'static str, ObjectRef)]) -> Binding {
    let (id, binding_type) = match below.get(index) {
        Some((id, _)) => ((*id).to_owned(), BindingType::Ncontext),
        None => (format!("object{index}"), BindingType::Nobject),
    };
    Binding { binding_name: vec![NameComponent { id, kind: String::new() }], binding_type }
}

/// A client of this naming service.
fn client_of(naming: &ObjectRef) -> Orb {
    let mut args = vec!["-ORBInitRef".to_owned(), format!("NameService={naming}")];
    Orb::builder().take_args(&mut args).unwrap().build().unwrap()
}

fn exposures(names: &[&str]) -> Vec<Exposure> {
    names.iter().map(|name| Exposure { name: (*name).to_owned(), operations: Vec::new() }).collect()
}

#[test]
fn ten_thousand_bindings_are_listed_of_those_contexts_that_may_have_names() {
    let names = RecordedNames::start();
    let endless = |name| names.context(name, &[], usize::MAX >> 1);
    let below = [("First", endless("First")), ("Last", endless("Last")), ("Other", endless("Other"))];
    // Its bindings are as many as those of one answer.
    let root = names.context("root", &below, 197);
    let client = client_of(&root);
    let catalogue = Catalogue::new(&client, &exposures(&["First/*", "Last/*"]), None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listed = runtime.block_on(catalogue.names()).unwrap();
    let mut expected: Vec<String> = (0..9_800).map(|nth| format!("Last/object{nth}")).collect();
    expected.sort();
    assert_eq!(listed, expected);
    let mut calls = vec!["list root", "resolve root", "resolve root", "list Last"];
    calls.extend(["next_n Last"; 48]);
    calls.push("destroy Last");
    assert_eq!(*names.calls.lock().unwrap(), calls);
    assert!(format!("{catalogue:?}").starts_with("Catalogue { root: "), "{catalogue:?}");
    client.shutdown().unwrap();
    names.orb.shutdown().unwrap();
}

/// Three interfaces without parameters.
const OFFICE: &str =
    "interface Desk { void ring(); }; interface Safe { void ring(); }; interface Door { void ring(); };";

/// A fixture whose catalogue describes objects by a repository: two desks, a safe and a door.
fn office(client_args: Vec<String>) -> Fixture {
    let (idl, objects) = (describe(OFFICE).unwrap(), listening_orb());
    let activate = |interface: &str| {
        let ring = |_: &DescribedCall<'_>, _: &mut NvList| void();
        let servant = DescribedServant::described(idl.interface(interface).unwrap(), ring);
        Poa::root(&objects).unwrap().activate(servant).unwrap()
    };
    let bound = [("desk1", "Desk"), ("desk2", "Desk"), ("safe", "Safe"), ("door", "Door")]
        .map(|(name, interface)| ("Office", name, activate(interface)));
    Fixture::with(Settings { client_args, ..Settings::default() }, objects, Arc::default(), &bound, None)
}

#[test]
fn objects_of_one_interface_are_described_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = listening_orb();
    let repository = InterfaceRepository::start(&server, RepositoryOptions::new(folder.path())).unwrap();
    let reference = format!("InterfaceRepository={}", repository.reference());
    let fixture = office(vec!["-ORBInitRef".to_owned(), reference]);
    repository::fill(repository.reference(), &describe(OFFICE).unwrap()).unwrap();
    let status = |name: &str| fixture.send("POST", &format!("/Office/{name}/ring"), "").status;
    assert_eq!([status("desk1"), status("safe")], [200; 2]);
    repository.stop().unwrap();
    server.shutdown().unwrap();
    assert_eq!(status("desk2"), 200, "the description of its interface was kept");
    assert_eq!(status("door"), 503, "the repository is out of reach");
}

#[test]
fn an_object_whose_interface_is_in_no_repository_is_not_served() {
    let fixture = office(Vec::new());
    let response = fixture.send("POST", "/Office/desk1/ring", "");
    assert_eq!(response.status, 502, "{response:?}");
    assert_eq!(response.json()["title"], "the interface of the object is not known");
}
