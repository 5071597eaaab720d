//! The bundled stubs of the naming service against omniNames and Spandrel's own naming service, which must answer
//! alike.

use std::fmt::Write as _;
use std::sync::LazyLock;

use spandrel::server::{Replied, Servant, ServerCall};
use spandrel::services::cos_naming::naming_context::{self, BindError, DestroyError, NotFoundReason, RebindError};
use spandrel::services::cos_naming::{
    BindingIterator, BindingList, BindingType, NameComponent, NamingContext, NamingContextExt, naming_context_ext,
};
use spandrel::services::name;
use spandrel::{Endpoint, ObjectRef, Orb, Poa, SystemException, SystemExceptionKind};
use spandrel_interop::names::server::{OmniNames, root_context};
use spandrel_naming::omni_log::{self, CodeSet};
use spandrel_naming::{NamingOptions, NamingService, RedbStore, RedbStoreOptions};
use spandrel_test_support::free_port;

fn component(id: &str, kind: &str) -> NameComponent {
    NameComponent { id: id.to_owned(), kind: kind.to_owned() }
}

/// A naming service, and an ORB that calls it.
struct Names {
    context: NamingContextExt,
    orb: Orb,
    _service: Service,
}

enum Service {
    OmniNames {
        _process: OmniNames,
    },
    Own {
        service: Option<NamingService>,
        orb: Orb,
        _data: tempfile::TempDir,
    },
    /// One that the environment names.
    Other,
}

impl Drop for Service {
    fn drop(&mut self) {
        if let Self::Own { service, orb, .. } = self {
            service.take().unwrap().stop().unwrap();
            orb.shutdown().unwrap();
        }
    }
}

fn omni_names() -> Names {
    let orb = Orb::builder().build().unwrap();
    let (process, port) = OmniNames::start(&orb).unwrap();
    let context = NamingContextExt::narrow(&root_context(&orb, port).unwrap()).unwrap();
    Names { context, orb, _service: Service::OmniNames { _process: process } }
}

fn own_names() -> Names {
    let (orb, client) = (Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap(), Orb::builder().build());
    let (client, data) = (client.unwrap(), tempfile::tempdir().unwrap());
    let service = NamingService::start(&orb, NamingOptions::new(data.path())).unwrap();
    let port = orb.listen().unwrap()[0].1;
    let context = NamingContextExt::narrow(&root_context(&client, port).unwrap()).unwrap();
    Names { context, orb: client, _service: Service::Own { service: Some(service), orb, _data: data } }
}

fn both() -> [Names; 2] {
    [omni_names(), own_names()]
}

/// The naming services of both, and that of `SPANDREL_NAMING_SERVICE`, a reference.
fn each() -> Vec<Names> {
    let mut all = Vec::from(both());
    if let Ok(reference) = std::env::var("SPANDREL_NAMING_SERVICE") {
        let orb = Orb::builder().build().unwrap();
        let context = orb.string_to_object(&reference).unwrap().narrow().unwrap();
        all.push(Names { context, orb, _service: Service::Other });
    }
    all
}

/// A reference to an object that answers: JacORB's naming service replaces bindings to others.
fn live_object(orb: &Orb, key: &str) -> ObjectRef {
    static SERVER: LazyLock<Orb> = LazyLock::new(orb_that_listens);
    let object = Poa::root(&SERVER).unwrap().activate(Thing).unwrap();
    SERVER.set_object_key_alias(key, &object).unwrap();
    let port = SERVER.listen().unwrap()[0].1;
    orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/{key}")).unwrap()
}

/// A reference that is bound and not called.
fn object(orb: &Orb, key: &str) -> ObjectRef {
    orb.string_to_object(&format!("corbaloc::127.0.0.1:9/{key}")).unwrap()
}

#[test]
fn each_service_binds_resolves_lists_and_unbinds() {
    each().iter().for_each(bind_resolve_list_and_unbind);
}

