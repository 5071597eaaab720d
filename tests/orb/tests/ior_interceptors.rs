//! IOR interceptors (CORBA 3.3 Part 1, 16.5): what they add is in every reference of an adapter.

use std::sync::{Arc, Mutex};

use spandrel::{
    CompletionStatus, IiopProfile, ObjectRef, Orb, OrbBuilder, Poa, SystemException,
    interception::{
        AdapterState, Interceptor, IorInfo, IorInterceptor, ObjectReferenceFactory, ObjectReferenceTemplate,
        TaggedComponent,
    },
};
use spandrel_orb_tests::{Probe, probe::TargetSkeleton};

const TAG: u32 = 0x5350_7777;

/// Adds a component that names it, and notes what it is told.
#[derive(Clone, Default)]
struct Namer {
    name: &'static str,
    notes: Arc<Mutex<Vec<String>>>,
    refuses: Option<&'static str>,
    panics: bool,
    factory: Option<Arc<Elsewhere>>,
}

impl Namer {
    fn note(&self, note: String) {
        self.notes.lock().unwrap().push(note);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.lock().unwrap())
    }
}

impl Interceptor for Namer {
    fn name(&self) -> &str {
        self.name
    }
}

impl IorInterceptor for Namer {
    fn establish_components(&self, info: &mut IorInfo<'_>) {
        self.note(format!("establish {} {:?}", info.manager_id(), info.state()));
        // 16.5.5: the template is not there yet.
        assert!(info.adapter_template().is_err() && info.current_factory().is_err());
        let component = TaggedComponent { tag: TAG, data: self.name.as_bytes().to_vec() };
        info.add_ior_component_to_profile(component.clone(), 0).unwrap();
        assert!(info.add_ior_component_to_profile(component, 99).is_err());
        assert!(!self.panics, "as planned");
    }

    fn components_established(&self, info: &mut IorInfo<'_>) -> Result<(), SystemException> {
        let name = info.adapter_template()?.adapter_name.join("/");
        self.note(format!("established {name}"));
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
        self.note(format!("manager {manager_id} {state:?}"));
    }

    fn adapter_state_changed(&self, templates: &[ObjectReferenceTemplate], state: AdapterState) {
        let names: Vec<String> = templates.iter().map(|template| template.adapter_name.join("/")).collect();
        self.note(format!("adapters {} {state:?}", names.join(",")));
    }
}

/// The names in a reference's components.
fn names(object: &ObjectRef) -> Vec<String> {
    let profile = IiopProfile::decode(&object.ior().profiles[0]).unwrap().unwrap();
    let ours = profile.components.iter().filter(|component| component.tag == TAG);
    ours.map(|component| String::from_utf8(component.data.clone()).unwrap()).collect()
}

fn builder(interceptors: &[&Namer]) -> OrbBuilder {
    interceptors.iter().fold(Orb::builder(), |builder, one| builder.ior_interceptor((*one).clone()).unwrap())
}

// 16.5.4.1: called each time create_POA is, and once for the root; exceptions are ignored.
#[test]
fn components_are_in_every_reference_of_every_adapter() {
    let first = Namer { name: "first", panics: true, ..Namer::default() };
    let second = Namer { name: "second", ..Namer::default() };
    let orb = builder(&[&first, &second]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    assert_eq!(second.take(), ["establish RootPOAManager Active", "established RootPOA"]);
    Poa::root(&orb).unwrap();
    assert_eq!(second.take(), [""; 0], "once");
    let object = root.activate(TargetSkeleton::new(Arc::new(Probe::new(&orb)))).unwrap();
    assert_eq!(names(&object), ["first", "second"]);
    let child = root.create_poa("Child", Some(&root.the_poa_manager()), []).unwrap();
    assert_eq!(second.take(), ["establish RootPOAManager Active", "established RootPOA/Child"]);
    let object = child.create_reference("IDL:Probe/Target:1.0").unwrap();
    assert_eq!(names(&object), ["first", "second"]);
    orb.shutdown(true).unwrap();
}

// 16.5.4.2: the exception keeps create_POA from making the adapter; OBJ_ADAPTER with minor code 6.
#[test]
fn an_interceptor_may_keep_an_adapter_from_being_made() {
    let strict = Namer { name: "strict", refuses: Some("Bad"), ..Namer::default() };
    let orb = builder(&[&strict]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let refused = SystemException::from(root.create_poa("Bad", None, []).unwrap_err());
    assert_eq!(refused, SystemException::obj_adapter(0x4f4d_0006, CompletionStatus::No));
    assert!(root.find_poa("Bad", false).is_err());
    root.create_poa("Good", None, []).unwrap();
    orb.shutdown(true).unwrap();
}

// 16.5.4.3, 16.5.4.4.
#[test]
fn changes_of_state_are_told() {
    let namer = Namer { name: "namer", ..Namer::default() };
    let orb = builder(&[&namer]).build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let child = root.create_poa("Child", None, []).unwrap();
    child.create_poa("Grandchild", Some(&child.the_poa_manager()), []).unwrap();
    namer.take();
    let manager = child.the_poa_manager();
    manager.activate().unwrap();
    manager.activate().unwrap();
    manager.discard_requests(false).unwrap();
    let id = manager.id();
    assert_eq!(namer.take(), [format!("manager {id} Active"), format!("manager {id} Discarding")]);
    child.destroy(false, true).unwrap();
    assert_eq!(namer.take(), ["adapters RootPOA/Child/Grandchild,RootPOA/Child NonExistent"]);
    orb.shutdown(true).unwrap();
}

/// Makes references to another type of what the adapter would have made.
#[derive(Default)]
struct Elsewhere(Mutex<Vec<Vec<u8>>>);

impl ObjectReferenceFactory for Elsewhere {
    fn make_object(
        &self,
        template: &ObjectReferenceTemplate,
        object_id: &[u8],
        made: ObjectRef,
    ) -> Result<ObjectRef, SystemException> {
        assert_eq!((&*template.orb_id, &*template.server_id), ("the-orb", "the-server"));
        self.0.lock().unwrap().push(object_id.to_vec());
        let mut ior = made.ior().clone();
        ior.type_id = "IDL:Elsewhere:1.0".to_owned();
        Ok(made.orb().reference(ior))
    }
}

// 16.5.6: the current factory makes the references.
#[test]
fn a_factory_makes_references_in_place_of_the_adapter() {
    let factory = Arc::new(Elsewhere::default());
    let namer = Namer { name: "namer", factory: Some(Arc::clone(&factory)), ..Namer::default() };
    let orb = builder(&[&namer]).orb_id("the-orb").server_id("the-server").build().unwrap();
    let root = Poa::root(&orb).unwrap();
    let object = root.create_reference("IDL:Probe/Target:1.0").unwrap();
    assert_eq!(object.type_id(), "IDL:Elsewhere:1.0");
    assert_eq!(factory.0.lock().unwrap()[0], root.reference_to_id(&object).unwrap().as_bytes());
    orb.shutdown(true).unwrap();
}
