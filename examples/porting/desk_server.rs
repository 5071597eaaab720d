//! Notebooks in Rust: the server of the guides for other ORBs.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use spandrel::poa::{
    IdAssignmentPolicy, Incarnation, LifespanPolicy, ObjectId, RequestProcessingPolicy, ServantActivator,
    ServantManager,
};
use spandrel::server::Servant;
use spandrel::services::cos_naming::{NamingContext, naming_context::BindNewContextError};
use spandrel::services::name;
use spandrel::types::{Any, Interface as _};
use spandrel::{ObjectRef, Orb, Poa, SystemException};

spandrel::include_idl!("desk");
use desk::{Item, ItemServant, NoSuchEntry, NotebookServant, NotebookSkeleton, notebook::GetError};

// ANCHOR: servant
struct Notebook {
    name: String,
    entries: Mutex<BTreeMap<String, Any>>,
}

impl Notebook {
    fn own_total(&self) -> i32 {
        self.entries.lock().unwrap().values().filter_map(|value| value.extract::<i32>().ok()).sum()
    }
}

impl ItemServant for Notebook {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.name.clone())
    }
}

impl NotebookServant for Notebook {
    fn put(&self, key: &str, value: &Any) -> Result<(), SystemException> {
        self.entries.lock().unwrap().insert(key.to_owned(), value.clone());
        Ok(())
    }

    fn get(&self, key: &str) -> Result<Any, GetError> {
        let entry = self.entries.lock().unwrap().get(key).cloned();
        entry.ok_or_else(|| NoSuchEntry { key: key.to_owned() }.into())
    }

    fn total(&self, also: Option<&Item>) -> Result<i32, SystemException> {
        let other = also.and_then(|item| item.as_object().narrow::<desk::Notebook>().ok());
        Ok(self.own_total() + other.map_or(Ok(0), |other| other.total(None))?)
    }
}
// ANCHOR_END: servant

// ANCHOR: activator
/// The notebooks that are open: the adapter has them as skeletons, without their type.
#[derive(Default)]
struct Notebooks(Mutex<HashMap<ObjectId, Arc<Notebook>>>);

impl ServantActivator for Notebooks {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        let name = String::from_utf8_lossy(id.as_bytes()).into_owned();
        println!("opened {name}");
        let notebook = Arc::new(Notebook { name, entries: Mutex::default() });
        self.0.lock().unwrap().insert(id.clone(), Arc::clone(&notebook));
        Ok(Arc::new(NotebookSkeleton::new(notebook)))
    }

    fn etherealize(&self, id: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        if let Some(notebook) = self.0.lock().unwrap().remove(id) {
            println!("closed {}: {}", notebook.name, notebook.own_total());
        }
    }
}
// ANCHOR_END: activator

// ANCHOR: names
fn bind(root: &NamingContext, id: &str, object: &ObjectRef) -> Result<(), Box<dyn std::error::Error>> {
    match root.bind_new_context(&name::parse("desk")?) {
        Ok(_) | Err(BindNewContextError::AlreadyBound(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(root.rebind(&name::parse(&format!("desk/{id}"))?, Some(object))?)
}
// ANCHOR_END: names

// ANCHOR: main
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let orb = Orb::init(std::env::args())?;
    let policies = [
        LifespanPolicy::Persistent.into(),
        IdAssignmentPolicy::UserId.into(),
        RequestProcessingPolicy::UseServantManager.into(),
    ];
    let desk = Poa::root(&orb)?.create_poa("desk", None, policies)?;
    desk.set_servant_manager(ServantManager::Activator(Arc::new(Notebooks::default())))?;

    let names: NamingContext = orb.resolve_initial_references("NameService")?.narrow()?;
    for id in ["red", "blue"] {
        bind(&names, id, &desk.create_reference_with_id(&id.into(), "IDL:Desk/Notebook:1.0")?)?;
    }
    desk.the_poa_manager().activate()?;
    println!("ready");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