fn bind_resolve_list_and_unbind(Names { context, orb, .. }: &Names) {
    let (bank, grace) = (component("bank", ""), component("grace", "account"));
    let (first, second) = (live_object(orb, "first"), live_object(orb, "second"));

    let inner = context.bind_new_context(std::slice::from_ref(&bank)).unwrap().expect("a context");
    context.bind(&[bank.clone(), grace.clone()], Some(&first)).unwrap();
    let again = context.bind(&[bank.clone(), grace.clone()], Some(&second));
    assert_eq!(again, Err(BindError::AlreadyBound(naming_context::AlreadyBound {})));
    context.rebind(&[bank.clone(), grace.clone()], Some(&second)).unwrap();
    let resolved = context.resolve(&[bank.clone(), grace.clone()]).unwrap().expect("a reference");
    assert!(resolved.is_equivalent(&second) && !resolved.is_equivalent(&first));

    inner.bind(&[component("ada", "account")], Some(&first)).unwrap();
    let (some, rest) = inner.list(1).unwrap();
    let rest = rest.expect("an iterator over the other binding");
    let (has_more, more) = rest.next_n(10).unwrap();
    assert!(has_more && !rest.next_one().unwrap().0);
    rest.destroy().unwrap();
    let mut ids: Vec<&str> = some.iter().chain(&more).map(|it| it.binding_name[0].id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["ada", "grace"]);
    assert!(some.iter().all(|binding| binding.binding_type == BindingType::Nobject));
    let (bindings, rest) = context.list(10).unwrap();
    assert!(bindings.iter().any(|it| it.binding_name == [bank.clone()] && it.binding_type == BindingType::Ncontext));
    assert_eq!(rest, None);

    let full = inner.destroy().unwrap_err();
    assert_eq!((full.to_string(), format!("{full:?}")), ("NotEmpty".to_owned(), "NotEmpty".to_owned()));
    inner.unbind(&[component("ada", "account")]).unwrap();
    inner.unbind(std::slice::from_ref(&grace)).unwrap();
    let missing = context.resolve(&[bank.clone(), grace.clone()]).unwrap_err();
    match &missing {
        naming_context::ResolveError::NotFound(missing) => {
            assert_eq!(missing.why, NotFoundReason::MissingNode);
            assert_eq!(missing.rest_of_name, [grace]);
        }
        other => panic!("{other}"),
    }
    assert!(missing.to_string().starts_with("NotFound: why MissingNode, rest_of_name ["), "{missing}");
    context.unbind(&[bank]).unwrap();
    inner.destroy().unwrap();
}

#[test]
fn each_service_binds_its_contexts_like_objects() {
    each().iter().for_each(bind_a_context);
}

fn bind_a_context(Names { context, .. }: &Names) {
    let own = context.new_context().unwrap().expect("a context");
    let name = [component("own", "")];
    context.bind_context(&name, Some(&own)).unwrap();
    context.rebind_context(&name, Some(&own)).unwrap();
    let resolved = context.resolve(&name).unwrap().expect("a reference");
    assert!(resolved.is_equivalent(own.as_object()));
}

#[test]
fn each_service_has_string_forms_of_names() {
    each().iter().for_each(use_string_forms);
}

fn use_string_forms(Names { context, orb, .. }: &Names) {
    let name = [component("a/b", "k.d"), component("c", "")];
    assert_eq!(context.to_string(&name).unwrap(), r"a\/b.k\.d/c");
    assert_eq!(context.to_name(r"a\/b.k\.d/c").unwrap(), name);
    let empty: Result<_, naming_context_ext::ToNameError> = context.to_name("");
    assert_eq!(empty.unwrap_err().to_string(), "InvalidName");

    let plain = live_object(orb, "plain");
    context.bind(&[component("plain", "text")], Some(&plain)).unwrap();
    let resolved = context.resolve_str("plain.text").unwrap().expect("a reference");
    assert!(resolved.is_equivalent(&plain));
    assert_eq!(context.to_url("", "plain").unwrap_err().to_string(), "InvalidAddress");
}

/// JacORB's accepts addresses with a version alone.
#[test]
fn an_address_needs_no_version() {
    for Names { context, .. } in &both() {
        assert_eq!(context.to_url(":host:2809", "plain.text").unwrap(), "corbaname::host:2809#plain.text");
    }
}

/// An operation on a naming service. Contexts and objects are numbers.
#[derive(Clone, Debug)]
enum Operation {
    Bind(usize, Vec<NameComponent>, usize),
    Rebind(usize, Vec<NameComponent>, usize),
    BindContext(usize, Vec<NameComponent>, usize),
    RebindContext(usize, Vec<NameComponent>, usize),
    Resolve(usize, Vec<NameComponent>),
    Unbind(usize, Vec<NameComponent>),
    NewContext(usize),
    BindNewContext(usize, Vec<NameComponent>),
    Destroy(usize),
    List(usize, u32),
}

