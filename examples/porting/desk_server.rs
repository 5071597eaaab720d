//! Notebooks in Rust: the server of the guides for other ORBs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use spandrel::poa::{Incarnation, ObjectId, ServantActivator};
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
struct Notebooks;

impl ServantActivator for Notebooks {
    fn incarnate(&self, id: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Incarnation> {
        let name = String::from_utf8_lossy(id.as_bytes()).into_owned();
        println!("opened {name}");
        Ok(Arc::new(NotebookSkeleton::new(Notebook { name, entries: Mutex::default() })))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, servant: Arc<dyn Servant>, _: bool, _: bool) {
        if let Ok(notebook) = servant.downcast::<NotebookSkeleton<Notebook>>() {
            println!("closed {}: {}", notebook.0.name, notebook.0.own_total());
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
    let desk = Poa::root(&orb)?.child("desk").persistent().user_ids().activator(Notebooks).create()?;

    let names: NamingContext = orb.resolve_initial_references("NameService")?.narrow()?;
    for id in ["red", "blue"] {
        bind(&names, id, &desk.create_reference_with_id(&id.into(), "IDL:Desk/Notebook:1.0")?)?;
    }
    desk.the_poa_manager().activate()?;
    println!("ready");
    Ok(orb.run_until_signal()?)
}
// ANCHOR_END: main
