//! IOR interceptors (CORBA 3.3 Part 1, 16.5): components and factories of references, and state changes of
//! adapters.

use spandrel::poa::{EtherealizeObjects, IfMissing, WaitForCompletion};
use std::sync::{Arc, Mutex};

use spandrel::{
    CompletionStatus, ObjectRef, Orb, OrbBuilder, Poa, SystemException,
    interception::{
        AdapterState, Interceptor, IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate,
        TaggedComponent,
    },
    types::IiopProfile,
};
use spandrel_orb_tests::{Probe, probe::TargetSkeleton};

const TAG: u32 = 0x5350_7777;

/// Adds a component with its name, and records its upcalls.
#[derive(Clone, Default)]
struct NamingInterceptor {
    name: &'static str,
    entries: Arc<Mutex<Vec<String>>>,
    refuses: Option<&'static str>,
    panics: bool,
    factory: Option<Arc<TypeChangingFactory>>,
}

impl NamingInterceptor {
    fn record(&self, entry: String) {
        self.entries.lock().unwrap().push(entry);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.entries.lock().unwrap())
    }
}

impl Interceptor for NamingInterceptor {
    fn name(&self) -> &str {
        self.name
    }
}

impl IorInterceptor for NamingInterceptor {
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        self.record(format!("establish {} {:?}", info.manager_id(), info.state()));
        // 16.5.5: the template is not available yet.
        assert!(info.adapter_template().is_err() && info.current_factory().is_err());
        let component = TaggedComponent { tag: TAG, data: self.name.as_bytes().to_vec() };
        info.add_ior_component_to_profile(component.clone(), 0).unwrap();
        assert!(info.add_ior_component_to_profile(component, 99).is_err());
        assert!(!self.panics, "as planned");
    }

    fn components_established(&self, info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        let name = info.adapter_template()?.adapter_name.join("/");
        self.record(format!("established {name}"));
        assert!(info.add_ior_component(TaggedComponent { tag: 1, data: Vec::new() }).is_err());
        if let Some(factory) = &self.factory {
            info.set_current_factory(Arc::clone(factory) as Arc<dyn ObjectReferenceFactory>)?;
        }
        match self.refuses {
            Some(refused) if name.ends_with(refused) => Err(SystemException::no_permission(0, CompletionStatus::No)),
            _ => Ok(()),
        }
    }

    fn adapter_manager_state_changed(&self, manager_id: &str, state: AdapterState) {
        self.record(format!("manager {manager_id} {state:?}"));
    }

    fn adapter_state_changed(&self, templates: &[ObjectReferenceTemplate], state: AdapterState) {
        let names: Vec<String> = templates.iter().map(|template| template.adapter_name.join("/")).collect();
        self.record(format!("adapters {} {state:?}", names.join(",")));
    }
}

/// The names in a reference's components.
fn names(object: &ObjectRef) -> Vec<String> {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let ours = profile.components.iter().filter(|component| component.tag == TAG);
    ours.map(|component| String::from_utf8(component.data.clone()).unwrap()).collect()
}

fn builder(interceptors: &[&NamingInterceptor]) -> OrbBuilder {
    interceptors.iter().fold(Orb::builder(), |builder, one| builder.ior_interceptor((*one).clone()).unwrap())
}

// 16.5.4.1: called at each create_POA, and once for the root; exceptions are ignored.
#[test]
fn components_are_in_every_reference_of_every_adapter() {
    let first = NamingInterceptor { name: "first", panics: true, ..NamingInterceptor::default() };
    let second = NamingInterceptor { name: "second", ..NamingInterceptor::default() };
    let orb = builder(&[&first, &second]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    assert_eq!(second.take(), ["establish RootPOAManager Active", "established RootPOA"]);
    Poa::root(&orb).unwrap();
    assert_eq!(second.take(), [""; 0], "called once for the root");
    let object = root.activate(TargetSkeleton::new(Arc::new(Probe::new(&orb)))).unwrap();
    assert_eq!(names(&object), ["first", "second"]);
    let child = root.create_poa("Child", Some(&root.the_poa_manager()), []).unwrap();
    assert_eq!(second.take(), ["establish RootPOAManager Active", "established RootPOA/Child"]);
    let object = child.create_reference("IDL:Probe/Target:1.0").unwrap();
    assert_eq!(names(&object), ["first", "second"]);
    orb.shutdown().unwrap();
}

// 16.5.4.2: the exception makes create_POA fail; OBJ_ADAPTER with minor code 6.
#[test]
fn an_exception_in_components_established_fails_create_poa() {
    let strict = NamingInterceptor { name: "strict", refuses: Some("Bad"), ..NamingInterceptor::default() };
    let orb = builder(&[&strict]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let refused = SystemException::from(root.create_poa("Bad", None, []).unwrap_err());
    assert_eq!(refused, SystemException::obj_adapter(0x4f4d_0006, CompletionStatus::No));
    assert!(root.find_poa("Bad", IfMissing::Fail).is_err());
    root.create_poa("Good", None, []).unwrap();
    orb.shutdown().unwrap();
}

// 16.5.4.3, 16.5.4.4.
#[test]
fn state_changes_of_managers_and_adapters_are_reported() {
    let namer = NamingInterceptor { name: "namer", ..NamingInterceptor::default() };
    let orb = builder(&[&namer]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let child = root.create_poa("Child", None, []).unwrap();
    child.create_poa("Grandchild", Some(&child.the_poa_manager()), []).unwrap();
    namer.take();
    let manager = child.the_poa_manager();
    manager.activate().unwrap();
    manager.activate().unwrap();
    manager.discard_requests(WaitForCompletion::No).unwrap();
    let id = manager.id();
    assert_eq!(namer.take(), [format!("manager {id} Active"), format!("manager {id} Discarding")]);
    child.destroy(EtherealizeObjects::No, WaitForCompletion::Yes).unwrap();
    assert_eq!(namer.take(), ["adapters RootPOA/Child/Grandchild,RootPOA/Child NonExistent"]);
    orb.shutdown().unwrap();
}

/// A factory that changes the type id of the adapter's references.
#[derive(Default)]
struct TypeChangingFactory(Mutex<Vec<Vec<u8>>>);

impl ObjectReferenceFactory for TypeChangingFactory {
    fn make_object(
        &self,
        template: &ObjectReferenceTemplate,
        object_id: &[u8],
        original: ObjectRef,
    ) -> Result<ObjectRef, SystemException> {
        assert_eq!((&*template.orb_id, &*template.server_id), ("the-orb", "the-server"));
        self.0.lock().unwrap().push(object_id.to_vec());
        let mut ior = original.ior().clone();
        ior.type_id = "IDL:Elsewhere:1.0".to_owned();
        Ok(original.orb().reference(ior))
    }
}

// 16.5.6: the current factory creates the references.
#[test]
fn the_current_factory_creates_the_adapters_references() {
    let factory = Arc::new(TypeChangingFactory::default());
    let namer =
        NamingInterceptor { name: "namer", factory: Some(Arc::clone(&factory)), ..NamingInterceptor::default() };
    let orb = builder(&[&namer]).orb_id("the-orb").server_id("the-server").build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let object = root.create_reference("IDL:Probe/Target:1.0").unwrap();
    assert_eq!(object.type_id(), "IDL:Elsewhere:1.0");
    assert_eq!(factory.0.lock().unwrap()[0], root.reference_to_id(&object).unwrap().as_bytes());
    orb.shutdown().unwrap();
}