const OBJECTS: usize = 4;

/// An object that is no context.
struct Thing;

impl Servant for Thing {
    fn repository_id(&self) -> &'static str {
        "IDL:Thing:1.0"
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == self.repository_id()
    }

    fn dispatch(&self, _: &str, call: ServerCall<'_>) -> Result<Replied, SystemException> {
        call.implicit(self)
    }
}

fn random_operation(contexts: usize) -> Operation {
    let pick = |limit: usize| fastrand::usize(..limit);
    // Mostly names that were bound before.
    let name = || {
        let step = || component(["a", "b", "c", ""][pick(4)], ["", "k"][pick(2)]);
        (0..[1, 1, 1, 2, 2, 3, 4, 0][pick(8)]).map(|_| step()).collect::<Vec<_>>()
    };
    let context = pick(contexts);
    match pick(20) {
        0..=3 => Operation::Bind(context, name(), pick(OBJECTS)),
        4..=5 => Operation::Rebind(context, name(), pick(OBJECTS)),
        6 => Operation::BindContext(context, name(), pick(contexts)),
        7 => Operation::RebindContext(context, name(), pick(contexts)),
        8..=11 => Operation::Resolve(context, name()),
        12..=13 => Operation::Unbind(context, name()),
        14 if contexts < 40 => Operation::NewContext(context),
        15..=16 if contexts < 40 => Operation::BindNewContext(context, name()),
        17 if context > 0 => Operation::Destroy(context),
        _ => Operation::List(context, [0, 1, 2, 100][pick(4)]),
    }
}

/// A service, with the contexts and objects that operations name by numbers.
struct Replay {
    _service: Service,
    contexts: Vec<NamingContext>,
    objects: Vec<ObjectRef>,
}

impl Replay {
    /// The objects must answer, because omniNames calls each in the middle of a name to see whether it is a context.
    fn of(names: Names, things: &Poa) -> Self {
        let activate = |_| names.orb.string_to_object(&things.activate(Thing).unwrap().to_string()).unwrap();
        let objects = (0..OBJECTS).map(activate).collect();
        let found: NamingContext = names.context.into();
        // Its root may have another reference in bindings than that by which it was found.
        let name = [NameComponent { id: "self".into(), kind: String::new() }];
        found.bind_context(&name, Some(&found)).unwrap();
        let root = found.resolve(&name).unwrap().unwrap().narrow().unwrap();
        found.unbind(&name).unwrap();
        Self { contexts: vec![root], objects, _service: names._service }
    }

    /// Runs an operation, and describes its outcome without references.
    fn run(&mut self, operation: &Operation) -> String {
        let at = |context: &usize| &self.contexts[*context];
        match operation {
            Operation::Bind(context, name, object) => self.end(at(context).bind(name, Some(&self.objects[*object]))),
            Operation::Rebind(context, name, object) => {
                self.end(at(context).rebind(name, Some(&self.objects[*object])))
            }
            Operation::BindContext(context, name, bound) => self.end(at(context).bind_context(name, Some(at(bound)))),
            Operation::RebindContext(context, name, bound) => {
                self.end(at(context).rebind_context(name, Some(at(bound))))
            }
            Operation::Resolve(context, name) => match at(context).resolve(name) {
                Ok(object) => self.number_of(object.as_ref()),
                Err(error) => self.failure(error),
            },
            Operation::Unbind(context, name) => self.end(at(context).unbind(name)),
            Operation::NewContext(context) => match at(context).new_context() {
                Ok(created) => self.created(created),
                Err(exception) => format!("{:?}", exception.kind()),
            },
            Operation::BindNewContext(context, name) => match at(context).bind_new_context(name) {
                Ok(created) => self.created(created),
                Err(error) => self.failure(error),
            },
            Operation::Destroy(context) => match at(context).destroy() {
                Ok(()) => "done".to_owned(),
                Err(DestroyError::System(exception)) => format!("{:?}", exception.kind()),
                Err(other) => other.to_string(),
            },
            Operation::List(context, how_many) => match at(context).list(*how_many) {
                Ok((bindings, iterator)) => listing(*how_many, bindings, iterator),
                Err(exception) => format!("{:?}", exception.kind()),
            },
        }
    }

    /// Whether it binds an object in place of a context, or a context in place of an object.
    fn changes_a_type(&self, operation: &Operation) -> bool {
        let (context, name, kind) = match operation {
            Operation::Rebind(context, name, _) => (context, name, "context"),
            Operation::RebindContext(context, name, _) => (context, name, "object"),
            _ => return false,
        };
        let present = self.contexts[*context].resolve(name);
        present.is_ok_and(|present| self.number_of(present.as_ref()).starts_with(kind))
    }

    fn created(&mut self, context: Option<NamingContext>) -> String {
        self.contexts.push(context.expect("a context"));
        "created".to_owned()
    }

    fn end<E: Into<AnyError>>(&self, result: Result<(), E>) -> String {
        result.map_or_else(|error| self.failure(error), |()| "done".to_owned())
    }

    fn failure(&self, error: impl Into<AnyError>) -> String {
        match error.into() {
            AnyError::NotFound(exception) => format!("NotFound {:?} {:?}", exception.why, exception.rest_of_name),
            AnyError::CannotProceed(exception) => {
                let context = self.number_of(exception.cxt.as_ref().map(|context| context.as_object()));
                format!("CannotProceed {context} {:?}", exception.rest_of_name)
            }
            AnyError::InvalidName => "InvalidName".to_owned(),
            AnyError::AlreadyBound => "AlreadyBound".to_owned(),
            AnyError::System(exception) => format!("{:?}", exception.kind()),
        }
    }

    fn number_of(&self, object: Option<&ObjectRef>) -> String {
        let Some(object) = object else { return "nil".to_owned() };
        let mut text = String::new();
        if let Some(nth) = self.objects.iter().position(|known| known.is_equivalent(object)) {
            write!(text, "object {nth}").unwrap();
        }
        if let Some(nth) = self.contexts.iter().position(|known| known.as_object().is_equivalent(object)) {
            write!(text, "context {nth}").unwrap();
        }
        text
    }
}

/// The exceptions of all operations with a name.
enum AnyError {
    NotFound(naming_context::NotFound),
    CannotProceed(naming_context::CannotProceed),
    InvalidName,
    AlreadyBound,
    System(SystemException),
}

impl From<BindError> for AnyError {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NotFound(exception) => Self::NotFound(exception),
            BindError::CannotProceed(exception) => Self::CannotProceed(exception),
            BindError::InvalidName(_) => Self::InvalidName,
            BindError::AlreadyBound(_) => Self::AlreadyBound,
            BindError::System(exception) => Self::System(exception),
        }
    }
}

impl From<RebindError> for AnyError {
    fn from(error: RebindError) -> Self {
        match error {
            RebindError::NotFound(exception) => Self::NotFound(exception),
            RebindError::CannotProceed(exception) => Self::CannotProceed(exception),
            RebindError::InvalidName(_) => Self::InvalidName,
            RebindError::System(exception) => Self::System(exception),
        }
    }
}

/// All bindings of a listing, in order; the first reply has as many as were asked for.
fn listing(how_many: u32, mut bindings: BindingList, iterator: Option<BindingIterator>) -> String {
    assert!(bindings.len() <= how_many as usize);
    let first = bindings.len();
    if let Some(iterator) = &iterator {
        while let (true, more) = iterator.next_n(3).unwrap() {
            bindings.extend(more);
        }
        iterator.destroy().unwrap();
    }
    let mut lines: Vec<String> = bindings.iter().map(|binding| format!("{binding:?}")).collect();
    lines.sort_unstable();
    format!("{first} of {lines:?}")
}

#[test]
fn two_thousand_random_operations_have_the_outcomes_of_omninames() {
    let seed = std::env::var("PROPTEST_RNG_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    fastrand::seed(seed);
    let objects = Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap();
    let things = Poa::root(&objects).unwrap();
    let [mut theirs, mut own] = both().map(|names| Replay::of(names, &things));
    for nth in 0..2_000 {
        let operation = random_operation(own.contexts.len());
        if own.changes_a_type(&operation) {
            // NotFound (Naming Service 1.3, 2.3.3); omniNames replaces the binding.
            assert!(own.run(&operation).starts_with("NotFound Not"), "seed {seed}, operation {nth}: {operation:?}");
            continue;
        }
        let (expected, found) = (theirs.run(&operation), own.run(&operation));
        assert_eq!(found, expected, "seed {seed}, operation {nth}: {operation:?}");
    }
    assert!(own.contexts.len() > 10, "{}", own.contexts.len());
    objects.shutdown().unwrap();
}

#[test]
fn the_string_forms_and_addresses_of_omninames_are_accepted() {
    let [theirs, own] = both();
    for text in ["", "a//b", "/a", "a/", "a.", ".", "..", "a.b.c", r"a\b", r"a\", ".k", r"\.", "a/./b", "a b"] {
        assert_eq!(own.context.to_name(text), theirs.context.to_name(text), "{text}");
    }
    for address in ["", ":h", "h", "h:1", "iiop:h:1", "iiop:1.2@h:1,:h:2", "rir:", "x:y", "1.2@h", "::", ":h#x", ":h:"]
    {
        let [own, theirs] = [&own, &theirs].map(|names| names.context.to_url(address, "a b%/c\\.d"));
        assert_eq!(own, theirs, "{address}");
    }
}

/// Differences from omniNames, by the specification.
#[test]
fn a_context_of_a_server_that_is_gone_ends_a_name() {
    let names = own_names();
    let gone: NamingContext = object(&names.orb, "gone").unchecked_narrow();
    names.context.bind_context(&[component("gone", "")], Some(&gone)).unwrap();
    match names.context.resolve(&[component("gone", ""), component("x", "")]).unwrap_err() {
        naming_context::ResolveError::CannotProceed(exception) => {
            assert!(exception.cxt.unwrap().as_object().is_equivalent(gone.as_object()));
            assert_eq!(exception.rest_of_name, [component("x", "")]);
        }
        other => panic!("{other}"),
    }
    // Nil is an object, and no context.
    names.context.bind(&[component("nil", "")], None).unwrap();
    assert_eq!(names.context.resolve(&[component("nil", "")]), Ok(None));
    match names.context.bind_context(&[component("none", "")], None).unwrap_err() {
        BindError::System(exception) => assert_eq!(exception.kind(), SystemExceptionKind::BadParam),
        other => panic!("{other}"),
    }
    // The root context remains.
    assert_eq!(names.context.destroy().unwrap_err().to_string(), "NotEmpty");
    for name in ["gone", "nil"] {
        names.context.unbind(&[component(name, "")]).unwrap();
    }
    match names.context.destroy().unwrap_err() {
        DestroyError::System(exception) => assert_eq!(exception.kind(), SystemExceptionKind::BadInvOrder),
        other => panic!("{other}"),
    }
}

#[test]
fn names_lead_through_the_contexts_of_several_servers() {
    for far in both() {
        let near = own_names();
        near.context.bind_context(&[component("far", "")], Some(&far.context.clone().into())).unwrap();
        let [far_step, own_step, x] = ["far", "own", "x"].map(|id| component(id, ""));
        let created = near.context.bind_new_context(&[far_step.clone(), own_step.clone()]).unwrap().unwrap();
        let target = object(&near.orb, "target");
        near.context.bind(&[far_step.clone(), own_step.clone(), x.clone()], Some(&target)).unwrap();
        let resolved = far.context.resolve(&[own_step.clone(), x.clone()]).unwrap().unwrap();
        assert!(resolved.is_equivalent(&target));
        match near.context.resolve(&[far_step.clone(), own_step.clone(), far_step.clone(), x.clone()]).unwrap_err() {
            naming_context::ResolveError::NotFound(exception) => {
                assert_eq!(exception.why, NotFoundReason::MissingNode);
                assert_eq!(exception.rest_of_name, [far_step.clone(), x.clone()]);
            }
            other => panic!("{other}"),
        }
        near.context.unbind(&[far_step.clone(), own_step.clone(), x]).unwrap();
        near.context.unbind(&[far_step, own_step]).unwrap();
        created.destroy().unwrap();
    }
}

/// All names from a context on, with their types and objects.
fn all_names(context: &NamingContext, path: &str, names: &mut Vec<String>) {
    let (bindings, rest) = context.list(1_000).unwrap();
    assert_eq!(rest, None);
    for binding in bindings {
        let target = context.resolve(&binding.binding_name).unwrap().unwrap();
        let path = format!("{path}/{}", name::to_string(&binding.binding_name));
        if binding.binding_type == BindingType::Ncontext {
            names.push(format!("{path}/"));
            all_names(&target.unchecked_narrow(), &path, names);
        } else {
            names.push(format!("{path} {target}"));
        }
    }
}

fn sorted_names(root: &NamingContextExt) -> Vec<String> {
    let mut names = Vec::new();
    all_names(&root.clone().into(), "", &mut names);
    names.sort_unstable();
    names
}

#[test]
fn names_go_to_omninames_and_back() {
    let [ours, theirs] = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let orb = Orb::builder().build().unwrap();
    let own = own_names();
    let [bank, empty] = ["bank dir", "empty"].map(|id| component(id, r"ké.\"));
    own.context.bind_new_context(std::slice::from_ref(&bank)).unwrap();
    own.context.bind_new_context(&[bank.clone(), empty]).unwrap();
    own.context.bind(&[bank.clone(), component("grace hopper", "")], Some(&object(&orb, "grace"))).unwrap();
    own.context.bind(&[component("", "kind")], Some(&object(&orb, "kind"))).unwrap();
    let control = component("line\nfeed\ttab", "return\r \\n\u{b}\u{1b}");
    own.context.bind(&[control], Some(&object(&orb, "control"))).unwrap();
    let expected = sorted_names(&own.context);
    assert_eq!(expected.len(), 5, "{expected:?}");

    let Service::Own { service, .. } = &own._service else { unreachable!() };
    let port = free_port();
    let (text, entries) = omni_log::export(&**service.as_ref().unwrap().store(), &orb, "127.0.0.1", port).unwrap();
    assert_eq!((entries.bindings, entries.contexts), (5, 2));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let octets = CodeSet::Latin1.encode(text).unwrap();
    std::fs::write(theirs.path().join(format!("omninames-{}.dat", host.trim())), octets).unwrap();
    {
        let _running = OmniNames::start_in(&orb, theirs.path(), port).unwrap();
        let root = NamingContextExt::narrow(&root_context(&orb, port).unwrap()).unwrap();
        assert_eq!(sorted_names(&root), expected);
        // A change, so that the log of omniNames has one.
        root.unbind(&[bank.clone(), component("grace hopper", "")]).unwrap();
        root.bind(&[bank, component("ada", "")], Some(&object(&orb, "ada"))).unwrap();
    }
    let store = RedbStore::open(&ours.path().join("naming.redb"), &RedbStoreOptions::default()).unwrap();
    let mut files: Vec<_> = std::fs::read_dir(theirs.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort_unstable();
    let mut texts = files.iter().map(|file| CodeSet::Latin1.decode(std::fs::read(file).unwrap()).unwrap());
    let text = texts.find(|text| text.contains(" ada ")).expect("a file with the change");
    let entries = omni_log::import(&text, &orb, &store).unwrap();
    assert_eq!((entries.bindings, entries.contexts), (5, 2), "{text}");
    drop(store);
    let again = NamingService::start(&orb_that_listens(), NamingOptions::new(ours.path())).unwrap();
    let root = NamingContextExt::narrow(again.reference()).unwrap();
    let ada = expected.iter().find(|name| name.contains("grace")).unwrap().replace("grace hopper", "ada");
    let found = sorted_names(&root);
    assert!(found.iter().any(|name| name.starts_with(ada.split_once(" IOR").unwrap().0)), "{found:?}");
    assert_eq!(found.len(), 5);
    let control = |names: &[String]| {
        names.iter().find(|name| name.contains("\n")).map(|name| name.split_once(" IOR").unwrap().0.to_owned())
    };
    assert_eq!(control(&found), control(&expected));
}

fn orb_that_listens() -> Orb {
    Orb::builder().listen(Endpoint::new("127.0.0.1", 0)).build().unwrap()
}

#[test]
fn a_file_that_is_not_of_omninames_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let store = RedbStore::open(&folder.path().join("naming.redb"), &RedbStoreOptions::default()).unwrap();
    let orb = Orb::builder().build().unwrap();
    for (text, expected) in [
        ("port 1\nhello", "line 2 of the omniNames file is not valid: create, bind, unbind or destroy"),
        ("create xyz", "line 1 of the omniNames file is not valid: a key is expected"),
        ("bind IOR:00 a  nobject IOR:00", "line 1 of the omniNames file is not valid: a reference is expected"),
    ] {
        let error = omni_log::import(text, &orb, &store).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}
